"""The consensus of Fed-ET's clients under any weighting, computed from the logits that a report
keeps. The lab's views and the lesson on Fed-ET share it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ...methods.fedet.consensus import Consensus, Weighting, compute_consensus
from ...panels import PanelState
from ...studies import Outcome
from ...tensor_types import Labels
from ...value_types import Accuracy0To1
from ..array_types import ClientLogits


class ConsensusAndLabels(NamedTuple):
    """The clients' consensus on B samples, and the true classes `[B]`."""

    consensus: Consensus
    true_labels: Tensor


class WeightingAndTemperature(NamedTuple):
    """How Fed-ET weights the clients' answers, and the temperature of their softmax."""

    weighting: Weighting
    temperature: float


def compute_consensus_of_logits(
    client_logits: ClientLogits, weighting: Weighting = "softmax", temperature: float = 1.0
) -> Consensus:
    """Compute the consensus that the server makes of `client_logits [m, B, C]`."""
    return compute_consensus(torch.as_tensor(client_logits), weighting, temperature)


def compute_consensus_on_test_samples(
    fedet_outcome: Outcome, weighting: Weighting = "softmax", temperature: float = 1.0
) -> ConsensusAndLabels:
    """Compute the consensus of the last round's clients on the report's test samples."""
    report = fedet_outcome.report
    vote = compute_consensus_of_logits(report.test_logits, weighting, temperature)
    return ConsensusAndLabels(vote, torch.as_tensor(report.test_truth))


def get_weighting_and_temperature(method_options: Mapping[str, Any]) -> WeightingAndTemperature:
    """Return the weighting and the temperature of a run."""
    return WeightingAndTemperature(method_options["weighting"], method_options["temperature"])


def get_method_options_of_run(state: PanelState) -> Mapping[str, Any]:
    """Return the method's knobs in the finished run, or in the one in progress."""
    return state.knobs if state.outcome is None else state.outcome.options


def compute_consensus_accuracy(consensus: Consensus, true_labels: Labels) -> Accuracy0To1:
    """Compute the share of samples on which the consensus is right, 0–1."""
    return float((consensus.labels == true_labels).double().mean())
