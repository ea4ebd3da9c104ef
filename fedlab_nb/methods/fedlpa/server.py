"""FedLPA's server: from the uploads to one linear system a layer, which `solvers.py` solves."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...comm.codec import from_upper_triangle
from ...models import load_state
from ...rng import generator
from ..base import NetworkModel, Report, weighted_mean
from ..parts.kronecker import Factors, Posterior, layer_matrix, with_layers
from .client import LocalPosterior
from .solvers import Iterate, solve, solve_layers


def layer_systems(
    received: Sequence[Mapping[str, Any]], weights: str = "samples"
) -> tuple[dict[str, Tensor], dict[str, Posterior]]:
    """From M uploads: the weighted average of the states, and the linear system of each layer that has factors."""
    trust = [r["samples"] if weights == "samples" else 1 for r in received]
    states = [r["state"] for r in received]
    systems = {}
    for name in received[0]["factors"]:
        triangles = [r["factors"][name] for r in received]
        factors = [
            Factors(from_upper_triangle(t["a"]), from_upper_triangle(t["b"])) for t in triangles
        ]
        matrices = [layer_matrix(state, name) for state in states]
        systems[name] = Posterior.of(matrices, factors, [n / sum(trust) for n in trust])
    return weighted_mean(states, trust), systems


# --------------------------------------------------------------------------------------------------------------- report
# What a run of FedLPA leaves to look at: residuals, damping beside what it is added to, what the upload reveals.


@dataclass(frozen=True, eq=False)
class FedLPAReport(Report):
    """Of L layers and M clients; a snapshot has the first four fields.

    layers:          names of the L layers that were solved
    iterations:      by layer, of the solver;   residual: by layer, the last relative residual
    residuals:       `[L, T]`, of each iterate; NaN after a layer's last
    label_leak:      what the last B gives away of the classes (`label_leak.py`)
    train_counts:    `[M, C]`, samples by class that the clients trained on
    """

    layers: list[str] | None = None
    iterations: dict[str, int] | None = None
    residual: dict[str, float] | None = None
    residuals: np.ndarray | None = None
    label_leak: dict[str, float] | None = None
    train_counts: np.ndarray | None = None

    @classmethod
    def of(cls, iterate: Iterate) -> FedLPAReport:
        """How far the server has come."""
        curves = {
            name: torch.stack(curve).cpu().numpy() for name, curve in iterate.residuals.items()
        }
        last = {name: curve[-1].item() for name, curve in curves.items()}
        residuals = np.full((len(curves), max(map(len, curves.values()))), np.nan)
        for row, curve in zip(residuals, curves.values(), strict=True):
            row[: len(curve)] = curve
        return cls(
            list(curves), {name: len(curve) - 1 for name, curve in curves.items()}, last, residuals
        )

    @property
    def curves(self) -> dict[str, np.ndarray]:
        """Layer -> its relative residuals after 0, 1, 2, … steps."""
        assert (
            self.layers is not None and self.residuals is not None and self.iterations is not None
        )
        rows = zip(self.layers, self.residuals, strict=True)
        return {name: row[: self.iterations[name] + 1] for name, row in rows}


# ---------------------------------------------------------------------------------------------------------------- model
# FedLPA's global model, with what its clients had measured beside it.
#
# With that the server's part can be done again (`ServerReplay`): another λ_damp, π, solver or noise, same clients.

LIMIT = 48_000_000  # bytes of all clients' posteriors that a model holds; beyond that (large networks) it holds none


class FedLPAModel(NetworkModel):
    """FedLPA's network; `posteriors`: of the clients that it was made from, none where they are too large."""

    def __init__(
        self, module: nn.Module, report: FedLPAReport, posteriors: Sequence[LocalPosterior]
    ) -> None:
        super().__init__(module, report)
        self.posteriors = list(posteriors) if sum(own.size for own in posteriors) <= LIMIT else []


# -------------------------------------------------------------------------------------------------------- server replay
# FedLPA's server part once more, from what the clients of a run had measured: nothing is trained or measured again.
#
# again = ServerReplay(outcome.model, x_test, y_test)
# received = again.uploads(damping=1e-6)
# again.accuracy(again.use("exact", received))          # another damping
# again.accuracy(again.use("inputs", received))         # A alone, RegMean's way
# for iterate, accuracy in again.path("gd", 1000, received): ...

# What the server may use of the uploads, from A and B (exactly solved; by the shortcut EA), A alone as RegMean, and the
# factor diagonals (those of A and B; Fisher merging has another, the Fisher diagonal) to nothing, which is the average.
USES = ("exact", "shortcut", "inputs", "diagonal", "none")


class ServerReplay:
    """The server of one run. `x [N, ...]`, `y [N]`: samples to report the accuracy on."""

    def __init__(self, model: FedLPAModel, x: Tensor, y: Tensor, weights: str = "samples") -> None:
        self.posteriors, self.weights = model.posteriors, weights
        self.x, self.y = x, y
        self._network = copy.deepcopy(model.module)

    def uploads(
        self, damping: float, pi: str = "one", noise: float = 0.0, seed: int = 0
    ) -> list[dict]:
        """What the clients would send; `seed` draws the noise."""
        return [
            own.upload(damping, pi, noise, generator(seed, "noise", k))
            for k, own in enumerate(self.posteriors)
        ]

    def use(self, what: str, received: list[dict]) -> dict[str, Tensor]:
        """The global state when the server uses as much of the uploads as `what` says (one of USES)."""
        average, systems = layer_systems(received, self.weights)
        return with_layers(average, {name: used(system, what) for name, system in systems.items()})

    def path(
        self, solver: str, iterations: int, received: list[dict], step: str = "1/L"
    ) -> Iterator[tuple[Iterate, float | None]]:
        """Every iterate of a solver, with its accuracy after 0, 1, 2, 4, … steps; at the end the last one once more."""
        average, systems = layer_systems(received, self.weights)
        for now in solve_layers(systems, solver, iterations, step):
            yield now, self.accuracy(with_layers(average, now.matrices)) if now.doubled else None
        yield now, self.accuracy(with_layers(average, now.matrices))

    def accuracy(self, state: dict[str, Tensor]) -> float:
        """Share of `x` that the network with these weights classifies as `y`."""
        load_state(self._network, state)
        with torch.no_grad():
            return float((self._network(self.x).argmax(1) == self.y).double().mean())


def used(system: Posterior, what: str) -> Tensor:
    """One layer `[o, i]` from as much of the precision as `what` says (one of USES)."""
    if what == "none":
        return system.average
    if what == "diagonal":
        b, a = (factor.diagonal(dim1=1, dim2=2) for factor in (system.b, system.a))
        trust = system.w[:, None, None] * b[:, :, None] * a[:, None, :]
        return (trust * system.m).sum(0) / trust.sum(0)
    if what == "inputs":
        system = replace(system, b=torch.eye(system.b.shape[1]).to(system.b).expand_as(system.b))
    return solve(system, "cg" if what == "exact" else "ea")[0]
