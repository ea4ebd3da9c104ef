"""Classifiers by Bayes' rule with Gaussian classes, from counts, sums and second moments (`class_statistics`).

With class c's mean μ_c, share π_c and covariance, a sample f belongs to the class with the highest log π_c plus log
density. HEADS, from the coarsest picture of a class to the finest:
- "means": the nearest mean, fᵀμ_c - ½ μ_cᵀμ_c, whatever the shares;
- "nb": naive Bayes, each feature for itself: log π_c - ½ Σ_j [(f_j - μ_cj)²/v_cj + log v_cj];
- "lda": one covariance Σ_W for all classes: fᵀΣ⁻¹μ_c - ½ μ_cᵀΣ⁻¹μ_c + log π_c;
- "fedcgs": the same with the total covariance Σ_T instead of Σ_W;
- "qda": a covariance for every class: log π_c - ½ (f - μ_c)ᵀΣ_c⁻¹(f - μ_c) - ½ log|Σ_c|.

Every covariance Σ is shrunk first: (1 - s) Σ + s (tr Σ / d) I, naive Bayes' variances towards their mean. No variance
in any direction is below FLOOR times the mean variance of all features, so that no class has a volume of zero.
A class without any sample has the score -inf.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .class_statistics import ClassSums

# Head -> the second moments that it needs (see `class_statistics.MOMENTS`).
HEADS = {"means": "none", "nb": "diagonal", "lda": "pooled", "fedcgs": "pooled", "qda": "full"}
FLOOR = 1e-6


@dataclass(frozen=True, eq=False)
class Scores:
    """Discriminants of C classes. Linear heads have `slopes [d, C]`. The others have `means [C, d]` and `whitening`,
    which brings a class to unit spread: `[C, d]` factors (naive Bayes) or `[C, d, d]` matrices. `constants [C]`: what
    does not depend on the sample.
    """

    constants: Tensor
    slopes: Tensor | None = None
    means: Tensor | None = None
    whitening: Tensor | None = None

    def __call__(self, features: Tensor) -> Tensor:
        """Scores `[n, C]` of `features [n, d]`, in float64."""
        wide = features.double()
        if self.slopes is not None:
            return wide @ self.slopes + self.constants
        assert self.means is not None and self.whitening is not None
        each = [white(wide - mean, w) for mean, w in zip(self.means, self.whitening, strict=True)]
        return self.constants - torch.stack([z.square().sum(1) for z in each], 1) / 2

    @property
    def parameters(self) -> int:
        """Numbers that predict."""
        return sum(
            part.numel() for part in (self.constants, self.slopes, self.means, self.whitening) if part is not None
        )


def scores(sums: ClassSums, head: str, shrinkage: float) -> Scores:
    """The `head` (see HEADS) of the summed statistics; `shrinkage`: s."""
    means, priors = sums.means, sums.log_priors
    if head == "means":
        gone = torch.where(sums.counts > 0, 0.0, -torch.inf)
        return Scores(gone - means.square().sum(1) / 2, slopes=means.T)
    if head in ("lda", "fedcgs"):
        values, axes = torch.linalg.eigh(sums.within() if head == "lda" else sums.total())
        slopes = axes @ ((means @ axes) / shrunk(values[None], values.new_ones(1), shrinkage)).T
        return Scores(priors - (means.T * slopes).sum(0) / 2, slopes=slopes)
    shares = priors.exp()
    if head == "nb":
        variances = shrunk(sums.variances(), shares, shrinkage)
        return Scores(priors - variances.log().sum(1) / 2, means=means, whitening=variances.rsqrt())
    values, axes = torch.linalg.eigh(sums.covariances())
    values = shrunk(values, shares, shrinkage)
    return Scores(priors - values.log().sum(1) / 2, means=means, whitening=axes * values.rsqrt()[:, None])


def shrunk(variances: Tensor, shares: Tensor, shrinkage: float) -> Tensor:
    """Variances `[G, d]`, of features or along the axes of a covariance, towards the mean of their row.

    None is left below FLOOR times the mean variance of all rows, which count by their `shares [G]`.
    """
    middle = variances.mean(1, keepdim=True)
    least = FLOOR * (shares @ middle).clamp(min=FLOOR)
    return torch.maximum((1 - shrinkage) * variances + shrinkage * middle, least)


def white(away: Tensor, whitening: Tensor) -> Tensor:
    """Differences from the mean `[n, d]`, brought to unit spread by factors `[d]` or a matrix `[d, d]`."""
    return away * whitening if whitening.ndim == 1 else away @ whitening
