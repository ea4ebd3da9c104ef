"""Quantised activations of the ensemble: what every linear and convolutional layer reads, at `bits` bits a number.

As in FENS' public code (PyTorch's static quantisation: one range a layer, its least and largest value), but for the
samples that the ranges come from: a client's own held-out ones (its training ones where it held nothing out), there a
part of the test set. The client measures its trained model and sends the ranges beside it, `[L, 2]` for L layers. The
arithmetic is simulated: a layer gets x̂ = s (clip(round(x/s) + z, 0, 2^bits - 1) - z), s = (high - low) / (2^bits - 1),
z = round(-low/s), and computes in floating point.
"""

import functools
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ...models import Network
from ...training import ClientModels
from ...training.evaluate import in_chunks
from ..context import Context

RANGES = "activation ranges"


def quantised_layers(module: nn.Module) -> list[nn.Module]:
    """The L layers whose inputs are rounded, in the order of `module.modules()`."""
    return [layer for layer in module.modules() if isinstance(layer, nn.Linear | nn.Conv2d)]


@torch.no_grad()
def input_ranges(module: Network, x: Tensor) -> Tensor:
    """Least and largest input of every layer over the samples `x [n, ...]`, with 0 in between: `[L, 2]`."""
    layers = quantised_layers(module)
    ranges = x.new_zeros(len(layers), 2)

    def note(row: Tensor, layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        low, high = inputs[0].aminmax()
        row.copy_(torch.stack([torch.minimum(row[0], low), torch.maximum(row[1], high)]))

    handles = [
        layer.register_forward_pre_hook(functools.partial(note, row))
        for layer, row in zip(layers, ranges, strict=True)
    ]  # fmt: skip
    try:
        in_chunks(module, x)
    finally:
        for handle in handles:
            handle.remove()
    return ranges


def rounded(x: Tensor, low: Tensor, high: Tensor, bits: int) -> Tensor:
    """x̂ of the module docstring; a range of no width leaves next to nothing."""
    top = 2**bits - 1
    step = ((high - low) / top).clamp_min(torch.finfo(x.dtype).tiny)
    zero = (-low / step).round()
    return step * ((x / step).round() + zero).clamp(0, top).sub(zero)


def with_rounded_inputs(module: Network, ranges: Tensor, bits: int) -> Network:
    """The same module, changed in place: every layer reads its input at `bits` bits within its row of `ranges`."""

    def read(low: Tensor, high: Tensor, layer: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (rounded(inputs[0], low, high, bits), *inputs[1:])

    for layer, (low, high) in zip(quantised_layers(module), ranges, strict=True):
        layer.register_forward_pre_hook(functools.partial(read, low, high))
    return module


def measured_ranges(ctx: Context, trained: ClientModels, members: Sequence[int]) -> list[Tensor]:
    """Client part and link: every member measures its own model on what it held out, and sends the ranges up."""
    received = []
    for k in members:
        held_out, _ = ctx.private.held_out(k)
        x = held_out if len(held_out) else ctx.private.train(k)[0]
        received.append(ctx.link.up(k, {"ranges": input_ranges(trained.module(k), x)}, phase=RANGES)["ranges"])
    return received
