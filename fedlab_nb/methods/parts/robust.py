"""Averages of M models that a few poisoned ones cannot drag anywhere. `assumed` (f): how many may be poisoned.

- `median`: the median of every number (Yin et al., ICML 2018);
- `trimmed`: the mean of every number without its f largest and f smallest values (Yin et al., ICML 2018);
- `krum`: the one model whose M - f - 2 nearest others are nearest in all (Blanchard et al., NeurIPS 2017).

They assume that honest clients look alike. Clients that hold different classes do not. On the digits (M = 10, seeds
0-9), with labels flipped at four clients: at alpha = 100 the mean has 57 ± 6 %, the median 80 ± 3 %, Krum 87 ± 1 %.
With nobody poisoned, at alpha = 0.1, the median has 13 ± 3 % where the mean has 26 ± 5 %.
None counts clients by their samples: a poisoned one could say that it has many.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ...errors import demand
from ..base import knob, weighted_mean

RULES = ("mean", "median", "trimmed", "krum")
State = Mapping[str, Tensor]


def average_knob() -> Any:
    """The field `average` of the methods that average models."""
    text = (
        "How models are averaged: mean, median or trimmed mean of every number, or Krum, which takes the one model "
        "with the nearest neighbours. A few poisoned clients can move the mean far, but not the others."
    )
    return knob("mean", "Average", text, options=RULES)


def assumed_knob() -> Any:
    """The field `assumed` beside it."""
    text = "How many poisoned clients the trimmed mean and Krum expect."
    return knob(2, "Poisoned clients assumed", text, symbol="f", low=0, high=1000)


def check_average(rule: str, assumed: int, clients: int, title: str) -> None:
    """UsageError if so few clients cannot be averaged by `rule`."""
    least = {"trimmed": 2 * assumed + 1, "krum": assumed + 3}.get(rule, 1)
    demand(
        clients >= least,
        f"{title} assumes {assumed} poisoned clients, so {rule} needs {least} clients or more, but there are "
        f"{clients}; set assumed to a smaller number, or choose another average.",
    )


def averaged(states: Sequence[State], weights: Sequence[float], rule: str, assumed: int) -> dict[str, Tensor]:
    """One model of `states` by `rule` (of RULES); `weights` are the mean's alone."""
    if rule == "mean":
        return weighted_mean(states, weights)
    if rule == "krum":
        return dict(states[krum(states, assumed)])
    cut = (len(states) - 1) // 2 if rule == "median" else assumed
    return {name: trimmed(torch.stack([state[name] for state in states]), cut) for name in states[0]}


def trimmed(values: Tensor, cut: int) -> Tensor:
    """Means over the first axis of `values [M, ...]` without the `cut` largest and smallest."""
    return values.sort(0).values[cut : len(values) - cut].mean(0)


def krum(states: Sequence[State], assumed: int) -> int:
    """The place of the model with the smallest sum of squared distances to its M - f - 2 nearest others."""
    flat = torch.stack([torch.cat([part.flatten().double() for part in state.values()]) for state in states])
    squares = torch.stack([(flat - row).square().sum(1) for row in flat])
    nearest = squares.sort(1).values[:, 1 : len(states) - assumed - 1]  # the first is the model itself
    return int(nearest.sum(1).argmin())
