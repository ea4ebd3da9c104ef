"""Three rules that find the order of one network's units in which they fit those of another: orders `[units]` by group.

Each is a linear assignment problem, or one for each layer: of all orders of the units, that with the largest sum of
scores. It is solved exactly on the CPU. The order as it stands is kept unless another one is truly better, so that ties
(units that never answer) move nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...models import Network, parameter_count
from ...models.state import copy_model
from ...training import ClientModels
from ..parts.averages import MergedModel, MergeReport
from .wiring import State, Wiring, reordered, rows, wiring_of

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
                theirs.append(
                    rows(reordered(state[name], wiring, name, orders), 0, wiring.units[group])
                )
        apart = torch.cdist(
            torch.cat(ours, 1), torch.cat(theirs, 1), compute_mode="donot_use_mm_for_euclid_dist"
        )
        orders[group] = assigned(-apart)
        done.add(group)
    return orders


def rebasin(
    reference: State,
    state: State,
    wiring: Wiring,
    stream: torch.Generator,
    start: Orders,
    note: Callable[[float], Any],
) -> Orders:
    """Git Re-Basin's weight matching (Ainsworth et al. 2023): coordinate descent over the groups, from `start`.

    For one group at a time, S = Σ over its tensors of the inner products of our units' numbers with theirs, those of
    all other groups in the orders so far, and P = argmax tr(PᵀS). Groups come in random order until none can gain.
    `note` gets the objective, Σ ⟨reference, state in these orders⟩, at the start and after each step.
    """
    orders = list(start)
    value = agreement(reference, state, wiring, orders)
    note(value)
    gained = True
    while gained:
        gained = False
        for group in torch.randperm(len(orders), generator=stream).tolist():
            tried = list(orders)
            tried[group] = assigned(
                _products(reference, state, wiring, orders, group), orders[group]
            )
            if torch.equal(tried[group], orders[group]):
                continue
            now = agreement(reference, state, wiring, tried)
            if now > value + BETTER * (1 + abs(value)):
                orders, value, gained = tried, now, True
                note(value)
    return orders


def agreement(reference: State, state: State, wiring: Wiring, orders: Sequence[Tensor]) -> float:
    """Σ ⟨reference, state in `orders`⟩ over all numbers that belong to units: what `rebasin` raises.

    The squared distance of the two networks is a constant minus twice this.
    """
    names = [name for name in wiring.axes if name in wiring.learnt]
    return float(sum((reference[n] * reordered(state[n], wiring, n, orders)).sum() for n in names))


def correlation(ours: Tensor, theirs: Tensor) -> Tensor:
    """`[units, units]` of activations `[samples, units]`; 0 for units that always answer the same."""
    both = torch.corrcoef(torch.cat([ours, theirs], 1).double().T)
    return both[: ours.shape[1], ours.shape[1] :].nan_to_num(0.0)


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


# ----------------------------------------------------------------------------------------------------------------- pfnm
# PFNM: networks with one hidden layer, matched without fixing how many neurons the result has.
#
# Yurochkin et al., ICML 2019. A neuron is one vector v = [incoming weights, bias, outgoing weights]. Client k's neurons
# are noisy copies of global ones: v ~ N(θ_i, σ²), θ_i ~ N(0, σ0²), and an Indian buffet process with mass γ says which
# global neurons a client has. The precision of the outgoing weight of class c is s_kc / σ², with s_kc client k's share
# of the class: a client that has no image of a class does not speak for it.
#
# One client after the other, given what all others are matched with, each of its neurons goes to a global neuron of its
# own, or becomes a new one (the paper's Eq. 8; both sides doubled). With p_k a neuron's precisions, S_i = Σ p v and
# Q_i = Σ p over the neurons that the others have put into i, m_i how many these are, and M clients:
#
#     old i:  Σ_d [(S_i + p v)² / (1/σ0² + Q_i + p) - S_i² / (1/σ0² + Q_i)] + 2 log(m_i / (M - m_i))
#     new, the r-th of this client:  Σ_d (p v)² / (1/σ0² + p) + 2 log(γ / M) - 2 log r
#
# In the end θ_i = S_i / (1/σ0² + Q_i), and the same for the biases of the classes. γ → ∞ matches nothing: a network of
# all neurons, an ensemble that is weighed by the class shares. γ → 0 makes no more neurons than the largest client has.
# The authors' code takes the logarithm of m/(M - m) once, and m is at most 10 there.


@dataclass(frozen=True, eq=False)
class Grown:
    """`neurons [J, D]`: θ;   members: for each client `[L_k]`, the global neuron of each of its own."""

    neurons: Tensor
    members: list[Tensor]


def grow(
    vectors: Sequence[Tensor],
    precisions: Sequence[Tensor],
    *,
    spread: float,
    mass: float,
    sweeps: int,
) -> Grown:
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
        both = 1 / (prior + weight + p)  # the squared sum as three products of matrices
        old = (total.square() * both).sum(1) + 2 * pull @ (total * both).T + pull.square() @ both.T
        old = (
            old - (total.square() / (prior + weight)).sum(1) + 2 * (count / (clients - count)).log()
        )
        new = (pull.square() / (prior + p)).sum(1, keepdim=True) + 2 * torch.tensor(
            mass / clients
        ).double().log()
        ranks = torch.arange(1, len(pull) + 1, dtype=torch.float64)
        chosen = assigned_to(torch.cat([old, new - 2 * ranks.log()], 1))
        fresh = chosen >= len(
            count
        )  # new ones: which is the first is all the same, so they keep the client's order
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


# --------------------------------------------------------------------------------------------------------------- report
# What a run of neuron matching leaves behind, and its network with the clients' own beside it.

LIMIT = 12_000_000  # numbers of all clients' networks that a model holds; beyond that (large networks) it holds none


@dataclass(frozen=True, eq=False)
class MatchingReport(MergeReport):
    """`rule`: by which units were matched;   layers, units: the groups of units, and how many there are.

    orders:     `[M, U]`, U = Σ units: for each client and each place of the reference, which unit of the client's comes
                there; with pfnm for each of the client's units the neuron of the result that it went to
    reference:  the client with whose units all others' are matched
    moved:      for each client the share of its units that stand elsewhere afterwards
    distances:  for each client ‖θ_ref - θ_k‖ before and after (none with pfnm)
    objective:  for each client the values of the objective, step by step (rebasin)
    neurons:    hidden units of the result
    """

    rule: str | None = None
    layers: list[str] | None = None
    units: list[int] | None = None
    orders: np.ndarray | None = None
    reference: int | None = None
    moved: list[float] | None = None
    distances: list[list[float]] | None = None
    objective: list[list[float]] | None = None
    neurons: int | None = None


class MatchedModel(MergedModel):
    """The matched network; `clients`: the networks as the server received them, None where they are too large."""

    def __init__(
        self, module: nn.Module, report: MatchingReport, average: nn.Module, clients: ClientModels
    ) -> None:
        super().__init__(module, report, average)
        self.clients = clients if sum(map(parameter_count, clients.modules)) <= LIMIT else None


# -------------------------------------------------------------------------------------------------------------- neurons
# Networks with one hidden layer as lists of neurons, which PFNM matches, and back.


def grown(
    uploaded: ClientModels, shares: Tensor, sigma: float, sigma0: float, mass: float, sweeps: int
) -> tuple[Network, MatchingReport]:
    """PFNM's network of the global neurons; `shares [M, C]`: of the classes that each client has; σ, σ0 and γ."""
    networks = [neurons_of(module) for module in uploaded.modules]
    width = networks[0][0].shape[1] - shares.shape[1]
    scale = torch.cat([torch.ones(len(shares), width), shares.cpu()], 1).double() / sigma**2
    result = grow([v for v, _ in networks], list(scale), spread=sigma0, mass=mass, sweeps=sweeps)
    biases = torch.stack([bias for _, bias in networks]) * scale[:, width:]
    bias = biases.sum(0) / (1 / sigma0**2 + scale[:, width:].sum(0))
    module = with_neurons(uploaded.module(0), result.neurons, bias)
    name, count = wiring_of(module).layers[0], len(result.neurons)
    members = np.stack([own.numpy() for own in result.members])
    moved = [float((own != np.arange(len(own))).mean()) for own in members]
    report = MatchingReport(
        None, "pfnm", [name], [members.shape[1]], members, moved=moved, neurons=count
    )
    return module, report


def linear_layers(network: nn.Module) -> list[nn.Linear]:
    return [layer for layer in network.modules() if isinstance(layer, nn.Linear)]


def one_hidden_layer(network: Network) -> bool:
    """Whether all that `network` has learnt is in two linear layers."""
    return len(linear_layers(network)) == 2 and len(network.body) == 1 and plain(network)


def plain(network: Network) -> bool:
    """Whether every block of `network` has one layer of units, with a bias, and nothing else has learnt."""
    layers = unit_layers(network)
    learnt = {parameter for layer in layers for parameter in layer.parameters()}
    single = all(len(unit_layers(block)) == 1 for block in network.body)
    whole = all(layer.bias is not None and getattr(layer, "groups", 1) == 1 for layer in layers)
    return single and whole and set(network.parameters()) == learnt


def unit_layers(network: nn.Module) -> list[Any]:
    """Linear layers and convolutions, from the inputs upwards."""
    return [layer for layer in network.modules() if isinstance(layer, (nn.Linear, nn.Conv2d))]


def neurons_of(network: nn.Module) -> tuple[Tensor, Tensor]:
    """`[L, i + 1 + C]`: each neuron's incoming weights, bias, outgoing weights; and the biases of the classes `[C]`."""
    hidden, last = linear_layers(network)
    together = (
        torch.cat([hidden.weight, hidden.bias[:, None], last.weight.T], 1).detach().cpu().double()
    )
    return together, last.bias.detach().cpu().double()


def with_neurons(network: Network, neurons: Tensor, bias: Tensor) -> Network:
    """A network like `network` with these `neurons [J, i + 1 + C]` and biases of the classes `[C]`."""
    twin = copy_model(network)
    hidden, last = linear_layers(twin)
    inputs = hidden.in_features
    parts = neurons.to(hidden.weight).split([inputs, 1, neurons.shape[1] - inputs - 1], 1)
    hidden.weight, hidden.bias = (
        nn.Parameter(parts[0].contiguous()),
        nn.Parameter(parts[1][:, 0].contiguous()),
    )
    last.weight, last.bias = (
        nn.Parameter(parts[2].T.contiguous()),
        nn.Parameter(bias.to(hidden.weight)),
    )
    hidden.out_features = last.in_features = len(neurons)
    name, shape, classes, _ = twin.architecture
    twin.architecture = (name, shape, classes, len(neurons))
    return twin
