"""Nearest-neighbour up-sampling, then a 3x3 convolution: a layer of the generators of images."""

from torch import Tensor, nn


class UpConv2d(nn.Conv2d):
    """Maps `[N, C, h, w]`, up-sampled to `size` (H, W), then convolved: `[N, O, H, W]`."""

    def __init__(self, inputs: int, outputs: int, size: tuple[int, ...]) -> None:
        super().__init__(inputs, outputs, 3, padding=1, bias=False)
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(nn.functional.interpolate(x, size=self.size))
