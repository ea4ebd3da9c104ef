"""Here every picture has few pixels, and a panel that a test has opened is closed after it."""

import pytest


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
