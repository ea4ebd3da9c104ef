"""Neuron matching: put every client's hidden units into the same order, then average.

Units of a hidden layer have no names: in another order, with the weights that read them in that order, too, they
compute the same function. So two networks that have learnt the same can differ in every weight, and their average mixes
units that have nothing in common. The server finds for each client k the orders P_k in which its units fit those of a
reference, the client with the most samples, and averages θ̄ = Σ_k w_k P_k(θ_k). No data. Rules:

- greedy: OT-Fusion (Singh & Jaggi, NeurIPS 2020), layer by layer by the weights that come in. With equal widths and
  the same mass for every unit their optimal transport is an assignment of one unit to one; widths are equal here.
- rebasin: Git Re-Basin (Ainsworth, Hayase & Srinivasa, ICLR 2023), weight matching, which looks at the weights that
  come in and go out, layer after layer until nothing gains.
- activations: by the correlation of the units' activations on the same inputs (`on`: public samples, or noise).
- pfnm: PFNM (Yurochkin et al., ICML 2019), for one hidden layer, at the end of `rules.py`. It needs C class counts a
  client, and its network can have more hidden units than a client's.

`sweeps`: afterwards each client in turn is matched with the average of the others, as in Git Re-Basin's MergeMany.

Departures: the papers match two networks at a time, or go on from the average; here all are matched with one client
first. Running statistics of batch norm move with their units and are averaged, and not estimated anew (REPAIR, which
needs data). FedMA, PFNM layer by layer with training in between, takes a round for each layer: `fedma.py`.

What to expect: with different initial models and little skew, nearly all of what the plain average loses comes back.
With one common initial model the units still have their places. And under strong label skew matching gains nothing:
units that fit each other do not make clients agree on classes that they never saw.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from ...errors import UsageError
from ...models import Network
from ...models.state import ModelState, copy_model
from ...tensor_types import Samples
from ...training import ClientModels
from ..base import (
    ClientWeighting,
    Context,
    GlobalModel,
    Method,
    Progress,
    Steps,
    knob,
    make_client_weights_knob,
    register,
    weighted_mean,
)
from ..context import ClientIndex
from ..parts.frozen_ensemble import send_class_counts_and_compute_class_shares
from ..parts.images import choose_public_samples
from ..traffic import FederationSizes, RunBytesUpPlusDown
from . import fedma, rules
from .rules import MatchedModel, MatchingReport, has_one_hidden_layer, merge_by_matching_neurons
from .wiring import State, UnitWiring, find_unit_wiring, permute_units

ClientsMatched = int  # of clients, over all sweeps
ActivationsByGroup = list[Tensor]  # for each group of units [samples, units]

# -------------------------------------------------------------------------------------------------------------- matcher
# The server's matching of networks of one width: each client with the reference, then with the mean of the others.
#
# A rule of `rules.py` decides which units fit; `wiring.py` knows which of a network's numbers move with a unit.

SAMPLES = 500  # of public samples or noise, on which activations are compared


MatchingRule = Literal["rebasin", "greedy", "activations", "pfnm"]
RULES: tuple[MatchingRule, ...] = get_args(MatchingRule)


class Matcher:
    """One server's matching by `rule`: `orders` of every client after each of `match_all_clients_in_place`. `on`: see
    `Matching`."""

    def __init__(
        self,
        ctx: Context,
        uploaded: ClientModels,
        rule: MatchingRule,
        activations_on: Literal["public", "noise"],
    ) -> None:
        self.rule = rule
        self.modules = uploaded.modules
        self.reference = ctx.largest_client
        self.wiring = find_unit_wiring(uploaded.module(0))
        self.states = copy_states_to_cpu_in_float64(uploaded.states())
        self.orders = [self.wiring.make_identity_orders() for _ in self.states]
        self.traces: list[list[float]] = [[] for _ in self.states]
        self.stream = ctx.generator("matching")
        self.inputs = None
        if rule == "activations":
            source = "held-out" if activations_on == "public" else "noise"
            self.inputs = choose_public_samples(ctx, source, SAMPLES)

    def match_all_clients_in_place(
        self, client_weights: Sequence[float], sweeps: int
    ) -> Iterator[ClientsMatched]:
        """Match every client with the reference; then each with the average of the others, sweep by sweep.

        Yields how many are done.
        """
        reference = self.states[self.reference]
        count = len(self.states)
        for k in range(count):
            if k != self.reference:
                self.orders[k] = self._find_unit_orders_of_client(reference, k)
            yield k + 1
        for sweep in range(1, sweeps + 1):
            for k in range(count):
                others = [j for j in range(count) if j != k]
                if others:
                    states = []
                    for j in others:
                        states.append(permute_units(self.states[j], self.wiring, self.orders[j]))
                    average = weighted_mean(states, [client_weights[j] for j in others])
                    self.orders[k] = self._find_unit_orders_of_client(average, k)
                yield sweep * count + k + 1

    def _find_unit_orders_of_client(
        self, reference_state: State, client: ClientIndex
    ) -> rules.UnitOrders:
        if self.rule == "greedy":
            return rules.find_unit_orders_greedily(
                reference_state, self.states[client], self.wiring
            )
        if self.rule == "rebasin":
            trace: list[float] = []
            orders = rules.find_unit_orders_by_rebasin(
                reference_state,
                self.states[client],
                self.wiring,
                self.stream,
                self.orders[client],
                trace.append,
            )
            if not self.traces[
                client
            ]:  # of the first time alone: later ones have another reference
                self.traces[client] = trace
            return orders
        assert self.inputs is not None  # the rule is "activations"
        module = self.modules[client]
        reference_activations = record_unit_activations(
            module, reference_state, self.wiring, self.inputs
        )
        client_activations = record_unit_activations(
            module, self.states[client], self.wiring, self.inputs
        )
        orders = []
        for a, b in zip(reference_activations, client_activations, strict=True):
            orders.append(rules.find_best_permutation(rules.compute_unit_correlations(a, b)))
        return orders

    def permute_states(self, states: Sequence[State]) -> list[ModelState]:
        """The clients' states with their units in these orders."""
        permuted = []
        for state, order in zip(states, self.orders, strict=True):
            permuted.append(permute_units(state, self.wiring, order))
        return permuted

    def make_report(self) -> MatchingReport:
        identity = torch.cat(self.wiring.make_identity_orders()).numpy()
        orders = []
        moved = []
        distances = []
        reference = self.states[self.reference]
        for state, order in zip(self.states, self.orders, strict=True):
            units = torch.cat(order).numpy()
            orders.append(units)
            moved.append(float((units != identity).mean()))
            distance_before = compute_euclidean_state_distance(reference, state)
            distance_after = compute_euclidean_state_distance(
                reference, permute_units(state, self.wiring, order)
            )
            distances.append([distance_before, distance_after])
        return MatchingReport(
            rule=self.rule,
            layers=list(self.wiring.layers),
            units=list(self.wiring.units),
            orders=np.stack(orders),
            reference=self.reference,
            moved=moved,
            distances=distances,
            objective=self.traces if self.rule == "rebasin" else None,
            neurons=sum(self.wiring.units),
        )


def copy_states_to_cpu_in_float64(states: Sequence[State]) -> list[ModelState]:
    """The states in float64 on the CPU."""
    copies = []
    for state in states:
        copies.append({name: tensor.cpu().double() for name, tensor in state.items()})
    return copies


@torch.no_grad()
def record_unit_activations(
    network: Network, state: State, wiring: UnitWiring, samples: Samples
) -> ActivationsByGroup:
    """`[samples, units]` for each group, of a network like `network` with the weights `state`.

    For convolutions every position is a sample.
    """
    twin = copy_model(network).eval()
    for name, tensor in twin.state_dict().items():
        if tensor.is_floating_point():
            tensor.copy_(state[name])
    outputs: dict[str, Tensor] = {}

    def make_hook(name: str) -> Any:
        def hook(layer: nn.Module, inputs: Any, output: Tensor) -> None:
            outputs[name] = output

        return hook

    for name in wiring.activation_modules:
        twin.get_submodule(name).register_forward_hook(make_hook(name))
    twin(samples)
    return [outputs[name].transpose(0, 1).flatten(1).T for name in wiring.activation_modules]


def compute_euclidean_state_distance(first_state: State, second_state: State) -> float:
    """‖θ - θ'‖ of two states."""
    squares = sum((first_state[name] - second_state[name]).square().sum() for name in first_state)
    return float(squares) ** 0.5


@register(
    "matching",
    title="Neuron matching",
    group="Average weights",
    paper="Ainsworth et al., ICLR 2023; Singh & Jaggi, NeurIPS 2020; Yurochkin et al., ICML 2019",
    needs=["one architecture"],
    leaks="each client's model and sample count (pfnm: class counts too)",
    forgets="the other clients' models are matched and averaged again",
)
class Matching(Method):
    """Put the clients' hidden units into the same order, then average the weights."""

    rule: MatchingRule = knob("rebasin", "Rule", options=RULES)
    sweeps: int = knob(3, "Sweeps", low=0, high=20)
    weights: ClientWeighting = make_client_weights_knob("w_k")
    on: Literal["public", "noise"] = knob("noise", "Activations on", options=("public", "noise"))
    sigma: float = knob(1.0, "Noise of neurons", symbol="σ", low=1e-3, high=1e3, log=True)
    sigma0: float = knob(1.0, "Spread of neurons", symbol="σ_0", low=1e-3, high=1e3, log=True)
    gamma: float = knob(1.0, "Mass", symbol="γ", low=1e-6, high=1e9, log=True)

    report = MatchingReport

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        return sizes.one_shot_bytes.as_estimate if self.rule == "pfnm" else sizes.one_shot_bytes

    def refuse(self, ctx: Context) -> None:
        network = ctx.initial_model()
        find_unit_wiring(network)  # refuses layers that it cannot follow
        if self.rule == "pfnm" and not has_one_hidden_layer(network):
            raise UsageError(
                "PFNM matches networks with one hidden layer;"
                " set model=mlp1, or choose another rule."
            )
        if self.rule == "activations" and self.on == "public" and not ctx.has("public"):
            raise UsageError(
                "Activations need public samples, but there are none; set public=0.1 or on=noise."
            )

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        # Clients: train alone and upload once (pfnm: and count their labels).
        uploaded = yield from ctx.one_upload()
        shares = send_class_counts_and_compute_class_shares(ctx) if self.rule == "pfnm" else None
        # Server: match, then average.
        with ctx.server():
            sizes = ctx.sizes if self.weights == "samples" else [1] * ctx.clients_count
            average = ctx.new_model(weighted_mean(uploaded.states(), sizes))
            if shares is not None:
                module, report = merge_by_matching_neurons(
                    uploaded, shares, self.sigma, self.sigma0, self.gamma, self.sweeps
                )
            else:
                matcher = Matcher(ctx, uploaded, self.rule, self.on)
                for done in matcher.match_all_clients_in_place(sizes, self.sweeps):
                    yield Progress("matching", done, ctx.clients_count * (1 + self.sweeps))
                permuted = matcher.permute_states(uploaded.states())
                module = ctx.new_model(weighted_mean(permuted, sizes))
                report = matcher.make_report()
            return MatchedModel(module, report, average, uploaded)
