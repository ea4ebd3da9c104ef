"""Counts, sums and second moments of features, class by class: all that Bayes' rule with Gaussian classes needs.

They are sums over samples, so those of several clients add up to those of all samples in one place, whoever holds
which sample. `class_sums` makes a client's, `message` and `received` are its way over the link, `+` adds two up.

What is kept of the second moments is one of MOMENTS, from little to much:
- "none": nothing, `[0]`;
- "diagonal": the squares of every feature, class by class, `[C, d]`;
- "pooled": one matrix Σ f fᵀ of all classes together, `[d, d]`;
- "full": such a matrix for every class, `[C, d, d]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ...comm import from_upper_triangle, upper_triangle

MOMENTS = ("none", "diagonal", "pooled", "full")
BY_CLASS, MATRICES = ("diagonal", "full"), ("pooled", "full")


@dataclass(frozen=True, eq=False)
class ClassSums:
    """`counts [C]`, `sums [C, d]` and `second` moments (see MOMENTS for `kind` and shape), in float64; added by +."""

    kind: str
    counts: Tensor
    sums: Tensor
    second: Tensor

    def __add__(self, other: ClassSums) -> ClassSums:
        assert self.kind == other.kind
        added = (self.counts + other.counts, self.sums + other.sums, self.second + other.second)
        return ClassSums(self.kind, *added)

    @property
    def means(self) -> Tensor:
        """μ_c `[C, d]`; zeros for a class without samples."""
        return self.sums / self._at_least_one

    @property
    def log_priors(self) -> Tensor:
        """log(N_c/N) `[C]`; -inf for a class without samples."""
        return (self.counts / self.counts.sum()).log()

    def variances(self) -> Tensor:
        """v_c `[C, d]` of kind "diagonal": each feature's mean square around its class mean."""
        return (self.second / self._at_least_one - self.means.square()).clamp(min=0)

    def covariances(self) -> Tensor:
        """Σ_c `[C, d, d]` of kind "full": S_c/N_c - μ_c μ_cᵀ."""
        return self.second / self._at_least_one[..., None] - self.means[:, :, None] * self.means[:, None, :]

    def within(self) -> Tensor:
        """Σ_W `[d, d]` of kind "pooled": (B - Σ_c N_c μ_c μ_cᵀ) / (N - C), where C counts the classes that exist."""
        between = self.means.T @ self.sums
        present = (self.counts > 0).sum()
        return (self.second - between) / (self.counts.sum() - present).clamp(min=1)

    def total(self) -> Tensor:
        """Σ_T `[d, d]` of kind "pooled": (B - N μ μᵀ) / (N - 1), the covariance without regard to classes."""
        count, sums = self.counts.sum(), self.sums.sum(0)
        return (self.second - torch.outer(sums, sums) / count) / (count - 1).clamp(min=1)

    @property
    def _at_least_one(self) -> Tensor:
        return self.counts.clamp(min=1)[:, None]


def by_class(features: Tensor, labels: Tensor) -> dict[int, Tensor]:
    """The rows `[n_c, ...]` of `features [n, ...]` class by class, for the classes that `labels [n]` has, in order."""
    counts = torch.bincount(labels).tolist()
    groups = features[labels.argsort(stable=True)].split(counts)
    return {c: rows for c, rows in enumerate(groups) if len(rows)}


def class_sums(features: Tensor, labels: Tensor, classes: int, kind: str) -> ClassSums:
    """The sums over samples with `features [n, d]` and `labels [n]`, added up in float64."""
    assert kind in MOMENTS
    wide = features.double()
    d = wide.shape[1]
    counts, sums = wide.new_zeros(classes), wide.new_zeros(classes, d)
    shapes = {"none": (0,), "diagonal": (classes, d), "pooled": (d, d), "full": (classes, d, d)}
    second = wide.T @ wide if kind == "pooled" else wide.new_zeros(shapes[kind])
    for c, rows in by_class(wide, labels).items():
        counts[c] += len(rows)
        sums[c] = rows.sum(0)
        if kind in ("diagonal", "full"):
            second[c] = rows.T @ rows if kind == "full" else rows.square().sum(0)
    return ClassSums(kind, counts, sums, second)


def message(own: ClassSums, dtype: torch.dtype) -> dict[str, Tensor]:
    """What a client sends: the counts of all classes (int32), sums and second moments of those that it holds, `dtype`.

    Of a matrix the upper triangle is sent. The receiver reads from the counts which classes the rows are of.
    """
    held = own.counts.nonzero()[:, 0]
    second = own.second[held] if own.kind in BY_CLASS else own.second
    second = upper_triangle(second) if own.kind in MATRICES else second
    return {"counts": own.counts.int(), "sums": own.sums[held].to(dtype), "second": second.to(dtype)}


def received(sent: Mapping[str, Tensor], kind: str) -> ClassSums:
    """The sums that `message` was made of, in float64; zeros for the classes that the client lacks."""
    counts, held = sent["counts"].double(), sent["counts"].nonzero()[:, 0]

    def placed(rows: Tensor) -> Tensor:
        return rows.new_zeros(len(counts), *rows.shape[1:]).index_copy(0, held, rows)

    second = sent["second"].double()
    second = from_upper_triangle(second) if kind in MATRICES else second
    return ClassSums(kind, counts, placed(sent["sums"].double()), placed(second) if kind in BY_CLASS else second)
