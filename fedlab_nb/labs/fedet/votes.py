"""What Fed-ET's clients say together of remembered samples: the consensus under any weights, made from a report's
logits. Views and lesson 04 share it.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...methods.fedet.consensus import Consensus, consensus
from ...panels import PanelState
from ...studies import Outcome


def votes(logits: np.ndarray, weighting: str = "softmax", temperature: float = 1.0) -> Consensus:
    """What the server makes of logits `[m, B, C]`."""
    return consensus(torch.as_tensor(logits), weighting, temperature)


def votes_on_test(
    outcome: Outcome, weighting: str = "softmax", temperature: float = 1.0
) -> tuple[Consensus, Tensor]:
    """What the last round's clients say of the report's test samples, and the true classes `[B]`."""
    report = outcome.report
    return votes(report.test_logits, weighting, temperature), torch.as_tensor(report.test_truth)


def rule_of(options: Mapping[str, Any]) -> tuple[str, float]:
    """Weighting and temperature of a run."""
    return options["weighting"], options["temperature"]


def options_of(state: PanelState) -> Mapping[str, Any]:
    """The method's knobs in the finished run, or in the one that goes on."""
    return state.knobs if state.outcome is None else state.outcome.options


def share_right(vote: Consensus, truth: Tensor) -> float:
    """Accuracy of the consensus, 0–1."""
    return float((vote.labels == truth).double().mean())
