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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, Independent, MultivariateNormal, Normal

from ..comm import from_upper_triangle, upper_triangle
from ..errors import demand
from ..models import parameter_count
from ..models.state import materialise
from ..training import Recipe
from ..training.distill import distil, distillation_loss
from .base import Context, GlobalModel, Steps, knob, register, report_progress
from .gauss import by_class
from .memory import SquareMatrices
from .parts.frozen import Frozen, FrozenMethod, HeadModel

# ------------------------------------------------------------------------------------------------------------- mixtures
# Gaussian mixtures of feature rows: fitted by EM (Dempster, Laird, Rubin 1977), drawn from, and sent.
#
# `COVARIANCES` says what is known of a component's spread, from little to much:
# - "none": nothing; a draw is the component's mean itself;
# - "spherical": one variance for all features, `[K]`;
# - "diagonal": one for each feature, `[K, d]`;
# - "full": a matrix, `[K, d, d]`.

COVARIANCES = ("none", "spherical", "diagonal", "full")
STEPS = 20  # of EM
FLOOR = 1e-6  # added to every variance, so that a component of one sample has one


@dataclass(frozen=True, eq=False)
class Mixture:
    """K components: `weights [K]` that sum to 1, `means [K, d]`, `spread` as `kind` says (see COVARIANCES)."""

    kind: str
    weights: Tensor
    means: Tensor
    spread: Tensor

    def log_densities(self, rows: Tensor) -> Tensor:
        """log of weight times density of every component at `rows [n, d]`, `[n, K]`; not for kind "none"."""
        each: Distribution
        if self.kind == "full":
            each = MultivariateNormal(self.means, self.spread)
        else:
            spread = (
                self.spread[:, None].expand_as(self.means)
                if self.kind == "spherical"
                else self.spread
            )
            each = Independent(Normal(self.means, spread.sqrt()), 1)
        return self.weights.log() + each.log_prob(rows[:, None])

    def draw(self, count: int, stream: torch.Generator) -> Tensor:
        """`count` samples `[count, d]`; `stream` (a CPU generator) picks components and draws the noise."""
        chosen = torch.multinomial(self.weights.cpu(), count, replacement=True, generator=stream)
        rows = chosen.to(self.means.device)
        noise = torch.randn(count, self.means.shape[1], generator=stream, dtype=torch.float64).to(
            self.means
        )
        if self.kind == "none":
            return self.means[rows]
        if self.kind == "full":
            values, axes = torch.linalg.eigh(self.spread)
            roots = (
                axes * values.clamp(min=0).sqrt()[:, None]
            )  # [K, d, d]: each times its transpose is Σ
            return self.means[rows] + torch.einsum("nij,nj->ni", roots[rows], noise)
        roots = self.spread.sqrt()[rows]
        return self.means[rows] + noise * (roots[:, None] if self.kind == "spherical" else roots)

    def message(self, dtype: torch.dtype) -> dict[str, Tensor]:
        """What is sent: weights, means and spread (of matrices the upper triangles; nothing for kind "none")."""
        sent = {"weights": self.weights, "means": self.means}
        if self.kind != "none":
            sent["spread"] = upper_triangle(self.spread) if self.kind == "full" else self.spread
        return {name: part.to(dtype) for name, part in sent.items()}

    @classmethod
    def received(cls, sent: Mapping[str, Tensor], kind: str) -> Mixture:
        """The mixture that `message` was made of, in float64."""
        wide = {name: part.double() for name, part in sent.items()}
        spread = wide.get("spread", wide["means"].new_zeros(0))
        spread = from_upper_triangle(spread) if kind == "full" else spread
        return cls(kind, wide["weights"] / wide["weights"].sum(), wide["means"], spread)


def fitted(
    rows: Tensor, components: int, kind: str, stream: torch.Generator, steps: int = STEPS
) -> Mixture:
    """A mixture of at most `components` Gaussians for `rows [n, d]` (float64), by `steps` of EM.

    EM starts with as many of the rows as means, drawn without replacement, every row belonging to the nearest. There
    are never more components than rows. Kind "none" is fitted as "spherical", whose means and weights it keeps.
    """
    k = min(components, len(rows))
    shape = "spherical" if kind == "none" else kind
    start = rows[torch.randperm(len(rows), generator=stream)[:k].to(rows.device)]
    nearest = torch.cdist(rows, start).argmin(1)
    mixture = maximised(rows, torch.nn.functional.one_hot(nearest, k).to(rows), shape)
    for _ in range(steps if k > 1 else 0):
        mixture = maximised(rows, mixture.log_densities(rows).softmax(1), shape)
    return (
        mixture
        if kind == shape
        else Mixture(kind, mixture.weights, mixture.means, rows.new_zeros(0))
    )


def maximised(rows: Tensor, belongs: Tensor, kind: str) -> Mixture:
    """EM's M-step: the most likely mixture for `rows [n, d]` of which `belongs [n, K]` says whose they are.

    FLOOR is added to every variance.
    """
    mass = belongs.sum(0).clamp(min=torch.finfo(rows.dtype).tiny)
    means = belongs.T @ rows / mass[:, None]
    away = rows[:, None] - means  # [n, K, d]
    if kind == "full":
        spread = torch.einsum("nk,nki,nkj->kij", belongs, away, away) / mass[:, None, None]
        spread = spread + FLOOR * torch.eye(rows.shape[1], dtype=rows.dtype, device=rows.device)
    else:
        spread = torch.einsum("nk,nkd->kd", belongs, away.square()) / mass[:, None] + FLOOR
        spread = spread.mean(1) if kind == "spherical" else spread
    return Mixture(kind, mass / mass.sum(), means, spread)


@register(
    "fedpft",
    title="FedPFT",
    group="Closed form",
    paper="Beitollahi et al., 2024",
    traffic="4 C + 4 h (1 + 2 d), up only",
    extra="frozen features, the same at every client",
    sends="Gaussians of each class",
    leaks="each client's class counts, and a mixture of Gaussians of each of its classes: means of few samples, "
    "and of one sample its features",
)
class FedPFT(FrozenMethod):
    """Send a mixture of Gaussians for each class. The server draws features from all of them and trains a head."""

    components: int = knob(1, "Components", low=1, high=50)
    covariance: str = knob("diagonal", "Spread", options=COVARIANCES)
    smallest: int = knob(1, "Smallest class", low=1, high=10_000)
    epochs: int = knob(30, "Head's epochs", low=1, high=1000)
    lr: float = knob(0.01, "Head's rate", low=1e-6, high=1.0, log=True)

    def square_matrices(self, ctx: Context) -> list[SquareMatrices]:
        """With full covariances those of a class's components, while its mixture is fitted."""
        count = self.components if self.covariance == "full" else 0
        own = SquareMatrices(count, self.feature_size(ctx))
        return [*super().square_matrices(ctx), own]

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        own_features, frozen = yield from self.frozen(ctx)
        # Clients: a mixture of each class; up.
        arrived = yield from ctx.collect(
            "mixtures", lambda k: self.mixtures(ctx, k, own_features[k])
        )
        # Server: as many features as the clients have, drawn; a head trained on them.
        with ctx.server():
            drawn, labels = self.draw(ctx, arrived)
            head = nn.Linear(drawn.shape[1], ctx.classes, device="meta")
            materialise(head, ctx.dtype)
            for part in head.to(ctx.device).parameters():
                nn.init.zeros_(part)
            recipe = Recipe(self.epochs, 64, "adam", self.lr, weight_decay=0)
            ticks = distil(
                head,
                drawn,
                labels,
                recipe,
                distillation_loss("ce"),
                ctx.generator("fedpft", "head"),
            )
            model = HeadModel(frozen, head, parameter_count(head))
            return (yield from report_progress("head training", ticks, lambda: model))

    def mixtures(self, ctx: Context, k: int, frozen: Frozen) -> dict:
        """What client k sends: the counts `[C]` of its classes (int32; 0 of one that is too small), and their
        mixtures."""
        x, y = ctx.private.train(k)
        groups = {
            c: rows
            for c, rows in by_class(frozen(x).double(), y).items()
            if len(rows) >= self.smallest
        }
        counts = [len(groups.get(c, ())) for c in range(ctx.classes)]
        made = {}
        for c, rows in groups.items():
            stream = ctx.generator("fedpft", "mixture", k, c)
            made[c] = fitted(rows, self.components, self.covariance, stream).message(ctx.dtype)
        return {"counts": torch.tensor(counts, dtype=torch.int32), "mixtures": made}

    def draw(self, ctx: Context, arrived: Sequence[dict]) -> tuple[Tensor, Tensor]:
        """n_kc features `[n, d]` from every mixture, with their labels `[n]`. UsageError if there is no mixture."""
        features, labels = [], []
        for k, sent in enumerate(arrived):
            for c, parts in sent["mixtures"].items():
                count, stream = int(sent["counts"][c]), ctx.generator("fedpft", "features", k, c)
                features.append(
                    Mixture.received(parts, self.covariance).draw(count, stream).to(ctx.dtype)
                )
                labels.append(torch.full((count,), c))
        demand(
            features, f"No client has a class of {self.smallest} samples; use a smaller smallest."
        )
        return torch.cat(features), torch.cat(labels).to(ctx.device)
