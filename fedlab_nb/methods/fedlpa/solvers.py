"""Four solvers of FedLPA's linear system `S Θ = Z`, which `LayerPosterior` sets up for a layer.

The closed form of the expectation approximation (biased, Eq. 16), gradient descent on the squared residual (Eq. 14),
and conjugate gradients, which solve the same system exactly; and Adam from the average, which is FedFisher's way
(Jhunjhunwala, Wang, Joshi, AISTATS 2024, arXiv 2403.12329): it minimises Σ_k w_k (θ - θ_k)ᵀ F_k (θ - θ_k), whose
minimum solves the same system. Each is a sequence of `LayerIterate`s, so that a caller can watch it and stop.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from ...errors import RunError, check_allowed_name
from ...tensor_types import LayerMatrix
from ...training.optim import Adam
from ..parts.kronecker import LayerPosterior

# Conjugate gradients: the exact solution in a few steps; gradient descent from the shortcut; expectation
# approximation: the closed form that the paper rejects as biased; Adam: FedFisher's.
SolverName = Literal["cg", "gd", "ea", "adam"]
SOLVERS: tuple[SolverName, ...] = get_args(SolverName)
# Of gradient descent: 1/L, L the objective's largest curvature, or the authors' 2/N for a layer of N numbers.
StepRule = Literal["1/L", "official"]
STEPS: tuple[StepRule, ...] = get_args(StepRule)
CG_TOLERANCE = 1e-6  # relative residual at which conjugate gradients stop
CG_LIMIT = 300
ADAM_RATE = 0.01  # at the first step; it falls to 0 as a half cosine
PosteriorByLayer = Mapping[str, LayerPosterior]  # by the name of the layer
GPU_STEPS = 8  # steps of conjugate gradients on a GPU between two checks whether they are done


@dataclass(frozen=True, eq=False)
class LayerIterate:
    """An iterate: the layer `matrix [o, i]` and its relative residual `|S Θ - Z| / |Z|` (a 0-d tensor)."""

    matrix: Tensor
    residual: Tensor


def iterate_layer_solver(
    system: LayerPosterior,
    solver: SolverName = "cg",
    gd_or_adam_steps: int = 1000,
    gd_step_rule: StepRule = "1/L",
) -> Iterator[LayerIterate]:
    """The iterates of one of `SOLVERS`: the first is EA's ("adam": the average), the last is the answer.

    Only "gd" and "adam" use `gd_or_adam_steps`, only "gd" uses `gd_step_rule` (one of STEPS; UsageError for another).
    "cg" and "ea" stop by themselves.
    """
    check_allowed_name("step of gradient descent", gd_step_rule, STEPS)
    if solver == "adam":
        return iterate_adam(system, gd_or_adam_steps)
    start = system.solve_with_averaged_factors()
    if solver == "cg":
        return iterate_conjugate_gradients(system, start)
    if solver == "ea":
        gd_or_adam_steps = 0
    return iterate_gradient_descent(system, start, gd_or_adam_steps, gd_step_rule)


def iterate_gradient_descent(
    system: LayerPosterior, start: LayerMatrix, steps: int, step_rule: StepRule = "1/L"
) -> Iterator[LayerIterate]:
    """Plain gradient descent on Eq. 14, as in the paper, which gives no step size. Yields `steps + 1` iterates.

    step_rule "1/L": L, the largest eigenvalue of S squared, is the largest curvature of Eq. 14. This step always
        converges.
    step_rule "official": 2/N for a layer of N numbers, which is the authors' code: step 1 on the *mean* of the
        squared residuals. In wide layers that is far shorter than 1/L. Gradient descent converges for steps below
        2/L, so it diverges where L > N.
    """
    matrix = start
    smoothness: Tensor | float = 1.0
    if steps:
        smoothness = (
            system.estimate_largest_squared_eigenvalue()
            if step_rule == "1/L"
            else start.numel() / 2
        )
    for iteration in range(steps + 1):
        residual = system.apply_precision(matrix) - system.precision_weighted_sum
        yield LayerIterate(matrix, system.compute_relative_residual(residual))
        if iteration < steps:
            matrix = matrix - system.apply_precision(residual) / smoothness


def iterate_adam(system: LayerPosterior, steps: int) -> Iterator[LayerIterate]:
    """Adam on Σ_k w_k (Θ - Θ_k)ᵀ (A_k ⊗ B_k) (Θ - Θ_k) / 2, from the average. Yields `steps + 1` iterates.

    FedFisher keeps the iterate that is best on the server's validation images. Here there are none: `steps` is
    where it stops.
    """
    matrix = system.weighted_client_average.clone()
    optimizer = Adam([matrix], ADAM_RATE)
    for iteration in range(steps + 1):
        residual = system.apply_precision(matrix) - system.precision_weighted_sum
        yield LayerIterate(matrix.clone(), system.compute_relative_residual(residual))
        optimizer.lr = ADAM_RATE * (1 + math.cos(math.pi * iteration / max(steps, 1))) / 2
        optimizer.step([residual])


def iterate_conjugate_gradients(
    system: LayerPosterior,
    start: LayerMatrix,
    residual_tolerance: float = CG_TOLERANCE,
    step_limit: int = CG_LIMIT,
) -> Iterator[LayerIterate]:
    """Conjugate gradients on `S Θ = Z` with EA's inverse as preconditioner, to the tolerance or the `step_limit`.

    The minimiser of Eq. 14 is the solution of S Θ = Z; working on S itself avoids squaring its condition number. On a
    GPU a few steps too many are cheaper than waiting for each; they are thrown away.
    """
    iterates = islice(_iterate_conjugate_gradients_without_end(system, start), step_limit + 1)
    steps_at_once = 1 if start.device.type == "cpu" else GPU_STEPS
    while True:
        block = list(islice(iterates, steps_at_once))
        if not block:
            return
        matrices, residuals, curvatures = zip(*block, strict=True)
        numbers = torch.stack([torch.stack(residuals), torch.stack(curvatures)]).cpu()
        for matrix, residual, curvature in zip(matrices, *numbers, strict=True):
            yield LayerIterate(matrix, residual)
            if residual <= residual_tolerance:
                return
            if not curvature > 0:  # rounding has used up the digits: no further progress
                return


class ConjugateGradientStep(NamedTuple):
    """An iterate `[o, i]`, its relative residual, and the curvature along the next direction."""

    matrix: Tensor
    residual: Tensor
    curvature: Tensor


def _iterate_conjugate_gradients_without_end(
    system: LayerPosterior, start: LayerMatrix
) -> Iterator[ConjugateGradientStep]:
    """The iterates, their relative residuals, and the curvature along the next direction, which 0 or less forbids.

    It goes on for ever; the caller stops it.
    """
    matrix = start
    residual = system.precision_weighted_sum - system.apply_precision(matrix)
    direction = preconditioned = system.apply_approximate_inverse(residual)
    while True:
        image = system.apply_precision(direction)
        curvature = (direction * image).sum()
        yield ConjugateGradientStep(matrix, system.compute_relative_residual(residual), curvature)
        slope = (residual * preconditioned).sum()
        matrix = matrix + slope / curvature * direction
        residual = residual - slope / curvature * image
        preconditioned = system.apply_approximate_inverse(residual)
        direction = preconditioned + (residual * preconditioned).sum() / slope * direction


class LayerAndResiduals(NamedTuple):
    """A layer `[o, i]`, and the relative residual after each step `[steps]`."""

    layer: Tensor
    residuals: Tensor


def solve_layer_and_record_residuals(
    system: LayerPosterior,
    solver: SolverName = "cg",
    gd_or_adam_steps: int = 1000,
    gd_step_rule: StepRule = "1/L",
) -> LayerAndResiduals:
    """Run a solver to its end: the layer `[o, i]`, and the relative residuals of all iterates, the start among them."""
    for iterate in iterate_all_layers_together(
        {"layer": system}, solver, gd_or_adam_steps, gd_step_rule
    ):
        last = iterate
    return LayerAndResiduals(last.matrices["layer"], torch.stack(last.residuals["layer"]))


@dataclass(frozen=True, eq=False)
class IterateOfAllLayers:
    """All layers after an iteration; by layer the `matrices [o, i]` and the relative `residuals` so far."""

    iteration: int
    matrices: dict[str, Tensor]
    residuals: dict[str, list[Tensor]]

    @property
    def is_step_count_power_of_two(self) -> bool:
        """True at iteration 0, 1, 2, 4, …: the points of a curve over the logarithm."""
        return self.iteration & (self.iteration - 1) == 0

    @property
    def worst_relative_residual(self) -> float:
        """The largest residual of a layer."""
        return torch.stack([curve[-1] for curve in self.residuals.values()]).max().item()


def iterate_all_layers_together(
    systems: PosteriorByLayer,
    solver: SolverName = "cg",
    gd_or_adam_steps: int = 1000,
    gd_step_rule: StepRule = "1/L",
) -> Iterator[IterateOfAllLayers]:
    """Solve the layers together, one iteration of each at a time; layers that are done wait for the others.

    RunError if a residual grows beyond all bounds, as with the step "official" where L > N.
    """
    matrices: dict[str, Tensor] = {}
    residuals: dict[str, list[Tensor]] = {name: [] for name in systems}
    paths = [
        iterate_layer_solver(system, solver, gd_or_adam_steps, gd_step_rule)
        for system in systems.values()
    ]
    for iteration, layer_steps in enumerate(zip_longest(*paths)):
        for name, layer_step in zip(systems, layer_steps, strict=True):
            if layer_step is not None:
                matrices[name] = layer_step.matrix
                residuals[name].append(layer_step.residual)
        iterate = IterateOfAllLayers(iteration, matrices, residuals)
        if solver == "gd" and (iterate.is_step_count_power_of_two or iteration == gd_or_adam_steps):
            check_residuals_are_finite(iterate, gd_step_rule)
        yield iterate


def check_residuals_are_finite(iterate: IterateOfAllLayers, gd_step_rule: StepRule) -> None:
    """RunError if a layer's residual is no longer finite."""
    for name, curve in iterate.residuals.items():
        if not torch.isfinite(curve[-1]):
            raise RunError(
                f"Descent with step={gd_step_rule} diverged in layer {name!r}; use step=1/L or solver=cg."
            )
