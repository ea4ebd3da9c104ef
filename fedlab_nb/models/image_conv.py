"""A convolution of images whose gradient with respect to the images is fast on a CPU: `nn.Conv2d`, but for rounding.

PyTorch's kernel for this gradient takes 5-11 times as long as the forward pass where there are one or three input
channels. Local training never asks for it, but who searches for images does in every step. Here it is one matrix
product, `[C k k', O] x [O, H' W']`, of whose rows each is added at its place of the image.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .product import product

FEW, LARGE = 3, 16 * 16  # input channels at most, and more pixels than this


class ImageConv2d(nn.Conv2d):
    """A network's first layer: images `[N, C, H, W]` to maps `[N, O, H', W']`."""

    def forward(self, x: Tensor) -> Tensor:
        return convolved(x, self.weight, self.bias, self) if suits(self, x) else super().forward(x)

    def _get_name(self) -> str:
        return "Conv2d"  # what it is to a reader of a printed network


def suits(layer: nn.Conv2d, x: Tensor) -> bool:
    """Whether somebody will ask for the gradient of images for which ours is the better way."""
    asked = x.device.type == "cpu" and torch.is_grad_enabled() and x.requires_grad
    plain = (layer.stride, layer.dilation, layer.groups, layer.padding_mode) == ((1, 1), (1, 1), 1, "zeros")
    return asked and plain and x.shape[1] <= FEW and x.shape[-1] * x.shape[-2] > LARGE


def convolved(x: Tensor, weight: Tensor, bias: Tensor | None, layer: nn.Conv2d) -> Tensor:
    """`layer` with `weight [O, C, k, k']` and `bias [O]`; O may be the channels of several networks."""
    return _Convolution.apply(x, weight, bias, layer.padding)


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, padding: tuple[int, int]) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.padding = padding
        return torch.nn.functional.conv2d(x, weight, bias, padding=padding)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        to_x, *others = ctx.needs_input_grad[:3]
        to_weight = to_bias = None
        if any(others):
            _, to_weight, to_bias = torch.ops.aten.convolution_backward(
                gradient, x, weight, [len(weight)], (1, 1), ctx.padding, (1, 1), False, (0, 0), 1, [False, *others]
            )
        return image_gradient(gradient, weight, x, ctx.padding) if to_x else None, to_weight, to_bias, None


def image_gradient(gradient: Tensor, weight: Tensor, x: Tensor, padding: tuple[int, int]) -> Tensor:
    """The gradient `[N, C, H, W]` of images like `x`, from that of the maps, `[N, O, H', W']`, channels_last or not."""
    _, channels, tall, wide = weight.shape
    n, outputs, high, broad = gradient.shape
    if gradient.is_contiguous(memory_format=torch.channels_last):
        maps = gradient.permute(0, 2, 3, 1).reshape(-1, outputs).t()
    else:
        maps = gradient.transpose(0, 1).reshape(outputs, -1)
    taps = product(weight.flatten(1).t(), maps).view(channels, tall, wide, n, high, broad)
    (above, beside), (height, width) = padding, x.shape[-2:]
    strips = _added(taps.unbind(1), height + 2 * above, -2)  # whole rows first: these lie together
    image = _added(strips.unbind(1), width + 2 * beside, -1)
    return image[..., above : above + height, beside : beside + width].transpose(0, 1)


def _added(parts: Sequence[Tensor], length: int, dim: int) -> Tensor:
    """The sum of `parts`, each a place further along `dim`, which gets `length` places."""
    sizes = list(parts[0].shape)
    extent, sizes[dim] = sizes[dim], length
    total = parts[0].new_zeros(sizes)
    for place, part in enumerate(parts):
        total.narrow(dim, place, extent).add_(part)
    return total
