"""A picture that says what to do so that there will be one."""

import textwrap

from .style import LOCK, QUIET, Picture, new_figure


def blank(text: str, *, setting: str) -> Picture:
    """`text` in the middle of an empty figure; the same is its sentence."""
    with LOCK:
        figure = new_figure()
        middle = {"ha": "center", "va": "center", "fontsize": 13, "color": QUIET, "linespacing": 1.6}
        figure.text(0.5, 0.5, textwrap.fill(text, 46), **middle)
    return Picture(figure, alt=f"No picture yet ({setting}). {text}", sentence=text)
