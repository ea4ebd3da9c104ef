"""Which classes a client holds, read off FedLPA's upload: the probe that refutes "no label information is sent".

The last layer's B is the mean of (p - y)(p - y)', so its diagonal is `E[(p_c - y_c)^2]`, by class. For a class that a
client never saw this is a small probability squared; for one that it saw it is not. Damping adds the same number to
every entry and hides nothing of the order. The guess is made by an attacker who knows how many classes a client holds.
"""

import torch
from torch import Tensor


def classes_read_off(diagonal: Tensor, count: int) -> list[int]:
    """The `count` classes with the largest entries of `diagonal [C]` (of the last B), the attacker's guess, sorted."""
    return sorted(diagonal.topk(count).indices.tolist())


def label_leak(diagonals: Tensor, counts: Tensor) -> dict[str, float]:
    """How well the guess does, from what M clients sent `[M, C]` and their true class counts `[M, C]`.

    `precision`: mean over the clients of the share of right guesses, where the attacker guesses as many classes as the
    client has; `chance`: the same for a blind guess, mean share of classes held; `rank_correlation`: mean Spearman
    correlation of diagonal and counts (NaN-free: 0 where either is constant).
    """
    hits, correlations = [], []
    for diagonal, own in zip(diagonals, counts, strict=True):
        held = (own > 0).nonzero().flatten().tolist()
        hits.append(len(set(classes_read_off(diagonal, len(held))) & set(held)) / len(held))
        correlations.append(_correlation(ranks(diagonal), ranks(own)))
    return {
        "precision": sum(hits) / len(hits),
        "chance": float((counts > 0).double().mean()),
        "rank_correlation": sum(correlations) / len(correlations),
    }


def ranks(values: Tensor) -> Tensor:
    """Ranks `[C]` from 1, equal values sharing the mean of theirs."""
    less = (values[:, None] > values).sum(1)
    equal = (values[:, None] == values).sum(1)
    return less + (equal + 1) / 2.0


def _correlation(one: Tensor, other: Tensor) -> float:
    one, other = one.double() - one.double().mean(), other.double() - other.double().mean()
    norm = one.norm() * other.norm()
    return float(torch.dot(one, other) / norm) if norm > 0 else 0.0
