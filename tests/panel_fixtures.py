"""Fixtures: panels on a stand-in for `study.job`, and pictures of few pixels.

Their imports are within the fixtures, because pytest-xdist's first process loads this file and runs no test.
"""

import pytest


@pytest.fixture
def low_resolution(monkeypatch):
    """Draw pictures with few pixels: the same things are drawn, in a third of the time."""
    monkeypatch.setattr("fedlab_nb.plots.style.DPI", 50)


@pytest.fixture
def job():
    """A stand-in for `study.job`, see `fake_job`."""
    from fake_job import FakeJob

    return FakeJob()


@pytest.fixture
def make_panel(job):
    """A function that makes a panel on the fake job; all are closed after the test.

    kind: what makes the panel; default: a panel for several methods, such as those of compare, race and the labs
    """
    from fedlab_nb.panels.figures import Calibration
    from fedlab_nb.panels.lab_view import LabSpec
    from fedlab_nb.panels.panel import Panel

    panels = []
    companions = ("local", "fedavg", "ensemble", "fens", "fedlpa")
    spec = LabSpec(companions=companions, views=(Calibration,), last=True)

    def make_panel_of_several_methods(**options):
        return Panel(spec, **options)

    def make(kind=make_panel_of_several_methods, **options):
        defaults = {"job": job, "seeds": 2, "methods": ["fedavg", "fens"]}
        panel = kind(**{**defaults, **options})
        panels.append(panel)
        return panel

    yield make
    job.gate.set()
    for panel in panels:
        panel.close()
