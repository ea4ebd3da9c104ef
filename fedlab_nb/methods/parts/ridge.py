"""The sums of a least-squares fit, and the choice of its ridge by the federation (Alsulaimawi, *One-Shot Federated
Ridge Regression*, 2026, arXiv 2601.08216, has a federated cross-validation; we know it from its abstract).

With A = Σ_k A_k = XᵀX, C = Σ_k C_k = XᵀY of one-hot labels and W(ρ) = (A + ρI)⁻¹C, two ways to try a ρ on samples that
W has not seen:

- by clients: W_-k(ρ) from the sums of all others has on client k the squared error n_k - 2 tr(W_-kᵀC_k) +
  tr(W_-kᵀA_kW_-k). The server has all of it: nothing more is sent. If one client alone has a class, the fit of the
  others cannot name it, so that under label skew this says little about ρ.
- by samples: leaving one sample out changes its error to (y - xᵀW)/(1 - h), h = xᵀ(A + ρI)⁻¹x. A and C go down, each
  client sends the sum of the squares for every ρ. That is one exchange more, and the choice is that of all samples in
  one place, however they are divided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...comm import from_upper_triangle, upper_triangle
from ..context import Context
from .kronecker import add_identity
from .privacy import draw_gaussian_noise


def append_one(features: Tensor) -> Tensor:
    """Features `[n, d - 1]` with a 1 appended, float64."""
    return F.pad(features.double(), (0, 1), value=1.0)


@dataclass(frozen=True, eq=False)
class Sums:
    """`moments [d, d]` = XᵀX and `classes [d, C]` = XᵀY of rows X with a 1 as last entry.

    The last row of `classes` are the classes' sample counts.
    """

    moments: Tensor
    classes: Tensor

    @classmethod
    def measure(cls, features: Tensor, labels: Tensor, classes: int, *, unit: bool = False) -> Sums:
        """The sums over samples with `features [n, d - 1]` and labels `labels [n]`.

        `unit`: each row is divided by its length.
        """
        rows = append_one(features)
        if unit:
            rows = rows / rows.norm(dim=1, keepdim=True)
        return cls(rows.T @ rows, rows.T @ F.one_hot(labels, classes).to(rows))

    def add_ridge(self, gamma: float) -> Sums:
        """The sums with `gamma` added to the diagonal of the moments."""
        return Sums(add_identity(self.moments, gamma), self.classes)

    def add_noise(self, sigma: float, stream: torch.Generator) -> Sums:
        """The sums with N(0, σ²) on every number that is sent: one triangle of the moments, and the classes' sums."""
        triangle = upper_triangle(self.moments)
        moments = from_upper_triangle(triangle + draw_gaussian_noise(triangle, sigma, stream))
        return Sums(moments, self.classes + draw_gaussian_noise(self.classes, sigma, stream))

    def make_message(self, dtype: torch.dtype) -> dict[str, Tensor]:
        """What is sent: the upper triangle of the moments, and the classes' sums."""
        return {
            "moments": upper_triangle(self.moments).to(dtype),
            "classes": self.classes.to(dtype),
        }

    @classmethod
    def from_message(cls, message: Mapping[str, Tensor]) -> Sums:
        """The sums that `make_message` was made from, in float64."""
        moments = from_upper_triangle(message["moments"].double())
        return cls(moments, message["classes"].double())

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.moments + other.moments, self.classes + other.classes)

    def __sub__(self, other: Sums) -> Sums:
        return Sums(self.moments - other.moments, self.classes - other.classes)


# The ρ that are tried: 1 and 3 times each power of ten from 0.001 to 10,000.
GRID: tuple[float, ...] = ()
for _power in range(-3, 5):
    GRID += (1 * 10.0**_power, 3 * 10.0**_power)
WAYS = ("given", "clients", "samples")


def compute_errors_by_clients(
    moments: Sequence[Tensor], products: Sequence[Tensor], counts: Sequence[float]
) -> Tensor:
    """Squared error a sample, `[G]`, for each ρ of GRID: on every client, by the fit of all others.

    `moments`: A_k `[d, d]`; `products`: C_k `[d, C]`; `counts`: n_k. Float64.
    """
    all_moments = sum(moments[1:], moments[0])
    all_products = sum(products[1:], products[0])
    errors = torch.zeros(len(GRID), dtype=all_moments.dtype, device=all_moments.device)
    for k, count in enumerate(counts):
        # In the eigenvectors of the others' moments, where every ρ is a division.
        values, axes = torch.linalg.eigh(all_moments - moments[k])
        client_moments = axes.T @ moments[k] @ axes
        other_products = axes.T @ (all_products - products[k])
        client_products = axes.T @ products[k]
        for g, rho in enumerate(GRID):
            w = other_products / (values.clamp(min=0) + rho)[:, None]
            errors[g] += count - 2 * (w * client_products).sum() + (w * (client_moments @ w)).sum()
    return errors / sum(counts)


def compute_errors_by_samples(
    moments: Tensor, products: Tensor, rows: Tensor, targets: Tensor
) -> Tensor:
    """Σ of squared errors `[G]` of one client's `rows [n, d]` with one-hot `targets [n, C]`.

    They are among the samples of A `[d, d]` and C `[d, C]`; each is left out of the fit once. Float64.
    """
    # In the eigenvectors of A, where every ρ is a division.
    values, axes = torch.linalg.eigh(moments)
    rows = rows @ axes
    products = axes.T @ products
    errors = []
    for rho in GRID:
        scale = values.clamp(min=0) + rho
        residuals = targets - rows @ (products / scale[:, None])
        leverages = rows.square() @ (1 / scale)
        errors.append((residuals / (1 - leverages)[:, None]).square().sum())
    return torch.stack(errors)


def choose_ridge(
    ctx: Context,
    way: str,
    client_features: Sequence[Callable[[Tensor], Tensor]],
    client_sums: Sequence[Sums],
) -> tuple[float, dict[str, Any]]:
    """The ρ of GRID with the least error, and the fields of a report that describe the choice.

    `way`: one of WAYS except "given". `client_features`: each client's feature map. `client_sums`: the clients' sums
    without ridge, as the server knows them.
    """
    phase = "choice of the ridge"
    with ctx.server():
        total = sum(client_sums[1:], client_sums[0])
        if way == "clients":
            moments = [sums.moments for sums in client_sums]
            products = [sums.classes for sums in client_sums]
            counts = [float(sums.classes[-1].sum()) for sums in client_sums]
            errors = compute_errors_by_clients(moments, products, counts)
    if way == "samples":
        # Link: the sums down. Clients: the error of every ρ, each of their samples left out once; up.
        sums = Sums.from_message(ctx.link.broadcast(total.make_message(ctx.dtype), phase=phase))
        received = []
        for k, features in enumerate(client_features):
            x, y = ctx.private.train(k)
            rows = append_one(features(x))
            targets = F.one_hot(y, ctx.classes).double()
            client_errors = compute_errors_by_samples(sums.moments, sums.classes, rows, targets)
            received.append(ctx.link.up(k, client_errors.to(ctx.dtype), phase=phase))
        with ctx.server():
            errors = torch.stack(received).double().sum(0) / float(total.classes[-1].sum())
    return GRID[int(errors.argmin())], {"grid": list(GRID), "errors": errors.tolist()}
