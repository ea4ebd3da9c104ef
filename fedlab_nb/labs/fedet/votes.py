"""What Fed-ET's clients say together: the consensus under any weights, made from the logits of a
report. Views and the lesson on Fed-ET share it.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...methods.fedet.consensus import Consensus, compute_consensus
from ...panels import PanelState
from ...studies import Outcome


def vote_on_logits(
    logits: np.ndarray, weighting: str = "softmax", temperature: float = 1.0
) -> Consensus:
    """What the server makes of logits `[m, B, C]`."""
    return compute_consensus(torch.as_tensor(logits), weighting, temperature)


def vote_on_test_samples(
    outcome: Outcome, weighting: str = "softmax", temperature: float = 1.0
) -> tuple[Consensus, Tensor]:
    """What the last round's clients say of the report's test samples, and the true classes
    `[B]`.
    """
    report = outcome.report
    vote = vote_on_logits(report.test_logits, weighting, temperature)
    return vote, torch.as_tensor(report.test_truth)


def get_voting_rule(options: Mapping[str, Any]) -> tuple[str, float]:
    """Weighting and temperature of a run."""
    return options["weighting"], options["temperature"]


def get_current_options(state: PanelState) -> Mapping[str, Any]:
    """The method's knobs in the finished run, or in the one that is going on."""
    return state.knobs if state.outcome is None else state.outcome.options


def compute_consensus_accuracy(vote: Consensus, truth: Tensor) -> float:
    """Share of the samples on which the consensus is right, 0–1."""
    return float((vote.labels == truth).double().mean())
