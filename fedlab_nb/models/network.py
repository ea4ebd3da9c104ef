"""What every model is: a row of blocks, then one linear map.

The rule that lets M clients' models be stacked and run as one: a model is a tree of *leaf layers* (linear,
convolution, batch norm, ReLU, pooling, flatten), joined only by calling one after the other or by element-wise
operations such as the residual `+`. No `forward` outside a leaf looks at a shape or calls `torch.nn.functional`, so the
same forwards still hold when each leaf is replaced by its stacked twin, which maps [M, N, ...] to [M, N, ...]. Whatever
depends on the size of the image is settled while the model is built.
"""

from collections.abc import Sequence

import torch
from torch import nn

Layout = tuple[Sequence[nn.Module], int]  # blocks, and D, the length of the feature vector that they end in


class Network(nn.Module):
    """`forward(x) = classifier(features(x))`: [N, *input_shape] -> features [N, D] -> logits [N, C].

    `body` is the sequence of blocks at whose borders a method may cut the network (FuseFL does).
    `architecture` is (name, input_shape, classes, width): equal for exactly those models whose states fit each other.
    """

    def __init__(self, blocks: Sequence[nn.Module], features: int, architecture: tuple) -> None:
        super().__init__()
        self.body = nn.Sequential(*blocks)
        self.classifier = nn.Linear(features, architecture[2])
        self.architecture = architecture

    def features(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(x))


class Normalise(nn.Module):
    """(x - mean) / std, channel by channel, of images `[..., C, H, W]`: constants, neither learnt nor sent."""

    mean: torch.Tensor
    std: torch.Tensor

    def __init__(self, mean: torch.Tensor, std: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean.view(-1, 1, 1), persistent=False)
        self.register_buffer("std", std.view(-1, 1, 1), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x - self.mean) / self.std


def normalise_inputs(network: Network, mean: torch.Tensor, std: torch.Tensor) -> Network:
    """`network` with `Normalise` in front of its first block, within that block; device and dtype are the network's."""
    like = network.classifier.weight
    first = Normalise(*(values.to(like.device, like.dtype) for values in (mean, std)))
    network.body[0] = nn.Sequential(first, network.body[0])
    return network


def map_size(size: int, kernel: int, *, padding: int = 0, stride: int = 1) -> int:
    """The side of a convolution's or a pooling's output, for an input of side `size`."""
    return (size + 2 * padding - kernel) // stride + 1
