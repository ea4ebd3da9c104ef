"""AFL: fit the last layer by least squares; the sums that this needs add up over clients (He et al., CVPR 2025).

φ: features that nobody trains (`parts/frozen.py`) with a 1 appended, d numbers. Client k has them as X_k `[n_k, d]`
and its labels as Y_k `[n_k, C]`, one-hot.
Clients: A_k = X_kᵀX_k + γI and C_k = X_kᵀY_k. Link: the seed of φ down; the upper triangle of A_k and C_k up.
Server: A = Σ A_k, W = A⁻¹ Σ C_k ("absolute aggregation"), then the M local ridges are taken off again ("RI cleaning"):
W* = (A − MγI + ρI)⁻¹ A W. That is ridge regression on all samples in one place, to rounding, whatever the partition:
skew cannot touch it. A client is forgotten exactly by taking its sums off (`without`).

Departures: the paper sends the local solution W_k = A_k⁻¹C_k with A_k and merges pair by pair with
W = (I − R₁A₂ + R₁A₂SA₂)W₁ + (I − R₂A₁ + R₂A₁SA₁)W₂, where R = A_k⁻¹, S = (A₁+A₂)⁻¹. This equals S(A₁W₁ + A₂W₂), and
A_kW_k = C_k, so that the sums are enough. The paper has ρ = 0; the classroom's ρ = 1 was chosen on validation images,
but from a list that had been narrowed after test accuracies had been seen; `choose` lets the federation choose it
(`parts/ridge.py`). Sums are float64 at clients and server, and travel in the run's dtype. The paper's features are
those of a ResNet-18 that was trained on ImageNet; here they are those of a smaller network (`lite0`), pixels, random or
the largest client's.

Not in the paper: `secure` sums masked uploads, so that the server sees the total alone (`parts/privacy.py`).
`epsilon`, `delta`: each row (φ(x), 1) is divided by its length, so that one sample moves X_kᵀX_k and X_kᵀY_k by at most
√2 together, and noise of the analytic Gaussian mechanism is added to the total (`parts/privacy.py`). Its negative
eigenvalues are set to 0, and ρ grows by σ√d. *Promised*: whoever sees W learns little of any one sample that a client
has or has not. *Not promised*: anything towards a server that adds the noise itself, since it has seen the sums, or
towards who reads the run's report, which then keeps each client's sums without noise; with
`secure` each client adds 1/M of the noise's variance before masking, and the server sees the noisy total only, if no
clients conspire or drop out. It does not hide what is true of many samples, and a second run on the same samples spends
the budget again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..comm import from_upper_triangle, upper_triangle
from ..errors import UsageError, demand, whole
from .base import Context, Progress, Report, Steps, knob, register
from .memory import SquareMatrices
from .parts.frozen import Frozen, FrozenMethod, HeadModel
from .parts.kronecker import add_identity, inverse
from .parts.privacy import secure_sum, sigma_for
from .parts.ridge import WAYS, Sums, chosen_ridge

# ----------------------------------------------------------------------------------------------------------------- sums
# The two sums of a least-squares fit, and the fit: all float64. Nothing here knows of clients' data or of a link.

# How far one sample moves both sums together if its row has length 1: x xᵀ has length 1, and x yᵀ, too.
SENSITIVITY = 2**0.5


def head(total: Sums, clients: int, gamma: float, rho: float, *, sigma: float = 0.0) -> Tensor:
    """The weights `[d, C]` from the sum over `clients`, each with its ridge γ: W* = (A − MγI + ρI)⁻¹ Σ C_k.

    `sigma`: of the noise that the sums have; what it makes negative is cut off, and the ridge
    grows by σ√d, about the largest eigenvalue that such noise has. Directions that no sample has get 0 where ρ = 0.
    """
    moments = add_identity(total.moments, -clients * gamma)
    ridge = rho
    if sigma:
        values, vectors = torch.linalg.eigh(moments)
        moments = vectors * values.clamp_min(0) @ vectors.T
        ridge += sigma * len(moments) ** 0.5
    return inverse(add_identity(moments, ridge))(total.classes)


def scores(features: Tensor, weights: Tensor) -> Tensor:
    """`(φ, 1)ᵀ W` `[N, C]` of `features [N, d - 1]`, in their dtype."""
    weights = weights.to(features)
    return features @ weights[:-1] + weights[-1]


# ---------------------------------------------------------------------------------------------------------------- model
# What AFL leaves behind: its weights, and, where the server saw them, every client's sums; forgetting a client.

MOST_NUMBERS = 4_000_000  # numbers of the clients' sums that a report may hold

OWN_FITS = "Mean of the clients' own fits"


@dataclass(frozen=True, eq=False)
class AflReport(Report):
    """`weights [d, C]` (last row: of the 1), float64. `moments [M, d(d+1)/2]`, upper triangles with γ on the diagonal,
    and `classes [M, d, C]`, whose last row counts the clients' samples of each class: as the server received them, or
    None where it saw the sum alone (`secure`) or where they are more than 4 million numbers. `clients`, `gamma`
    and `rho`: as in the run. `grid`, `errors` [G]: the ρ that were tried, and the squared error a sample that each
    had (`choose`). `sigma`: of the noise on the sum, 0 if none. `backbone`: the client whose network makes
    the features, None if no client's does. `align`: τ, if the clients' features were moved. `own_fits`: test accuracy
    of the mean of the clients' own ridge solutions,
    weighted with n_k/N."""

    weights: np.ndarray | None = None
    moments: np.ndarray | None = None
    classes: np.ndarray | None = None
    clients: int | None = None
    gamma: float | None = None
    rho: float | None = None
    grid: list[float] | None = None
    errors: list[float] | None = None
    sigma: float | None = None
    backbone: int | None = None
    align: float | None = None
    own_fits: float | None = None

    def others(self) -> dict[str, float]:
        return {} if self.own_fits is None else {OWN_FITS: self.own_fits}

    def sums(self, k: int) -> Sums:
        """Client k's sums; UsageError where the server has none of its own."""
        if self.moments is None or self.classes is None:
            raise UsageError(
                "The server has no client's sums, only their total; set secure=false or a smaller size."
            )
        k = whole("client", k, 0, len(self.moments) - 1)
        return Sums(
            from_upper_triangle(torch.from_numpy(self.moments[k])),
            torch.from_numpy(self.classes[k]),
        )

    def fitted(self, total: Sums, clients: int) -> np.ndarray:
        """The weights `[d, C]` that this run's server would take from the sum over so many clients."""
        assert self.gamma is not None and self.rho is not None
        return head(total, clients, self.gamma, self.rho).numpy()

    def own_weights(self) -> np.ndarray:
        """The clients' own ridge solutions A_k⁻¹C_k (the paper's uploads), `[M, d, C]`."""
        each = [self.sums(k) for k in range(self.clients or 0)]
        return np.stack([inverse(s.moments)(s.classes).numpy() for s in each])


def without(report: AflReport, k: int) -> np.ndarray:
    """The weights `[d, C]` as if client k had never taken part: its sums taken off the total, and solved again.

    UsageError where the server has no client's sums, where noise is in the total (what it has been spent on cannot be
    taken back), where all features were moved by its moments, for the only client, and for the client whose network
    makes the features.
    """
    if report.sigma:
        raise UsageError(
            "The total has noise in it, so that no client can be taken off exactly; set epsilon=0."
        )
    if report.align:
        raise UsageError(
            "All features were moved towards moments that this client is part of; set align=0."
        )
    gone, clients = report.sums(k), report.clients or 0
    if clients < 2:
        raise UsageError(
            "The only client cannot be forgotten: nothing would be left; take at least 2 clients."
        )
    if k == report.backbone:
        raise UsageError(
            f"Client {k}'s network makes the features, so that its sums are not all that is left of it."
        )
    total = sum((report.sums(j) for j in range(1, clients)), report.sums(0))
    return report.fitted(total - gone, clients - 1)


def accuracy_of(weights: np.ndarray, features: np.ndarray, y: np.ndarray) -> float:
    """Share of samples with `features [N, d - 1]` that `weights [d, C]` put into their class `y [N]`."""
    return float(((features @ weights[:-1] + weights[-1]).argmax(1) == y).mean())


class AflModel(HeadModel):
    """The features and the weights `[d, C]` (float64)."""

    score_kind = "regression"
    parts = ("frozen", "weights")

    def __init__(self, frozen: Frozen, weights: Tensor, report: AflReport = AflReport()) -> None:  # noqa: B008  (frozen)
        self.weights = weights
        report = replace(report, weights=weights.cpu().numpy())
        super().__init__(
            frozen, lambda features: scores(features, weights), weights.numel(), report
        )

    def measured(self, x: Tensor, y: Tensor) -> Report:
        """With the accuracy of the mean of the clients' own fits, where the server has their sums without noise."""
        report = self.report
        assert isinstance(report, AflReport)
        if report.classes is None or report.sigma:
            return report
        shares = report.classes[:, -1].sum(1)
        mean = np.tensordot(shares / shares.sum(), report.own_weights(), 1)
        own_fits = accuracy_of(mean, self.features(x).double().cpu().numpy(), y.cpu().numpy())
        return replace(report, own_fits=own_fits)


@register(
    "afl",
    title="AFL",
    group="Closed form",
    paper="He et al., CVPR 2025",
    traffic="d(d+1)/2 + d C floats up; the seed of the features (8 bytes) down",
    sends="two sums",
    leaks="the second moments of each client's features, and each of its classes' sum: of a class with one image, that "
    "image; of few images whose pixels are the features, all of them (choose=samples: the sums of all clients "
    "together, to every client)",
)
class AFL(FrozenMethod):
    """The clients' sums for least squares are added up. The fit is that of all samples in one place."""

    gamma: float = knob(1.0, "Local ridge", symbol="γ", low=0, high=1e3)
    rho: float = knob(1.0, "Final ridge", symbol="ρ", low=0, high=1e9)
    choose: str = knob("given", "Choice of ρ", options=WAYS)
    secure: bool = knob(False, "Secure sum")
    epsilon: float = knob(0.0, "Privacy budget", symbol="ε", low=0, high=1e6, endless=True)
    delta: float = knob(1e-5, "Failure probability", symbol="δ", low=1e-12, high=0.1, log=True)

    report = AflReport

    def refuse(self, ctx: Context) -> None:
        super().refuse(ctx)
        noisy = not self.private or self.features != "client"
        demand(
            noisy,
            "features=client sends a network without noise; set features to pixels, relu, conv or lite0.",
        )
        hidden = not self.align or not (self.private or self.secure)
        demand(
            hidden,
            "align sends each client's moments as they are; set secure=false and epsilon=0, or align=0.",
        )
        plain = self.choose == "given" or not (self.private or self.secure)
        demand(
            plain,
            "choose needs what each client says of a ridge; set secure=false and epsilon=0, or choose=given.",
        )
        several = self.choose != "clients" or ctx.clients_count > 1
        demand(
            several,
            "choose=clients needs two clients or more, but there is one; set choose=samples.",
        )

    @property
    def private(self) -> bool:
        """Whether there is noise."""
        return 0 < self.epsilon < math.inf

    @property
    def leaks(self) -> str:
        if not self.secure:
            return super().leaks
        noise = f", with noise (ε = {self.epsilon:g})" if self.private else ""
        network = ", and the largest client's network" if self.features == "client" else ""
        return f"the sum over all clients{noise}{network}"

    def square_matrices(self, ctx: Context) -> list[SquareMatrices]:
        """Every client's moments, as it has them and as the server has received them."""
        own = SquareMatrices(2 * ctx.clients_count, self.feature_size(ctx) + 1)
        return [*super().square_matrices(ctx), own]

    def run(self, ctx: Context) -> Steps[HeadModel]:
        # The features, the same at all clients; the noise that the promise needs.
        own_features, features = yield from self.frozen(ctx)
        sigma = (
            sigma_for(self.epsilon, self.delta, sensitivity=SENSITIVITY) if self.private else 0.0
        )
        # Clients: one pass over the samples; two sums.
        own = []
        for k in range(ctx.clients_count):
            x, y = ctx.private.train(k)
            own.append(
                Sums.of(own_features[k](x), y, ctx.classes, unit=sigma > 0).ridged(self.gamma)
            )
            yield Progress("sums", k + 1, ctx.clients_count)
        # Link: the upper triangle and the class sums go up, masked or plain.
        if self.secure:
            received = self._masked(ctx, own, sigma)
        else:
            sent = [
                ctx.link.up(k, sums.message(ctx.dtype), phase="sums") for k, sums in enumerate(own)
            ]
            received = [Sums.received(each) for each in sent]
        rho, shown = self.rho, dict[str, Any]()
        if self.choose != "given":
            plain = [sums.ridged(-self.gamma) for sums in received]
            rho, shown = chosen_ridge(ctx, self.choose, own_features, plain)
        # Server: add up, solve, take the local ridges off.
        with ctx.server():
            total = sum(received[1:], received[0])
            if sigma and not self.secure:
                total = total.noisy(sigma, ctx.generator("afl", "noise"))
            weights = head(total, ctx.clients_count, self.gamma, rho, sigma=sigma)
            backbone = ctx.largest_client if self.features == "client" else None
            numbers = len(received) * (
                upper_triangle(received[0].moments).numel() + received[0].classes.numel()
            )
            shown |= {
                "gamma": self.gamma,
                "rho": rho,
                "backbone": backbone,
                "align": self.align or None,
            }
            if not self.secure and numbers <= MOST_NUMBERS:
                shown["moments"] = (
                    torch.stack([upper_triangle(own.moments) for own in received]).cpu().numpy()
                )
                shown["classes"] = torch.stack([own.classes for own in received]).cpu().numpy()
            report = AflReport(clients=ctx.clients_count, sigma=sigma, **shown)
            return AflModel(features, weights, report)

    def _masked(self, ctx: Context, own: Sequence[Sums], sigma: float) -> list[Sums]:
        """The total alone, in a list. With privacy each client adds its part of the noise first."""
        if sigma:
            share = sigma / len(own) ** 0.5
            own = [
                sums.noisy(share, ctx.generator("afl", "noise", k)) for k, sums in enumerate(own)
            ]
        flat = [torch.cat([upper_triangle(sums.moments), sums.classes.flatten()]) for sums in own]
        total: Tensor = secure_sum(
            ctx.link, flat, lambda k: ctx.generator("afl", "secret", k), "masked sums"
        )
        classes = own[0].classes
        moments, class_sums = total.split([len(total) - classes.numel(), classes.numel()])
        return [Sums(from_upper_triangle(moments), class_sums.view_as(classes))]
