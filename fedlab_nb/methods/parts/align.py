"""SLOT-Align: every client's features get the same mean and covariance before they are summed or
fitted.

It is for clients whose samples of the same class look different (Berardini et al., ICML 2026, arXiv
2606.16655). The guide to the methods has its gain on clients that write in different fonts.

Clients: mean m_k and covariance S_k of the frozen features x. Link: both up, the covariance as a triangle.
Server: the Bures-Wasserstein barycentre of the Gaussians N(m_k, S_k), with w_k = n_k/N: m* = Σ w_k m_k, and the S*
with S* = Σ_k w_k (S*^½ S_k S*^½)^½, by the iteration S ← S^-½ (Σ_k w_k (S^½ S_k S^½)^½)² S^-½ (Álvarez-Esteban et al.,
2016). Link: m* and S* down. That is one exchange before the method's own upload: two communications, no longer one.
Clients: x ↦ (1 - τ) x + τ (m* + A_k (x - m_k)), with the optimal transport of one Gaussian to the other,
A_k = S_k^-½ (S_k^½ S* S_k^½)^½ S_k^-½. With τ = 1 the features of every client have mean m* and covariance S*.

Ours: a test sample has no client, so the server moves it from the pooled moments, m* and Σ_k w_k (S_k + (m_k - m*)
(m_k - m*)ᵀ), to m* and S*. Each variance along an axis of S_k is at least FLOOR times their mean, since a client
with fewer samples than features has a covariance that cannot be inverted. The authors' code uses Ledoit and Wolf's
estimate of S_k instead (align_covariance=ledoit-wolf), and moves test samples by the map of their own domain, for
which it must know the domain.

The method does not use classes. Under label skew clients also differ because they have different
classes, and this difference is removed, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypedDict, get_args

import torch
from torch import Tensor

from ...comm import pack_upper_triangle, unpack_upper_triangle
from ...tensor_types import (
    ClientCovariances,
    ClientShares,
    Covariance,
    Features,
    SquareMatrix,
)

SymmetricMatrices = Tensor  # [..., d, d]

FLOOR = 1e-4
FloorOrLedoitWolf = Literal["floor", "ledoit-wolf"]
COVARIANCES: tuple[FloorOrLedoitWolf, ...] = get_args(FloorOrLedoitWolf)
TOLERANCE = 1e-10  # relative change at which the barycentre's iteration stops
MOST_STEPS = 200


class FeatureMomentsMessage(TypedDict):
    """A mean and a covariance as they are sent."""

    mean: Tensor  # [d]
    covariance: Tensor  # the upper triangle, [d (d + 1) / 2]


@dataclass(frozen=True, eq=False)
class FeatureMoments:
    """`mean [d]` and `covariance [d, d]`, float64."""

    mean: Tensor
    covariance: Tensor

    @classmethod
    def measure(cls, features: Features) -> FeatureMoments:
        """The moments of `features [n, d]`; the covariance is divided by n."""
        features = features.double()
        mean = features.mean(0)
        centred = features - mean
        return cls(mean, centred.T @ centred / len(features))

    @classmethod
    def measure_with_shrunk_covariance(cls, features: Features) -> FeatureMoments:
        """The moments of `features [n, d]`, their covariance S moved towards the identity (Ledoit & Wolf 2004).

        (1 - s) S + s μ I with μ = tr(S) / d and s = min(1, b² / e²), where e² = ‖S - μ I‖² and b² =
        Σ_i ‖x_i x_iᵀ - S‖² / n² of the centred rows x_i: how far S would move with other samples,
        as a share of how far it is from μ I.
        """
        moments = cls.measure(features)
        covariance = moments.covariance
        identity = torch.eye(len(covariance)).to(covariance)
        scale = covariance.trace() / len(covariance)
        distance = (covariance - scale * identity).square().sum()
        if distance == 0:
            return moments
        fourth_moment = (features.double() - moments.mean).square().sum(1).square().mean()
        error = (fourth_moment - covariance.square().sum()) / len(features)
        share = (error / distance).clamp(0, 1)
        return cls(moments.mean, (1 - share) * covariance + share * scale * identity)

    def make_message(self, dtype: torch.dtype) -> FeatureMomentsMessage:
        triangle = pack_upper_triangle(self.covariance).to(dtype)
        return FeatureMomentsMessage(mean=self.mean.to(dtype), covariance=triangle)

    @classmethod
    def from_message(cls, message: FeatureMomentsMessage) -> FeatureMoments:
        covariance = unpack_upper_triangle(message["covariance"].double())
        return cls(message["mean"].double(), covariance)

    def copy_with_variance_floor(self) -> FeatureMoments:
        """These moments with each variance along an axis of the covariance at least FLOOR times their mean."""
        values, axes = torch.linalg.eigh(self.covariance)
        least = FLOOR * values.mean().clamp(min=FLOOR)
        if values[0] >= least:
            return self
        return FeatureMoments(self.mean, axes * values.clamp(min=least) @ axes.T)


def compute_symmetric_matrix_powers(
    matrices: SymmetricMatrices, exponent: float
) -> SymmetricMatrices:
    """Powers of symmetric positive (semi)definite matrices `[..., d, d]`."""
    values, axes = torch.linalg.eigh(matrices)
    return axes * values.clamp(min=0).pow(exponent)[..., None, :] @ axes.mT


def compute_covariance_barycentre(
    client_covariances: ClientCovariances, client_shares: ClientShares
) -> Covariance:
    """S* `[d, d]` of covariances `[M, d, d]`, weights `[M]` that sum to 1."""
    s = torch.tensordot(client_shares, client_covariances, 1)
    for _ in range(MOST_STEPS):
        root = compute_symmetric_matrix_powers(s, 0.5)
        inverse_root = compute_symmetric_matrix_powers(s, -0.5)
        mean_root = torch.tensordot(
            client_shares, compute_symmetric_matrix_powers(root @ client_covariances @ root, 0.5), 1
        )
        factor = inverse_root @ mean_root
        new_s = factor @ factor.T
        change = (new_s - s).norm()
        s = new_s
        if change <= TOLERANCE * s.norm():
            break
    return s


def compute_transport_map(
    source_covariance: Covariance, target_covariance: Covariance
) -> SquareMatrix:
    """A `[d, d]`, symmetric, with A S A = T, for the source's covariance S and the target's T, both `[d, d]`."""
    root = compute_symmetric_matrix_powers(source_covariance, 0.5)
    inverse_root = compute_symmetric_matrix_powers(source_covariance, -0.5)
    return (
        inverse_root
        @ compute_symmetric_matrix_powers(root @ target_covariance @ root, 0.5)
        @ inverse_root
    )


class AffineMap(NamedTuple):
    """Rows `[n, d]` are multiplied by the matrix `[d, d]`, then the shift `[d]` is added."""

    matrix: Tensor
    shift: Tensor


def compute_alignment_map(
    source_moments: FeatureMoments, target_moments: FeatureMoments, share_of_way_0_to_1: float
) -> AffineMap:
    """The map x @ matrix + shift, which moves rows a share of the way from the source's moments to the target's."""
    a = compute_transport_map(
        source_moments.copy_with_variance_floor().covariance, target_moments.covariance
    )
    matrix = (1 - share_of_way_0_to_1) * torch.eye(len(a)).to(a) + share_of_way_0_to_1 * a
    return AffineMap(matrix, share_of_way_0_to_1 * (target_moments.mean - source_moments.mean @ a))


def pool_moments(
    client_moments: Sequence[FeatureMoments], client_shares: ClientShares
) -> FeatureMoments:
    """The moments of all clients' samples together; `client_shares [M]`: each client's share of them."""
    means = torch.stack([moments.mean for moments in client_moments])
    covariances = torch.stack([moments.covariance for moments in client_moments])
    mean = client_shares @ means
    differences = means - mean
    within = torch.tensordot(client_shares, covariances, 1)
    return FeatureMoments(mean, within + differences.T * client_shares @ differences)
