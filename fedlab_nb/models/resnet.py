"""The papers' residual networks with batch normalisation: FENS' ResNet-8, the CIFAR variant of ResNet-18 and its kin.

No map shrinks below 2x2: where a stride of 2 would do that, it becomes 1. So batch normalisation sees at least four
values of each channel even in a batch of one sample.
"""

import torch
from torch import nn

from .image_conv import ImageConv2d
from .network import Layout, map_size


class Residual(nn.Module):
    """Basic block: relu(main(x) + shortcut(x)), where the shortcut is a 1x1 convolution if shape or stride change."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.main = nn.Sequential(
            *_conv_norm(inputs, outputs, 3, stride), nn.ReLU(), *_conv_norm(outputs, outputs, 3, 1)
        )
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
    blocks, sides, channels = _trunk(input_shape, width, [(1, 1), (2, 2), (4, 2)], repeats=1)
    windows, steps = tuple((side + 1) // 2 for side in sides), tuple(side // 2 for side in sides)
    return [*blocks, nn.Sequential(nn.AvgPool2d(windows, steps), nn.Flatten(1))], 4 * channels


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
    blocks, _, channels = _trunk(input_shape, width, [(1, 1), (2, 2), (4, 2), (8, 2)], repeats)
    return [*blocks, nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(1))], channels


def _trunk(input_shape: tuple[int, int, int], width: int, stages: list[tuple[int, int]], repeats: int):
    """Stem and basic blocks for stages of (width multiple, stride): the blocks, the last map's sides and channels."""
    channels, *sides = input_shape
    blocks: list[nn.Module] = [nn.Sequential(*_conv_norm(channels, width, 3, 1), nn.ReLU())]
    channels = width
    for multiple, stride in stages:
        if min(map_size(side, 3, padding=1, stride=stride) for side in sides) < 2:
            stride = 1
        for k in range(repeats):
            blocks.append(Residual(channels, multiple * width, stride if k == 0 else 1))
            channels = multiple * width
        sides = [map_size(side, 3, padding=1, stride=stride) for side in sides]
    return blocks, sides, channels


def _conv_norm(inputs: int, outputs: int, kernel: int, stride: int) -> list[nn.Module]:
    """Convolution without bias, as the normalisation that follows would take any bias out again."""
    return [
        ImageConv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False),
        nn.BatchNorm2d(outputs),
    ]
