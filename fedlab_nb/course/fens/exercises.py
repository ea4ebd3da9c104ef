"""Lesson 03, FENS: its four exercises. By hand, on bytes, on the learner's own record of runs, and one to build.

Their texts are in `exercises.toml`; here is what judges the record, in `build.py` what judges the function.
"""

from collections.abc import Hashable, Sequence

from ...methods.fens.aggregators import TRAINED
from ...study import Outcome
from ...study.lesson_runs import MANY, alike, runs
from ..kit.claims import BELOW, NOISE, Gap, two_kinds
from ..kit.exercises import exercises
from ..kit.problem import Verdict
from .build import FENS


def by_rule(outcome: Outcome) -> tuple[Hashable, str] | None:
    """Runs of FENS that differ in the rule alone: all that was set, and the rule."""
    return (outcome.conditions, outcome.options["aggregator"]) if outcome.method == "fens" else None


def two_skews(outcomes: Sequence[Outcome], **words: str) -> Verdict:
    """The claim of exercise 3: under skew the trained rule is clearly better than class counts, elsewhere it is not.
    The settings are found on validation images; the test images are looked at for these two alone."""
    test, validation = (alike(outcomes, by_rule, validation=judged) for judged in (False, True))
    gaps = []
    for (settings, more), rules in validation.items():
        own = test[settings, more]
        for rule in TRAINED:
            if set(rules.get(rule, ())) & set(rules.get("weighted", ())):
                name = f"α = {settings.alpha:g}, {rule} − weighted"
                gaps.append(Gap(name, rules[rule], rules["weighted"], Gap(name, own[rule], own["weighted"])))
    return two_kinds(gaps, others=(NOISE, BELOW), **words)


def solution_runs() -> list[Outcome]:
    """Runs that support the claim of exercise 3."""
    rules = [{"fens.aggregator": rule} for rule in ("weighted", "per_class")]
    return [o for alpha in (0.05, 1) for rule in rules for o in runs(["fens"], alpha, seeds=MANY, **rule)]


q1, q2, q3, q4 = exercises(__name__, q3=(two_skews, solution_runs), q4=FENS)
