"""What Fed-ET returns: the server's network, its report, and the models of past rounds that are measured at the end."""

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
# What a run of Fed-ET leaves behind: the last round's logits, and numbers of every round.

SHOWN = 200  # public samples whose logits are kept for the pictures
TESTED = 400  # test samples of the same kind
NUMBERS = 500_000  # fewer samples where an array of logits would hold more numbers than this


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
    samples [B, ...]: the first public ones;   logits [m, B, C], student [B, C]: the members' and the server's
    test_rows [B']: at most TESTED test samples, spread evenly;   test_truth [B'];   test_logits [m, B', C],
    test_student [B', C]: the members' and the server's logits
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
        """The report after one more round: the `chosen` `clients` gave the public samples `x` these `logits [m, P, C]`.

        `votes`: their consensus. `ways`: how often their models travelled, 2 for down and up; 1 where clients draw
        their own first weights.
        """
        dissent = votes.dissent_fraction
        count = count_rows_to_keep(logits, SHOWN)
        return replace(
            self,
            public_samples=len(x),
            numbers_sent=(self.numbers_sent or 0) + ways * sum(clients.parameters),
            dissent=dissent,
            effective_clients=float(votes.effective_clients.mean()),
            chosen=_append_row(self.chosen, chosen),
            dissent_by_round=_append_row(self.dissent_by_round, dissent),
            members=np.array(chosen),
            samples=x[:count].cpu().numpy(),
            logits=logits[:, :count].cpu().numpy(),
        )

    def with_student(self, server: NetworkModel) -> FedETReport:
        """With the `server`'s logits as they are now; an empty report before the first votes."""
        if self.samples is None:
            return FedETReport()
        x = torch.as_tensor(self.samples, device=next(server.module.parameters()).device)
        return replace(self, student=server.logits(x).cpu().numpy())


def _append_row(rounds: np.ndarray | None, value: object) -> np.ndarray:
    """`rounds` (None: none yet) with the `value` of one more."""
    row = np.asarray(value)[None]
    if rounds is None:
        return row
    return np.concatenate([rounds, row])


def count_rows_to_keep(logits: Tensor, most: int) -> int:
    """How many samples of `logits [m, B, C]` are kept: at most `most`, and NUMBERS numbers (at least 20)."""
    m, samples, classes = logits.shape
    return min(samples, most, max(20, NUMBERS // (m * classes)))


MOST = 20_000_000  # numbers in the models of past rounds that are kept for measuring


class Student(NetworkModel):
    """A copy of the server's network as it is now; its report has its logits of the public samples."""

    report: FedETReport

    def __init__(self, module: nn.Module, report: FedETReport) -> None:
        super().__init__(copy_model(module))
        self.report = report.with_student(self)


@dataclass(frozen=True)
class PastRound:
    """The models of round `number` (from 1).

    Those that the clients sent [m], and the small ones, one an architecture, before and after the server's head is
    copied into them.
    """

    number: int
    clients: ClientModels
    before: ClientModels
    after: ClientModels


def append_if_room(past: list[PastRound], last: PastRound) -> list[PastRound]:
    """The `past` rounds and the `last` one, which is left out if they hold MOST numbers already."""
    numbers = 0
    for past_round in past:
        numbers += sum(past_round.clients.parameters)
        numbers += sum(past_round.before.parameters)
        numbers += sum(past_round.after.parameters)
    if numbers >= MOST:
        return past
    return [*past, last]


class LargeModel(NetworkModel):
    """The server's network.

    `last`: the models of the last round; the next one would start from `last.after`. `past`: the rounds to measure;
    `vote`: the server's consensus of logits `[m, B, C]`.
    """

    report: FedETReport

    def __init__(
        self,
        module: nn.Module,
        report: FedETReport,
        last: PastRound,
        past: list[PastRound],
        vote: Callable[[Tensor], Consensus],
    ) -> None:
        super().__init__(module)
        self.report = report.with_student(self)
        self.last = last
        self._past = past
        self.vote = vote

    def measured(self, x: Tensor, y: Tensor) -> FedETReport:
        """The models of past rounds are dropped afterwards, so that only the first call measures."""
        if not self._past:
            return self.report
        clients_accuracy = []
        consensus_accuracy = []
        small_before = []
        small_after = []
        for past_round in self._past:
            logits = past_round.clients.logits(x)
            clients_accuracy.append(_mean_accuracy(logits.argmax(-1), y))
            consensus_accuracy.append(_mean_accuracy(self.vote(logits).labels, y))
            small_before.append(_mean_accuracy(past_round.before.logits(x).argmax(-1), y))
            small_after.append(_mean_accuracy(past_round.after.logits(x).argmax(-1), y))
        logits = self.last.clients.logits(x)
        spread = torch.linspace(0, len(x) - 1, count_rows_to_keep(logits, TESTED))
        rows = spread.round().long().unique().to(x.device)
        self.report = replace(
            self.report,
            shown_rounds=[past_round.number for past_round in self._past],
            clients_accuracy=clients_accuracy,
            consensus_accuracy=consensus_accuracy,
            small_before=small_before,
            small_after=small_after,
            test_rows=rows.cpu().numpy(),
            test_truth=y[rows].cpu().numpy(),
            test_logits=logits[:, rows].cpu().numpy(),
            test_student=self.logits(x[rows]).cpu().numpy(),
        )
        self._past = []
        return self.report


def _mean_accuracy(predictions: Tensor, y: Tensor) -> float:
    """The share of classes that are right, over all models of `predictions` (`[N]` or `[M, N]`)."""
    return float((predictions == y).double().mean())
