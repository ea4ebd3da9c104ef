"""One cell of lesson 07: low-rank changes of ten clients, averaged in three ways; and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, eq=False)
class LowRank:
    """A change of a layer: b `[o, r]` times a `[r, i]`."""

    b: Tensor
    a: Tensor

    @property
    def change(self) -> Tensor:
        """ΔW `[o, i]`."""
        return self.b @ self.a

    @property
    def bytes(self) -> int:
        """What a message with both factors takes."""
        return sum(t.numel() * t.element_size() for t in (self.b, self.a))


def averaged(clients: Sequence[LowRank], weights: Sequence[float]) -> LowRank:
    """Both factors averaged apart, rank r: not the average of the changes."""
    b, a = (sum(w * getattr(c, n) for w, c in zip(weights, clients, strict=True)) for n in ("b", "a"))
    return LowRank(b, a)


def stacked(clients: Sequence[LowRank], weights: Sequence[float]) -> LowRank:
    """The average of the changes, exactly, as one change of rank M r."""
    b = torch.cat([w * client.b for w, client in zip(weights, clients, strict=True)], 1)
    return LowRank(b, torch.cat([client.a for client in clients]))


def missing(clients: Sequence[LowRank], weights: Sequence[float]) -> Tensor:
    """What averaging apart leaves out, `[o, i]`: added to the frozen W it makes the average exact."""
    return stacked(clients, weights).change - averaged(clients, weights).change


def fitted(
    w: Tensor, x: Tensor, y: Tensor, rank: int, *, stream: torch.Generator, steps: int = 60, lr: float = 0.02
) -> LowRank:
    """A client's change of a linear classifier `w [C, D]` on its samples `x [n, D]`, `y [n]`, by Adam.

    `stream` draws A's start: the same one at every client.
    """
    a = torch.randn(rank, x.shape[1], generator=stream, dtype=torch.float64).to(x) / x.shape[1] ** 0.5
    own = LowRank(torch.zeros(len(w), rank).to(x), a)
    optimizer = Adam([own.b, own.a], lr)
    for _ in range(steps):
        b, a = own.b.detach().requires_grad_(), own.a.detach().requires_grad_()
        loss = F.cross_entropy(x @ (w + b @ a).T, y)
        optimizer.step(torch.autograd.grad(loss, [b, a]))
    return own


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
