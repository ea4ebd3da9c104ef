"""In this folder every picture has few pixels."""

import pytest


@pytest.fixture(autouse=True)
def few_pixels(low_resolution):
    """See `low_resolution`."""
