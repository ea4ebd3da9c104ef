"""Panels on a stand-in for `study.job`. The imports are in the fixtures: pytest-xdist's first process needs none."""

import pytest


@pytest.fixture
def coarse(monkeypatch):
    """Few pixels: what is drawn stays the same, and takes a third of the time."""
    monkeypatch.setattr("fedlab_nb.plots.style.DPI", 50)


@pytest.fixture
def job():
    from fake_job import FakeJob

    return FakeJob()


@pytest.fixture
def make(job):
    """Makes panels on the fake job and closes them: unless another kind is named, the panel of many methods that
    compare, race and labs are, with the playground's methods."""
    from fedlab_nb.panels.figures import Calibration
    from fedlab_nb.panels.lab_view import LabSpec
    from fedlab_nb.panels.panel import Panel

    made = []
    companions = ("local", "fedavg", "ensemble", "fens", "fedlpa")
    spec = LabSpec(companions=companions, views=(Calibration,), last=True)

    def many_methods(**options):
        return Panel(spec, **options)

    def new(kind=many_methods, **options):
        made.append(kind(**{"job": job, "seeds": 2, "methods": ["fedavg", "fens"], **options}))
        return made[-1]

    yield new
    job.gate.set()
    for panel in made:
        panel.close()
