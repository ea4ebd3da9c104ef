"""SGD and Adam, step by step as torch.optim has them, on lists of tensors and given gradients.

Why not torch.optim: its first use in a process imports torch's compiler (1-2 s), its bookkeeping costs more than a step
on a small network, and Adam there counts one number of steps for a whole tensor, where in a stack of clients each row
has its own. `step(gradients)` takes a gradient for each parameter, in order.

Below them: the norm of a client's gradient, clipping, and the gradient of sharpness-aware minimisation (SAM). These
take the tensors of several clients at once, row i of each being client i's (`by_row=True`, the stack), or those of one
client as they are.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from .recipe import Recipe

ADAM_EPSILON = 1e-8


def take_rows(tensors: Sequence[Tensor], count: int) -> list[Tensor]:
    """The first `count` rows of each tensor, sharing its memory."""
    return [tensor.detach()[:count] for tensor in tensors]


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
        self.lr = lr
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.velocity: list[Tensor] = []
        if momentum:
            self.velocity = [torch.zeros_like(parameter) for parameter in self.parameters]

    def for_first_rows(self, count: int) -> Sgd:
        """This optimizer for the first `count` rows of every parameter; both share parameters and velocity."""
        part = copy.copy(self)
        part.parameters = take_rows(self.parameters, count)
        part.velocity = take_rows(self.velocity, count)
        return part

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """Update the parameters in place."""
        change: Any = list(gradients)
        if self.weight_decay:
            change = torch._foreach_add(change, self.parameters, alpha=self.weight_decay)
        if self.momentum:
            torch._foreach_mul_(self.velocity, self.momentum)
            torch._foreach_add_(self.velocity, change)
            change = self.velocity
        torch._foreach_add_(self.parameters, change, alpha=-self.lr)


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
        self.lr = lr
        self.betas = betas
        self.weight_decay = weight_decay
        self.mean = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.square = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.count = 0  # steps so far
        self.row_counts: Any = None  # [rows], steps so far of each row
        if rows is not None:
            device = self.parameters[0].device
            self.row_counts = torch.zeros(rows, dtype=torch.float64, device=device)

    def for_first_rows(self, count: int) -> Adam:
        """This optimizer for the first `count` rows of every parameter; both share parameters, moments and counts."""
        part = copy.copy(self)
        part.parameters = take_rows(self.parameters, count)
        part.mean = take_rows(self.mean, count)
        part.square = take_rows(self.square, count)
        part.row_counts = self.row_counts[:count]
        return part

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """Update the parameters in place."""
        beta1, beta2 = self.betas
        gradients = list(gradients)
        if self.weight_decay:
            gradients = torch._foreach_add(gradients, self.parameters, alpha=self.weight_decay)
        torch._foreach_lerp_(self.mean, gradients, 1 - beta1)
        torch._foreach_mul_(self.square, beta2)
        torch._foreach_addcmul_(self.square, gradients, gradients, 1 - beta2)
        roots = list(torch._foreach_sqrt(self.square))
        if self.row_counts is None:
            self._move_together(roots)
        else:
            self._move_rows(roots)

    def _move_together(self, roots: list[Tensor]) -> None:
        beta1, beta2 = self.betas
        self.count += 1
        torch._foreach_div_(roots, (1 - beta2**self.count) ** 0.5)
        torch._foreach_add_(roots, ADAM_EPSILON)
        size = -self.lr / (1 - beta1**self.count)
        torch._foreach_addcdiv_(self.parameters, self.mean, roots, size)

    def _move_rows(self, roots: list[Tensor]) -> None:
        beta1, beta2 = self.betas
        self.row_counts += 1
        sizes = self.lr / (1 - beta1**self.row_counts)
        corrections = (1 - beta2**self.row_counts).sqrt()
        for parameter, mean, root in zip(self.parameters, self.mean, roots, strict=True):
            root.div_(align_rows(corrections.to(root.dtype), root)).add_(ADAM_EPSILON)
            numerator = mean * align_rows(sizes.to(root.dtype), root)
            parameter.addcdiv_(numerator, root, value=-1)


def make_optimizer(
    parameters: Iterable[Tensor], recipe: Recipe, *, rows: int | None = None
) -> Sgd | Adam:
    """The optimizer that `recipe` names, at its first learning rate; `rows` as `Adam` has it."""
    if recipe.optimizer == "adam":
        return Adam(parameters, recipe.lr, weight_decay=recipe.weight_decay, rows=rows)
    return Sgd(parameters, recipe.lr, momentum=recipe.momentum, weight_decay=recipe.weight_decay)


# ---------------------------------------------------------------------------------------------- norm, clipping and SAM
Gradients = Sequence[Tensor]
TINY = 1e-12  # keeps a gradient of 0 from becoming NaN
CLIP_EPSILON = 1e-6  # that of nn.utils.clip_grad_norm_


def align_rows(values: Tensor, like: Tensor) -> Tensor:
    """`values [a]` as `[a, 1, ..., 1]`, so that it multiplies the rows of `like [a, ...]`."""
    return values.view(-1, *[1] * (like.dim() - 1))


def compute_norm(gradients: Gradients, by_row: bool) -> Tensor:
    """Joint norm of all gradients: one number `[]`, or with `by_row` one a client, `[a]`."""
    if not by_row:
        return torch.stack(torch._foreach_norm(list(gradients))).norm()
    norms = [gradient.flatten(1).norm(dim=1) for gradient in gradients]
    return torch.stack(norms, 1).norm(dim=1)


def scale_gradients(gradients: Gradients, factor: Tensor) -> list[Tensor]:
    """The gradients times a number `[]`, or times one a client, `[a]`."""
    if factor.dim() == 0:
        return [gradient * factor for gradient in gradients]
    return [gradient * align_rows(factor, gradient) for gradient in gradients]


def clip_gradients(gradients: Gradients, largest: float, by_row: bool = False) -> list[Tensor]:
    """The gradients, scaled down so that their norm is at most `largest` (as nn.utils.clip_grad_norm_ does)."""
    factor = largest / (compute_norm(gradients, by_row) + CLIP_EPSILON)
    return scale_gradients(gradients, factor.clamp(max=1.0))


def compute_sam_gradients(
    compute_gradients: Callable[[], Gradients],
    parameters: Sequence[Tensor],
    rho: float,
    by_row: bool,
    batch_norms: Sequence[Any],
) -> Gradients:
    """SAM's gradient (Foret et al., ICLR 2021, Eq. 3): ∇L(θ + rho ∇L(θ)/‖∇L(θ)‖), both on the same batch.

    `compute_gradients()` gives ∇L at `parameters` as they are; they are left as they were. The running statistics of
    `batch_norms` take the batch once, at θ.
    """
    gradients = compute_gradients()
    ascent = scale_gradients(gradients, rho / (compute_norm(gradients, by_row) + TINY))
    weights = [parameter.detach() for parameter in parameters]
    weights_before = [weight.clone() for weight in weights]
    torch._foreach_add_(weights, ascent)
    try:
        with freeze_statistics(batch_norms):
            return compute_gradients()
    finally:
        torch._foreach_copy_(weights, weights_before)


@contextmanager
def freeze_statistics(batch_norms: Sequence[Any]) -> Iterator[None]:
    """Within: batches leave the running statistics of these layers as they are."""
    momenta = [layer.momentum for layer in batch_norms]
    for layer in batch_norms:
        layer.momentum = 0.0
    try:
        yield
    finally:
        for layer, momentum in zip(batch_norms, momenta, strict=True):
            layer.momentum = momentum
