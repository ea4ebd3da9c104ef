"""Heads that the server trains on features drawn from Gaussians: FisherMix and Proto-Hyper of GH-OFL (Turazza, Picone,
Mamei, ICLR 2026, arXiv 2602.01186).

Fisher subspace: with Σ_W within classes and Σ_B between them, V are the leading eigenvectors of Σ_W^-½ Σ_B Σ_W^-½ (as
many as have ENERGY of the trace, at most MOST), P = Σ_W^-½ V, z = Pᵀ(x - μ). Classes have unit spread there on average.
Draws: `draws` of each class that a client has, from N(Pᵀ(μ_c - μ), TAU² PᵀΣ_cP).

- FisherMix: scores SCALE cos(z, w_c); w_c starts at the class's mean. Cross-entropy, with MARGIN taken off the true
  class's cosine while it learns.
- Proto-Hyper: b(z) + U V z, where b are LDA's scores, brought to mean 0 and deviation 1 over the draws, and V has RANK
  rows. It learns from the draws' labels and, in equal parts, from a teacher: SHARE of the probabilities of QDA, the
  rest LDA's, both in the subspace. The scores are b + U V alone.

Departures: written from the paper's abstract and what the authors' README says in words. It says neither SCALE, MARGIN,
SHARE nor how losses are weighted, which are ours; Adam is without weight decay. Draws, rate and epochs were
chosen on validation images (`papers/tuning`), the same for both heads.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import MultivariateNormal

from ...errors import UsageError
from ...training import Recipe
from ...training.distill import distil
from ..base import Context, Steps, report_progress

TRAINED = ("fishermix", "protohyper")
ENERGY = 0.995
MOST = 16
TAU = 0.9
SCALE = 16.0
MARGIN = 0.1
RANK = 16
SHARE = 0.5


class Cosine(nn.Module):
    """Scores `[N, C]` of `z [N, r]`: SCALE times the cosine with each row of `weight [C, r]`."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, z: Tensor) -> Tensor:
        return SCALE * F.normalize(z, dim=1) @ F.normalize(self.weight, dim=1).T


class LowRank(nn.Module):
    """Linear scores, which are not trained, and a residual through `RANK` numbers, 0 at first."""

    def __init__(self, slopes: Tensor, constants: Tensor, stream: torch.Generator) -> None:
        super().__init__()
        r, classes = slopes.shape
        rank = min(RANK, r, classes)
        self.slopes = nn.Parameter(slopes, requires_grad=False)
        self.constants = nn.Parameter(constants, requires_grad=False)
        down = torch.randn(r, rank, generator=stream, dtype=torch.float64) / r**0.5
        self.down = nn.Parameter(down.to(slopes))
        self.up = nn.Parameter(slopes.new_zeros(rank, classes))

    def forward(self, z: Tensor) -> Tensor:
        return z @ self.slopes + self.constants + z @ self.down @ self.up


class FisherHead(nn.Module):
    """Scores `[N, C]` of features `[N, d]`: `head` reads z; a class that no client has gets -inf.

    `middle [d]`: μ; `directions [d, r]`: P; `places`: the classes that `head` knows.
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

    def forward(self, x: Tensor) -> Tensor:
        z = (x.to(self.directions) - self.middle) @ self.directions
        scores = self.head(z)
        all_scores = scores.new_full((x.shape[0], self.classes), -torch.inf)
        return all_scores.index_copy(1, self.places, scores)


def find_fisher_subspace(
    means: Tensor, covariances: Tensor, shares: Tensor
) -> tuple[Tensor, Tensor]:
    """μ `[d]` and P `[d, r]` of class means `[C, d]`, covariances `[C, d, d]` and shares `[C]` that sum to 1."""
    mean = shares @ means
    values, axes = torch.linalg.eigh(torch.tensordot(shares, covariances, 1))
    inverse_root = axes / values.sqrt() @ axes.T  # Σ_W^-½
    between = (means - mean) * shares.sqrt()[:, None] @ inverse_root
    _, strengths, directions = torch.linalg.svd(between, full_matrices=False)
    energies = strengths.square()
    enough = int((energies.cumsum(0) < ENERGY * energies.sum()).sum()) + 1
    count = min(enough, MOST, len(means) - 1)
    return mean, inverse_root @ directions[:count].T


def train_head(
    ctx: Context,
    kind: str,
    means: Tensor,
    covariances: Tensor,
    counts: Tensor,
    *,
    draws: int,
    epochs: int,
    lr: float,
) -> Steps[FisherHead]:
    """The head `kind` (of TRAINED) for Gaussians: `means [C, d]`, `covariances [C, d, d]` and `counts [C]`, float64.

    Server side. UsageError if the clients have only one class.
    """
    classes = counts.nonzero()[:, 0]  # that a client has
    if len(classes) < 2:
        raise UsageError(
            f"gauss.head={kind} tells classes apart, but the clients hold only one; set head=qda."
        )
    shares = counts[classes] / counts.sum()
    mean, p = find_fisher_subspace(means[classes], covariances[classes], shares)
    centres = (means[classes] - mean) @ p
    spreads = p.T @ covariances[classes] @ p
    stream = ctx.generator("gauss", kind)
    size = (len(classes), draws, p.shape[1])
    noise = torch.randn(size, generator=stream, dtype=torch.float64).to(p)
    z = (centres[:, None] + TAU * noise @ torch.linalg.cholesky(spreads).mT).flatten(0, 1)
    labels = torch.arange(len(classes), device=z.device).repeat_interleave(draws)
    one_hot = F.one_hot(labels)
    head: nn.Module
    if kind == "fishermix":
        head = Cosine(centres.to(ctx.dtype))
        targets = one_hot.to(ctx.dtype)
        loss = margin_loss
    else:
        # Within classes z has the covariance I.
        constants = shares.log() - centres.square().sum(1) / 2
        lda = z @ centres.T + constants
        qda = MultivariateNormal(centres, spreads).log_prob(z[:, None]) + shares.log()
        deviation = lda.std()
        base_slopes = (centres.T / deviation).to(ctx.dtype)
        base_constants = ((constants - lda.mean()) / deviation).to(ctx.dtype)
        head = LowRank(base_slopes, base_constants, stream)
        teacher = (1 - SHARE) * lda.softmax(1) + SHARE * qda.softmax(1)
        targets = ((teacher + one_hot) / 2).to(ctx.dtype)
        loss = soft_label_loss
    recipe = Recipe(epochs, 128, "adam", lr, weight_decay=0)
    ticks = distil(head, z.to(ctx.dtype), targets, recipe, loss, stream)
    yield from report_progress("head training", ticks)
    return FisherHead(mean.to(ctx.dtype), p.to(ctx.dtype), classes, len(counts), head).eval()


def margin_loss(target: Tensor, scores: Tensor) -> Tensor:
    """FisherMix: cross-entropy `[b]`, with MARGIN taken off the true class's cosine."""
    return F.cross_entropy(scores - SCALE * MARGIN * target, target, reduction="none")


def soft_label_loss(target: Tensor, scores: Tensor) -> Tensor:
    """Proto-Hyper: cross-entropy `[b]` with soft labels."""
    return F.cross_entropy(scores, target, reduction="none")
