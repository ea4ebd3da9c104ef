"""Which numbers of a network belong to which hidden units, so that the units can be put in another order.

`wiring_of(network)` walks through the layers. All places that one order of units touches are one *group*: the rows of
the layer that makes the units, its bias, the batch norm behind it, and the columns of the layers that read them. In a
residual network the branches that are added share one group. Inputs and classes keep their order.

`permuted(state, wiring, orders)` puts the units into other orders: unit i becomes what unit orders[g][i] was. A
channel of a convolution that a linear layer reads after flattening has H·W columns there, which move together.
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
FIXED = 0  # the group of what cannot move: inputs and classes
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
PASSING = (
    nn.Identity, nn.Dropout, nn.Flatten, nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d,
    nn.Unflatten, Normalise,
)  # fmt: skip


@dataclass(frozen=True)
class Wiring:
    """The groups of a network, in the order in which an input meets them; group g is number g in each tuple.

    layers:  name of the layer that makes the units;   units: how many there are
    axes:    name of a tensor of the state -> its (dimension, group) pairs
    learnt:  names of those tensors that training sets (no running statistics)
    reads:   name of the module whose outputs are the units' activations
    """

    layers: tuple[str, ...]
    units: tuple[int, ...]
    axes: Mapping[str, tuple[tuple[int, int], ...]]
    learnt: frozenset[str]
    reads: tuple[str, ...]

    def identity(self) -> list[Tensor]:
        """The order in which the units stand, for every group."""
        return [torch.arange(n) for n in self.units]

    def touched(self, group: int) -> list[str]:
        """The learnt tensors that an order of `group` changes."""
        return [
            name
            for name, axes in self.axes.items()
            if name in self.learnt and group in (g for _, g in axes)
        ]


def wiring_of(network: Network) -> Wiring:
    """The wiring of `network`; UsageError for a layer whose units cannot be followed."""
    walk = _Walk()
    last = walk.through(network.body, "body", FIXED)
    walk.columns(network.classifier, "classifier", last)
    roots = sorted({walk.root(g) for g in range(1, len(walk.parents))} - {FIXED})
    number = {root: at for at, root in enumerate(roots)}
    roots_of = {
        name: [(dim, walk.root(g)) for dim, g in pairs] for name, pairs in walk.axes.items()
    }
    axes = {
        name: tuple((d, number[g]) for d, g in pairs if g != FIXED)
        for name, pairs in roots_of.items()
    }
    reads = {walk.root(g): name for g, name in walk.reads}  # the last one counts
    return Wiring(
        layers=tuple(walk.names[root] for root in roots),
        units=tuple(walk.sizes[root] for root in roots),
        axes={name: pairs for name, pairs in axes.items() if pairs},
        learnt=frozenset(
            name for name in axes if not name.rpartition(".")[2].startswith("running")
        ),
        reads=tuple(reads[root] for root in roots),
    )


class _Walk:
    """The way of an input through a network. Groups are numbers; `parents` says which have turned out to be one."""

    def __init__(self) -> None:
        self.parents, self.sizes, self.names = [FIXED], [0], [""]
        self.axes: dict[str, list[tuple[int, int]]] = {}
        self.reads: list[tuple[int, str]] = []

    def root(self, group: int) -> int:
        while self.parents[group] != group:
            group = self.parents[group]
        return group

    def joined(self, one: int, other: int) -> int:
        first, second = sorted((self.root(one), self.root(other)))
        self.parents[second] = first
        return first

    def through(self, module: Any, name: str, group: int) -> int:
        """The group of the outputs of `module`, whose inputs are units of `group`."""
        if isinstance(module, nn.Sequential):
            for own, child in module.named_children():
                group = self.through(child, f"{name}.{own}", group)
        elif isinstance(module, Residual):
            main, shortcut = (
                self.through(getattr(module, p), f"{name}.{p}", group) for p in ("main", "shortcut")
            )
            group = self.through(module.relu, f"{name}.relu", self.joined(main, shortcut))
        elif isinstance(module, PreActivated):
            active = self.through(module.before, f"{name}.before", group)
            main = self.through(module.main, f"{name}.main", active)
            past = (
                group
                if module.keeps_shape
                else self.through(module.shortcut, f"{name}.shortcut", active)
            )
            group = self.joined(main, past)
            self.reads.append((group, name))
        elif isinstance(module, nn.Linear) or (
            isinstance(module, nn.Conv2d) and module.groups == 1
        ):
            self.columns(module, name, group)
            group = self._made(module, name)
        elif isinstance(module, (nn.BatchNorm2d, nn.GroupNorm)):
            if isinstance(module, nn.GroupNorm) and module.num_groups not in (
                1,
                module.num_channels,
            ):
                group = self.joined(FIXED, group)  # its channels share their statistics in groups
            for part in ("weight", "bias", "running_mean", "running_var"):
                if getattr(module, part, None) is not None:
                    self.axes[f"{name}.{part}"] = [(0, group)]
            self.reads.append((group, name))
        elif isinstance(module, POINTWISE):
            self.reads.append((group, name))
        elif not isinstance(module, PASSING):
            kind = type(module).__name__
            raise UsageError(
                f"Matching cannot follow the units through layer {name!r} ({kind}); try mlp or resnet8."
            )
        return group

    def columns(self, layer: Any, name: str, group: int) -> None:
        """`layer` reads units of `group`."""
        self.axes.setdefault(f"{name}.weight", []).append((1, group))

    def _made(self, layer: Any, name: str) -> int:
        self.parents.append(len(self.parents))
        self.sizes.append(len(layer.weight))
        self.names.append(name)
        group = len(self.parents) - 1
        self.axes[f"{name}.weight"].append((0, group))
        if layer.bias is not None:
            self.axes[f"{name}.bias"] = [(0, group)]
        self.reads.append((group, name))
        return group


def rows(tensor: Tensor, dim: int, units: int) -> Tensor:
    """`[units, rest]`: all numbers of each unit, where the units lie along `dim`."""
    return (
        tensor.unflatten(dim, (units, tensor.shape[dim] // units))
        .movedim(dim, 0)
        .reshape(units, -1)
    )


def permuted(state: State, wiring: Wiring, orders: Sequence[Tensor]) -> dict[str, Tensor]:
    """`state` with its units in other `orders`, int64 `[units]` for each group; the network's function is the same."""
    return {name: reordered(tensor, wiring, name, orders) for name, tensor in state.items()}


def reordered(tensor: Tensor, wiring: Wiring, name: str, orders: Sequence[Tensor]) -> Tensor:
    """The tensor `name` of a state, its units in `orders`."""
    for dim, group in wiring.axes.get(name, ()):
        order = orders[group].to(tensor.device)
        apart = tensor.unflatten(dim, (len(order), tensor.shape[dim] // len(order)))
        tensor = apart.index_select(dim, order).flatten(dim, dim + 1)
    return tensor
