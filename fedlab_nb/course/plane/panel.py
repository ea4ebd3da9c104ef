"""The panel of the toy: α, seed and start; each move of the slider trains the clients and draws the squares anew."""

from __future__ import annotations

import html
import traceback
from collections.abc import Sequence
from typing import Any

import ipywidgets as widgets

from ...errors import choose
from ...panels import saved, theme
from ...panels.controls import alpha_slider, put, seed_field
from ...panels.lab_view import LabView
from ...panels.views import LEAST, MOST, Chores, View
from ...plots import Picture
from ...plots.plane import tallness
from ...plots.style import sized
from .squares import COUNT, PAGE, WIDE, picture
from .toy import STARTS, Toy, toy_at

HEIGHT = "270px"  # until the width is known
WORDS = {"common": "common start", "own": "each its own start"}


class PlaneView(LabView):
    """The row of squares, under the panel's controls."""

    name, title, ready = "plane", "Points in the plane", "always"

    def __init__(self, controls: Sequence[widgets.Widget]) -> None:
        self.controls = controls


class PlanePanel(saved.Saved):
    """What `show` makes. Public: `set`, `picture`, `sentence`, `error`, and the controls alpha, seed and start."""

    def __init__(self, alpha: float, seed: int, start: str) -> None:
        self.error = ""
        self.alpha, self.seed = alpha_slider(width=360), seed_field(width=120)
        self.start = theme.made(
            widgets.ToggleButtons, "fl-start", options=[(WORDS[start], start) for start in STARTS],
            tooltips=["All networks begin with the same weights", "Each network begins with random weights of its own"],
        )  # fmt: skip
        self._view = View(PlaneView([self.alpha, self.seed, self.start]))
        self._view.frame.layout.height, self._view.caption.layout.display = HEIGHT, "none"
        self._failed = theme.made(widgets.HTML, "fl-error")
        style = theme.made(widgets.HTML, "fl-style", value=f"<style>{theme.STYLE}</style>")
        super().__init__([style, self._failed, self._view.box, theme.made(Chores, "fl-style")])
        self.add_class("fl-root").add_class("fl-live").add_class("fl-plane")
        self.set(alpha=alpha, seed=seed, start=start)
        for widget in (self.alpha, self.seed, self.start):
            widget.observe(lambda _: self._draw(), "value")
        self._view.frame.observe(lambda _: self._resized(), "size")
        self._draw()

    def set(self, **values: Any) -> None:
        """Give controls a value: alpha, seed, start. UsageError for other names and values."""
        for name, value in values.items():
            put(getattr(self, choose("control", name, ("alpha", "seed", "start"))), name, value)

    @property
    def toy(self) -> Toy:
        """The toy at the controls' setting."""
        return toy_at(float(f"{self.alpha.value:.2g}"), self.seed.value, self.start.value)

    @property
    def picture(self) -> Picture:
        """What is shown."""
        return self._view.picture

    @property
    def sentence(self) -> str:
        return self.picture.sentence

    @property
    def inch(self) -> float:
        """Pixels of an inch in the frame as it is now."""
        return min(max(self._view.frame.size[0] / WIDE, LEAST), MOST)

    @property
    def inches(self) -> tuple[float, float]:
        """Size of the picture that fills the frame as it is now."""
        width, height = (pixels / self.inch for pixels in self._view.frame.size)
        return (width, height) if width and height else PAGE

    def _resized(self) -> None:
        """The frame has another width: give it the height that the squares need there."""
        width = self._view.frame.size[0] / self.inch
        self._view.frame.layout.height = f"{tallness(COUNT, width) * self.inch:.0f}px"
        self._draw()

    def _draw(self) -> None:
        try:
            with sized(self.inches):
                self._view.show(picture(self.toy), "")
            self._failed.value = self.error = ""
        except Exception as error:  # a notebook shows none of a callback's
            self.error = traceback.format_exc()
            self._failed.value = f'<p role="alert">{html.escape(str(error))}</p>'

    def still(self) -> Picture:
        """The squares as they are now, in the size of a page."""
        with sized(PAGE):
            return picture(self.toy)

    def __repr__(self) -> str:
        return self.sentence


def show(*, alpha: float = 0.1, seed: int = 0, start: str = "common") -> PlanePanel:
    """The panel. alpha, seed, start ("common" or "own"): where the controls stand at first. UsageError for other
    values."""
    return PlanePanel(alpha, seed, start)
