"""What Fed-ET returns: the server's network, and beside it what the rounds looked like."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...errors import RunError
from ...training import ClientModels
from ..base import NetworkModel
from .consensus import Consensus, consensus
from .representation import State

SHOWN, TESTED = 200, 400  # public and test samples whose logits are kept for the pictures,
NUMBERS = 500_000  # fewer where an array of them would hold more numbers than this
KEPT = 20_000_000  # numbers in the models of past rounds that are kept until they are measured


class Student(NetworkModel):
    """The server's network as it is now; `live`: what its teachers say, and what it says itself; `told`: numbers."""

    def __init__(self, module: nn.Module, diary: Diary) -> None:
        super().__init__(copy.deepcopy(module))
        self.live, self.told = diary.last_round(self), diary.metrics


class LargeModel(NetworkModel):
    """The server's network. `clients` [m]: the models that the last round's clients sent. `small_before` and `small`:
    one averaged model an architecture, before and after the server's head is copied into it; `small` is what the next
    round would start from."""

    def __init__(self, module: nn.Module, small_before: ClientModels, small: ClientModels, diary: Diary) -> None:
        super().__init__(module, numbers=diary.numbers)
        self.artefacts = diary.artefacts | diary.last_round(self)
        self.clients, self.small_before, self.small = diary.clients, small_before, small
        self.numbers["small_parameters"] = small.parameters
        self._diary = diary
        self._measured: dict[str, list[float]] = {}

    def curves(self, x: Tensor, y: Tensor) -> dict[str, list[float]]:
        """Shares of `x, y` that are classified right, by shown round (`shown_rounds`, counted from 1): the mean of
        the clients, their consensus, and the mean of the small models before and after the server's head comes.

        Models of past rounds are let go, so that only the first call measures. It also keeps, for the pictures, at
        most TESTED samples of x, spread evenly: artefacts `test_rows` [B], `test_truth` [B], `test_logits` [m, B, N]
        of the last round's clients, `test_student` [B, N].
        """
        if not self._measured:
            names = ("shown_rounds", "clients_accuracy", "consensus_accuracy", "small_before", "small_after")
            self._measured = {name: [] for name in names}
            for frame in self._diary.frames:
                logits = frame.clients.logits(x)
                tables = [self.small.with_states(list(of.values())).logits(x) for of in (frame.before, frame.after)]
                answers = [logits.argmax(-1), self._diary.consensus(logits).labels, *(t.argmax(-1) for t in tables)]
                values = [frame.round, *(float((answer == y).double().mean()) for answer in answers)]
                for name, value in zip(names, values, strict=True):
                    self._measured[name].append(value)
            self._diary.frames.clear()
            logits = self.clients.logits(x)
            rows = torch.linspace(0, len(x) - 1, room(logits, TESTED)).round().long().unique().to(x.device)
            kept = {"rows": rows, "truth": y[rows], "logits": logits[:, rows], "student": self.logits(x[rows])}
            self.artefacts |= {f"test_{name}": tensor.cpu().numpy() for name, tensor in kept.items()}
        return self._measured


def room(logits: Tensor, most: int) -> int:
    """How many samples of `logits [m, B, N]` are kept: at most `most`, and NUMBERS numbers (but 20 samples)."""
    m, samples, classes = logits.shape
    return min(samples, most, max(20, NUMBERS // (m * classes)))


@dataclass(frozen=True)
class Frame:
    """The models of one round: those that came in, and the small ones before and after the server's head comes."""

    round: int
    clients: ClientModels
    before: Mapping[tuple, State]
    after: Mapping[tuple, State]

    @property
    def size(self) -> int:
        small = [tensor for of in (self.before, self.after) for state in of.values() for tensor in state.values()]
        return sum(tensor.numel() for tensor in small) + sum(self.clients.parameters)


@dataclass
class Diary:
    """Kept for the lesson, round by round. kinds: the clients' architectures; server: the large one; rule: the
    arguments of `consensus` after the logits."""

    kinds: Sequence[tuple]
    server: tuple
    rule: tuple
    rounds: list[dict[str, Any]] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    numbers_sent: int = 0

    def consensus(self, logits: Tensor) -> Consensus:
        """What the server makes of the clients' `logits [m, B, N]`."""
        return consensus(logits, *self.rule)

    def hear(self, chosen: Sequence[int], clients: ClientModels, logits: Tensor, x: Tensor) -> Consensus:
        """What is made of this round's clients' `logits [m, P, N]` of the public samples `x`."""
        said = self.consensus(logits)
        self.clients = clients
        self.numbers_sent += 2 * sum(clients.parameters)
        self.rounds.append(
            {
                "chosen": list(chosen),
                "dissent": said.dissent_fraction,
                "effective_clients": float(said.effective_clients.mean()),
            }
        )
        count = room(logits, SHOWN)
        self._x, self._public = x[:count], len(x)
        self._said = {"samples": self._x.cpu().numpy(), "logits": logits[:, :count].cpu().numpy()}
        return said

    def close(
        self, losses: Sequence[Tensor], before: Mapping[tuple, State], after: Mapping[tuple, State], shown: bool
    ) -> None:
        """The round's end: the server's loss at each step, and the small models; kept if `shown` and there is room."""
        self.rounds[-1]["loss"] = torch.stack(list(losses)).cpu().numpy()
        if shown and sum(frame.size for frame in self.frames) < KEPT:
            self.frames.append(Frame(len(self.rounds), self.clients, before, after))

    @property
    def metrics(self) -> dict[str, float]:
        """The round that runs, as numbers."""
        if not self.rounds:
            return {}
        return {name: self.rounds[-1][name] for name in ("dissent", "effective_clients")}

    def snapshot(self, server: nn.Module) -> Student:
        return Student(server, self)

    def last_round(self, student: NetworkModel) -> dict[str, np.ndarray]:
        """`samples` [B, ...], the first public ones; on them the chosen clients' `logits` [m, B, N] and the student's,
        `student` [B, N]; the clients' ids, `members` [m]. Empty before anybody was heard."""
        if not self.rounds:
            return {}
        own = student.logits(self._x).cpu().numpy()
        return {**self._said, "student": own, "members": np.array(self.rounds[-1]["chosen"])}

    @property
    def artefacts(self) -> dict[str, np.ndarray]:
        """`chosen` [T, m] client ids; `dissent`, `effective_clients` [T]; `loss` [T, τ_s]."""
        return {name: np.array([of[name] for of in self.rounds]) for name in self.rounds[0]}

    @property
    def numbers(self) -> dict[str, Any]:
        """`numbers_sent` is the paper's cost: model parameters, down and up, all chosen clients and rounds."""
        return {
            "architectures": [text(kind) for kind in self.kinds],
            "server": text(self.server),
            "public_samples": self._public,
            "numbers_sent": self.numbers_sent,
            **self.metrics,
        }


def text(kind: tuple) -> str:
    """An architecture as people write it: `mlp`, `mlp:16`."""
    return kind[0] if kind[3] is None else f"{kind[0]}:{kind[3]}"


def check_finite(model: nn.Module, what: str, rate: str) -> None:
    """RunError, saying `what` diverged with which `rate`, if the weights of `model` are not finite."""
    if not all(bool(p.isfinite().all()) for p in model.parameters()):
        raise RunError(f"{what} diverged with {rate}: its weights are no longer finite; use a smaller learning rate.")
