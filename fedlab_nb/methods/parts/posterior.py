"""The server side of FedLPA for one layer: the mean of a product of K Gaussians with Kronecker-factored precisions.

Client k sends the layer's weights `M_k [o, i]` and the precision `A_k (x) B_k`; the global layer solves

    sum_k w_k B_k M A_k = Z,    Z = sum_k w_k B_k M_k A_k                                  (Eqs. 11-13)

Everything stays in the matrix form `B M A`, which equals `(A (x) B) vec(M)` with stacked columns; nothing is ever
flattened. Three solvers: the closed form of the expectation approximation (biased, Eq. 16), the paper's gradient
descent on the squared residual (Eq. 14), and conjugate gradients, which solve the same system exactly. Each is a
sequence of `Step`s, so that a caller can watch it and stop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ...errors import RunError
from .kronecker import Factors

SOLVERS = {
    "cg": "conjugate gradients: the exact solution in a few steps",
    "gd": "gradient descent from the shortcut: the paper's",
    "ea": "expectation approximation: the closed form that the paper rejects as biased",
}
CG_TOLERANCE = 1e-6  # relative residual at which conjugate gradients stop
CG_LIMIT = 300


@dataclass(frozen=True, eq=False)
class Step:
    """An iterate: the layer `matrix [o, i]` and its relative residual `|S M - Z| / |Z|` (a 0-d tensor)."""

    iteration: int
    matrix: Tensor
    residual: Tensor


@dataclass(frozen=True, eq=False)
class Posterior:
    """One layer's linear system: weights `m [K, o, i]`, damped factors `a [K, i, i]`, `b [K, o, o]`, trust `w [K]`."""

    m: Tensor
    a: Tensor
    b: Tensor
    w: Tensor

    @classmethod
    def of(cls, matrices: Sequence[Tensor], factors: Sequence[Factors], weights: Sequence[float] | Tensor) -> Posterior:
        """Stack K clients; `weights` are n_k/N (sum 1), or 1/K each."""
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
        """`S M = sum_k w_k B_k M A_k`; S is symmetric positive definite."""
        return self._sum(self.b @ matrix @ self.a)

    def objective(self, matrix: Tensor) -> Tensor:
        """`1/2 |S M - Z|^2` (Eq. 14)."""
        return (self.apply(matrix) - self.z).square().sum() / 2

    def gradient(self, matrix: Tensor) -> Tensor:
        """Gradient of the objective: `S (S M - Z)`, as S is symmetric."""
        return self.apply(self.apply(matrix) - self.z)

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


def steps(system: Posterior, solver: str = "cg", iterations: int = 1000) -> Iterator[Step]:
    """The iterates of one of `SOLVERS`: the first is EA's, the last is the answer. Only "gd" uses `iterations`."""
    start = system.expectation_approximation()
    if solver == "cg":
        return conjugate_gradients(system, start)
    return gradient_descent(system, start, iterations if solver == "gd" else 0)


def gradient_descent(system: Posterior, start: Tensor, iterations: int) -> Iterator[Step]:
    """The paper's solver: plain gradient descent on Eq. 14 with the step 1/L. Yields `iterations + 1` steps.

    The step 1/L takes the place of the authors' fixed step, which diverges once L exceeds half the number of weights.
    """
    matrix = start
    smoothness = system.smoothness() if iterations else None
    for iteration in range(iterations + 1):
        residual = system.apply(matrix) - system.z
        yield Step(iteration, matrix, system.relative(residual))
        if iteration < iterations:
            matrix = matrix - system.apply(residual) / smoothness


def conjugate_gradients(
    system: Posterior, start: Tensor, tolerance: float = CG_TOLERANCE, limit: int = CG_LIMIT
) -> Iterator[Step]:
    """Conjugate gradients on `S M = Z` with EA's inverse as preconditioner, to the tolerance or the `limit`.

    The minimiser of Eq. 14 is the solution of S M = Z; working on S itself avoids squaring its condition number.
    """
    matrix = start
    residual = system.z - system.apply(matrix)
    direction = preconditioned = system.approximate_inverse(residual)
    for iteration in range(limit + 1):
        relative = system.relative(residual)
        yield Step(iteration, matrix, relative)
        if relative <= tolerance:
            return
        image = system.apply(direction)
        slope = (residual * preconditioned).sum()
        curvature = (direction * image).sum()
        if not curvature > 0:  # rounding has used up the digits: no further progress is possible
            return
        matrix = matrix + slope / curvature * direction
        residual = residual - slope / curvature * image
        preconditioned = system.approximate_inverse(residual)
        direction = preconditioned + (residual * preconditioned).sum() / slope * direction


def solve(system: Posterior, solver: str = "cg", iterations: int = 1000) -> tuple[Tensor, Tensor]:
    """Run a solver to its end: the layer `[o, i]` and the relative residuals `[steps]`."""
    curve = []
    for step in steps(system, solver, iterations):
        matrix = step.matrix
        curve.append(step.residual)
    return matrix, torch.stack(curve)


@dataclass(frozen=True, eq=False)
class Round:
    """All layers after an iteration: `matrices` and residual `curves` by layer; `running`: some layer is not done."""

    iteration: int
    matrices: dict[str, Tensor]
    curves: dict[str, list[Tensor]]
    running: bool


def side_by_side(systems: Mapping[str, Posterior], solver: str = "cg", iterations: int = 1000) -> Iterator[Round]:
    """Solve the layers together, one iteration of each at a time; layers that are done wait for the others."""
    active = {name: steps(system, solver, iterations) for name, system in systems.items()}
    matrices: dict[str, Tensor] = {}
    curves: dict[str, list[Tensor]] = {name: [] for name in systems}
    iteration = 0
    while active:
        for name in list(active):
            step = next(active[name], None)
            if step is None:
                del active[name]
            else:
                matrices[name] = step.matrix
                curves[name].append(step.residual)
        yield Round(iteration, matrices, curves, bool(active))
        iteration += 1


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
    kept = values > len(matrix) * rounding
    if rounding <= 0 or not kept.any():
        raise RunError("A layer's mean factor is not positive definite; use a larger damping.")
    values, vectors = values[kept, None], vectors[:, kept]
    return lambda r: vectors @ (vectors.T @ r / values)
