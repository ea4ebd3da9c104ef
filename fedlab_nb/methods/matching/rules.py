"""Three rules that find the order of one network's units in which they fit those of another: orders `[units]` by group.

Each is a linear assignment problem, or one for each layer: of all orders of the units, the one with the largest sum of
scores. It is solved exactly on the CPU. The present order is kept unless another one is better by more than rounding,
so that ties (units that are never active) move nothing.
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
from .wiring import State, Wiring, find_wiring, flatten_units, permute_tensor

BETTER = 1e-9  # of the size of the scores: less is rounding
Orders = list[Tensor]


def find_best_order(scores: Tensor, present: Tensor | None = None) -> Tensor:
    """The order p `[n]` with the largest Σ_i scores[i, p(i)], of scores `[n, n]`.

    `present` (default: 0, 1, …) is kept if no other order is better.
    """
    scores = scores.double().cpu()
    if present is None:
        present = torch.arange(len(scores))
    best = assign_columns(scores)
    gain = _sum_assigned_scores(scores, best) - _sum_assigned_scores(scores, present)
    if gain > BETTER * scores.abs().max():
        return best
    return present


def assign_columns(scores: Tensor) -> Tensor:
    """For each row of scores `[n, m]`, n ≤ m, a different column `[n]`, with the largest sum of scores."""
    from scipy.optimize import linear_sum_assignment

    _, columns = linear_sum_assignment(scores.double().cpu().numpy(), maximize=True)
    return torch.from_numpy(columns)


def match_greedily(reference: State, state: State, wiring: Wiring) -> Orders:
    """OT-Fusion (Singh & Jaggi 2020) for equal widths and uniform mass, where the transport is an assignment.

    Layer after layer: the columns follow the orders so far, then units are matched by the Euclidean distance of the
    weights that come in, min_P Σ_i ‖U_ref[i] - U[P(i)]‖.
    """
    orders = wiring.make_identity_orders()
    matched_groups: set[int] = set()
    for group, units in enumerate(wiring.units):
        reference_rows = []
        client_rows = []
        for name in wiring.list_group_tensors(group):
            axes = wiring.axes[name]
            makes_units = axes[-1] == (0, group)
            if makes_units and all(g in matched_groups for _, g in axes[:-1]):
                permuted = permute_tensor(state[name], wiring, name, orders)
                reference_rows.append(flatten_units(reference[name], 0, units))
                client_rows.append(flatten_units(permuted, 0, units))
        distances = torch.cdist(
            torch.cat(reference_rows, 1),
            torch.cat(client_rows, 1),
            compute_mode="donot_use_mm_for_euclid_dist",
        )
        orders[group] = find_best_order(-distances)
        matched_groups.add(group)
    return orders


def match_by_rebasin(
    reference: State,
    state: State,
    wiring: Wiring,
    stream: torch.Generator,
    start: Orders,
    record: Callable[[float], Any],
) -> Orders:
    """Git Re-Basin's weight matching (Ainsworth et al. 2023): coordinate descent over the groups, from `start`.

    For one group at a time, S = Σ over its tensors of the inner products of the reference's units with the client's,
    with all other groups in the orders so far, and P = argmax tr(PᵀS). Groups come in random order until none can gain.
    `record` gets the objective, Σ ⟨reference, state in these orders⟩, at the start and after each step.
    """
    orders = list(start)
    value = compute_agreement(reference, state, wiring, orders)
    record(value)
    has_gained = True
    while has_gained:
        has_gained = False
        for group in torch.randperm(len(orders), generator=stream).tolist():
            products = _inner_products(reference, state, wiring, orders, group)
            new_order = find_best_order(products, orders[group])
            if torch.equal(new_order, orders[group]):
                continue
            new_orders = list(orders)
            new_orders[group] = new_order
            new_value = compute_agreement(reference, state, wiring, new_orders)
            if new_value > value + BETTER * (1 + abs(value)):
                orders = new_orders
                value = new_value
                has_gained = True
                record(value)
    return orders


def compute_agreement(
    reference: State, state: State, wiring: Wiring, orders: Sequence[Tensor]
) -> float:
    """Σ ⟨reference, state in `orders`⟩ over all numbers that belong to units: the objective of `match_by_rebasin`.

    The squared distance of the two networks is a constant minus twice this.
    """
    products = []
    for name in wiring.axes:
        if name in wiring.learnt:
            permuted = permute_tensor(state[name], wiring, name, orders)
            products.append((reference[name] * permuted).sum())
    return float(sum(products))


def compute_correlation(first: Tensor, second: Tensor) -> Tensor:
    """`[units, units]` of activations `[samples, units]`; 0 for units whose activation is constant."""
    units = first.shape[1]
    correlations = torch.corrcoef(torch.cat([first, second], 1).double().T)
    return correlations[:units, units:].nan_to_num(0.0)


def _inner_products(
    reference: State, state: State, wiring: Wiring, orders: Orders, group: int
) -> Tensor:
    """`[units, units]`: inner products of the reference's units with the state's.

    The state's other groups are in `orders`, this one as it is.
    """
    units = wiring.units[group]
    other_orders = list(orders)
    other_orders[group] = torch.arange(units)
    products: Any = 0.0
    for name in wiring.list_group_tensors(group):
        permuted = permute_tensor(state[name], wiring, name, other_orders)
        for dim, axis_group in wiring.axes[name]:
            if axis_group == group:
                reference_rows = flatten_units(reference[name], dim, units)
                products = products + reference_rows @ flatten_units(permuted, dim, units).T
    return products


def _sum_assigned_scores(scores: Tensor, order: Tensor) -> float:
    return float(scores[torch.arange(len(order)), order].sum())


# ----------------------------------------------------------------------------------------------------------------- pfnm
# PFNM: networks with one hidden layer, matched without fixing how many neurons the result has.
#
# Yurochkin et al., ICML 2019. A neuron is one vector v = [incoming weights, bias, outgoing weights]. Client k's neurons
# are noisy copies of global ones: v ~ N(θ_i, σ²), θ_i ~ N(0, σ0²), and an Indian buffet process with mass γ says which
# global neurons a client has. The precision of the outgoing weight of class c is s_kc / σ², with s_kc client k's share
# of the class: a client without images of a class has no weight there.
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
class GlobalNeurons:
    """`neurons [J, D]`: θ;   members: for each client `[L_k]`, the global neuron of each of its own."""

    neurons: Tensor
    members: list[Tensor]


def match_neuron_vectors(
    vectors: Sequence[Tensor],
    precisions: Sequence[Tensor],
    *,
    spread: float,
    mass: float,
    sweeps: int,
) -> GlobalNeurons:
    """Match neurons `vectors` (for each client `[L_k, D]`, float64) with `precisions` (for each client `[D]`).

    `spread`: σ0;   `mass`: γ. The largest client comes first; then `sweeps` times every client is matched anew.
    """
    prior = 1 / spread**2
    clients = len(vectors)
    members: list[Tensor] = [torch.empty(0, dtype=torch.long) for _ in vectors]
    order = sorted(range(clients), key=lambda k: -len(vectors[k]))
    for k in order * (1 + sweeps):
        members[k] = members[k][:0]
        _close_gaps(members)
        s, q, m = _sum_members(vectors, precisions, members)
        p = precisions[k]
        pv = p * vectors[k]
        # (S + p v)² / (1/σ0² + Q + p), summed over d, as three products of matrices.
        scale = 1 / (prior + q + p)
        old = (s.square() * scale).sum(1) + 2 * pv @ (s * scale).T + pv.square() @ scale.T
        old = old - (s.square() / (prior + q)).sum(1) + 2 * (m / (clients - m)).log()
        log_mass = torch.tensor(mass / clients).double().log()
        new = (pv.square() / (prior + p)).sum(1, keepdim=True) + 2 * log_mass
        ranks = torch.arange(1, len(pv) + 1, dtype=torch.float64)
        choice = assign_columns(torch.cat([old, new - 2 * ranks.log()], 1))
        # Which of the new neurons is the first makes no difference: they keep the client's order.
        is_new = choice >= len(m)
        choice[is_new] = len(m) + torch.arange(int(is_new.sum()))
        members[k] = choice
    _close_gaps(members)
    s, q, _ = _sum_members(vectors, precisions, members)
    return GlobalNeurons(s / (prior + q), members)


def _sum_members(
    vectors: Sequence[Tensor], precisions: Sequence[Tensor], members: Sequence[Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """S and Q `[J, D]`, and m `[J]`, of the neurons that are matched so far."""
    neurons = 0
    for client_members in members:
        if len(client_members):
            neurons = max(neurons, int(client_members.max()) + 1)
    s = vectors[0].new_zeros(neurons, vectors[0].shape[1])
    q = torch.zeros_like(s)
    m = s.new_zeros(neurons)
    for v, p, client_members in zip(vectors, precisions, members, strict=True):
        if len(client_members):
            s[client_members] += p * v
            q[client_members] += p
            m[client_members] += 1
    return s, q, m


def _close_gaps(members: list[Tensor]) -> None:
    """Number the global neurons that a client has without gaps, in place."""
    numbers = torch.cat(members).unique()
    for k, client_members in enumerate(members):
        members[k] = torch.searchsorted(numbers, client_members)


# --------------------------------------------------------------------------------------------------------------- report
# What a run of neuron matching leaves behind, and its network, with those of the clients.

LIMIT = 12_000_000  # numbers of all clients' networks that a model holds; beyond that (large networks) it holds none


@dataclass(frozen=True, eq=False)
class MatchingReport(MergeReport):
    """`rule`: by which units were matched;   layers, units: the groups of units, and how many there are.

    orders:     `[M, U]`, U = Σ units: for each client and each place of the reference, the client's unit that comes
                there; with pfnm for each of the client's units the neuron of the result that it is matched with
    reference:  the client whose units the others' are matched with
    moved:      for each client the share of its units that are in another place afterwards
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
        self.clients: ClientModels | None = None
        if sum(parameter_count(client) for client in clients.modules) <= LIMIT:
            self.clients = clients


# -------------------------------------------------------------------------------------------------------------- neurons
# Networks with one hidden layer as lists of neurons, which PFNM matches, and back.


def match_neurons(
    uploaded: ClientModels, shares: Tensor, sigma: float, sigma0: float, mass: float, sweeps: int
) -> tuple[Network, MatchingReport]:
    """PFNM's network of the global neurons; `shares [M, C]`: of the classes that each client has; σ, σ0 and γ."""
    vectors = []
    biases = []
    for module in uploaded.modules:
        neurons, bias = extract_neurons(module)
        vectors.append(neurons)
        biases.append(bias)
    incoming = vectors[0].shape[1] - shares.shape[1]  # weights and bias
    precisions = torch.cat([torch.ones(len(shares), incoming), shares.cpu()], 1).double()
    precisions = precisions / sigma**2
    result = match_neuron_vectors(
        vectors, list(precisions), spread=sigma0, mass=mass, sweeps=sweeps
    )
    class_precisions = precisions[:, incoming:]
    weighted_biases = torch.stack(biases) * class_precisions
    bias = weighted_biases.sum(0) / (1 / sigma0**2 + class_precisions.sum(0))
    network = replace_neurons(uploaded.module(0), result.neurons, bias)
    orders = np.stack([client_members.numpy() for client_members in result.members])
    identity = np.arange(orders.shape[1])
    report = MatchingReport(
        rule="pfnm",
        layers=[find_wiring(network).layers[0]],
        units=[orders.shape[1]],
        orders=orders,
        moved=[float((order != identity).mean()) for order in orders],
        neurons=len(result.neurons),
    )
    return network, report


def list_linear_layers(network: nn.Module) -> list[nn.Linear]:
    return [layer for layer in network.modules() if isinstance(layer, nn.Linear)]


def has_one_hidden_layer(network: Network) -> bool:
    """Whether all parameters of `network` are in two linear layers."""
    return (
        len(list_linear_layers(network)) == 2
        and len(network.body) == 1
        and has_plain_blocks(network)
    )


def has_plain_blocks(network: Network) -> bool:
    """Whether every block of `network` has one layer of units, with a bias, and no other parameters."""
    if any(len(list_unit_layers(block)) != 1 for block in network.body):
        return False
    parameters: set[nn.Parameter] = set()
    for layer in list_unit_layers(network):
        if layer.bias is None or getattr(layer, "groups", 1) != 1:
            return False
        parameters.update(layer.parameters())
    return set(network.parameters()) == parameters


def list_unit_layers(network: nn.Module) -> list[Any]:
    """Linear layers and convolutions, from the inputs upwards."""
    return [layer for layer in network.modules() if isinstance(layer, (nn.Linear, nn.Conv2d))]


def extract_neurons(network: nn.Module) -> tuple[Tensor, Tensor]:
    """`[L, i + 1 + C]`: each neuron's incoming weights, bias, outgoing weights; and the biases of the classes `[C]`."""
    hidden, last = list_linear_layers(network)
    neurons = torch.cat([hidden.weight, hidden.bias[:, None], last.weight.T], 1)
    return neurons.detach().cpu().double(), last.bias.detach().cpu().double()


def replace_neurons(network: Network, neurons: Tensor, bias: Tensor) -> Network:
    """A network like `network` with these `neurons [J, i + 1 + C]` and biases of the classes `[C]`."""
    twin = copy_model(network)
    hidden, last = list_linear_layers(twin)
    inputs = hidden.in_features
    neurons = neurons.to(hidden.weight)
    hidden.weight = nn.Parameter(neurons[:, :inputs].contiguous())
    hidden.bias = nn.Parameter(neurons[:, inputs].contiguous())
    last.weight = nn.Parameter(neurons[:, inputs + 1 :].T.contiguous())
    last.bias = nn.Parameter(bias.to(hidden.weight))
    hidden.out_features = len(neurons)
    last.in_features = len(neurons)
    name, shape, classes, _ = twin.architecture
    twin.architecture = (name, shape, classes, len(neurons))
    return twin
