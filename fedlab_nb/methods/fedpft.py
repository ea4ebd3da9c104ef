"""FedPFT, parametric feature transfer: send Gaussian mixtures of features, train a head on what they draw
(Beitollahi et al., 2024, arXiv 2402.01862).

Clients: client k fits, for each class that it holds, a mixture of K Gaussians to the frozen features of its samples, by
EM, and sends weights, means and spreads with its class counts n_kc.
Link, up only: 4 C bytes of counts and, for each class held, 4 K (1 + d + v), where v is 0, 1, d or d(d + 1)/2 numbers
of spread (`none`, `spherical`, `diagonal`, `full`); K is the number of samples where that is less.
Server: draws n_kc features from every mixture and trains a linear head on them by cross-entropy, with Adam.

Departures: the features are pixels unless `features` says otherwise (`lite0` is a small network that was trained on
images; the paper's are large ones). The paper fits the mixtures of all sizes; a public code of FedCGS, which compares
with FedPFT, leaves out every class of 10 samples or fewer, under label skew most of them (`smallest` = 11 does that).
`none` sends means alone, which is our addition. 10^-6 is added to every variance, as scikit-learn does. EM makes 20
steps. The head's 30 epochs were chosen for speed: no study has compared other numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypedDict, get_args

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, Independent, MultivariateNormal, Normal

from ..comm import pack_upper_triangle, unpack_upper_triangle
from ..errors import UsageError
from ..models import count_parameters
from ..models.state import allocate_uninitialised_parameters_on_cpu
from ..tensor_types import Features
from ..training import Recipe
from ..training.distill import choose_distillation_loss, distil_student_in_place
from ..value_types import ClientIndex
from .base import Context, GlobalModel, Steps, knob, register, report_progress
from .gauss import group_features_by_class
from .memory import SquareMatricesInMemory
from .parts.frozen import FrozenFeatures, FrozenMethod, HeadModel
from .traffic import FederationSizes, RunBytesUpPlusDown

LogDensities = Tensor  # [N, K], of each of K components
Responsibilities = Tensor  # [N, K], the share of each component in a sample

# ------------------------------------------------------------------------------------------------------------- mixtures
# Gaussian mixtures of feature rows: fitted by EM (Dempster, Laird, Rubin 1977), drawn from, and sent.
#
# `COVARIANCES`: how much is known about a component's spread, from little to much:
# - "none": nothing; a draw is the component's mean itself;
# - "spherical": one variance for all features, `[K]`;
# - "diagonal": one for each feature, `[K, d]`;
# - "full": a matrix, `[K, d, d]`.

SpreadKind = Literal["none", "spherical", "diagonal", "full"]
COVARIANCES: tuple[SpreadKind, ...] = get_args(SpreadKind)
STEPS = 20  # of EM
FLOOR = 1e-6  # added to every variance, so that a component of one sample has one


class FeatureMixtureMessage(TypedDict, total=False):
    """A mixture as it is sent, the matrices of `spread` as upper triangles; no `spread` for kind "none"."""

    weights: Tensor  # [K]
    means: Tensor  # [K, d]
    spread: Tensor


@dataclass(frozen=True, eq=False)
class FeatureMixture:
    """K components: `weights [K]` that sum to 1, `means [K, d]`, `spread` as `kind` says (see COVARIANCES)."""

    kind: str
    weights: Tensor
    means: Tensor
    spread: Tensor

    def compute_weighted_log_densities(self, features: Features) -> LogDensities:
        """log of weight times density of every component at `features [n, d]`, `[n, K]`; not for
        kind "none"."""
        components: Distribution
        if self.kind == "full":
            components = MultivariateNormal(self.means, self.spread)
        else:
            spread = self.spread
            if self.kind == "spherical":
                spread = spread[:, None].expand_as(self.means)
            components = Independent(Normal(self.means, spread.sqrt()), 1)
        return self.weights.log() + components.log_prob(features[:, None])

    def draw_features(self, vector_count: int, stream: torch.Generator) -> Features:
        """`vector_count` samples `[count, d]`; `stream` (a CPU generator) picks components and draws the
        noise."""
        weights = self.weights.cpu()
        components = torch.multinomial(weights, vector_count, replacement=True, generator=stream)
        components = components.to(self.means.device)
        size = (vector_count, self.means.shape[1])
        noise = torch.randn(size, generator=stream, dtype=torch.float64).to(self.means)
        means = self.means[components]
        if self.kind == "none":
            return means
        if self.kind == "full":
            values, axes = torch.linalg.eigh(self.spread)
            roots = axes * values.clamp(min=0).sqrt()[:, None]  # [K, d, d]: R Rᵀ = Σ
            return means + torch.einsum("nij,nj->ni", roots[components], noise)
        deviations = self.spread.sqrt()[components]
        if self.kind == "spherical":
            deviations = deviations[:, None]
        return means + noise * deviations

    def make_message(self, dtype: torch.dtype) -> FeatureMixtureMessage:
        """The message: weights, means and spread (of matrices the upper triangles; nothing for kind "none")."""
        message = FeatureMixtureMessage(weights=self.weights.to(dtype), means=self.means.to(dtype))
        if self.kind == "full":
            message["spread"] = pack_upper_triangle(self.spread).to(dtype)
        elif self.kind != "none":
            message["spread"] = self.spread.to(dtype)
        return message

    @classmethod
    def from_message(
        cls, message: FeatureMixtureMessage, spread_kind: SpreadKind
    ) -> FeatureMixture:
        """The mixture that `make_message` was made from, in float64."""
        weights = message["weights"].double()
        means = message["means"].double()
        if spread_kind == "none":
            spread = means.new_zeros(0)
        else:
            spread = message["spread"].double()
        if spread_kind == "full":
            spread = unpack_upper_triangle(spread)
        return cls(spread_kind, weights / weights.sum(), means, spread)


def fit_gaussian_mixture(
    features: Features,
    maximum_components: int,
    spread_kind: SpreadKind,
    stream: torch.Generator,
    em_steps: int = STEPS,
) -> FeatureMixture:
    """A mixture of at most `maximum_components` Gaussians for `features [n, d]` (float64), by
    `em_steps` of EM.

    EM starts with as many of the rows as means, drawn without replacement; every row belongs to the nearest. There are
    never more components than rows. Kind "none" is fitted as "spherical", and keeps its means and weights.
    """
    k = min(maximum_components, len(features))
    fitted_kind = "spherical" if spread_kind == "none" else spread_kind
    starts = torch.randperm(len(features), generator=stream)[:k].to(features.device)
    nearest = torch.cdist(features, features[starts]).argmin(1)
    shares = torch.nn.functional.one_hot(nearest, k).to(features)
    mixture = fit_mixture_to_responsibilities(features, shares, fitted_kind)
    if k > 1:
        for _ in range(em_steps):
            shares = mixture.compute_weighted_log_densities(features).softmax(1)
            mixture = fit_mixture_to_responsibilities(features, shares, fitted_kind)
    if spread_kind == "none":
        mixture = FeatureMixture(spread_kind, mixture.weights, mixture.means, features.new_zeros(0))
    return mixture


def fit_mixture_to_responsibilities(
    features: Features, responsibilities: Responsibilities, spread_kind: SpreadKind
) -> FeatureMixture:
    """EM's M-step: the most likely mixture for `features [n, d]`, whose components have
    `responsibilities [n, K]` of them.

    FLOOR is added to every variance.
    """
    mass = responsibilities.sum(0).clamp(min=torch.finfo(features.dtype).tiny)
    means = responsibilities.T @ features / mass[:, None]
    centred = features[:, None] - means  # [n, K, d]
    if spread_kind == "full":
        spread = (
            torch.einsum("nk,nki,nkj->kij", responsibilities, centred, centred)
            / mass[:, None, None]
        )
        spread = spread + FLOOR * torch.eye(
            features.shape[1], dtype=features.dtype, device=features.device
        )
    else:
        spread = (
            torch.einsum("nk,nkd->kd", responsibilities, centred.square()) / mass[:, None] + FLOOR
        )
        if spread_kind == "spherical":
            spread = spread.mean(1)
    return FeatureMixture(spread_kind, mass / mass.sum(), means, spread)


class MixtureMessage(TypedDict):
    """A client's upload.

    counts: its samples of each class `[C]`, int32; 0 for a class with too few samples
    mixtures: by class, the messages of `FeatureMixture.make_message`
    """

    counts: Tensor
    mixtures: dict[int, FeatureMixtureMessage]


class LabelledFeatures(NamedTuple):
    """Features `[n, d]` and their labels `[n]`."""

    features: Tensor
    labels: Tensor


@register(
    "fedpft",
    title="FedPFT",
    group="Closed form",
    paper="Beitollahi et al., 2024",
    traffic="4 C + 4 h (1 + 2 d), up only",
    extra="frozen features, the same at every client",
    sends="Gaussians of each class",
    leaks=(
        "each client's class counts, and a mixture of Gaussians of each of its classes: "
        "means of few samples, and of one sample its features"
    ),
)
class FedPFT(FrozenMethod):
    """Send a mixture of Gaussians for each class. The server draws features from all of them and trains a head."""

    components: int = knob(1, "Components", low=1, high=50)
    covariance: SpreadKind = knob("diagonal", "Spread", options=COVARIANCES)
    smallest: int = knob(1, "Smallest class", low=1, high=10_000)
    epochs: int = knob(30, "Head's epochs", low=1, high=1000)
    lr: float = knob(0.01, "Head's rate", low=1e-6, high=1.0, log=True)

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        d = self.count_features_before_run(sizes)
        classes_held = 0.45 * sizes.classes  # a guess: it depends on the skew
        floats = sizes.classes + classes_held * (1 + 2 * d) * self.components
        return RunBytesUpPlusDown(sizes.count_bytes_from_all_clients(floats), is_exact=False)

    def square_matrices(self, ctx: Context) -> list[SquareMatricesInMemory]:
        """With full covariances those of a class's components, while its mixture is fitted."""
        count = self.components if self.covariance == "full" else 0
        client_matrices = SquareMatricesInMemory(count, self.count_features_per_sample(ctx))
        return [*super().square_matrices(ctx), client_matrices]

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        client_features, frozen = yield from self.make_feature_maps(ctx)
        # Clients: a mixture of each class; up.
        received = yield from ctx.collect(
            "mixtures", lambda k: self.fit_and_pack_client_mixtures(ctx, k, client_features[k])
        )
        # Server: draw as many features as the clients have; train a head on them.
        with ctx.server():
            features, labels = self.draw_features_from_mixtures(ctx, received)
            head = nn.Linear(features.shape[1], ctx.classes, device="meta")
            allocate_uninitialised_parameters_on_cpu(head, ctx.dtype)
            for parameter in head.to(ctx.device).parameters():
                nn.init.zeros_(parameter)
            recipe = Recipe(self.epochs, 64, "adam", self.lr, weight_decay=0)
            loss = choose_distillation_loss("ce")
            stream = ctx.generator("fedpft", "head")
            ticks = distil_student_in_place(head, features, labels, recipe, loss, stream)
            model = HeadModel(frozen, head, count_parameters(head))
            return (yield from report_progress("head training", ticks, lambda: model))

    def fit_and_pack_client_mixtures(
        self, ctx: Context, client: ClientIndex, frozen: FrozenFeatures
    ) -> MixtureMessage:
        """Fit a mixture to each of client k's classes that has samples enough."""
        x, y = ctx.private.train(client)
        counts = torch.zeros(ctx.classes, dtype=torch.int32)
        mixtures = {}
        for c, rows in group_features_by_class(frozen(x).double(), y).items():
            if len(rows) < self.smallest:
                continue
            counts[c] = len(rows)
            stream = ctx.generator("fedpft", "mixture", client, c)
            mixture = fit_gaussian_mixture(rows, self.components, self.covariance, stream)
            mixtures[c] = mixture.make_message(ctx.dtype)
        return MixtureMessage(counts=counts, mixtures=mixtures)

    def draw_features_from_mixtures(
        self, ctx: Context, received: Sequence[MixtureMessage]
    ) -> LabelledFeatures:
        """n_kc features `[n, d]` from every mixture, with their labels `[n]`. UsageError if there is no mixture."""
        features = []
        labels = []
        for k, upload in enumerate(received):
            for c, message in upload["mixtures"].items():
                mixture = FeatureMixture.from_message(message, self.covariance)
                count = int(upload["counts"][c])
                stream = ctx.generator("fedpft", "features", k, c)
                features.append(mixture.draw_features(count, stream).to(ctx.dtype))
                labels.append(torch.full((count,), c))
        if not features:
            raise UsageError(
                f"No client has a class of {self.smallest} samples; use a smaller smallest."
            )
        return LabelledFeatures(torch.cat(features), torch.cat(labels).to(ctx.device))
