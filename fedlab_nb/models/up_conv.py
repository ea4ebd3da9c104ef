"""Nearest-neighbour up-sampling, then a 3x3 convolution; on large maps without ever making the larger map.

Twice the side means that each pixel stands four times. Of the nine pixels that an output pixel reads only four differ,
and which weights fall on the same one depends on whether row and column are even or odd. So the pair is one convolution
of the small map with four 2x2 kernels for every output channel, whose results are put in turns: half of the
multiplications. On a CPU this makes a generator of 28x28 images 1.4-1.6 times as fast; on maps of 8x8 it gains nothing
(tests/benchmarks/RESULTS.md).
"""

from typing import Any

import torch
from torch import Tensor, nn

# [even or odd, small pixel, tap]: which of the three taps in a row or column fall on the first and the second pixel
SHARED = ((1, 0, 0), (0, 1, 1)), ((1, 1, 0), (0, 0, 1))


class UpConv2d(nn.Conv2d):
    """Maps `[N, C, h, w]`, up-sampled to `size` (H, W), then convolved: `[N, O, H, W]`.

    `folded`: as one convolution, where the size is twice the side and on a CPU.
    """

    def __init__(self, inputs: int, outputs: int, size: tuple[int, ...], *, folded: bool = False) -> None:
        super().__init__(inputs, outputs, 3, padding=1, bias=False)
        self.size, self.folded = size, folded

    def forward(self, x: Tensor) -> Tensor:
        twice = tuple(2 * side for side in x.shape[-2:]) == self.size
        if self.folded and twice and x.device.type == "cpu":
            return folded_convolution(x, self.weight)
        return super().forward(nn.functional.interpolate(x, size=self.size))


def folded_convolution(x: Tensor, weight: Tensor) -> Tensor:
    """`x [N, C, h, w]`, twice up-sampled, convolved with `weight [O, C, 3, 3]`: `[N, O, 2h, 2w]`, channels_last."""
    share = torch.tensor(SHARED, dtype=weight.dtype)
    kernels = torch.einsum("art,bsu,octu->abocrs", share, share, weight).flatten(0, 2)
    last = torch.channels_last
    answers = nn.functional.conv2d(x.contiguous(memory_format=last), kernels.contiguous(memory_format=last), padding=1)
    return _InTurns.apply(answers, len(weight))


class _InTurns(torch.autograd.Function):
    """Answers `[N, 4 O, h + 1, w + 1]` of the four kernels, put in turns: `[N, O, 2h, 2w]`.

    Those for even rows (columns) begin one pixel outside the map, those for odd ones end there.
    """

    @staticmethod
    def forward(ctx: Any, answers: Tensor, outputs: int) -> Tensor:
        answers = answers.permute(0, 2, 3, 1).contiguous()
        ctx.outputs, ctx.shape = outputs, answers.shape
        turns = in_turns(answers, outputs)
        n, h, _, w, _, _ = turns.shape
        return turns.reshape(n, 2 * h, 2 * w, outputs).permute(0, 3, 1, 2)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        total = gradient.new_zeros(ctx.shape)
        turns = in_turns(total, ctx.outputs)
        turns.copy_(gradient.permute(0, 2, 3, 1).reshape(turns.shape))
        return total.permute(0, 3, 1, 2), None


def in_turns(answers: Tensor, outputs: int) -> Tensor:
    """A view of answers `[N, h + 1, w + 1, 4 O]`: `[N, h, 2, w, 2, O]`, each pixel of the larger map once."""
    n, high, wide, _ = answers.shape
    image, row, column, _ = answers.stride()
    sizes = n, high - 1, 2, wide - 1, 2, outputs
    return answers.as_strided(sizes, (image, row, row + 2 * outputs, column, column + outputs, 1))
