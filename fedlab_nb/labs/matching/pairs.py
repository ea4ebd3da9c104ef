"""Two clients of a run of neuron matching: their networks, the straight line between them, and
which units are matched. `TwoClientsView` is the base of the views that show two clients.
"""

from typing import NamedTuple

import ipywidgets as widgets
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ...data import load
from ...errors import RunError
from ...methods.base import weighted_mean
from ...methods.matching import (
    MatchingRule,
    copy_states_to_cpu_in_float64,
    record_unit_activations,
    rules,
)
from ...methods.matching.wiring import (
    State,
    UnitWiring,
    find_unit_wiring,
    move_units_to_rows,
    permute_units,
)
from ...models import Network, copy_model_state, load_state
from ...models.state import copy_model
from ...panels import LabView, PanelState, make_widget, set_menu_options_and_keep_choice
from ...plots.words import SettingCaption, format_client_for_sentence
from ...rng import make_torch_generator
from ...studies import Outcome
from ...tensor_types import Labels, Samples
from ...training import ClientModels
from ...value_types import Accuracy0To1
from ..array_types import PositionPerPoint
from ..runs import ClientIndex, describe_setting, list_client_menu_options

LINE_POINTS = 21  # points on the line between two networks, both ends included
MAX_SAMPLES = 1000  # test images
NOISE_SAMPLES = 500  # samples of noise on which activations are compared
RULES = {"rebasin": "Git Re-Basin", "greedy": "OT-Fusion", "activations": "activations"}

UnitCosines = Tensor  # [units of the first network, units of the second]


def get_stored_client_models(matching_outcome: Outcome) -> ClientModels:
    """Return the clients' networks of a run. Raises RunError if they were too large to store."""
    if matching_outcome.model.clients is None:
        raise RunError(
            "These networks are too large to be stored with the run: choose fewer or smaller ones."
        )
    return matching_outcome.model.clients


# ----------------------------------------------------------------------------------------- the line
class InterpolationLine(NamedTuple):
    """Loss and accuracy on the straight line (1 - t) θ + t θ' between two networks.

    loss:     `[T]`, at t = 0, …, 1
    accuracy: `[T]`, 0–1
    """

    loss: np.ndarray
    accuracy: np.ndarray

    @property
    def positions_0_to_1(self) -> PositionPerPoint:
        """`[T]`: 0 at the first network, 1 at the second."""
        return np.linspace(0, 1, len(self.loss))

    @property
    def loss_barrier(self) -> float:
        """The largest rise of the loss above the straight line between its two ends, at least 0."""
        straight = (1 - self.positions_0_to_1) * self.loss[0] + self.positions_0_to_1 * self.loss[
            -1
        ]
        return float(max(0.0, (self.loss - straight).max()))

    @property
    def accuracy_of_average(self) -> Accuracy0To1:
        """Accuracy of the plain average of the two networks, 0–1."""
        return float(self.accuracy[len(self.accuracy) // 2])


@torch.no_grad()
def measure_interpolation_line(
    architecture: Network,
    start: State,
    end: State,
    samples: Samples,
    labels: Labels,
    point_count: int = LINE_POINTS,
) -> InterpolationLine:
    """Measure the line between two states of a network like `architecture`.

    samples, labels: `[N, ...]` and `[N]`, on which loss and accuracy are measured
    """
    between = copy_model(architecture).eval()
    losses = []
    accuracies = []
    for t in np.linspace(0, 1, point_count).tolist():
        load_state(between, weighted_mean([start, end], [1 - t, t]))
        logits = between(samples)
        losses.append(F.cross_entropy(logits, labels))
        accuracies.append((logits.argmax(1) == labels).double().mean())
    loss = torch.stack(losses).double().cpu().numpy()
    accuracy = torch.stack(accuracies).double().cpu().numpy()
    return InterpolationLine(loss, accuracy)


# -------------------------------------------------------------------------------------- two clients
class MatchedPair(NamedTuple):
    """Clients `a` and `b`; the units of b are matched with those of a by `rule`.

    before, after: the line between them, with b's units in their own order and in the order found
    similarity:    for each layer `[units, units]`, cosines of the incoming weights of a's units (rows)
                   and of b's (columns), with all other layers in the order found
    orders:        for each layer `[units]`, the unit of b that is matched with each unit of a
    setting:       in words
    """

    a: int
    b: int
    rule: MatchingRule
    before: InterpolationLine
    after: InterpolationLine
    similarity: list[np.ndarray]
    orders: list[np.ndarray]
    setting: SettingCaption | str = ""

    @property
    def client_names(self) -> list[str]:
        """The names of the two clients."""
        return [format_client_for_sentence(k, self.setting) for k in (self.a, self.b)]


def match_networks_of_two_clients(
    matching_outcome: Outcome, first_client_index: int, second_client_index: int, rule: MatchingRule
) -> MatchedPair:
    """Match two clients of a run by `rule` (a key of RULES), and measure the line on its test
    images.
    """
    clients = get_stored_client_models(matching_outcome)
    data = load(matching_outcome.settings.dataset)
    first_network = clients.module(first_client_index)
    second_network = clients.module(second_client_index)
    weight = next(first_network.parameters())
    x = data.x_test[:MAX_SAMPLES].to(weight.device, weight.dtype)
    y = data.y_test[:MAX_SAMPLES].to(weight.device)
    return match_networks(
        first_network,
        second_network,
        (first_client_index, second_client_index),
        rule,
        x,
        y,
        describe_setting(matching_outcome),
    )


def match_networks(
    first: Network,
    second: Network,
    client_pair: tuple[ClientIndex, ClientIndex],
    rule: MatchingRule,
    samples: Samples,
    labels: Labels,
    setting: SettingCaption | str = "",
) -> MatchedPair:
    """Match two networks by `rule` (a key of RULES), and measure the line between them.

    client_pair: their numbers
    samples, labels: `[N, ...]` and `[N]`, on which the line is measured
    """
    wiring = find_unit_wiring(first)
    start = copy_model_state(first)
    end = copy_model_state(second)
    start_on_cpu, end_on_cpu = copy_states_to_cpu_in_float64([start, end])
    if rule == "greedy":
        orders = rules.find_unit_orders_greedily(start_on_cpu, end_on_cpu, wiring)
    elif rule == "rebasin":
        stream = make_torch_generator(0, "matching", *client_pair)
        identity = wiring.make_identity_orders()
        orders = rules.find_unit_orders_by_rebasin(
            start_on_cpu, end_on_cpu, wiring, stream, identity, lambda value: None
        )
    else:
        orders = find_unit_orders_by_activations(first, start, end, wiring, samples)
    matched = permute_units(end, wiring, orders)
    similarity = []
    for group in range(len(wiring.units)):
        cosines = compute_unit_cosines(start_on_cpu, end_on_cpu, wiring, orders, group)
        similarity.append(cosines.numpy())
    a, b = client_pair
    return MatchedPair(
        a=a,
        b=b,
        rule=rule,
        before=measure_interpolation_line(first, start, end, samples, labels),
        after=measure_interpolation_line(first, start, matched, samples, labels),
        similarity=similarity,
        orders=[order.numpy() for order in orders],
        setting=setting,
    )


def find_unit_orders_by_activations(
    network: Network, start: State, end: State, wiring: UnitWiring, samples: Samples
) -> rules.UnitOrders:
    """Find the orders of the units of `end` in which their activations correlate best with those of
    `start`.

    Activations are compared on noise of the shape of `samples`, as in the method's default.
    """
    draw = torch.rand if samples.dim() == 4 else torch.randn
    stream = make_torch_generator(0, "matching", "noise")
    noise = draw(NOISE_SAMPLES, *samples.shape[1:], generator=stream).to(samples)
    start_activations = record_unit_activations(network, start, wiring, noise)
    end_activations = record_unit_activations(network, end, wiring, noise)
    orders = []
    for first, second in zip(start_activations, end_activations, strict=True):
        orders.append(rules.find_best_permutation(rules.compute_unit_correlations(first, second)))
    return orders


def compute_unit_cosines(
    first: State,
    second: State,
    wiring: UnitWiring,
    orders_of_second: rules.UnitOrders,
    unit_group: int,
) -> UnitCosines:
    """Compute the cosines `[units, units]` of the incoming weights of the units of `unit_group`, of
    `first` (rows) and of `second` (columns). In all other groups the units of `second` are in
    `orders_of_second`.
    """
    orders_of_second = list(orders_of_second)
    orders_of_second[unit_group] = torch.arange(len(orders_of_second[unit_group]))
    second = permute_units(second, wiring, orders_of_second)
    count = wiring.units[unit_group]
    first_rows = []
    second_rows = []
    for name in wiring.list_learnt_tensor_names_of_group(unit_group):
        if (0, unit_group) in wiring.axes[name]:  # a tensor of weights that come into these units
            first_rows.append(move_units_to_rows(first[name], 0, count))
            second_rows.append(move_units_to_rows(second[name], 0, count))
    first_units = F.normalize(torch.cat(first_rows, 1), dim=1)
    second_units = F.normalize(torch.cat(second_rows, 1), dim=1)
    return first_units @ second_units.T


# -------------------------------------------------------------------------------------- their views
class TwoClientsView(LabView):
    """A view of two clients of the run, `a` and `b`, matched by `rule`."""

    def __init__(self) -> None:
        clients = [("client A", 0), ("client B", 1)]
        self.a = make_widget(
            widgets.Dropdown,
            label="From",
            help="The network at the left end. Its units stay where they are",
            width=150,
            options=clients,
        )
        self.b = make_widget(
            widgets.Dropdown,
            label="to",
            help="The network at the right end. Its units change places",
            width=150,
            options=clients,
            value=1,
        )
        self.rule = make_widget(
            widgets.Dropdown,
            label="Rule",
            help="How the units are matched",
            width=190,
            options=[(label, rule) for rule, label in RULES.items()],
        )

    def adapt(self, state: PanelState) -> None:
        """Offer the run's clients, and begin with two different ones."""
        clients = list_client_menu_options(state)
        set_menu_options_and_keep_choice(self.a, clients, 0)
        set_menu_options_and_keep_choice(self.b, clients, min(1, len(clients) - 1))

    def prepare(self, state: PanelState) -> ClientModels:
        return get_stored_client_models(state.outcome)

    def match_selected_clients(self, state: PanelState) -> MatchedPair:
        """Match the two clients that are chosen."""
        return match_networks_of_two_clients(
            state.outcome, self.a.value, self.b.value, self.rule.value
        )
