"""Calibration: whether a model that says 90 % is right nine times of ten. Read off the scores of one pass.

Confidence is the probability of the class that is named. The diagram sorts answers into BINS bins of equal width,
bin b = (b/15, (b+1)/15], b = 0…14 (Naeini et al., AAAI 2015; Guo et al., ICML 2017). The expected calibration error is
ECE = Σ_b (n_b/N) |share right in b - mean confidence in b|, 0–1. NLL is the mean of -log p(true class), in nats.

Beside it the area under the ROC curve (`ranking`), which asks for less: whether a class's own samples have the higher
scores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

BINS = 15

# What a model's scores are. Probabilities are their softmax, but for those that have none.
SCORES = {
    "logits": "softmax of the logits",
    "log-probabilities": "the method's own probabilities",
    "votes": "",
    "regression": "",
}


@dataclass(frozen=True)
class Calibration:
    """NLL and the counts of a reliability diagram; without numbers where there are no probabilities.

    scores: what the model's scores are, a key of SCORES; "" where nobody has measured
    nll:    mean negative log-likelihood, nats a sample
    counts, right: answers of each bin and how many of them are right, `[BINS]`;   confidence: their sum, `[BINS]`
    auc:    area under the ROC curve, 0–1 (`ranking`); also of scores that are no probabilities
    """

    scores: str = ""
    nll: float | None = None
    counts: tuple[int, ...] = ()
    right: tuple[int, ...] = ()
    confidence: tuple[float, ...] = ()
    auc: float | None = None

    @classmethod
    def restored(cls, values: Mapping[str, Any]) -> Calibration:
        """From the fields by name as JSON has them; those that are not there are without numbers."""
        fields: dict[str, Any] = {
            name: tuple(v) if isinstance(v, list) else v for name, v in values.items()
        }
        return cls(**fields)

    @property
    def ece(self) -> float | None:
        """Expected calibration error, 0–1; None without probabilities."""
        if self.nll is None:
            return None
        gaps = (
            abs(right - confidence)
            for right, confidence in zip(self.right, self.confidence, strict=True)
        )
        return math.fsum(gaps) / sum(self.counts)

    @property
    def mean_confidence(self) -> float | None:
        """How sure the answers are on average, 0–1."""
        return None if self.nll is None else math.fsum(self.confidence) / sum(self.counts)


def calibration(scores: Tensor, labels: Tensor, kind: str = "logits") -> Calibration:
    """Of scores `[N, C]`, or `[M, N, C]` of M models (all their answers together), for labels `[N]`; in float64.

    A score of -inf is a probability that the scores' dtype cannot hold: for the NLL it is the smallest that it can.
    """
    if not SCORES[kind]:
        return Calibration(kind, auc=ranking(scores.double(), labels))
    logs = scores.double().log_softmax(-1)
    truth = labels.expand(logs.shape[:-1])
    own = logs.gather(-1, truth[..., None])[..., 0]
    floor = math.log(torch.finfo(scores.dtype).smallest_normal)
    nll = -torch.where(own.isneginf(), floor, own).mean()
    top, named = logs.max(-1)
    sure = top.exp().flatten()
    edges = torch.arange(1, BINS, device=sure.device, dtype=sure.dtype) / BINS
    at = torch.bucketize(sure, edges)
    columns = torch.stack([torch.ones_like(sure), (named == truth).flatten().double(), sure], 1)
    sums = sure.new_zeros(BINS, 3).index_add_(0, at, columns)
    *bins, last = torch.cat([sums.T.flatten(), nll[None]]).tolist()
    counts, right, confidence = (bins[i * BINS : (i + 1) * BINS] for i in range(3))
    return Calibration(
        kind,
        last,
        tuple(map(int, counts)),
        tuple(map(int, right)),
        tuple(confidence),
        ranking(logs, labels),
    )


def ranking(scores: Tensor, labels: Tensor) -> float | None:
    """AUC of scores `[N, C]`, or the mean over M models' `[M, N, C]`, for labels `[N]`: each class against the rest.

    AUC_c is the chance that a sample of class c has a higher score s_c than one of another class, a tie counting half:
    (sum of the own samples' ranks - P (P + 1)/2) / (P (N - P)), P own samples, equal scores sharing their mean rank
    (Hanley and McNeil 1982). The plain mean over the classes with test samples; None if they are all of one class.
    """
    own = torch.nn.functional.one_hot(labels, scores.shape[-1]).T.to(scores)  # [C, N]
    columns = scores.transpose(-1, -2).contiguous()
    ordered = columns.sort(-1).values
    below = torch.searchsorted(ordered, columns)
    ranks = (below + torch.searchsorted(ordered, columns, right=True) + 1) / 2
    held = own.sum(-1)
    pairs = held * (len(labels) - held)
    areas = ((ranks * own).sum(-1) - held * (held + 1) / 2) / pairs
    return areas[..., pairs > 0].mean().item() if bool((pairs > 0).any()) else None
