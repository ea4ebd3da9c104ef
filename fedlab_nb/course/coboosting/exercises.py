"""Lesson 05, Co-Boosting: its four exercises: two by hand, one on the learner's own runs, one to build.

Their texts are in `exercises.toml`; here is what judges the record. `build` judges the function.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from ...study import Outcomes
from ...study.lesson_runs import LOGITS, alike, runs
from ..kit.claims import BELOW, CLEAR, NOISE, SHORT, Gap, two_kinds
from ..kit.exercises import exercises
from ..kit.problem import Verdict
from .build import STEP


# ------------------------------------------------------------------------------------------------------ exercise 3
def gains(outcomes: Sequence[Any]) -> list[Gap]:
    """For every setting: Co-Boosting's ensemble − equal weights, seed by seed."""
    plain = [o for o in outcomes if o.method == "ensemble" and o.options.get("rule", "logits") == "logits"]
    equal = {conditions: methods["ensemble"] for conditions, methods in alike(plain).items()}
    boosted: dict[Any, dict[int, float]] = defaultdict(dict)
    for o in outcomes:
        if o.method == "coboosting":
            boosted[o.conditions, tuple(sorted(o.options.items()))][o.settings.seed] = o.report.ensemble_curve[-1]
    gaps = []
    for (conditions, options), ensemble in boosted.items():
        settings = conditions[0]
        switched = [f"no {name.upper()}" for name in ("ghs", "dhs", "ee") if (name, False) in options]
        name = ", ".join([f"α = {settings.alpha:g}", f"{settings.clients} clients", *switched])
        gaps.append(Gap(name, ensemble, equal.get(conditions, {})))
    return gaps


LOW, HIGH = 0.1, 10.0  # the lesson prints what happens at these two α


def two_settings(outcomes: Sequence[Any], **words: str) -> Verdict:
    """The claim of exercise 3: somewhere re-weighting clearly helps, elsewhere it does not."""
    # Without EE nothing is re-weighted: no answer to where re-weighting does not help.
    between = [o for o in outcomes if LOW < o.settings.alpha < HIGH]
    gaps = [gap for gap in gains(between) if gap.kind in (CLEAR, SHORT) or "no EE" not in gap.name]
    return two_kinds(gaps, others=(NOISE, BELOW), **words)


def solution_runs() -> Outcomes:
    """Runs that support the claim of exercise 3."""
    methods = ["coboosting", "ensemble"]
    return Outcomes(o for alpha in (0.3, 3) for o in runs(methods, alpha, seeds=5, **LOGITS))


q1, q2, q3, q4 = exercises(__name__, q3=(two_settings, solution_runs), q4=STEP)
