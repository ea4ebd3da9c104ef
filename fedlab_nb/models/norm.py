"""Networks without batch norm: the same architecture with no normalisation at all, or with group normalisation.

Batch norm's running statistics are averages of a client's own data; averaging them over skewed clients is a source of
error of its own, and they tell the server something of the data. `NAME-nobn` leaves batch norm out, `NAME-gn` puts
group normalisation in its place (Wu & He, ECCV 2018), whose statistics are those of one sample.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from .network import Layout

KINDS = {"nobn": "without batch norm", "gn": "group norm for batch norm"}
SMALLEST_GROUP, MOST_GROUPS = 8, 32


def groups(channels: int) -> int:
    """As many groups as divide the channels evenly with at least 8 in each, 32 at most; else one.

    >>> [groups(c) for c in (8, 16, 20, 64, 512)]
    [1, 2, 2, 8, 32]
    """
    most = max(1, min(MOST_GROUPS, channels // SMALLEST_GROUP))
    return max(g for g in range(1, most + 1) if channels % g == 0)


def without_batch_norm(layout: Callable[[Any, int], Layout], kind: str) -> Callable[[Any, int], Layout]:
    """`layout` with every batch norm changed as `kind` of KINDS says.

    Without any normalisation each convolution gets a bias, which batch norm made superfluous.
    """

    def changed(input_shape: Any, width: int) -> Layout:
        blocks, features = layout(input_shape, width)
        whole = nn.ModuleList(blocks)
        for module in list(whole.modules()):
            for name, child in list(module.named_children()):
                if isinstance(child, nn.BatchNorm2d):
                    count = child.num_features
                    setattr(module, name, nn.Identity() if kind == "nobn" else nn.GroupNorm(groups(count), count))
                elif kind == "nobn" and isinstance(child, nn.Conv2d) and child.bias is None:
                    child.bias = nn.Parameter(torch.empty(child.out_channels))
        return list(whole), features

    return changed
