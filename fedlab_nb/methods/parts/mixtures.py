"""Gaussian mixtures of feature rows: fitted by EM (Dempster, Laird, Rubin 1977), drawn from, and sent.

`COVARIANCES` says what is known of a component's spread, from little to much:
- "none": nothing; a draw is the component's mean itself;
- "spherical": one variance for all features, `[K]`;
- "diagonal": one for each feature, `[K, d]`;
- "full": a matrix, `[K, d, d]`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ...comm import from_upper_triangle, upper_triangle

COVARIANCES = ("none", "spherical", "diagonal", "full")
STEPS = 20  # of EM
FLOOR = 1e-6  # added to every variance, so that a component of one sample has one


@dataclass(frozen=True, eq=False)
class Mixture:
    """K components: `weights [K]` that sum to 1, `means [K, d]`, `spread` as `kind` says (see COVARIANCES)."""

    kind: str
    weights: Tensor
    means: Tensor
    spread: Tensor

    def log_densities(self, rows: Tensor) -> Tensor:
        """log of weight times density of every component at `rows [n, d]`, `[n, K]`; not for kind "none"."""
        d = rows.shape[1]
        away = rows[:, None] - self.means
        if self.kind == "full":
            lower = torch.linalg.cholesky(self.spread)
            scaled = torch.linalg.solve_triangular(lower, away.permute(1, 2, 0), upper=False)
            square, volume = scaled.square().sum(1).T, 2 * lower.diagonal(dim1=1, dim2=2).log().sum(1)
        else:
            variances = self.spread[:, None].expand(-1, d) if self.kind == "spherical" else self.spread
            square, volume = (away.square() / variances).sum(2), variances.log().sum(1)
        return self.weights.log() - (square + volume + d * math.log(2 * math.pi)) / 2

    def deviations(self) -> Tensor:
        """Standard deviations `[K, d]` of each feature; zeros for kind "none"."""
        if self.kind == "none":
            return torch.zeros_like(self.means)
        spread = self.spread.diagonal(dim1=1, dim2=2) if self.kind == "full" else self.spread
        return spread.sqrt().reshape(len(self.means), -1).expand_as(self.means)

    def draw(self, count: int, stream: torch.Generator) -> Tensor:
        """`count` samples `[count, d]`; `stream` (a CPU generator) picks components and draws the noise."""
        chosen = torch.multinomial(self.weights.cpu(), count, replacement=True, generator=stream)
        rows = chosen.to(self.means.device)
        noise = torch.randn(count, self.means.shape[1], generator=stream, dtype=torch.float64).to(self.means)
        if self.kind == "none":
            return self.means[rows]
        if self.kind == "full":
            values, axes = torch.linalg.eigh(self.spread)
            roots = axes * values.clamp(min=0).sqrt()[:, None]  # [K, d, d]: each times its transpose is Σ
            return self.means[rows] + torch.einsum("nij,nj->ni", roots[rows], noise)
        roots = self.spread.sqrt()[rows]
        return self.means[rows] + noise * (roots[:, None] if self.kind == "spherical" else roots)

    def message(self, dtype: torch.dtype) -> dict[str, Tensor]:
        """What is sent: weights, means and spread (of matrices the upper triangles; nothing for kind "none")."""
        sent = {"weights": self.weights, "means": self.means}
        if self.kind != "none":
            sent["spread"] = upper_triangle(self.spread) if self.kind == "full" else self.spread
        return {name: part.to(dtype) for name, part in sent.items()}

    @classmethod
    def received(cls, sent: Mapping[str, Tensor], kind: str) -> Mixture:
        """The mixture that `message` was made of, in float64."""
        wide = {name: part.double() for name, part in sent.items()}
        spread = wide.get("spread", wide["means"].new_zeros(0))
        spread = from_upper_triangle(spread) if kind == "full" else spread
        return cls(kind, wide["weights"] / wide["weights"].sum(), wide["means"], spread)


def fitted(rows: Tensor, components: int, kind: str, stream: torch.Generator, steps: int = STEPS) -> Mixture:
    """A mixture of at most `components` Gaussians for `rows [n, d]` (float64), by `steps` of EM.

    EM starts with as many of the rows as means, drawn without replacement, every row belonging to the nearest. There
    are never more components than rows. Kind "none" is fitted as "spherical", whose means and weights it keeps.
    """
    k = min(components, len(rows))
    shape = "spherical" if kind == "none" else kind
    start = rows[torch.randperm(len(rows), generator=stream)[:k].to(rows.device)]
    nearest = torch.cdist(rows, start).argmin(1)
    mixture = maximised(rows, torch.nn.functional.one_hot(nearest, k).to(rows), shape)
    for _ in range(steps if k > 1 else 0):
        mixture = maximised(rows, mixture.log_densities(rows).softmax(1), shape)
    return mixture if kind == shape else Mixture(kind, mixture.weights, mixture.means, rows.new_zeros(0))


def maximised(rows: Tensor, belongs: Tensor, kind: str) -> Mixture:
    """EM's M-step: the most likely mixture for `rows [n, d]` of which `belongs [n, K]` says whose they are.

    FLOOR is added to every variance.
    """
    mass = belongs.sum(0).clamp(min=torch.finfo(rows.dtype).tiny)
    means = belongs.T @ rows / mass[:, None]
    away = rows[:, None] - means  # [n, K, d]
    if kind == "full":
        spread = torch.einsum("nk,nki,nkj->kij", belongs, away, away) / mass[:, None, None]
        spread = spread + FLOOR * torch.eye(rows.shape[1], dtype=rows.dtype, device=rows.device)
    else:
        spread = torch.einsum("nk,nkd->kd", belongs, away.square()) / mass[:, None] + FLOOR
        spread = spread.mean(1) if kind == "spherical" else spread
    return Mixture(kind, mass / mass.sum(), means, spread)
