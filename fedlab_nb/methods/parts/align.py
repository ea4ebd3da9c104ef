"""SLOT-Align: every client's features get the same mean and covariance before they are summed or fitted.

It is for clients that see the same classes differently (Berardini et al., ICML 2026, arXiv 2606.16655); the guide to
the methods has what it gains where the clients write in different fonts.

Clients: mean m_k and covariance S_k of the frozen features x. Link: both up, the covariance as a triangle.
Server: the Bures-Wasserstein barycentre of the Gaussians N(m_k, S_k), with w_k = n_k/N: m* = Σ w_k m_k, and the S*
with S* = Σ_k w_k (S*^½ S_k S*^½)^½, by the iteration S ← S^-½ (Σ_k w_k (S^½ S_k S^½)^½)² S^-½ (Álvarez-Esteban et al.,
2016). Link: m* and S* down. That is one exchange before the method's own upload: two communications, no longer one.
Clients: x ↦ (1 - τ) x + τ (m* + A_k (x - m_k)), with the optimal transport of one Gaussian to the other,
A_k = S_k^-½ (S_k^½ S* S_k^½)^½ S_k^-½. With τ = 1 the features of every client have mean m* and covariance S*.

Ours: a test sample has no client, so the server moves it from the pooled moments, m* and Σ_k w_k (S_k + (m_k - m*)
(m_k - m*)ᵀ), to the same end. No variance along an axis of S_k is below FLOOR times the mean of its variances: a client
with fewer samples than features has a covariance that cannot be inverted. The authors' code takes Ledoit and Wolf's
estimate of S_k instead (align_covariance=ledoit-wolf), and moves test samples by the map of their own domain, which
needs to know whose they are.

It does not use classes. Under label skew clients differ because their classes do, and that difference is removed, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ...comm import from_upper_triangle, upper_triangle

FLOOR = 1e-4
COVARIANCES = ("floor", "ledoit-wolf")
TOLERANCE = 1e-10  # relative change at which the barycentre's iteration stops
MOST_STEPS = 200


@dataclass(frozen=True, eq=False)
class Moments:
    """`mean [d]` and `covariance [d, d]`, float64."""

    mean: Tensor
    covariance: Tensor

    @classmethod
    def measure(cls, rows: Tensor) -> Moments:
        """The moments of `rows [n, d]`; the covariance is divided by n."""
        rows = rows.double()
        mean = rows.mean(0)
        centred = rows - mean
        return cls(mean, centred.T @ centred / len(rows))

    @classmethod
    def measure_shrunk(cls, rows: Tensor) -> Moments:
        """The moments of `rows [n, d]`, their covariance S moved towards the identity (Ledoit & Wolf 2004).

        (1 - s) S + s μ I with μ = tr(S) / d and s = min(1, b² / e²), where e² = ‖S - μ I‖² and
        b² = Σ_i ‖x_i x_iᵀ - S‖² / n² of the centred rows x_i: how far S would move with other samples,
        as a share of how far it is from μ I.
        """
        moments = cls.measure(rows)
        covariance = moments.covariance
        identity = torch.eye(len(covariance)).to(covariance)
        scale = covariance.trace() / len(covariance)
        distance = (covariance - scale * identity).square().sum()
        if distance == 0:
            return moments
        fourth_moment = (rows.double() - moments.mean).square().sum(1).square().mean()
        error = (fourth_moment - covariance.square().sum()) / len(rows)
        share = (error / distance).clamp(0, 1)
        return cls(moments.mean, (1 - share) * covariance + share * scale * identity)

    def make_message(self, dtype: torch.dtype) -> dict[str, Tensor]:
        triangle = upper_triangle(self.covariance).to(dtype)
        return {"mean": self.mean.to(dtype), "covariance": triangle}

    @classmethod
    def from_message(cls, message: dict[str, Tensor]) -> Moments:
        covariance = from_upper_triangle(message["covariance"].double())
        return cls(message["mean"].double(), covariance)

    def make_invertible(self) -> Moments:
        """These moments with FLOOR as the least variance along each axis; unchanged if none is below it."""
        values, axes = torch.linalg.eigh(self.covariance)
        least = FLOOR * values.mean().clamp(min=FLOOR)
        if values[0] >= least:
            return self
        return Moments(self.mean, axes * values.clamp(min=least) @ axes.T)


def raise_to_power(matrices: Tensor, exponent: float) -> Tensor:
    """Powers of symmetric positive (semi)definite matrices `[..., d, d]`."""
    values, axes = torch.linalg.eigh(matrices)
    return axes * values.clamp(min=0).pow(exponent)[..., None, :] @ axes.mT


def compute_barycentre(covariances: Tensor, weights: Tensor) -> Tensor:
    """S* `[d, d]` of covariances `[M, d, d]`, weights `[M]` that sum to 1."""
    s = torch.tensordot(weights, covariances, 1)
    for _ in range(MOST_STEPS):
        root = raise_to_power(s, 0.5)
        inverse_root = raise_to_power(s, -0.5)
        mean_root = torch.tensordot(weights, raise_to_power(root @ covariances @ root, 0.5), 1)
        factor = inverse_root @ mean_root
        new_s = factor @ factor.T
        change = (new_s - s).norm()
        s = new_s
        if change <= TOLERANCE * s.norm():
            break
    return s


def compute_transport(source_covariance: Tensor, target_covariance: Tensor) -> Tensor:
    """A `[d, d]`, symmetric, with A source_covariance A = target_covariance, of covariances `[d, d]`."""
    root = raise_to_power(source_covariance, 0.5)
    inverse_root = raise_to_power(source_covariance, -0.5)
    return inverse_root @ raise_to_power(root @ target_covariance @ root, 0.5) @ inverse_root


def compute_alignment(source: Moments, target: Moments, tau: float) -> tuple[Tensor, Tensor]:
    """Matrix `[d, d]` and shift `[d]` that move rows a share `tau` of the way from moments `source` to `target`."""
    a = compute_transport(source.make_invertible().covariance, target.covariance)
    matrix = (1 - tau) * torch.eye(len(a)).to(a) + tau * a
    return matrix, tau * (target.mean - source.mean @ a)


def pool_moments(client_moments: Sequence[Moments], weights: Tensor) -> Moments:
    """The moments of all samples together, of clients with shares `weights [M]`."""
    means = torch.stack([moments.mean for moments in client_moments])
    covariances = torch.stack([moments.covariance for moments in client_moments])
    mean = weights @ means
    differences = means - mean
    within = torch.tensordot(weights, covariances, 1)
    return Moments(mean, within + differences.T * weights @ differences)
