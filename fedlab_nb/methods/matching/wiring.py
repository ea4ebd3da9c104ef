"""Which numbers of a network belong to which hidden units, so that the units can be put in another order.

`find_wiring(network)` walks through the layers and collects *groups*. A group is every place that one order of units
changes:

- the rows and the bias of the layer that computes the units;
- the batch norm behind it;
- the columns of each layer whose inputs the units are.

In a residual network the branches that are added share one group. Inputs and classes keep their order.

`permute_units(state, wiring, orders)` puts the units of each group g into another order: unit orders[g][i] becomes
unit i. A channel of a convolution that is flattened in front of a linear layer has H·W columns there. They move
together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ...errors import UsageError
from ...models.network import Network, Normalise
from ...models.resnet import PreActivated, Residual

State = Mapping[str, Tensor]
FIXED = 0  # the group of units that cannot move: inputs and classes
POINTWISE = (
    nn.ReLU,
    nn.ReLU6,
    nn.LeakyReLU,
    nn.ELU,
    nn.GELU,
    nn.SiLU,
    nn.Tanh,
    nn.Sigmoid,
    nn.Hardswish,
)
# Layers that keep the units as they are.
PASSING = (
    nn.Identity,
    nn.Dropout,
    nn.Flatten,
    nn.MaxPool2d,
    nn.AvgPool2d,
    nn.AdaptiveAvgPool2d,
    nn.AdaptiveMaxPool2d,
    nn.Unflatten,
    Normalise,
)


@dataclass(frozen=True)
class Wiring:
    """The groups of a network, in the order in which an input meets them; group g is number g in each tuple.

    layers:             name of the layer that computes the units
    units:              how many there are
    axes:               name of a tensor of the state -> its (dimension, group) pairs
    learnt:             names of those tensors that training sets (no running statistics)
    activation_modules: name of the module whose outputs are the units' activations
    """

    layers: tuple[str, ...]
    units: tuple[int, ...]
    axes: Mapping[str, tuple[tuple[int, int], ...]]
    learnt: frozenset[str]
    activation_modules: tuple[str, ...]

    def make_identity_orders(self) -> list[Tensor]:
        """The order that changes nothing, for every group."""
        return [torch.arange(n) for n in self.units]

    def list_group_tensors(self, group: int) -> list[str]:
        """The learnt tensors that an order of `group` changes."""
        names = []
        for name, axes in self.axes.items():
            if name in self.learnt and group in [g for _, g in axes]:
                names.append(name)
        return names


def find_wiring(network: Network) -> Wiring:
    """The wiring of `network`; UsageError for a layer whose units cannot be followed."""
    walk = _Walk()
    last = walk.follow_module(network.body, "body", FIXED)
    walk.record_inputs(network.classifier, "classifier", last)
    roots = sorted({walk.find_root(group) for group in range(1, len(walk.parents))} - {FIXED})
    numbers = {root: number for number, root in enumerate(roots)}
    axes = {}
    learnt = set()
    for name, pairs in walk.axes.items():
        movable = []
        for dim, group in pairs:
            root = walk.find_root(group)
            if root != FIXED:
                movable.append((dim, numbers[root]))
        if movable:
            axes[name] = tuple(movable)
        if not name.rpartition(".")[2].startswith("running"):
            learnt.add(name)
    last_module = {}  # of each group; a later activation takes the place of an earlier one
    for group, name in walk.activation_modules:
        last_module[walk.find_root(group)] = name
    return Wiring(
        layers=tuple(walk.names[root] for root in roots),
        units=tuple(walk.sizes[root] for root in roots),
        axes=axes,
        learnt=frozenset(learnt),
        activation_modules=tuple(last_module[root] for root in roots),
    )


class _Walk:
    """The path of an input through a network.

    Groups are numbers. `parents` joins groups that turn out to be one: a union-find forest.
    """

    def __init__(self) -> None:
        self.parents = [FIXED]
        self.sizes = [0]
        self.names = [""]
        self.axes: dict[str, list[tuple[int, int]]] = {}
        self.activation_modules: list[tuple[int, str]] = []

    def find_root(self, group: int) -> int:
        """The number that all groups joined with `group` share."""
        while self.parents[group] != group:
            group = self.parents[group]
        return group

    def join_groups(self, group: int, other: int) -> int:
        """Make one group of two; returns its root."""
        first, second = sorted((self.find_root(group), self.find_root(other)))
        self.parents[second] = first
        return first

    def follow_module(self, module: Any, name: str, group: int) -> int:
        """The group of the outputs of `module`, whose inputs are units of `group`."""
        if isinstance(module, nn.Sequential):
            for child_name, child in module.named_children():
                group = self.follow_module(child, f"{name}.{child_name}", group)
            return group
        if isinstance(module, Residual):
            main = self.follow_module(module.main, f"{name}.main", group)
            shortcut = self.follow_module(module.shortcut, f"{name}.shortcut", group)
            return self.follow_module(module.relu, f"{name}.relu", self.join_groups(main, shortcut))
        if isinstance(module, PreActivated):
            return self._follow_pre_activated(module, name, group)
        if isinstance(module, nn.Linear) or (isinstance(module, nn.Conv2d) and module.groups == 1):
            self.record_inputs(module, name, group)
            return self._add_group(module, name)
        if isinstance(module, (nn.BatchNorm2d, nn.GroupNorm)):
            return self._follow_normalisation(module, name, group)
        if isinstance(module, POINTWISE):
            self.activation_modules.append((group, name))
            return group
        if isinstance(module, PASSING):
            return group
        kind = type(module).__name__
        raise UsageError(
            f"Matching cannot follow the units through layer {name!r} ({kind}); try mlp or resnet8."
        )

    def _follow_pre_activated(self, module: PreActivated, name: str, group: int) -> int:
        active = self.follow_module(module.before, f"{name}.before", group)
        main = self.follow_module(module.main, f"{name}.main", active)
        shortcut = group
        if not module.keeps_shape:
            shortcut = self.follow_module(module.shortcut, f"{name}.shortcut", active)
        group = self.join_groups(main, shortcut)
        self.activation_modules.append((group, name))
        return group

    def _follow_normalisation(
        self, module: nn.BatchNorm2d | nn.GroupNorm, name: str, group: int
    ) -> int:
        if isinstance(module, nn.GroupNorm) and module.num_groups not in (1, module.num_channels):
            group = self.join_groups(FIXED, group)  # its channels share their statistics in groups
        for tensor in ("weight", "bias", "running_mean", "running_var"):
            if getattr(module, tensor, None) is not None:
                self.axes[f"{name}.{tensor}"] = [(0, group)]
        self.activation_modules.append((group, name))
        return group

    def record_inputs(self, layer: Any, name: str, group: int) -> None:
        """Note that the inputs of `layer`, its columns, are the units of `group`."""
        self.axes.setdefault(f"{name}.weight", []).append((1, group))

    def _add_group(self, layer: Any, name: str) -> int:
        """Add a group: the units that `layer` computes."""
        group = len(self.parents)
        self.parents.append(group)
        self.sizes.append(len(layer.weight))
        self.names.append(name)
        self.axes[f"{name}.weight"].append((0, group))
        if layer.bias is not None:
            self.axes[f"{name}.bias"] = [(0, group)]
        self.activation_modules.append((group, name))
        return group


def flatten_units(tensor: Tensor, dim: int, units: int) -> Tensor:
    """`[units, rest]`: all numbers of each unit, where the units lie along `dim`."""
    by_unit = tensor.unflatten(dim, (units, tensor.shape[dim] // units))
    return by_unit.movedim(dim, 0).reshape(units, -1)


def permute_units(state: State, wiring: Wiring, orders: Sequence[Tensor]) -> dict[str, Tensor]:
    """`state` with its units in other `orders`, int64 `[units]` for each group; the network's function is the same."""
    return {name: permute_tensor(tensor, wiring, name, orders) for name, tensor in state.items()}


def permute_tensor(tensor: Tensor, wiring: Wiring, name: str, orders: Sequence[Tensor]) -> Tensor:
    """The tensor `name` of a state, its units in `orders`."""
    for dim, group in wiring.axes.get(name, ()):
        order = orders[group].to(tensor.device)
        by_unit = tensor.unflatten(dim, (len(order), tensor.shape[dim] // len(order)))
        tensor = by_unit.index_select(dim, order).flatten(dim, dim + 1)
    return tensor
