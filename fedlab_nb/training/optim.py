"""SGD and Adam for lists of tensors, with the same steps as in torch.optim; `step(gradients)` takes theirs in order.

torch.optim itself is not used for three reasons: its first use in a process imports torch's compiler (1-2 s), its
bookkeeping costs more than a step on a small network, and its Adam has one count of steps for a whole tensor, while in
a stack of clients each row needs its own.

Below the optimizers are the norm of a client's gradient, clipping, and the gradient of sharpness-aware minimisation
(SAM). They take the tensors of one client, or with `per_client=True` those of several, in which row i is client i's.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ..tensor_types import ScalarTensor, ValuePerClient, Vector
from ..value_types import WithBlock
from .recipe import Recipe

if TYPE_CHECKING:
    from .stack import StackedBatchNorm2d

ADAM_EPSILON = 1e-8


def view_first_rows(tensors: Sequence[Tensor], row_count: int) -> list[Tensor]:
    """The first `row_count` rows of each tensor, sharing its memory."""
    return [tensor.detach()[:row_count] for tensor in tensors]


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

    def view_first_models(self, model_count: int) -> Sgd:
        """This optimizer for the first `model_count` rows of every parameter; both share parameters and velocity."""
        part = copy.copy(self)
        part.parameters = view_first_rows(self.parameters, model_count)
        part.velocity = view_first_rows(self.velocity, model_count)
        return part

    @torch.no_grad()
    def step(self, gradients: Gradients) -> None:
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

    rows: the number of clients, if the first axis of every parameter is the client; each row then counts its own
        steps, so that clients may stop at different times. None: one count for all
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

    def view_first_models(self, model_count: int) -> Adam:
        """This optimizer for the first `model_count` rows of every parameter; both share
        parameters, moments and counts."""
        part = copy.copy(self)
        part.parameters = view_first_rows(self.parameters, model_count)
        part.mean = view_first_rows(self.mean, model_count)
        part.square = view_first_rows(self.square, model_count)
        part.row_counts = self.row_counts[:model_count]
        return part

    @torch.no_grad()
    def step(self, gradients: Gradients) -> None:
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
            self._update_all_rows(roots)
        else:
            self._update_each_row(roots)

    def _update_all_rows(self, root_mean_squares: list[Tensor]) -> None:
        beta1, beta2 = self.betas
        self.count += 1
        torch._foreach_div_(root_mean_squares, (1 - beta2**self.count) ** 0.5)
        torch._foreach_add_(root_mean_squares, ADAM_EPSILON)
        size = -self.lr / (1 - beta1**self.count)
        torch._foreach_addcdiv_(self.parameters, self.mean, root_mean_squares, size)

    def _update_each_row(self, root_mean_squares: list[Tensor]) -> None:
        beta1, beta2 = self.betas
        self.row_counts += 1
        sizes = self.lr / (1 - beta1**self.row_counts)
        corrections = (1 - beta2**self.row_counts).sqrt()
        for parameter, mean, root in zip(
            self.parameters, self.mean, root_mean_squares, strict=True
        ):
            row_corrections = reshape_client_values_for_broadcast(corrections.to(root.dtype), root)
            row_sizes = reshape_client_values_for_broadcast(sizes.to(root.dtype), root)
            root.div_(row_corrections).add_(ADAM_EPSILON)
            parameter.addcdiv_(mean * row_sizes, root, value=-1)


def make_optimizer(
    parameters: Iterable[Tensor], recipe: Recipe, *, stacked_model_count_or_none: int | None = None
) -> Sgd | Adam:
    """The optimizer that `recipe` names, with the recipe's first learning rate.

    stacked_model_count_or_none: the number of models if their parameters are stacked (`rows` of `Adam`)
    """
    if recipe.optimizer == "adam":
        return Adam(
            parameters,
            recipe.lr,
            weight_decay=recipe.weight_decay,
            rows=stacked_model_count_or_none,
        )
    return Sgd(parameters, recipe.lr, momentum=recipe.momentum, weight_decay=recipe.weight_decay)


# ---------------------------------------------------------------------------------------------- norm, clipping and SAM
Gradients = Sequence[Tensor]
TINY = 1e-12  # keeps a gradient of 0 from becoming NaN
CLIP_EPSILON = 1e-6  # as in nn.utils.clip_grad_norm_


def reshape_client_values_for_broadcast(
    client_values: Vector, tensor_to_multiply: Tensor
) -> Tensor:
    """`client_values [a]` as `[a, 1, ..., 1]`, so that it multiplies the rows of
    `tensor_to_multiply [a, ...]`."""
    other_axes = [1] * (tensor_to_multiply.dim() - 1)
    return client_values.view(-1, *other_axes)


def compute_gradient_norm(gradients: Gradients, per_client: bool) -> ScalarTensor | ValuePerClient:
    """Joint norm of all gradients: one number `[]`, or with `per_client` one per client, `[a]`."""
    if not per_client:
        return torch.stack(torch._foreach_norm(list(gradients))).norm()
    norms = [gradient.flatten(1).norm(dim=1) for gradient in gradients]
    return torch.stack(norms, 1).norm(dim=1)


def scale_gradients(
    gradients: Gradients, factor_or_factor_per_client: ScalarTensor | ValuePerClient
) -> list[Tensor]:
    """The gradients times a number `[]`, or times one per client, `[a]`."""
    if factor_or_factor_per_client.dim() == 0:
        return [gradient * factor_or_factor_per_client for gradient in gradients]
    scaled = []
    for gradient in gradients:
        scaled.append(
            gradient * reshape_client_values_for_broadcast(factor_or_factor_per_client, gradient)
        )
    return scaled


def clip_gradients_to_norm(
    gradients: Gradients, maximum_norm: float, per_client: bool = False
) -> Gradients:
    """The gradients, scaled down so that their norm is at most `maximum_norm` (as nn.utils.clip_grad_norm_ does)."""
    factor = maximum_norm / (compute_gradient_norm(gradients, per_client) + CLIP_EPSILON)
    return scale_gradients(gradients, factor.clamp(max=1.0))


def compute_sam_gradients(
    compute_gradients: Callable[[], Gradients],
    parameters: Sequence[Tensor],
    ascent_length: float,
    per_client: bool,
    batch_norms: Sequence[nn.BatchNorm2d | StackedBatchNorm2d],
) -> Gradients:
    """SAM's gradient (Foret et al., ICLR 2021, Eq. 3): ∇L(θ + rho ∇L(θ)/‖∇L(θ)‖), both on the same batch.

    `compute_gradients()` gives ∇L at the current values of `parameters`, which are restored at the end. The running
    statistics of `batch_norms` are updated once, at θ.
    """
    gradients = compute_gradients()
    norm = compute_gradient_norm(gradients, per_client)
    ascent = scale_gradients(gradients, ascent_length / (norm + TINY))
    weights = [parameter.detach() for parameter in parameters]
    weights_before = [weight.clone() for weight in weights]
    torch._foreach_add_(weights, ascent)
    try:
        with freeze_batch_norm_statistics(batch_norms):
            return compute_gradients()
    finally:
        torch._foreach_copy_(weights, weights_before)


@contextmanager
def freeze_batch_norm_statistics(
    batch_norms: Sequence[nn.BatchNorm2d | StackedBatchNorm2d],
) -> WithBlock:
    """Inside the block the running statistics of these layers do not change."""
    momenta = [layer.momentum for layer in batch_norms]
    for layer in batch_norms:
        layer.momentum = 0.0
    try:
        yield
    finally:
        for layer, momentum in zip(batch_norms, momenta, strict=True):
            layer.momentum = momentum
