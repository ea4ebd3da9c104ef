"""SLOT-Align: every client's features get the same mean and covariance before they are summed or fitted. It is made for
clients that see the same classes differently (Berardini et al., ICML 2026, arXiv 2606.16655); the guide to the methods
has what it gains where they write in other fonts.

Clients: mean m_k and covariance S_k of the frozen features x. Link: both up, the covariance as a triangle.
Server: the Bures-Wasserstein barycentre of the Gaussians N(m_k, S_k), with w_k = n_k/N: m* = Σ w_k m_k, and the S*
with S* = Σ_k w_k (S*^½ S_k S*^½)^½, by the iteration S ← S^-½ (Σ_k w_k (S^½ S_k S^½)^½)² S^-½ (Álvarez-Esteban et al.,
2016). Link: m* and S* down. That is one exchange before the method's own upload: two communications, no longer one.
Clients: x ↦ (1 - τ) x + τ (m* + A_k (x - m_k)), with the optimal transport of one Gaussian to the other,
A_k = S_k^-½ (S_k^½ S* S_k^½)^½ S_k^-½. With τ = 1 the features of every client have mean m* and covariance S*.

Ours: a test sample has no client, so the server moves it from the pooled moments, m* and Σ_k w_k (S_k + (m_k - m*)
(m_k - m*)ᵀ), to the same end. No variance along an axis of S_k is below FLOOR times the mean of its variances: a client
with fewer samples than features has a covariance that cannot be inverted.

It does not know of classes. Under label skew clients differ because their classes do, and that goes, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ...comm import from_upper_triangle, upper_triangle

FLOOR = 1e-4
TOLERANCE, MOST = 1e-10, 200  # of the barycentre's iteration: relative change, and steps


@dataclass(frozen=True, eq=False)
class Moments:
    """`mean [d]` and `covariance [d, d]`, float64."""

    mean: Tensor
    covariance: Tensor

    @classmethod
    def of(cls, rows: Tensor) -> Moments:
        """Of `rows [n, d]`; the covariance is divided by n."""
        wide = rows.double()
        away = wide - wide.mean(0)
        return cls(wide.mean(0), away.T @ away / len(rows))

    def message(self, dtype: torch.dtype) -> dict[str, Tensor]:
        return {
            "mean": self.mean.to(dtype),
            "covariance": upper_triangle(self.covariance).to(dtype),
        }

    @classmethod
    def received(cls, sent: dict[str, Tensor]) -> Moments:
        return cls(sent["mean"].double(), from_upper_triangle(sent["covariance"].double()))

    def invertible(self) -> Moments:
        """With FLOOR as the least variance along each axis; the same moments if none is below it."""
        values, axes = torch.linalg.eigh(self.covariance)
        least = FLOOR * values.mean().clamp(min=FLOOR)
        if values[0] >= least:
            return self
        return Moments(self.mean, axes * values.clamp(min=least) @ axes.T)


def power(matrices: Tensor, exponent: float) -> Tensor:
    """Powers of symmetric positive (semi)definite matrices `[..., d, d]`."""
    values, axes = torch.linalg.eigh(matrices)
    return axes * values.clamp(min=0).pow(exponent)[..., None, :] @ axes.mT


def barycentre(covariances: Tensor, weights: Tensor) -> Tensor:
    """S* `[d, d]` of covariances `[M, d, d]`, weights `[M]` that sum to 1."""
    middle = torch.tensordot(weights, covariances, 1)
    for _ in range(MOST):
        half, back = power(middle, 0.5), power(middle, -0.5)
        root = back @ torch.tensordot(weights, power(half @ covariances @ half, 0.5), 1)
        before, middle = middle, root @ root.T
        if (middle - before).norm() <= TOLERANCE * middle.norm():
            break
    return middle


def transport(source: Tensor, target: Tensor) -> Tensor:
    """A `[d, d]`, symmetric, with A source A = target, of covariances `[d, d]`."""
    half, back = power(source, 0.5), power(source, -0.5)
    return back @ power(half @ target @ half, 0.5) @ back


def move(source: Moments, target: Moments, tau: float) -> tuple[Tensor, Tensor]:
    """Matrix `[d, d]` and shift `[d]` that bring rows a share `tau` of the way from moments `source` to `target`."""
    whole = transport(source.invertible().covariance, target.covariance)
    matrix = (1 - tau) * torch.eye(len(whole)).to(whole) + tau * whole
    return matrix, tau * (target.mean - source.mean @ whole)


def pooled(each: Sequence[Moments], weights: Tensor) -> Moments:
    """The moments of all samples in one place, of clients with shares `weights [M]`."""
    means = torch.stack([own.mean for own in each])
    mean = weights @ means
    away = means - mean
    within = torch.tensordot(weights, torch.stack([own.covariance for own in each]), 1)
    return Moments(mean, within + away.T * weights @ away)
