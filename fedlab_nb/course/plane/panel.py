"""The toy as a picture, a square for each client and for each of the two averages; and its panel: α, seed and start.
Each move of the slider trains the clients and draws the squares anew."""

from __future__ import annotations

import html
import traceback
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import ipywidgets as widgets
import torch
from torch import Tensor

from ...errors import choose
from ...panels import saved, theme
from ...panels.controls import alpha_slider, put, seed_field
from ...panels.lab_view import LabView
from ...panels.views import LEAST, MOST, Chores, View
from ...plots import Picture
from ...plots.plane import Plane, Square, plane, tallness
from ...plots.style import sized
from ...plots.words import letter, listed, percent, plural
from .toy import CENTRES, CLASSES, CLIENTS, SPREAD, STARTS, Predictor, Toy, islands, toy_at

EDGE, GRID = 3.2, 60  # the squares reach from -EDGE to EDGE, with GRID places across and up
COUNT, WIDE = CLIENTS + 2, 11.5  # squares, inches across all of them
PAGE = (WIDE, tallness(COUNT, WIDE))  # inches of the picture where no frame says how large it is
HEIGHT = "270px"  # until the width is known
WORDS = {"common": "common start", "own": "each its own start"}


@lru_cache(1)
def grid() -> Tensor:
    """The places where the networks are asked, `[GRID², 2]`, row by row from below."""
    at = torch.linspace(-EDGE, EDGE, GRID)
    y, x = torch.meshgrid(at, at, indexing="ij")
    return torch.stack([x, y], -1).flatten(0, 1)


def picture(toy: Toy) -> Picture:
    """All squares, with their words and numbers."""
    averages = {"Average of weights": toy.weights, "Average of predictions": toy.predictions}
    clients, fused = (
        [client(toy, k) for k in range(CLIENTS)],
        [square(toy, *each) for each in averages.items()],
    )
    start = f"{toy.start} start{'s' * (toy.start == 'own')}"
    setting = f"α = {toy.alpha:g}, seed {toy.seed}, {start}; {plural(CLIENTS, 'client')}, classes {listed(CLASSES)}"
    counts = [
        {f"points {name}": n for name, n in zip(CLASSES, toy.counts(k), strict=True)}
        for k in range(CLIENTS)
    ]
    rows = zip([*clients, *fused], [*counts, {}, {}], strict=True)
    table = [
        {"picture": s.title, "right": s.foot.removesuffix(" right"), **held} for s, held in rows
    ]
    of_class = [c for c, places in enumerate(CENTRES) for _ in places]
    circles = [(*at, 2 * SPREAD, c) for at, c in zip(islands().tolist(), of_class, strict=True)]
    about = Plane(CLASSES, EDGE, circles)  # circles of two standard deviations round the islands
    return plane(
        [*clients, *fused], about, setting=setting, sentence=sentence(toy, fused), table=table
    )


def client(toy: Toy, k: int) -> Square:
    """With the points that it trains on."""
    x, y = toy.shards[k]
    held = listed(
        [f"{count} {name}" for name, count in zip(CLASSES, toy.counts(k), strict=True) if count]
    )
    dots = {"points": x.numpy(), "labels": y.numpy(), "client": k}
    return square(toy, f"Client {letter(k)}", toy.client(k), f"\nhas {held}", **dots)


def square(toy: Toy, title: str, predictor: Predictor, more: str = "", **dots: object) -> Square:
    """What a predictor says at each place of the grid."""
    right, scores = (
        f"{percent(toy.accuracy(predictor))} right",
        predictor(grid()).unflatten(0, (GRID, GRID)),
    )
    return Square(
        title, right, f"{title}\n{right} of the test points{more}", scores.numpy(), **dots
    )


def sentence(toy: Toy, fused: Sequence[Square]) -> str:
    """Who holds how many classes, and how often each predictor is right."""
    held = listed([str(sum(map(bool, toy.counts(k)))) for k in range(CLIENTS)])
    own = (
        f"mean client {percent(sum(toy.accuracy(toy.client(k)) for k in range(CLIENTS)) / CLIENTS)}"
    )
    right = [f"{s.title[0].lower()}{s.title[1:]} {s.foot.removesuffix(' right')}" for s in fused]
    return (
        f"α = {toy.alpha:g}: clients {listed(list(map(letter, range(CLIENTS))))} train on points of {held} classes. "
        f"Right on the test points: {listed([own, *right])} (guessing: {percent(1 / len(CLASSES))})."
    )


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
