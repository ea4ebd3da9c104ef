"""FedLPA's server part once more, from what the clients of a run had measured: nothing is trained or measured again.

again = ServerReplay(outcome.model, x_test, y_test)
received = again.uploads(damping=1e-6)
again.accuracy(again.use("exact", received))          # another damping
again.accuracy(again.use("inputs", received))         # A alone, RegMean's way
for iterate, accuracy in again.path("gd", 1000, received): ...
"""

import copy
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from ...models import load_state
from ...rng import generator
from ..parts.kronecker import with_layers
from ..parts.posterior import Posterior
from .model import FedLPAModel
from .server import layer_systems
from .solvers import Iterate, solve, solve_layers

# What the server may use of the uploads, from A and B (exactly solved; by the shortcut EA), A alone as RegMean, and the
# factor diagonals (those of A and B; Fisher merging has another, the Fisher diagonal) to nothing, which is the average.
USES = ("exact", "shortcut", "inputs", "diagonal", "none")


class ServerReplay:
    """The server of one run. `x [N, ...]`, `y [N]`: samples to report the accuracy on."""

    def __init__(self, model: FedLPAModel, x: Tensor, y: Tensor, weights: str = "samples") -> None:
        self.posteriors, self.weights = model.posteriors, weights
        self.x, self.y = x, y
        self._network = copy.deepcopy(model.module)

    def uploads(self, damping: float, pi: str = "one", noise: float = 0.0, seed: int = 0) -> list[dict]:
        """What the clients would send; `seed` draws the noise."""
        return [own.upload(damping, pi, noise, generator(seed, "noise", k)) for k, own in enumerate(self.posteriors)]

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
