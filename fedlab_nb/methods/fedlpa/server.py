"""FedLPA's server: from the uploads to one linear system a layer, which `solvers.py` solves."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor, nn

from ...comm.codec import unpack_upper_triangle
from ...models import load_state
from ...models.state import ModelState
from ...rng import make_torch_generator
from ...tensor_types import Labels, LayerMatrix, Samples
from ...value_types import Accuracy0To1
from ..base import NetworkModel, Report, weighted_mean
from ..parts.kronecker import (
    DampingSplit,
    KroneckerFactors,
    LayerPosterior,
    copy_state_with_layers,
    join_weight_and_bias_of_layer,
)
from .client import LocalPosterior, PosteriorUpload, PrecisionAndChanceOfGuess
from .solvers import (
    IterateOfAllLayers,
    SolverName,
    StepRule,
    iterate_all_layers_together,
    solve_layer_and_record_residuals,
)

ResidualsByLayer = dict[str, np.ndarray]  # {layer: relative residual after 0, 1, 2, … steps}


class AverageStateAndLayerSystems(NamedTuple):
    """The weighted average of the states, and the linear system of each layer with factors."""

    average: dict[str, Tensor]
    systems: dict[str, LayerPosterior]


def average_states_and_make_layer_systems(
    uploads: Sequence[PosteriorUpload], client_weighting: Literal["samples", "uniform"] = "samples"
) -> AverageStateAndLayerSystems:
    """From M uploads: the weighted average of the states, and the linear system of each layer that has factors."""
    if client_weighting == "samples":
        trust = [upload["samples"] for upload in uploads]
    else:
        trust = [1] * len(uploads)
    shares = [n / sum(trust) for n in trust]
    states = [upload["state"] for upload in uploads]
    systems = {}
    for name in uploads[0]["factors"]:
        matrices = [join_weight_and_bias_of_layer(state, name) for state in states]
        factors = []
        for upload in uploads:
            triangles = upload["factors"][name]
            a = unpack_upper_triangle(triangles["a"])
            b = unpack_upper_triangle(triangles["b"])
            factors.append(KroneckerFactors(a, b))
        systems[name] = LayerPosterior.from_clients(matrices, factors, shares)
    return AverageStateAndLayerSystems(weighted_mean(states, trust), systems)


# --------------------------------------------------------------------------------------------------------------- report
# What a run of FedLPA leaves behind for pictures: residuals, and what the upload reveals.


@dataclass(frozen=True, eq=False)
class FedLPAReport(Report):
    """Of L layers and M clients; a snapshot has the first four fields.

    layers: names of the L layers that were solved
    iterations: by layer, of the solver
    residual: by layer, the last relative residual
    residuals: `[L, T]`, of each iterate; NaN after a layer's last
    label_leak: what the last B gives away of the classes (`client.measure_label_leak`)
    train_counts: `[M, C]`, samples by class that the clients trained on
    """

    layers: list[str] | None = None
    iterations: dict[str, int] | None = None
    residual: dict[str, float] | None = None
    residuals: np.ndarray | None = None
    label_leak: PrecisionAndChanceOfGuess | None = None
    train_counts: np.ndarray | None = None

    @classmethod
    def from_iterate(cls, iterate: IterateOfAllLayers) -> FedLPAReport:
        """The report of a server that has come so far."""
        curves = {}
        for name, path in iterate.residuals.items():
            curves[name] = torch.stack(path).cpu().numpy()
        longest = max(len(curve) for curve in curves.values())
        residuals = np.full((len(curves), longest), np.nan)
        for row, curve in zip(residuals, curves.values(), strict=True):
            row[: len(curve)] = curve
        iterations = {name: len(curve) - 1 for name, curve in curves.items()}
        last = {name: curve[-1].item() for name, curve in curves.items()}
        return cls(list(curves), iterations, last, residuals)

    @property
    def curves(self) -> ResidualsByLayer:
        """Layer -> its relative residuals after 0, 1, 2, … steps."""
        assert (
            self.layers is not None and self.residuals is not None and self.iterations is not None
        )
        rows = zip(self.layers, self.residuals, strict=True)
        return {name: row[: self.iterations[name] + 1] for name, row in rows}


# ---------------------------------------------------------------------------------------------------------------- model
# FedLPA's global model, with what its clients have measured. From that the server's part can be done again
# (`ServerReplay`), with another λ_damp, π, solver or noise, for the same clients.

LIMIT = 48_000_000  # bytes of all clients' posteriors that a model holds; beyond that (large networks) it holds none


class FedLPAModel(NetworkModel):
    """FedLPA's network; `posteriors`: of the clients that it was made from, none where they are too large."""

    def __init__(
        self, module: nn.Module, report: FedLPAReport, posteriors: Sequence[LocalPosterior]
    ) -> None:
        super().__init__(module, report)
        self.posteriors: list[LocalPosterior] = []
        if sum(posterior.byte_count for posterior in posteriors) <= LIMIT:
            self.posteriors = list(posteriors)


# -------------------------------------------------------------------------------------------------------- server replay
# FedLPA's server part once more, from what the clients of a run had measured: nothing is trained or measured again.
#
# again = ServerReplay(outcome.model, x_test, y_test)
# received = again.make_uploads(damping=1e-6)  # another damping
# state = again.solve_global_state("exact", received)
# again.compute_accuracy_on_replay_samples(state)
# state = again.solve_global_state("inputs", received)  # A alone, RegMean's way
# for iterate, accuracy in again.iterate_solver_with_accuracies("gd", 1000, received): ...

# What the server may use of the uploads: A and B (solved exactly, or by the shortcut EA); A alone, as RegMean does; the
# diagonals of A and B (Fisher merging has another diagonal, the Fisher's); nothing, which gives the average.
PartOfPrecision = Literal["exact", "shortcut", "inputs", "diagonal", "none"]
USES: tuple[PartOfPrecision, ...] = get_args(PartOfPrecision)


class IterateAndAccuracyOrNone(NamedTuple):
    """An iterate, and its accuracy 0–1 if it was measured."""

    iterate: IterateOfAllLayers
    accuracy: float | None


class ServerReplay:
    """The server of one run. `x [N, ...]`, `y [N]`: samples to report the accuracy on."""

    def __init__(
        self,
        model: FedLPAModel,
        samples: Samples,
        labels: Labels,
        weights: Literal["samples", "uniform"] = "samples",
    ) -> None:
        self.posteriors = model.posteriors
        self.weights = weights
        self.x = samples
        self.y = labels
        self._network = copy.deepcopy(model.module)

    def make_uploads(
        self,
        damping: float,
        damping_split: DampingSplit = "one",
        noise_relative_to_rms: float = 0.0,
        noise_seed: int = 0,
    ) -> list[PosteriorUpload]:
        """The clients' uploads, one a client, with another damping or noise."""
        uploads = []
        for k, posterior in enumerate(self.posteriors):
            stream = make_torch_generator(noise_seed, "noise", k)
            uploads.append(
                posterior.make_upload(damping, damping_split, noise_relative_to_rms, stream)
            )
        return uploads

    def solve_global_state(
        self, part_of_precision: PartOfPrecision, uploads: list[PosteriorUpload]
    ) -> ModelState:
        """The global state, if the server uses only a part of the precision in the uploads (one of USES)."""
        average, systems = average_states_and_make_layer_systems(uploads, self.weights)
        layers = {
            name: solve_layer_with_part_of_precision(system, part_of_precision)
            for name, system in systems.items()
        }
        return copy_state_with_layers(average, layers)

    def iterate_solver_with_accuracies(
        self,
        solver: SolverName,
        gd_or_adam_steps: int,
        uploads: list[PosteriorUpload],
        gd_step_rule: StepRule = "1/L",
    ) -> Iterator[IterateAndAccuracyOrNone]:
        """Every iterate of a solver, with its accuracy after 0, 1, 2, 4, … steps; at the end the last one once more."""
        average, systems = average_states_and_make_layer_systems(uploads, self.weights)
        for iterate in iterate_all_layers_together(systems, solver, gd_or_adam_steps, gd_step_rule):
            accuracy = None
            if iterate.is_step_count_power_of_two:
                accuracy = self.compute_accuracy_on_replay_samples(
                    copy_state_with_layers(average, iterate.matrices)
                )
            yield IterateAndAccuracyOrNone(iterate, accuracy)
        yield IterateAndAccuracyOrNone(
            iterate,
            self.compute_accuracy_on_replay_samples(
                copy_state_with_layers(average, iterate.matrices)
            ),
        )

    def compute_accuracy_on_replay_samples(self, state: ModelState) -> Accuracy0To1:
        """Share of `x` that the network with these weights classifies as `y`."""
        load_state(self._network, state)
        with torch.no_grad():
            return float((self._network(self.x).argmax(1) == self.y).double().mean())


def solve_layer_with_part_of_precision(
    system: LayerPosterior, part_of_precision: PartOfPrecision
) -> LayerMatrix:
    """One layer `[o, i]`, from a part of its precision (one of USES)."""
    if part_of_precision == "none":
        return system.weighted_client_average
    if part_of_precision == "diagonal":
        b = system.b.diagonal(dim1=1, dim2=2)
        a = system.a.diagonal(dim1=1, dim2=2)
        trust = system.w[:, None, None] * b[:, :, None] * a[:, None, :]
        return (trust * system.m).sum(0) / trust.sum(0)
    if part_of_precision == "inputs":
        identity = torch.eye(system.b.shape[1]).to(system.b)
        system = replace(system, b=identity.expand_as(system.b))
    return solve_layer_and_record_residuals(
        system, "cg" if part_of_precision == "exact" else "ea"
    ).layer
