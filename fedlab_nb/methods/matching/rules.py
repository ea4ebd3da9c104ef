"""Rules that reorder one network's units so that they match those of another: OT-Fusion, Git Re-Basin and PFNM.

Each solves linear assignment problems, exactly and on the CPU: of all orders of a group of units it takes the one with
the largest sum of scores. The current order is kept unless another one is better by more than a rounding error, so that
ties (units that are never active) move nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ...models import Network, count_parameters
from ...models.state import copy_model
from ...tensor_types import ClientClassShares, ScorePerClass, SquareMatrix, Vector
from ...training import ClientModels
from ..parts.averages import MergedModel, MergeReport
from .wiring import (
    Permutation,
    State,
    UnitGroup,
    UnitWiring,
    find_unit_wiring,
    move_units_to_rows,
    permute_units_of_tensor,
)

Activations = Tensor  # [samples, units]
NeuronRows = Tensor  # [L, i + 1 + C]: each neuron's incoming weights, bias and outgoing weights
NeuronIndices = Tensor  # int64 [L], the global neuron of each of a client's neurons
ScoreMatrix = Tensor  # [n, m]

ColumnIndices = Tensor  # int64 [rows]

BETTER = 1e-9  # a gain below this share of the scores' size is a rounding error
UnitOrders = list[Tensor]  # for each group of units the order [units]


def find_best_permutation(
    scores_to_maximise: SquareMatrix, current_order: Permutation | None = None
) -> Permutation:
    """The order p `[n]` with the largest Σ_i scores[i, p(i)], of scores `[n, n]`.

    `current_order` (default: 0, 1, …) is kept if no other order is better.
    """
    scores_to_maximise = scores_to_maximise.double().cpu()
    if current_order is None:
        current_order = torch.arange(len(scores_to_maximise))
    best = assign_column_to_each_row(scores_to_maximise)
    gain = _sum_assigned_scores(scores_to_maximise, best) - _sum_assigned_scores(
        scores_to_maximise, current_order
    )
    if gain > BETTER * scores_to_maximise.abs().max():
        return best
    return current_order


def assign_column_to_each_row(scores_to_maximise: ScoreMatrix) -> ColumnIndices:
    """A different column for each row `[n]`, so that the sum of their scores `[n, m]`, n ≤ m, is largest."""
    from scipy.optimize import linear_sum_assignment

    _, columns = linear_sum_assignment(scores_to_maximise.double().cpu().numpy(), maximize=True)
    return torch.from_numpy(columns)


def find_unit_orders_greedily(
    reference_state: State, state: State, wiring: UnitWiring
) -> UnitOrders:
    """OT-Fusion (Singh & Jaggi 2020) for equal widths and uniform mass, where the transport is an assignment.

    It goes from layer to layer. The incoming weights are first reordered as the layers below have been matched; then
    the layer's units are matched by the Euclidean distance of their incoming weights, min_P Σ_i ‖U_ref[i] - U[P(i)]‖.
    """
    orders = wiring.make_identity_orders()
    matched_groups: set[int] = set()
    for group, units in enumerate(wiring.units):
        reference_rows = []
        client_rows = []
        for name in wiring.list_learnt_tensor_names_of_group(group):
            axes = wiring.axes[name]
            makes_units = axes[-1] == (0, group)
            if makes_units and all(g in matched_groups for _, g in axes[:-1]):
                permuted = permute_units_of_tensor(state[name], wiring, name, orders)
                reference_rows.append(move_units_to_rows(reference_state[name], 0, units))
                client_rows.append(move_units_to_rows(permuted, 0, units))
        distances = torch.cdist(
            torch.cat(reference_rows, 1),
            torch.cat(client_rows, 1),
            compute_mode="donot_use_mm_for_euclid_dist",
        )
        orders[group] = find_best_permutation(-distances)
        matched_groups.add(group)
    return orders


def find_unit_orders_by_rebasin(
    reference_state: State,
    state: State,
    wiring: UnitWiring,
    stream: torch.Generator,
    start_orders: UnitOrders,
    record_objective: Callable[[float], None],
) -> UnitOrders:
    """Git Re-Basin's weight matching (Ainsworth et al. 2023): coordinate descent over the groups, from `start_orders`.

    One group is matched at a time, while all others keep their current orders: S are the inner products of the
    reference's units with the client's, summed over the group's tensors, and P = argmax tr(PᵀS). The groups are visited
    in random order, again and again, until none can gain. `record_objective` is called with the objective,
    Σ ⟨reference, state in these orders⟩, at the start and after each step.
    """
    orders = list(start_orders)
    value = compute_weight_inner_product(reference_state, state, wiring, orders)
    record_objective(value)
    has_gained = True
    while has_gained:
        has_gained = False
        for group in torch.randperm(len(orders), generator=stream).tolist():
            products = _compute_inner_products_of_units(
                reference_state, state, wiring, orders, group
            )
            new_order = find_best_permutation(products, orders[group])
            if torch.equal(new_order, orders[group]):
                continue
            new_orders = list(orders)
            new_orders[group] = new_order
            new_value = compute_weight_inner_product(reference_state, state, wiring, new_orders)
            if new_value > value + BETTER * (1 + abs(value)):
                orders = new_orders
                value = new_value
                has_gained = True
                record_objective(value)
    return orders


def compute_weight_inner_product(
    reference_state: State, state: State, wiring: UnitWiring, orders: UnitOrders
) -> float:
    """Σ ⟨reference, state in `orders`⟩ over all learnt tensors with units: the objective of Git Re-Basin.

    The squared distance of the two networks is a constant minus twice this.
    """
    products = []
    for name in wiring.axes:
        if name in wiring.learnt:
            permuted = permute_units_of_tensor(state[name], wiring, name, orders)
            products.append((reference_state[name] * permuted).sum())
    return float(sum(products))


def compute_unit_correlations(
    first_activations: Activations, second_activations: Activations
) -> SquareMatrix:
    """Correlations `[units, units]` of two networks' activations `[samples, units]`; 0 for a constant activation."""
    units = first_activations.shape[1]
    correlations = torch.corrcoef(torch.cat([first_activations, second_activations], 1).double().T)
    return correlations[:units, units:].nan_to_num(0.0)


def _compute_inner_products_of_units(
    reference_state: State, state: State, wiring: UnitWiring, orders: UnitOrders, group: UnitGroup
) -> SquareMatrix:
    """Inner products of the reference's units in `group` with the state's, `[units, units]`.

    The state's other groups are reordered by `orders`; the units of `group` are not.
    """
    units = wiring.units[group]
    other_orders = list(orders)
    other_orders[group] = torch.arange(units)
    products: Any = 0.0
    for name in wiring.list_learnt_tensor_names_of_group(group):
        permuted = permute_units_of_tensor(state[name], wiring, name, other_orders)
        for dim, axis_group in wiring.axes[name]:
            if axis_group == group:
                reference_rows = move_units_to_rows(reference_state[name], dim, units)
                state_rows = move_units_to_rows(permuted, dim, units)
                products = products + reference_rows @ state_rows.T
    return products


def _sum_assigned_scores(scores: SquareMatrix, order: Permutation) -> float:
    return float(scores[torch.arange(len(order)), order].sum())


# ----------------------------------------------------------------------------------------------------------------- pfnm
# PFNM: networks with one hidden layer, matched without fixing how many neurons the result has.
#
# Yurochkin et al., ICML 2019. A neuron is one vector v = [incoming weights, bias, outgoing weights]. Client k's neurons
# are noisy copies of global ones: v ~ N(θ_i, σ²), θ_i ~ N(0, σ0²), and an Indian buffet process with mass γ says which
# global neurons a client has. The precision of the outgoing weight of class c is s_kc / σ², with s_kc client k's share
# of the class: a client without images of a class has no say there.
#
# The clients are matched one after the other, given how all others are matched: each of the client's neurons joins a
# different global neuron or becomes a new one (the paper's Eq. 8, both sides doubled). Let p be the precisions of a
# neuron v, m_i the number of other clients' neurons in global neuron i, S_i = Σ p v and Q_i = Σ p over these neurons,
# and M the number of clients. The score of a match is
#
#     old i:  Σ_d [(S_i + p v)² / (1/σ0² + Q_i + p) - S_i² / (1/σ0² + Q_i)] + 2 log(m_i / (M - m_i))
#     new, the r-th of this client:  Σ_d (p v)² / (1/σ0² + p) + 2 log(γ / M) - 2 log r
#
# In the end θ_i = S_i / (1/σ0² + Q_i), and likewise for the biases of the classes. For γ → ∞ nothing is matched: the
# network has all clients' neurons and is an ensemble weighted by the class shares. For γ → 0 it has no more neurons
# than the largest client's. (The authors' code adds log(m_i / (M - m_i)) once, and m_i is at most 10 there.)


@dataclass(frozen=True, eq=False)
class GlobalNeurons:
    """The neurons of the merged layer, and the clients' neurons that each was made from.

    neurons: θ `[J, D]`
    members: for each client, the global neuron that each of its own neurons went to, `[L_k]`
    """

    neurons: Tensor
    members: list[Tensor]


def match_neurons_of_clients(
    neurons_of_each_client: Sequence[NeuronRows],
    precisions_of_each_client: Sequence[Vector],
    *,
    prior_deviation: float,
    mass: float,
    sweeps: int,
) -> GlobalNeurons:
    """Match the clients' neurons. The largest client comes first; all are then matched anew `sweeps` times.

    neurons_of_each_client: each client's, float64 `[L_k, D]`
    precisions_of_each_client: those of each client's neurons, `[D]`
    prior_deviation: σ0
    mass: γ
    """
    prior = 1 / prior_deviation**2
    clients = len(neurons_of_each_client)
    members: list[Tensor] = [torch.empty(0, dtype=torch.long) for _ in neurons_of_each_client]
    order = sorted(range(clients), key=lambda k: -len(neurons_of_each_client[k]))
    for k in order * (1 + sweeps):
        members[k] = members[k][:0]
        _renumber_neurons_without_gaps_in_place(members)
        s, q, m = _sum_matched_neurons(neurons_of_each_client, precisions_of_each_client, members)
        p = precisions_of_each_client[k]
        pv = p * neurons_of_each_client[k]
        # (S + p v)² / (1/σ0² + Q + p), summed over d, as three products of matrices.
        scale = 1 / (prior + q + p)
        old = (s.square() * scale).sum(1) + 2 * pv @ (s * scale).T + pv.square() @ scale.T
        old = old - (s.square() / (prior + q)).sum(1) + 2 * (m / (clients - m)).log()
        log_mass = torch.tensor(mass / clients).double().log()
        new = (pv.square() / (prior + p)).sum(1, keepdim=True) + 2 * log_mass
        ranks = torch.arange(1, len(pv) + 1, dtype=torch.float64)
        choice = assign_column_to_each_row(torch.cat([old, new - 2 * ranks.log()], 1))
        # New neurons are numbered in the client's own order; their order makes no difference.
        is_new = choice >= len(m)
        choice[is_new] = len(m) + torch.arange(int(is_new.sum()))
        members[k] = choice
    _renumber_neurons_without_gaps_in_place(members)
    s, q, _ = _sum_matched_neurons(neurons_of_each_client, precisions_of_each_client, members)
    return GlobalNeurons(s / (prior + q), members)


class NeuronSums(NamedTuple):
    """S and Q `[J, D]`, and m `[J]`, of the global neurons."""

    weighted_sums: Tensor
    precisions: Tensor
    counts: Tensor


def _sum_matched_neurons(
    neurons_of_each_client: Sequence[NeuronRows],
    precisions_of_each_client: Sequence[Vector],
    global_neuron_of_each: Sequence[NeuronIndices],
) -> NeuronSums:
    """S and Q `[J, D]`, and m `[J]`, of the neurons that are matched so far."""
    neurons = 0
    for client_members in global_neuron_of_each:
        if len(client_members):
            neurons = max(neurons, int(client_members.max()) + 1)
    s = neurons_of_each_client[0].new_zeros(neurons, neurons_of_each_client[0].shape[1])
    q = torch.zeros_like(s)
    m = s.new_zeros(neurons)
    for v, p, client_members in zip(
        neurons_of_each_client, precisions_of_each_client, global_neuron_of_each, strict=True
    ):
        if len(client_members):
            s[client_members] += p * v
            q[client_members] += p
            m[client_members] += 1
    return NeuronSums(s, q, m)


def _renumber_neurons_without_gaps_in_place(global_neuron_of_each: list[NeuronIndices]) -> None:
    """Renumber the global neurons in place, so that those without a member leave no gaps."""
    numbers = torch.cat(global_neuron_of_each).unique()
    for k, client_members in enumerate(global_neuron_of_each):
        global_neuron_of_each[k] = torch.searchsorted(numbers, client_members)


# --------------------------------------------------------------------------------------------------------------- report
# The report of a run of matching, and its global model.

LIMIT = 12_000_000  # a matched model keeps the clients' networks if they have at most this many parameters together


@dataclass(frozen=True, eq=False)
class MatchingReport(MergeReport):
    """The matching, and how well the matched units agree.

    rule:       the rule that matched the units
    layers:     the names of the groups of units
    units:      the number of units in each group
    orders:     `[M, U]`, U = Σ units: for each client and each unit of the reference, the client's unit that is matched
                with it; with pfnm, for each unit of the client, the neuron of the result that it is matched with
    reference:  the client with whose units all others' are matched
    moved:      for each client the share of its units that change places
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
    """The matched network; `clients`: the networks as the server received them, None if they are too large."""

    def __init__(
        self, module: nn.Module, report: MatchingReport, average: nn.Module, clients: ClientModels
    ) -> None:
        super().__init__(module, report, average)
        self.clients: ClientModels | None = None
        if sum(count_parameters(client) for client in clients.modules) <= LIMIT:
            self.clients = clients


# -------------------------------------------------------------------------------------------------------------- neurons
# Conversion of networks with one hidden layer to lists of neurons, which PFNM matches, and back.


class NetworkAndMatchingReport(NamedTuple):
    """The network of the global neurons, and how they were matched."""

    network: Network
    report: MatchingReport


def merge_by_matching_neurons(
    uploaded_models: ClientModels,
    class_shares: ClientClassShares,
    noise_deviation: float,
    prior_deviation: float,
    mass: float,
    sweeps: int,
) -> NetworkAndMatchingReport:
    """Match the clients' neurons by PFNM and make the network of the global ones.

    class_shares: `[M, C]`, each client's share s_kc of the samples of class c
    noise_deviation, prior_deviation, mass: σ, σ0 and γ
    """
    vectors = []
    biases = []
    for module in uploaded_models.modules:
        neurons, bias = extract_neurons(module)
        vectors.append(neurons)
        biases.append(bias)
    incoming = vectors[0].shape[1] - class_shares.shape[1]  # weights and bias
    precisions = torch.cat(
        [torch.ones(len(class_shares), incoming), class_shares.cpu()], 1
    ).double()
    precisions = precisions / noise_deviation**2
    result = match_neurons_of_clients(
        vectors, list(precisions), prior_deviation=prior_deviation, mass=mass, sweeps=sweeps
    )
    class_precisions = precisions[:, incoming:]
    weighted_biases = torch.stack(biases) * class_precisions
    bias = weighted_biases.sum(0) / (1 / prior_deviation**2 + class_precisions.sum(0))
    network = copy_network_with_neurons(uploaded_models.module(0), result.neurons, bias)
    orders = np.stack([client_members.numpy() for client_members in result.members])
    identity = np.arange(orders.shape[1])
    report = MatchingReport(
        rule="pfnm",
        layers=[find_unit_wiring(network).layers[0]],
        units=[orders.shape[1]],
        orders=orders,
        moved=[float((order != identity).mean()) for order in orders],
        neurons=len(result.neurons),
    )
    return NetworkAndMatchingReport(network, report)


def list_linear_layers(network: nn.Module) -> list[nn.Linear]:
    """Linear layers, from the inputs upwards."""
    return [layer for layer in network.modules() if isinstance(layer, nn.Linear)]


def has_one_hidden_layer(network: Network) -> bool:
    """True if all parameters of `network` are in two linear layers."""
    return (
        len(list_linear_layers(network)) == 2
        and len(network.body) == 1
        and has_plain_blocks(network)
    )


def has_plain_blocks(network: Network) -> bool:
    """True if every block of `network` has one layer of units, with a bias, and no other parameters."""
    if any(len(list_linear_and_convolution_layers(block)) != 1 for block in network.body):
        return False
    parameters: set[nn.Parameter] = set()
    for layer in list_linear_and_convolution_layers(network):
        if layer.bias is None or getattr(layer, "groups", 1) != 1:
            return False
        parameters.update(layer.parameters())
    return set(network.parameters()) == parameters


def list_linear_and_convolution_layers(network: nn.Module) -> list[nn.Linear | nn.Conv2d]:
    """Linear layers and convolutions, from the inputs upwards."""
    return [layer for layer in network.modules() if isinstance(layer, (nn.Linear, nn.Conv2d))]


class NeuronsAndClassBiases(NamedTuple):
    """Each neuron's incoming weights, bias and outgoing weights, `[L, i + 1 + C]`; and the classes' biases `[C]`."""

    neurons: Tensor
    class_biases: Tensor


def extract_neurons(network: nn.Module) -> NeuronsAndClassBiases:
    """The neurons of a network with one hidden layer, float64 on the CPU."""
    hidden, last = list_linear_layers(network)
    neurons = torch.cat([hidden.weight, hidden.bias[:, None], last.weight.T], 1)
    return NeuronsAndClassBiases(neurons.detach().cpu().double(), last.bias.detach().cpu().double())


def copy_network_with_neurons(
    network: Network, neurons: NeuronRows, class_biases: ScorePerClass
) -> Network:
    """A network like `network` with these `neurons [J, i + 1 + C]` and biases of the classes `[C]`."""
    twin = copy_model(network)
    hidden, last = list_linear_layers(twin)
    inputs = hidden.in_features
    neurons = neurons.to(hidden.weight)
    hidden.weight = nn.Parameter(neurons[:, :inputs].contiguous())
    hidden.bias = nn.Parameter(neurons[:, inputs].contiguous())
    last.weight = nn.Parameter(neurons[:, inputs + 1 :].T.contiguous())
    last.bias = nn.Parameter(class_biases.to(hidden.weight))
    hidden.out_features = len(neurons)
    last.in_features = len(neurons)
    name, shape, classes, _ = twin.architecture
    twin.architecture = (name, shape, classes, len(neurons))
    return twin
