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
    """Makes playgrounds on the fake job and closes them."""
    from fedlab_nb.panels import playground

    made = []

    def new(**options):
        panel = playground(**{"job": job, "seeds": 2, "methods": ["fedavg", "fens"], **options})
        made.append(panel)
        return panel

    yield new
    job.gate.set()
    for panel in made:
        panel.close()


@pytest.fixture
def diverged():
    from fedlab_nb.errors import RunError

    return RunError("Its numbers are no longer finite; use a smaller learning rate.")
