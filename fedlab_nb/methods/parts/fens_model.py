"""What FENS predicts with: the frozen client models and the rule that combines their logits."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...training import ClientModels
from ..base import GlobalModel
from .aggregators import Aggregator, Voting

CHUNK = 2048  # samples that a rule sees at once


class Experts:
    """The frozen ensemble: logits `[N, M, C]` of `x [N, ...]`.

    Those of the last `x` are remembered: the snapshots of a run differ in the rule alone, and so cost one pass through
    the M models together.
    """

    def __init__(self, clients: ClientModels) -> None:
        self.clients, self.parameters = clients, sum(clients.parameters)
        self._last: tuple[Tensor | None, int, Tensor | None] = (None, 0, None)

    def fresh(self, x: Tensor) -> Tensor:
        """Without remembering."""
        return self.clients.logits(x).transpose(0, 1).contiguous()

    def __call__(self, x: Tensor) -> Tensor:
        seen, version, logits = self._last
        if seen is not x or version != x._version:  # another tensor, or one that was written to since
            logits = self.fresh(x)
            self._last = (x, x._version, logits)
        return logits


class FensModel(GlobalModel):
    """M experts and an aggregator; `parameters` is all that predicts, M*d + q.

    `features`: the hidden layer `[N, k]` of the network aggregator; for every other rule the concatenated logits
    `[N, M*C]`, client after client. Artefacts, where the rule has them: `aggregator_weights [M, C]`,
    `aggregator_frames [F, M, C]` (the same at rounds `frame_rounds [F]`), `aggregator_loss [T]` (before each round),
    `competency [M, C, C]` (voting: share of class r's samples for which client i votes c).
    """

    def __init__(
        self,
        experts: Experts,
        rule: Aggregator,
        *,
        losses: list[Tensor] = (),
        frames: dict[int, Tensor] | None = None,
        numbers: dict[str, Any] | None = None,
    ) -> None:
        self.experts, self.rule = experts, rule.eval()
        self.parameters = experts.parameters + rule.q
        self.numbers = {"aggregator_parameters": rule.q, **(numbers or {})}
        self.artefacts: dict[str, np.ndarray] = {}
        if (weights := rule.weights()) is not None:
            self.artefacts["aggregator_weights"] = _array(weights)
            if frames:
                self.artefacts["aggregator_frames"] = np.stack([_array(frame) for frame in frames.values()])
                self.artefacts["frame_rounds"] = np.array(list(frames))
        if len(losses):
            self.artefacts["aggregator_loss"] = _array(torch.stack(losses))
        if isinstance(rule, Voting):
            self.artefacts["competency"] = _array(rule.log_competency.exp())

    @classmethod
    def of_copy(cls, experts: Experts, rule: Aggregator) -> FensModel:
        """With a copy of `rule` as it is now: training changes the original in place."""
        return cls(experts, copy.deepcopy(rule))

    @torch.no_grad()
    def logits(self, x: Tensor) -> Tensor:
        return self._by_chunks(self.rule, x)

    @torch.no_grad()
    def features(self, x: Tensor) -> Tensor:
        return self._by_chunks(self.rule.features, x)

    def _by_chunks(self, read, x: Tensor) -> Tensor:
        z = self.experts(x)
        return torch.cat([read(part, some) for part, some in zip(z.split(CHUNK), x.split(CHUNK), strict=True)])


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().float().cpu().numpy().copy()
