"""The sums of a least-squares fit, and its ridge, chosen by the federation itself (Alsulaimawi, *One-Shot Federated
Ridge Regression*, 2026, arXiv 2601.08216, has a federated cross-validation; we know it from its abstract).

With A = Σ_k A_k = XᵀX, C = Σ_k C_k = XᵀY of one-hot labels and W(ρ) = (A + ρI)⁻¹C, two ways to try a ρ on samples that
W has not seen:

- by clients: W_-k(ρ) from the sums of all others has on client k the squared error n_k - 2 tr(W_-kᵀC_k) +
  tr(W_-kᵀA_kW_-k). The server has all of it: nothing more is sent. If a client alone holds a class, nobody else can
  name it, so that under label skew this says little of ρ.
- by samples: leaving one sample out changes its error to (y - xᵀW)/(1 - h), h = xᵀ(A + ρI)⁻¹x. A and C go down, each
  client sends the sum of the squares for every ρ. That is one exchange more, and the choice is that of all samples in
  one place, whoever holds which.
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
from .privacy import gaussian


def with_one(features: Tensor) -> Tensor:
    """Features `[n, d - 1]` with a 1 appended, float64."""
    return F.pad(features.double(), (0, 1), value=1.0)


@dataclass(frozen=True, eq=False)
class Sums:
    """`moments [d, d]` = XᵀX and `classes [d, C]` = XᵀY of rows X with a 1 as last entry; the last row of `classes` are
    the classes' sample counts."""

    moments: Tensor
    classes: Tensor

    @classmethod
    def of(cls, features: Tensor, y: Tensor, classes: int, *, unit: bool = False) -> Sums:
        """The sums over samples with `features [n, d - 1]` and labels `y [n]`; `unit`: each row divided by its
        length."""
        rows = with_one(features)
        if unit:
            rows = rows / rows.norm(dim=1, keepdim=True)
        return cls(rows.T @ rows, rows.T @ F.one_hot(y, classes).to(rows))

    def ridged(self, gamma: float) -> Sums:
        """With `gamma` added to the diagonal of the moments."""
        return Sums(add_identity(self.moments, gamma), self.classes)

    def noisy(self, sigma: float, stream: torch.Generator) -> Sums:
        """With N(0, σ²) on every number that is sent: one triangle of the moments, and the classes' sums."""
        triangle = upper_triangle(self.moments)
        moments = from_upper_triangle(triangle + gaussian(triangle, sigma, stream))
        return Sums(moments, self.classes + gaussian(self.classes, sigma, stream))

    def message(self, dtype: torch.dtype) -> dict[str, Tensor]:
        """What is sent: the upper triangle of the moments, and the classes' sums."""
        return {
            "moments": upper_triangle(self.moments).to(dtype),
            "classes": self.classes.to(dtype),
        }

    @classmethod
    def received(cls, sent: Mapping[str, Tensor]) -> Sums:
        """The sums that `message` was made of, in float64."""
        return cls(from_upper_triangle(sent["moments"].double()), sent["classes"].double())

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.moments + other.moments, self.classes + other.classes)

    def __sub__(self, other: Sums) -> Sums:
        return Sums(self.moments - other.moments, self.classes - other.classes)


GRID = tuple(step * 10.0**power for power in range(-3, 5) for step in (1, 3))
WAYS = ("given", "clients", "samples")


def errors_by_clients(
    moments: Sequence[Tensor], products: Sequence[Tensor], counts: Sequence[float]
) -> Tensor:
    """Squared error a sample, `[G]`, for each ρ of GRID: every client judged by the fit of all others.

    moments: A_k `[d, d]`;   products: C_k `[d, C]`;   counts: n_k. Float64.
    """
    whole, classes = sum(moments[1:], moments[0]), sum(products[1:], products[0])
    total = torch.zeros(len(GRID), dtype=whole.dtype, device=whole.device)
    for own, mine, count in zip(moments, products, counts, strict=True):
        values, axes = torch.linalg.eigh(whole - own)
        turned, others, ours = axes.T @ own @ axes, axes.T @ (classes - mine), axes.T @ mine
        for g, rho in enumerate(GRID):
            fit = others / (values.clamp(min=0) + rho)[:, None]
            total[g] += count - 2 * (fit * ours).sum() + (fit * (turned @ fit)).sum()
    return total / sum(counts)


def errors_by_samples(moments: Tensor, products: Tensor, rows: Tensor, targets: Tensor) -> Tensor:
    """Σ of squared errors `[G]` of one client's `rows [n, d]` and one-hot `targets [n, C]`, each left out once of the
    fit of A `[d, d]` and C `[d, C]`, in which they are. Float64."""
    values, axes = torch.linalg.eigh(moments)
    turned, classes = rows @ axes, axes.T @ products
    sums = []
    for rho in GRID:
        scale = values.clamp(min=0) + rho
        missed = targets - turned @ (classes / scale[:, None])
        sums.append((missed / (1 - turned.square() @ (1 / scale))[:, None]).square().sum())
    return torch.stack(sums)


def chosen_ridge(
    ctx: Context, way: str, own_features: Sequence[Callable[[Tensor], Tensor]], each: Sequence[Sums]
) -> tuple[float, dict[str, Any]]:
    """The ρ of GRID with the least error, and what a report says of it; `way`: of WAYS, but "given". own_features: each
    client's feature map;   each: the clients' sums without ridge, as the server knows them."""
    with ctx.server():
        total = sum(each[1:], each[0])
        if way == "clients":
            moments, classes = [sums.moments for sums in each], [sums.classes for sums in each]
            errors = errors_by_clients(
                moments, classes, [float(sums.classes[-1].sum()) for sums in each]
            )
    if way == "samples":
        # Link: the sums down. Clients: the error of every ρ, each of their samples left out once; up.
        known = Sums.received(
            ctx.link.broadcast(total.message(ctx.dtype), phase="choice of the ridge")
        )
        sent = []
        for k, features in enumerate(own_features):
            x, y = ctx.private.train(k)
            targets = F.one_hot(y, ctx.classes).double()
            error = errors_by_samples(
                known.moments, known.classes, with_one(features(x)), targets
            ).to(ctx.dtype)
            sent.append(ctx.link.up(k, error, phase="choice of the ridge"))
        with ctx.server():
            errors = torch.stack(sent).double().sum(0) / float(total.classes[-1].sum())
    return GRID[int(errors.argmin())], {"grid": list(GRID), "errors": errors.tolist()}
