"""The toy as a picture, a square for each client and for each of the two averages; and its panel:
α, seed and start. Each move of the slider trains the clients and draws the squares anew."""

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
from ...panels.controls import make_alpha_slider, make_seed_field, set_widget_value
from ...panels.lab_view import LabView
from ...panels.views import Chores, View
from ...plots import Picture
from ...plots.plane import Plane, Square, compute_height, draw_decision_regions
from ...plots.style import use_size
from ...plots.words import format_letters, join_words, percent, plural
from .toy import CENTRES, CLASSES, CLIENTS, SPREAD, STARTS, Predictor, Toy, place_islands, toy_at

EDGE = 3.2  # the squares reach from -EDGE to EDGE
GRID = 60  # places across and up
SQUARES = CLIENTS + 2
WIDTH = 11.5  # inches across all squares
LEAST_INCH = 72  # pixels
MOST_INCH = 125
PAGE = (
    WIDTH,
    compute_height(SQUARES, WIDTH),
)  # inches of the picture where no frame says how large it is
HEIGHT = "270px"  # until the width is known
WORDS = {"common": "common start", "own": "each its own start"}


@lru_cache(1)
def make_grid() -> Tensor:
    """The places where the networks are asked, `[GRID², 2]`, row by row from below."""
    coordinates = torch.linspace(-EDGE, EDGE, GRID)
    y, x = torch.meshgrid(coordinates, coordinates, indexing="ij")
    return torch.stack([x, y], -1).flatten(0, 1)


def picture(toy: Toy) -> Picture:
    """All squares, with their words and numbers."""
    clients = [make_client_square(toy, k) for k in range(CLIENTS)]
    averages = [
        make_square(toy, "Average of weights", toy.weights),
        make_square(toy, "Average of predictions", toy.predictions),
    ]
    table = []
    for k, client in enumerate(clients):
        counts = zip(CLASSES, toy.counts(k), strict=True)
        table.append(
            {**make_table_row(client), **{f"points {name}": count for name, count in counts}}
        )
    table += [make_table_row(average) for average in averages]
    start = "own starts" if toy.start == "own" else f"{toy.start} start"
    return draw_decision_regions(
        [*clients, *averages],
        Plane(CLASSES, EDGE, list_island_circles()),
        setting=f"α = {toy.alpha:g}, seed {toy.seed}, {start}; {plural(CLIENTS, 'client')}, "
        f"classes {join_words(CLASSES)}",
        sentence=describe_toy(toy, averages),
        table=table,
    )


def list_island_circles() -> list[tuple[float, float, float, int]]:
    """Circles of two standard deviations around the islands: x, y, radius and class."""
    labels = [c for c, places in enumerate(CENTRES) for _ in places]
    centres = place_islands().tolist()
    return [(x, y, 2 * SPREAD, label) for (x, y), label in zip(centres, labels, strict=True)]


def make_table_row(square: Square) -> dict[str, object]:
    """The square's row of the table."""
    return {"picture": square.title, "right": square.foot.removesuffix(" right")}


def make_client_square(toy: Toy, k: int) -> Square:
    """The square of a client, with the points that it trains on."""
    x, y = toy.shards[k]
    held = []
    for name, count in zip(CLASSES, toy.counts(k), strict=True):
        if count:
            held.append(f"{count} {name}")
    dots = {"points": x.numpy(), "labels": y.numpy(), "client": k}
    remark = f"\nhas {join_words(held)}"
    return make_square(toy, f"Client {format_letters(k)}", toy.client(k), remark, **dots)


def make_square(
    toy: Toy, title: str, predictor: Predictor, remark: str = "", **dots: object
) -> Square:
    """What a predictor says at each place of the grid."""
    right = f"{percent(toy.accuracy(predictor))} right"
    scores = predictor(make_grid()).unflatten(0, (GRID, GRID))
    words = f"{title}\n{right} of the test points{remark}"
    return Square(title, right, words, scores.numpy(), **dots)


def describe_toy(toy: Toy, averages: Sequence[Square]) -> str:
    """Who holds how many classes, and how often each predictor is right."""
    names = [format_letters(k) for k in range(CLIENTS)]
    classes = []
    accuracies = []
    for k in range(CLIENTS):
        classes.append(str(sum(count > 0 for count in toy.counts(k))))
        accuracies.append(toy.accuracy(toy.client(k)))
    right = [f"mean client {percent(sum(accuracies) / CLIENTS)}"]
    for average in averages:
        title = average.title[0].lower() + average.title[1:]
        right.append(f"{title} {average.foot.removesuffix(' right')}")
    return (
        f"α = {toy.alpha:g}: clients {join_words(names)} train on points of {join_words(classes)} classes. "
        f"Right on the test points: {join_words(right)} (guessing: {percent(1 / len(CLASSES))})."
    )


class PlaneView(LabView):
    """The row of squares, under the panel's controls."""

    name, title, ready = "plane", "Points in the plane", "always"

    def __init__(self, controls: Sequence[widgets.Widget]) -> None:
        self.controls = controls


class PlanePanel(saved.Saved):
    """What `show` makes. Public: `set`, `picture`, `sentence`, `error`, and the controls alpha,
    seed and start.
    """

    def __init__(self, alpha: float, seed: int, start: str) -> None:
        self.error = ""
        self.alpha = make_alpha_slider(width=360)
        self.seed = make_seed_field(width=120)
        self.start = theme.make_widget(
            widgets.ToggleButtons,
            "fl-start",
            options=[(WORDS[start], start) for start in STARTS],
            tooltips=[
                "All networks begin with the same weights",
                "Each network begins with random weights of its own",
            ],
        )
        self._view = View(PlaneView([self.alpha, self.seed, self.start]))
        self._view.frame.layout.height = HEIGHT
        self._view.caption.layout.display = "none"
        self._failed = theme.make_widget(widgets.HTML, "fl-error")
        style = theme.make_widget(widgets.HTML, "fl-style", value=f"<style>{theme.STYLE}</style>")
        super().__init__(
            [style, self._failed, self._view.box, theme.make_widget(Chores, "fl-style")]
        )
        self.add_class("fl-root").add_class("fl-live").add_class("fl-plane")
        self.set(alpha=alpha, seed=seed, start=start)
        for widget in (self.alpha, self.seed, self.start):
            widget.observe(lambda _: self._draw(), "value")
        self._view.frame.observe(lambda _: self._resized(), "size")
        self._draw()

    def set(self, **values: Any) -> None:
        """Give controls a value: alpha, seed, start. UsageError for other names and values."""
        for name, value in values.items():
            choose("control", name, ("alpha", "seed", "start"))
            set_widget_value(getattr(self, name), name, value)

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
        return min(max(self._view.frame.size[0] / WIDTH, LEAST_INCH), MOST_INCH)

    @property
    def inches(self) -> tuple[float, float]:
        """Size of the picture that fills the frame as it is now."""
        width, height = self._view.frame.size
        if not width or not height:
            return PAGE
        return width / self.inch, height / self.inch

    def _resized(self) -> None:
        """The frame has another width: give it the height that the squares need there."""
        width = self._view.frame.size[0] / self.inch
        self._view.frame.layout.height = f"{compute_height(SQUARES, width) * self.inch:.0f}px"
        self._draw()

    def _draw(self) -> None:
        try:
            with use_size(self.inches):
                self._view.show(picture(self.toy), "")
            self.error = ""
            self._failed.value = ""
        except Exception as error:  # a notebook shows no error of a callback
            self.error = traceback.format_exc()
            self._failed.value = f'<p role="alert">{html.escape(str(error))}</p>'

    def still(self) -> Picture:
        """The squares as they are now, in the size of a page."""
        with use_size(PAGE):
            return picture(self.toy)

    def __repr__(self) -> str:
        return self.sentence


def show(*, alpha: float = 0.1, seed: int = 0, start: str = "common") -> PlanePanel:
    """The panel. alpha, seed, start ("common" or "own"): where the controls stand at first.
    UsageError for other values."""
    return PlanePanel(alpha, seed, start)
