"""Gaussian heads: classes as Gaussians of frozen features, their statistics summed over clients, no training.

Client k sends, for each class that it holds, its count n_kc, the sum of its features φ(x), and second moments. The
server adds up what it gets, so it has the statistics of all samples in one place, whoever holds which: skew changes
nothing. Bayes' rule then gives the classifier (HEADS has the formulas). One upload serves more than
one head: what `qda` sends is enough for all of them.

- `lda` is Fisher's linear discriminant (1936), `nb` naive Bayes, `qda` the quadratic discriminant;
- `fedcgs` is FedCGS (Guan, Zhou, Gu: Capture Global Feature Statistics for One-Shot Federated Learning, AAAI 2025,
  arXiv 2503.06962): LDA's formula with the covariance of all features, classes apart or not;
- `nb`, `lda` and `qda` on summed moments with shrinkage are the closed-form heads of GH-OFL (Turazza, Picone, Mamei:
  The Gaussian-Head OFL Family, ICLR 2026, arXiv 2602.01186);
- `means` is the nearest class mean (prototypes), from counts and sums alone;
- `fishermix` and `protohyper` are GH-OFL's heads that the server trains on features which it draws from the same
  Gaussians (`parts/fisher.py`).

Link, up only: 4 C bytes of counts and, with h classes held and d features, 4 h d of sums; on top nothing (`means`),
4 h d (`nb`), 4 d (d + 1)/2 (`lda`, `fedcgs`), 4 h d (d + 1)/2 (`qda`, trained heads). What comes
down is the seed of the features.

Departures: the features are pixels unless `features` says otherwise; the papers have networks that were trained on
ImageNet, of which `lite0` is a small one. FedCGS has no shrinkage, and divides by zero where nobody holds a class; here
such a class is never named. No variance is below a millionth of the mean one.

On the digits (alpha = 0.1, M = 10) every head is far ahead of the ensemble by probabilities. How far depends on the
federation: on seed 103 `means` is 18 points ahead, on the test's other seeds more than 20.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..comm import from_upper_triangle, upper_triangle
from .base import Context, GlobalModel, Report, Steps, knob, register
from .memory import SquareMatrices
from .parts.fisher import TRAINED, trained_head
from .parts.frozen import FrozenMethod, HeadModel

# ----------------------------------------------------------------------------------------------------- class statistics
# Counts, sums and second moments of features, class by class: all that Bayes' rule with Gaussian classes needs.
#
# They are sums over samples, so those of several clients add up to those of all samples in one place, whoever holds
# which sample. `class_sums` makes a client's, `message` and `received` are its way over the link, `+` adds two up.
#
# What is kept of the second moments is one of MOMENTS, from little to much:
# - "none": nothing, `[0]`;
# - "diagonal": the squares of every feature, class by class, `[C, d]`;
# - "pooled": one matrix Σ f fᵀ of all classes together, `[d, d]`;
# - "full": such a matrix for every class, `[C, d, d]`.

MOMENTS = ("none", "diagonal", "pooled", "full")
BY_CLASS, MATRICES = ("diagonal", "full"), ("pooled", "full")


@dataclass(frozen=True, eq=False)
class ClassSums:
    """`counts [C]`, `sums [C, d]` and `second` moments (see MOMENTS for `kind` and shape), in float64; added by +."""

    kind: str
    counts: Tensor
    sums: Tensor
    second: Tensor

    def __add__(self, other: ClassSums) -> ClassSums:
        assert self.kind == other.kind
        added = (self.counts + other.counts, self.sums + other.sums, self.second + other.second)
        return ClassSums(self.kind, *added)

    @property
    def means(self) -> Tensor:
        """μ_c `[C, d]`; zeros for a class without samples."""
        return self.sums / self._at_least_one

    @property
    def log_priors(self) -> Tensor:
        """log(N_c/N) `[C]`; -inf for a class without samples."""
        return (self.counts / self.counts.sum()).log()

    def variances(self) -> Tensor:
        """v_c `[C, d]` of kind "diagonal": each feature's mean square around its class mean."""
        return (self.second / self._at_least_one - self.means.square()).clamp(min=0)

    def covariances(self) -> Tensor:
        """Σ_c `[C, d, d]` of kind "full": S_c/N_c - μ_c μ_cᵀ."""
        return (
            self.second / self._at_least_one[..., None]
            - self.means[:, :, None] * self.means[:, None, :]
        )

    def within(self) -> Tensor:
        """Σ_W `[d, d]` of kind "pooled": (B - Σ_c N_c μ_c μ_cᵀ) / (N - C), where C counts the classes that exist."""
        between = self.means.T @ self.sums
        present = (self.counts > 0).sum()
        return (self.second - between) / (self.counts.sum() - present).clamp(min=1)

    def total(self) -> Tensor:
        """Σ_T `[d, d]` of kind "pooled": (B - N μ μᵀ) / (N - 1), the covariance without regard to classes."""
        count, sums = self.counts.sum(), self.sums.sum(0)
        return (self.second - torch.outer(sums, sums) / count) / (count - 1).clamp(min=1)

    @property
    def _at_least_one(self) -> Tensor:
        return self.counts.clamp(min=1)[:, None]


def by_class(features: Tensor, labels: Tensor) -> dict[int, Tensor]:
    """The rows `[n_c, ...]` of `features [n, ...]` class by class, for the classes that `labels [n]` has, in order."""
    counts = torch.bincount(labels).tolist()
    groups = features[labels.argsort(stable=True)].split(counts)
    return {c: rows for c, rows in enumerate(groups) if len(rows)}


def class_sums(features: Tensor, labels: Tensor, classes: int, kind: str) -> ClassSums:
    """The sums over samples with `features [n, d]` and `labels [n]`, added up in float64."""
    assert kind in MOMENTS
    wide = features.double()
    d = wide.shape[1]
    counts, sums = wide.new_zeros(classes), wide.new_zeros(classes, d)
    shapes = {"none": (0,), "diagonal": (classes, d), "pooled": (d, d), "full": (classes, d, d)}
    second = wide.T @ wide if kind == "pooled" else wide.new_zeros(shapes[kind])
    for c, rows in by_class(wide, labels).items():
        counts[c] += len(rows)
        sums[c] = rows.sum(0)
        if kind in ("diagonal", "full"):
            second[c] = rows.T @ rows if kind == "full" else rows.square().sum(0)
    return ClassSums(kind, counts, sums, second)


def message(own: ClassSums, dtype: torch.dtype) -> dict[str, Tensor]:
    """What a client sends: the counts of all classes (int32), sums and second moments of those that it holds, `dtype`.

    Of a matrix the upper triangle is sent. The receiver reads from the counts which classes the rows are of.
    """
    held = own.counts.nonzero()[:, 0]
    second = own.second[held] if own.kind in BY_CLASS else own.second
    second = upper_triangle(second) if own.kind in MATRICES else second
    return {
        "counts": own.counts.int(),
        "sums": own.sums[held].to(dtype),
        "second": second.to(dtype),
    }


def received(sent: Mapping[str, Tensor], kind: str) -> ClassSums:
    """The sums that `message` was made of, in float64; zeros for the classes that the client lacks."""
    counts, held = sent["counts"].double(), sent["counts"].nonzero()[:, 0]

    def placed(rows: Tensor) -> Tensor:
        return rows.new_zeros(len(counts), *rows.shape[1:]).index_copy(0, held, rows)

    second = sent["second"].double()
    second = from_upper_triangle(second) if kind in MATRICES else second
    return ClassSums(
        kind, counts, placed(sent["sums"].double()), placed(second) if kind in BY_CLASS else second
    )


# ---------------------------------------------------------------------------------------------------------------- heads
# Classifiers by Bayes' rule with Gaussian classes, from counts, sums and second moments (`ClassSums`).
#
# With class c's mean μ_c, share π_c and covariance, a sample f belongs to the class with the highest log π_c plus log
# density. HEADS, from the coarsest picture of a class to the finest:
# - "means": the nearest mean, fᵀμ_c - ½ μ_cᵀμ_c, whatever the shares;
# - "nb": naive Bayes, each feature for itself: log π_c - ½ Σ_j [(f_j - μ_cj)²/v_cj + log v_cj];
# - "lda": one covariance Σ_W for all classes: fᵀΣ⁻¹μ_c - ½ μ_cᵀΣ⁻¹μ_c + log π_c;
# - "fedcgs": the same with the total covariance Σ_T instead of Σ_W;
# - "qda": a covariance for every class: log π_c - ½ (f - μ_c)ᵀΣ_c⁻¹(f - μ_c) - ½ log|Σ_c|.
#
# Every covariance Σ is shrunk first: (1 - s) Σ + s (tr Σ / d) I, naive Bayes' variances towards their mean. No variance
# in any direction is below FLOOR times the mean variance of all features, so that no class has a volume of zero.
# A class without any sample has the score -inf.

# Head -> the second moments that it needs (see MOMENTS).
HEADS = {"means": "none", "nb": "diagonal", "lda": "pooled", "fedcgs": "pooled", "qda": "full"}
FLOOR = 1e-6


@dataclass(frozen=True, eq=False)
class Scores:
    """Discriminants of C classes. Linear heads have `slopes [d, C]`. The others have `means [C, d]` and `whitening`,
    which brings a class to unit spread: `[C, d]` factors (naive Bayes) or `[C, d, d]` matrices. `constants [C]`: what
    does not depend on the sample.
    """

    constants: Tensor
    slopes: Tensor | None = None
    means: Tensor | None = None
    whitening: Tensor | None = None

    def __call__(self, features: Tensor) -> Tensor:
        """Scores `[n, C]` of `features [n, d]`, in float64."""
        wide = features.double()
        if self.slopes is not None:
            return wide @ self.slopes + self.constants
        assert self.means is not None and self.whitening is not None
        each = [white(wide - mean, w) for mean, w in zip(self.means, self.whitening, strict=True)]
        return self.constants - torch.stack([z.square().sum(1) for z in each], 1) / 2

    @property
    def parameters(self) -> int:
        """Numbers that predict."""
        parts = (self.constants, self.slopes, self.means, self.whitening)
        return sum(part.numel() for part in parts if part is not None)


def scores(sums: ClassSums, head: str, shrinkage: float) -> Scores:
    """The `head` (see HEADS) of the summed statistics; `shrinkage`: s."""
    means, priors = sums.means, sums.log_priors
    if head == "means":
        gone = torch.where(sums.counts > 0, 0.0, -torch.inf)
        return Scores(gone - means.square().sum(1) / 2, slopes=means.T)
    if head in ("lda", "fedcgs"):
        values, axes = torch.linalg.eigh(sums.within() if head == "lda" else sums.total())
        slopes = axes @ ((means @ axes) / shrunk(values[None], values.new_ones(1), shrinkage)).T
        return Scores(priors - (means.T * slopes).sum(0) / 2, slopes=slopes)
    shares = priors.exp()
    if head == "nb":
        variances = shrunk(sums.variances(), shares, shrinkage)
        return Scores(priors - variances.log().sum(1) / 2, means=means, whitening=variances.rsqrt())
    values, axes = spectra(sums, shrinkage)
    return Scores(
        priors - values.log().sum(1) / 2, means=means, whitening=axes * values.rsqrt()[:, None]
    )


def spectra(sums: ClassSums, shrinkage: float) -> tuple[Tensor, Tensor]:
    """Variances `[C, d]` along the axes `[C, d, d]` (columns) of each class's covariance, shrunk."""
    values, axes = torch.linalg.eigh(sums.covariances())
    return shrunk(values, sums.log_priors.exp(), shrinkage), axes


def shrunk(variances: Tensor, shares: Tensor, shrinkage: float) -> Tensor:
    """Variances `[G, d]`, of features or along the axes of a covariance, towards the mean of their row.

    None is left below FLOOR times the mean variance of all rows, which count by their `shares [G]`.
    """
    middle = variances.mean(1, keepdim=True)
    least = FLOOR * (shares @ middle).clamp(min=FLOOR)
    return torch.maximum((1 - shrinkage) * variances + shrinkage * middle, least)


def white(away: Tensor, whitening: Tensor) -> Tensor:
    """Differences from the mean `[n, d]`, brought to unit spread by factors `[d]` or a matrix `[d, d]`."""
    return away * whitening if whitening.ndim == 1 else away @ whitening


# --------------------------------------------------------------------------------------------------------------- method
SHOWN = 2_000_000  # the report leaves out an array of more numbers


@dataclass(frozen=True, eq=False)
class GaussReport(Report):
    """Features as the server knows them, d numbers each.

    counts [M, C]: of each client, as it sent them;   client_means [M, C, d]: what its sums say; zeros for a class that
    it lacks;   means [C, d];   deviations [G, d]: standard deviations, of each class (G = C) or within all (G = 1);
    covariances [G, d, d]: after no shrinkage. None: not sent, or too large to keep.
    """

    counts: np.ndarray | None = None
    client_means: np.ndarray | None = None
    means: np.ndarray | None = None
    deviations: np.ndarray | None = None
    covariances: np.ndarray | None = None


@register(
    "gauss",
    title="Gaussian heads",
    group="Closed form",
    paper="Guan et al., AAAI 2025; Turazza et al., ICLR 2026",
    traffic="4 C + 4 h (d + d(d+1)/2), up only",
    extra="frozen features, the same at every client",
    sends="sums of each class",
    leaks="each client's class counts and class means (a class of one sample: that sample's features), and second "
    "moments: with them, of few images whose pixels are the features, those images",
)
class Gauss(FrozenMethod):
    """Add up counts, sums and second moments of frozen features. Classify by Bayes' rule."""

    report = GaussReport

    head: str = knob("qda", "Classifier", options=(*HEADS, *TRAINED))
    shrinkage: float = knob(0.4, "Shrinkage", symbol="s", low=0, high=1)
    draws: int = knob(400, "Draws of a class", low=1, high=100_000, log=True)
    epochs: int = knob(10, "Head's epochs", low=1, high=1000)
    lr: float = knob(0.01, "Head's rate", low=1e-6, high=1.0, log=True)

    def square_matrices(self, ctx: Context) -> list[SquareMatrices]:
        """Second moments as the server has received them: one a client, or one for each of its classes."""
        groups = {"pooled": 1, "full": ctx.classes}.get(HEADS.get(self.head, "full"), 0)
        own = SquareMatrices(groups * ctx.clients_count, self.feature_size(ctx))
        return [*super().square_matrices(ctx), own]

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        kind = HEADS.get(self.head, "full")  # trained heads draw from what qda sends
        own_features, frozen = yield from self.frozen(ctx)

        # Clients: counts, sums and second moments of the features; up. No training.
        def own(k: int) -> dict[str, Tensor]:
            x, y = ctx.private.train(k)
            return message(class_sums(own_features[k](x), y, ctx.classes, kind), ctx.dtype)

        arrived = yield from ctx.collect("statistics", own)
        # Server: the sums of all clients, then Bayes' rule.
        with ctx.server():
            each = [received(sent, kind) for sent in arrived]
            whole = sum(each[1:], each[0])
            report = report_of(each, whole, self.head)
            if self.head in TRAINED:
                values, axes = spectra(whole, self.shrinkage)
                spread, training = (
                    axes * values[:, None] @ axes.mT,
                    {"draws": self.draws, "epochs": self.epochs},
                )
                steps = trained_head(
                    ctx, self.head, whole.means, spread, whole.counts, lr=self.lr, **training
                )
                head = yield from steps
                return HeadModel(
                    frozen, head, sum(part.numel() for part in head.state_dict().values()), report
                )
            made = scores(whole, self.head, self.shrinkage)
            return HeadModel(frozen, made, made.parameters, report)


def report_of(each: Sequence[ClassSums], whole: ClassSums, head: str) -> GaussReport:
    """What the server knows, for pictures."""
    counts, means = (
        torch.stack([own.counts for own in each]).int(),
        torch.stack([own.means for own in each]),
    )
    made = {"counts": counts, "client_means": means, "means": whole.means}
    if head == "nb":
        made["deviations"] = whole.variances().sqrt()
    elif head != "means":
        group = (
            whole.covariances()
            if head == "qda"
            else (whole.within() if head == "lda" else whole.total())[None]
        )
        made["covariances"] = group
        made["deviations"] = group.diagonal(dim1=1, dim2=2).clamp(min=0).sqrt()
    small = {name: part for name, part in made.items() if part.numel() <= SHOWN}
    narrow = {
        name: part.float() if part.is_floating_point() else part for name, part in small.items()
    }
    return GaussReport(**{name: part.cpu().numpy() for name, part in narrow.items()})
