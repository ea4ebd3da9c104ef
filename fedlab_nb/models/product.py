"""A product of two large matrices on a CPU, by whichever of PyTorch's two libraries is the faster.

`a @ b` is MKL's. On AMD's CPUs oneDNN, which does PyTorch's convolutions, needs less than half of its time for the same
product (tests/benchmarks/RESULTS.md). PyTorch has oneDNN's product of float32 under a private name alone, so it is used
where that name is there.
"""

import torch
from torch import Tensor

LARGE = 2**21  # multiplications: with fewer the calls themselves take longer than they save


def product(a: Tensor, b: Tensor) -> Tensor:
    """`[m, k] x [k, n]`: `[m, n]`, contiguous; no gradient goes through it."""
    large = a.numel() * b.shape[1] > LARGE and a.device.type == "cpu" and a.dtype == torch.float32
    if large and hasattr(torch.ops.mkldnn, "_linear_pointwise") and torch.backends.mkldnn.is_available():
        return torch.ops.mkldnn._linear_pointwise(a, b.t(), None, "none", [], "")
    return a @ b
