"""The ridge of a least-squares fit, chosen by the federation itself (Alsulaimawi, *One-Shot Federated Ridge
Regression*, 2026, arXiv 2601.08216, has a federated cross-validation; we know it from its abstract).

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

from collections.abc import Sequence

import torch
from torch import Tensor

GRID = tuple(step * 10.0**power for power in range(-3, 5) for step in (1, 3))
WAYS = ("given", "clients", "samples")


def errors_by_clients(moments: Sequence[Tensor], products: Sequence[Tensor], counts: Sequence[float]) -> Tensor:
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
