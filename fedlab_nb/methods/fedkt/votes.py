"""Votes on public samples: labels from a client's teachers, and from all students at the server; what noise costs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from ..base import Report
from ..parts.votes_privacy import laplace, measured_epsilon, moments_epsilon, simple_epsilon

PRIVACY = ("none", "server", "client")


@dataclass(frozen=True, eq=False)
class FedKTReport(Report):
    """queries: public samples that were labelled;   consistent: share of (client, query) whose students agree

    With noise: epsilon_simple, epsilon (moments, at `delta`), and epsilon_measured, that of these very votes (not
    private itself; for privacy=server alone);   changed: share of the server's labels that its noise has changed
    """

    queries: int | None = None
    consistent: float | None = None
    delta: float | None = None
    epsilon_simple: float | None = None
    epsilon: float | None = None
    epsilon_measured: float | None = None
    changed: float | None = None


def teachers_labels(logits: Tensor, gamma: float, stream: torch.Generator) -> Tensor:
    """What teachers' logits `[t, T, C]` vote for, `[T]`, with noise Lap(1/γ) on the counts; γ = 0: without."""
    votes = F.one_hot(logits.argmax(-1), logits.shape[-1]).sum(0)
    if gamma:
        return (votes + laplace(tuple(votes.shape), gamma, stream).to(logits)).argmax(1)
    return (votes + logits.softmax(-1).mean(0)).argmax(1)


def students_labels(
    logits: Tensor, consistent: bool, privacy: str, gamma: float, delta: float, stream: torch.Generator | None
) -> tuple[Tensor, FedKTReport]:
    """Labels `[T]` from the students' logits `[M, s, T, C]`, and what all votes cost; `stream`: of the server's noise.

    consistent: a client counts only where all its students agree;   privacy, γ, δ: as in `FedKT`
    """
    named = logits.argmax(-1)
    agree = (named == named[:, :1]).all(1)  # [M, T]
    each = F.one_hot(named, logits.shape[-1])
    votes = (each * agree[:, None, :, None] if consistent else each).sum((0, 1))  # [T, C]
    report = FedKTReport(len(votes), float(agree.double().mean()))
    plain = (votes + logits.softmax(-1).mean((0, 1))).argmax(1)
    if privacy == "none":
        return plain, report
    students, queries, cost = logits.shape[1], len(votes), 2 * gamma
    if privacy == "server":
        assert stream is not None
        noise = laplace(tuple(votes.shape), gamma, stream)
        labels, cost = (votes + noise.to(votes.device)).argmax(1), cost * students
        own = measured_epsilon(votes, gamma, cost, delta)
        report = replace(report, epsilon_measured=own, changed=float((labels != plain).double().mean()))
    else:
        labels, queries = plain, queries * students
    epsilon, simple = moments_epsilon(cost, queries, delta), simple_epsilon(cost, queries)
    return labels, replace(report, epsilon=epsilon, epsilon_simple=simple, delta=delta)
