"""The two sums of a least-squares fit, and the fit: all float64. Nothing here knows of clients' data or of a link."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ...comm import from_upper_triangle, upper_triangle
from ..parts.posterior import inverse
from ..parts.privacy import gaussian

# How far one sample moves both sums together if its row has length 1: x xᵀ has length 1, and x yᵀ, too.
SENSITIVITY = 2**0.5


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
        rows = F.pad(features.double(), (0, 1), value=1.0)
        if unit:
            rows = rows / rows.norm(dim=1, keepdim=True)
        return cls(rows.T @ rows, rows.T @ F.one_hot(y, classes).to(rows))

    def ridged(self, gamma: float) -> Sums:
        """With `gamma` added to the diagonal of the moments."""
        return Sums(self.moments + gamma * eye(self.moments), self.classes)

    def noisy(self, sigma: float, stream: torch.Generator) -> Sums:
        """With N(0, σ²) on every number that is sent: one triangle of the moments, and the classes' sums."""
        triangle = upper_triangle(self.moments)
        moments = from_upper_triangle(triangle + gaussian(triangle, sigma, stream))
        return Sums(moments, self.classes + gaussian(self.classes, sigma, stream))

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.moments + other.moments, self.classes + other.classes)

    def __sub__(self, other: Sums) -> Sums:
        return Sums(self.moments - other.moments, self.classes - other.classes)


def head(total: Sums, clients: int, gamma: float, rho: float, *, clean: bool = True, sigma: float = 0.0) -> Tensor:
    """The weights `[d, C]` from the sum over `clients`, each with its ridge γ: W* = (A − MγI + ρI)⁻¹ Σ C_k.

    Not `clean`: A⁻¹ Σ C_k. `sigma`: of the noise that the sums have; what it makes negative is cut off, and the ridge
    grows by σ√d, about the largest eigenvalue that such noise has. Directions that no sample has get 0 where ρ = 0.
    """
    moments = total.moments - clients * gamma * eye(total.moments)
    ridge = rho if clean else clients * gamma
    if sigma:
        values, vectors = torch.linalg.eigh(moments)
        moments = vectors * values.clamp_min(0) @ vectors.T
        ridge += sigma * len(moments) ** 0.5
    return inverse(moments + ridge * eye(moments))(total.classes)


def scores(features: Tensor, weights: Tensor) -> Tensor:
    """`(φ, 1)ᵀ W` `[N, C]` of `features [N, d - 1]`, in their dtype."""
    weights = weights.to(features)
    return features @ weights[:-1] + weights[-1]


def eye(like: Tensor) -> Tensor:
    """The unit matrix of the size, dtype and place of `like [d, d]`."""
    return torch.eye(len(like), dtype=like.dtype, device=like.device)
