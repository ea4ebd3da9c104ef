"""Noise on what a client uploads, to see how much a method tolerates. It is no privacy guarantee.

FedLPA's paper adds Laplace noise to the sent parameters and calls it differential privacy, with a sensitivity of 1 that
nothing enforces (weights and factors are not bounded). So the scale is stated here for what it is: a share of each
tensor's own root mean square.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from ...codec import from_upper_triangle, upper_triangle


def noisy(tensor: Tensor, share: float, stream: torch.Generator) -> Tensor:
    """`tensor` plus independent Laplace noise of scale `share` times its root mean square.

    Its standard deviation is √2 times that. Drawn on the CPU in float64: device and dtype change nothing but rounding.
    """
    if not share or not tensor.numel():
        return tensor
    u = torch.rand(tensor.shape, generator=stream, dtype=torch.float64) - 0.5
    draw = -u.sign() * torch.log1p(-2 * u.abs().clamp(max=0.5 - 1e-12))
    return tensor + share * tensor.square().mean().sqrt() * draw.to(tensor)


def noisy_state(
    state: Mapping[str, Tensor], names: Iterable[str], share: float, stream: torch.Generator
) -> dict[str, Tensor]:
    """A state dict with noise on the tensors `names`, in that order; the others (running statistics) stay."""
    changed = {name: noisy(state[name], share, stream) for name in names}
    return {name: changed.get(name, tensor) for name, tensor in state.items()}


def noisy_factor(matrix: Tensor, share: float, stream: torch.Generator) -> Tensor:
    """A positive semi-definite matrix with noise on its upper triangle, and no negative eigenvalue afterwards."""
    if not share:
        return matrix
    values, vectors = torch.linalg.eigh(from_upper_triangle(noisy(upper_triangle(matrix), share, stream)))
    mended = (vectors * values.clamp(min=0)) @ vectors.T
    return (mended + mended.T) / 2
