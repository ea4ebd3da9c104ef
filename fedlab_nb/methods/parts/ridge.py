"""The sums of a least-squares fit, and the choice of its ridge by the federation (Alsulaimawi,
*One-Shot Federated Ridge Regression*, 2026, arXiv 2601.08216, has a federated cross-validation; we
know it from its abstract).

With A = Σ_k A_k = XᵀX, C = Σ_k C_k = XᵀY of one-hot labels and W(ρ) = (A + ρI)⁻¹C, two ways to try
a ρ on samples that W has not seen:

- by clients: W_-k(ρ), from the sums of all other clients, has on client k the squared error n_k - 2 tr(W_-kᵀC_k) +
  tr(W_-kᵀA_kW_-k). The server has all these sums, so nothing more is sent. If only one client has a class, the fit of
  the others cannot predict it, so under label skew this error says little about ρ.
- by samples: leaving one sample out changes its error to (y - xᵀW)/(1 - h), h = xᵀ(A + ρI)⁻¹x. A and C go down, and
  each client sends the sum of the squares for every ρ. This takes one more exchange, and the choice is the same as
  with all samples in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypedDict, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from ...comm import pack_upper_triangle, unpack_upper_triangle
from ...tensor_types import (
    ClassifierWeights,
    Features,
    Labels,
    OneHotLabels,
    SquareMatrix,
)
from ..context import Context
from .kronecker import add_to_diagonal
from .privacy import draw_gaussian_noise

FeatureMap = Callable[[Tensor], Tensor]  # samples [N, ...] -> features [N, D]
ErrorPerRidge = Tensor  # [len(GRID)], a squared error for each ρ that is tried


def append_column_of_ones(features: Features) -> Features:
    """Features `[n, d - 1]` with a 1 appended, float64."""
    return F.pad(features.double(), (0, 1), value=1.0)


class RidgeSumsMessage(TypedDict):
    """The sums as they are sent."""

    moments: Tensor  # the upper triangle, [d (d + 1) / 2]
    classes: Tensor  # [d, C]


@dataclass(frozen=True, eq=False)
class RidgeSums:
    """`moments [d, d]` = XᵀX and `classes [d, C]` = XᵀY of rows X with a 1 as last entry.

    The last row of `classes` are the classes' sample counts.
    """

    moments: Tensor
    classes: Tensor

    @classmethod
    def measure(
        cls,
        features: Features,
        labels: Labels,
        class_count: int,
        *,
        should_scale_rows_to_unit_length: bool = False,
    ) -> RidgeSums:
        """The sums over samples with `features [n, d - 1]` and `labels [n]`.

        should_scale_rows_to_unit_length: whether each row, its 1 included, is divided by its length
        """
        rows = append_column_of_ones(features)
        if should_scale_rows_to_unit_length:
            rows = rows / rows.norm(dim=1, keepdim=True)
        return cls(rows.T @ rows, rows.T @ F.one_hot(labels, class_count).to(rows))

    def copy_with_added_ridge(self, ridge: float) -> RidgeSums:
        """The sums with `ridge` added to the diagonal of the moments."""
        return RidgeSums(add_to_diagonal(self.moments, ridge), self.classes)

    def copy_with_added_noise(self, noise_sigma: float, stream: torch.Generator) -> RidgeSums:
        """The sums with N(0, σ²) on every number that is sent: one triangle of the moments, and the
        classes' sums.
        """
        triangle = pack_upper_triangle(self.moments)
        moments = unpack_upper_triangle(
            triangle + draw_gaussian_noise(triangle, noise_sigma, stream)
        )
        return RidgeSums(
            moments, self.classes + draw_gaussian_noise(self.classes, noise_sigma, stream)
        )

    def make_message(self, dtype: torch.dtype) -> RidgeSumsMessage:
        """The message: the upper triangle of the moments, and the classes' sums."""
        return RidgeSumsMessage(
            moments=pack_upper_triangle(self.moments).to(dtype), classes=self.classes.to(dtype)
        )

    @classmethod
    def from_message(cls, message: RidgeSumsMessage) -> RidgeSums:
        """The sums that `make_message` was made from, in float64."""
        moments = unpack_upper_triangle(message["moments"].double())
        return cls(moments, message["classes"].double())

    def __add__(self, other: RidgeSums) -> RidgeSums:
        return RidgeSums(self.moments + other.moments, self.classes + other.classes)

    def __sub__(self, other: RidgeSums) -> RidgeSums:
        return RidgeSums(self.moments - other.moments, self.classes - other.classes)


# The ρ that are tried: 1 and 3 times each power of ten from 0.001 to 10,000.
GRID: tuple[float, ...] = ()
for _power in range(-3, 5):
    GRID += (1 * 10.0**_power, 3 * 10.0**_power)
RidgeSelection = Literal["given", "clients", "samples"]
WAYS: tuple[RidgeSelection, ...] = get_args(RidgeSelection)


def compute_mean_errors_on_left_out_clients(
    client_moments: Sequence[SquareMatrix],
    client_products: Sequence[ClassifierWeights],
    client_sample_counts: Sequence[float],
) -> ErrorPerRidge:
    """The mean squared error of a sample, `[G]`, for each ρ of GRID: on every client, by the fit of all others.

    client_moments: A_k `[d, d]`, float64
    client_products: C_k `[d, C]`, float64
    client_sample_counts: n_k
    """
    all_moments = sum(client_moments[1:], client_moments[0])
    all_products = sum(client_products[1:], client_products[0])
    errors = torch.zeros(len(GRID), dtype=all_moments.dtype, device=all_moments.device)
    for k, count in enumerate(client_sample_counts):
        # In the eigenvectors of the others' moments, where every ρ is a division.
        values, axes = torch.linalg.eigh(all_moments - client_moments[k])
        moments = axes.T @ client_moments[k] @ axes
        other_products = axes.T @ (all_products - client_products[k])
        products = axes.T @ client_products[k]
        for g, rho in enumerate(GRID):
            w = other_products / (values.clamp(min=0) + rho)[:, None]
            errors[g] += count - 2 * (w * products).sum() + (w * (moments @ w)).sum()
    return errors / sum(client_sample_counts)


def compute_leave_one_out_error_sums(
    moments: SquareMatrix,
    products: ClassifierWeights,
    features: Features,
    one_hot_labels: OneHotLabels,
) -> ErrorPerRidge:
    """The sum of one client's squared errors, `[G]`, for each ρ of GRID; each sample is left out of the fit once.

    moments, products: A `[d, d]` and C `[d, C]`, over samples that include these
    features: `[n, d]`, with the 1
    one_hot_labels: `[n, C]`; all are float64
    """
    # In the eigenvectors of A, where every ρ is a division.
    values, axes = torch.linalg.eigh(moments)
    features = features @ axes
    products = axes.T @ products
    errors = []
    for rho in GRID:
        scale = values.clamp(min=0) + rho
        residuals = one_hot_labels - features @ (products / scale[:, None])
        leverages = features.square() @ (1 / scale)
        errors.append((residuals / (1 - leverages)[:, None]).square().sum())
    return torch.stack(errors)


class RidgeAndReportFields(NamedTuple):
    """ρ, and the fields of a report that describe the choice."""

    ridge: float
    report_fields: dict[str, Any]


def choose_ridge(
    ctx: Context,
    selection: RidgeSelection,
    feature_map_of_each_client: Sequence[FeatureMap],
    client_sums: Sequence[RidgeSums],
) -> RidgeAndReportFields:
    """The ρ of GRID with the least error, and the fields of a report that describe the choice.

    selection: one of WAYS except "given"
    client_sums: the clients' sums without ridge, as the server knows them
    """
    with ctx.server():
        total = sum(client_sums[1:], client_sums[0])
        if selection == "clients":
            moments = [sums.moments for sums in client_sums]
            products = [sums.classes for sums in client_sums]
            counts = [float(sums.classes[-1].sum()) for sums in client_sums]
            errors = compute_mean_errors_on_left_out_clients(moments, products, counts)
    if selection == "samples":
        received = exchange_leave_one_out_error_sums(ctx, feature_map_of_each_client, total)
        with ctx.server():
            errors = torch.stack(received).double().sum(0) / float(total.classes[-1].sum())
    return RidgeAndReportFields(
        GRID[int(errors.argmin())], {"grid": list(GRID), "errors": errors.tolist()}
    )


def exchange_leave_one_out_error_sums(
    ctx: Context, feature_map_of_each_client: Sequence[FeatureMap], total_sums: RidgeSums
) -> list[ErrorPerRidge]:
    """Link: the `total_sums` down, each client's errors `[G]` up; returns what the server receives.

    A client's error of a ρ is summed over its samples, each of them left out once.
    """
    phase = "choice of the ridge"
    sums = RidgeSums.from_message(
        ctx.link.broadcast(total_sums.make_message(ctx.dtype), phase=phase)
    )
    received = []
    for k, features in enumerate(feature_map_of_each_client):
        x, y = ctx.private.train(k)
        rows = append_column_of_ones(features(x))
        targets = F.one_hot(y, ctx.classes).double()
        client_errors = compute_leave_one_out_error_sums(sums.moments, sums.classes, rows, targets)
        received.append(ctx.link.up(k, client_errors.to(ctx.dtype), phase=phase))
    return received
