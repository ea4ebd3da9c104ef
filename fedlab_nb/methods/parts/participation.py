"""Who takes part in a round, and on which samples: for papers that count chosen clients and SGD steps."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def chosen_clients(sizes: Sequence[int], m: int, stream: torch.Generator) -> list[int]:
    """m of the clients in ascending order, drawn without replacement in proportion to their `sizes`.

    All of them, without a draw, for m = 0 or m at least as many as there are.
    """
    if m == 0 or m >= len(sizes):
        return list(range(len(sizes)))
    weights = torch.tensor(sizes, dtype=torch.float64)
    return sorted(torch.multinomial(weights, m, generator=stream).tolist())


def cycled(x: Tensor, y: Tensor, count: int, stream: torch.Generator) -> tuple[Tensor, Tensor]:
    """`count` samples of a shard `(x [n, ...], y [n])`, in as many shuffled passes over it as that takes.

    With count = τ b, one epoch in batches of b is τ steps, however few samples a client has.
    """
    passes = [torch.randperm(len(y), generator=stream) for _ in range(-(-count // len(y)))]
    rows = torch.cat(passes)[:count].to(y.device)
    return x[rows], y[rows]
