"""AFL: fit the last layer by least squares; the sums that this needs add up over clients (He et al., CVPR 2025).

φ: frozen features (`parts/frozen.py`) with a 1 appended, d numbers. Client k has them as X_k `[n_k, d]`
and its labels as Y_k `[n_k, C]`, one-hot.
Clients: A_k = X_kᵀX_k + γI and C_k = X_kᵀY_k. Link: the seed of φ down; the upper triangle of A_k and C_k up.
Server: A = Σ A_k, W = A⁻¹ Σ C_k ("absolute aggregation"), then the M local ridges are taken off again ("RI cleaning"):
W* = (A − MγI + ρI)⁻¹ A W. That is ridge regression on all samples in one place, to rounding, whatever the partition:
skew has no effect. A client is forgotten exactly by subtracting its sums (`solve_classifier_weights_without_client`).

Departures: the paper sends the local solution W_k = A_k⁻¹C_k with A_k and merges pair by pair with
W = (I − R₁A₂ + R₁A₂SA₂)W₁ + (I − R₂A₁ + R₂A₁SA₁)W₂, where R = A_k⁻¹, S = (A₁+A₂)⁻¹. This equals S(A₁W₁ + A₂W₂), and
A_kW_k = C_k, so that the sums are enough. The paper has ρ = 0; the classroom's ρ = 1 was chosen on validation images,
but from a list that had been narrowed after test accuracies had been seen; `choose` lets the federation choose it
(`parts/ridge.py`). Sums are float64 at clients and server, and travel in the run's dtype. The paper's features are
those of a ResNet-18 that was trained on ImageNet; here they are those of a smaller network (`lite0`), pixels, random or
the largest client's.

Not in the paper: `secure` sums masked uploads, so that the server sees the total alone (`parts/privacy.py`). `epsilon`,
`delta`: each row (φ(x), 1) is divided by its length, so that one sample moves X_kᵀX_k and X_kᵀY_k by at most √2
together, and noise of the analytic Gaussian mechanism is added to the total (`parts/privacy.py`). Its negative
eigenvalues are set to 0, and ρ grows by σ√d. *Promised*: whoever sees W learns little about any single sample. *Not
promised*: anything towards a server that adds the noise itself, since it has seen the sums, or towards a reader of the
run's report, which then keeps each client's sums without noise; with `secure` each client adds 1/M of the noise's
variance before masking, and the server sees the noisy total only, if no clients conspire or drop out. It does not hide
what is true of many samples, and a second run on the same samples spends the budget again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..comm import pack_upper_triangle, unpack_upper_triangle
from ..data.array_types import FeatureArray, LabelArray
from ..errors import UsageError, check_whole_number
from ..methods.run_outputs import SentenceOnPrivacy
from ..tensor_types import ClassifierWeights, ClassScores, Features, Labels, Samples
from ..value_types import Accuracy0To1, ClientIndex
from .base import Context, Progress, Report, Steps, knob, register
from .memory import SquareMatricesInMemory
from .parts.frozen import FrozenFeatures, FrozenMethod, HeadModel
from .parts.kronecker import add_to_diagonal, make_inverse_multiplier
from .parts.privacy import find_smallest_noise_sigma, send_and_sum_masked_vectors
from .parts.ridge import WAYS, RidgeSelection, RidgeSums, choose_ridge
from .run_outputs import AccuracyByRule
from .traffic import FLOAT, FederationSizes, RunBytesUpPlusDown, count_upper_triangle_entries

ClassifierWeightArray = np.ndarray  # [D, C]
ClientClassifierWeightArray = np.ndarray  # [M, D, C]

# ------------------------------------------------------------------------------------------------------------------ fit
# The least-squares fit from its two sums, in float64. Nothing here reads clients' data or uses a link.

# How far one sample moves both sums together if its row has length 1: x xᵀ has length 1, and x yᵀ, too.
SENSITIVITY = 2**0.5


def solve_classifier_weights(
    summed_client_sums: RidgeSums,
    client_count: int,
    gamma: float,
    rho: float,
    *,
    sigma: float = 0.0,
) -> ClassifierWeights:
    """The weights `[d, C]` from the sum over `client_count`, each with its ridge γ: W* = (A − MγI + ρI)⁻¹ Σ C_k.

    `sigma`: of the noise in the sums. Eigenvalues that it makes negative are set to 0, and the ridge grows by σ√d,
    about the largest eigenvalue of such noise. Directions that no sample has get 0 where ρ = 0.
    """
    moments = add_to_diagonal(summed_client_sums.moments, -client_count * gamma)
    ridge = rho
    if sigma:
        values, vectors = torch.linalg.eigh(moments)
        moments = vectors * values.clamp_min(0) @ vectors.T
        ridge += sigma * len(moments) ** 0.5
    return make_inverse_multiplier(add_to_diagonal(moments, ridge))(summed_client_sums.classes)


def compute_linear_scores(
    features: Features, weights_with_bias_row: ClassifierWeights
) -> ClassScores:
    """`(φ, 1)ᵀ W` `[N, C]` of `features [N, d - 1]`, in their dtype."""
    weights_with_bias_row = weights_with_bias_row.to(features)
    return features @ weights_with_bias_row[:-1] + weights_with_bias_row[-1]


# ---------------------------------------------------------------------------------------------------------------- model
# What AFL leaves behind: its weights, and, where the server saw them, every client's sums; forgetting a client.

MOST_NUMBERS = 4_000_000  # numbers of the clients' sums that a report may hold

OWN_FITS = "Mean of the clients' own fits"


@dataclass(frozen=True, eq=False)
class AflReport(Report):
    """The weights of a run, and the clients' sums where the server saw them.

    weights [d, C]: last row: of the 1; float64
    moments [M, d(d+1)/2]: upper triangles, with γ on the diagonal
    classes [M, d, C]: the last row counts the client's samples of each class. Both as the server
        received them; None if it saw only their total (`secure`), or where they are more than 4
        million numbers
    clients, gamma, rho: as in the run
    grid, errors [G]: the ρ that were tried, and the squared error a sample of each (`choose`)
    sigma: of the noise on the sum, 0 if none
    backbone: the client whose network makes the features, None if no client's does
    align: τ, if the clients' features were aligned
    own_fits: test accuracy of the mean of the clients' own ridge solutions, weighted with n_k/N
    """

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

    def get_accuracies_under_other_rules(self) -> AccuracyByRule:
        if self.own_fits is None:
            return {}
        return {OWN_FITS: self.own_fits}

    def get_client_sums(self, client: ClientIndex) -> RidgeSums:
        """Client k's sums; UsageError if the server has only the total."""
        if self.moments is None or self.classes is None:
            raise UsageError(
                "The server has no client's sums, only their total; set secure=false or a smaller size."
            )
        client = check_whole_number("client", client, 0, len(self.moments) - 1)
        moments = unpack_upper_triangle(torch.from_numpy(self.moments[client]))
        return RidgeSums(moments, torch.from_numpy(self.classes[client]))

    def solve_server_classifier_weights(
        self, summed_client_sums: RidgeSums, client_count: int
    ) -> ClassifierWeightArray:
        """The weights `[d, C]` that this run's server would compute from the sums of so many clients."""
        assert self.gamma is not None and self.rho is not None
        return solve_classifier_weights(
            summed_client_sums, client_count, self.gamma, self.rho
        ).numpy()

    def solve_client_classifier_weights(self) -> ClientClassifierWeightArray:
        """The clients' own ridge solutions A_k⁻¹C_k (the paper's uploads), `[M, d, C]`."""
        solutions = []
        for k in range(self.clients or 0):
            sums = self.get_client_sums(k)
            solutions.append(make_inverse_multiplier(sums.moments)(sums.classes).numpy())
        return np.stack(solutions)


def solve_classifier_weights_without_client(
    report: AflReport, client: ClientIndex
) -> ClassifierWeightArray:
    """The weights `[d, C]` as if client k had never taken part: its sums are subtracted, and the fit solved again.

    UsageError if the server has no client's sums, if noise is in the total (it covers this client, too), or if all
    features were aligned with its moments. UsageError also for the only client, and for the client whose network
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
    client_sums = report.get_client_sums(client)
    clients = report.clients or 0
    if clients < 2:
        raise UsageError(
            "The only client cannot be forgotten: nothing would be left; take at least 2 clients."
        )
    if client == report.backbone:
        raise UsageError(
            f"Client {client}'s network makes the features, so that its sums are not all that is left of it."
        )
    total = report.get_client_sums(0)
    for j in range(1, clients):
        total = total + report.get_client_sums(j)
    return report.solve_server_classifier_weights(total - client_sums, clients - 1)


def compute_accuracy_of_classifier_weights(
    weights_with_bias_row: ClassifierWeightArray, features: FeatureArray, labels: LabelArray
) -> Accuracy0To1:
    """Share of samples with `features [N, d - 1]` that the weights `[d, C]` put into their class `labels [N]`."""
    scores = features @ weights_with_bias_row[:-1] + weights_with_bias_row[-1]
    return float((scores.argmax(1) == labels).mean())


class AflModel(HeadModel):
    """The features and the weights `[d, C]` (float64)."""

    score_kind = "regression"
    parts = ("frozen", "weights")

    def __init__(
        self, frozen: FrozenFeatures, weights: Tensor, report: AflReport = AflReport()
    ) -> None:  # noqa: B008  (frozen)
        self.weights = weights
        report = replace(report, weights=weights.cpu().numpy())
        super().__init__(
            frozen,
            lambda features: compute_linear_scores(features, weights),
            weights.numel(),
            report,
        )

    def complete_report_on_test_samples(self, samples: Samples, labels: Labels) -> Report:
        """With the accuracy of the mean of the clients' own fits, where the server has their sums without noise."""
        report = self.report
        assert isinstance(report, AflReport)
        if report.classes is None or report.sigma:
            return report
        shares = report.classes[:, -1].sum(1)
        mean_weights = np.tensordot(
            shares / shares.sum(), report.solve_client_classifier_weights(), 1
        )
        features = self.features(samples).double().cpu().numpy()
        own_fits = compute_accuracy_of_classifier_weights(
            mean_weights, features, labels.cpu().numpy()
        )
        return replace(report, own_fits=own_fits)


# Features that a client draws from a seed of 8 bytes, or that need none.
SENT_AS_A_SEED = ("pixels", "relu", "conv")


@register(
    "afl",
    title="AFL",
    group="Closed form",
    paper="He et al., CVPR 2025",
    traffic="d(d+1)/2 + d C floats up; the seed of the features (8 bytes) down",
    sends="two sums",
    leaks=(
        "the second moments of each client's features, and each of its classes' sum: of a "
        "class with one image, that image; of few images whose pixels are the features, all "
        "of them (choose=samples: the sums of all clients together, to every client)"
    ),
    forgets="its sums are subtracted, and the fit is solved again",
)
class AFL(FrozenMethod):
    """The clients' sums for least squares are added up. The fit is that of all samples in one place."""

    gamma: float = knob(1.0, "Local ridge", symbol="γ", low=0, high=1e3)
    rho: float = knob(1.0, "Final ridge", symbol="ρ", low=0, high=1e9)
    choose: RidgeSelection = knob("given", "Choice of ρ", options=WAYS)
    secure: bool = knob(False, "Secure sum")
    epsilon: float = knob(0.0, "Privacy budget", symbol="ε", low=0, high=1e6, endless=True)
    delta: float = knob(1e-5, "Failure probability", symbol="δ", low=1e-12, high=0.1, log=True)

    report = AflReport

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        d = self.count_features_before_run(sizes)
        sums = count_upper_triangle_entries(d + 1) + (d + 1) * sizes.classes
        if self.features not in SENT_AS_A_SEED or self.send_body or self.align or self.epsilon:
            return RunBytesUpPlusDown(sizes.count_bytes_from_all_clients(sums), is_exact=False)
        seed = 0 if self.features == "pixels" else 8
        if self.secure:  # numbers of 64 bits, and a key of 32 bytes for each pair of clients
            return RunBytesUpPlusDown(sizes.clients * (8 * sums + 32 * sizes.clients + seed))
        return RunBytesUpPlusDown(sizes.clients * (FLOAT * sums + seed))

    def refuse(self, ctx: Context) -> None:
        super().refuse(ctx)
        if self.adds_privacy_noise and self.features == "client":
            raise UsageError(
                "features=client sends a network without noise; set features to pixels, relu, conv or lite0."
            )
        hides_sums = self.adds_privacy_noise or self.secure
        if self.align and hides_sums:
            raise UsageError(
                "align sends each client's moments as they are; set secure=false and epsilon=0, or align=0."
            )
        if self.choose != "given" and hides_sums:
            raise UsageError(
                "choose needs what each client says of a ridge; set secure=false and "
                "epsilon=0, or choose=given."
            )
        if self.choose == "clients" and ctx.clients_count < 2:
            raise UsageError(
                "choose=clients needs two clients or more, but there is one; set choose=samples."
            )

    @property
    def adds_privacy_noise(self) -> bool:
        return 0 < self.epsilon < math.inf

    @property
    def leaks(self) -> SentenceOnPrivacy:
        if not self.secure:
            return super().leaks
        text = "the sum over all clients"
        if self.adds_privacy_noise:
            text += f", with noise (ε = {self.epsilon:g})"
        if self.features == "client":
            text += ", and the largest client's network"
        return text

    def square_matrices(self, ctx: Context) -> list[SquareMatricesInMemory]:
        """Every client's moments, as it has them and as the server has received them."""
        client_matrices = SquareMatricesInMemory(
            2 * ctx.clients_count, self.count_features_per_sample(ctx) + 1
        )
        return [*super().square_matrices(ctx), client_matrices]

    def run(self, ctx: Context) -> Steps[HeadModel]:
        # The features of each client and of test samples; the noise that the promise needs.
        client_features, features = yield from self.make_feature_maps(ctx)
        sigma = 0.0
        if self.adds_privacy_noise:
            sigma = find_smallest_noise_sigma(self.epsilon, self.delta, sensitivity=SENSITIVITY)
        # Clients: one pass over the samples; two sums.
        client_sums = []
        for k in range(ctx.clients_count):
            x, y = ctx.private.train(k)
            sums = RidgeSums.measure(
                client_features[k](x), y, ctx.classes, should_scale_rows_to_unit_length=sigma > 0
            )
            client_sums.append(sums.copy_with_added_ridge(self.gamma))
            yield Progress("sums", k + 1, ctx.clients_count)
        # Link: the upper triangle and the class sums go up, masked or as they are.
        if self.secure:
            received = [self._send_and_sum_masked_client_sums(ctx, client_sums, sigma)]
        else:
            received = []
            for k, sums in enumerate(client_sums):
                message = ctx.link.up(k, sums.make_message(ctx.dtype), phase="sums")
                received.append(RidgeSums.from_message(message))
        rho = self.rho
        choice: dict[str, Any] = {}
        if self.choose != "given":
            without_ridge = [sums.copy_with_added_ridge(-self.gamma) for sums in received]
            rho, choice = choose_ridge(ctx, self.choose, client_features, without_ridge)
        # Server: add up, solve, take the local ridges off.
        with ctx.server():
            total = sum(received[1:], received[0])
            if sigma and not self.secure:
                total = total.copy_with_added_noise(sigma, ctx.generator("afl", "noise"))
            weights = solve_classifier_weights(
                total, ctx.clients_count, self.gamma, rho, sigma=sigma
            )
            report = AflReport(
                clients=ctx.clients_count,
                gamma=self.gamma,
                rho=rho,
                sigma=sigma,
                backbone=ctx.largest_client if self.features == "client" else None,
                align=self.align or None,
                **choice,
            )
            if not self.secure:
                report = self._copy_report_with_client_sums_if_small(report, received)
            return AflModel(features, weights, report)

    def _copy_report_with_client_sums_if_small(
        self, report: AflReport, received_sums: Sequence[RidgeSums]
    ) -> AflReport:
        """The report with each client's sums, unless they are too large."""
        triangles = [pack_upper_triangle(sums.moments) for sums in received_sums]
        numbers = len(received_sums) * (triangles[0].numel() + received_sums[0].classes.numel())
        if numbers > MOST_NUMBERS:
            return report
        moments = torch.stack(triangles).cpu().numpy()
        classes = torch.stack([sums.classes for sums in received_sums]).cpu().numpy()
        return replace(report, moments=moments, classes=classes)

    def _send_and_sum_masked_client_sums(
        self, ctx: Context, client_sums: Sequence[RidgeSums], noise_sigma: float
    ) -> RidgeSums:
        """The total of masked sums. With privacy each client adds its part of the noise first."""
        if noise_sigma:
            share = noise_sigma / len(client_sums) ** 0.5
            client_sums = [
                sums.copy_with_added_noise(share, ctx.generator("afl", "noise", k))
                for k, sums in enumerate(client_sums)
            ]
        vectors = []
        for sums in client_sums:
            vectors.append(torch.cat([pack_upper_triangle(sums.moments), sums.classes.flatten()]))
        total: Tensor = send_and_sum_masked_vectors(
            ctx.link, vectors, lambda k: ctx.generator("afl", "secret", k), "masked sums"
        )
        classes = client_sums[0].classes
        triangle, class_sums = total.split([len(total) - classes.numel(), classes.numel()])
        return RidgeSums(unpack_upper_triangle(triangle), class_sums.view_as(classes))
