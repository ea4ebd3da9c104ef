"""Compressed messages: quantised tensors, triangles of symmetric matrices, and sparse vectors.

Quantisation rounds weights to 2-8 bits, with one scale for each tensor, as FENS does with the
ensemble that it sends to the clients. It needs no calibration data and no integer arithmetic: the
receiver decodes and computes in floating point.

Sparse ternary compression, STC (Sattler et al., TNNLS 2020): of d numbers only the share p of
largest magnitude is sent, each as its sign times their mean magnitude μ; the gaps between positions
are Golomb-coded. What a message leaves out is not lost: `SparsifierWithResidual` adds it to the next one (error
feedback). `pack_largest_entries` also has a form that sends the entries themselves, at 16 bits each.

A gap g is written as its quotient g >> b in unary (ones, then a zero) and its remainder in b bits,
with b = max(0, 1 + floor(log2(log(φ - 1) / log(1 - p)))), φ the golden ratio. The three streams
(quotients, remainders, values) are stored one after the other instead of interleaved; that takes as
many bits and can be read without a loop. At p = 1/2, b = 0 and the quotients are a bitmap of d bits.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

import torch
from torch import Tensor
from torch.nn import functional as F

from ..errors import UsageError, check_number, check_whole_number
from ..tensor_types import SquareMatrix, TensorsByName, Vector

UpperTriangle = Tensor  # [..., d (d + 1) / 2], row by row

Codes = Tensor  # uint8 [n], each from 0 to 2^bits - 1
PackedBytes = Tensor  # uint8, the codes' bits end to end

# ------------------------------------------------------------------------------------------------- quantised tensors


class CodesAndScale(NamedTuple):
    """The two tensors that are sent for a quantised tensor."""

    codes: Tensor
    scale: Tensor


@dataclass(frozen=True, eq=False)
class QuantisedTensor:
    """A tensor as packed codes of `bits` bits: `ceil(n * bits / 8)` bytes, plus 4 for the scale.

    `codes` is uint8 of that length, `scale` a float32 number as a 0-dimensional tensor. `bits` and the
    original's `shape` and `dtype` are the header, which is not counted.
    """

    codes: Tensor
    scale: Tensor
    bits: int
    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32

    @property
    def codes_and_scale(self) -> CodesAndScale:
        """The tensors that are sent."""
        return CodesAndScale(self.codes, self.scale)

    def dequantise(self) -> Tensor:
        """The decoded tensor s (code - L), of the original shape and dtype."""
        dtype = choose_dtype_for_rounding(self.dtype)
        codes = unpack_bits(self.codes, self.bits, math.prod(self.shape)).to(dtype)
        values = (codes - count_levels_on_either_side(self.bits)) * self.scale.to(dtype)
        return values.to(self.dtype).reshape(self.shape)


QuantisedState = dict[str, Tensor | QuantisedTensor]


def count_levels_on_either_side(bits: int) -> int:
    """L = 2^(bits-1) - 1, the number of levels on either side of 0: 127 at 8 bits."""
    return 2 ** (bits - 1) - 1


def choose_dtype_for_rounding(dtype: torch.dtype) -> torch.dtype:
    """The dtype to round in: at least float32, so that half-precision tensors lose no more than that."""
    return torch.promote_types(dtype, torch.float32)


def quantise(tensor: Tensor, bits: int = 8) -> QuantisedTensor:
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
    values = tensor.detach().reshape(-1).to(choose_dtype_for_rounding(tensor.dtype))
    level = count_levels_on_either_side(bits)
    if values.numel():
        magnitude = values.abs().max()
    else:
        magnitude = values.new_zeros(())
    scale = (magnitude / level).to(torch.float32)
    # At least the smallest normal number, since the values are divided by it and may all be 0 or tiny.
    scale = scale.clamp(min=torch.finfo(torch.float32).tiny)
    if not scale.isfinite():
        raise UsageError(
            "The tensor to quantise has entries that are NaN, infinite or beyond float32;"
            " check the training of the model first."
        )
    codes = (values / scale.to(values.dtype)).round().clamp(-level, level) + level
    packed = pack_bits(codes.to(torch.uint8), bits)
    return QuantisedTensor(packed, scale, bits, tuple(tensor.shape), tensor.dtype)


def quantise_state(state: Mapping[str, Tensor], bits: int = 8) -> QuantisedState:
    """Quantise the weights in a model's state: its float tensors of two or more dimensions.

    Biases, batch norm's tensors and integers stay as they are.
    """
    quantised: dict[str, Tensor | QuantisedTensor] = {}
    for name, tensor in state.items():
        is_weight = tensor.is_floating_point() and tensor.ndim >= 2
        if is_weight:
            quantised[name] = quantise(tensor, bits)
        else:
            quantised[name] = tensor
    return quantised


def dequantise_state(state: Mapping[str, Tensor | QuantisedTensor]) -> TensorsByName:
    """Undo `quantise_state`: a state that a model can load."""
    dequantised = {}
    for name, tensor in state.items():
        if isinstance(tensor, QuantisedTensor):
            tensor = tensor.dequantise()
        dequantised[name] = tensor
    return dequantised


def pack_bits(codes: Codes, bits: int) -> PackedBytes:
    """Pack `codes` [n], each below 2^bits, end to end, lowest bit first: uint8 [ceil(n bits / 8)]."""
    if bits == 8:
        return codes.clone()
    code_places = torch.arange(bits, dtype=torch.uint8, device=codes.device)
    stream = ((codes[:, None] >> code_places) & 1).reshape(-1)
    padding = -codes.numel() * bits % 8
    byte_rows = F.pad(stream, (0, padding)).reshape(-1, 8)
    byte_places = torch.arange(8, dtype=torch.uint8, device=codes.device)
    return (byte_rows << byte_places).sum(1, dtype=torch.uint8)


def unpack_bits(packed: PackedBytes, bits: int, code_count: int) -> Codes:
    """The first `code_count` codes of those that `pack_bits` packed."""
    if bits == 8:
        return packed[:code_count]
    byte_places = torch.arange(8, dtype=torch.uint8, device=packed.device)
    stream = ((packed[:, None] >> byte_places) & 1).reshape(-1)
    code_rows = stream[: code_count * bits].reshape(code_count, bits)
    code_places = torch.arange(bits, dtype=torch.uint8, device=packed.device)
    return (code_rows << code_places).sum(1, dtype=torch.uint8)


# ------------------------------------------------------------------------------------------------- symmetric matrices


def pack_upper_triangle(matrix: SquareMatrix) -> UpperTriangle:
    """The numbers on and above the diagonal, row by row: [..., d, d] -> [..., d(d+1)/2].

    UsageError unless the matrix is square; whether it is symmetric is not checked.
    """
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise UsageError(
            f"pack_upper_triangle needs a square matrix, not one of shape {tuple(matrix.shape)}."
        )
    rows, columns = torch.triu_indices(*matrix.shape[-2:], device=matrix.device)
    return matrix[..., rows, columns]


def unpack_upper_triangle(triangle: UpperTriangle) -> SquareMatrix:
    """The symmetric matrix that `pack_upper_triangle` was taken from: [..., d(d+1)/2] -> [..., d, d].

    UsageError if the length is not that of a triangle.
    """
    count = triangle.shape[-1] if triangle.ndim else -1
    d = (math.isqrt(8 * max(count, 0) + 1) - 1) // 2  # solves count = d (d + 1) / 2
    if count != d * (d + 1) // 2:
        raise UsageError(
            f"A tensor of shape {tuple(triangle.shape)} is not the upper triangle of a matrix;"
            " its length must be d(d+1)/2."
        )
    rows, columns = torch.triu_indices(d, d, device=triangle.device)
    matrix = triangle.new_empty(*triangle.shape[:-1], d, d)
    matrix[..., rows, columns] = triangle
    matrix[..., columns, rows] = triangle
    return matrix


# ------------------------------------------------------------------------------------------------- sparse messages


class SparsePositions(TypedDict):
    """The positions of the entries that were kept, packed. Its whole numbers are header, which is not counted.

    d: length of the vector
    count: entries that were kept
    b: bits of a remainder
    quotients: packed bits
    """

    d: int
    count: int
    b: int
    quotients: Tensor


class SparseMessage(SparsePositions, total=False):
    """The largest entries of a vector, packed: the payload of a link.

    remainders: packed bits, the rest of the positions; missing if b = 0
    signs, scale: of a ternary message, one bit for each entry and μ, a float32 number
    values: of any other message, the entries in float16
    """

    remainders: Tensor
    signs: Tensor
    scale: Tensor
    values: Tensor


def count_kept_entries(entry_count: int, share_kept_0_to_1: float) -> int:
    """The number of entries in a message that keeps `share_kept_0_to_1` (0–1) of `entry_count`; at least 1."""
    return max(1, round(share_kept_0_to_1 * entry_count))


def choose_golomb_remainder_bits(share_kept_0_to_1: float) -> int:
    """b, the bits of a remainder, of the Golomb code for positions kept with probability `share_kept_0_to_1`."""
    if share_kept_0_to_1 >= 1:
        return 0
    golden = (1 + math.sqrt(5)) / 2
    return max(0, 1 + math.floor(math.log2(math.log(golden - 1) / math.log1p(-share_kept_0_to_1))))


def pack_largest_entries(
    vector: Vector, share_kept_0_to_1: float, *, ternary: bool
) -> SparseMessage:
    """The message with the largest entries by magnitude of a float `vector [d]`, the share `share_kept_0_to_1`."""
    share_kept_0_to_1 = check_number("keep", share_kept_0_to_1, 0, 1, excludes_low=True)
    d = vector.numel()
    b = choose_golomb_remainder_bits(share_kept_0_to_1)
    positions = vector.abs().topk(count_kept_entries(d, share_kept_0_to_1)).indices.sort().values
    largest = vector[positions]
    before_first = positions.new_tensor([-1])
    behind_last = positions.new_tensor([d])
    gaps = positions.diff(prepend=before_first, append=behind_last) - 1
    quotients = gaps >> b
    # Each quotient is so many ones; a zero follows each but the last, that of the gap behind the last kept entry.
    length = int(quotients.sum()) + len(positions)
    unary = torch.ones(length, dtype=torch.uint8, device=vector.device)
    unary[(quotients[:-1] + 1).cumsum(0) - 1] = 0
    quotient_bits = pack_bits(unary, 1)
    message = SparseMessage(d=d, count=len(positions), b=b, quotients=quotient_bits)
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


def unpack_largest_entries(message: SparseMessage, dtype: torch.dtype = torch.float32) -> Vector:
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


class SparsifierWithResidual:
    """Makes a sequence of sparse messages; what one message leaves out is added to the next vector."""

    def __init__(self, share_kept: float, *, ternary: bool) -> None:
        self.share_kept = share_kept
        self.ternary = ternary
        self.residual: Tensor | float = 0.0

    def __call__(self, values: Tensor) -> SparseMessage:
        """The message of `values [d]` plus the residual of the messages before."""
        total = values + self.residual
        message = pack_largest_entries(total, self.share_kept, ternary=self.ternary)
        self.residual = total - unpack_largest_entries(message, values.dtype)
        return message
