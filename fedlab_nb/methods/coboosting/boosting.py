"""The three ideas of Co-Boosting (Dai et al., ICLR 2024), as functions of the clients' logits.

In short:
- GHS, hard samples: `compute_sample_difficulties`, `compute_hard_sample_loss` (Eqs. 5, 6),
  `compute_adversarial_loss` (Eq. 7). The last two are the generator's loss.
- DHS, diversity on the fly: `perturb_images_along_output_directions`, one step along the gradient of the
  outputs in a random direction `u` (Eq. 10).
- EE, ensemble enhancement: `compute_loss_gradient_of_client_weights`, `step_down_gradient_sign_within_unit_interval`,
  `iterate_sign_steps_of_one_pass` (Eqs. 11, 12): w moves by the sign of the gradient of a cross-entropy. It
  reads cached logits `[M, N, C]` and labels, never a network or an image: the clients are frozen, so that is
  exact and costs a weighted sum.

f̄_w is `frozen_ensemble.combine_client_logits`: Σ_k w_k f_k / Σ_k w_k as in the released code, or with
divide_by_weight_sum=False the sum to the letter. The weights stay in [0, 1] and need not sum to 1; show w / Σ_k w_k.
"""

from collections.abc import Callable, Iterator
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from ...errors import check_allowed_name
from ...tensor_types import (
    ClientLogits,
    ClientWeights,
    Images,
    Labels,
    Logits,
    ScalarLoss,
)
from ...training.distill import compute_distillation_losses
from ..parts.frozen_ensemble import combine_client_logits

Perturbation = Literal["sign", "literal"]
PERTURBATIONS: tuple[Perturbation, ...] = get_args(Perturbation)
DifficultyPerSample0To1 = Tensor  # [N]
ScalarLossAtMost0 = Tensor  # []
OutputDirections = Tensor  # [N, C], a direction among the class scores for each sample
GradientPerClient = Tensor  # [M]


# ------------------------------------------------------------------------------------------------------------------ GHS
def compute_sample_difficulties(ensemble_logits: Logits, labels: Labels) -> DifficultyPerSample0To1:
    """1 - p_y, p = softmax(f̄_w(x)), of every sample, in [0, 1] (Eq. 5): logits `[N, C]`, labels `[N]` -> `[N]`."""
    return 1 - ensemble_logits.softmax(-1).gather(-1, labels[:, None]).squeeze(-1)


def compute_hard_sample_loss(
    ensemble_logits: Logits, labels: Labels, difficulty_exponent: float = 1.0
) -> ScalarLoss:
    """L_H = (1/b) Σ_i (1 - p_y)^exponent ℓ_CE(f̄_w(x_i), y_i), a scalar (Eq. 6); exponent 0 is plain cross-entropy.

    What the ensemble already knows well hardly counts (a focal loss). No gradient flows through 1 - p_y.
    """
    weights = compute_sample_difficulties(ensemble_logits, labels).detach() ** difficulty_exponent
    return (weights * F.cross_entropy(ensemble_logits, labels, reduction="none")).mean()


def compute_adversarial_loss(
    teacher_logits: Logits, student_logits: Logits, temperature: float = 1.0
) -> ScalarLossAtMost0:
    """L_A = -(1/b) Σ_i τ² KL(softmax(f̄_w/τ) ‖ softmax(f_S/τ)) (Eq. 7), at most 0: lower where they disagree more.

    DENSE's `compute_boundary_loss` without its mask. Gradients flow through both.
    """
    return -compute_distillation_losses(teacher_logits, student_logits, temperature).mean()


# ------------------------------------------------------------------------------------------------------------------ DHS
def draw_uniform_output_directions(
    sample_count: int, class_count: int, stream: torch.Generator, dtype_device_template: Tensor
) -> OutputDirections:
    """u ~ Unif(-1, 1), `[sample_count, class_count]`, drawn on the CPU, with the device and dtype of
    `dtype_device_template`."""
    return (2 * torch.rand(sample_count, class_count, generator=stream) - 1).to(
        dtype_device_template.device, dtype_device_template.dtype
    )


def perturb_images_along_output_directions(
    images: Images,
    compute_teacher_logits: Callable[[Images], Logits],
    output_directions: OutputDirections,
    epsilon_in_image_units: float,
    *,
    perturbation: Perturbation = "sign",
    temperature_for_sign: float = 4.0,
) -> Images:
    """New images x', one step away from x along the gradient of the teacher's output in direction u.

    images: x `[N, ...]`, left as they are
    output_directions: u `[N, C]`
    epsilon_in_image_units: ε, in the units of x
    perturbation: "sign" is x' = x + ε sign(∇_x uᵀsoftmax(f̄_w(x)/τ)), every pixel by ε (the released code);
        "literal" is x' = x + ε g/‖g‖₂ with g = ∇_x uᵀf̄_w(x), every image by ε in L₂ norm (Eq. 10), which is
        55 times less on 3x32x32
    temperature_for_sign: τ

    Where the gradient is 0 nothing moves. The result is not clipped to the range of pixels.
    """
    check_allowed_name("perturbation", perturbation, PERTURBATIONS)
    images = images.detach()
    with torch.enable_grad():
        probe = images.clone().requires_grad_()
        outputs = compute_teacher_logits(probe)
        if perturbation == "sign":
            outputs = (outputs / temperature_for_sign).softmax(-1)
        (gradient,) = torch.autograd.grad((output_directions * outputs).sum(), probe)
    if perturbation == "sign":
        return images + epsilon_in_image_units * gradient.sign()
    flat = gradient.flatten(1)
    length = flat.norm(dim=1, keepdim=True)
    unit_gradient = torch.where(length > 0, flat / length, 0).view_as(images)
    return images + epsilon_in_image_units * unit_gradient


# ------------------------------------------------------------------------------------------------------------------- EE
def compute_loss_gradient_of_client_weights(
    client_logits: ClientLogits,
    labels: Labels,
    client_weights: ClientWeights,
    *,
    divide_by_weight_sum: bool = True,
) -> GradientPerClient:
    """∂L_w/∂w `[M]` of L_w = (1/N) Σ_i ℓ_CE(f̄_w(x_i), y_i) (Eq. 11), from client logits `[M, N, C]`, in closed form.

    For the sum: g_k = (1/N) Σ_i Σ_c (p_ic - 1[c = y_i]) f_kc(x_i), p = softmax(f̄_w(x_i)). For the mean, w̄ = w / Σ w:
    (g_k - Σ_j w̄_j g_j) / Σ_j w_j, hence Σ_k w_k ∂L_w/∂w_k = 0: some clients rise while others fall.
    """
    error = combine_client_logits(
        client_logits, client_weights, divide_by_weight_sum=divide_by_weight_sum
    ).softmax(-1)
    error[torch.arange(len(labels), device=labels.device), labels] -= 1
    g = torch.einsum("nc,mnc->m", error, client_logits) / len(labels)
    if not divide_by_weight_sum:
        return g
    return (g - (client_weights @ g) / client_weights.sum()) / client_weights.sum()


def step_down_gradient_sign_within_unit_interval(
    client_weights: ClientWeights, gradient: GradientPerClient, step_size: float
) -> ClientWeights:
    """w - η_w sign(∂L_w/∂w), clipped to [0, 1] (Eq. 12, "Normalize"); a step that leaves no client is not taken."""
    new_w = (client_weights - step_size * gradient.sign()).clamp(0, 1)
    return torch.where(new_w.sum() > 0, new_w, client_weights)


def iterate_sign_steps_of_one_pass(
    client_weights: ClientWeights,
    client_logits: ClientLogits,
    labels: Labels,
    step_size: float,
    *,
    batch_size: int,
    shuffle_stream: torch.Generator,
    maximum_steps: int | None = None,
    divide_by_weight_sum: bool = True,
) -> Iterator[ClientWeights]:
    """One shuffled pass of sign steps over samples with cached logits `[M, N, C]` and labels `[N]`.

    Yields w `[M]` after every batch.

    shuffle_stream: a CPU generator, which draws the order of the samples
    maximum_steps: only so many batches; None: all
    """
    order = torch.randperm(len(labels), generator=shuffle_stream).to(labels.device)
    for rows in order.split(batch_size)[:maximum_steps]:
        gradient = compute_loss_gradient_of_client_weights(
            client_logits[:, rows],
            labels[rows],
            client_weights,
            divide_by_weight_sum=divide_by_weight_sum,
        )
        client_weights = step_down_gradient_sign_within_unit_interval(
            client_weights, gradient, step_size
        )
        yield client_weights
