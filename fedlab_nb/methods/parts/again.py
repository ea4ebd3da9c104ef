"""FedLPA's server part once more, from the evidence that a run kept: nothing is trained and nothing is measured again.

again = Again(outcome.model, x_test, y_test)
received = again.uploads(damping=1e-6)
again.accuracy(again.use("exact", received))          # another damping
again.accuracy(again.use("inputs", received))         # A alone, RegMean's way
for curves, point in again.path("gd", 1000, received): ...
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ...models import load_state
from ...rng import generator
from .evidence import PosteriorModel, systems
from .kronecker import Factors, with_layers
from .posterior import Posterior, side_by_side

# What the server may make of the uploads, from nothing to all of it.
USES = {
    "none": "the average: no precision at all",
    "diagonal": "the diagonals of A and B",
    "inputs": "A alone (as RegMean)",
    "shortcut": "A and B, shortcut EA",
    "exact": "A and B, exact (FedLPA)",
}


@dataclass(frozen=True)
class Point:
    """A solver's state after `iteration` steps: largest relative residual of a layer, and test accuracy 0-1."""

    iteration: int
    residual: float
    accuracy: float


class Again:
    """The server of one run. `x [N, ...]`, `y [N]`: samples to report the accuracy on."""

    def __init__(self, model: PosteriorModel, x: Tensor, y: Tensor, weights: str = "samples") -> None:
        self.evidence, self.weights = model.evidence, weights
        self.x, self.y = x, y
        self._network = copy.deepcopy(model.module)

    def uploads(self, damping: float, pi: str = "one", noise: float = 0.0, seed: int = 0) -> list[dict]:
        """What the clients would send; `seed` draws the noise."""
        streams = [generator(seed, "noise", k) for k in range(len(self.evidence))]
        return [own.upload(damping, pi, noise, stream) for own, stream in zip(self.evidence, streams, strict=True)]

    def use(self, what: str, received: list[dict]) -> dict[str, Tensor]:
        """The global state when the server uses as much of the uploads as `what` says (a key of USES)."""
        average, layers = systems(received, self.weights)
        return with_layers(average, {name: used(system, what) for name, system in layers.items()})

    def path(self, solver: str, iterations: int, received: list[dict]) -> Iterator[tuple[dict, Point | None]]:
        """Every iterate of a solver: the residuals so far by layer; after 0, 1, 2, 4, … steps and the last its `Point`.

        As in a run: the last one comes twice for the solvers that find out by themselves that they are done.
        """
        average, layers = systems(received, self.weights)
        for now in side_by_side(layers, solver, iterations):
            point = None
            if now.iteration & (now.iteration - 1) == 0 or not now.running:
                steps = max(len(curve) for curve in now.curves.values()) - 1
                worst = max(curve[-1].item() for curve in now.curves.values())
                point = Point(steps, worst, self.accuracy(with_layers(average, now.matrices)))
            yield now.curves, point

    def accuracy(self, state: dict[str, Tensor]) -> float:
        """Share of `x` that the network with these weights classifies as `y`."""
        load_state(self._network, state)
        with torch.no_grad():
            return float((self._network(self.x).argmax(1) == self.y).double().mean())


def used(system: Posterior, what: str) -> Tensor:
    """One layer `[o, i]` from as much of the precision as `what` says (a key of USES)."""
    if what == "none":
        return system.average
    if what == "diagonal":
        trust = system.w[:, None, None] * system.b.diagonal(dim1=1, dim2=2)[:, :, None]
        trust = trust * system.a.diagonal(dim1=1, dim2=2)[:, None, :]
        return (trust * system.m).sum(0) / trust.sum(0)
    if what == "inputs":
        system = Posterior.of(system.m, [Factors(a, torch.eye(system.b.shape[1]).to(a)) for a in system.a], system.w)
    matrix = system.expectation_approximation()
    if what == "exact":
        for now in side_by_side({"layer": system}, "cg"):
            matrix = now.matrices["layer"]
    return matrix
