"""Fixtures of panels: pictures have few pixels, and messages to the browser are recorded."""

import pytest


@pytest.fixture(autouse=True)
def few_pixels(low_resolution):
    """See `low_resolution`."""


@pytest.fixture
def sent(monkeypatch):
    """All messages to the browser: (content, buffers)."""
    messages = []

    def record(self, content, buffers=None):
        messages.append((content, buffers or []))

    monkeypatch.setattr("fedlab_nb.panels.stage.Stage.send", record)
    return messages
