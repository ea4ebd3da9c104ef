"""A notebook's kernel is started again if it dies at once, and only then."""

import kernel_start
import pytest

DIED, SILENT = "Kernel died before replying to kernel_info", "Kernel didn't respond in 60 seconds"


@pytest.mark.parametrize(("errors", "starts"), [([DIED] * 2, 3), ([DIED] * 3, 3), ([SILENT], 1)])
def test_a_kernel_that_dies_at_once_starts_again_and_no_other(monkeypatch, errors, starts):
    """nbval's own function raises `errors` one after another, and then starts a kernel."""
    calls = []
    errors_left = list(errors)

    def start_once(*args, **options):
        calls.append((args, options))
        if errors_left:
            raise RuntimeError(errors_left.pop(0))
        return "kernel"

    monkeypatch.setattr(kernel_start, "start_once", start_once)
    if len(errors) < starts:
        assert kernel_start.start_kernel(60, cwd="here") == "kernel"
    else:
        with pytest.raises(RuntimeError, match="Kernel"):
            kernel_start.start_kernel(60, cwd="here")
    assert calls == [((60,), {"cwd": "here"})] * starts
    assert kernel_start.kernel.start_new_kernel is kernel_start.start_kernel  # nbval uses it
