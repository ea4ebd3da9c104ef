"""2x2 max-pooling that is fast on a CPU: `nn.MaxPool2d(2)` to the last bit, gradients included, in a third of its time.

PyTorch's kernel compares value by value. Two maxima of whole strided slices, rows and then columns, are vectorised.
In channels_last PyTorch's own is vectorised over channels, and faster with many of them where a gradient is wanted.
"""

import torch
from torch import Tensor, nn

WORTHWHILE = 2**15  # numbers below which calling PyTorch's kernel costs less than calling ours
MANY = 16  # channels from which, in channels_last, PyTorch's kernel takes half to two thirds of our time


class MaxPool2x2(nn.MaxPool2d):
    """`nn.MaxPool2d(2)`: windows of 2x2, an odd last row or column left out; maps `[..., H, W]`."""

    def __init__(self) -> None:
        super().__init__(2)

    def forward(self, x: Tensor) -> Tensor:
        if x.device.type != "cpu" or x.numel() < WORTHWHILE:
            return super().forward(x)
        if torch.is_grad_enabled() and x.requires_grad:
            if x.dim() == 4 and x.shape[1] >= MANY and x.is_contiguous(memory_format=torch.channels_last):
                return super().forward(x)
            return _LargestOfWindow.apply(x)
        return _halved(_halved(x, -1), -2)


def _pair(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """The even and the odd places along `dim`, an odd last one left out."""
    x = x.narrow(dim, 0, x.shape[dim] // 2 * 2)
    return (x[..., 0::2], x[..., 1::2]) if dim == -1 else (x[..., 0::2, :], x[..., 1::2, :])


def _halved(x: Tensor, dim: int) -> Tensor:
    return torch.maximum(*_pair(x, dim))


def _spread(gradient: Tensor, x: Tensor, largest: Tensor, dim: int) -> Tensor:
    """The gradient of `_halved(x, dim) = largest`: to the first of the two where they are equal."""
    whole = x.shape[dim] % 2 == 0
    spread = torch.empty_like(x) if whole else torch.zeros_like(x)
    first, second = _pair(spread, dim)
    taken = torch.sub(_pair(x, dim)[0], largest).sign_().add_(1).mul_(gradient)  # factor 1 where it is largest, else 0
    first.copy_(taken)
    torch.sub(gradient, taken, out=second)
    return spread


class _LargestOfWindow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        columns = _halved(x, -1)
        largest = _halved(columns, -2)
        ctx.save_for_backward(x, columns, largest)
        return largest

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient: Tensor) -> Tensor:
        x, columns, largest = ctx.saved_tensors
        return _spread(_spread(gradient, columns, largest, -2), x, columns, -1)
