"""Lesson 04, Fed-ET: its four exercises: two by hand, one on the learner's own record of runs, one to build.

Their texts are in `exercises.toml`; here is what judges the record. `build` judges the function.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...labs.fedet import SIZES
from ...study import Outcomes, lesson_runs
from ...study.lesson_runs import MANY, alike
from ..kit.claims import CLEAR, SHORT, Gap, still
from ..kit.exercises import exercises
from ..kit.problem import Verdict
from .build import CONSENSUS

GOOD, COST = 1.0, 20.0  # from this α on clients teach well, and the lesson prints nothing; points


def runs(methods: Sequence[str] = ("fedet",), alpha: float = 0.1, **settings: Any) -> Outcomes:
    """The lesson's own runs: digits, ten clients of three sizes, three seeds."""
    return lesson_runs.runs(list(methods), alpha, **{"model": SIZES, **settings})


def public_data_decide(outcomes: Sequence[Any]) -> Verdict:
    """The claim of exercise 3: with good clients, too, other public data cost clearly more than COST points."""
    clear, others = [], []
    good = (o for o in outcomes if o.method == "fedet" and o.settings.alpha >= GOOD)
    for by_source in alike(good, _setting_and_source).values():
        own = by_source.pop("held-out", {})
        for source, accuracies in by_source.items():
            gap = Gap(f"held-out − {source}", own, accuracies)
            if gap.kind == SHORT:
                others += [replace(gap, name=source).words("both")] * bool(gap.points)
            else:
                (clear if gap.kind == CLEAR and gap.band.low > COST else others).append(gap.words())
    if clear:
        return Verdict("right", f"Supported by your runs: {clear[0]}. The clients were the same; only P has changed.")
    return still(
        [f"a source that is worse by clearly more than {COST:g} points"],
        others,
        f"no setting with α = {GOOD:g} or more has Fed-ET with held-out and with another source",
    )


def _setting_and_source(outcome: Any) -> tuple[Any, str]:
    """All that was set but the public data and the seed; and where the public data come from."""
    options = {k: v for k, v in outcome.options.items() if k not in ("public", "public_size")}
    return (outcome.conditions, *sorted(options.items())), outcome.options["public"]


def solution_runs() -> list[Any]:
    """Runs that support the claim of exercise 3."""
    return [*runs(alpha=GOOD, seeds=MANY), *runs(alpha=GOOD, seeds=MANY, **{"fedet.public": "glyphs"})]


q1, q2, q3, q4 = exercises(__name__, q3=(public_data_decide, solution_runs), q4=CONSENSUS)
