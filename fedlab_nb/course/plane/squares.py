"""The toy as a picture: a square for each client and for each of the two averages, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from ...plots import Picture
from ...plots.plane import Plane, Square, plane, tallness
from ...plots.words import letter, listed, percent, plural
from .toy import CENTRES, CLASSES, CLIENTS, SPREAD, Predictor, Toy, islands

EDGE, GRID = 3.2, 60  # the squares reach from -EDGE to EDGE, with GRID places across and up
COUNT, WIDE = CLIENTS + 2, 11.5  # squares, inches across all of them
PAGE = (WIDE, tallness(COUNT, WIDE))  # inches of the picture where no frame says how large it is


@lru_cache(1)
def grid() -> Tensor:
    """The places where the networks are asked, `[GRID², 2]`, row by row from below."""
    at = torch.linspace(-EDGE, EDGE, GRID)
    y, x = torch.meshgrid(at, at, indexing="ij")
    return torch.stack([x, y], -1).flatten(0, 1)


def picture(toy: Toy) -> Picture:
    """All squares, with their words and numbers."""
    averages = {"Average of weights": toy.weights, "Average of predictions": toy.predictions}
    clients, fused = [client(toy, k) for k in range(CLIENTS)], [square(toy, *each) for each in averages.items()]
    start = f"{toy.start} start{'s' * (toy.start == 'own')}"
    setting = f"α = {toy.alpha:g}, seed {toy.seed}, {start}; {plural(CLIENTS, 'client')}, classes {listed(CLASSES)}"
    counts = [{f"points {name}": n for name, n in zip(CLASSES, toy.counts(k), strict=True)} for k in range(CLIENTS)]
    rows = zip([*clients, *fused], [*counts, {}, {}], strict=True)
    table = [{"picture": s.title, "right": s.foot.removesuffix(" right"), **held} for s, held in rows]
    of_class = [c for c, places in enumerate(CENTRES) for _ in places]
    circles = [(*at, 2 * SPREAD, c) for at, c in zip(islands().tolist(), of_class, strict=True)]
    about = Plane(CLASSES, EDGE, circles)  # circles of two standard deviations round the islands
    return plane([*clients, *fused], about, setting=setting, sentence=sentence(toy, fused), table=table)


def client(toy: Toy, k: int) -> Square:
    """With the points that it trains on."""
    x, y = toy.shards[k]
    held = listed([f"{count} {name}" for name, count in zip(CLASSES, toy.counts(k), strict=True) if count])
    dots = {"points": x.numpy(), "labels": y.numpy(), "client": k}
    return square(toy, f"Client {letter(k)}", toy.client(k), f"\nhas {held}", **dots)


def square(toy: Toy, title: str, predictor: Predictor, more: str = "", **dots: object) -> Square:
    """What a predictor says at each place of the grid."""
    right, scores = f"{percent(toy.accuracy(predictor))} right", predictor(grid()).unflatten(0, (GRID, GRID))
    return Square(title, right, f"{title}\n{right} of the test points{more}", scores.numpy(), **dots)


def sentence(toy: Toy, fused: Sequence[Square]) -> str:
    """Who holds how many classes, and how often each predictor is right."""
    held = listed([str(sum(map(bool, toy.counts(k)))) for k in range(CLIENTS)])
    own = f"mean client {percent(sum(toy.accuracy(toy.client(k)) for k in range(CLIENTS)) / CLIENTS)}"
    right = [f"{s.title[0].lower()}{s.title[1:]} {s.foot.removesuffix(' right')}" for s in fused]
    return (
        f"α = {toy.alpha:g}: clients {listed(list(map(letter, range(CLIENTS))))} train on points of {held} classes. "
        f"Right on the test points: {listed([own, *right])} (guessing: {percent(1 / len(CLASSES))})."
    )
