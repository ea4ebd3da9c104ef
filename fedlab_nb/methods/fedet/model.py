"""What Fed-ET returns: the server's network, and beside it the small models and those of past rounds to be measured."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from ...models.state import copied
from ...training import ClientModels
from ..base import NetworkModel
from .consensus import Consensus
from .report import TESTED, FedETReport, room

MOST = 20_000_000  # numbers in the models of past rounds that wait to be measured


class Student(NetworkModel):
    """A copy of the server's network as it is now; its report has what it says of the public samples."""

    report: FedETReport

    def __init__(self, module: nn.Module, report: FedETReport) -> None:
        super().__init__(copied(module))
        self.report = report.with_student(self)


@dataclass(frozen=True)
class PastRound:
    """The models of round `number` (from 1): those that the clients sent [m], and the small ones, one an architecture,
    before and after the server's head is copied into them."""

    number: int
    clients: ClientModels
    before: ClientModels
    after: ClientModels


def with_room(past: list[PastRound], last: PastRound) -> list[PastRound]:
    """The `past` rounds and the `last` one, which is left out if MOST numbers are there already."""
    numbers = sum(sum(models.parameters) for one in past for models in (one.clients, one.before, one.after))
    return [*past, last] if numbers < MOST else past


class LargeModel(NetworkModel):
    """The server's network. `last`: the models of the last round; the next one would start from `last.after`. `past`:
    rounds to be measured; `votes`: what the server makes of logits `[m, B, C]`."""

    report: FedETReport

    def __init__(
        self, module: nn.Module, report: FedETReport, last: PastRound, past: list[PastRound],
        votes: Callable[[Tensor], Consensus],
    ) -> None:  # fmt: skip
        super().__init__(module)
        self.report, self.last, self._past, self._votes = report.with_student(self), last, past, votes

    def measured(self, x: Tensor, y: Tensor) -> FedETReport:
        """Models of past rounds are let go, so that only the first call measures."""
        if self._past:
            rounds, *shares = zip(*(self._accuracies(one, x, y) for one in self._past), strict=True)
            clients, votes, before, after = map(list, shares)
            logits = self.last.clients.logits(x)
            rows = torch.linspace(0, len(x) - 1, room(logits, TESTED)).round().long().unique().to(x.device)
            self.report = replace(
                self.report, shown_rounds=list(rounds), clients_accuracy=clients, consensus_accuracy=votes,
                small_before=before, small_after=after, test_rows=rows.cpu().numpy(),
                test_truth=y[rows].cpu().numpy(), test_logits=logits[:, rows].cpu().numpy(),
                test_student=self.logits(x[rows]).cpu().numpy(),
            )  # fmt: skip
            self._past = []
        return self.report

    def _accuracies(self, one: PastRound, x: Tensor, y: Tensor) -> tuple[float, ...]:
        """The round, and the shares of `x, y` that its clients, their consensus and its small models classify right."""
        logits = one.clients.logits(x)
        small = [models.logits(x).argmax(-1) for models in (one.before, one.after)]
        answers = [logits.argmax(-1), self._votes(logits).labels, *small]
        return one.number, *(float((answer == y).double().mean()) for answer in answers)
