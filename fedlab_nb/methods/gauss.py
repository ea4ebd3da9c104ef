"""Gaussian heads: classes as Gaussians of frozen features, their statistics summed over clients, no
training.

Client k sends, for each class that it holds, its count n_kc, the sum of its features φ(x), and
second moments. The server adds these up, and has the statistics of all samples, as if they were in
one place. So skew changes nothing. Bayes' rule then gives the classifier (HEADS has the formulas).
The upload for `qda` is enough for all heads.

- `lda` is Fisher's linear discriminant (1936), `nb` naive Bayes, `qda` the quadratic discriminant;
- `fedcgs` is FedCGS (Guan, Zhou, Gu: Capture Global Feature Statistics for One-Shot Federated Learning, AAAI 2025,
  arXiv 2503.06962): LDA's formula with the covariance of all features, classes apart or not;
- `nb`, `lda` and `qda` on summed moments with shrinkage are the closed-form heads of GH-OFL (Turazza, Picone, Mamei:
  The Gaussian-Head OFL Family, ICLR 2026, arXiv 2602.01186);
- `means` is the nearest class mean (prototypes), from counts and sums alone;
- `fishermix` and `protohyper` are GH-OFL's heads that the server trains on features which it draws from the same
  Gaussians (`parts/fisher.py`).

Link, up: 4 C bytes of counts; with h classes held and d features 4 h d bytes of sums; and for the second moments
nothing (`means`), 4 h d (`nb`), 4 d (d + 1)/2 (`lda`, `fedcgs`), or 4 h d (d + 1)/2 (`qda`, trained heads). Down:
only the seed of the features.

Departures: the features are pixels unless `features` says otherwise; the papers have networks that were trained on
ImageNet, of which `lite0` is a small one. FedCGS has no shrinkage, and divides by zero for a class that no client
has; here such a class is never predicted. No variance is below a millionth of the mean one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypedDict, get_args

import numpy as np
import torch
from torch import Tensor

from ..comm import pack_upper_triangle, unpack_upper_triangle
from ..tensor_types import (
    ClassCovariances,
    ClassMeans,
    ClassShares,
    ClassVariances,
    Covariance,
    Features,
    Labels,
)
from .base import Context, GlobalModel, Report, Steps, knob, register
from .memory import SquareMatricesInMemory
from .parts.fisher import TRAINED, train_fisher_head
from .parts.frozen import FrozenMethod, HeadModel
from .traffic import FederationSizes, RunBytesUpPlusDown, count_upper_triangle_entries

FeaturesByClass = dict[int, Tensor]  # class -> features [n_c, D] of its samples

# ----------------------------------------------------------------------------------------------------- class statistics
# Counts, sums and second moments of features, class by class: all that Bayes' rule with Gaussian classes needs.
#
# They are sums over samples, so the sums of several clients add up to those of all samples in one place.
# `measure_class_sums` computes a client's, `pack_class_sums` and `unpack_class_sums` send them over the link, and
# `+` adds them up.
#
# The second moments are one of MOMENTS, from the fewest numbers to the most:
# - "none": nothing, `[0]`;
# - "diagonal": the squares of every feature, class by class, `[C, d]`;
# - "pooled": one matrix Σ f fᵀ of all classes together, `[d, d]`;
# - "full": such a matrix for every class, `[C, d, d]`.

LogPriorPerClass = Tensor  # [C]
CountColumn = Tensor  # [C, 1]
MomentKind = Literal["none", "diagonal", "pooled", "full"]
MOMENTS: tuple[MomentKind, ...] = get_args(MomentKind)
BY_CLASS = ("diagonal", "full")
MATRICES = ("pooled", "full")


@dataclass(frozen=True, eq=False)
class ClassSums:
    """`counts [C]`, `sums [C, d]` and `second` moments (see MOMENTS for `kind` and shape), in
    float64; added by +.
    """

    kind: str
    counts: Tensor
    sums: Tensor
    second: Tensor

    def __add__(self, other: ClassSums) -> ClassSums:
        assert self.kind == other.kind
        counts = self.counts + other.counts
        sums = self.sums + other.sums
        return ClassSums(self.kind, counts, sums, self.second + other.second)

    @property
    def means(self) -> ClassMeans:
        """μ_c `[C, d]`; zeros for a class without samples."""
        return self.sums / self._column_of_counts_at_least_one

    @property
    def log_priors(self) -> LogPriorPerClass:
        """log(N_c/N) `[C]`; -inf for a class without samples."""
        return (self.counts / self.counts.sum()).log()

    def compute_class_variances(self) -> ClassVariances:
        """v_c `[C, d]` of kind "diagonal": each feature's mean square around its class mean."""
        return (self.second / self._column_of_counts_at_least_one - self.means.square()).clamp(
            min=0
        )

    def compute_class_covariances(self) -> ClassCovariances:
        """Σ_c `[C, d, d]` of kind "full": S_c/N_c - μ_c μ_cᵀ."""
        squares = self.second / self._column_of_counts_at_least_one[..., None]
        return squares - self.means[:, :, None] * self.means[:, None, :]

    def compute_within_covariance(self) -> Covariance:
        """Σ_W `[d, d]` of kind "pooled": (B - Σ_c N_c μ_c μ_cᵀ) / (N - C), where C counts the
        classes that exist.
        """
        between = self.means.T @ self.sums
        present = (self.counts > 0).sum()
        return (self.second - between) / (self.counts.sum() - present).clamp(min=1)

    def compute_total_covariance(self) -> Covariance:
        """Σ_T `[d, d]` of kind "pooled": (B - N μ μᵀ) / (N - 1), the covariance without regard to
        classes.
        """
        count = self.counts.sum()
        sums = self.sums.sum(0)
        return (self.second - torch.outer(sums, sums) / count) / (count - 1).clamp(min=1)

    @property
    def _column_of_counts_at_least_one(self) -> CountColumn:
        """The counts as a column `[C, 1]` to divide by, 1 for a class without samples."""
        return self.counts.clamp(min=1)[:, None]


def group_features_by_class(features: Features, labels: Labels) -> FeaturesByClass:
    """The rows `[n_c, ...]` of `features [n, ...]` class by class, for the classes that `labels
    [n]` has, in order.
    """
    counts = torch.bincount(labels).tolist()
    groups = features[labels.argsort(stable=True)].split(counts)
    return {c: rows for c, rows in enumerate(groups) if len(rows)}


def measure_class_sums(
    features: Features, labels: Labels, class_count: int, moment_kind: MomentKind
) -> ClassSums:
    """The sums over samples with `features [n, d]` and `labels [n]`, added up in float64."""
    assert moment_kind in MOMENTS
    features = features.double()
    d = features.shape[1]
    counts = features.new_zeros(class_count)
    sums = features.new_zeros(class_count, d)
    if moment_kind == "pooled":
        second = features.T @ features
    else:
        shapes = {"none": (0,), "diagonal": (class_count, d), "full": (class_count, d, d)}
        second = features.new_zeros(shapes[moment_kind])
    for c, rows in group_features_by_class(features, labels).items():
        counts[c] += len(rows)
        sums[c] = rows.sum(0)
        if moment_kind == "diagonal":
            second[c] = rows.square().sum(0)
        elif moment_kind == "full":
            second[c] = rows.T @ rows
    return ClassSums(moment_kind, counts, sums, second)


class ClassSumsMessage(TypedDict):
    """What a client sends of its sums; P: the classes that it has."""

    counts: Tensor  # int32 [C], of all classes
    sums: Tensor  # [P, d]
    second: Tensor  # second moments as the kind says, of matrices the upper triangles


def pack_class_sums(client_sums: ClassSums, dtype: torch.dtype) -> ClassSumsMessage:
    """A client's message: the counts of all classes (int32), sums and second moments of those that
    it has, `dtype`.

    Of a matrix the upper triangle is sent. The receiver reads from the counts which classes the
    rows are of.
    """
    classes = client_sums.counts.nonzero()[:, 0]
    second = client_sums.second
    if client_sums.kind in BY_CLASS:
        second = second[classes]
    if client_sums.kind in MATRICES:
        second = pack_upper_triangle(second)
    return ClassSumsMessage(
        counts=client_sums.counts.int(),
        sums=client_sums.sums[classes].to(dtype),
        second=second.to(dtype),
    )


def unpack_class_sums(message: ClassSumsMessage, moment_kind: MomentKind) -> ClassSums:
    """The sums that a message of `pack_class_sums` has, in float64; zeros for the classes that the
    client lacks.
    """
    counts = message["counts"].double()
    classes = message["counts"].nonzero()[:, 0]

    def fill_rows(rows: Tensor) -> Tensor:
        """One row a class, from the rows of the client's own classes."""
        return rows.new_zeros(len(counts), *rows.shape[1:]).index_copy(0, classes, rows)

    sums = fill_rows(message["sums"].double())
    second = message["second"].double()
    if moment_kind in MATRICES:
        second = unpack_upper_triangle(second)
    if moment_kind in BY_CLASS:
        second = fill_rows(second)
    return ClassSums(moment_kind, counts, sums, second)


# ---------------------------------------------------------------------------------------------------------------- heads
# Classifiers by Bayes' rule with Gaussian classes, from counts, sums and second moments (`ClassSums`).
#
# With class c's mean μ_c, share π_c and covariance, a sample f belongs to the class with the highest log π_c plus log
# density. HEADS, from the coarsest description of a class to the finest:
# - "means": the nearest mean, fᵀμ_c - ½ μ_cᵀμ_c, whatever the shares;
# - "nb": naive Bayes, each feature for itself: log π_c - ½ Σ_j [(f_j - μ_cj)²/v_cj + log v_cj];
# - "lda": one covariance Σ_W for all classes: fᵀΣ⁻¹μ_c - ½ μ_cᵀΣ⁻¹μ_c + log π_c;
# - "fedcgs": the same with the total covariance Σ_T instead of Σ_W;
# - "qda": a covariance for every class: log π_c - ½ (f - μ_c)ᵀΣ_c⁻¹(f - μ_c) - ½ log|Σ_c|.
#
# Every covariance Σ is shrunk first: (1 - s) Σ + s (tr Σ / d) I, naive Bayes' variances towards their mean. No variance
# in any direction is below FLOOR times the mean variance of all features, so that no class has a volume of zero.
# A class without any sample has the score -inf.

GaussHead = Literal["means", "nb", "lda", "fedcgs", "qda", "fishermix", "protohyper"]
# Head -> the second moments that it needs.
HEADS: dict[GaussHead, MomentKind] = {
    "means": "none",
    "nb": "diagonal",
    "lda": "pooled",
    "fedcgs": "pooled",
    "qda": "full",
}
FLOOR = 1e-6


@dataclass(frozen=True, eq=False)
class ClassScorer:
    """Discriminants of C classes.

    Linear heads have `slopes [d, C]`. The others have `means [C, d]` and `whitening`, which brings a class to unit
    spread: `[C, d]` factors (naive Bayes) or `[C, d, d]` matrices. `constants [C]` do not depend on the sample.
    """

    constants: Tensor
    slopes: Tensor | None = None
    means: Tensor | None = None
    whitening: Tensor | None = None

    def __call__(self, features: Features) -> Tensor:
        """Scores `[n, C]` of `features [n, d]`, in float64."""
        features = features.double()
        if self.slopes is not None:
            return features @ self.slopes + self.constants
        assert self.means is not None and self.whitening is not None
        distances = []
        for mean, whitening in zip(self.means, self.whitening, strict=True):
            distances.append(whiten_differences(features - mean, whitening).square().sum(1))
        return self.constants - torch.stack(distances, 1) / 2

    @property
    def parameter_count(self) -> int:
        """Numbers that predict."""
        tensors = (self.constants, self.slopes, self.means, self.whitening)
        return sum(tensor.numel() for tensor in tensors if tensor is not None)


def make_class_scorer(
    summed_client_sums: ClassSums, head: GaussHead, shrinkage_0_to_1: float
) -> ClassScorer:
    """The `head` (see HEADS) of all clients' statistics together; `shrinkage_0_to_1`: s."""
    means = summed_client_sums.means
    log_priors = summed_client_sums.log_priors
    if head == "means":
        exists = torch.where(summed_client_sums.counts > 0, 0.0, -torch.inf)
        return ClassScorer(exists - means.square().sum(1) / 2, slopes=means.T)
    if head in ("lda", "fedcgs"):
        covariance = (
            summed_client_sums.compute_within_covariance()
            if head == "lda"
            else summed_client_sums.compute_total_covariance()
        )
        values, axes = torch.linalg.eigh(covariance)
        values = shrink_variances(values[None], values.new_ones(1), shrinkage_0_to_1)
        slopes = axes @ ((means @ axes) / values).T
        return ClassScorer(log_priors - (means.T * slopes).sum(0) / 2, slopes=slopes)
    if head == "nb":
        variances = shrink_variances(
            summed_client_sums.compute_class_variances(), log_priors.exp(), shrinkage_0_to_1
        )
        constants = log_priors - variances.log().sum(1) / 2
        return ClassScorer(constants, means=means, whitening=variances.rsqrt())
    variances, axes = compute_shrunk_class_spectra(summed_client_sums, shrinkage_0_to_1)
    constants = log_priors - variances.log().sum(1) / 2
    return ClassScorer(constants, means=means, whitening=axes * variances.rsqrt()[:, None])


class ClassSpectra(NamedTuple):
    """Variances `[C, d]` along the axes of each class's covariance, the columns of `axes [C, d,
    d]`.
    """

    variances: Tensor
    axes: Tensor


def compute_shrunk_class_spectra(
    summed_client_sums: ClassSums, shrinkage_0_to_1: float
) -> ClassSpectra:
    """Variances `[C, d]` along the axes `[C, d, d]` (columns) of each class's covariance, shrunk."""
    variances, axes = torch.linalg.eigh(summed_client_sums.compute_class_covariances())
    return ClassSpectra(
        shrink_variances(variances, summed_client_sums.log_priors.exp(), shrinkage_0_to_1), axes
    )


def shrink_variances(
    variances: ClassVariances, class_shares: ClassShares, shrinkage_0_to_1: float
) -> ClassVariances:
    """Variances `[G, d]`, of features or along the axes of a covariance, moved towards the mean of
    their row.

    None is left below FLOOR times the mean variance of all rows, which are weighted by their
    `class_shares [G]`.
    """
    mean = variances.mean(1, keepdim=True)
    lower_bound = FLOOR * (class_shares @ mean).clamp(min=FLOOR)
    return torch.maximum((1 - shrinkage_0_to_1) * variances + shrinkage_0_to_1 * mean, lower_bound)


def whiten_differences(
    differences_from_mean: Features, whitening_factors_or_matrix: Tensor
) -> Features:
    """Differences from the mean `[n, d]`, brought to unit spread by factors `[d]` or a matrix `[d,
    d]`.
    """
    if whitening_factors_or_matrix.ndim == 1:
        return differences_from_mean * whitening_factors_or_matrix
    return differences_from_mean @ whitening_factors_or_matrix


# --------------------------------------------------------------------------------------------------------------- method
MOST_NUMBERS = 2_000_000  # the report leaves out an array of more numbers


@dataclass(frozen=True, eq=False)
class GaussReport(Report):
    """Features as the server knows them, d numbers each.

    counts [M, C]: of each client, as it sent them
    client_means [M, C, d]: from its sums; zeros for a class that it lacks
    means [C, d]
    deviations [G, d]: standard deviations, of each class (G = C) or within all (G = 1)
    covariances [G, d, d]: without shrinkage. None: not sent, or too large to keep.
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
    leaks=(
        "each client's class counts and class means (a class of one sample: that sample's "
        "features), and second moments: with them, of few images whose pixels are the "
        "features, those images"
    ),
    forgets="its counts, sums and products are subtracted",
)
class Gauss(FrozenMethod):
    """Add up counts, sums and second moments of frozen features. Classify by Bayes' rule."""

    report = GaussReport

    head: GaussHead = knob("qda", "Classifier", options=(*HEADS, *TRAINED))
    shrinkage: float = knob(0.4, "Shrinkage", symbol="s", low=0, high=1)
    draws: int = knob(400, "Draws of a class", low=1, high=100_000, log=True)
    epochs: int = knob(10, "Head's epochs", low=1, high=1000)
    lr: float = knob(0.01, "Head's rate", low=1e-6, high=1.0, log=True)

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        d = self.count_features_before_run(sizes)
        spread = count_upper_triangle_entries(d) if self.head == "qda" else d
        classes_held = 0.45 * sizes.classes  # a guess: it depends on the skew
        floats = sizes.classes + classes_held * (d + spread)
        return RunBytesUpPlusDown(sizes.count_bytes_from_all_clients(floats), is_exact=False)

    def square_matrices(self, ctx: Context) -> list[SquareMatricesInMemory]:
        """Second moments as the server has received them: one per client, or one for each of its
        classes.
        """
        groups = {"pooled": 1, "full": ctx.classes}.get(HEADS.get(self.head, "full"), 0)
        client_matrices = SquareMatricesInMemory(
            groups * ctx.clients_count, self.count_features_per_sample(ctx)
        )
        return [*super().square_matrices(ctx), client_matrices]

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        kind: MomentKind = HEADS.get(self.head, "full")  # trained heads need what qda sends
        client_features, features = yield from self.make_feature_maps(ctx)

        # Clients: counts, sums and second moments of the features; up. No training.
        def measure(k: int) -> ClassSumsMessage:
            x, y = ctx.private.train(k)
            sums = measure_class_sums(client_features[k](x), y, ctx.classes, kind)
            return pack_class_sums(sums, ctx.dtype)

        received = yield from ctx.collect("statistics", measure)
        # Server: the sums of all clients, then Bayes' rule.
        with ctx.server():
            client_sums = [unpack_class_sums(message, kind) for message in received]
            total = sum(client_sums[1:], client_sums[0])
            report = make_gauss_report(client_sums, total, self.head)
            if self.head == "fishermix" or self.head == "protohyper":
                variances, axes = compute_shrunk_class_spectra(total, self.shrinkage)
                covariances = axes * variances[:, None] @ axes.mT
                head = yield from train_fisher_head(
                    ctx,
                    self.head,
                    total.means,
                    covariances,
                    total.counts,
                    draws_per_class=self.draws,
                    epochs=self.epochs,
                    lr=self.lr,
                )
                numbers = sum(tensor.numel() for tensor in head.state_dict().values())
                return HeadModel(features, head, numbers, report)
            scores = make_class_scorer(total, self.head, self.shrinkage)
            return HeadModel(features, scores, scores.parameter_count, report)


def make_gauss_report(
    client_sums: Sequence[ClassSums], summed_client_sums: ClassSums, head: GaussHead
) -> GaussReport:
    """The statistics that the server knows, for pictures."""
    fields = {
        "counts": torch.stack([sums.counts for sums in client_sums]).int(),
        "client_means": torch.stack([sums.means for sums in client_sums]),
        "means": summed_client_sums.means,
    }
    if head == "nb":
        fields["deviations"] = summed_client_sums.compute_class_variances().sqrt()
    elif head != "means":
        if head == "lda":
            covariances = summed_client_sums.compute_within_covariance()[None]
        elif head == "fedcgs":
            covariances = summed_client_sums.compute_total_covariance()[None]
        else:
            covariances = summed_client_sums.compute_class_covariances()
        fields["covariances"] = covariances
        fields["deviations"] = covariances.diagonal(dim1=1, dim2=2).clamp(min=0).sqrt()
    arrays = {}
    for name, tensor in fields.items():
        if tensor.numel() <= MOST_NUMBERS:
            if tensor.is_floating_point():
                tensor = tensor.float()
            arrays[name] = tensor.cpu().numpy()
    return GaussReport(**arrays)
