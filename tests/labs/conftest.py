"""Here every picture has few pixels, and a panel that a test has opened is closed after it."""

import itertools

import pytest

from fedlab_nb.teach.build import alike, tried


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
def told_apart():
    """Each wrong function of a build exercise goes wrong somewhere, and no two always return the same."""

    def judge(build):
        inputs = build.inputs()
        given = {name: [tried(wrong, each) for each in inputs] for name, wrong in build.slips.items()}
        given["right"] = [build.right(*each) for each in inputs]
        for (one, ours), (other, theirs) in itertools.combinations(given.items(), 2):
            assert not all(map(alike, ours, theirs)), (one, other)

    return judge
