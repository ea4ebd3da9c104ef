"""Lesson 11, names of neurons: its exercises, two by hand, one on the learner's own record, one to build.

Their texts are in `exercises.toml`; here is what judges the record.
"""

from collections.abc import Sequence

from ...study import Outcome, Outcomes
from ...study.lesson_runs import alike, runs
from ..kit.claims import Gap, two_kinds
from ..kit.exercises import exercises
from ..kit.problem import Verdict
from .build import MATCH

STARTS = {"same": "common start", "different": "different starts"}


def two_starts(outcomes: Sequence[Outcome], **words: str) -> Verdict:
    """The claim of exercise 3: at one α matching is clearly better than FedAvg, or not, by the setting."""
    by_alpha: dict[float, list[Gap]] = {}
    for (settings, _), methods in alike(outcomes).items():
        if methods.keys() & {"matching", "fedavg"}:
            name = f"α = {settings.alpha:g}, {STARTS[settings.init]}"
            by_alpha.setdefault(settings.alpha, []).append(Gap(name, methods["matching"], methods["fedavg"]))
    verdicts = [two_kinds(gaps, **words) for gaps in by_alpha.values()] or [two_kinds([], **words)]
    return next((verdict for verdict in verdicts if verdict.state == "right"), verdicts[0])


def both_starts() -> Outcomes:
    """Runs that support the claim of exercise 3."""
    return Outcomes(o for init in STARTS for o in runs(["fedavg", "matching"], 100, init=init))


q1, q2, q3, q4 = exercises(__name__, q3=(two_starts, both_starts), q4=MATCH)
