"""The story of lessons 1 to 6: one day at ten post offices (digits, α = 0.1, seed 4).

    from fedlab_nb.course import day
    fl.run("afl", **day.SETTING)     # any method on this draw
    day.draw_offices()  # the ten offices, drawn: names, envelopes, what they hold
    day.make_ask_all_button(guess, outcome)  # a button: ten networks are trained, and together read 360 images
    day.draw_accuracy_chart("fens")  # the chart that grows: every rule up to this one
    day.draw_eights_without_two_offices()  # what is lost when E and F are left out

`figures.toml` declares the runs behind the chart; `names.toml` has the offices' names.
"""

from ..kit.missing_name import make_getattr_for_missing_names
from .pictures import (
    SETTING,
    count_eights,
    draw_accuracy_chart,
    draw_answer_counts,
    draw_eights_without_two_offices,
    draw_first_accuracy_chart,
    draw_offices,
)
from .question import make_ask_all_button

__getattr__ = make_getattr_for_missing_names(__name__)

__all__ = [
    "SETTING",
    "make_ask_all_button",
    "draw_accuracy_chart",
    "count_eights",
    "draw_first_accuracy_chart",
    "draw_offices",
    "draw_answer_counts",
    "draw_eights_without_two_offices",
]
