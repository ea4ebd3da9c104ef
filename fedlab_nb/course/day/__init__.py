"""The story of lessons 1 to 6: one day at ten post offices (digits, α = 0.1, seed 4).

    from fedlab_nb.course import day
    fl.run("afl", **day.SETTING)     # any method on this draw
    day.offices()                    # the ten offices, drawn: names, envelopes, what they hold
    day.ask_all(guess, outcome)      # a button: ten networks are trained, and together read 360 images
    day.chart("fens")                # the chart that grows: every rule up to this one
    day.without_two()                # what is lost when E and F are left out

`figures.toml` declares the runs behind the chart; `names.toml` has the offices' names.
"""

from .pictures import (
    SETTING,
    chart,
    count_eights,
    first_chart,
    offices,
    tally,
    without_two,
)
from .question import ask_all

__all__ = [
    "SETTING",
    "ask_all",
    "chart",
    "count_eights",
    "first_chart",
    "offices",
    "tally",
    "without_two",
]
