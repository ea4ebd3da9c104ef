"""A notebook's kernel is started again if it dies at once, and only then."""

import kernel_start
import pytest


def starts(monkeypatch, *errors):
    """nbval's own start, which raises `errors` one after the other and then gives a kernel; what it was called with."""
    calls, left = [], list(errors)

    def once(*args, **options):
        calls.append((args, options))
        if left:
            raise RuntimeError(left.pop(0))
        return "kernel"

    monkeypatch.setattr(kernel_start, "start_once", once)
    return calls


def test_a_kernel_that_dies_at_once_starts_again(monkeypatch):
    calls = starts(monkeypatch, *["Kernel died before replying to kernel_info"] * 2)
    assert kernel_start.start(60, cwd="here") == "kernel"
    assert calls == [((60,), {"cwd": "here"})] * 3


DIED, SILENT = "Kernel died before replying to kernel_info", "Kernel didn't respond in 60 seconds"


@pytest.mark.parametrize(("errors", "seen"), [([DIED] * 3, 3), ([SILENT], 1)])
def test_one_that_dies_always_or_does_not_answer_is_an_error(monkeypatch, errors, seen):
    calls = starts(monkeypatch, *errors)
    with pytest.raises(RuntimeError, match="Kernel"):
        kernel_start.start()
    assert len(calls) == seen


def test_nbval_starts_its_kernels_so():
    assert kernel_start.kernel.start_new_kernel is kernel_start.start
