"""Sliders and a browser: a value that code has set comes back unchanged."""

import math

import pytest

from fedlab_nb.panels.controls import make_alpha_slider
from fedlab_nb.panels.sliders import FineSlider

USUAL_STEP = make_alpha_slider().step


def send_back_from_browser(slider):
    """Do as a browser does: move the slider to the nearest step, and send its value back."""
    place = slider.min + round((math.log10(slider.value) - slider.min) / slider.step) * slider.step
    slider.value = slider.base**place


def list_values_of_two_digits():
    values = []
    for power in (-2, -1, 0, 1):
        values += [float(f"{number / 10 * 10**power:.2g}") for number in range(10, 100)]
    return values


@pytest.mark.slow
def test_a_value_of_two_digits_is_still_the_same_after_a_browser_has_shown_it():
    for value in list_values_of_two_digits():
        slider = make_alpha_slider()
        slider.value = value
        send_back_from_browser(slider)
        assert float(f"{slider.value:.2g}") == value


@pytest.mark.parametrize("value", [0.01, 0.1, 1.0, 10**-0.5, 100.0])
def test_a_value_on_a_step_leaves_the_steps_as_wide_as_they_are(value):
    slider = make_alpha_slider()
    slider.value = value
    assert slider.step == USUAL_STEP


def test_the_finer_step_is_known_before_the_value():
    """A browser that got the value first would already have moved it."""
    slider = make_alpha_slider()
    names = []
    slider.observe(lambda change: names.append(change.name))
    slider.value = 0.3
    assert names == ["step", "value"]


def test_a_knob_between_two_steps_is_still_the_same_after_a_browser_has_shown_it():
    for value in (0.5, 0.005, 0.333, 1.25, 0.123456):
        slider = FineSlider(min=0, max=2, step=0.01)
        slider.value = value
        place = slider.min + round((value - slider.min) / slider.step) * slider.step
        assert place == pytest.approx(value, abs=1e-12)


def test_values_beyond_the_ends_are_those_of_the_ends():
    slider = make_alpha_slider()
    slider.value = 1000
    assert slider.value == 100
