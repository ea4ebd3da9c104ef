"""The structure of every model: a sequence of blocks, then one linear map.

One rule allows M clients' models to be stacked and run as one. A model is a tree of *leaf layers* (linear, convolution,
batch norm, ReLU, pooling, flatten), which are only called one after the other or combined by element-wise operations
such as the residual `+`. No `forward` outside a leaf looks at a shape or calls `torch.nn.functional`. So the same
`forward` still works after each leaf has been replaced by its stacked counterpart, which maps [M, N, ...] to
[M, N, ...]. Everything that depends on the image size is decided when the model is built.

`make_layout_with_replaced_batch_norm` gives the same architecture without any normalisation (`NAME-nobn`), or with
group normalisation (`NAME-gn`; Wu & He, ECCV 2018), which uses the statistics of one sample. Batch norm's running
statistics are averages over a client's own data: averaging them over skewed clients is another source of error, and
they tell the server something about the data.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import nn

from ..tensor_types import Features, Logits, Samples
from ..value_types import SampleShape

# The blocks of a network, and D, the length of the feature vector that they end in.
BlocksAndFeatureCount = tuple[Sequence[nn.Module], int]
# (input_shape, width) -> the blocks, and D.
LayoutFunction = Callable[[tuple[int, ...], int], BlocksAndFeatureCount]
# (name, input_shape, classes, width); with a fifth element for the upper part of a network that was cut.
Architecture = tuple
# "nobn": no normalisation at all; "gn": group normalisation.
NormReplacement = Literal["nobn", "gn"]


class Network(nn.Module):
    """`forward(x) = classifier(features(x))`: [N, *input_shape] -> features [N, D] -> logits [N, C].

    `body` is the sequence of blocks; a method may cut the network between two of them, as FuseFL does. `architecture`
    is (name, input_shape, classes, width); two models can load each other's states if and only if theirs are equal.
    """

    def __init__(
        self, blocks: Sequence[nn.Module], features: int, architecture: Architecture
    ) -> None:
        super().__init__()
        self.body = nn.Sequential(*blocks)
        self.classifier = nn.Linear(features, architecture[2])
        self.architecture = architecture

    def features(self, samples: Samples) -> Features:
        return self.body(samples)

    def forward(self, samples: Samples) -> Logits:
        return self.classifier(self.features(samples))


class Normalise(nn.Module):
    """(x - mean) / std for each channel of images `[..., C, H, W]`; both are constants, neither learnt nor sent."""

    mean: torch.Tensor
    std: torch.Tensor

    def __init__(self, mean: torch.Tensor, std: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean.view(-1, 1, 1), persistent=False)
        self.register_buffer("std", std.view(-1, 1, 1), persistent=False)

    def forward(self, samples: Samples) -> Samples:
        return (samples - self.mean) / self.std


def prepend_input_normalisation_in_place(
    network: Network, channel_means: torch.Tensor, channel_deviations: torch.Tensor
) -> Network:
    """Change `network` in place: its first block now begins with `Normalise`, in the network's device and dtype."""
    like = network.classifier.weight
    channel_means = channel_means.to(like.device, like.dtype)
    channel_deviations = channel_deviations.to(like.device, like.dtype)
    network.body[0] = nn.Sequential(Normalise(channel_means, channel_deviations), network.body[0])
    return network


def compute_feature_map_side(
    input_side: int, kernel_side: int, *, padding: int = 0, stride: int = 1
) -> int:
    """The side of a convolution's or a pooling's output, for an input of side `input_side`."""
    return (input_side + 2 * padding - kernel_side) // stride + 1


KINDS: dict[str, str] = {"nobn": "without batch norm", "gn": "group norm for batch norm"}
SMALLEST_GROUP = 8
MOST_GROUPS = 32


def choose_group_norm_group_count(channel_count: int) -> int:
    """The largest number of groups, up to 32, into which the channels divide evenly with at least 8 in each; else 1.

    >>> [choose_group_norm_group_count(c) for c in (8, 16, 20, 64, 512)]
    [1, 2, 2, 8, 32]
    """
    largest_count = max(1, min(MOST_GROUPS, channel_count // SMALLEST_GROUP))
    return max(count for count in range(1, largest_count + 1) if channel_count % count == 0)


def make_layout_with_replaced_batch_norm(
    layout: LayoutFunction, replacement: NormReplacement
) -> LayoutFunction:
    """`layout` with every batch norm replaced; `replacement` is a key of KINDS.

    With "nobn" each convolution gets a bias, which was superfluous in front of batch norm.
    """

    def changed_layout(input_shape: SampleShape, width: int) -> BlocksAndFeatureCount:
        blocks, features = layout(input_shape, width)
        changed_blocks = nn.ModuleList(blocks)
        for module in list(changed_blocks.modules()):
            for name, child in list(module.named_children()):
                if isinstance(child, nn.BatchNorm2d):
                    setattr(module, name, _make_norm_replacement(child, replacement))
                elif replacement == "nobn" and isinstance(child, nn.Conv2d) and child.bias is None:
                    child.bias = nn.Parameter(torch.empty(child.out_channels))
        return list(changed_blocks), features

    return changed_layout


def _make_norm_replacement(norm: nn.BatchNorm2d, replacement: NormReplacement) -> nn.Module:
    """The layer that takes the place of the batch norm `norm`; `replacement` is a key of KINDS."""
    if replacement == "nobn":
        return nn.Identity()
    channels = norm.num_features
    return nn.GroupNorm(choose_group_norm_group_count(channels), channels)
