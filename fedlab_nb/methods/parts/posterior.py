"""The server side of FedLPA for one layer: the mean of a product of M Gaussians with Kronecker-factored precisions.

Client k sends the layer's weights `Θ_k [o, i]` and the precision `A_k (x) B_k`; the global layer solves

    sum_k w_k B_k Θ A_k = Z,    Z = sum_k w_k B_k Θ_k A_k                                  (Eqs. 11-13)

Everything stays in the matrix form `B Θ A`, which equals `(A (x) B) vec(Θ)` with stacked columns; nothing is ever
flattened. `fedlpa/solvers.py` solves it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ...errors import RunError
from .kronecker import Factors


@dataclass(frozen=True, eq=False)
class Posterior:
    """One layer's linear system: weights `m [M, o, i]`, damped factors `a [M, i, i]`, `b [M, o, o]`, trust `w [M]`."""

    m: Tensor
    a: Tensor
    b: Tensor
    w: Tensor

    @classmethod
    def of(cls, matrices: Sequence[Tensor], factors: Sequence[Factors], weights: Sequence[float] | Tensor) -> Posterior:
        """Stack M clients; `weights` are n_k/N (sum 1), or 1/M each."""
        m = torch.stack(list(matrices))
        a, b = (torch.stack([getattr(f, name) for f in factors]) for name in ("a", "b"))
        return cls(m, a, b, torch.as_tensor(weights, dtype=m.dtype, device=m.device))

    @cached_property
    def z(self) -> Tensor:
        """Z `[o, i]`: the clients' weights, each multiplied by its own precision (Eq. 12)."""
        return self._sum(self.b @ self.m @ self.a)

    @cached_property
    def average(self) -> Tensor:
        """The plain weighted average `[o, i]`, which the solution tends to as the damping grows."""
        return self._sum(self.m) / self.w.sum()

    def apply(self, matrix: Tensor) -> Tensor:
        """`S Θ = sum_k w_k B_k Θ A_k`; S is symmetric positive definite."""
        return self._sum(self.b @ matrix @ self.a)

    def relative(self, residual: Tensor) -> Tensor:
        """`|residual| / |Z|`, and 0 when both are 0."""
        return residual.norm() / self.z.norm().clamp_min(torch.finfo(self.z.dtype).tiny)

    @cached_property
    def approximate_inverse(self) -> Callable[[Tensor], Tensor]:
        """R -> `Bbar^-1 R Abar^-1` with the weighted means of the factors: the inverse that EA takes for that of S.

        Raises RunError if a mean factor is not finite or has no positive direction.
        """
        total = self.w.sum()
        # S ~ (sum w) Abar (x) Bbar; dividing by the total keeps the scale right also when the weights do not sum to 1.
        a, b = (inverse(self._sum(factor) / total) for factor in (self.a, self.b))
        return lambda r: a(b(r).T).T / total

    def expectation_approximation(self) -> Tensor:
        """Eq. 16: `Bbar^-1 Z Abar^-1`. Exact if all A_k or all B_k are equal; otherwise biased by the cross terms."""
        return self.approximate_inverse(self.z)

    def smoothness(self, iterations: int = 30) -> Tensor:
        """L, the largest eigenvalue of S squared, by power iterations from Z.

        A Rayleigh quotient lies below the eigenvalue; its error |S v - rho v| is added, so that 1/L is short.
        """
        v, tiny = self.z, torch.finfo(self.z.dtype).tiny
        for _ in range(iterations):
            v = v / v.norm().clamp_min(tiny)
            product = self.apply(v)
            rho = (v * product).sum()
            error = (product - rho * v).norm()
            v = product
        return (rho + error).square().clamp_min(tiny)

    def _sum(self, stack: Tensor) -> Tensor:
        return torch.tensordot(self.w, stack, dims=1)


def inverse(matrix: Tensor) -> Callable[[Tensor], Tensor]:
    """R -> `matrix^-1 R` for a symmetric positive definite matrix `[d, d]`.

    Where the damping is below the matrix's own rounding, directions that no data excite would be filled with amplified
    noise; they are then left out (a pseudo-inverse).
    """
    if not torch.isfinite(matrix).all():
        raise RunError("A layer's factor is not finite: a client's training has diverged; use a smaller learning rate.")
    rounding = torch.finfo(matrix.dtype).eps * matrix.diagonal().max()
    lower, info = torch.linalg.cholesky_ex(matrix)
    if info == 0 and lower.diagonal().min() ** 2 > rounding:
        return lambda r: torch.cholesky_solve(r, lower)
    values, vectors = torch.linalg.eigh(matrix)
    excited = values > len(matrix) * rounding
    if rounding <= 0 or not excited.any():
        raise RunError("A layer's mean factor is not positive definite; use a larger damping.")
    values, vectors = values[excited, None], vectors[:, excited]
    return lambda r: vectors @ (vectors.T @ r / values)
