"""What the tests of labs and lessons share."""

from lab_fixtures import *  # noqa: F403
