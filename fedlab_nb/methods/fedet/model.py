"""What Fed-ET returns: the server's network, and beside it the small models and those of past rounds to be measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from ...models.state import copy_model
from ...training import ClientModels
from ..base import NetworkModel, Report
from .consensus import Consensus

# --------------------------------------------------------------------------------------------------------------- report
# What a run of Fed-ET leaves behind: what the last round's clients said, and numbers of every round.

SHOWN, TESTED = 200, 400  # public and test samples whose logits are kept for the pictures,
NUMBERS = 500_000  # fewer where an array of them would hold more numbers than this


@dataclass(frozen=True, eq=False)
class FedETReport(Report):
    """T rounds, m clients in each, C classes; `members` are the last round's clients.

    architectures, server: the clients' networks and the server's, as people write them ("mlp", "mlp:16")
    public_samples: how many;   numbers_sent: the paper's cost, parameters down and up, all chosen clients and rounds
    dissent: share of votes against the consensus;   effective_clients: mean of 1 / Σ ω²;   both of the last round
    small_parameters: numbers in each architecture's small model
    shown_rounds: those with a point in the curve, from 1; there, shares of test samples that are classified right:
    clients_accuracy (their mean), consensus_accuracy, small_before and small_after (mean of the small models before
    and after the server's head is copied in)

    chosen [T, m]: the clients;   dissent_by_round [T];   loss [T, J_s]: the server's at each step
    samples [B, ...]: the first public ones;   logits [m, B, C], student [B, C]: what members and server say of them
    test_rows [B']: at most TESTED test samples, spread evenly;   test_truth [B'];   test_logits [m, B', C],
    test_student [B', C]: what members and server say of them
    """

    architectures: list[str] | None = None
    server: str | None = None
    public_samples: int | None = None
    numbers_sent: int | None = None
    dissent: float | None = None
    effective_clients: float | None = None
    small_parameters: list[int] | None = None
    shown_rounds: list[int] | None = None
    clients_accuracy: list[float] | None = None
    consensus_accuracy: list[float] | None = None
    small_before: list[float] | None = None
    small_after: list[float] | None = None
    chosen: np.ndarray | None = None
    dissent_by_round: np.ndarray | None = None
    loss: np.ndarray | None = None
    members: np.ndarray | None = None
    samples: np.ndarray | None = None
    logits: np.ndarray | None = None
    student: np.ndarray | None = None
    test_rows: np.ndarray | None = None
    test_truth: np.ndarray | None = None
    test_logits: np.ndarray | None = None
    test_student: np.ndarray | None = None

    def with_votes(
        self,
        chosen: Sequence[int],
        clients: ClientModels,
        votes: Consensus,
        logits: Tensor,
        x: Tensor,
        ways: int = 2,
    ) -> FedETReport:
        """After the `chosen` `clients` of one more round gave `logits [m, P, N]` to the public samples `x`, `votes` in
        all. `ways` their models travelled: 2, down and up; 1 where clients draw their own first weights."""
        dissent, effective = votes.dissent_fraction, float(votes.effective_clients.mean())
        count = room(logits, SHOWN)
        sent = (self.numbers_sent or 0) + ways * sum(clients.parameters)
        return replace(
            self, public_samples=len(x), numbers_sent=sent, dissent=dissent, effective_clients=effective,
            chosen=_one_more(self.chosen, chosen), dissent_by_round=_one_more(self.dissent_by_round, dissent),
            members=np.array(chosen),
            samples=x[:count].cpu().numpy(), logits=logits[:, :count].cpu().numpy(),
        )  # fmt: skip

    def with_student(self, server: NetworkModel) -> FedETReport:
        """With what the `server` says now; nothing at all before anybody was heard."""
        if self.samples is None:
            return FedETReport()
        x = torch.as_tensor(self.samples, device=next(server.module.parameters()).device)
        return replace(self, student=server.logits(x).cpu().numpy())


def _one_more(rounds: np.ndarray | None, value: object) -> np.ndarray:
    """`value` of one more round, after those of the `rounds` so far."""
    row = np.asarray(value)[None]
    return row if rounds is None else np.concatenate([rounds, row])


def room(logits: Tensor, most: int) -> int:
    """How many samples of `logits [m, B, C]` are kept: at most `most`, and NUMBERS numbers (but 20 samples)."""
    m, samples, classes = logits.shape
    return min(samples, most, max(20, NUMBERS // (m * classes)))


MOST = 20_000_000  # numbers in the models of past rounds that wait to be measured


class Student(NetworkModel):
    """A copy of the server's network as it is now; its report has what it says of the public samples."""

    report: FedETReport

    def __init__(self, module: nn.Module, report: FedETReport) -> None:
        super().__init__(copy_model(module))
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
    numbers = sum(
        sum(models.parameters) for one in past for models in (one.clients, one.before, one.after)
    )
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
        self.report, self.last, self._past, self._votes = (
            report.with_student(self),
            last,
            past,
            votes,
        )

    def measured(self, x: Tensor, y: Tensor) -> FedETReport:
        """Models of past rounds are let go, so that only the first call measures."""
        if self._past:
            rounds, *shares = zip(*(self._accuracies(one, x, y) for one in self._past), strict=True)
            clients, votes, before, after = map(list, shares)
            logits = self.last.clients.logits(x)
            rows = (
                torch.linspace(0, len(x) - 1, room(logits, TESTED))
                .round()
                .long()
                .unique()
                .to(x.device)
            )
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
