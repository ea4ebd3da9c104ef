"""Lesson 07, FedLPA: its exercises, two by hand, two on the learner's own record of runs, one to build.

Their texts are in `exercises.toml`; here is what judges the record.
"""

import dataclasses
from collections.abc import Hashable, Sequence

from ...study import Outcome, Outcomes
from ...study.lesson_runs import MANY, alike, runs
from ..kit.claims import ENOUGH, Gap, still, two_kinds
from ..kit.exercises import exercises
from ..kit.problem import Verdict
from ..kit.runs import chosen_gaps
from .build import PRODUCT


# ------------------------------------------------------------------------------------------------ on the record
def by_solver(outcome: Outcome) -> tuple[Hashable, str] | None:
    """Runs of FedLPA that differ in the solver alone: all the other options, and the solver."""
    if outcome.method != "fedlpa":
        return None
    others = tuple((name, value) for name, value in outcome.options.items() if name not in ("solver", "iterations"))
    return (outcome.conditions, others), outcome.options["solver"]


def two_dampings(outcomes: Sequence[Outcome], **words: str) -> Verdict:
    """The claim of exercise 3: at one λ_damp the exact solution clearly beats the shortcut, at another not. Both are
    found on validation images; the test images are looked at for these two alone."""
    gaps = chosen_gaps(outcomes, by_solver, "cg", "ea", lambda at: f"λ_damp = {dict(at[1])['damping']:g}")
    return two_kinds(gaps, **words)


def dampings() -> Outcomes:
    """Runs that support the claim of exercise 3."""
    settings = [{"damping": damping, "solver": solver} for damping in (1e-4, 1e-6) for solver in ("cg", "ea")]
    return Outcomes(outcome for setting in settings for outcome in runs("fedlpa", seeds=MANY, **setting))


MARGIN, NEAR = 30.0, 10.0  # points; far inside what was measured


def by_start(outcome: Outcome) -> tuple[Hashable, tuple[str, str]] | None:
    """Runs that differ in the kind of start: the setting without it, and the start with the method."""
    if outcome.method not in ("fedavg", "fedlpa"):
        return None
    settings, recipe = outcome.conditions
    return (dataclasses.replace(settings, init="same"), recipe), (settings.init, outcome.method)


def different_starts(outcomes: Sequence[Outcome]) -> Verdict:
    """The claim of exercise 4: with different initial models FedLPA stays where it was, far above the average."""
    seen = []
    for starts in alike(outcomes, by_start).values():
        fedavg, fedlpa, same = starts["different", "fedavg"], starts["different", "fedlpa"], starts["same", "fedlpa"]
        own = set(fedavg) & set(fedlpa)
        if len(own & set(same)) < ENOUGH:
            seen.append(f"{len(own)} seeds with different starts and both methods, {len(same)} with the same start")
            continue
        ahead = Gap("FedLPA − FedAvg with different starts", fedlpa, fedavg)
        lost = Gap("FedLPA, different − same start", fedlpa, same)
        seen.append(f"{ahead.words()}; {lost.words()}")
        if ahead.band.mean > max(MARGIN, ahead.band.half_width) and lost.band.mean > -NEAR:
            return Verdict("right", f"Supported by your runs. {seen[-1]}.")
    wanted = "FedLPA and FedAvg with different starts, and FedLPA with the same start in the same setting"
    return still([wanted], seen, "no run of fedlpa or fedavg")


def both_starts() -> Outcomes:
    """Runs that support the claim of exercise 4."""
    return Outcomes(o for init in ("same", "different") for o in runs(["fedavg", "fedlpa"], init=init))


q1, q2, q3, q4, q5 = exercises(__name__, q3=(two_dampings, dampings), q4=(different_starts, both_starts), q5=PRODUCT)
