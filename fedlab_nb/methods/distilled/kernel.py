"""Kernel regression with the neural tangent kernel of a ReLU perceptron: what an infinitely wide network would learn.

With p inputs, weights of variance σ_w² / width and biases of variance σ_b², the recursion over hidden layers is

    Σ_0(x, z) = σ_w² <x, z> / p + σ_b²,                                        Θ_0 = Σ_0,
    Σ_{l+1} = σ_w² s (sin φ + (π - φ) cos φ) / (2π) + σ_b²,     s = (Σ_l(x, x) Σ_l(z, z))^½,  cos φ = Σ_l(x, z) / s,
    Θ_{l+1} = Σ_{l+1} + σ_w² Θ_l (π - φ) / (2π)

(arc-cosine kernels: Cho and Saul, NIPS 2009; tangent kernel: Jacot et al., NeurIPS 2018). With σ_w² = 2 the diagonal
has a closed form, Σ_l(x, x) = Σ_0(x, x) + l σ_b². Everything here is in float64.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

WEIGHTS, BIASES = 2.0, 0.01  # σ_w², σ_b²
ALIKE = 1e-12  # samples are taken for the same one where 1 - cos φ is below this: φ = 0, and the slope is finite


def tangent_kernel(x: Tensor, z: Tensor, depth: int) -> Tensor:
    """Θ_depth of samples `x [N, ...]` and `z [S, ...]`: `[N, S]`, float64, differentiable with respect to both."""
    x, z = x.flatten(1).double(), z.flatten(1).double()
    covariance = WEIGHTS * x @ z.T / x.shape[1] + BIASES
    own = WEIGHTS * x.square().mean(1)[:, None] + BIASES, WEIGHTS * z.square().mean(1) + BIASES
    tangent = covariance
    for layer in range(depth):
        size = ((own[0] + layer * BIASES) * (own[1] + layer * BIASES)).sqrt()
        cosine = covariance / size
        angle = cosine.clamp(-1 + ALIKE, 1 - ALIKE).acos()
        angle = torch.where(cosine > 1 - ALIKE, torch.zeros_like(angle), angle)
        left = (math.pi - angle) / (2 * math.pi)
        covariance = WEIGHTS * size * (angle.sin() / (2 * math.pi) + left * cosine) + BIASES
        tangent = covariance + WEIGHTS * tangent * left
    return tangent


def centred(labels: Tensor, classes: int) -> Tensor:
    """Targets `[N, C]` of labels `[N]`: one-hot less 1/C, float64."""
    return F.one_hot(labels, classes).double() - 1 / classes


def coefficients(x: Tensor, targets: Tensor, depth: int, ridge: float) -> Tensor:
    """(K + λ_damp tr(K)/S I)⁻¹ Y, `[S, C]`, of samples `x [S, ...]` with targets `Y [S, C]`; `ridge` is λ_damp."""
    return solved(tangent_kernel(x, x, depth), targets, ridge)


def solved(kernel: Tensor, targets: Tensor, ridge: float) -> Tensor:
    """`coefficients` from K itself, `[S, S]`."""
    damping = ridge * kernel.diagonal().mean().expand(len(kernel)).diag()
    return torch.linalg.solve(kernel + damping, targets)


def inducing_loss(
    support: Tensor, support_targets: Tensor, x: Tensor, targets: Tensor, depth: int, ridge: float
) -> Tensor:
    """½ mean ‖K(x, s) (K(s, s) + λ_damp tr/S I)⁻¹ Y_s - Y‖², the mean over the samples `x [N, ...]`.

    KIP's loss (Nguyen et al., ICLR 2021): how well regression on the `support [S, ...]` answers on `x`. Targets
    `[S, C]` and `[N, C]`.
    """
    kernel = tangent_kernel(torch.cat([x, support]), support, depth)  # of both at once: half as many operations
    answers = kernel[: len(x)] @ solved(kernel[len(x) :], support_targets, ridge)
    return (answers - targets).square().sum(1).mean() / 2
