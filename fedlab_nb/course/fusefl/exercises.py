"""Lesson 06, FuseFL: its four exercises; their texts are in `exercises.toml`.

q1: FuseFL's traffic and storage. How many numbers are in the adaptor that a client sends with its block?
q2: the two halves of FuseFL, fusing and calibrating, each measured in the learner's own runs.
q3: what clients with a spurious cue cost the ensemble, and FuseFL, in the learner's own runs.
q4: one fused block, which the learner builds; `build` judges it.
"""

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from ...plots.words import plural, points
from ...study import Outcome, Outcomes, lesson_runs
from ...study.lesson_runs import ALPHA, MANY, alike
from ...study.statistics import difference
from ..kit.claims import CLEAR, SHORT, Gap, still
from ..kit.exercises import exercises
from ..kit.problem import Verdict
from .build import FUSED

CLIENTS = 5


def runs(methods: str | Sequence[str] = "fusefl", alpha: float = ALPHA, **settings: Any) -> Outcomes:
    """The lesson's runs; FuseFL's knobs are given as `blocks=1`, `head="average"`."""
    return lesson_runs.runs(methods, alpha, clients=CLIENTS, **settings)


def change(a: Mapping[int, float], b: Mapping[int, float]) -> str:
    """'+3 ± 1 points' or '−1 ± 2 points, within the noise': mean of a − b over the seeds."""
    of = difference(a, b)
    size = f"{100 * of.mean:+.0f}".replace("-", "−")
    noise = ", within the noise" if of.is_noise else ""
    return f"{'0' if size in ('+0', '−0') else size} ± {100 * of.half_width:.0f} points{noise}"


# ------------------------------------------------------------------------------------------------------ 2: two halves
class Measured(Gap):
    """A gap as a statement: `name` says what a − b is."""

    def words(self, both: str = "") -> str:
        """'calibration at K = 2 adds +56 ± 6 points', or that there are too few seeds."""
        if self.kind == SHORT:
            return f"{self.name} cannot be told from {plural(len(self.points), 'seed')}"
        return f"{self.name} {change(self.a, self.b)}"


NOTHING = "nothing that can be compared"
MILD = 0.3  # exercise 2 is about larger α than the 0.1 that the lesson prints


def calibration_and_fusion(outcomes: Sequence[Outcome]) -> Verdict:
    """Right where, under one setting, calibration is clearly better than none, and fusing was measured beside it."""

    def place(outcome: Outcome) -> tuple[Hashable, Hashable] | None:
        if outcome.method != "fusefl" or outcome.settings.alpha < MILD:
            return None
        options = dict(outcome.options)
        variant = options.pop("blocks"), options.pop("head")
        return (outcome.conditions, *options.items()), variant

    adds, changes, others = [], [], []
    for variants in alike(outcomes, place).values():
        calibration = [
            Measured(f"calibration at K = {k} adds", variants[k, "ccvr"], other)
            for (k, head), other in variants.items()
            if head != "ccvr" and (k, "ccvr") in variants
        ]
        fusion = [
            Measured(f"fusing (K = {k} against 1) changes", fused, variants[1, "ccvr"])
            for (k, head), fused in variants.items()
            if head == "ccvr" and k > 1 and (1, "ccvr") in variants
        ]
        good = [gap.words().replace("+", "") for gap in calibration if gap.kind == CLEAR]
        beside = [gap.words() for gap in fusion if gap.kind != SHORT]
        if good and beside:
            return Verdict("right", f"Measured: {good[0]}; {beside[0]}.")
        adds, changes = adds + good, changes + beside
        others += [gap.words() for gap in calibration if gap.kind != CLEAR]
        others += [gap.words() for gap in fusion if gap.kind == SHORT]
    lacking = {
        "a setting where the calibrated classifier is clearly better than one without calibration": not adds,
        "Blocks = 1 and Blocks = 2 under one setting, both calibrated": not changes,
        "both comparisons under the same setting": adds and changes,
    }
    return still(
        [words for words, lacks in lacking.items() if lacks],
        [*adds, *changes, *others],
        f"{NOTHING} at α = {MILD:g} or more",
    )


def halves_runs() -> Outcomes:
    """Runs that answer exercise 2."""
    return Outcomes(o for knobs in ({}, {"head": "average"}, {"blocks": 1}) for o in runs(alpha=1, seeds=MANY, **knobs))


# ------------------------------------------------------------------------------------------------------ 3: cue clients
def hurt_by_cues(outcomes: Sequence[Outcome]) -> Verdict:
    """Right where the ensemble is clearly worse with cue clients than without, all else equal; FuseFL is told."""

    def place(outcome: Outcome) -> tuple[Hashable, Hashable] | None:
        settings, recipe = outcome.conditions
        return (dataclasses.replace(settings, spurious=""), recipe), (outcome.method, settings.spurious)

    losses, others = [], []
    for variants in alike(outcomes, place).values():
        for cues in [cues for method, cues in variants if method == "ensemble" and cues]:
            pairs = [(variants.get((method, ""), {}), variants[method, cues]) for method in ("ensemble", "fusefl")]
            ensemble, fusefl = (Measured(f"with the cue at clients {cues} the ensemble loses", *pair) for pair in pairs)
            if ensemble.kind == CLEAR:
                losses.append(ensemble.words().replace("+", "") + _fusefl(fusefl))
            elif ensemble.a:
                others.append(ensemble.words())
    if losses:
        return Verdict("right", f"Supported by your runs: {losses[0]}.")
    wanted = "runs of the ensemble with and without cue clients, all else equal, with a clear difference"
    return still([wanted], others, NOTHING)


def _fusefl(loss: Gap) -> str:
    """What FuseFL loses under the same two settings, where there are enough seeds."""
    if loss.kind == SHORT:
        return ""
    of = difference(loss.a, loss.b)
    return f", FuseFL {points(of, '')}" + (", within the noise" if of.is_noise else "")


def cue_runs() -> Outcomes:
    """Runs that answer exercise 3."""
    both = ["fusefl", "ensemble"]
    return Outcomes(o for cues in ("", "0,1") for o in runs(both, 0.5, seeds=MANY, spurious=cues))


q1, q2, q3, q4 = exercises(__name__, q2=(calibration_and_fusion, halves_runs), q3=(hurt_by_cues, cue_runs), q4=FUSED)
