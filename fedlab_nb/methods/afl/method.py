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
but from a list that had been narrowed after test accuracies had been seen. Sums are float64 at clients and server, and
travel in the run's dtype. The paper's features are those of a ResNet-18 that was trained on ImageNet; here they are
pixels, random or the largest client's.

Not in the paper: `secure` sums masked uploads, so that the server sees the total alone (`parts/secure_sum.py`).
`epsilon`, `delta`: each row (φ(x), 1) is divided by its length, so that one sample moves X_kᵀX_k and X_kᵀY_k by at most
√2 together, and noise of the analytic Gaussian mechanism is added to the total (`parts/privacy.py`). Its negative
eigenvalues are set to 0, and ρ grows by σ√d. *Promised*: whoever sees W learns little of any one sample that a client
has or has not. *Not promised*: anything towards a server that adds the noise itself, since it has seen the sums; with
`secure` each client adds 1/M of the noise's variance before masking, and the server sees the noisy total only, if no
clients conspire or drop out. It does not hide what is true of many samples, and a second run on the same samples spends
the budget again.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ...comm import from_upper_triangle, upper_triangle
from ...errors import demand
from ..base import Progress, Steps, knob, register
from ..context import Context
from ..parts.frozen import (
    FrozenMethod,
    HeadModel,
    features_knob,
    features_seed_knob,
    frozen_features,
    largest,
    size_knob,
)
from ..parts.privacy import sigma_for
from ..parts.secure_sum import secure_sum
from .model import AflModel, AflReport
from .sums import SENSITIVITY, Sums, head


@register(
    "afl",
    title="AFL",
    paper="He et al., CVPR 2025",
    traffic="d(d+1)/2 + d C floats up; the seed of the features (8 bytes) down",
    leaks="the second moments of each client's features, and each of its classes' sum: of a class with one image, that "
    "image",
)
class AFL(FrozenMethod):
    """The clients' sums for least squares are added up. The fit is that of all samples in one place."""

    features: str = features_knob()
    size: int = size_knob()
    gamma: float = knob(1.0, "Local ridge", symbol="γ", low=0, high=1e3)
    rho: float = knob(1.0, "Final ridge", symbol="ρ", low=0, high=1e9)
    clean: bool = knob(True, "Take the local ridges off")
    secure: bool = knob(False, "Secure sum")
    epsilon: float = knob(0.0, "Privacy budget", symbol="ε", low=0, high=1e6, endless=True)
    delta: float = knob(1e-5, "Failure probability", symbol="δ", low=1e-12, high=0.1, log=True)
    features_seed: int = features_seed_knob()

    report = AflReport

    def validate(self, ctx: Context) -> None:
        super().validate(ctx)
        demand(
            not self.private or self.features != "client",
            f"{self.info.title} cannot promise privacy with features=client, because that network is trained "
            "without noise; set features to pixels, relu or conv, or epsilon to 0.",
        )

    @property
    def private(self) -> bool:
        """Whether there is noise."""
        return 0 < self.epsilon < math.inf

    @property
    def leaks(self) -> str:
        shown = "the sum over all clients" if self.secure else self.info.leaks
        if self.secure and self.private:
            shown = f"the sum over all clients, with noise (ε = {self.epsilon:g})"
        return shown + (", and the largest client's network" if self.features == "client" else "")

    def run(self, ctx: Context) -> Steps[HeadModel]:
        # The features, the same at all clients; the noise that the promise needs.
        features = yield from frozen_features(ctx, self.features, self.size, self.features_seed)
        sigma = sigma_for(self.epsilon, self.delta, sensitivity=SENSITIVITY) if self.private else 0.0
        # Clients: one pass over the samples; two sums.
        own = []
        for k in range(ctx.clients_count):
            x, y = ctx.private.train(k)
            own.append(Sums.of(features(x), y, ctx.classes, unit=sigma > 0).ridged(self.gamma))
            yield Progress("sums", k + 1, ctx.clients_count)
        # Link: the upper triangle and the class sums go up, masked or plain.
        received = self._masked(ctx, own, sigma) if self.secure else self._plain(ctx, own)
        # Server: add up, solve, take the local ridges off.
        with ctx.server():
            total = sum(received[1:], received[0])
            if sigma and not self.secure:
                total = total.noisy(sigma, ctx.generator("afl", "noise"))
            weights = head(total, ctx.clients_count, self.gamma, self.rho, clean=self.clean, sigma=sigma)
            backbone = largest(ctx) if self.features == "client" else None
            report = AflReport.of(self, received, ctx.clients_count, sigma, backbone)
            return AflModel(features, weights, report)

    def _plain(self, ctx: Context, own: Sequence[Sums]) -> list[Sums]:
        """As the server receives them, in the run's dtype."""
        received = []
        for k, sums in enumerate(own):
            upload = {"moments": upper_triangle(sums.moments).to(ctx.dtype), "classes": sums.classes.to(ctx.dtype)}
            sent = ctx.link.up(k, upload, phase="sums")
            received.append(Sums(from_upper_triangle(sent["moments"].double()), sent["classes"].double()))
        return received

    def _masked(self, ctx: Context, own: Sequence[Sums], sigma: float) -> list[Sums]:
        """The total alone, in a list. With privacy each client adds its part of the noise first."""
        if sigma:
            share = sigma / len(own) ** 0.5
            own = [sums.noisy(share, ctx.generator("afl", "noise", k)) for k, sums in enumerate(own)]
        flat = [torch.cat([upper_triangle(sums.moments), sums.classes.flatten()]) for sums in own]
        total: Tensor = secure_sum(ctx.link, flat, lambda k: ctx.generator("afl", "secret", k), "masked sums")
        classes = own[0].classes
        moments, class_sums = total.split([len(total) - classes.numel(), classes.numel()])
        return [Sums(from_upper_triangle(moments), class_sums.view_as(classes))]
