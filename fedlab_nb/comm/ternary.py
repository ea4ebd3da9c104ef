"""Sparse messages: the largest entries of a vector, with their positions, at 16 bits each or as ±μ (sparse ternary).

Sparse ternary compression, STC (Sattler et al., TNNLS 2020): of d numbers only the share p of largest magnitude is
kept, each as its sign times their mean magnitude μ; the gaps between positions are Golomb-coded. What a message
leaves out is not lost: `Sparsifier` adds it to the next one (error feedback).

A gap g is written as its quotient g >> b in unary (ones, then a zero) and its remainder in b bits, with b = max(0, 1
+ floor(log2(log(φ - 1) / log(1 - p)))), φ the golden ratio. The three streams (quotients, remainders, values) lie one
after the other instead of interleaved, which takes the same bits and is read without a loop. At p = 1/2, b = 0 and
the quotients are a bitmap, d bits.
"""

import math
from typing import Any

import torch
from torch import Tensor

from ..errors import number
from .codec import pack, unpack


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
        return message | {"signs": pack((largest > 0).to(torch.uint8), 1), "scale": largest.abs().mean().float()}
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
    return torch.zeros(d, dtype=dtype, device=values.device).scatter_(0, (gaps + 1).cumsum(0) - 1, values)


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
