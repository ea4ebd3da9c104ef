"""Faster forward and backward passes of an image generator on a CPU: its maps are stored as `[1, C, H, W, N]`, with the
batch as the last dimension.

On small maps PyTorch's convolutions spend more time on rearranging numbers in memory than on multiplying them. With the
batch last, everything that is shifted or added is contiguous, N numbers at a time, and each layer becomes a matrix
product `[taps O, C] x [C, H W N]` whose rows are then added at the pixels that they belong to. The weights are those of
the ordinary layers, and so are the results, up to rounding. A generator of width 8 is 1.3-2 times as fast; the fewer
channels an image has, the larger the gain (tests/benchmarks/RESULTS.md).
"""

import math
from collections.abc import Iterable
from functools import cache

import torch
from torch import Tensor, nn
from torch.autograd.function import BackwardCFunction, FunctionCtx
from torch.nn import functional as F

from ..tensor_types import ConvolutionKernel, FeatureMaps, Images, Noise, Vector

BatchLastMaps = Tensor  # [1, channels, H, W, N]
TapToPixelMatrix = Tensor  # [16, 9]
NeighbourhoodColumns = Tensor  # [side² O, h w N], a column for each small pixel of each sample
RowsByTap = Tensor  # [9, O C]

# [place, tap]: in one dimension, which taps of the kernel carry a pixel of the small map to which places of the doubled
# one. It reaches four places: the two that it becomes, the one before them and the one after them.
REACH = (0, 0, 1), (0, 1, 1), (1, 1, 0), (1, 0, 0)
# Most numbers in a product's result. A larger product is computed in pieces that fit into the processor's cache.
PIECE = 2**21


class UpConv2d(nn.Conv2d):
    """Maps `[N, C, h, w]`, up-sampled to `size` (H, W), then convolved: `[N, O, H, W]`."""

    def __init__(self, inputs: int, outputs: int, size: tuple[int, ...]) -> None:
        super().__init__(inputs, outputs, 3, padding=1, bias=False)
        self.size = size

    def forward(self, feature_maps: FeatureMaps) -> FeatureMaps:
        return super().forward(nn.functional.interpolate(feature_maps, size=self.size))


def are_all_divisible_by_four(sides: Iterable[int]) -> bool:
    """True if an image generator, which doubles a quarter of each side twice, makes exactly these `sides`."""
    return all(side % 4 == 0 for side in sides)


def run_image_generator_layers(layers: Iterable[nn.Module], noise: Noise) -> Images:
    """Run the `layers` of an image generator on noise `[N, nz]`: images `[N, C, H, W]`."""
    x = noise
    for layer in layers:
        if isinstance(layer, nn.Linear):
            x = torch.addmm(layer.bias[:, None], layer.weight, x.t())
        elif isinstance(layer, nn.Unflatten):
            x = x.view(1, *layer.unflattened_size, x.shape[-1])
        elif isinstance(layer, nn.BatchNorm2d):
            # Group norm's statistics are over one sample's pixels; here this one sample holds the whole batch.
            x = F.group_norm(x, layer.num_features, layer.weight, layer.bias, layer.eps)
        elif isinstance(layer, UpConv2d):
            x = double_and_convolve(x, layer.weight)
        elif isinstance(layer, nn.Conv2d):
            x = Convolution.apply(x, layer.weight, layer.bias)
        elif isinstance(layer, nn.LeakyReLU):
            x = F.leaky_relu(x, layer.negative_slope, inplace=True)  # its input is not used again
        else:
            x = layer(x)
    return x[0].permute(3, 0, 1, 2).contiguous()


def double_and_convolve(feature_maps: BatchLastMaps, weight: ConvolutionKernel) -> BatchLastMaps:
    """Double the sides of the maps, then convolve them (`UpConvolution`), in pieces that fit into the cache."""
    pixels = feature_maps.numel() // feature_maps.shape[1]
    pieces = math.ceil(16 * len(weight) * pixels / PIECE)
    if pieces == 1:
        return UpConvolution.apply(feature_maps, weight)
    outputs_a_piece = math.ceil(len(weight) / pieces)
    maps = [UpConvolution.apply(feature_maps, piece) for piece in weight.split(outputs_a_piece)]
    return torch.cat(maps, 1)


class UpConvolution(torch.autograd.Function):
    """Nearest-neighbour up-sampling and a 3x3 convolution: maps `[1, C, h, w, N]`, weight `[O, C, 3, 3]` ->
    `[1, O, 2h, 2w, N]`.

    The product is computed on the small map. Each small pixel contributes to 4x4 places of the large map, its own 2x2
    and those around them; where the places of neighbours overlap, they are added.
    """

    @staticmethod
    def forward(
        ctx: FunctionCtx, feature_maps: BatchLastMaps, weight: ConvolutionKernel
    ) -> BatchLastMaps:
        _, channels, high, wide, n = feature_maps.shape
        outputs = len(weight)
        taps = weight.permute(2, 3, 0, 1).reshape(9, -1)
        kernel = (make_kernel_tap_to_pixel_matrix(weight.dtype) @ taps).view(-1, channels)
        places = (kernel @ feature_maps.view(channels, -1)).view(4, 4, outputs, high, wide, n)
        # Add the contributions to the rows of the pixels above and below, then those to the columns left and right.
        places[1, ..., 1:, :, :].add_(places[3, ..., :-1, :, :])
        places[2, ..., :-1, :, :].add_(places[0, ..., 1:, :, :])
        rows = places[1:3]
        rows[:, 1, ..., 1:, :].add_(rows[:, 3, ..., :-1, :])
        rows[:, 2, ..., :-1, :].add_(rows[:, 0, ..., 1:, :])
        ctx.save_for_backward(feature_maps, kernel)
        return rows[:, 1:3].permute(2, 3, 0, 4, 1, 5).reshape(1, outputs, 2 * high, 2 * wide, n)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: BackwardCFunction, gradient: BatchLastMaps
    ) -> tuple[BatchLastMaps, ConvolutionKernel]:
        saved_tensors: tuple[Tensor, ...] = ctx.saved_tensors
        x, kernel = saved_tensors
        channels = x.shape[1]
        outputs = gradient.shape[1]
        places = gather_pixel_neighbourhoods(gradient, 4, x, 2)
        input_gradient = (kernel.t() @ places).view(x.shape)
        kernel_gradient = places @ x.view(channels, -1).t()
        tap_gradient = make_kernel_tap_to_pixel_matrix(x.dtype).t() @ kernel_gradient.view(16, -1)
        return input_gradient, reshape_taps_to_kernel(tap_gradient, outputs)


class Convolution(torch.autograd.Function):
    """Maps `[1, C, H, W, N]`, 3x3 convolution with `weight [O, C, 3, 3]` and `bias [O]`: `[1, O, H, W, N]`."""

    @staticmethod
    def forward(
        ctx: FunctionCtx, images: BatchLastMaps, weight: ConvolutionKernel, bias: Vector
    ) -> BatchLastMaps:
        _, channels, high, wide, n = images.shape
        # [9 O, C]: one row for each of the 3x3 places that a pixel contributes to, and each output channel
        kernel = weight.flip(2, 3).permute(2, 3, 0, 1).reshape(-1, channels)
        places = (kernel @ images.view(channels, -1)).view(3, 3, -1, high, wide, n)
        rows = places[1]
        rows[..., 1:, :, :].add_(places[2, ..., :-1, :, :])
        rows[..., :-1, :, :].add_(places[0, ..., 1:, :, :])
        maps = rows[1]
        maps[..., 1:, :].add_(rows[2, ..., :-1, :])
        maps[..., :-1, :].add_(rows[0, ..., 1:, :])
        ctx.save_for_backward(images, kernel)
        return (maps + bias[:, None, None, None])[None]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: BackwardCFunction, gradient: BatchLastMaps
    ) -> tuple[BatchLastMaps, ConvolutionKernel, Vector]:
        saved_tensors: tuple[Tensor, ...] = ctx.saved_tensors
        x, kernel = saved_tensors
        channels = x.shape[1]
        outputs = gradient.shape[1]
        places = gather_pixel_neighbourhoods(gradient, 3, x, 1)
        input_gradient = (kernel.t() @ places).view(x.shape)
        tap_gradient = places @ x.view(channels, -1).t()
        weight_gradient = reshape_taps_to_kernel(tap_gradient, outputs).flip(2, 3)
        bias_gradient = gradient.sum((0, 2, 3, 4))
        return input_gradient, weight_gradient, bias_gradient


@cache
def make_kernel_tap_to_pixel_matrix(dtype: torch.dtype) -> TapToPixelMatrix:
    """The matrix `[16, 9]` that sums, for each of the 4x4 places, the taps of a 3x3 kernel that reach it."""
    row = torch.tensor(REACH, dtype=dtype)
    return torch.kron(row, row)


def gather_pixel_neighbourhoods(
    feature_maps: BatchLastMaps,
    neighbourhood_side: int,
    small_images_for_shape: BatchLastMaps,
    stride: int,
) -> NeighbourhoodColumns:
    """Gather the square of places around each small pixel: `feature_maps [1, O, H, W, N]` -> `[side² O, h w N]`.

    The squares have `neighbourhood_side` pixels a side and start at every `stride`-th pixel of the maps, which are
    padded with one pixel of zeros. There is one square for each pixel of `small_images_for_shape [1, C, h, w, N]`.
    """
    padded = F.pad(feature_maps[0], (0, 0, 1, 1, 1, 1))
    map_stride, row_stride, column_stride, sample_stride = padded.stride()
    place_strides = (row_stride, column_stride, map_stride)
    pixel_strides = (stride * row_stride, stride * column_stride, sample_stride)
    sizes = (neighbourhood_side, neighbourhood_side, len(padded), *small_images_for_shape.shape[2:])
    # A view: nothing is copied yet.
    places = padded.as_strided(sizes, place_strides + pixel_strides)
    return places.reshape(neighbourhood_side * neighbourhood_side * len(padded), -1)


def reshape_taps_to_kernel(rows_by_tap: RowsByTap, output_channels: int) -> ConvolutionKernel:
    """Rearrange one row of numbers for each tap, `[9, O C]`, as a convolution's weight: `[O, C, 3, 3]`."""
    return rows_by_tap.view(3, 3, output_channels, -1).permute(2, 3, 0, 1).contiguous()
