"""What a client sends: `m` images of each class that it has, chosen or made from its own.

`random`: some of its samples. `kmeans`: centres of each class. `kip`: kernel inducing points, which start at random
samples and are moved until kernel regression on them predicts the client's labels. `crops`: after FedSD2C, see below.
Each way is a function of one client's samples.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ...models import Network
from ...tensor_types import (
    Images,
    Labels,
    LossPerSample,
    SampleIndices,
    Samples,
    ScalarLoss,
    SquareMatrix,
    ValuePerSample,
)
from ...training import run_in_chunks
from ...training.optim import Adam

PointSets = Tensor  # [R, points, p]: R sets of points
SquareDistances = Tensor  # [R, N, points], of each of N samples to each point of R sets

KernelMatrix = Tensor  # [N, S], the kernel of each of N samples with each of S samples
CentredTargets = Tensor  # [N, C]: one-hot labels less 1/C
KernelCoefficients = Tensor  # [S, C]

# --------------------------------------------------------------------------------------------------------------- kernel
# Kernel regression with the neural tangent kernel of a ReLU perceptron: what an infinitely wide network would learn.
#
# With p inputs, weights of variance σ_w² / width and biases of variance σ_b², the recursion over hidden layers is
#
#     Σ_0(x, z) = σ_w² <x, z> / p + σ_b²,                                        Θ_0 = Σ_0,
#     Σ_{l+1} = σ_w² s (sin φ + (π - φ) cos φ) / (2π) + σ_b²,     s = (Σ_l(x, x) Σ_l(z, z))^½,  cos φ = Σ_l(x, z) / s,
#     Θ_{l+1} = Σ_{l+1} + σ_w² Θ_l (π - φ) / (2π)
#
# (arc-cosine kernels: Cho and Saul, NIPS 2009; tangent kernel: Jacot et al., NeurIPS 2018). With σ_w² = 2 the diagonal
# has a closed form, Σ_l(x, x) = Σ_0(x, x) + l σ_b². Everything here is in float64.

WEIGHT_VARIANCE = 2.0  # σ_w²
BIAS_VARIANCE = 0.01  # σ_b²
SAME = 1e-12  # two samples count as the same one where 1 - cos φ is below this: φ = 0, and the slope is finite


def compute_tangent_kernel(
    first_samples: Samples, second_samples: Samples, hidden_layer_count: int
) -> KernelMatrix:
    """Θ after so many hidden layers, of `first_samples [N, ...]` and `second_samples [S, ...]`: `[N, S]`, float64.

    Differentiable with respect to both.
    """
    first_samples = first_samples.flatten(1).double()
    second_samples = second_samples.flatten(1).double()
    covariance = (
        WEIGHT_VARIANCE * first_samples @ second_samples.T / first_samples.shape[1] + BIAS_VARIANCE
    )
    x_variance = WEIGHT_VARIANCE * first_samples.square().mean(1)[:, None] + BIAS_VARIANCE
    z_variance = WEIGHT_VARIANCE * second_samples.square().mean(1) + BIAS_VARIANCE
    tangent = covariance
    for layer in range(hidden_layer_count):
        bias = layer * BIAS_VARIANCE
        s = ((x_variance + bias) * (z_variance + bias)).sqrt()
        cosine = covariance / s
        angle = cosine.clamp(-1 + SAME, 1 - SAME).acos()
        angle = torch.where(cosine > 1 - SAME, torch.zeros_like(angle), angle)
        arc_factor = (math.pi - angle) / (2 * math.pi)
        arc_cosine = angle.sin() / (2 * math.pi) + arc_factor * cosine
        covariance = WEIGHT_VARIANCE * s * arc_cosine + BIAS_VARIANCE
        tangent = covariance + WEIGHT_VARIANCE * tangent * arc_factor
    return tangent


def make_centred_targets(labels: Labels, class_count: int) -> CentredTargets:
    """Targets `[N, C]` of labels `[N]`: one-hot less 1/C, float64."""
    return F.one_hot(labels, class_count).double() - 1 / class_count


def solve_tangent_kernel_regression(
    samples: Samples, targets: CentredTargets, hidden_layer_count: int, relative_ridge: float
) -> KernelCoefficients:
    """(K + λ_damp tr(K)/S I)⁻¹ Y, `[S, C]`, of `samples [S, ...]` with targets `Y [S, C]`.

    relative_ridge: λ_damp, as a share of the mean of K's diagonal
    """
    return solve_kernel_ridge_regression(
        compute_tangent_kernel(samples, samples, hidden_layer_count), targets, relative_ridge
    )


def solve_kernel_ridge_regression(
    square_kernel: SquareMatrix, targets: CentredTargets, relative_ridge: float
) -> KernelCoefficients:
    """`solve_tangent_kernel_regression` from K itself, `[S, S]`."""
    damping = relative_ridge * square_kernel.diagonal().mean().expand(len(square_kernel)).diag()
    return torch.linalg.solve(square_kernel + damping, targets)


def compute_loss_of_inducing_points(
    inducing_points: Samples,
    inducing_targets: CentredTargets,
    samples: Samples,
    targets: CentredTargets,
    hidden_layer_count: int,
    relative_ridge: float,
) -> ScalarLoss:
    """½ mean ‖K(x, s) (K(s, s) + λ_damp tr/S I)⁻¹ Y_s - Y‖², the mean over the `samples [N, ...]`.

    KIP's loss (Nguyen et al., ICLR 2021): the error on `samples` of regression on the `inducing_points [S, ...]`.
    Targets `[S, C]` and `[N, C]`.
    """
    # One kernel for both: half as many operations.
    kernel = compute_tangent_kernel(
        torch.cat([samples, inducing_points]), inducing_points, hidden_layer_count
    )
    support_coefficients = solve_kernel_ridge_regression(
        kernel[len(samples) :], inducing_targets, relative_ridge
    )
    predictions = kernel[: len(samples)] @ support_coefficients
    return (predictions - targets).square().sum(1).mean() / 2


STARTS = 4  # seedings of k-means, side by side
LLOYD_STEPS = 20
MOST_TARGETS = 1000  # KIP reads no more of a client's samples than this


def group_sample_indices_by_occurring_class(
    labels: Labels, class_count: int
) -> list[SampleIndices]:
    """The indices of each class that occurs in `labels [n]`, class after class, on the CPU.

    A class that does not occur has no entry.
    """
    labels = labels.cpu()
    by_class = [(labels == c).nonzero()[:, 0] for c in range(class_count)]
    return [rows for rows in by_class if len(rows)]


def draw_sample_indices_per_class(
    indices_by_class: Sequence[SampleIndices], maximum_per_class: int, stream: torch.Generator
) -> SampleIndices:
    """`maximum_per_class` indices of each class (all of a smaller one), drawn without replacement.

    Class after class, ascending within a class.
    """
    chosen = []
    for rows in indices_by_class:
        order = torch.randperm(len(rows), generator=stream)
        chosen.append(rows[order[:maximum_per_class].sort().values])
    return torch.cat(chosen)


def compute_k_means_centres(
    samples: Samples, maximum_centre_count: int, stream: torch.Generator
) -> Samples:
    """The centres of the `samples [n, ...]` by k-means, `[m, ...]`; copies of the samples if there are no more.

    The best of STARTS seedings by k-means++ (Arthur and Vassilvitskii, 2007), LLOYD_STEPS each. A centre to which no
    sample is nearest stays where it is.
    """
    if len(samples) <= maximum_centre_count:
        return samples.clone()
    flat = samples.flatten(1)
    draws = torch.rand(maximum_centre_count, STARTS, 1, generator=stream).to(flat)
    centres = flat[(draws[0, :, 0] * len(samples)).long()][:, None]  # [STARTS, 1, p]
    for draw in draws[1:]:
        nearest_distances = compute_square_distances_to_point_sets(flat, centres).amin(2)
        cumulated = nearest_distances.cumsum(1)  # [STARTS, n]
        rows = torch.searchsorted(cumulated, draw * cumulated[:, -1:]).clamp(max=len(samples) - 1)
        centres = torch.cat([centres, flat[rows]], 1)
    numbers = torch.arange(maximum_centre_count, device=samples.device)
    for _ in range(LLOYD_STEPS):
        nearest = compute_square_distances_to_point_sets(flat, centres).argmin(2)
        members = (nearest[:, :, None] == numbers).to(flat)  # [STARTS, n, m]
        counts = members.sum(1)[:, :, None]
        means = members.mT @ flat / counts.clamp(min=1)
        centres = torch.where(counts > 0, means, centres)
    errors = compute_square_distances_to_point_sets(flat, centres).amin(2).sum(1)
    best = centres.index_select(0, errors.argmin(0, keepdim=True))[0]
    return best.unflatten(1, samples.shape[1:])


def compute_square_distances_to_point_sets(
    flat_samples: Samples, point_sets: PointSets
) -> SquareDistances:
    """‖x_i - z_j‖² of `flat_samples [n, p]` and `point_sets [R, m, p]`: `[R, n, m]`."""
    products = flat_samples @ point_sets.mT
    sample_squares = flat_samples.square().sum(1)[:, None]
    point_squares = point_sets.square().sum(2)[:, None]
    return (sample_squares - 2 * products + point_squares).clamp(min=0)


class ImagesAfterStepAndLossBefore(NamedTuple):
    """Images `[S, ...]` after a step, and the loss `[]` before it."""

    images: Tensor
    loss: Tensor


def optimise_inducing_points(
    start_images: Images,
    start_labels: Labels,
    samples: Samples,
    labels: Labels,
    *,
    class_count: int,
    hidden_layer_count: int,
    relative_ridge: float,
    steps: int,
    lr: float,
    clip_to_unit: bool,
    sample_stream: torch.Generator,
) -> Iterator[ImagesAfterStepAndLossBefore]:
    """KIP on one client: `start_images [S, ...]` moved by `steps` steps of Adam towards less
    `compute_loss_of_inducing_points` on `samples`, `labels`.

    Yields the images as they are after each step, and the loss before it. Their labels stay.

    clip_to_unit: whether pixels are kept in [0, 1]
    sample_stream: draws MOST_TARGETS of the samples, once, if there are more
    """
    order = torch.randperm(len(samples), generator=sample_stream)
    rows = order[:MOST_TARGETS].sort().values.to(samples.device)
    samples = samples[rows].double()
    targets = make_centred_targets(labels[rows], class_count)
    image_targets = make_centred_targets(start_labels, class_count)
    images = start_images.double().clone().requires_grad_()
    optimizer = Adam([images], lr)
    for _ in range(steps):
        loss = compute_loss_of_inducing_points(
            images, image_targets, samples, targets, hidden_layer_count, relative_ridge
        )
        optimizer.step(torch.autograd.grad(loss, [images]))
        if clip_to_unit:
            images.detach().clamp_(0, 1)
        yield ImagesAfterStepAndLossBefore(images.detach().clone().to(start_images), loss.detach())


# ---------------------------------------------------------------------------------------------------------------- crops
# `crops`: the part of FedSD2C (Zhang et al., NeurIPS 2024) that needs no pretrained autoencoder.
#
# 1. Of each image, CROPS random crops; the one on which the client's network has the least loss. Of each class, the `m`
#    best of these.
# 2. Their Fourier amplitudes are mixed with those of another image of the client, λ of them; their phases stay. This
#    changes how they look.
# 3. The result is moved until the client's network computes the same features as for the crop: the least of
#    mean ‖features - features of the crop‖² + 0.01 · cross-entropy.
#
# FedSD2C does step 3 on the latent vectors of SDXL's autoencoder and sends those; here it is done on the pixels, which
# are sent. So this is only FedSD2C-like: no pretrained prior keeps the images natural.

CROPS = 10  # of each image
SMALLEST = 0.7  # a crop's side, as a share of the image's
ENTROPY_WEIGHT = 0.01  # of the cross-entropy, relative to the features


class BestCropsAndLosses(NamedTuple):
    """Crops `[n, C, H, W]` and the loss of each, `[n]`."""

    crops: Tensor
    losses: Tensor


@torch.no_grad()
def draw_crops_and_select_least_loss(
    network: Network, images: Images, labels: Labels, stream: torch.Generator
) -> BestCropsAndLosses:
    """Of each image of `images [n, C, H, W]` the crop with the least loss of `network`, and that loss `[n]`."""
    best = images
    best_losses = torch.full((len(images),), torch.inf, device=images.device, dtype=images.dtype)
    for draw in torch.rand(CROPS, 3, len(images), generator=stream).to(images):
        crops = crop_squares_and_resize_back(images, *draw)
        losses = F.cross_entropy(run_in_chunks(network, crops), labels, reduction="none")
        is_better = losses < best_losses
        best = torch.where(is_better[:, None, None, None], crops, best)
        best_losses = torch.where(is_better, losses, best_losses)
    return BestCropsAndLosses(best, best_losses)


def crop_squares_and_resize_back(
    images: Images,
    size_draws_0_to_1: ValuePerSample,
    left_draws_0_to_1: ValuePerSample,
    top_draws_0_to_1: ValuePerSample,
) -> Images:
    """A square part of each image of `images [n, C, H, W]`, brought back to H x W.

    The draws `[n]` choose side and place: side draw 0 is the SMALLEST share of the image's side, 1 the whole image;
    place draw 0 is the left (top) end, 1 the right (bottom) end.
    """
    side = SMALLEST + (1 - SMALLEST) * size_draws_0_to_1
    margin = 1 - side
    zero = torch.zeros_like(side)
    rows = torch.stack([side, zero, margin * (2 * left_draws_0_to_1 - 1)], 1)
    columns = torch.stack([zero, side, margin * (2 * top_draws_0_to_1 - 1)], 1)
    grid = F.affine_grid(torch.stack([rows, columns], 1), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, padding_mode="border", align_corners=False)


def choose_least_loss_indices_per_class(
    indices_by_class: Sequence[SampleIndices], losses: LossPerSample, maximum_per_class: int
) -> SampleIndices:
    """The indices of the `maximum_per_class` least `losses [n]` of each class (all of a smaller one).

    Class after class, ascending within a class.
    """
    losses = losses.cpu()
    chosen = []
    for rows in indices_by_class:
        order = losses[rows].argsort(stable=True)
        chosen.append(rows[order[:maximum_per_class]].sort().values)
    return torch.cat(chosen)


def mix_fourier_amplitudes(
    images: Images, other_images: Images, other_share_0_to_1: float
) -> Images:
    """`images [S, C, H, W]` with a share of their Fourier amplitudes from `other_images`, and their own phases.

    The result is clipped to [0, 1].
    """
    spectrum = torch.fft.fft2(images)
    other_spectrum = torch.fft.fft2(other_images)
    own_part = (1 - other_share_0_to_1) * spectrum.abs()
    other_part = other_share_0_to_1 * other_spectrum.abs()
    mixed = torch.polar(own_part + other_part, spectrum.angle())
    return torch.fft.ifft2(mixed).real.clamp(0, 1)


def move_images_towards_features_of_crops(
    network: Network,
    start_images: Images,
    target_crops: Images,
    labels: Labels,
    *,
    steps: int,
    lr: float,
) -> Iterator[ImagesAfterStepAndLossBefore]:
    """`start_images [S, C, H, W]` moved by `steps` steps of Adam so that `network` computes the features of
    `target_crops` from them.

    Yields the images as they are after each step, and the loss before it. Pixels stay in [0, 1].
    """
    with torch.no_grad():
        crop_features = network.features(target_crops)
    images = start_images.clone().requires_grad_()
    optimizer = Adam([images], lr)
    for _ in range(steps):
        features = network.features(images)
        loss = (features - crop_features).square().sum(1).mean()
        loss = loss + ENTROPY_WEIGHT * F.cross_entropy(network.classifier(features), labels)
        optimizer.step(torch.autograd.grad(loss, [images]))
        images.detach().clamp_(0, 1)
        yield ImagesAfterStepAndLossBefore(images.detach().clone(), loss.detach())
