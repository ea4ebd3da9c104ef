"""A product of two large matrices on a CPU, by whichever of PyTorch's two libraries is the faster.

`a @ b` is MKL's. On the AMD CPU of tests/benchmarks/RESULTS.md oneDNN, which does PyTorch's convolutions, needs less
than half of its time. PyTorch has oneDNN's product of float32 under a private name alone, so it is used where that name
is there.
"""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

LARGE = 2**21  # multiplications: with fewer the calls themselves take longer than they save


def product(a: Tensor, b: Tensor) -> Tensor:
    """`[m, k] x [k, n]`: `[m, n]`, contiguous; no gradient goes through it."""
    large = a.numel() * b.shape[1] > LARGE and a.device.type == "cpu" and a.dtype == torch.float32
    linear = onednn() if large else None
    return a @ b if linear is None else linear(a, b.t(), None, "none", [], "")


@cache
def onednn() -> Callable[..., Tensor] | None:
    """oneDNN's linear layer, of rows `[m, k]` and weights `[n, k]`; None where PyTorch has it not, or no x86 CPU."""
    known = torch.backends.mkldnn.is_available() and torch.backends.cpu.get_cpu_capability().startswith("AVX")
    return getattr(torch.ops.mkldnn, "_linear_pointwise", None) if known else None
