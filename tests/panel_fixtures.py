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
    """Makes panels on the fake job, playgrounds unless another one is named, and closes them."""
    from fedlab_nb.panels import playground

    made = []

    def new(kind=playground, **options):
        made.append(kind(**{"job": job, "seeds": 2, "methods": ["fedavg", "fens"], **options}))
        return made[-1]

    yield new
    job.gate.set()
    for panel in made:
        panel.close()
