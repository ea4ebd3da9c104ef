"""One cell of lesson 07: low-rank changes of ten clients, averaged in three ways; and what they cost."""

import torch

from ...data import federate
from ...methods.parts.low_rank import averaged, fitted, missing, stacked
from ...plots.words import data_size, percent
from ...rng import generator
from ...study.lesson_runs import ALPHA, CLIENTS, DATASET
from .view import Card, worked

RANKS = (1, 2, 4)
LAYERS = ((64, 64), (32, 64), (10, 32))  # [o, i] of the classroom's network


def low_rank(alpha: float = ALPHA, seed: int = 0) -> Card:
    """The error of averaging both factors apart, as a share of the exact average, by rank: a linear classifier of
    pixels, frozen at zero, that each client changes on its own digits."""
    federation = federate(DATASET, alpha=alpha, clients=CLIENTS, seed=seed)
    x, y = federation.dataset.x_train.flatten(1), federation.dataset.y_train
    weights = [len(rows) / len(y) for rows in federation.shards]
    lines, start = [], torch.zeros(federation.classes, x.shape[1])
    for rank in RANKS:
        own = [
            fitted(start, x[rows], y[rows], rank, stream=generator(seed, "low rank", rank))
            for rows in federation.shards
        ]
        exact, apart = stacked(own, weights), averaged(own, weights)
        off = float(missing(own, weights).norm() / exact.change.norm())
        mended = float((apart.change + missing(own, weights) - exact.change).norm() / exact.change.norm())
        lines.append(
            f"rank {rank}: factors averaged apart are {percent(off)} off, with what is missing added {percent(mended)};"
            f" stacked they are exact and have rank {exact.b.shape[1]}"
        )
    full = sum(4 * o * i for o, i in LAYERS)
    cost = ", ".join(f"{data_size(bytes_of(rank))} with rank {rank}" for rank in RANKS)
    lines.append(f"One client's weights of the classroom's network: {data_size(full)}; their low-rank change: {cost}.")
    return worked(*lines, f"α = {alpha:g}, {CLIENTS} clients, seed {seed}.")


def bytes_of(rank: int) -> int:
    """One client's factors of all layers, 4 r (o + i) each."""
    return sum(4 * rank * (o + i) for o, i in LAYERS)
