"""Smaller forms of what is sent: tensors quantised to 2-8 bits, and the upper triangle of a symmetric matrix.

Quantisation is of the weights alone, one scale a tensor, as FENS uses it for the ensemble that goes down to the
clients. No calibration data and no integer arithmetic: the receiver decodes and computes in floating point.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from ..errors import demand, whole


@dataclass(frozen=True, eq=False)
class Quantised:
    """A tensor as packed codes of `bits` bits: `ceil(n * bits / 8)` bytes, plus 4 for the scale.

    `codes` is uint8 of that length, `scale` a float32 number as a 0-dimensional tensor. `bits`, `shape` and `dtype` (of
    the original) are header.
    """

    codes: torch.Tensor
    scale: torch.Tensor
    bits: int
    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32

    @property
    def parts(self) -> tuple[torch.Tensor, ...]:
        """The tensors that are sent."""
        return self.codes, self.scale

    def dequantise(self) -> torch.Tensor:
        """The decoded tensor s (code - L), of the original shape and dtype."""
        wide = _wide(self.dtype)
        codes = unpack(self.codes, self.bits, math.prod(self.shape)).to(wide)
        return ((codes - levels(self.bits)) * self.scale.to(wide)).to(self.dtype).reshape(self.shape)


def levels(bits: int) -> int:
    """L = 2^(bits-1) - 1 on either side of 0: 127 at 8 bits."""
    return 2 ** (bits - 1) - 1


def quantise(tensor: torch.Tensor, bits: int = 8) -> Quantised:
    """Round `tensor` to `bits` bits; each number is off by at most half a step s.

    s = max|w| / L, w^ = s clip(round(w/s), -L, L). UsageError: not floating point, NaN or infinite entries, bits
    outside 2-8.

    >>> quantise(torch.tensor([1.0, -0.5, 0.0])).dequantise()
    tensor([ 1.0000, -0.5039,  0.0000])
    """
    bits = whole("bits", bits, 2, 8)
    demand(
        tensor.is_floating_point(), f"A tensor of {tensor.dtype} cannot be quantised: only floating-point tensors can."
    )
    values = tensor.detach().reshape(-1).to(_wide(tensor.dtype))
    side = levels(bits)
    scale = (values.abs().max() if values.numel() else values.new_zeros(())) / side
    # Never below the smallest normal number, so that a tensor of zeros, or next to it, has a step to divide by.
    scale = scale.to(torch.float32).clamp(min=torch.finfo(torch.float32).tiny)
    demand(
        scale.isfinite(),
        "The tensor to quantise has entries that are NaN, infinite or beyond float32; check the training of the "
        "model first.",
    )
    codes = (values / scale.to(values.dtype)).round().clamp(-side, side) + side
    return Quantised(pack(codes.to(torch.uint8), bits), scale, bits, tuple(tensor.shape), tensor.dtype)


def quantise_state(state: Mapping[str, torch.Tensor], bits: int = 8) -> dict[str, torch.Tensor | Quantised]:
    """Quantise a model's state: the tensors of two and more dimensions, which are linear and convolutional weights.

    Biases, batch norm's tensors and integers stay as they are.
    """
    return {name: quantise(t, bits) if t.is_floating_point() and t.ndim >= 2 else t for name, t in state.items()}


def dequantise_state(state: Mapping[str, torch.Tensor | Quantised]) -> dict[str, torch.Tensor]:
    """Undo `quantise_state`: a state that a model can load."""
    return {name: t.dequantise() if isinstance(t, Quantised) else t for name, t in state.items()}


def pack(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """Lay codes [n] in 0 .. 2^bits - 1 (uint8) end to end, lowest bit first: uint8 [ceil(n bits / 8)]."""
    if bits == 8:
        return codes.clone()
    row = (codes[:, None] >> torch.arange(bits, dtype=torch.uint8, device=codes.device)) & 1
    row = torch.nn.functional.pad(row.reshape(-1), (0, -codes.numel() * bits % 8)).reshape(-1, 8)
    return (row << torch.arange(8, dtype=torch.uint8, device=codes.device)).sum(1, dtype=torch.uint8)


def unpack(packed: torch.Tensor, bits: int, n: int) -> torch.Tensor:
    """The n codes (uint8) of `pack`."""
    if bits == 8:
        return packed[:n]
    row = (packed[:, None] >> torch.arange(8, dtype=torch.uint8, device=packed.device)) & 1
    row = row.reshape(-1)[: n * bits].reshape(n, bits)
    return (row << torch.arange(bits, dtype=torch.uint8, device=packed.device)).sum(1, dtype=torch.uint8)


def upper_triangle(matrix: torch.Tensor) -> torch.Tensor:
    """The numbers on and above the diagonal, row by row: [..., d, d] -> [..., d(d+1)/2].

    That the matrix is symmetric is taken on trust.
    """
    demand(
        matrix.ndim >= 2 and matrix.shape[-1] == matrix.shape[-2],
        f"upper_triangle needs a square matrix, not one of shape {tuple(matrix.shape)}.",
    )
    rows, columns = torch.triu_indices(*matrix.shape[-2:], device=matrix.device)
    return matrix[..., rows, columns]


def from_upper_triangle(values: torch.Tensor) -> torch.Tensor:
    """The symmetric matrix that `upper_triangle` was taken from: [..., d(d+1)/2] -> [..., d, d]."""
    count = values.shape[-1] if values.ndim else -1
    d = (math.isqrt(8 * count + 1) - 1) // 2 if count >= 0 else 0
    demand(
        count == d * (d + 1) // 2,
        f"A tensor of shape {tuple(values.shape)} is not the upper triangle of a matrix; its length must be d(d+1)/2.",
    )
    rows, columns = torch.triu_indices(d, d, device=values.device)
    matrix = values.new_empty(*values.shape[:-1], d, d)
    matrix[..., rows, columns] = values
    matrix[..., columns, rows] = values
    return matrix


def _wide(dtype: torch.dtype) -> torch.dtype:
    """The dtype to round in: at least float32, so that half-precision tensors lose nothing more."""
    return torch.promote_types(dtype, torch.float32)
