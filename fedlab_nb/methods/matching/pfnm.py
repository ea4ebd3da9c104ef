"""PFNM: networks with one hidden layer, matched without fixing how many neurons the result has.

Yurochkin et al., ICML 2019. A neuron is one vector v = [incoming weights, bias, outgoing weights]. Client k's neurons
are noisy copies of global ones: v ~ N(θ_i, σ²), θ_i ~ N(0, σ0²), and an Indian buffet process with mass γ says which
global neurons a client has. The precision of the outgoing weight of class c is s_kc / σ², with s_kc client k's share
of the class: a client that has no image of a class does not speak for it.

One client after the other, given what all others are matched with, each of its neurons goes to a global neuron of its
own, or becomes a new one (the paper's Eq. 8; both sides doubled). With p_k a neuron's precisions, S_i = Σ p v and
Q_i = Σ p over the neurons that the others have put into i, m_i how many these are, and M clients:

    old i:  Σ_d [(S_i + p v)² / (1/σ0² + Q_i + p) - S_i² / (1/σ0² + Q_i)] + 2 log(m_i / (M - m_i))
    new, the r-th of this client:  Σ_d (p v)² / (1/σ0² + p) + 2 log(γ / M) - 2 log r

In the end θ_i = S_i / (1/σ0² + Q_i), and the same for the biases of the classes. γ → ∞ matches nothing: a network of
all neurons, an ensemble that is weighed by the class shares. γ → 0 makes no more neurons than the largest client has.
The authors' code takes the logarithm of m/(M - m) once, and m is at most 10 there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .rules import assigned_to


@dataclass(frozen=True, eq=False)
class Grown:
    """`neurons [J, D]`: θ;   members: for each client `[L_k]`, the global neuron of each of its own."""

    neurons: Tensor
    members: list[Tensor]


def grow(vectors: Sequence[Tensor], precisions: Sequence[Tensor], *, spread: float, mass: float, sweeps: int) -> Grown:
    """Match neurons `vectors` (for each client `[L_k, D]`, float64) with `precisions` (for each client `[D]`).

    `spread`: σ0;   `mass`: γ. The largest client comes first; then `sweeps` times every client is matched anew.
    """
    prior, clients = 1 / spread**2, len(vectors)
    members: list[Tensor] = [torch.empty(0, dtype=torch.long) for _ in vectors]
    order = sorted(range(clients), key=lambda k: -len(vectors[k]))
    for k in order * (1 + sweeps):
        members[k] = members[k][:0]
        _close_gaps(members)
        total, weight, count = _sums(vectors, precisions, members)
        p, pull = precisions[k], precisions[k] * vectors[k]
        old = ((total[None] + pull[:, None]).square() / (prior + weight + p)[None]).sum(2)
        old = old - (total.square() / (prior + weight)).sum(1) + 2 * (count / (clients - count)).log()
        new = (pull.square() / (prior + p)).sum(1, keepdim=True) + 2 * torch.tensor(mass / clients).double().log()
        ranks = torch.arange(1, len(pull) + 1, dtype=torch.float64)
        chosen = assigned_to(torch.cat([old, new - 2 * ranks.log()], 1))
        fresh = chosen >= len(count)  # new ones: which is the first is all the same, so they keep the client's order
        chosen[fresh] = len(count) + torch.arange(int(fresh.sum()))
        members[k] = chosen
    _close_gaps(members)
    total, weight, _ = _sums(vectors, precisions, members)
    return Grown(total / (prior + weight), members)


def _sums(
    vectors: Sequence[Tensor], precisions: Sequence[Tensor], members: Sequence[Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """S and Q `[J, D]`, and m `[J]`, of the neurons that are matched so far."""
    there = max((int(own.max()) + 1 for own in members if len(own)), default=0)
    total = vectors[0].new_zeros(there, vectors[0].shape[1])
    weight, count = torch.zeros_like(total), total.new_zeros(there)
    for v, p, own in zip(vectors, precisions, members, strict=True):
        if len(own):
            total[own] += p * v
            weight[own] += p
            count[own] += 1
    return total, weight, count


def _close_gaps(members: list[Tensor]) -> None:
    """Number the global neurons that somebody has without gaps, in place."""
    seen = torch.cat(members).unique()
    for k, own in enumerate(members):
        members[k] = torch.searchsorted(seen, own)
