"""The toy as a picture: which squares there are, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from ...errors import choose
from ...plots import Picture
from ...plots.plane import Plane, Square, plane, tallness
from ...plots.words import listed, percent, plural
from .toy import CENTRES, CLASSES, CLIENTS, SPREAD, Predictor, Toy, islands

WIDE = 11.5  # inches across
EDGE, GRID = 3.2, 60  # the squares reach from -EDGE to EDGE, with GRID places across and up
# What can be shown: the title of its square, or of its squares.
VIEWS = {
    "clients": "Client {k}",
    "weights": "Average of weights",
    "predictions": "Average of predictions",
}
SHOWN = ("clients", "weights", "predictions")


@lru_cache(1)
def grid() -> Tensor:
    """The places where the networks are asked, `[GRID², 2]`, row by row from below."""
    at = torch.linspace(-EDGE, EDGE, GRID)
    y, x = torch.meshgrid(at, at, indexing="ij")
    return torch.stack([x, y], -1).flatten(0, 1)


def on_grid(predictor: Predictor) -> np.ndarray:
    """Its scores `[GRID, GRID, C]`."""
    return predictor(grid()).unflatten(0, (GRID, GRID)).numpy()


def picture(toy: Toy, views: Sequence[str] = SHOWN) -> Picture:
    """The squares of `views` (names of VIEWS; UsageError for another one), with their words and numbers."""
    squares = [square for view in views for square in squares_of(toy, view)]
    start = f"{toy.start} start{'s' * (toy.start == 'own')}"
    setting = f"α = {toy.alpha:g}, seed {toy.seed}, {start}; {plural(CLIENTS, 'client')}, classes {listed(CLASSES)}"
    table = [row for square in squares for row in rows(square)]
    return plane(squares, about(), setting=setting, sentence=sentence(toy, squares), table=table)


def handout(views: Sequence[str]) -> tuple[float, float]:
    """Inches of the picture where no frame says how large it is."""
    return WIDE, tallness(count(views), WIDE)


def count(views: Sequence[str]) -> int:
    """How many squares there are."""
    return sum(CLIENTS if view == "clients" else 1 for view in views)


def about() -> Plane:
    """Circles of two standard deviations round the islands."""
    of_class = [c for c, places in enumerate(CENTRES) for _ in places]
    circles = [(*at, 2 * SPREAD, c) for at, c in zip(islands().tolist(), of_class, strict=True)]
    return Plane(CLASSES, EDGE, circles)


# ------------------------------------------------------------------------------------------------------- the squares
def client(toy: Toy, k: int) -> Square:
    """With the points that it trains on."""
    x, y = toy.shards[k]
    counts = [f"{count} {name}" for name, count in zip(CLASSES, in_classes(y), strict=True) if count]
    return predicted(
        toy, VIEWS["clients"].format(k=k), toy.client(k), f"has {listed(counts)}", points=x.numpy(), labels=y.numpy(),
        client=k,
    )  # fmt: skip


def in_classes(labels: Tensor) -> list[int]:
    """How many labels there are of each class, `[C]`."""
    return torch.bincount(labels, minlength=len(CLASSES)).tolist()


def predicted(toy: Toy, title: str, predictor: Predictor, more: str = "", **of: object) -> Square:
    right = f"{percent(toy.accuracy(predictor))} right"
    return Square(title, right, "\n".join(filter(None, (title, f"{right} of the test points", more))),
                  on_grid(predictor), **of)  # fmt: skip


def squares_of(toy: Toy, view: str) -> list[Square]:
    """The squares of one view (of VIEWS; UsageError for another one)."""
    if choose("view", view, VIEWS) == "clients":
        return [client(toy, k) for k in range(CLIENTS)]
    return [predicted(toy, VIEWS[view], getattr(toy, view))]


# --------------------------------------------------------------------------------------------------------- in words
def rows(square: Square) -> list[dict[str, object]]:
    """The square's part of the table."""
    row: dict[str, object] = {"picture": square.title, "right": square.foot.removesuffix(" right")}
    if square.client is not None:
        counts = in_classes(torch.as_tensor(square.labels))
        row |= {f"points {name}": count for name, count in zip(CLASSES, counts, strict=True)}
    return [row]


def inside(title: str) -> str:
    """A title within a sentence."""
    return title[0].lower() + title[1:]


def sentence(toy: Toy, squares: Sequence[Square]) -> str:
    """Who holds how many classes, and how often each predictor is right."""
    held = listed([str(sum(map(bool, in_classes(y)))) for _, y in toy.shards])
    right = [f"{inside(s.title)} {s.foot.removesuffix(' right')}" for s in squares if s.client is None]
    own = f"mean client {percent(sum(toy.accuracy(toy.client(k)) for k in range(CLIENTS)) / CLIENTS)}"
    return (
        f"α = {toy.alpha:g}: clients {listed(list(map(str, range(CLIENTS))))} train on points of {held} classes. "
        f"Right on the test points: {listed([own, *right])} (guessing: {percent(1 / len(CLASSES))})."
    )
