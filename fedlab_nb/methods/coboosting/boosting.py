"""The three ideas of Co-Boosting (Dai et al., ICLR 2024), as functions of the clients' logits.

In short:
- GHS, hard samples: `compute_difficulty`, `hard_sample_loss` (Eqs. 5, 6), `adversarial_loss` (Eq. 7): the
  generator's loss.
- DHS, diversity on the fly: `perturb_images`, one step along the gradient of the outputs in a random
  direction `u` (Eq. 10).
- EE, ensemble enhancement: `compute_weight_gradient`, `take_sign_step`, `improve_weights` (Eqs. 11, 12): w moves
  by the sign of the gradient of a cross-entropy. It reads cached logits `[M, N, C]` and labels, never a network
  or an image: the clients are frozen, so that is exact and costs a weighted sum.

f̄_w is `frozen_ensemble.combine_logits`: Σ_k w_k f_k / Σ_k w_k as in the released code, or with normalise=False
the sum to the letter. The weights stay in [0, 1] and need not sum to 1; show w / Σ_k w_k.
"""

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from ...errors import choose
from ...training.distill import compute_kl_losses
from ..parts.frozen_ensemble import combine_logits

PERTURBATIONS = ("sign", "literal")
Classifier = Callable[[Tensor], Tensor]  # samples `[N, ...]` to logits `[N, C]`


# ------------------------------------------------------------------------------------------------------------------ GHS
def compute_difficulty(logits: Tensor, labels: Tensor) -> Tensor:
    """1 - p_y, p = softmax(f̄_w(x)), of every sample, in [0, 1] (Eq. 5): logits `[N, C]`, labels `[N]` -> `[N]`."""
    return 1 - logits.softmax(-1).gather(-1, labels[:, None]).squeeze(-1)


def hard_sample_loss(logits: Tensor, labels: Tensor, exponent: float = 1.0) -> Tensor:
    """L_H = (1/b) Σ_i (1 - p_y)^exponent ℓ_CE(f̄_w(x_i), y_i), a scalar (Eq. 6); exponent 0 is plain cross-entropy.

    What the ensemble already knows well hardly counts (a focal loss). No gradient flows through 1 - p_y.
    """
    weights = compute_difficulty(logits, labels).detach() ** exponent
    return (weights * F.cross_entropy(logits, labels, reduction="none")).mean()


def adversarial_loss(
    teacher_logits: Tensor, student_logits: Tensor, temperature: float = 1.0
) -> Tensor:
    """L_A = -(1/b) Σ_i τ² KL(softmax(f̄_w/τ) ‖ softmax(f_S/τ)) (Eq. 7), at most 0: lower where they disagree more.

    DENSE's `boundary_loss` without its mask. Gradients flow through both.
    """
    return -compute_kl_losses(teacher_logits, student_logits, temperature).mean()


# ------------------------------------------------------------------------------------------------------------------ DHS
def draw_directions(count: int, classes: int, stream: torch.Generator, like: Tensor) -> Tensor:
    """u ~ Unif(-1, 1), `[count, classes]`, drawn on the CPU, with the device and dtype of `like`."""
    return (2 * torch.rand(count, classes, generator=stream) - 1).to(like.device, like.dtype)


def perturb_images(
    images: Tensor,
    teacher: Classifier,
    directions: Tensor,
    epsilon: float,
    *,
    kind: str = "sign",
    temperature: float = 4.0,
) -> Tensor:
    """The images x after one step along the gradient g of the teacher's output in direction u.

    `images [N, ...]` itself stays.

    "sign": x + ε sign(∇_x uᵀsoftmax(f̄_w(x)/τ)), every pixel by ε (the released code). "literal": x + ε g/‖g‖₂,
    g = ∇_x uᵀf̄_w(x), every image by ε in L₂ norm (Eq. 10), on 3x32x32 55 times less. `directions [N, C]`; ε in
    the units of x. Where the gradient is 0 nothing moves. Not clipped to the range of pixels.
    """
    choose("perturbation", kind, PERTURBATIONS)
    images = images.detach()
    with torch.enable_grad():
        probe = images.clone().requires_grad_()
        outputs = teacher(probe)
        if kind == "sign":
            outputs = (outputs / temperature).softmax(-1)
        (gradient,) = torch.autograd.grad((directions * outputs).sum(), probe)
    if kind == "sign":
        return images + epsilon * gradient.sign()
    flat = gradient.flatten(1)
    length = flat.norm(dim=1, keepdim=True)
    return images + epsilon * torch.where(length > 0, flat / length, 0).view_as(images)


# ------------------------------------------------------------------------------------------------------------------- EE
def compute_weight_gradient(
    logits: Tensor, labels: Tensor, weights: Tensor, *, normalise: bool = True
) -> Tensor:
    """∂L_w/∂w `[M]` of L_w = (1/N) Σ_i ℓ_CE(f̄_w(x_i), y_i) (Eq. 11), from client logits `[M, N, C]`, in closed form.

    For the sum: g_k = (1/N) Σ_i Σ_c (p_ic - 1[c = y_i]) f_kc(x_i), p = softmax(f̄_w(x_i)). For the mean, w̄ = w / Σ w:
    (g_k - Σ_j w̄_j g_j) / Σ_j w_j, hence Σ_k w_k ∂L_w/∂w_k = 0: some clients rise while others fall.
    """
    error = combine_logits(logits, weights, normalise=normalise).softmax(-1)
    error[torch.arange(len(labels), device=labels.device), labels] -= 1
    g = torch.einsum("nc,mnc->m", error, logits) / len(labels)
    if not normalise:
        return g
    return (g - (weights @ g) / weights.sum()) / weights.sum()


def take_sign_step(weights: Tensor, gradient: Tensor, step_size: float) -> Tensor:
    """w - η_w sign(∂L_w/∂w), clipped to [0, 1] (Eq. 12, "Normalize"); a step that leaves no client is not taken."""
    new_w = (weights - step_size * gradient.sign()).clamp(0, 1)
    return torch.where(new_w.sum() > 0, new_w, weights)


def improve_weights(
    weights: Tensor,
    logits: Tensor,
    labels: Tensor,
    step_size: float,
    *,
    batch: int,
    stream: torch.Generator,
    steps: int | None = None,
    normalise: bool = True,
) -> Iterator[Tensor]:
    """One shuffled pass of sign steps over samples with cached logits `[M, N, C]` and labels `[N]`.

    Yields w `[M]` after every batch. `steps`: only so many batches. `stream` (a CPU generator) draws the order.
    """
    order = torch.randperm(len(labels), generator=stream).to(labels.device)
    for rows in order.split(batch)[:steps]:
        gradient = compute_weight_gradient(
            logits[:, rows], labels[rows], weights, normalise=normalise
        )
        weights = take_sign_step(weights, gradient, step_size)
        yield weights
