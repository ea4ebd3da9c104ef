"""What a client sends: `m` images of each class that it holds, chosen or made from its own.

`random`: some of its samples. `kmeans`: centres of each class. `kip`: kernel inducing points, which start at random
samples and are moved until kernel regression on them answers as the client's labels say. `crops`: after FedSD2C, see
below. Each way is a function of one client's samples.
"""

import math
from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from ...models import Network
from ...training import in_chunks
from ...training.optim import Adam

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
    kernel = tangent_kernel(
        torch.cat([x, support]), support, depth
    )  # of both at once: half as many operations
    answers = kernel[: len(x)] @ solved(kernel[len(x) :], support_targets, ridge)
    return (answers - targets).square().sum(1).mean() / 2


STARTS, LLOYD = 4, 20  # of k-means: seedings side by side, and steps of each
TARGETS = 1000  # KIP looks at no more of a client's samples than this


def rows_by_class(labels: Tensor, classes: int) -> list[Tensor]:
    """For each class that occurs in `labels [n]`, the places where it does, on the CPU."""
    labels = labels.cpu()
    by_class = [(labels == c).nonzero()[:, 0] for c in range(classes)]
    return [rows for rows in by_class if len(rows)]


def random_rows(groups: Sequence[Tensor], m: int, stream: torch.Generator) -> Tensor:
    """`m` places of each group (all of a smaller one), drawn without replacement and in ascending order."""
    drawn = [rows[torch.randperm(len(rows), generator=stream)[:m].sort().values] for rows in groups]
    return torch.cat(drawn)


def centres(x: Tensor, m: int, stream: torch.Generator) -> Tensor:
    """`m` centres of the samples `x [n, ...]` by k-means, `[m, ...]`; the samples themselves if there are no more.

    The best of STARTS seedings by k-means++ (Arthur and Vassilvitskii, 2007), LLOYD steps each. A centre that nobody
    is nearest to stays where it is.
    """
    if len(x) <= m:
        return x.clone()
    flat = x.flatten(1)
    draws = torch.rand(m, STARTS, 1, generator=stream).to(flat)
    chosen = flat[(draws[0, :, 0] * len(x)).long()][:, None]  # [STARTS, 1, p]
    for draw in draws[1:]:
        far = square_distances(flat, chosen).amin(2).cumsum(1)  # [STARTS, n]
        rows = torch.searchsorted(far, draw * far[:, -1:]).clamp(max=len(x) - 1)
        chosen = torch.cat([chosen, flat[rows]], 1)
    for _ in range(LLOYD):
        nearest = square_distances(flat, chosen).argmin(2)
        members = (nearest[:, :, None] == torch.arange(m, device=x.device)).to(
            flat
        )  # [STARTS, n, m]
        counts = members.sum(1)[:, :, None]
        chosen = torch.where(counts > 0, members.mT @ flat / counts.clamp(min=1), chosen)
    spread = square_distances(flat, chosen).amin(2).sum(1)
    best = chosen.index_select(0, spread.argmin(0, keepdim=True))[0]
    return best.unflatten(1, x.shape[1:])


def square_distances(x: Tensor, points: Tensor) -> Tensor:
    """‖x_i - z_j‖² of `x [n, p]` and `points [R, m, p]`: `[R, n, m]`."""
    products = x @ points.mT
    return (x.square().sum(1)[:, None] - 2 * products + points.square().sum(2)[:, None]).clamp(
        min=0
    )


def kernel_inducing(
    start: Tensor, start_labels: Tensor, x: Tensor, y: Tensor, *, classes: int, depth: int, ridge: float, steps: int,
    lr: float, clip: bool, stream: torch.Generator,
) -> Iterator[tuple[Tensor, Tensor]]:  # fmt: skip
    """KIP on one client: `start [S, ...]` moved by `steps` steps of Adam towards less `inducing_loss` on `x, y`.

    Yields the images as they are after each step, and the loss before it. Labels stay; `clip`: pixels stay in
    [0, 1]. Of more than TARGETS samples, so many are drawn once.
    """
    seen = torch.randperm(len(x), generator=stream)[:TARGETS].sort().values.to(x.device)
    x, targets, own = x[seen].double(), centred(y[seen], classes), centred(start_labels, classes)
    images = start.double().clone().requires_grad_()
    optimizer = Adam([images], lr)
    for _ in range(steps):
        loss = inducing_loss(images, own, x, targets, depth, ridge)
        optimizer.step(torch.autograd.grad(loss, [images]))
        if clip:
            images.detach().clamp_(0, 1)
        yield images.detach().clone().to(start), loss.detach()


# ---------------------------------------------------------------------------------------------------------------- crops
# `crops`: what of FedSD2C (Zhang et al., NeurIPS 2024) can be done without its pretrained autoencoder.
#
# 1. Of each image, CROPS random crops; the one on which the client's network has the least loss. Of each class, the `m`
#    best of these.
# 2. Their Fourier amplitudes are mixed with those of another image of the client, λ of them; their phases stay. This
#    changes how they look.
# 3. The result is moved until the client's network sees in it what it saw in the crop: the least of
#    mean ‖features - features of the crop‖² + 0.01 · cross-entropy.
#
# FedSD2C does step 3 on the latent vectors of SDXL's autoencoder and sends those; here it is done on the pixels, which
# are sent. So this is only FedSD2C-like: no pretrained prior keeps the images natural.

CROPS = 10  # of each image
SMALLEST = 0.7  # a crop's side, as a share of the image's
ENTROPY = 0.01  # weight of the cross-entropy beside the features


@torch.no_grad()
def best_crops(
    network: Network, x: Tensor, y: Tensor, stream: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Of each image of `x [n, C, H, W]` the crop with the least loss of `network`, and that loss `[n]`."""
    best, least = x, torch.full((len(x),), torch.inf, device=x.device, dtype=x.dtype)
    for draw in torch.rand(CROPS, 3, len(x), generator=stream).to(x):
        crops = cropped(x, *draw)
        losses = F.cross_entropy(in_chunks(network, crops), y, reduction="none")
        better = losses < least
        best, least = (
            torch.where(better[:, None, None, None], crops, best),
            torch.where(better, losses, least),
        )
    return best, least


def cropped(x: Tensor, size: Tensor, left: Tensor, top: Tensor) -> Tensor:
    """A square part of each image of `x [n, C, H, W]`, brought back to H x W; the draws `[n]` are uniform in [0, 1]."""
    side = SMALLEST + (1 - SMALLEST) * size
    room = 1 - side
    rows = torch.stack([side, torch.zeros_like(side), room * (2 * left - 1)], 1)
    columns = torch.stack([torch.zeros_like(side), side, room * (2 * top - 1)], 1)
    grid = F.affine_grid(torch.stack([rows, columns], 1), list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, padding_mode="border", align_corners=False)


def least_lossy(groups: Sequence[Tensor], losses: Tensor, m: int) -> Tensor:
    """The places of the `m` least `losses [n]` in each group of places (all of a smaller one), ascending."""
    losses = losses.cpu()
    return torch.cat([rows[losses[rows].argsort(stable=True)[:m]].sort().values for rows in groups])


def amplitude_mix(x: Tensor, others: Tensor, share: float) -> Tensor:
    """Images `x [S, C, H, W]` with `share` of their Fourier amplitudes from `others`, and their own phases."""
    own, other = torch.fft.fft2(x), torch.fft.fft2(others)
    amplitude = (1 - share) * own.abs() + share * other.abs()
    return torch.fft.ifft2(torch.polar(amplitude, own.angle())).real.clamp(0, 1)


def feature_matched(
    network: Network, start: Tensor, crops: Tensor, labels: Tensor, *, steps: int, lr: float
) -> Iterator[tuple[Tensor, Tensor]]:
    """`start [S, C, H, W]` moved by `steps` steps of Adam until `network` sees in it the features of `crops`.

    Yields the images as they are after each step, and the loss before it. Pixels stay in [0, 1].
    """
    with torch.no_grad():
        wanted = network.features(crops)
    images = start.clone().requires_grad_()
    optimizer = Adam([images], lr)
    for _ in range(steps):
        features = network.features(images)
        loss = (features - wanted).square().sum(1).mean()
        loss = loss + ENTROPY * F.cross_entropy(network.classifier(features), labels)
        optimizer.step(torch.autograd.grad(loss, [images]))
        images.detach().clamp_(0, 1)
        yield images.detach().clone(), loss.detach()
