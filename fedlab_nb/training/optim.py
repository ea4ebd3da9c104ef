"""SGD and Adam, step by step as torch.optim has them, on lists of tensors and given gradients.

Why not torch.optim: its first use in a process imports torch's compiler (1-2 s), its bookkeeping costs more than a step
on a small network, and Adam there counts one number of steps for a whole tensor, where in a stack of clients each row
has its own. `step(gradients)` takes a gradient for each parameter, in order.

`first(a)` is the same optimizer for the first `a` rows of every parameter; it shares the state.

Below them: the norm of a client's gradient, clipping, and SAM's way uphill. These take the tensors of several clients
at once, row i of each being client i's (`rows=True`, the stack), or those of one client as they are.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from .recipe import Recipe


def _rows(tensors: Sequence[Tensor], active: int) -> list[Tensor]:
    return [t.detach()[:active] for t in tensors]


class Sgd:
    """v ← β v + g + decay p, p ← p - lr v (torch.optim.SGD: momentum β, coupled weight decay, no dampening)."""

    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float,
        *,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
    ) -> None:
        self.parameters = list(parameters)
        self.lr, self.momentum, self.weight_decay = lr, momentum, weight_decay
        self.velocity = [torch.zeros_like(p) for p in self.parameters] if momentum else []

    def first(self, active: int) -> Sgd:
        part = copy.copy(self)
        part.parameters, part.velocity = (
            _rows(self.parameters, active),
            _rows(self.velocity, active),
        )
        return part

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """One step."""
        change: Any = list(gradients)
        if self.weight_decay:
            change = torch._foreach_add(change, self.parameters, alpha=self.weight_decay)
        if self.momentum:
            torch._foreach_mul_(self.velocity, self.momentum)
            torch._foreach_add_(self.velocity, change)
            change = self.velocity
        torch._foreach_add_(self.parameters, change, alpha=-self.lr)


EPSILON = 1e-8  # of Adam


class Adam:
    """torch.optim.Adam: bias-corrected first and second moments, coupled weight decay.

    `rows`: the first axis of every parameter is the client's, and each row counts its own steps, so that rows may
    stop at different times (None: one count for all).
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        weight_decay: float = 0.0,
        rows: int | None = None,
    ) -> None:
        self.parameters = list(parameters)
        self.lr, self.betas, self.weight_decay = lr, betas, weight_decay
        self.mean = [torch.zeros_like(p) for p in self.parameters]
        self.square = [torch.zeros_like(p) for p in self.parameters]
        device = self.parameters[0].device
        self.steps: Any = (
            None if rows is None else torch.zeros(rows, dtype=torch.float64, device=device)
        )
        self.count = 0

    def first(self, active: int) -> Adam:
        part = copy.copy(self)
        part.parameters, part.steps = _rows(self.parameters, active), self.steps[:active]
        part.mean, part.square = _rows(self.mean, active), _rows(self.square, active)
        return part

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """One step."""
        first, second = self.betas
        gradients = list(gradients)
        if self.weight_decay:
            gradients = torch._foreach_add(gradients, self.parameters, alpha=self.weight_decay)
        torch._foreach_lerp_(self.mean, gradients, 1 - first)
        torch._foreach_mul_(self.square, second)
        torch._foreach_addcmul_(self.square, gradients, gradients, 1 - second)
        roots = torch._foreach_sqrt(self.square)
        if self.steps is None:
            self.count += 1
            torch._foreach_div_(roots, (1 - second**self.count) ** 0.5)
            torch._foreach_add_(roots, EPSILON)
            torch._foreach_addcdiv_(
                self.parameters, self.mean, roots, -self.lr / (1 - first**self.count)
            )
            return
        self.steps += 1
        size = self.lr / (1 - first**self.steps)
        spread = (1 - second**self.steps).sqrt()
        for parameter, mean, root in zip(self.parameters, self.mean, roots, strict=True):
            rows = (-1, *[1] * (root.dim() - 1))
            root.div_(spread.to(root.dtype).view(rows)).add_(EPSILON)
            parameter.addcdiv_(mean * size.to(root.dtype).view(rows), root, value=-1)


def optimizer_for(
    parameters: Iterable[Tensor], recipe: Recipe, *, rows: int | None = None
) -> Sgd | Adam:
    """The optimizer that `recipe` names, at its first learning rate."""
    if recipe.optimizer == "adam":
        return Adam(parameters, recipe.lr, weight_decay=recipe.weight_decay, rows=rows)
    return Sgd(parameters, recipe.lr, momentum=recipe.momentum, weight_decay=recipe.weight_decay)


# ---------------------------------------------------------------------------------------------- norm, clipping and SAM
Gradients = Sequence[Tensor]
TINY = 1e-12  # keeps a gradient of 0 where it is


def norms(gradients: Gradients, rows: bool) -> Tensor:
    """Joint norm of all gradients: one number, or with `rows` one a client, `[a]`."""
    if not rows:
        return torch.stack(torch._foreach_norm(list(gradients))).norm()
    return torch.stack([g.flatten(1).norm(dim=1) for g in gradients], 1).norm(dim=1)


def scaled(gradients: Gradients, factor: Tensor) -> list[Tensor]:
    """The gradients times a number, or times one a client, `[a]`."""
    return [
        g * (factor.view(-1, *[1] * (g.dim() - 1)) if factor.dim() else factor) for g in gradients
    ]


def clipped(gradients: Gradients, largest: float, rows: bool = False) -> list[Tensor]:
    """The gradients, scaled down so that their norm is at most `largest` (as nn.utils.clip_grad_norm_ does)."""
    return scaled(gradients, (largest / (norms(gradients, rows) + 1e-6)).clamp(max=1.0))


def sharpness_aware(
    slopes: Callable[[], Gradients],
    parameters: Sequence[Tensor],
    rho: float,
    rows: bool,
    layers: Sequence[Any],
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
