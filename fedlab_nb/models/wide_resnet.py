"""Wide residual networks for small images (Zagoruyko & Komodakis, BMVC 2016): WRN-16-k and WRN-40-k.

As in ResNet-8 and -18, no map shrinks below 2x2: where a stride of 2 would do that, it becomes 1.
"""

import torch
from torch import nn

from .image_conv import ImageConv2d
from .network import Layout, map_size


class PreActivated(nn.Module):
    """Basic block: x + main(a) with a = relu(norm(x)); where shape or stride change, a's 1x1 convolution is added
    instead of x. main is conv3, batch norm, ReLU, conv3."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.before = nn.Sequential(nn.BatchNorm2d(inputs), nn.ReLU())
        self.main = nn.Sequential(
            _conv(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs), nn.ReLU(), _conv(outputs, outputs, 3, 1)
        )
        self.same = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if self.same else _conv(inputs, outputs, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        active = self.before(x)
        return self.main(active) + self.shortcut(x if self.same else active)


def wrn16(input_shape: tuple[int, int, int], width: int) -> Layout:
    """WRN-16-k of width 16 k: conv3(16), three groups of two blocks with w, 2w and 4w channels, the last two of stride
    2, batch norm, ReLU, global average pool, D = 4 w.

    WRN-16-1 has 175,066 parameters at 3x32x32 with 10 classes, WRN-16-2 691,674. Its dropout is left out.
    """
    return wide(input_shape, width, 16)


def wrn40(input_shape: tuple[int, int, int], width: int) -> Layout:
    """WRN-40-k of width 16 k: as WRN-16-k, but six blocks a group. WRN-40-1 has 563,930 parameters at 3x32x32 with 10
    classes, WRN-40-2 2,243,546."""
    return wide(input_shape, width, 40)


def wide(input_shape: tuple[int, int, int], width: int, depth: int) -> Layout:
    """WRN-`depth`-k, `width` = 16 k: (depth - 4) / 6 blocks in each of three groups."""
    channels, *sides = input_shape
    blocks: list[nn.Module] = [_conv(channels, 16, 3, 1)]
    channels = 16
    for multiple, stride in ((1, 1), (2, 2), (4, 2)):
        if min(map_size(side, 3, padding=1, stride=stride) for side in sides) < 2:
            stride = 1
        for k in range((depth - 4) // 6):
            blocks.append(PreActivated(channels, multiple * width, stride if k == 0 else 1))
            channels = multiple * width
        sides = [map_size(side, 3, padding=1, stride=stride) for side in sides]
    end = nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(1))
    return [*blocks, end], channels


def _conv(inputs: int, outputs: int, kernel: int, stride: int) -> nn.Conv2d:
    return ImageConv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False)
