"""What a run of neuron matching leaves behind, and its network with the clients' own beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor, nn

from ...models import parameter_count
from ...training import ClientModels
from ..base import NetworkModel, Report

LIMIT = 12_000_000  # numbers of all clients' networks that a model holds; beyond that (large networks) it holds none


@dataclass(frozen=True, eq=False)
class MatchingReport(Report):
    """`rule`: by which units were matched;   layers, units: the groups of units, and how many there are.

    orders:     `[M, U]`, U = Σ units: for each client and each place of the reference, which unit of the client's comes
                there; with pfnm for each of the client's units the neuron of the result that it went to
    reference:  the client with whose units all others' are matched
    moved:      for each client the share of its units that stand elsewhere afterwards
    distances:  for each client ‖θ_ref - θ_k‖ before and after (none with pfnm)
    objective:  for each client the values of the objective, step by step (rebasin)
    neurons:    hidden units of the result
    average_accuracy: test accuracy, 0–1, of the plain average of the same networks
    """

    rule: str | None = None
    layers: list[str] | None = None
    units: list[int] | None = None
    orders: np.ndarray | None = None
    reference: int | None = None
    moved: list[float] | None = None
    distances: list[list[float]] | None = None
    objective: list[list[float]] | None = None
    neurons: int | None = None
    average_accuracy: float | None = None

    def others(self) -> dict[str, float]:
        return {} if self.average_accuracy is None else {"plain average": self.average_accuracy}


class MatchedModel(NetworkModel):
    """The matched network; `clients`: the networks as the server received them, None where they are too large."""

    def __init__(self, module: nn.Module, report: MatchingReport, average: nn.Module, clients: ClientModels) -> None:
        super().__init__(module, report)
        self.average = NetworkModel(average)
        self.clients = clients if sum(map(parameter_count, clients.modules)) <= LIMIT else None

    def measured(self, x: Tensor, y: Tensor) -> MatchingReport:
        assert isinstance(self.report, MatchingReport)
        return replace(self.report, average_accuracy=self.average.accuracy(x, y))
