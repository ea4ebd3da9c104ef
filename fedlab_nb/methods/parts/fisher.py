"""Heads that the server trains on features drawn from Gaussians: FisherMix and Proto-Hyper of GH-OFL (Turazza, Picone,
Mamei, ICLR 2026, arXiv 2602.01186).

Fisher subspace: let Σ_W be the covariance within classes and Σ_B the one between them. V holds the leading eigenvectors
of Σ_W^-½ Σ_B Σ_W^-½: as many as are needed for the share ENERGY of its trace, but at most MOST. Then P = Σ_W^-½ V and
z = Pᵀ(x - μ). On average over the classes, z has unit covariance within a class.
Draws: `draws_per_class` for each class that a client has, from N(Pᵀ(μ_c - μ), TAU² PᵀΣ_cP).

- FisherMix: the scores are SCALE cos(z, w_c), where w_c starts at the class's mean. The loss is cross-entropy; in
  training MARGIN is subtracted from the true class's cosine.
- Proto-Hyper: the scores are b(z) + U V z, where b are LDA's scores, standardised over the draws, and V has RANK rows.
  The target is the average of the draw's label and a teacher's probabilities. The teacher mixes QDA's probabilities
  (with the weight SHARE) and LDA's, both in the subspace.

Departures: this is written from the paper's abstract and the text of the authors' README. Neither gives SCALE, MARGIN,
SHARE or the weights of the losses: these values are ours. Adam has no weight decay. The number of draws, the learning
rate and the epochs were chosen on validation images (`papers/tuning`), the same for both heads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import MultivariateNormal

from ...errors import UsageError
from ...tensor_types import (
    ClassCovariances,
    ClassMeans,
    ClassScores,
    ClassShares,
    Features,
    LossPerSample,
    OneHotLabels,
    Probabilities,
    Vector,
)
from ...training import Recipe
from ...training.distill import distil_student_in_place
from ..base import Context, Steps, report_progress

FisherMixOrProtoHyper = Literal["fishermix", "protohyper"]
TRAINED: tuple[FisherMixOrProtoHyper, ...] = get_args(FisherMixOrProtoHyper)
ENERGY = 0.995  # share of the trace that the subspace keeps
MOST = 16  # dimensions of the subspace
TAU = 0.9  # standard deviation of the draws, in units of the class's own
SCALE = 16.0
MARGIN = 0.1
RANK = 16
SHARE = 0.5  # weight of QDA in the teacher


class Cosine(nn.Module):
    """Scores `[N, C]` of `z [N, r]`: SCALE times the cosine with each row of `weight [C, r]`."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, features: Features) -> ClassScores:
        return SCALE * F.normalize(features, dim=1) @ F.normalize(self.weight, dim=1).T


class LowRank(nn.Module):
    """Frozen linear scores plus a trained linear map of rank `RANK`, which is 0 at first."""

    def __init__(self, slopes: Tensor, constants: Tensor, stream: torch.Generator) -> None:
        super().__init__()
        r, classes = slopes.shape
        rank = min(RANK, r, classes)
        self.slopes = nn.Parameter(slopes, requires_grad=False)
        self.constants = nn.Parameter(constants, requires_grad=False)
        down = torch.randn(r, rank, generator=stream, dtype=torch.float64) / r**0.5
        self.down = nn.Parameter(down.to(slopes))
        self.up = nn.Parameter(slopes.new_zeros(rank, classes))

    def forward(self, features: Features) -> ClassScores:
        return features @ self.slopes + self.constants + features @ self.down @ self.up


class FisherHead(nn.Module):
    """Scores `[N, C]` of features `[N, d]`: `head` scores z; a class that no client has gets -inf.

    `middle [d]`: μ; `directions [d, r]`: P; `places`: the class of each of the head's scores.
    """

    middle: Tensor
    directions: Tensor
    places: Tensor

    def __init__(
        self, middle: Tensor, directions: Tensor, places: Tensor, classes: int, head: nn.Module
    ) -> None:
        super().__init__()
        self.register_buffer("middle", middle)
        self.register_buffer("directions", directions)
        self.register_buffer("places", places)
        self.classes = classes
        self.head = head

    def forward(self, features: Features) -> ClassScores:
        z = (features.to(self.directions) - self.middle) @ self.directions
        scores = self.head(z)
        all_scores = scores.new_full((features.shape[0], self.classes), -torch.inf)
        return all_scores.index_copy(1, self.places, scores)


class FisherSubspace(NamedTuple):
    """The mean μ `[d]`, and the directions P `[d, r]`."""

    mean: Tensor
    directions: Tensor


def find_fisher_subspace(
    class_means: ClassMeans, class_covariances: ClassCovariances, class_shares: ClassShares
) -> FisherSubspace:
    """μ `[d]` and P `[d, r]`, from class means `[C, d]`, covariances `[C, d, d]` and shares `[C]` that sum to 1."""
    mean = class_shares @ class_means
    within = torch.tensordot(class_shares, class_covariances, 1)  # Σ_W
    values, axes = torch.linalg.eigh(within)
    inverse_root = (axes / values.sqrt()) @ axes.T  # Σ_W^-½
    # The right singular vectors of this product are the eigenvectors of Σ_W^-½ Σ_B Σ_W^-½.
    weighted_means = (class_means - mean) * class_shares.sqrt()[:, None]
    _, strengths, directions = torch.linalg.svd(weighted_means @ inverse_root, full_matrices=False)
    eigenvalues = strengths.square()
    has_too_little = eigenvalues.cumsum(0) < ENERGY * eigenvalues.sum()
    enough = int(has_too_little.sum()) + 1
    count = min(enough, MOST, len(class_means) - 1)
    return FisherSubspace(mean, inverse_root @ directions[:count].T)


def train_fisher_head(
    ctx: Context,
    head_kind: FisherMixOrProtoHyper,
    class_means: ClassMeans,
    class_covariances: ClassCovariances,
    class_counts: Vector,
    *,
    draws_per_class: int,
    epochs: int,
    lr: float,
) -> Steps[FisherHead]:
    """Train the head `head_kind` (one of TRAINED) on draws from the classes' Gaussians; server side.

    The Gaussians are `class_means [C, d]`, `class_covariances [C, d, d]` and `class_counts [C]`, all float64.
    UsageError if the clients have only one class.
    """
    classes = class_counts.nonzero()[:, 0]  # those that at least one client has
    if len(classes) < 2:
        raise UsageError(
            f"gauss.head={head_kind} tells classes apart, but the clients hold only "
            "one; set head=qda."
        )
    shares = class_counts[classes] / class_counts.sum()
    mean, p = find_fisher_subspace(class_means[classes], class_covariances[classes], shares)
    centres = (class_means[classes] - mean) @ p
    covariances = p.T @ class_covariances[classes] @ p
    stream = ctx.generator("gauss", head_kind)
    size = (len(classes), draws_per_class, p.shape[1])
    noise = torch.randn(size, generator=stream, dtype=torch.float64).to(p)
    deviations = TAU * noise @ torch.linalg.cholesky(covariances).mT
    z = (centres[:, None] + deviations).flatten(0, 1)
    labels = torch.arange(len(classes), device=z.device).repeat_interleave(draws_per_class)
    one_hot = F.one_hot(labels)
    head: nn.Module
    loss: Callable[[Tensor, Tensor], Tensor]
    if head_kind == "fishermix":
        head = Cosine(centres.to(ctx.dtype))
        targets = one_hot.to(ctx.dtype)
        loss = compute_cosine_margin_losses
    else:
        # LDA is this simple here because z has the covariance I within classes.
        constants = shares.log() - centres.square().sum(1) / 2
        lda = z @ centres.T + constants
        qda = MultivariateNormal(centres, covariances).log_prob(z[:, None]) + shares.log()
        deviation = lda.std()
        base_slopes = (centres.T / deviation).to(ctx.dtype)
        base_constants = ((constants - lda.mean()) / deviation).to(ctx.dtype)
        head = LowRank(base_slopes, base_constants, stream)
        teacher = (1 - SHARE) * lda.softmax(1) + SHARE * qda.softmax(1)
        targets = ((teacher + one_hot) / 2).to(ctx.dtype)
        loss = compute_soft_label_losses
    recipe = Recipe(epochs, 128, "adam", lr, weight_decay=0)
    ticks = distil_student_in_place(head, z.to(ctx.dtype), targets, recipe, loss, stream)
    yield from report_progress("head training", ticks)
    return FisherHead(mean.to(ctx.dtype), p.to(ctx.dtype), classes, len(class_counts), head).eval()


def compute_cosine_margin_losses(
    one_hot_labels: OneHotLabels, cosine_scores: ClassScores
) -> LossPerSample:
    """FisherMix: cross-entropy `[b]`, with MARGIN subtracted from the true class's cosine."""
    return F.cross_entropy(
        cosine_scores - SCALE * MARGIN * one_hot_labels, one_hot_labels, reduction="none"
    )


def compute_soft_label_losses(soft_labels: Probabilities, scores: ClassScores) -> LossPerSample:
    """Proto-Hyper: cross-entropy `[b]` with soft labels."""
    return F.cross_entropy(scores, soft_labels, reduction="none")
