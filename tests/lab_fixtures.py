"""Fixtures for tests of labs: pictures have few pixels, and panels are closed after the test.

`open_lab` and `finished_lab` open the lab of a file's `SYSTEM` with its `SHORT_SETTINGS`, so that runs take seconds.
"""

import pytest

from fedlab_nb.labs import lab


@pytest.fixture(autouse=True)
def few_pixels(low_resolution):
    """See `low_resolution`."""


@pytest.fixture
def closing():
    """A function that returns the panel that it gets, and closes it after the test."""
    panels = []

    def close_after_test(panel):
        panels.append(panel)
        return panel

    yield close_after_test
    for panel in panels:
        panel.close()


@pytest.fixture
def open_lab(request, closing):
    """A function that opens the lab, with the given settings in place of the short ones."""
    return lambda **options: closing(
        lab(request.module.SYSTEM, **{**request.module.SHORT_SETTINGS, **options})
    )


@pytest.fixture
def record_run(open_lab, monkeypatch, tmp_path):
    """A function that opens the lab and runs it: the panel, and the pictures of a view while it ran."""
    # An empty store, as a stored run would be over at once.
    monkeypatch.setenv("FEDLAB_NB_STORE", str(tmp_path))
    monkeypatch.setattr("fedlab_nb.panels.views.REDRAW", 0)

    def run_and_record(name, **options):
        panel = open_lab(**options)
        pictures = []
        draw = panel.lab_views[name].draw

        def draw_and_record(state):
            picture = draw(state)
            if state.outcome is None:
                pictures.append(picture)
            return picture

        panel.lab_views[name].draw = draw_and_record
        panel.show(name)
        panel.run(wait=True)
        assert panel.error == "" and pictures
        return panel, pictures

    return run_and_record


@pytest.fixture(scope="module")
def finished_lab(request):
    """The lab after one run with the file's `EXTRA_SETTINGS`, too, for the tests that only look at it."""
    module = request.module
    settings = {**module.SHORT_SETTINGS, **getattr(module, "EXTRA_SETTINGS", {})}
    panel = lab(module.SYSTEM, **settings)
    panel.run(wait=True)
    yield panel
    panel.close()
