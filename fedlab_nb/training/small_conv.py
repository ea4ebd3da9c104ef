"""Convolutions on small maps as matrix products: for the stack on a CPU.

On an 8x8 map a convolution kernel spends its time on borders and bookkeeping. Here the convolution along the width is
written out as a matrix, and k rows of the map side by side are what it multiplies: `[k C W, O W']` for each client, one
batched product for all. That takes more multiplications, but they are done at the processor's full rate. A 2x2
max-pooling that follows is the maximum of four blocks of columns.

Maps keep their shape `[M, N, C, H, W]`, but lie in memory as `[M, N, H, C, W]`, from one convolution to the next.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

LARGEST = 2**15  # numbers in one client's matrix, above which a convolution is the better way


def output_sides(leaf: nn.Conv2d, sides: Sequence[int]) -> list[int]:
    """H' and W' of `leaf` on maps of `sides` (H, W), for dilation 1."""
    around: Any = leaf.padding  # never a word: the stack refuses these
    paddings = zip(sides, leaf.kernel_size, leaf.stride, around, strict=True)
    return [(side + 2 * padding - kernel) // stride + 1 for side, kernel, stride, padding in paddings]


def suits(leaf: nn.Conv2d, x: Tensor) -> bool:
    """Whether `leaf` on stacked maps `x [M, N, C, H, W]` is better done as a matrix product."""
    if x.device.type != "cpu" or leaf.dilation != (1, 1):
        return False
    width = output_sides(leaf, x.shape[-2:])[1]
    return leaf.kernel_size[0] * x.shape[2] * x.shape[4] * leaf.out_channels * width <= LARGEST


class _Places(NamedTuple):
    """How a kernel is written out. Rows are `[k, C, W]`, columns `[O, W']` or, pooled, `[2, O, W'/2]`.

    `entries`: which number of the kernel `[O, C, k, k']` stands at each place, one past the last for a zero; `used`:
    the places that hold one, `numbers`: which; `owner`: the output channel of each column.
    """

    entries: Tensor
    used: Tensor
    numbers: Tensor
    owner: Tensor


@functools.lru_cache(maxsize=64)
def _places(channels: int, width: int, outputs: int, kernel: tuple, wide: int, step: int, pad: int, pooled: bool):
    tall, k = kernel
    tap = torch.arange(width)[:, None] - step * torch.arange(wide) + pad  # [W, W']: which column of the kernel, if any
    inside = (tap >= 0) & (tap < k)
    o, c, row = torch.arange(outputs), torch.arange(channels), torch.arange(tall)
    number = (o * channels + c[:, None]) * tall + row[:, None, None]  # [k, C, O]
    index = number[:, :, None, :, None] * k + tap[:, None, :]  # [k, C, W, O, W']
    index = torch.where(inside[:, None, :], index, outputs * channels * tall * k)
    owner = o[:, None].expand(outputs, wide)
    if pooled:
        index, owner = (t[..., : wide // 2 * 2].unflatten(-1, (-1, 2)).movedim(-1, -3) for t in (index, owner))
    index = index.reshape(-1).clone()
    used = (index < outputs * channels * tall * k).nonzero().squeeze(1)
    return _Places(index, used, index[used], owner.reshape(-1).clone())


def _written(kernels: Tensor, places: _Places) -> Tensor:
    """Kernels `[M, numbers]` as matrices, `[M, places]`; 0 where no number of the kernel stands."""
    return torch.cat([kernels, kernels.new_zeros(len(kernels), 1)], 1).index_select(1, places.entries)


def _read_back(matrices: Tensor, places: _Places, like: Tensor) -> Tensor:
    """The transpose of `_written`: for each number of the kernel the sum over its places, shaped as `like`."""
    total = matrices.new_zeros(len(matrices), like[0].numel())
    return total.index_add_(1, places.numbers, matrices.flatten(1).index_select(1, places.used)).view_as(like)


def _rows_together(maps: Tensor, kernel: int, step: int, pad: int, high: int) -> Tensor:
    """Maps `[R, H, L]` -> `[R, H', k L]`: for each row of the output the k rows of the (zero-padded) map it reads."""
    count, height, length = maps.shape
    padded = maps.new_zeros(count, height + 2 * pad, length)
    padded[:, pad : pad + height] = maps
    # Rows that follow each other in memory are one long row already.
    windows = padded.as_strided((count, high, kernel * length), (padded.stride(0), step * length, 1))
    return windows.contiguous()


def _rows_apart(windows: Tensor, height: int, length: int, step: int, pad: int) -> Tensor:
    """The transpose of `_rows_together`: `[R, H', k L]` -> `[R, H, L]`, what overlaps added up."""
    count, high, _ = windows.shape
    total = windows.new_zeros(count, height + 2 * pad, length)
    for row, part in enumerate(windows.split(length, dim=2)):
        total[:, row : row + step * (high - 1) + 1 : step] += part
    return total[:, pad : pad + height]


def _largest_of_four(z: Tensor) -> Tensor:
    """`[..., 4, D] -> [..., D]`."""
    a, b, c, d = z.unbind(-2)
    return torch.maximum(torch.maximum(a, b), torch.maximum(c, d))


def _to_the_largest(gradient: Tensor, z: Tensor, largest: Tensor) -> Tensor:
    """The gradient `[..., D]` of `_largest_of_four(z)`, to the first of the largest as with nn.MaxPool2d."""
    hit = torch.sub(z, largest.unsqueeze(-2)).sign_().add_(1)  # 1 where largest, else 0, without a mask of bools
    a, b, c, d = hit.unbind(-2)
    left = 1 - a
    b.mul_(left)
    left -= b
    c.mul_(left)
    left -= c
    d.mul_(left)
    return hit.mul_(gradient.unsqueeze(-2))


class _Convolution(torch.autograd.Function):
    """Maps `[M, N, H, C, W]`, weights `[M, O, C, k, k']`, biases `[M, O]` or None -> `[M, N, H', O, W']`.

    `pooled`: then 2x2 max-pooling and ReLU. One function for all, since calling many costs more than what they do.
    """

    @staticmethod
    def forward(ctx, maps: Tensor, weight: Tensor, bias: Tensor | None, leaf: nn.Conv2d, pooled: bool) -> Tensor:
        m, n, height, channels, width = maps.shape
        outputs = weight.shape[1]
        high, wide = output_sides(leaf, (height, width))
        high = high // 2 * 2 if pooled else high
        places = _places(channels, width, outputs, leaf.kernel_size, wide, leaf.stride[1], leaf.padding[1], pooled)
        flat = maps.reshape(m * n, height, channels * width)
        above: Any = leaf.padding[0]
        rows = _rows_together(flat, leaf.kernel_size[0], leaf.stride[0], above, high).view(m, n * high, -1)
        matrix = _written(weight.flatten(1), places).view(m, rows.shape[2], -1)
        if bias is None:
            out = torch.bmm(rows, matrix)
        else:
            out = torch.baddbmm(bias.index_select(1, places.owner).unsqueeze(1), rows, matrix)
        z = None
        if pooled:  # rows two by two, columns [2, O, W'/2]: four blocks
            high, wide = high // 2, wide // 2
            z = out.view(m, n, high, 4, outputs * wide)
            out = _largest_of_four(z)
            largest, out = out, out.relu()
        ctx.save_for_backward(rows, matrix, weight, z, largest if pooled else None)
        ctx.how = places, leaf, maps.shape
        return out.view(m, n, high, outputs, wide)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rows, matrix, weight, z, largest = ctx.saved_tensors
        places, leaf, (m, n, height, channels, width) = ctx.how
        gradient = gradient.flatten(3)
        if z is not None:
            gradient = _to_the_largest(torch.ops.aten.threshold_backward(gradient, largest, 0), z, largest)
        gradient = gradient.reshape(m, rows.shape[1], -1)
        to_maps = to_weight = to_bias = None
        if ctx.needs_input_grad[0]:
            windows = torch.bmm(gradient, matrix.transpose(1, 2)).view(m * n, -1, rows.shape[2])
            to_maps = _rows_apart(windows, height, channels * width, leaf.stride[0], leaf.padding[0])
            to_maps = to_maps.unflatten(0, (m, n)).unflatten(3, (channels, width))
        if ctx.needs_input_grad[1]:
            to_weight = _read_back(torch.bmm(rows.transpose(1, 2), gradient), places, weight)
        if ctx.needs_input_grad[2]:
            to_bias = gradient.new_zeros(weight.shape[:2]).index_add_(1, places.owner, gradient.sum(1))
        return to_maps, to_weight, to_bias, None, None


def convolve(x: Tensor, weight: Tensor, bias: Tensor | None, leaf: nn.Conv2d, pooled: bool = False) -> Tensor:
    """`leaf` with weights `[M, O, C, k, k']`, biases `[M, O]` on `[M, N, C, H, W]`.

    `pooled`: then 2x2 max-pooling and ReLU, whose order does not matter.
    """
    return _Convolution.apply(x.transpose(2, 3), weight, bias, leaf, pooled).transpose(2, 3)
