"""Noisy votes and what they promise: Laplace noise on counts, and the ε that T noisy votes have spent (PATE).

Papernot et al., *Semi-supervised Knowledge Transfer for Deep Learning from Private Training Data*, ICLR 2017; for
students of a federation Li, He, Song, *Practical One-Shot Federated Learning for Cross-Silo Setting* (FedKT), 2021.

A query counts votes n_c and answers argmax_c n_c + Lap(1/γ). Where one neighbour (a party, or a sample) moves at most
v votes from a class to another, a query is ε_0-differentially private with ε_0 = 2 v γ. After T queries:

    simple composition   ε = T ε_0, with δ = 0
    moments              ε = min over l = 1, 2, … of (Σ_queries α(l) + ln(1/δ)) / l

where α(l) bounds the logarithm of the l-th moment of the privacy loss of one query: ε_0² l (l+1) / 2 for any votes
(Bun and Steinke 2016; for v = 1 it is PATE's 2 γ² l (l+1)), never more than l ε_0. Where the votes agree, the noise
hardly ever changes the answer, and α is far smaller (PATE, theorem 3). That bound depends on the votes, so this ε is
itself not private: it is a measurement, not a promise.
"""

import math

import torch
from torch import Tensor

ORDERS = torch.cat([torch.arange(1.0, 257), 2.0 ** torch.arange(9, 21)]).double()  # l that are tried


def laplace(shape: tuple[int, ...], gamma: float, stream: torch.Generator) -> Tensor:
    """Lap(1/γ) noise, float64 on the CPU: the difference of two exponential draws."""
    draws = torch.empty(2, *shape, dtype=torch.float64).exponential_(generator=stream)
    return (draws[0] - draws[1]) / gamma


def simple_epsilon(per_query: float, queries: int) -> float:
    """ε of `queries` answers of ε_0 = `per_query` each, by simple composition; δ is 0."""
    return per_query * queries


def moments_epsilon(per_query: float, queries: int, delta: float) -> float:
    """ε at `delta` of `queries` answers of ε_0 = `per_query` each, whatever the votes were; at most the simple one."""
    return _least_epsilon(queries * any_votes(per_query), delta, simple_epsilon(per_query, queries))


def measured_epsilon(votes: Tensor, gamma: float, per_query: float, delta: float) -> float:
    """ε at `delta` of these very `votes [T, C]` (counts without noise): small where they agree. It is not private."""
    whole = these_votes(change_bound(votes, gamma), per_query).sum(0)
    return _least_epsilon(whole, delta, simple_epsilon(per_query, len(votes)))


def any_votes(per_query: float, orders: Tensor = ORDERS) -> Tensor:
    """α(l) of one query for whatever votes, `[L]`."""
    return torch.minimum(per_query**2 * orders * (orders + 1) / 2, per_query * orders)


def change_bound(votes: Tensor, gamma: float) -> Tensor:
    """q `[T]`: at most so probable is it that noise gives another answer than the most voted class (PATE, lemma 4)."""
    votes = votes.double().cpu()
    top, first = votes.max(1, keepdim=True)
    behind = gamma * (top - votes)
    terms = (2 + behind) / (4 * behind.exp())
    return (terms.sum(1) - terms.gather(1, first)[:, 0]).clamp(max=1.0)


def these_votes(q: Tensor, per_query: float, orders: Tensor = ORDERS) -> Tensor:
    """α(l) `[T, L]` of queries whose answer changes with probability q `[T]` at most (PATE, theorem 3)."""
    q = q[:, None]
    grown = math.exp(min(per_query, 700.0))
    holds = q < (grown - 1) / (grown * grown - 1) if grown > 1 else torch.zeros_like(q, dtype=torch.bool)
    small = torch.where(holds, q, 0.0)
    stays = (1 - small).log() + orders * ((1 - small).log() - (1 - grown * small).log())
    alpha = torch.logaddexp(stays, small.log() + per_query * orders)
    return torch.where(holds, torch.minimum(alpha, any_votes(per_query, orders)), any_votes(per_query, orders))


def _least_epsilon(moments: Tensor, delta: float, simple: float) -> float:
    return min(float(((moments + math.log(1 / delta)) / ORDERS).min()), simple)
