"""What a running method yields and returns: its progress, and models that predict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor, nn

from ..errors import choose
from ..models import parameter_count
from ..training import ClientModels, in_chunks


@dataclass(frozen=True)
class Progress:
    """One step of a run: `done` of `total` in `phase`; `model`, where given, is the state of things for the live
    curve."""

    phase: str
    done: int
    total: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    model: GlobalModel | None = None


class GlobalModel:
    """What a method returns: something that predicts. `features` is the vector that the last linear map reads.

    `parameters`: how many numbers predict (of all networks involved). `artefacts`: arrays worth keeping; `numbers`:
    plain values; `live`: small arrays worth watching while the method runs.
    """

    parameters: int
    artefacts: Mapping[str, np.ndarray] = {}
    numbers: Mapping[str, Any] = {}
    live: Mapping[str, np.ndarray] = {}

    def logits(self, x: Tensor) -> Tensor:
        """Scores `[N, C]` of samples `x [N, ...]`."""
        raise NotImplementedError

    def features(self, x: Tensor) -> Tensor:
        """Feature vectors `[N, D]`."""
        raise NotImplementedError

    def predict(self, x: Tensor) -> Tensor:
        """Classes `[N]`."""
        return self.logits(x).argmax(1)

    def accuracy(self, x: Tensor, y: Tensor) -> float:
        """Share of `x [N, ...]` classified as `y [N]`, 0–1."""
        return float((self.predict(x) == y).double().mean())


class NetworkModel(GlobalModel):
    """One network; features are its penultimate layer."""

    def __init__(self, module: nn.Module, *, artefacts: Mapping | None = None, numbers: Mapping | None = None) -> None:
        self.module = module.eval()
        self.parameters = parameter_count(module)
        self.artefacts, self.numbers = dict(artefacts or {}), dict(numbers or {})

    def logits(self, x: Tensor) -> Tensor:
        return in_chunks(self.module, x)

    def features(self, x: Tensor) -> Tensor:
        return in_chunks(self.module.features, x)


def flat(logits: Tensor) -> Tensor:
    """Clients' logits `[M, N, C]` as one vector a sample, client-major, `[N, M*C]`."""
    return logits.transpose(0, 1).flatten(1)


class EnsembleModel(GlobalModel):
    """All client models, combined by a fixed rule; features are the concatenated logits `[N, M*C]`.

    `rule`: "logits" averages pre-softmax outputs, "probabilities" averages softmax outputs (scores are then their
    logarithm).
    """

    RULES = ("logits", "probabilities")

    def __init__(self, clients: ClientModels, rule: str = "logits") -> None:
        self.clients, self.rule = clients, choose("rule", rule, self.RULES)
        self.parameters = sum(clients.parameters)

    def logits(self, x: Tensor) -> Tensor:
        logits = self.clients.logits(x)
        if self.rule == "logits":
            return logits.mean(0)
        return logits.softmax(-1).mean(0).log()

    def features(self, x: Tensor) -> Tensor:
        return flat(self.clients.logits(x))


class ClientsAlone(GlobalModel):
    """The clients' own models side by side, for the curve of local training: accuracy is the mean over clients."""

    def __init__(self, clients: ClientModels) -> None:
        self.clients, self.parameters = clients, sum(clients.parameters)

    def accuracy(self, x: Tensor, y: Tensor) -> float:
        return float((self.clients.logits(x).argmax(-1) == y).double().mean())
