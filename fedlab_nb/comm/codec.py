"""Smaller forms of what is sent: tensors quantised to 2-8 bits, the upper triangle of a symmetric matrix, and sparse
vectors: their largest entries with the positions, at 16 bits each or as ±μ (sparse ternary).

Quantisation is of the weights alone, one scale a tensor, as FENS uses it for the ensemble that goes down to the
clients. No calibration data and no integer arithmetic: the receiver decodes and computes in floating point.

Sparse ternary compression, STC (Sattler et al., TNNLS 2020): of d numbers only the share p of largest magnitude is
kept, each as its sign times their mean magnitude μ; the gaps between positions are Golomb-coded. What a message
leaves out is not lost: `Sparsifier` adds it to the next one (error feedback).

A gap g is written as its quotient g >> b in unary (ones, then a zero) and its remainder in b bits, with b = max(0, 1
+ floor(log2(log(φ - 1) / log(1 - p)))), φ the golden ratio. The three streams (quotients, remainders, values) lie one
after the other instead of interleaved, which takes the same bits and is read without a loop. At p = 1/2, b = 0 and
the quotients are a bitmap, d bits.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..errors import demand, number, whole


@dataclass(frozen=True, eq=False)
class Quantised:
    """A tensor as packed codes of `bits` bits: `ceil(n * bits / 8)` bytes, plus 4 for the scale.

    `codes` is uint8 of that length, `scale` a float32 number as a 0-dimensional tensor. `bits`, `shape` and `dtype` (of
    the original) are header.
    """

    codes: Tensor
    scale: Tensor
    bits: int
    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """The tensors that are sent."""
        return self.codes, self.scale

    def dequantise(self) -> Tensor:
        """The decoded tensor s (code - L), of the original shape and dtype."""
        wide = _wide(self.dtype)
        codes = unpack(self.codes, self.bits, math.prod(self.shape)).to(wide)
        return (
            ((codes - levels(self.bits)) * self.scale.to(wide)).to(self.dtype).reshape(self.shape)
        )


def levels(bits: int) -> int:
    """L = 2^(bits-1) - 1 on either side of 0: 127 at 8 bits."""
    return 2 ** (bits - 1) - 1


def quantise(tensor: Tensor, bits: int = 8) -> Quantised:
    """Round `tensor` to `bits` bits; each number is off by at most half a step s.

    s = max|w| / L, w^ = s clip(round(w/s), -L, L). UsageError: not floating point, NaN or infinite entries, bits
    outside 2-8.

    >>> quantise(torch.tensor([1.0, -0.5, 0.0])).dequantise()
    tensor([ 1.0000, -0.5039,  0.0000])
    """
    bits = whole("bits", bits, 2, 8)
    floats = tensor.is_floating_point()
    demand(
        floats, f"A tensor of {tensor.dtype} cannot be quantised: only floating-point tensors can."
    )
    values = tensor.detach().reshape(-1).to(_wide(tensor.dtype))
    side = levels(bits)
    scale = (values.abs().max() if values.numel() else values.new_zeros(())) / side
    # Never below the smallest normal number, so that a tensor of zeros, or next to it, has a step to divide by.
    scale = scale.to(torch.float32).clamp(min=torch.finfo(torch.float32).tiny)
    mend = "check the training of the model first"
    demand(
        scale.isfinite(),
        f"The tensor to quantise has entries that are NaN, infinite or beyond float32; {mend}.",
    )
    codes = (values / scale.to(values.dtype)).round().clamp(-side, side) + side
    return Quantised(
        pack(codes.to(torch.uint8), bits), scale, bits, tuple(tensor.shape), tensor.dtype
    )


def quantise_state(state: Mapping[str, Tensor], bits: int = 8) -> dict[str, Tensor | Quantised]:
    """Quantise a model's state: the tensors of two and more dimensions, which are linear and convolutional weights.

    Biases, batch norm's tensors and integers stay as they are.
    """
    return {
        name: quantise(t, bits) if t.is_floating_point() and t.ndim >= 2 else t
        for name, t in state.items()
    }


def dequantise_state(state: Mapping[str, Tensor | Quantised]) -> dict[str, Tensor]:
    """Undo `quantise_state`: a state that a model can load."""
    return {name: t.dequantise() if isinstance(t, Quantised) else t for name, t in state.items()}


def pack(codes: Tensor, bits: int) -> Tensor:
    """Lay codes [n] in 0 .. 2^bits - 1 (uint8) end to end, lowest bit first: uint8 [ceil(n bits / 8)]."""
    if bits == 8:
        return codes.clone()
    row = (codes[:, None] >> torch.arange(bits, dtype=torch.uint8, device=codes.device)) & 1
    row = torch.nn.functional.pad(row.reshape(-1), (0, -codes.numel() * bits % 8)).reshape(-1, 8)
    return (row << torch.arange(8, dtype=torch.uint8, device=codes.device)).sum(
        1, dtype=torch.uint8
    )


def unpack(packed: Tensor, bits: int, n: int) -> Tensor:
    """The n codes (uint8) of `pack`."""
    if bits == 8:
        return packed[:n]
    row = (packed[:, None] >> torch.arange(8, dtype=torch.uint8, device=packed.device)) & 1
    row = row.reshape(-1)[: n * bits].reshape(n, bits)
    return (row << torch.arange(bits, dtype=torch.uint8, device=packed.device)).sum(
        1, dtype=torch.uint8
    )


def upper_triangle(matrix: Tensor) -> Tensor:
    """The numbers on and above the diagonal, row by row: [..., d, d] -> [..., d(d+1)/2].

    That the matrix is symmetric is taken on trust.
    """
    square = matrix.ndim >= 2 and matrix.shape[-1] == matrix.shape[-2]
    demand(square, f"upper_triangle needs a square matrix, not one of shape {tuple(matrix.shape)}.")
    rows, columns = torch.triu_indices(*matrix.shape[-2:], device=matrix.device)
    return matrix[..., rows, columns]


def from_upper_triangle(values: Tensor) -> Tensor:
    """The symmetric matrix that `upper_triangle` was taken from: [..., d(d+1)/2] -> [..., d, d]."""
    count = values.shape[-1] if values.ndim else -1
    d = (math.isqrt(8 * count + 1) - 1) // 2 if count >= 0 else 0
    odd = f"A tensor of shape {tuple(values.shape)} is not the upper triangle of a matrix"
    demand(count == d * (d + 1) // 2, f"{odd}; its length must be d(d+1)/2.")
    rows, columns = torch.triu_indices(d, d, device=values.device)
    matrix = values.new_empty(*values.shape[:-1], d, d)
    matrix[..., rows, columns] = values
    matrix[..., columns, rows] = values
    return matrix


def _wide(dtype: torch.dtype) -> torch.dtype:
    """The dtype to round in: at least float32, so that half-precision tensors lose nothing more."""
    return torch.promote_types(dtype, torch.float32)


# ------------------------------------------------------------------------------------------------- sparse messages
def sent(d: int, keep: float) -> int:
    """How many of d numbers a message with share `keep` holds: the nearest whole number, at least 1."""
    return max(1, round(keep * d))


def remainder_bits(keep: float) -> int:
    """b of the Golomb code for positions that are kept with probability `keep`."""
    if keep >= 1:
        return 0
    golden = (1 + math.sqrt(5)) / 2
    return max(0, 1 + math.floor(math.log2(math.log(golden - 1) / math.log1p(-keep))))


def sparsify(values: Tensor, keep: float, *, ternary: bool) -> dict[str, Any]:
    """The message of `values [d]` (float): the payload of a link, read by `restore`.

    `quotients`, `remainders`: packed bits of the positions. Then either `values` (float16) or, ternary, `signs` (one
    bit each) and `scale` (μ, one float32). d, the count and b are header.
    """
    keep = number("keep", keep, 0, 1, open_low=True)
    d, b = values.numel(), remainder_bits(keep)
    chosen = values.abs().topk(sent(d, keep)).indices.sort().values
    largest = values[chosen]
    gaps = chosen.diff(prepend=chosen.new_tensor([-1]), append=chosen.new_tensor([d])) - 1
    quotients = gaps >> b
    # Ones, with a zero after every gap but the last, which lies behind the last kept entry.
    unary = torch.ones(int(quotients.sum()) + len(chosen), dtype=torch.uint8, device=values.device)
    unary[(quotients[:-1] + 1).cumsum(0) - 1] = 0
    message = {"d": d, "count": len(chosen), "b": b, "quotients": pack(unary, 1)}
    if b:
        low = gaps[:-1] & (2**b - 1)
        bits = (low[:, None] >> torch.arange(b, device=low.device)) & 1
        message["remainders"] = pack(bits.flatten().to(torch.uint8), 1)
    if ternary:
        return message | {
            "signs": pack((largest > 0).to(torch.uint8), 1),
            "scale": largest.abs().mean().float(),
        }
    return message | {"values": largest.to(torch.float16)}


def restore(message: dict[str, Any], dtype: torch.dtype = torch.float32) -> Tensor:
    """The vector `[d]` that a message stands for: kept entries decoded, zeros elsewhere."""
    d, count, b = message["d"], message["count"], message["b"]
    packed = message["quotients"]
    zeros = (unpack(packed, 1, 8 * len(packed)) == 0).nonzero().flatten()[:count]
    gaps = (zeros.diff(prepend=zeros.new_tensor([-1])) - 1) << b
    if b:
        bits = unpack(message["remainders"], 1, count * b).view(count, b).long()
        gaps = gaps + (bits << torch.arange(b, device=bits.device)).sum(1)
    if "signs" in message:
        values = (2 * unpack(message["signs"], 1, count).to(dtype) - 1) * message["scale"].to(dtype)
    else:
        values = message["values"].to(dtype)
    return torch.zeros(d, dtype=dtype, device=values.device).scatter_(
        0, (gaps + 1).cumsum(0) - 1, values
    )


class Sparsifier:
    """One sender's end of a stream of messages: what a message left out is added to the next vector."""

    def __init__(self, keep: float, *, ternary: bool) -> None:
        self.keep, self.ternary = keep, ternary
        self.residual: Tensor | float = 0.0

    def __call__(self, values: Tensor) -> dict[str, Any]:
        """The message of `values [d]` and of what is still owed."""
        owed = values + self.residual
        message = sparsify(owed, self.keep, ternary=self.ternary)
        self.residual = owed - restore(message, values.dtype)
        return message
