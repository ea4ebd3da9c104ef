"""Calibration: whether a model that is 90 % sure is right nine times out of ten. Computed from the scores of one pass.

Confidence is the probability of the predicted class. The reliability diagram sorts answers into BINS = 15 bins of equal
width, bin b = (b/15, (b+1)/15], b = 0…14 (Naeini et al., AAAI 2015; Guo et al., ICML 2017). The expected calibration
error is ECE = Σ_b (n_b/N) |share right in b - mean confidence in b|, 0–1. NLL is the mean of -log p(true class), in
nats.

The area under the ROC curve (`compute_mean_auc_over_classes`) is measured, too. It only asks whether a class's own
samples have higher scores than other samples.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch.nn import functional as F

from fedlab_nb.value_types import JsonValue

from ..tensor_types import ClassScores, ClientLogits, Labels

BINS = 15
ScoreKind = Literal["logits", "log-probabilities", "votes", "regression"]

# {kind of scores: how they become probabilities}; "" if they do not.
SCORES = {
    "logits": "softmax of the logits",
    "log-probabilities": "the method's own probabilities",
    "votes": "",
    "regression": "",
}


@dataclass(frozen=True)
class Calibration:
    """NLL and the counts of a reliability diagram; they are missing if the scores are not probabilities.

    scores: the kind of the model's scores, a key of SCORES; "" if nothing was measured
    nll: mean negative log-likelihood of a sample, in nats
    counts: answers in each bin `[BINS]`
    right: how many of them are right `[BINS]`
    confidence: the sum of their confidences `[BINS]`
    auc: area under the ROC curve, 0–1 (`compute_mean_auc_over_classes`); measured for all kinds of scores
    """

    scores: str = ""
    nll: float | None = None
    counts: tuple[int, ...] = ()
    right: tuple[int, ...] = ()
    confidence: tuple[float, ...] = ()
    auc: float | None = None

    @classmethod
    def from_json(cls, values: Mapping[str, JsonValue]) -> Calibration:
        """The calibration with these fields, in which tuples are lists; missing fields get their defaults."""
        fields: dict[str, Any] = {}
        for name, value in values.items():
            fields[name] = tuple(value) if isinstance(value, list) else value
        return cls(**fields)

    @property
    def ece(self) -> float | None:
        """Expected calibration error, 0–1; None without probabilities."""
        if self.nll is None:
            return None
        pairs = zip(self.right, self.confidence, strict=True)
        gap = math.fsum(abs(right - confidence) for right, confidence in pairs)
        return gap / sum(self.counts)

    @property
    def mean_confidence(self) -> float | None:
        """The mean confidence of the answers, 0–1; None without probabilities."""
        if self.nll is None:
            return None
        return math.fsum(self.confidence) / sum(self.counts)


def measure_calibration(
    scores: ClassScores | ClientLogits, labels: Labels, score_kind: ScoreKind = "logits"
) -> Calibration:
    """The calibration of scores `[N, C]`, or of M models' `[M, N, C]` (all their answers together), for labels `[N]`.

    Computed in float64. A log-probability of -inf comes from a probability that is too small for the scores' dtype; for
    the NLL it is replaced by the smallest that the dtype can hold.
    """
    if not SCORES[score_kind]:
        return Calibration(score_kind, auc=compute_mean_auc_over_classes(scores.double(), labels))
    log_probabilities = scores.double().log_softmax(-1)
    labels_of_all = labels.expand(log_probabilities.shape[:-1])  # [N] or [M, N]
    true_class = log_probabilities.gather(-1, labels_of_all[..., None])[..., 0]
    smallest = math.log(torch.finfo(scores.dtype).smallest_normal)
    nll = -torch.where(true_class.isneginf(), smallest, true_class).mean()

    highest, predicted = log_probabilities.max(-1)
    confidence = highest.exp().flatten()
    is_right = (predicted == labels_of_all).flatten().double()
    edges = torch.arange(1, BINS, device=confidence.device, dtype=confidence.dtype) / BINS
    bins = torch.bucketize(confidence, edges)
    columns = torch.stack([torch.ones_like(confidence), is_right, confidence], 1)
    sums = confidence.new_zeros(BINS, 3).index_add_(0, bins, columns)
    # One copy from the device for all numbers.
    *flat_sums, nll_value = torch.cat([sums.T.flatten(), nll[None]]).tolist()
    return Calibration(
        scores=score_kind,
        nll=nll_value,
        counts=tuple(int(count) for count in flat_sums[:BINS]),
        right=tuple(int(count) for count in flat_sums[BINS : 2 * BINS]),
        confidence=tuple(flat_sums[2 * BINS :]),
        auc=compute_mean_auc_over_classes(log_probabilities, labels),
    )


def compute_mean_auc_over_classes(
    scores: ClassScores | ClientLogits, labels: Labels
) -> float | None:
    """AUC of scores `[N, C]`, or the mean over M models' `[M, N, C]`, for labels `[N]`: each class against the rest.

    AUC_c is the probability that a sample of class c has a higher score s_c than one of another class; a tie counts
    half. If P of the N samples are of class c, it is (sum of their ranks - P (P + 1)/2) / (P (N - P)), where equal
    scores share their mean rank (Hanley and McNeil 1982). The result is the plain mean of AUC_c over the classes with
    test samples; None if all samples are of one class.
    """
    is_own = F.one_hot(labels, scores.shape[-1]).T.to(scores)  # [C, N]
    columns = scores.transpose(-1, -2).contiguous()  # [..., C, N]
    ordered = columns.sort(-1).values
    lower = torch.searchsorted(ordered, columns)  # how many scores are lower
    lower_or_equal = torch.searchsorted(ordered, columns, right=True)
    ranks = (lower + lower_or_equal + 1) / 2
    own_count = is_own.sum(-1)  # [C], P in the docstring
    pairs = own_count * (len(labels) - own_count)
    rank_sums = (ranks * is_own).sum(-1)
    areas = (rank_sums - own_count * (own_count + 1) / 2) / pairs
    has_pairs = pairs > 0
    if not bool(has_pairs.any()):
        return None
    return areas[..., has_pairs].mean().item()
