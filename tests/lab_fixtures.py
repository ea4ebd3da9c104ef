"""Here every picture has few pixels, and a panel that a test has opened is closed after it.

`make` and `ran` open the lab of a file's `SYSTEM`, with `SHORT` in place of what takes long.
"""

import pytest

from fedlab_nb.labs import lab


@pytest.fixture(autouse=True)
def few_pixels(coarse):
    """See `coarse`."""


@pytest.fixture
def closing():
    """A panel that is handed through it is closed after the test."""
    panels = []

    def through(panel):
        panels.append(panel)
        return panel

    yield through
    for panel in panels:
        panel.close()


@pytest.fixture
def make(request, closing):
    """Opens the lab, with other settings where they are given."""
    return lambda **options: closing(
        lab(request.module.SYSTEM, **{**request.module.SHORT, **options})
    )


@pytest.fixture
def live(make, monkeypatch, tmp_path):
    """Opens the lab and runs it: the panel, and the pictures of a view that were drawn while it ran."""
    monkeypatch.setenv("FEDLAB_NB_STORE", str(tmp_path))  # a remembered run has no while
    monkeypatch.setattr("fedlab_nb.panels.views.REDRAW", 0)

    def through(name, **options):
        panel = make(**options)
        seen = []
        draw = panel.lab_views[name].draw

        def watched(state):
            picture = draw(state)
            seen.extend([picture] * (state.outcome is None))
            return picture

        panel.lab_views[name].draw = watched
        panel.show(name)
        panel.run(wait=True)
        assert panel.error == "" and seen
        return panel, seen

    return through


@pytest.fixture(scope="module")
def ran(request):
    """The lab after one run, with the file's `RAN` besides, for the tests that only look at it."""
    panel = lab(
        request.module.SYSTEM, **{**request.module.SHORT, **getattr(request.module, "RAN", {})}
    )
    panel.run(wait=True)
    yield panel
    panel.close()
