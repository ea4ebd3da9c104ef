"""The frame of a picture: an SVG that fills it, or words. What is in it answers to pointer and keyboard (`frame.js`).

Python sends `value`, `marks` and `held`; the browser sends `size` and `picked`. Nothing is fetched from anywhere.
`Chores` gives sliders and tabs what assistive technology needs (`chores.js`).
"""

from pathlib import Path
from typing import Any

import anywidget
import traitlets

HERE = Path(__file__).parent


class Chores(anywidget.AnyWidget):
    """What the page of a panel needs beside its widgets (`chores.js`); it is not seen."""

    _esm = (HERE / "chores.js").read_text(encoding="utf-8")


class Frame(anywidget.AnyWidget):
    """One frame.

    value: an SVG element, or HTML;   alt: what the SVG shows, in words;   marks: {id: what it says and stands for}
    size:  width and height of the visible frame in pixels, [0, 0] before it was seen
    held:  the method that is held in all pictures, or "";   picked: the last choice, with a number that counts them
    moves: what of the SVG has moved since (see `plots.moving.moved`), and whether the whole follows at rest, or {}
    motion: what the browser moves by itself when one of `drivers` {name: a widget's id} changes (`motion.js`)
    moves_itself: whether the browser has found them, and does so
    rested: how often the moves have come to rest, so that the whole can be drawn
    """

    _esm = "".join((HERE / name).read_text(encoding="utf-8") for name in ("motion.js", "frame.js"))
    value = traitlets.Unicode().tag(sync=True)
    alt = traitlets.Unicode().tag(sync=True)
    marks: Any = traitlets.Dict().tag(sync=True)
    held = traitlets.Unicode().tag(sync=True)
    moves: Any = traitlets.Dict().tag(sync=True)
    motion: Any = traitlets.Dict().tag(sync=True)
    drivers: Any = traitlets.Dict().tag(sync=True)
    moves_itself = traitlets.Bool(False).tag(sync=True)
    rested = traitlets.Int(0).tag(sync=True)
    size = traitlets.List([0, 0]).tag(sync=True)
    picked: Any = traitlets.Dict().tag(sync=True)
