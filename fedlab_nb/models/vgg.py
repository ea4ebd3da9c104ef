"""VGG-9, the network of FuseFL's comparison with FedMA: six 3x3 convolutions, three linear layers, no normalisation."""

from __future__ import annotations

from torch import nn

from .pool import MaxPool2x2


def vgg9(input_shape: tuple[int, int, int], width: int) -> tuple[list[nn.Module], int]:
    """FedMA's VGG-9: pairs of convolutions of (w, 2w), (4w, 4w), (8w, 8w), 2x2 max-pool after each, two layers of 16w.

    Width 32 is FedMA's: 3,491,530 parameters for 3x32x32 images and 10 classes. Its dropout is left out. Each block of
    `body` is one weight layer with its ReLU, and its pool where it has one.
    """
    channels, height, breadth = input_shape
    blocks: list[nn.Module] = []
    for multiple, pool in [(1, False), (2, True), (4, False), (4, True), (8, False), (8, True)]:
        layers = [nn.Conv2d(channels, multiple * width, 3, padding=1), nn.ReLU()]
        blocks.append(nn.Sequential(*layers, *([MaxPool2x2()] if pool else [])))
        channels = multiple * width
    places = (height // 8) * (breadth // 8)  # three pools, each rounding down
    wide = 16 * width
    blocks.append(nn.Sequential(nn.Flatten(1), nn.Linear(channels * places, wide), nn.ReLU()))
    blocks.append(nn.Sequential(nn.Linear(wide, wide), nn.ReLU()))
    return blocks, wide
