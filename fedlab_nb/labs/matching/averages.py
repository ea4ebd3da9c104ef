"""The runs behind two views: accuracy against α for both kinds of start, and ways to average the same uploads."""

from collections.abc import Mapping
from typing import Any

ALPHAS = (0.1, 1.0, 100.0)
STARTS = {"same": "common start", "different": "different starts"}
# way in words -> the method, its own settings
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain average": ("fedavg", {}),
    "task arithmetic, scale 0.5": ("ties", {"ties.rule": "task", "ties.scale": 0.5}),
    "TIES, 20 % kept": ("ties", {"ties.rule": "ties", "ties.keep": 0.2}),
    "DARE, 50 % dropped": ("ties", {"ties.rule": "task", "ties.drop": 0.5}),
    "matched, OT-Fusion": ("matching", {"matching.rule": "greedy"}),
    "matched, Git Re-Basin": ("matching", {"matching.rule": "rebasin"}),
    "average of predictions": ("ensemble", {"ensemble.rule": "probabilities"}),
}


def lines(outcomes: Mapping[tuple[str, float], Mapping[int, Any]]) -> dict[str, dict[str, dict]]:
    """{start: {"plain" or "matched": {α: {seed: accuracy 0–1}}}} of runs of matching, {(start, α): {seed: outcome}}.

    The plain average is that of the very same uploads.
    """
    made: dict[str, dict[str, dict]] = {start: {"plain": {}, "matched": {}} for start, _ in outcomes}
    for (start, alpha), by_seed in outcomes.items():
        made[start]["matched"][alpha] = {seed: o.accuracy for seed, o in by_seed.items()}
        made[start]["plain"][alpha] = {seed: o.report.average_accuracy for seed, o in by_seed.items()}
    return made
