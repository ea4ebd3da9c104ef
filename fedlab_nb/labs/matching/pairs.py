"""Two clients of a run of matching: their networks, the straight line between them, their units side by side; and
`TwoClients`, what the views of two clients have in common.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import ipywidgets as widgets
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ...data import load
from ...errors import RunError
from ...methods.base import weighted_mean
from ...methods.matching import activations, copy_to_cpu, rules
from ...methods.matching.wiring import State, Wiring, find_wiring, permute_units, unit_rows
from ...models import Network, load_state, model_state
from ...models.state import copy_model
from ...panels import LabView, PanelState, made, offer
from ...plots.characters import own_name
from ...rng import generator
from ...training import ClientModels
from ..runs import clients_in, where

POINTS = 21  # of the line between two networks, both ends included
SAMPLES = 1000  # test images at most
RULES = {"rebasin": "Git Re-Basin", "greedy": "OT-Fusion", "activations": "activations"}


def clients_of(outcome: Any) -> ClientModels:
    """The clients' networks of a run; RunError where they were too large to stay with the model."""
    if outcome.model.clients is None:
        raise RunError(
            "These networks are too large to be stored with the run: choose fewer or smaller ones."
        )
    return outcome.model.clients


# ------------------------------------------------------------------------------------------------ the line
class Line(NamedTuple):
    """The straight line (1 - t) θ + t θ' between two networks, at t = 0, …, 1: `loss [T]` and `accuracy [T]` (0–1)."""

    loss: np.ndarray
    accuracy: np.ndarray

    @property
    def along(self) -> np.ndarray:
        """t `[T]`."""
        return np.linspace(0, 1, len(self.loss))

    @property
    def barrier(self) -> float:
        """How far the loss rises, at most, above the straight line between its two ends: 0 or more."""
        straight = (1 - self.along) * self.loss[0] + self.along * self.loss[-1]
        return float(max(0.0, (self.loss - straight).max()))

    @property
    def middle(self) -> float:
        """Accuracy of the plain average of the two, 0–1."""
        return float(self.accuracy[len(self.accuracy) // 2])


@torch.no_grad()
def line(
    network: Network, one: State, other: State, x: Tensor, y: Tensor, points: int = POINTS
) -> Line:
    """The line between the states `one` and `other` of networks like `network`, on samples `x [N, ...]`, `y [N]`."""
    walker, losses, accuracies = copy_model(network).eval(), [], []
    for t in np.linspace(0, 1, points).tolist():
        load_state(walker, weighted_mean([one, other], [1 - t, t]))
        logits = walker(x)
        losses.append(F.cross_entropy(logits, y))
        accuracies.append((logits.argmax(1) == y).double().mean())
    return Line(*(torch.stack(values).double().cpu().numpy() for values in (losses, accuracies)))


# ------------------------------------------------------------------------------------------------ two clients
class Pair(NamedTuple):
    """Clients `a` and `b`, b's units matched with a's by `rule`.

    before, after: the line between them, with b's units as they stand and in the order that was found
    similarity:    for each layer the cosines `[units, units]` of a's units (rows) with
                   b's as they stand (columns), of the weights that come in, earlier layers being matched
    orders:        for each layer `[units]`, which unit of b is matched with each of a's;   setting: in words
    """

    a: int
    b: int
    rule: str
    before: Line
    after: Line
    similarity: list[np.ndarray]
    orders: list[np.ndarray]
    setting: str = ""

    @property
    def names(self) -> list[str]:
        """What the two are called."""
        return [own_name(k, self.setting) for k in (self.a, self.b)]


def pair_of(outcome: Any, a: int, b: int, rule: str) -> Pair:
    """Clients `a` and `b` of a run, matched by `rule` (of RULES), on its test images."""
    clients, data = clients_of(outcome), load(outcome.settings.dataset)
    first = clients.module(a)
    like = next(first.parameters())
    x, y = data.x_test[:SAMPLES].to(like.device, like.dtype), data.y_test[:SAMPLES].to(like.device)
    return pair(first, clients.module(b), (a, b), rule, x, y, where(outcome))


def pair(
    first: Network,
    second: Network,
    numbers: tuple[int, int],
    rule: str,
    x: Tensor,
    y: Tensor,
    setting: str = "",
) -> Pair:
    """The Pair of two networks with these client numbers, looked at on samples `x [N, ...]`, `y [N]`.

    Activations are compared on noise, as in the method's default.
    """
    wiring = find_wiring(first)
    states = [model_state(first), model_state(second)]
    one, other = copy_to_cpu(states)
    if rule == "greedy":
        orders = rules.greedy(one, other, wiring)
    elif rule == "rebasin":
        stream = generator(0, "matching", *numbers)
        orders = rules.rebasin(one, other, wiring, stream, wiring.identity(), lambda value: None)
    else:
        draw = torch.rand if x.dim() == 4 else torch.randn
        noise = draw(500, *x.shape[1:], generator=generator(0, "matching", "noise")).to(x)
        ours, theirs = (activations(first, state, wiring, noise) for state in states)
        orders = [
            rules.best_order(rules.correlation(p, q)) for p, q in zip(ours, theirs, strict=True)
        ]
    matched = permute_units(states[1], wiring, orders)
    lines = [line(first, states[0], end, x, y) for end in (states[1], matched)]
    likeness = [cosines(one, other, wiring, orders, g).numpy() for g in range(len(wiring.units))]
    return Pair(*numbers, rule, *lines, likeness, [order.numpy() for order in orders], setting)


def cosines(
    one: State, other: State, wiring: Wiring, orders: Sequence[Tensor], group: int
) -> Tensor:
    """`[units, units]`: of the numbers that come into units of `group`; those of `other` stand as they are there, and
    in `orders` everywhere else."""
    others = [torch.arange(len(o)) if g == group else o for g, o in enumerate(orders)]
    turned, ours, theirs = permute_units(other, wiring, others), [], []
    for name in wiring.tensors_of_group(group):
        if (0, group) in wiring.axes[name]:
            ours.append(unit_rows(one[name], 0, wiring.units[group]))
            theirs.append(unit_rows(turned[name], 0, wiring.units[group]))
    return F.normalize(torch.cat(ours, 1), dim=1) @ F.normalize(torch.cat(theirs, 1), dim=1).T


# ------------------------------------------------------------------------------------------------ their views
class TwoClients(LabView):
    """A view of two clients of the run, `a` and `b`, matched by `rule`."""

    def __init__(self) -> None:
        help, rules = (
            "The network at the {} end. Its units {}",
            [(words, rule) for rule, words in RULES.items()],
        )
        menu = {"options": [("client A", 0), ("client B", 1)], "width": 150}
        self.a = made(
            widgets.Dropdown, label="From", help=help.format("left", "stay where they are"), **menu
        )
        self.b = made(
            widgets.Dropdown,
            label="to",
            help=help.format("right", "change places"),
            value=1,
            **menu,
        )
        self.rule = made(
            widgets.Dropdown,
            label="Rule",
            help="How the units are matched",
            width=190,
            options=rules,
        )

    def adapt(self, state: PanelState) -> None:
        """Fit both menus to the run's clients; two different ones at the start."""
        clients = clients_in(state)
        offer(self.a, clients, 0)
        offer(self.b, clients, min(1, len(clients) - 1))

    def prepare(self, state: PanelState) -> ClientModels:
        return clients_of(state.outcome)

    def pair(self, state: PanelState) -> Pair:
        return pair_of(state.outcome, self.a.value, self.b.value, self.rule.value)
