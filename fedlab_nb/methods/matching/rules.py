"""Three rules that find the order of one network's units in which they fit those of another: orders `[units]` by group.

Each is a linear assignment problem, or one for each layer: of all orders of the units, that with the largest sum of
scores. It is solved exactly on the CPU. The order as it stands is kept unless another one is truly better, so that ties
(units that never answer) move nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .wiring import State, Wiring, reordered, rows

BETTER = 1e-9  # of the size of the scores: less is rounding
Orders = list[Tensor]


def assigned(scores: Tensor, standing: Tensor | None = None) -> Tensor:
    """The order p `[n]` with the largest Σ_i scores[i, p(i)], of scores `[n, n]`; `standing` (default: 0, 1, …) where
    no other order is better."""
    scores = scores.double().cpu()
    standing = torch.arange(len(scores)) if standing is None else standing
    best = assigned_to(scores)
    gain = _total(scores, best) - _total(scores, standing)
    return best if gain > BETTER * scores.abs().max() else standing


def assigned_to(scores: Tensor) -> Tensor:
    """For each row of scores `[n, m]`, n ≤ m, a column of its own `[n]`, with the largest sum of scores."""
    from scipy.optimize import linear_sum_assignment

    return torch.from_numpy(linear_sum_assignment(scores.double().cpu().numpy(), maximize=True)[1])


def greedy(reference: State, state: State, wiring: Wiring) -> Orders:
    """OT-Fusion (Singh & Jaggi 2020) for equal widths and uniform mass, where the transport is an assignment.

    Layer after layer: the columns follow the orders so far, then units are matched by the Euclidean distance of the
    weights that come in, min_P Σ_i ‖U_ref[i] - U[P(i)]‖.
    """
    orders, done = wiring.identity(), set()
    for group in range(len(wiring.units)):
        ours, theirs = [], []
        for name in wiring.touched(group):
            axes = wiring.axes[name]
            if axes[-1] == (0, group) and all(g in done for _, g in axes[:-1]):
                ours.append(rows(reference[name], 0, wiring.units[group]))
                theirs.append(rows(reordered(state[name], wiring, name, orders), 0, wiring.units[group]))
        apart = torch.cdist(torch.cat(ours, 1), torch.cat(theirs, 1), compute_mode="donot_use_mm_for_euclid_dist")
        orders[group] = assigned(-apart)
        done.add(group)
    return orders


def rebasin(
    reference: State,
    state: State,
    wiring: Wiring,
    stream: torch.Generator,
    start: Orders | None = None,
    heard: Callable[[float], None] = lambda value: None,
) -> Orders:
    """Git Re-Basin's weight matching (Ainsworth et al. 2023): coordinate descent over the groups, from `start`.

    For one group at a time, S = Σ over its tensors of the inner products of our units' numbers with theirs, those of
    all other groups in the orders so far, and P = argmax tr(PᵀS). Groups come in random order until none can gain.
    `heard` gets the objective, Σ ⟨reference, state in these orders⟩, at the start and after each step.
    """
    orders = list(start or wiring.identity())
    value = agreement(reference, state, wiring, orders)
    heard(value)
    gained = True
    while gained:
        gained = False
        for group in torch.randperm(len(orders), generator=stream).tolist():
            tried = list(orders)
            tried[group] = assigned(_products(reference, state, wiring, orders, group), orders[group])
            if torch.equal(tried[group], orders[group]):
                continue
            now = agreement(reference, state, wiring, tried)
            if now > value + BETTER * (1 + abs(value)):
                orders, value, gained = tried, now, True
                heard(value)
    return orders


def agreement(reference: State, state: State, wiring: Wiring, orders: Sequence[Tensor]) -> float:
    """Σ ⟨reference, state in `orders`⟩ over all numbers that belong to units: what `rebasin` raises.

    The squared distance of the two networks is a constant minus twice this.
    """
    names = [name for name in wiring.axes if name in wiring.learnt]
    return float(sum((reference[n] * reordered(state[n], wiring, n, orders)).sum() for n in names))


def by_activations(correlations: Sequence[Tensor]) -> Orders:
    """The orders that fit activations best, from correlations `[units, units]` of ours with theirs, group by group."""
    return [assigned(scores) for scores in correlations]


def correlation(ours: Tensor, theirs: Tensor) -> Tensor:
    """`[units, units]` of activations `[samples, units]`; 0 for units that always answer the same."""
    ours, theirs = (_standardised(z.double()) for z in (ours, theirs))
    return ours.T @ theirs


def _standardised(z: Tensor) -> Tensor:
    z = z - z.mean(0)
    sizes = z.norm(dim=0)
    return torch.where(sizes > 0, z / sizes.clamp_min(1e-300), torch.zeros_like(z))


def _products(reference: State, state: State, wiring: Wiring, orders: Orders, group: int) -> Tensor:
    """`[units, units]`: inner products of our units' numbers with theirs, theirs in no order of this group's own."""
    units = wiring.units[group]
    products: Any = 0.0
    others = [torch.arange(len(o)) if g == group else o for g, o in enumerate(orders)]
    for name in wiring.touched(group):
        tensor = reordered(state[name], wiring, name, others)
        for dim, own in wiring.axes[name]:
            if own == group:
                products = products + rows(reference[name], dim, units) @ rows(tensor, dim, units).T
    return products


def _total(scores: Tensor, order: Tensor) -> float:
    return float(scores[torch.arange(len(order)), order].sum())
