"""What every model is: a row of blocks, then one linear map.

The rule that lets M clients' models be stacked and run as one: a model is a tree of *leaf layers* (linear,
convolution, batch norm, ReLU, pooling, flatten), joined only by calling one after the other or by element-wise
operations such as the residual `+`. No `forward` outside a leaf looks at a shape or calls `torch.nn.functional`, so the
same forwards still hold when each leaf is replaced by its stacked twin, which maps [M, N, ...] to [M, N, ...]. Whatever
depends on the size of the image is settled while the model is built.

`replace_batch_norm`: the same architecture with no normalisation at all (`NAME-nobn`), or with group normalisation
(`NAME-gn`; Wu & He, ECCV 2018), whose statistics are those of one sample. Batch norm's running statistics are averages
of a client's own data: averaging them over skewed clients is a source of error of its own, and they tell the server
something about the data.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

# The blocks of a network, and D, the length of the feature vector that they end in.
Layout = tuple[Sequence[nn.Module], int]
# (name, input_shape, classes, width); with a fifth element for the upper part of a network that was cut.
Architecture = tuple


class Network(nn.Module):
    """`forward(x) = classifier(features(x))`: [N, *input_shape] -> features [N, D] -> logits [N, C].

    `body` is the sequence of blocks at whose borders a method may cut the network (FuseFL does).
    `architecture` is (name, input_shape, classes, width): equal for exactly those models whose states fit each other.
    """

    def __init__(
        self, blocks: Sequence[nn.Module], features: int, architecture: Architecture
    ) -> None:
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
    mean = mean.to(like.device, like.dtype)
    std = std.to(like.device, like.dtype)
    network.body[0] = nn.Sequential(Normalise(mean, std), network.body[0])
    return network


def compute_map_size(size: int, kernel: int, *, padding: int = 0, stride: int = 1) -> int:
    """The side of a convolution's or a pooling's output, for an input of side `size`."""
    return (size + 2 * padding - kernel) // stride + 1


KINDS = {"nobn": "without batch norm", "gn": "group norm for batch norm"}
SMALLEST_GROUP = 8
MOST_GROUPS = 32


def choose_group_count(channels: int) -> int:
    """The largest number of groups that divides the channels evenly, with at least 8 in each; 32 at most, else one.

    >>> [choose_group_count(c) for c in (8, 16, 20, 64, 512)]
    [1, 2, 2, 8, 32]
    """
    most = max(1, min(MOST_GROUPS, channels // SMALLEST_GROUP))
    return max(count for count in range(1, most + 1) if channels % count == 0)


def replace_batch_norm(
    layout: Callable[[Any, int], Layout], kind: str
) -> Callable[[Any, int], Layout]:
    """`layout` with every batch norm replaced as `kind` of KINDS says.

    Without any normalisation each convolution gets a bias, which batch norm made superfluous.
    """

    def changed_layout(input_shape: Any, width: int) -> Layout:
        blocks, features = layout(input_shape, width)
        changed_blocks = nn.ModuleList(blocks)
        for module in list(changed_blocks.modules()):
            for name, child in list(module.named_children()):
                if isinstance(child, nn.BatchNorm2d):
                    setattr(module, name, _make_replacement(child, kind))
                elif kind == "nobn" and isinstance(child, nn.Conv2d) and child.bias is None:
                    child.bias = nn.Parameter(torch.empty(child.out_channels))
        return list(changed_blocks), features

    return changed_layout


def _make_replacement(norm: nn.BatchNorm2d, kind: str) -> nn.Module:
    """The layer that stands where a batch norm stood, as `kind` of KINDS says."""
    if kind == "nobn":
        return nn.Identity()
    channels = norm.num_features
    return nn.GroupNorm(choose_group_count(channels), channels)
