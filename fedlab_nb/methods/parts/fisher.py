"""Heads that the server trains on features which it draws from Gaussians: FisherMix and Proto-Hyper of GH-OFL (Turazza,
Picone, Mamei, ICLR 2026, arXiv 2602.01186).

Fisher subspace: with Σ_W within classes and Σ_B between them, V are the leading eigenvectors of Σ_W^-½ Σ_B Σ_W^-½ (as
many as have ENERGY of the trace, at most MOST), P = Σ_W^-½ V, z = Pᵀ(x - μ). Classes have unit spread there on average.
Draws: `draws` of each class that somebody holds, from N(Pᵀ(μ_c - μ), TAU² PᵀΣ_cP).

- FisherMix: scores SCALE cos(z, w_c); w_c starts at the class's mean. Cross-entropy, with MARGIN taken off the true
  class's cosine while it learns.
- Proto-Hyper: b(z) + U V z, where b are LDA's scores, brought to mean 0 and deviation 1 over the draws, and V has RANK
  rows. It learns from the draws' labels and, in equal parts, from a teacher: SHARE of the probabilities of QDA, the
  rest LDA's, both in the subspace. What answers is b + U V alone.

Departures: written from the paper's abstract and what the authors' README says in words. It says neither SCALE, MARGIN,
SHARE nor how losses are weighted, which are ours; Adam is without weight decay. Draws, rate and epochs are those that
validation images chose (`studies/tuning`), the same for both heads.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import MultivariateNormal

from ...errors import demand
from ...training import Recipe
from ...training.distill import distil
from ..base import Context, Steps, report_progress

TRAINED = ("fishermix", "protohyper")
ENERGY, MOST, TAU = 0.995, 16, 0.9
SCALE, MARGIN = 16.0, 0.1
RANK, SHARE = 16, 0.5


class Cosine(nn.Module):
    """Scores `[N, C]` of `z [N, r]`: SCALE times the cosine with each row of `weight [C, r]`."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, z: Tensor) -> Tensor:
        return SCALE * F.normalize(z, dim=1) @ F.normalize(self.weight, dim=1).T


class LowRank(nn.Module):
    """Linear scores `base` (which nothing trains) and a residual through `RANK` numbers, 0 at first."""

    def __init__(self, slopes: Tensor, constants: Tensor, stream: torch.Generator) -> None:
        super().__init__()
        (r, classes), rank = slopes.shape, min(RANK, *slopes.shape)
        self.slopes, self.constants = (
            nn.Parameter(part, requires_grad=False) for part in (slopes, constants)
        )
        drawn = torch.randn(r, rank, generator=stream, dtype=torch.float64) / r**0.5
        self.down, self.up = (
            nn.Parameter(drawn.to(slopes)),
            nn.Parameter(slopes.new_zeros(rank, classes)),
        )

    def forward(self, z: Tensor) -> Tensor:
        return z @ self.slopes + self.constants + z @ self.down @ self.up


class FisherHead(nn.Module):
    """Scores `[N, C]` of features `[N, d]`: `head` reads z; a class that nobody holds has -inf.

    middle `[d]`: μ;   directions `[d, r]`: P;   places: the classes that `head` knows
    """

    middle: Tensor
    directions: Tensor
    places: Tensor

    def __init__(
        self, middle: Tensor, directions: Tensor, places: Tensor, classes: int, head: nn.Module
    ) -> None:
        super().__init__()
        for name, part in (("middle", middle), ("directions", directions), ("places", places)):
            self.register_buffer(name, part)
        self.classes, self.head = classes, head

    def forward(self, x: Tensor) -> Tensor:
        known = self.head((x.to(self.directions) - self.middle) @ self.directions)
        return known.new_full((x.shape[0], self.classes), -torch.inf).index_copy(
            1, self.places, known
        )


def subspace(means: Tensor, covariances: Tensor, shares: Tensor) -> tuple[Tensor, Tensor]:
    """μ `[d]` and P `[d, r]` of class means `[C, d]`, covariances `[C, d, d]` and shares `[C]` that sum to 1."""
    middle = shares @ means
    values, axes = torch.linalg.eigh(torch.tensordot(shares, covariances, 1))
    back = axes / values.sqrt() @ axes.T
    away = (means - middle) * shares.sqrt()[:, None] @ back
    _, strengths, rows = torch.linalg.svd(away, full_matrices=False)
    parts = strengths.square()
    enough = int((parts.cumsum(0) < ENERGY * parts.sum()).sum()) + 1
    return middle, back @ rows[: min(enough, MOST, len(means) - 1)].T


def trained_head(
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

    Server side. UsageError where only one class is held.
    """
    places = counts.nonzero()[:, 0]
    demand(
        len(places) > 1,
        f"gauss.head={kind} tells classes apart, but the clients hold only one; set head=qda.",
    )
    shares = counts[places] / counts.sum()
    middle, p = subspace(means[places], covariances[places], shares)
    centres, spreads = (means[places] - middle) @ p, p.T @ covariances[places] @ p
    stream = ctx.generator("gauss", kind)
    noise = torch.randn(len(places), draws, p.shape[1], generator=stream, dtype=torch.float64).to(p)
    z = centres[:, None] + TAU * noise @ torch.linalg.cholesky(spreads).mT
    z, labels = z.flatten(0, 1), torch.arange(len(places), device=z.device).repeat_interleave(draws)
    head: nn.Module
    if kind == "fishermix":
        head, targets = Cosine(centres.to(ctx.dtype)), F.one_hot(labels).to(ctx.dtype)

        def loss(target: Tensor, scores: Tensor) -> Tensor:
            return F.cross_entropy(scores - SCALE * MARGIN * target, target, reduction="none")
    else:
        constants = (
            shares.log() - centres.square().sum(1) / 2
        )  # within classes z has the covariance I
        lda = z @ centres.T + constants
        size = lda.std()
        head = LowRank(
            (centres.T / size).to(ctx.dtype),
            ((constants - lda.mean()) / size).to(ctx.dtype),
            stream,
        )
        teachers = lda, MultivariateNormal(centres, spreads).log_prob(z[:, None]) + shares.log()
        taught = (1 - SHARE) * teachers[0].softmax(1) + SHARE * teachers[1].softmax(1)
        targets = ((taught + F.one_hot(labels)) / 2).to(ctx.dtype)

        def loss(target: Tensor, scores: Tensor) -> Tensor:
            return F.cross_entropy(scores, target, reduction="none")

    ticks = distil(
        head,
        z.to(ctx.dtype),
        targets,
        Recipe(epochs, 128, "adam", lr, weight_decay=0),
        loss,
        stream,
    )
    yield from report_progress("head training", ticks)
    return FisherHead(middle.to(ctx.dtype), p.to(ctx.dtype), places, len(counts), head).eval()
