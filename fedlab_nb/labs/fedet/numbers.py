"""Fed-ET's numbers for pictures and lessons, all made from a run's report and the points of its curve."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...declared import declared
from ...methods.fedet.consensus import Consensus, consensus
from ...methods.fedet.model import FedETReport
from ...study import Outcome, Outcomes, lesson_runs

SIZES = declared("labs/fedet/lab.toml")["settings"]["model"]  # the small models of lab and lesson, dealt out in turn
OTHERS = {"equal weights": "uniform", "variance of raw logits": "logit-variance", "raw logits summed": "logits"}
HEATS = tuple(float(t) for t in np.geomspace(0.1, 100, 19))
Points = Sequence[Mapping[str, Any]]  # of a curve: dicts with phase, progress, accuracy, bytes
Traffic = Sequence[tuple[int, float, float]]  # (round, numbers sent so far, accuracy 0–1)


def runs(methods: Sequence[str] = ("fedet",), alpha: float = 0.1, **settings: Any) -> Outcomes:
    """The lesson's own runs: digits, ten clients of three sizes, three seeds."""
    return lesson_runs.runs(list(methods), alpha, **{"model": SIZES, **settings})


# ------------------------------------------------------------------------------------------------- what the clients say
def votes(logits: np.ndarray, weighting: str = "softmax", temperature: float = 1.0) -> Consensus:
    """What the server makes of logits `[m, B, C]`."""
    return consensus(torch.as_tensor(logits), weighting, temperature)


def votes_on_test(outcome: Outcome, weighting: str = "softmax", temperature: float = 1.0) -> tuple[Consensus, Tensor]:
    """What the last round's clients say of the report's test samples, and the true classes `[B]`."""
    report = outcome.report
    return votes(report.test_logits, weighting, temperature), torch.as_tensor(report.test_truth)


def rule_of(options: Mapping[str, Any]) -> tuple[str, float]:
    """Weighting and temperature of a run."""
    return options["weighting"], options["temperature"]


def as_image(x: np.ndarray) -> np.ndarray | None:
    """`[H, W]` or `[H, W, 3]` of one sample `[C, H, W]`; None of a feature row."""
    if x.ndim != 3:
        return None
    return x.transpose(1, 2, 0) if len(x) == 3 else x[0]


def softmax(z: np.ndarray) -> np.ndarray:
    """Over the last axis."""
    return torch.as_tensor(z).softmax(-1).numpy()


def share_right(vote: Consensus, truth: Tensor) -> float:
    """Accuracy of the consensus, 0–1."""
    return float((vote.labels == truth).double().mean())


def temperature_curves(outcome: Outcome) -> tuple[list[float], list[float], dict[str, float]]:
    """At each of HEATS, accuracy of the consensus on test samples and effective clients; accuracy of the OTHERS."""
    hot = [votes_on_test(outcome, "softmax", heat) for heat in HEATS]
    others = {name: share_right(*votes_on_test(outcome, rule)) for name, rule in OTHERS.items()}
    return [share_right(*vote) for vote in hot], [float(c.effective_clients.mean()) for c, _ in hot], others


# -------------------------------------------------------------------------------------------------------------- dissent
def by_dissent(outcome: Outcome, klass: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of test samples (of class `klass`, if there are any): dissent, whether the consensus is right, and the server."""
    vote, truth = votes_on_test(outcome, *rule_of(outcome.options))
    rows = truth == klass if klass is not None and bool((truth == klass).any()) else truth >= 0
    student = torch.as_tensor(outcome.report.test_student).argmax(1)
    return vote.mass[rows].numpy(), (vote.labels == truth)[rows].numpy(), (student == truth)[rows].numpy()


def thirds(mass: np.ndarray, right: np.ndarray) -> list[float]:
    """Share of right answers in the thirds with the least, middle and most dissent; an empty third counts as its
    neighbour before it."""
    shares: list[float] = []
    for rows in np.array_split(np.argsort(mass, kind="stable"), 3):
        shares.append(float(right[rows].mean()) if len(rows) else shares[-1])
    return shares


def answered(mass: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Share answered and accuracy among those, for every threshold that changes something, from few to all."""
    order = np.argsort(mass, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(mass[order]) > 0), len(mass) - 1)
    return (ends + 1) / len(mass), np.cumsum(right[order])[ends] / (ends + 1)


def ranked(mass: np.ndarray, right: np.ndarray) -> float:
    """AUC: in which share of the pairs (a wrong answer, a right one) the wrong one has more dissent; ties half."""
    wrong, good = mass[~right.astype(bool)][:, None], mass[right.astype(bool)]
    if not wrong.size or not good.size:
        return float("nan")
    return float((wrong > good).mean() + 0.5 * (wrong == good).mean())


# ------------------------------------------------------------------------------------------------------------ the loop
def loop_curves(report: FedETReport, points: Points, total: int) -> dict[str, dict[int, float]]:
    """{name: {round from 1: share}} as far as known: of the server before and after distillation, and what the report
    has of the others; `progress` of the points counts the run's steps."""
    before = {int(p["progress"] * total) + 1: p["accuracy"] for p in points if p["phase"] == "heads averaged"}
    after = {round(p["progress"] * total): p["accuracy"] for p in points if p["phase"] == "rounds"}
    curves = {"server_before": before, "server_after": after}
    if report.shown_rounds:
        measured = {"consensus": report.consensus_accuracy, "clients": report.clients_accuracy}
        measured |= {"small_before": report.small_before, "small_after": report.small_after}
        curves |= {name: dict(zip(report.shown_rounds, shares, strict=True)) for name, shares in measured.items()}
    if report.dissent_by_round is not None:
        curves["dissent"] = dict(enumerate(report.dissent_by_round.tolist(), 1))
    return curves


def student_points(points: Points, steps: int) -> list[tuple[int, float]]:
    """(server steps, accuracy) in one shot, whose first half is local training."""
    student = [p for p in points if p["phase"] == "distillation"]
    return [(round(steps * (2 * p["progress"] - 1)), p["accuracy"]) for p in student] or [(0, 0.0)]


# -------------------------------------------------------------------------------------------------------------- traffic
def by_round(outcome: Outcome) -> list[tuple[int, float, float]]:
    """(round, numbers of 4 bytes sent so far, accuracy) at the end of each round that the curve shows."""
    total = outcome.options["rounds"]
    if total == 1:
        return [(1, outcome.ledger.total / 4, outcome.accuracy)]
    points = [p for p in outcome.history if p["phase"] == "rounds"]
    return [(round(p["progress"] * total), p["bytes"] / 4, p["accuracy"]) for p in points]


def first_reached(of: Mapping[int, Traffic], target: float) -> tuple[float, float] | None:
    """(rounds, numbers) at which `target` is first reached, means over the seeds; None unless every seed gets there."""
    firsts = [next((p for p in points if p[2] >= target), None) for points in of.values()]
    if not firsts or any(p is None for p in firsts):
        return None
    return float(np.mean([p[0] for p in firsts])), float(np.mean([p[1] for p in firsts]))
