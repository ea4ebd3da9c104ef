"""Gradients of the whole model of a client: their norm, clipping, and SAM's way uphill.

Everything takes the tensors of several clients at once, row i of each being client i's (`rows=True`, the stack), or
those of one client as they are.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Gradients = Sequence[Tensor]
TINY = 1e-12  # keeps a gradient of 0 where it is


def norms(gradients: Gradients, rows: bool) -> Tensor:
    """Joint norm of all gradients: one number, or with `rows` one a client, `[a]`."""
    if not rows:
        return torch.stack(torch._foreach_norm(list(gradients))).norm()
    return torch.stack([g.flatten(1).norm(dim=1) for g in gradients], 1).norm(dim=1)


def scaled(gradients: Gradients, factor: Tensor) -> list[Tensor]:
    """The gradients times a number, or times one a client, `[a]`."""
    return [g * (factor.view(-1, *[1] * (g.dim() - 1)) if factor.dim() else factor) for g in gradients]


def clipped(gradients: Gradients, largest: float, rows: bool) -> list[Tensor]:
    """The gradients, scaled down so that their norm is at most `largest` (as nn.utils.clip_grad_norm_ does)."""
    return scaled(gradients, (largest / (norms(gradients, rows) + 1e-6)).clamp(max=1.0))


def sharpness_aware(
    slopes: Callable[[], Gradients], parameters: Sequence[Tensor], rho: float, rows: bool, layers: Sequence[Any]
) -> Gradients:
    """SAM's gradient (Foret et al., ICLR 2021, Eq. 3): ∇L(θ + rho ∇L(θ)/‖∇L(θ)‖), both on the same batch.

    `slopes()` gives ∇L at `parameters` as they are; they are left as they were. `layers`: batch norms, whose running
    statistics take the batch once, at θ.
    """
    first = slopes()
    up = scaled(first, rho / (norms(first, rows) + TINY))
    with torch.no_grad():
        before = [p.detach().clone() for p in parameters]
        torch._foreach_add_([p.detach() for p in parameters], up)
    momenta = [layer.momentum for layer in layers]
    try:
        for layer in layers:
            layer.momentum = 0.0
        return slopes()
    finally:
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
        with torch.no_grad():
            torch._foreach_copy_([p.detach() for p in parameters], before)
