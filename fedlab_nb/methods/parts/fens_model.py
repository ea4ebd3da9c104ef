"""What FENS predicts with: the frozen client models and the rule that combines their logits."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...training import ClientModels
from ...training.evaluate import accuracy
from ..base import GlobalModel, NetworkModel
from .aggregators import Aggregator, Voting

CHUNK = 2048  # samples that a rule sees at once


class Experts:
    """The frozen ensemble: logits `[N, M, C]` of `x [N, ...]`; `members` are the clients whose models these are.

    Those of the last `x` are remembered: the snapshots of a run differ in the rule alone, and so cost one pass through
    the M models together.
    """

    def __init__(self, clients: ClientModels, members: Sequence[int] | None = None) -> None:
        self.clients, self.parameters = clients, sum(clients.parameters)
        self.members = list(range(len(clients)) if members is None else members)
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
    `[N, M*C]`, client after client. Artefacts, where the rule has them: `aggregator_weights [M, C]`;
    `aggregator_frames [F, M, C]`, the rule's `influence` (of a weighted sum: the same weights) at rounds
    `frame_rounds [F]`; `aggregator_contribution [M, C]`, what each client adds on average to the score of the true
    class; `aggregator_loss [T]` (before each round); `competency [M, C, C]` (voting: share of class r's samples for
    which client i votes c). `members`: the clients that the M rows stand for. `live`: the newest frame.
    """

    def __init__(
        self,
        experts: Experts,
        rule: Aggregator,
        *,
        losses: list[Tensor] = (),
        frames: dict[int, Tensor] | None = None,
        contribution: Tensor | None = None,
        numbers: dict[str, Any] | None = None,
    ) -> None:
        self.experts, self.rule = experts, rule.eval()
        self.parameters = experts.parameters + rule.q
        self.numbers = {"aggregator_parameters": rule.q, **(numbers or {})}
        self.artefacts: dict[str, np.ndarray] = {"members": np.array(experts.members)}
        if (weights := rule.weights()) is not None:
            self.artefacts["aggregator_weights"] = _array(weights)
        if frames:
            self.artefacts["aggregator_frames"] = np.stack([_array(frame) for frame in frames.values()])
            self.artefacts["frame_rounds"] = np.array(list(frames))
            frame, done = self.artefacts["aggregator_frames"][-1], self.artefacts["frame_rounds"][-1:]
            self.live = {"influence": frame, "round": done, "members": self.artefacts["members"]}
        if contribution is not None:
            self.artefacts["aggregator_contribution"] = _array(contribution)
        if len(losses):
            self.artefacts["aggregator_loss"] = _array(torch.stack(losses))
        if isinstance(rule, Voting):
            self.artefacts["competency"] = _array(rule.log_competency.exp())

    @classmethod
    def of_copy(cls, experts: Experts, rule: Aggregator, **more: Any) -> FensModel:
        """With a copy of `rule` as it is now: training changes the original in place."""
        return cls(experts, copy.deepcopy(rule), **more)

    @torch.no_grad()
    def logits(self, x: Tensor) -> Tensor:
        return self._by_chunks(self.rule, x)

    @torch.no_grad()
    def features(self, x: Tensor) -> Tensor:
        return self._by_chunks(self.rule.features, x)

    def curves(self, x: Tensor, y: Tensor) -> dict[str, Any]:
        """What the rule starts from: accuracy on `x, y` of the members' plain average, and of each of them alone."""
        z = self.experts(x)
        alone = (z.argmax(2) == y[:, None]).double().mean(0)
        return {"average_accuracy": accuracy(z.mean(1).argmax(1), y), "member_accuracy": alone.tolist()}

    def _by_chunks(self, read, x: Tensor) -> Tensor:
        z = self.experts(x)
        return torch.cat([read(part, some) for part, some in zip(z.split(CHUNK), x.split(CHUNK), strict=True)])


class Student(NetworkModel):
    """One network that has learnt to answer as `teacher` does."""

    def __init__(self, module: nn.Module, teacher: FensModel, **kept: Any) -> None:
        super().__init__(module, **kept)
        self.teacher = teacher

    def curves(self, x: Tensor, y: Tensor) -> dict[str, Any]:
        """As of the teacher, and its accuracy."""
        return self.teacher.curves(x, y) | {"teacher_accuracy": accuracy(self.teacher.predict(x), y)}


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().float().cpu().numpy().copy()
