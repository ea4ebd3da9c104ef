"""The papers' residual networks with batch normalisation: FENS' ResNet-8, the CIFAR variant of ResNet-18 and its kin,
and the wide networks for small images (Zagoruyko & Komodakis, BMVC 2016), WRN-16-k and WRN-40-k.

No map shrinks below 2x2: where a stride of 2 would do that, it becomes 1. So batch normalisation sees at least four
values of each channel even in a batch of one sample.
"""

from collections.abc import Sequence

import torch
from torch import nn

from .network import Layout, map_size


class Residual(nn.Module):
    """Basic block: relu(main(x) + shortcut(x)), where the shortcut is a 1x1 convolution if shape or stride change."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        first, second = _conv_norm(inputs, outputs, 3, stride), _conv_norm(outputs, outputs, 3, 1)
        self.main = nn.Sequential(*first, nn.ReLU(), *second)
        same = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if same else nn.Sequential(*_conv_norm(inputs, outputs, 1, stride))
        self.relu = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(self.main(x) + self.shortcut(x))


def resnet8(input_shape: tuple[int, int, int], width: int) -> Layout:
    """FENS' ResNet-8: conv3(w), basic blocks of w, 2w (stride 2), 4w (stride 2), average pool to 2x2, so D = 16 w.

    Width 128 is the paper's: 4,911,754 parameters for 10 classes. The paper counts 4,932,344: the public code also
    carries a second linear layer and an embedding, 20,590 numbers, that its forward pass never uses; they are left out
    here. The pooling is the paper's 4x4 windows at 32x32; at other sizes windows of ceil(side / 2), which overlap where
    the side is odd.
    """
    stem = nn.Sequential(*_conv_norm(input_shape[0], width, 3, 1), nn.ReLU())
    blocks, sides, channels = _stages(Residual, stem, width, input_shape[1:], [width, 2 * width, 4 * width], 1)
    high, wide = sides
    pool = nn.AvgPool2d(((high + 1) // 2, (wide + 1) // 2), (high // 2, wide // 2))
    return [*blocks, nn.Sequential(pool, nn.Flatten(1))], 4 * channels


def resnet18(input_shape: tuple[int, int, int], width: int) -> Layout:
    """ResNet-18 with a 3x3 stem and no max-pool: two basic blocks each of w, 2w, 4w, 8w, global average pool, D = 8 w.

    Width 64 is the papers': 11,173,962 parameters for 3 channels and 10 classes. `body` has FuseFL's ten layer indices:
    0 the stem, 1 to 8 the basic blocks, 9 the pool.
    """
    return _four_stages(input_shape, width, repeats=2)


def resnet10(input_shape: tuple[int, int, int], width: int) -> Layout:
    """ResNet-18 with one basic block a stage (FuseFL's small one): 4,903,242 parameters at 3x32x32, 10 classes."""
    return _four_stages(input_shape, width, repeats=1)


def resnet26(input_shape: tuple[int, int, int], width: int) -> Layout:
    """ResNet-18 with three basic blocks a stage (FuseFL's large one): 17,444,682 parameters at 3x32x32, 10 classes."""
    return _four_stages(input_shape, width, repeats=3)


def _four_stages(input_shape: tuple[int, int, int], width: int, repeats: int) -> Layout:
    stem = nn.Sequential(*_conv_norm(input_shape[0], width, 3, 1), nn.ReLU())
    widths = [width, 2 * width, 4 * width, 8 * width]
    blocks, _, channels = _stages(Residual, stem, width, input_shape[1:], widths, repeats)
    return [*blocks, nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(1))], channels


class PreActivated(nn.Module):
    """Basic block: x + main(a) with a = relu(norm(x)); where shape or stride change, a's 1x1 convolution is added
    instead of x. main is conv3, batch norm, ReLU, conv3."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.before = nn.Sequential(nn.BatchNorm2d(inputs), nn.ReLU())
        first, second = _conv_norm(inputs, outputs, 3, stride), _conv(outputs, outputs, 3, 1)
        self.main = nn.Sequential(*first, nn.ReLU(), second)
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
    stem = _conv(input_shape[0], 16, 3, 1)
    widths = [width, 2 * width, 4 * width]
    blocks, _, channels = _stages(PreActivated, stem, 16, input_shape[1:], widths, repeats=(depth - 4) // 6)
    end = nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(1))
    return [*blocks, end], channels


def _stages(
    block: type, stem: nn.Module, channels: int, sides: Sequence[int], widths: Sequence[int], repeats: int
) -> tuple[list[nn.Module], list[int], int]:
    """The stem, which ends in `channels`, and stages of `repeats` blocks, each stage but the first of stride 2: the
    blocks, the last map's sides and channels."""
    blocks, sides = [stem], list(sides)
    for stage, width in enumerate(widths):
        stride = 2 if stage else 1
        if min(map_size(side, 3, padding=1, stride=stride) for side in sides) < 2:
            stride = 1
        for k in range(repeats):
            blocks.append(block(channels, width, stride if k == 0 else 1))
            channels = width
        sides = [map_size(side, 3, padding=1, stride=stride) for side in sides]
    return blocks, sides, channels


def _conv(inputs: int, outputs: int, kernel: int, stride: int) -> nn.Conv2d:
    """Without bias, as the normalisation that follows would take any bias out again."""
    return nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False)


def _conv_norm(inputs: int, outputs: int, kernel: int, stride: int) -> list[nn.Module]:
    return [_conv(inputs, outputs, kernel, stride), nn.BatchNorm2d(outputs)]
