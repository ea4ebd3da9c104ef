"""What Fed-ET returns: the server's network, its report, and the models of past rounds that are measured at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from ...data.input_types import ArrayLike
from ...models.state import copy_model
from ...tensor_types import ClientLogits, ClientPredictions, Labels, Predictions, Samples
from ...training import ClientModels
from ...value_types import Accuracy0To1
from ..base import NetworkModel, Report
from ..context import ClientIndex
from .consensus import Consensus

# --------------------------------------------------------------------------------------------------------------- report
# What a run of Fed-ET leaves behind: the last round's logits, and numbers of every round.

SHOWN = 200  # public samples whose logits are kept for the pictures
TESTED = 400  # test samples of the same kind
NUMBERS = 500_000  # fewer samples where an array of logits would hold more numbers than this


@dataclass(frozen=True, eq=False)
class FedETReport(Report):
    """T rounds, m clients in each, C classes; `members` are the last round's clients.

    architectures, server: the clients' networks and the server's, as people write them ("mlp",
        "mlp:16")
    public_samples: how many
    numbers_sent: the paper's cost, parameters down and up, all chosen clients and rounds
    dissent: share of votes against the consensus, in the last round
    effective_clients: mean of 1 / Σ ω² in the last round
    small_parameters: numbers in each architecture's small model
    shown_rounds: those with a point in the curve, from 1
    clients_accuracy, consensus_accuracy: in these rounds, on test samples, 0–1: the clients' mean,
        and the consensus
    small_before, small_after: the same for the mean of the small models, before and after the
        server's head is copied in

    chosen [T, m]: the clients
    dissent_by_round [T]: share of votes against the consensus
    loss [T, J_s]: the server's at each step
    samples [B, ...]: the first public ones
    logits [m, B, C], student [B, C]: the members' and the server's
    test_rows [B']: at most TESTED test samples, spread evenly
    test_truth [B']: their labels
    test_logits [m, B', C], test_student [B', C]: the members' and the server's logits
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

    def copy_with_votes_of_round(
        self,
        chosen_clients: Sequence[ClientIndex],
        clients: ClientModels,
        votes: Consensus,
        client_logits: ClientLogits,
        public_samples: Samples,
        models_sent_per_client: int = 2,
    ) -> FedETReport:
        """The report after one more round.

        clients: the models of the `chosen_clients`
        votes: the consensus of their `client_logits [m, P, C]` on `public_samples`
        models_sent_per_client: how often their models travelled: 2 for down and up, 1 where clients draw their own
            first weights
        """
        dissent = votes.dissent_fraction
        count = count_samples_to_keep_in_report(client_logits, SHOWN)
        return replace(
            self,
            public_samples=len(public_samples),
            numbers_sent=(self.numbers_sent or 0)
            + models_sent_per_client * sum(clients.parameters),
            dissent=dissent,
            effective_clients=float(votes.effective_clients.mean()),
            chosen=_append_value_of_round(self.chosen, chosen_clients),
            dissent_by_round=_append_value_of_round(self.dissent_by_round, dissent),
            members=np.array(chosen_clients),
            samples=public_samples[:count].cpu().numpy(),
            logits=client_logits[:, :count].cpu().numpy(),
        )

    def copy_with_student_logits(self, server_model: NetworkModel) -> FedETReport:
        """With the `server_model`'s logits as they are now; before the first votes an empty report."""
        if self.samples is None:
            return FedETReport()
        x = torch.as_tensor(self.samples, device=next(server_model.module.parameters()).device)
        return replace(self, student=server_model.logits(x).cpu().numpy())


def _append_value_of_round(values_of_rounds: np.ndarray | None, new_value: ArrayLike) -> np.ndarray:
    """A copy of `values_of_rounds [T, ...]` (None: none yet) with the `new_value [...]` of one more round."""
    row = np.asarray(new_value)[None]
    if values_of_rounds is None:
        return row
    return np.concatenate([values_of_rounds, row])


def count_samples_to_keep_in_report(client_logits: ClientLogits, maximum_samples: int) -> int:
    """The number of samples of `client_logits [m, B, C]` to keep: at most `maximum_samples`, and NUMBERS
    numbers (at least 20)."""
    m, samples, classes = client_logits.shape
    return min(samples, maximum_samples, max(20, NUMBERS // (m * classes)))


MOST = 20_000_000  # numbers in the models of past rounds that are kept for measuring


class Student(NetworkModel):
    """A copy of the server's network as it is now; its report has its logits of the public samples."""

    report: FedETReport

    def __init__(self, module: nn.Module, report: FedETReport) -> None:
        super().__init__(copy_model(module))
        self.report = report.copy_with_student_logits(self)


@dataclass(frozen=True)
class PastRound:
    """The models of one round.

    number: of the round, from 1
    clients: the m models that the clients sent
    before, after: the small models, one an architecture, before and after the server's head is copied into them
    """

    number: int
    clients: ClientModels
    before: ClientModels
    after: ClientModels


def join_past_rounds_if_memory_allows(
    past_rounds: list[PastRound], new_round: PastRound
) -> list[PastRound]:
    """A list of `past_rounds` and `new_round`, which is left out if the others hold MOST numbers already."""
    numbers = 0
    for past_round in past_rounds:
        numbers += sum(past_round.clients.parameters)
        numbers += sum(past_round.before.parameters)
        numbers += sum(past_round.after.parameters)
    if numbers >= MOST:
        return past_rounds
    return [*past_rounds, new_round]


class LargeModel(NetworkModel):
    """The server's network.

    last: the models of the last round; the next one would start from `last.after`
    past: the rounds to measure
    compute_consensus: the server's consensus of logits `[m, B, C]`.
    """

    report: FedETReport

    def __init__(
        self,
        module: nn.Module,
        report: FedETReport,
        last: PastRound,
        past: list[PastRound],
        compute_consensus: Callable[[ClientLogits], Consensus],
    ) -> None:
        super().__init__(module)
        self.report = report.copy_with_student_logits(self)
        self.last = last
        self._past = past
        self.compute_consensus = compute_consensus

    def complete_report_on_test_samples(self, samples: Samples, labels: Labels) -> FedETReport:
        """The models of past rounds are dropped afterwards, so that only the first call measures."""
        if not self._past:
            return self.report
        clients_accuracy = []
        consensus_accuracy = []
        small_before = []
        small_after = []
        for past_round in self._past:
            logits = past_round.clients.logits(samples)
            clients_accuracy.append(_compute_mean_accuracy(logits.argmax(-1), labels))
            consensus_accuracy.append(
                _compute_mean_accuracy(self.compute_consensus(logits).labels, labels)
            )
            small_before.append(
                _compute_mean_accuracy(past_round.before.logits(samples).argmax(-1), labels)
            )
            small_after.append(
                _compute_mean_accuracy(past_round.after.logits(samples).argmax(-1), labels)
            )
        logits = self.last.clients.logits(samples)
        spread = torch.linspace(
            0, len(samples) - 1, count_samples_to_keep_in_report(logits, TESTED)
        )
        rows = spread.round().long().unique().to(samples.device)
        self.report = replace(
            self.report,
            shown_rounds=[past_round.number for past_round in self._past],
            clients_accuracy=clients_accuracy,
            consensus_accuracy=consensus_accuracy,
            small_before=small_before,
            small_after=small_after,
            test_rows=rows.cpu().numpy(),
            test_truth=labels[rows].cpu().numpy(),
            test_logits=logits[:, rows].cpu().numpy(),
            test_student=self.logits(samples[rows]).cpu().numpy(),
        )
        self._past = []
        return self.report


def _compute_mean_accuracy(
    predictions: Predictions | ClientPredictions, labels: Labels
) -> Accuracy0To1:
    """The share of classes that are right, over all models of `predictions` (`[N]` or `[M, N]`)."""
    return float((predictions == labels).double().mean())
