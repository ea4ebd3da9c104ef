"""Sliders that keep a value that code has set.

When a browser shows a slider, it moves it to the nearest step and sends that value back, as if a person had moved it:
α = 0.3 came back as 0.32. So a slider whose value lies between two steps gets finer steps before it is shown.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TypedDict

import ipywidgets as widgets
from traitlets import validate

FINE_STEP = 0.002  # of an exponent of ten: fine enough for every value with two digits
MOST_DECIMALS = 6  # of a step
TOLERANCE = 1e-6  # in steps


class Proposal(TypedDict):
    """The argument of a validator of traitlets: the value that is to be set, and its slider."""

    value: float
    owner: FineLogSlider | FineSlider


def is_on_slider_step(value_or_exponent: float, slider: FineLogSlider | FineSlider) -> bool:
    """Whether a step of the slider is at its value, or at the exponent of the value of a logarithmic slider."""
    steps = (value_or_exponent - slider.min) / slider.step
    return abs(steps - round(steps)) < TOLERANCE


class FineLogSlider(widgets.FloatLogSlider):
    """A slider of powers of ten, whose steps become finer once it is given a value between two of them."""

    @validate("value")
    def _validate_value(self, proposal: Proposal) -> float:
        value = super()._validate_value(proposal)
        if not is_on_slider_step(math.log(value, self.base), self):
            self.step = min(self.step, FINE_STEP)
        return value


class FineSlider(widgets.FloatSlider):
    """A slider whose steps become as fine as the last decimal of a value that it is given between two of them."""

    @validate("value")
    def _validate_value(self, proposal: Proposal) -> float:
        value = super()._validate_value(proposal)
        if not is_on_slider_step(value, self):
            exponent = Decimal(str(value)).normalize().as_tuple().exponent
            self.step = min(self.step, 10.0 ** max(exponent, -MOST_DECIMALS))
        return value
