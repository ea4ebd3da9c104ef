"""The frozen clients of one architecture, one after the other (`Loop`) or as one stack (`Stacked`).

`group.run(x)` of samples `[N, ...]` gives features and logits: client k's `[N, D]` and `[N, C]` at k.
"""

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from ...models import Network, Normalise
from ...models.image_conv import LARGE, ImageConv2d
from ...models.state import copied
from ...training.kernels.stack import Stack


class Group:
    """Models of one architecture. `distances`: None, or a list that takes L_BN's summands from layer to layer."""

    channels: tuple[int, ...] = (-1,)  # into what a batch norm's channels are split before a norm is taken of each

    def __init__(self, norms: Iterable[nn.Module]) -> None:
        self.distances: list[Tensor] | None = None
        for layer in norms:
            layer.register_forward_pre_hook(self._watch)

    def run(self, x: Tensor) -> tuple[Any, Any]:
        """Features and logits of `x [N, ...]`."""
        raise NotImplementedError

    def _watch(self, layer: Any, inputs: tuple[Tensor]) -> None:
        if self.distances is not None:
            var, mean = torch.var_mean(inputs[0], dim=(-4, -2, -1), correction=0)  # [channels] or [M, channels]
            apart = mean - layer.running_mean, var - layer.running_var
            self.distances.append(sum(own.unflatten(-1, self.channels).norm(dim=-1) for own in apart).sum())


class Loop(Group):
    """One after the other; all first convolutions as one where they read the images themselves."""

    def __init__(self, modules: Sequence[Network]) -> None:
        self.modules = [copied(module).eval().requires_grad_(False) for module in modules]
        self.first, self.rest = joined_first(self.modules)
        norms = [layer for module in self.modules for layer in module.modules() if isinstance(layer, nn.BatchNorm2d)]
        super().__init__(norms)

    def run(self, x: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        if self.first is None:
            features = [module.features(x) for module in self.modules]
        else:
            read = self.first(x).chunk(len(self.modules), 1)
            features = [rest(own) for rest, own in zip(self.rest, read, strict=True)]
        return features, [module.classifier(own) for module, own in zip(self.modules, features, strict=True)]


def joined_first(modules: Sequence[Network]) -> tuple[nn.Module | None, list[nn.Module]]:
    """One convolution that makes the first maps of all `modules`, and each one's layers above it.

    The gradient with respect to the images is one matrix product then, not M (`models.image_conv`). None and nothing
    where a first block begins otherwise, where features are more than the body's, where images are small, and where M
    is 1. Before it stays a `Normalise` that all of them have.
    """
    blocks: list[Any] = [module.body[0] for module in modules]
    scales: list[Any] = [block[0] if type(block) is nn.Sequential and len(block) == 2 else None for block in blocks]
    front = scales[:1] if scaled_alike(scales) else []
    if front:
        blocks = [block[1] for block in blocks]
    first: list[Any] = [block[0] if isinstance(block, nn.Sequential) else None for block in blocks]
    large = prod(modules[0].architecture[1][-2:]) > LARGE
    plain = all(type(module).features is Network.features for module in modules)
    if len(modules) == 1 or not large or not plain or not all(isinstance(layer, ImageConv2d) for layer in first):
        return None, []
    one = first[0]
    size = (one.in_channels, len(first) * one.out_channels, one.kernel_size, one.stride, one.padding)
    joined = ImageConv2d(*size, bias=one.bias is not None, device="meta")
    for name in ("weight",) if one.bias is None else ("weight", "bias"):
        setattr(joined, name, nn.Parameter(torch.cat([getattr(own, name) for own in first]), requires_grad=False))
    above: list[Any] = [nn.Sequential(*block[1:], *own.body[1:]) for block, own in zip(blocks, modules, strict=True)]
    return nn.Sequential(*front, joined), above


def leaves(body: nn.Module) -> list[Any]:
    """The layers of nested Sequentials, in order; anything else counts as a layer."""
    return [leaf for child in body for leaf in leaves(child)] if type(body) is nn.Sequential else [body]


def scaled_alike(first: Sequence[Any]) -> bool:
    """Whether the layers `first` are one and the same `Normalise`."""
    if not all(isinstance(layer, Normalise) for layer in first):
        return False
    return all(torch.equal(own.mean, first[0].mean) and torch.equal(own.std, first[0].std) for own in first)


class Stacked(Group):
    """As one."""

    def __init__(self, modules: Sequence[Network]) -> None:
        self.count, stack = len(modules), Stack(modules)
        for leaf in stack.use(self.count).values():
            leaf.requires_grad_(False)
        self.net: Any = stack.net.eval()
        super().__init__(stack.norms)

    def run(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.net.features(x.expand(self.count, *x.shape))
        return features, self.net.classifier(features)
