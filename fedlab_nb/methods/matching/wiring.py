"""Which numbers of a network belong to which hidden units, so that the units can be put in another order.

`find_unit_wiring(network)` walks through the layers and collects *groups*. A group is every
place that one order of units changes:

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

import torch
from torch import Tensor, nn

from ...errors import UsageError
from ...models.network import Network, Normalise
from ...models.resnet import PreActivated, Residual
from ...models.state import ModelState

UnitGroup = int  # number of a group of units that are permuted together
Permutation = Tensor  # int64 [units]: which unit stands at each place
UnitRows = Tensor  # [units, numbers of a unit]

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
class UnitWiring:
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

    def make_identity_orders(self) -> list[Permutation]:
        """The order that changes nothing, for every group."""
        return [torch.arange(n) for n in self.units]

    def list_learnt_tensor_names_of_group(self, group: UnitGroup) -> list[str]:
        """The learnt tensors that an order of `group` changes."""
        names = []
        for name, axes in self.axes.items():
            if name in self.learnt and group in [g for _, g in axes]:
                names.append(name)
        return names


def find_unit_wiring(network: Network) -> UnitWiring:
    """The wiring of `network`; UsageError for a layer whose units cannot be followed."""
    walk = _WiringTracer()
    last = walk.trace_module(network.body, "body", FIXED)
    walk.record_inputs(network.classifier, "classifier", last)
    roots = sorted(
        {walk.find_merged_group(group) for group in range(1, len(walk.parents))} - {FIXED}
    )
    numbers = {root: number for number, root in enumerate(roots)}
    axes = {}
    learnt = set()
    for name, pairs in walk.axes.items():
        movable = []
        for dim, group in pairs:
            root = walk.find_merged_group(group)
            if root != FIXED:
                movable.append((dim, numbers[root]))
        if movable:
            axes[name] = tuple(movable)
        if not name.rpartition(".")[2].startswith("running"):
            learnt.add(name)
    last_module = {}  # of each group; a later activation takes the place of an earlier one
    for group, name in walk.activation_modules:
        last_module[walk.find_merged_group(group)] = name
    return UnitWiring(
        layers=tuple(walk.names[root] for root in roots),
        units=tuple(walk.sizes[root] for root in roots),
        axes=axes,
        learnt=frozenset(learnt),
        activation_modules=tuple(last_module[root] for root in roots),
    )


class _WiringTracer:
    """The path of an input through a network.

    Groups are numbers. `parents` joins groups that turn out to be one: a union-find forest.
    """

    def __init__(self) -> None:
        self.parents = [FIXED]
        self.sizes = [0]
        self.names = [""]
        self.axes: dict[str, list[tuple[int, int]]] = {}
        self.activation_modules: list[tuple[int, str]] = []

    def find_merged_group(self, group: UnitGroup) -> UnitGroup:
        """The number that all groups joined with `group` share."""
        while self.parents[group] != group:
            group = self.parents[group]
        return group

    def merge_groups(self, group: UnitGroup, other_group: UnitGroup) -> UnitGroup:
        """Make one group of two; returns its root."""
        first, second = sorted((self.find_merged_group(group), self.find_merged_group(other_group)))
        self.parents[second] = first
        return first

    def trace_module(
        self, module: nn.Module, module_name: str, input_group: UnitGroup
    ) -> UnitGroup:
        """The group of the outputs of `module`, whose inputs are units of `input_group`."""
        if isinstance(module, nn.Sequential):
            for child_name, child in module.named_children():
                input_group = self.trace_module(child, f"{module_name}.{child_name}", input_group)
            return input_group
        if isinstance(module, Residual):
            main = self.trace_module(module.main, f"{module_name}.main", input_group)
            shortcut = self.trace_module(module.shortcut, f"{module_name}.shortcut", input_group)
            return self.trace_module(
                module.relu, f"{module_name}.relu", self.merge_groups(main, shortcut)
            )
        if isinstance(module, PreActivated):
            return self._trace_pre_activated(module, module_name, input_group)
        if isinstance(module, nn.Linear) or (isinstance(module, nn.Conv2d) and module.groups == 1):
            self.record_inputs(module, module_name, input_group)
            return self._add_group(module, module_name)
        if isinstance(module, (nn.BatchNorm2d, nn.GroupNorm)):
            return self._trace_normalisation(module, module_name, input_group)
        if isinstance(module, POINTWISE):
            self.activation_modules.append((input_group, module_name))
            return input_group
        if isinstance(module, PASSING):
            return input_group
        kind = type(module).__name__
        raise UsageError(
            f"Matching cannot follow the units through layer {module_name!r} "
            f"({kind}); try mlp or resnet8."
        )

    def _trace_pre_activated(
        self, module: PreActivated, module_name: str, input_group: UnitGroup
    ) -> UnitGroup:
        active = self.trace_module(module.before, f"{module_name}.before", input_group)
        main = self.trace_module(module.main, f"{module_name}.main", active)
        shortcut = input_group
        if not module.keeps_shape:
            shortcut = self.trace_module(module.shortcut, f"{module_name}.shortcut", active)
        input_group = self.merge_groups(main, shortcut)
        self.activation_modules.append((input_group, module_name))
        return input_group

    def _trace_normalisation(
        self, module: nn.BatchNorm2d | nn.GroupNorm, module_name: str, input_group: UnitGroup
    ) -> UnitGroup:
        if isinstance(module, nn.GroupNorm) and module.num_groups not in (1, module.num_channels):
            input_group = self.merge_groups(
                FIXED, input_group
            )  # its channels share their statistics in groups
        for tensor in ("weight", "bias", "running_mean", "running_var"):
            if getattr(module, tensor, None) is not None:
                self.axes[f"{module_name}.{tensor}"] = [(0, input_group)]
        self.activation_modules.append((input_group, module_name))
        return input_group

    def record_inputs(
        self, layer: nn.Linear | nn.Conv2d, layer_name: str, input_group: UnitGroup
    ) -> None:
        """Note that the inputs of `layer`, its columns, are the units of `input_group`."""
        self.axes.setdefault(f"{layer_name}.weight", []).append((1, input_group))

    def _add_group(self, layer: nn.Linear | nn.Conv2d, layer_name: str) -> UnitGroup:
        """Add a group: the units that `layer` computes."""
        group = len(self.parents)
        self.parents.append(group)
        self.sizes.append(len(layer.weight))
        self.names.append(layer_name)
        self.axes[f"{layer_name}.weight"].append((0, group))
        if layer.bias is not None:
            self.axes[f"{layer_name}.bias"] = [(0, group)]
        self.activation_modules.append((group, layer_name))
        return group


def move_units_to_rows(tensor: Tensor, unit_dim: int, unit_count: int) -> UnitRows:
    """`[unit_count, rest]`: all numbers of each unit, where the units lie along `unit_dim`."""
    by_unit = tensor.unflatten(unit_dim, (unit_count, tensor.shape[unit_dim] // unit_count))
    return by_unit.movedim(unit_dim, 0).reshape(unit_count, -1)


def permute_units(state: State, wiring: UnitWiring, orders: Sequence[Permutation]) -> ModelState:
    """`state` with its units in other `orders`, int64 `[units]` for each group; the network's function is the same."""
    return {
        name: permute_units_of_tensor(tensor, wiring, name, orders)
        for name, tensor in state.items()
    }


def permute_units_of_tensor(
    tensor: Tensor, wiring: UnitWiring, tensor_name: str, orders: Sequence[Permutation]
) -> Tensor:
    """The tensor `tensor_name` of a state, its units in `orders`."""
    for dim, group in wiring.axes.get(tensor_name, ()):
        order = orders[group].to(tensor.device)
        by_unit = tensor.unflatten(dim, (len(order), tensor.shape[dim] // len(order)))
        tensor = by_unit.index_select(dim, order).flatten(dim, dim + 1)
    return tensor
