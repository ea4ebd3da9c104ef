"""A generator of images on a CPU: its maps lie as `[1, C, H, W, N]`, the batch last.

On small maps PyTorch's convolutions spend more time on putting numbers in order than on multiplying. With the batch
last everything that is shifted or added lies together in runs of N numbers, and each layer is a matrix product
`[taps O, C] x [C, H W N]` whose rows are then added where they belong. The weights and what is computed are those of
the layers as they stand, but for rounding. A generator of width 8 is 1.3-2 times as fast, the more so the fewer
channels an image has (tests/benchmarks/RESULTS.md).
"""

import math
from collections.abc import Iterable
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# [place, tap]: a small pixel reaches four places of a row of the larger map, one before its own two and one after them.
REACH = (0, 0, 1), (0, 1, 1), (1, 1, 0), (1, 0, 0)
# Numbers of a product's result; a larger one is computed in pieces, so that each stays in the processor's cache.
PIECE = 2**21


class UpConv2d(nn.Conv2d):
    """Maps `[N, C, h, w]`, up-sampled to `size` (H, W), then convolved: `[N, O, H, W]`."""

    def __init__(self, inputs: int, outputs: int, size: tuple[int, ...]) -> None:
        super().__init__(inputs, outputs, 3, padding=1, bias=False)
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(nn.functional.interpolate(x, size=self.size))


def are_divisible_by_four(sides: Iterable[int]) -> bool:
    """Whether doubling a quarter twice gives exactly these `sides`."""
    return all(side % 4 == 0 for side in sides)


def run_layers(layers: Iterable[nn.Module], z: Tensor) -> Tensor:
    """What the `layers` of an image generator make of z `[N, nz]`: images `[N, C, H, W]`."""
    x = z
    for layer in layers:
        if isinstance(layer, nn.Linear):
            x = torch.addmm(layer.bias[:, None], layer.weight, x.t())
        elif isinstance(layer, nn.Unflatten):
            x = x.view(1, *layer.unflattened_size, x.shape[-1])
        elif isinstance(layer, nn.BatchNorm2d):
            # Each channel's statistics are over its pixels, and these hold the whole batch.
            x = F.group_norm(x, layer.num_features, layer.weight, layer.bias, layer.eps)
        elif isinstance(layer, UpConv2d):
            x = convolve_up(x, layer.weight)
        elif isinstance(layer, nn.Conv2d):
            x = Convolution.apply(x, layer.weight, layer.bias)
        elif isinstance(layer, nn.LeakyReLU):
            x = F.leaky_relu(x, layer.negative_slope, inplace=True)  # its input is not used again
        else:
            x = layer(x)
    return x[0].permute(3, 0, 1, 2).contiguous()


def convolve_up(x: Tensor, weight: Tensor) -> Tensor:
    """`UpConvolution`, of as many outputs at once as one piece holds."""
    pixels = x.numel() // x.shape[1]
    pieces = math.ceil(16 * len(weight) * pixels / PIECE)
    if pieces == 1:
        return UpConvolution.apply(x, weight)
    outputs_a_piece = math.ceil(len(weight) / pieces)
    maps = [UpConvolution.apply(x, piece) for piece in weight.split(outputs_a_piece)]
    return torch.cat(maps, 1)


class UpConvolution(torch.autograd.Function):
    """Nearest-neighbour up-sampling and a 3x3 convolution: maps `[1, C, h, w, N]`, weight `[O, C, 3, 3]` ->
    `[1, O, 2h, 2w, N]`.

    The product is computed on the small map; each pixel's 4x4 places overlap its neighbours'.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        _, channels, high, wide, n = x.shape
        outputs = len(weight)
        taps = weight.permute(2, 3, 0, 1).reshape(9, -1)
        kernel = (make_place_matrix(weight.dtype) @ taps).view(-1, channels)
        places = (kernel @ x.view(channels, -1)).view(4, 4, outputs, high, wide, n)
        # What reaches into the rows, then the columns, of the pixel before or after is added there.
        places[1, ..., 1:, :, :].add_(places[3, ..., :-1, :, :])
        places[2, ..., :-1, :, :].add_(places[0, ..., 1:, :, :])
        rows = places[1:3]
        rows[:, 1, ..., 1:, :].add_(rows[:, 3, ..., :-1, :])
        rows[:, 2, ..., :-1, :].add_(rows[:, 0, ..., 1:, :])
        ctx.save_for_backward(x, kernel)
        return rows[:, 1:3].permute(2, 3, 0, 4, 1, 5).reshape(1, outputs, 2 * high, 2 * wide, n)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        x, kernel = ctx.saved_tensors
        channels = x.shape[1]
        outputs = gradient.shape[1]
        places = gather_places(gradient, 4, x, 2)
        input_gradient = (kernel.t() @ places).view(x.shape)
        kernel_gradient = places @ x.view(channels, -1).t()
        tap_gradient = make_place_matrix(x.dtype).t() @ kernel_gradient.view(16, -1)
        return input_gradient, arrange_as_weight(tap_gradient, outputs)


class Convolution(torch.autograd.Function):
    """Maps `[1, C, H, W, N]`, 3x3 convolution with `weight [O, C, 3, 3]` and `bias [O]`: `[1, O, H, W, N]`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        _, channels, high, wide, n = x.shape
        # [3x3 places that a pixel reaches, O], C
        kernel = weight.flip(2, 3).permute(2, 3, 0, 1).reshape(-1, channels)
        places = (kernel @ x.view(channels, -1)).view(3, 3, -1, high, wide, n)
        rows = places[1]
        rows[..., 1:, :, :].add_(places[2, ..., :-1, :, :])
        rows[..., :-1, :, :].add_(places[0, ..., 1:, :, :])
        maps = rows[1]
        maps[..., 1:, :].add_(rows[2, ..., :-1, :])
        maps[..., :-1, :].add_(rows[0, ..., 1:, :])
        ctx.save_for_backward(x, kernel)
        return (maps + bias[:, None, None, None])[None]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, kernel = ctx.saved_tensors
        channels = x.shape[1]
        outputs = gradient.shape[1]
        places = gather_places(gradient, 3, x, 1)
        input_gradient = (kernel.t() @ places).view(x.shape)
        tap_gradient = places @ x.view(channels, -1).t()
        weight_gradient = arrange_as_weight(tap_gradient, outputs).flip(2, 3)
        bias_gradient = gradient.sum((0, 2, 3, 4))
        return input_gradient, weight_gradient, bias_gradient


@cache
def make_place_matrix(dtype: torch.dtype) -> Tensor:
    """`[16, 9]`: which taps of a 3x3 kernel carry a small pixel to which of its 4x4 places."""
    row = torch.tensor(REACH, dtype=dtype)
    return torch.kron(row, row)


def gather_places(maps: Tensor, count: int, small: Tensor, step: int) -> Tensor:
    """The `count` x `count` places round each small pixel: `maps [1, O, H, W, N]` -> `[count² O, h w N]`.

    They start at every `step`-th pixel of the maps, with zeros around these, and there are as many as
    `small [1, C, h, w, N]` has pixels.
    """
    padded = F.pad(maps[0], (0, 0, 1, 1, 1, 1))
    map_stride, row_stride, column_stride, sample_stride = padded.stride()
    place_strides = (row_stride, column_stride, map_stride)
    pixel_strides = (step * row_stride, step * column_stride, sample_stride)
    sizes = (count, count, len(padded), *small.shape[2:])
    places = padded.as_strided(sizes, place_strides + pixel_strides)
    return places.reshape(count * count * len(padded), -1)


def arrange_as_weight(taps: Tensor, outputs: int) -> Tensor:
    """Numbers by tap, `[9, O C]`, in the order of a weight: `[O, C, 3, 3]`."""
    return taps.view(3, 3, outputs, -1).permute(2, 3, 0, 1).contiguous()
