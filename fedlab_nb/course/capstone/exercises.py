"""Worked numbers and exercises of the capstone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...methods import METHODS
from ...rng import numpy_rng
from ..kit.exercises import exercises
from ..kit.view import Card, worked

if TYPE_CHECKING:
    from .desk import Case

FIRST = ("fedavg", "ensemble", "afl")  # the lesson's own tries
TITLES = [METHODS[name].info.title for name in FIRST]


def best(case: Case) -> str:
    """Title of that one of the lesson's own tries that is best on validation images."""
    own = [t for t in case.record.tries if t.method in FIRST and not t.knobs]
    return max(own, key=lambda t: t.band.mean).title


def luck(tries: int = 10, images: int = 250, share: float = 0.85) -> Card:
    """How good the best of many equal tries looks: the mean over 2,000 draws of binomial luck."""
    right = numpy_rng(0, "luck").binomial(images, share, (2000, tries))
    gain = round(100 * (right.max(1).mean() / images - share), 1) + 0.0  # no "-0.0"
    spread = 100 * math.sqrt(share * (1 - share) / images)
    return worked(
        f"{tries} methods, each of them right for {100 * share:.0f} % of all images, are tried on {images} images.",
        f"The best of them looks {gain:.1f} points better than it is. "
        f"One of them alone is off by about {spread:.1f} points.",
    )


q1, q2 = exercises(__name__)
