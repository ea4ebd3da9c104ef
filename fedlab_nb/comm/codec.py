"""Smaller forms of what is sent: quantised tensors, triangles of symmetric matrices, and sparse
vectors.

Quantisation rounds weights to 2-8 bits, with one scale a tensor, as FENS does with the ensemble
that goes down to the clients. It needs no calibration data and no integer arithmetic: the receiver
decodes and computes in floating point.

Sparse ternary compression, STC (Sattler et al., TNNLS 2020): of d numbers only the share p of
largest magnitude is sent, each as its sign times their mean magnitude μ; the gaps between positions
are Golomb-coded. What a message leaves out is not lost: `Sparsifier` adds it to the next one (error
feedback). `sparsify` also has a form that sends the entries themselves, at 16 bits each.

A gap g is written as its quotient g >> b in unary (ones, then a zero) and its remainder in b bits,
with b = max(0, 1 + floor(log2(log(φ - 1) / log(1 - p)))), φ the golden ratio. The three streams
(quotients, remainders, values) lie one after the other instead of interleaved, which takes the same
bits and is read without a loop. At p = 1/2, b = 0 and the quotients are a bitmap, d bits.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ..errors import UsageError, check_number, check_whole_number

# ------------------------------------------------------------------------------------------------- quantised tensors


@dataclass(frozen=True, eq=False)
class Quantised:
    """A tensor as packed codes of `bits` bits: `ceil(n * bits / 8)` bytes, plus 4 for the scale.

    `codes` is uint8 of that length, `scale` a float32 number as a 0-dimensional tensor. `bits`,
    `shape` and `dtype` (of the original) are header.
    """

    codes: Tensor
    scale: Tensor
    bits: int
    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32

    @property
    def tensors(self) -> tuple[Tensor, Tensor]:
        """The tensors that are sent."""
        return self.codes, self.scale

    def dequantise(self) -> Tensor:
        """The decoded tensor s (code - L), of the original shape and dtype."""
        dtype = choose_rounding_dtype(self.dtype)
        codes = unpack_bits(self.codes, self.bits, math.prod(self.shape)).to(dtype)
        values = (codes - find_largest_level(self.bits)) * self.scale.to(dtype)
        return values.to(self.dtype).reshape(self.shape)


def find_largest_level(bits: int) -> int:
    """L = 2^(bits-1) - 1, the number of levels on either side of 0: 127 at 8 bits."""
    return 2 ** (bits - 1) - 1


def choose_rounding_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype to round in: at least float32, so that half-precision tensors lose nothing more."""
    return torch.promote_types(dtype, torch.float32)


def quantise(tensor: Tensor, bits: int = 8) -> Quantised:
    """Round `tensor` to `bits` bits; each number is off by at most half a step s.

    s = max|w| / L, w^ = s clip(round(w/s), -L, L). UsageError: not floating point, NaN or infinite
    entries, bits outside 2-8.

    >>> quantise(torch.tensor([1.0, -0.5, 0.0])).dequantise()
    tensor([ 1.0000, -0.5039,  0.0000])
    """
    bits = check_whole_number("bits", bits, 2, 8)
    if not tensor.is_floating_point():
        raise UsageError(
            f"A tensor of {tensor.dtype} cannot be quantised: only floating-point tensors can."
        )
    values = tensor.detach().reshape(-1).to(choose_rounding_dtype(tensor.dtype))
    level = find_largest_level(bits)
    if values.numel():
        magnitude = values.abs().max()
    else:
        magnitude = values.new_zeros(())
    scale = (magnitude / level).to(torch.float32)
    # Never below the smallest normal number, so that a tensor of zeros, or next to it, has a step to divide by.
    scale = scale.clamp(min=torch.finfo(torch.float32).tiny)
    if not scale.isfinite():
        raise UsageError(
            "The tensor to quantise has entries that are NaN, infinite or beyond float32;"
            " check the training of the model first."
        )
    codes = (values / scale.to(values.dtype)).round().clamp(-level, level) + level
    packed = pack_bits(codes.to(torch.uint8), bits)
    return Quantised(packed, scale, bits, tuple(tensor.shape), tensor.dtype)


def quantise_state(state: Mapping[str, Tensor], bits: int = 8) -> dict[str, Tensor | Quantised]:
    """Quantise a model's state: the tensors of two and more dimensions, which are linear and
    convolutional weights.

    Biases, batch norm's tensors and integers stay as they are.
    """
    quantised: dict[str, Tensor | Quantised] = {}
    for name, tensor in state.items():
        is_weight = tensor.is_floating_point() and tensor.ndim >= 2
        quantised[name] = quantise(tensor, bits) if is_weight else tensor
    return quantised


def dequantise_state(state: Mapping[str, Tensor | Quantised]) -> dict[str, Tensor]:
    """Undo `quantise_state`: a state that a model can load."""
    return {name: t.dequantise() if isinstance(t, Quantised) else t for name, t in state.items()}


def pack_bits(codes: Tensor, bits: int) -> Tensor:
    """Lay codes [n] in 0 .. 2^bits - 1 (uint8) end to end, lowest bit first: uint8
    [ceil(n bits / 8)]."""
    if bits == 8:
        return codes.clone()
    code_places = torch.arange(bits, dtype=torch.uint8, device=codes.device)
    stream = ((codes[:, None] >> code_places) & 1).reshape(-1)
    padding = -codes.numel() * bits % 8
    byte_rows = F.pad(stream, (0, padding)).reshape(-1, 8)
    byte_places = torch.arange(8, dtype=torch.uint8, device=codes.device)
    return (byte_rows << byte_places).sum(1, dtype=torch.uint8)


def unpack_bits(packed: Tensor, bits: int, count: int) -> Tensor:
    """The first `count` codes (uint8) of what `pack_bits` gave."""
    if bits == 8:
        return packed[:count]
    byte_places = torch.arange(8, dtype=torch.uint8, device=packed.device)
    stream = ((packed[:, None] >> byte_places) & 1).reshape(-1)
    code_rows = stream[: count * bits].reshape(count, bits)
    code_places = torch.arange(bits, dtype=torch.uint8, device=packed.device)
    return (code_rows << code_places).sum(1, dtype=torch.uint8)


# ------------------------------------------------------------------------------------------------- symmetric matrices


def upper_triangle(matrix: Tensor) -> Tensor:
    """The numbers on and above the diagonal, row by row: [..., d, d] -> [..., d(d+1)/2].

    That the matrix is symmetric is not checked. UsageError unless it is square.
    """
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise UsageError(
            f"upper_triangle needs a square matrix, not one of shape {tuple(matrix.shape)}."
        )
    rows, columns = torch.triu_indices(*matrix.shape[-2:], device=matrix.device)
    return matrix[..., rows, columns]


def from_upper_triangle(values: Tensor) -> Tensor:
    """The symmetric matrix that `upper_triangle` was taken from: [..., d(d+1)/2] -> [..., d, d].

    UsageError where the length is not that of a triangle.
    """
    count = values.shape[-1] if values.ndim else -1
    d = (math.isqrt(8 * max(count, 0) + 1) - 1) // 2
    if count != d * (d + 1) // 2:
        raise UsageError(
            f"A tensor of shape {tuple(values.shape)} is not the upper triangle of a matrix;"
            " its length must be d(d+1)/2."
        )
    rows, columns = torch.triu_indices(d, d, device=values.device)
    matrix = values.new_empty(*values.shape[:-1], d, d)
    matrix[..., rows, columns] = values
    matrix[..., columns, rows] = values
    return matrix


# ------------------------------------------------------------------------------------------------- sparse messages


def count_kept_entries(size: int, keep: float) -> int:
    """How many of `size` numbers a message with share `keep` holds: the nearest whole number, at least
    1."""
    return max(1, round(keep * size))


def choose_remainder_bits(keep: float) -> int:
    """b of the Golomb code for positions that are kept with probability `keep`."""
    if keep >= 1:
        return 0
    golden = (1 + math.sqrt(5)) / 2
    return max(0, 1 + math.floor(math.log2(math.log(golden - 1) / math.log1p(-keep))))


def sparsify(values: Tensor, keep: float, *, ternary: bool) -> dict[str, Any]:
    """The message of `values [d]` (float): the payload of a link, read by `restore_sparsified`.

    `quotients`, `remainders`: packed bits of the positions. Then either `values` (float16) or,
    ternary, `signs` (one bit each) and `scale` (μ, one float32). d, the count and b are header.
    """
    keep = check_number("keep", keep, 0, 1, open_low=True)
    d = values.numel()
    b = choose_remainder_bits(keep)
    positions = values.abs().topk(count_kept_entries(d, keep)).indices.sort().values
    largest = values[positions]
    before_first = positions.new_tensor([-1])
    behind_last = positions.new_tensor([d])
    gaps = positions.diff(prepend=before_first, append=behind_last) - 1
    quotients = gaps >> b
    # Ones, with a zero after every gap but the last, which lies behind the last kept entry.
    length = int(quotients.sum()) + len(positions)
    unary = torch.ones(length, dtype=torch.uint8, device=values.device)
    unary[(quotients[:-1] + 1).cumsum(0) - 1] = 0
    message: dict[str, Any] = {"d": d, "count": len(positions), "b": b}
    message["quotients"] = pack_bits(unary, 1)
    if b:
        remainders = gaps[:-1] & (2**b - 1)
        bits = (remainders[:, None] >> torch.arange(b, device=gaps.device)) & 1
        message["remainders"] = pack_bits(bits.flatten().to(torch.uint8), 1)
    if ternary:
        message["signs"] = pack_bits((largest > 0).to(torch.uint8), 1)
        message["scale"] = largest.abs().mean().float()
    else:
        message["values"] = largest.to(torch.float16)
    return message


def restore_sparsified(message: dict[str, Any], dtype: torch.dtype = torch.float32) -> Tensor:
    """The vector `[d]` that a message stands for: kept entries decoded, zeros elsewhere."""
    count = message["count"]
    b = message["b"]
    packed = message["quotients"]
    stream = unpack_bits(packed, 1, 8 * len(packed))
    ends = (stream == 0).nonzero().flatten()[:count]  # the zero behind each quotient's ones
    gaps = (ends.diff(prepend=ends.new_tensor([-1])) - 1) << b
    if b:
        bits = unpack_bits(message["remainders"], 1, count * b).view(count, b).long()
        gaps = gaps + (bits << torch.arange(b, device=bits.device)).sum(1)
    if "signs" in message:
        signs = 2 * unpack_bits(message["signs"], 1, count).to(dtype) - 1
        values = signs * message["scale"].to(dtype)
    else:
        values = message["values"].to(dtype)
    positions = (gaps + 1).cumsum(0) - 1
    restored = torch.zeros(message["d"], dtype=dtype, device=values.device)
    return restored.scatter_(0, positions, values)


class Sparsifier:
    """One sender's end of a stream of messages: what a message left out is added to the next
    vector."""

    def __init__(self, keep: float, *, ternary: bool) -> None:
        self.keep = keep
        self.ternary = ternary
        self.residual: Tensor | float = 0.0

    def __call__(self, values: Tensor) -> dict[str, Any]:
        """The message of `values [d]` plus the residual of the messages before."""
        total = values + self.residual
        message = sparsify(total, self.keep, ternary=self.ternary)
        self.residual = total - restore_sparsified(message, values.dtype)
        return message
