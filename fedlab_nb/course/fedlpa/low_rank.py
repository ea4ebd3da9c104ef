"""One cell of lesson 07: low-rank changes of ten clients, averaged in three ways; and what they cost."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from ...data import federate
from ...plots.words import data_size, percent
from ...rng import generator
from ...studies.lesson_runs import ALPHA, CLIENTS, DATASET
from ...training.optim import Adam
from ..kit import Card, worked

# ------------------------------------------------------------------------------------------------------------- low rank
# Low-rank changes of a layer (LoRA), summed over clients: the mean of products is not the product of means.
#
# Client k freezes the layer W `[o, i]` and trains ΔW_k = B_k A_k, A_k `[r, i]` from a common random start, B_k `[o, r]`
# from 0, and sends 4 r (o + i) bytes instead of 4 o i. Averaging A and B apart gives (Σ w_k B_k)(Σ w_k A_k), which is
# not Σ w_k B_k A_k. Two ways to the exact sum:
# - stack them, rank M r: [w_1 B_1 | w_2 B_2 | …] [A_1; A_2; …] (FLoRA, Wang et al., NeurIPS 2024, arXiv 2409.05976);
# - add what is missing to W (FedEx-LoRA, Singhal et al., ACL 2025, arXiv 2410.09432).
# With one client, or with one common A (FFA-LoRA), both ways are the same as averaging apart.
#
# Parts of a lesson, not a method: in one round, on networks trained from scratch, low-rank changes gained nothing.


LowRank = tuple[Tensor, Tensor]  # a change of a layer, b a: b `[o, r]`, a `[r, i]`


def change(b: Tensor, a: Tensor) -> Tensor:
    """ΔW `[o, i]`."""
    return b @ a


def averaged(clients: Sequence[LowRank], weights: Sequence[float]) -> LowRank:
    """Both factors averaged apart, rank r: not the average of the changes."""
    b, a = (sum(w * factor for w, factor in zip(weights, own, strict=True)) for own in zip(*clients, strict=True))
    return b, a


def stacked(clients: Sequence[LowRank], weights: Sequence[float]) -> LowRank:
    """The average of the changes, exactly, as one change of rank M r."""
    b, a = zip(*clients, strict=True)
    return torch.cat([w * factor for w, factor in zip(weights, b, strict=True)], 1), torch.cat(a)


def missing(clients: Sequence[LowRank], weights: Sequence[float]) -> Tensor:
    """What averaging apart leaves out, `[o, i]`: added to the frozen W it makes the average exact."""
    return change(*stacked(clients, weights)) - change(*averaged(clients, weights))


def fitted(w: Tensor, x: Tensor, y: Tensor, rank: int, stream: torch.Generator, steps: int = 60) -> LowRank:
    """A client's change of a linear classifier `w [C, D]` on its samples `x [n, D]`, `y [n]`, by Adam.

    `stream` draws A's start: the same one at every client.
    """
    a = torch.randn(rank, x.shape[1], generator=stream, dtype=torch.float64).to(x) / x.shape[1] ** 0.5
    own = [torch.zeros(len(w), rank).to(x), a]
    optimizer = Adam(own, 0.02)
    for _ in range(steps):
        b, a = (factor.detach().requires_grad_() for factor in own)
        loss = F.cross_entropy(x @ (w + change(b, a)).T, y)
        optimizer.step(torch.autograd.grad(loss, [b, a]))
    return own[0], own[1]


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
        shards = federation.shards
        own = [fitted(start, x[rows], y[rows], rank, generator(seed, "low rank", rank)) for rows in shards]
        exact, lacking = change(*stacked(own, weights)), missing(own, weights)
        rest = change(*averaged(own, weights)) + lacking - exact
        off, mended = (percent(float(part.norm() / exact.norm())) for part in (lacking, rest))
        lines.append(
            f"rank {rank}: factors averaged apart are {off} off, with what is missing added {mended};"
            f" stacked they are exact and have rank {rank * len(own)}"
        )
    full = sum(4 * o * i for o, i in LAYERS)
    cost = ", ".join(f"{data_size(bytes_of(rank))} with rank {rank}" for rank in RANKS)
    lines.append(f"One client's weights of the classroom's network: {data_size(full)}; their low-rank change: {cost}.")
    return worked(*lines, f"α = {alpha:g}, {CLIENTS} clients, seed {seed}.")


def bytes_of(rank: int) -> int:
    """One client's factors of all layers, 4 r (o + i) each."""
    return sum(4 * rank * (o + i) for o, i in LAYERS)
