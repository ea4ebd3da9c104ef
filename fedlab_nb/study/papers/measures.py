"""What is read off a run for a table: accuracies are shares, as everywhere here; numbers that were sent are counts."""

from collections.abc import Mapping
from typing import Any

from ..outcome import Outcome

SHARED_OUT = "heads averaged"  # Fed-ET's phase between two models of the server, which no table counts


def accuracy(outcome: Outcome, column: Mapping[str, Any]) -> float:
    """Of the model at the end, on the test images."""
    return outcome.accuracy


def best(outcome: Outcome, column: Mapping[str, Any]) -> float:
    """The best of the curve, as Fed-ET reports it: the round is chosen on test images, so it flatters all methods."""
    return max(point["accuracy"] for point in outcome.history if point["phase"] != SHARED_OUT)


def ensemble(outcome: Outcome, column: Mapping[str, Any]) -> float:
    """Of Co-Boosting's weighted ensemble, at the end."""
    return outcome.report.ensemble_curve[-1]  # type: ignore[attr-defined]


def numbers_to_target(outcome: Outcome, column: Mapping[str, Any]) -> float:
    """Numbers (4 bytes each) that were sent until the curve first reached the column's target, in per cent; where it
    never did, all that the run sent, which is too few."""
    target = column["target"] / 100
    reached = [p["bytes"] for p in outcome.history if p["accuracy"] >= target and p["phase"] != SHARED_OUT]
    return min(reached, default=outcome.bytes_up + outcome.bytes_down) / 4


MEASURES = {"accuracy": accuracy, "best": best, "ensemble": ensemble, "numbers to target": numbers_to_target}
COUNTS = ("numbers to target",)  # no shares
