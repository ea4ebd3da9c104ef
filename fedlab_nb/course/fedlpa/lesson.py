"""Lesson 07, FedLPA: its worked numbers and its exercises.

Every number that the lesson quotes is computed here when the reader runs the cell, from real runs (three seeds, digits,
ten clients, α = 0.1, the classroom preset); nothing is written into the text by hand.
"""

import dataclasses
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ...labs.fedlpa.plane import plane
from ...labs.fedlpa.solver import solutions, solver
from ...labs.fedlpa.two_weights import two_weights
from ...plots import Picture
from ...plots.words import seeds_of
from ...studies import Outcome, Outcomes
from ...studies.experiment import finished
from ...studies.lesson_runs import MANY, accuracies, alike, percent, runs
from ..kit import (
    ENOUGH,
    Build,
    Card,
    Gap,
    Sheet,
    Verdict,
    chosen_gaps,
    exercises,
    lesson_words,
    still,
    two_kinds,
    versus,
    worked,
)
from .low_rank import low_rank  # noqa: F401 for the notebook

PLACES, SHARES, STEPS = (lesson_words(__name__, name) for name in ("places", "shares", "steps"))


# ---------------------------------------------------------------------------------- two weights
def place(ratio: float = 9) -> str:
    """Which of PLACES the product of the two Gaussians is, where their axes are those of the plane."""
    x, y = two_weights(90, ratio).aggregate
    return next(words for words in PLACES if words.startswith(f"({x:.1f}, {y:.1f})"))


def angles() -> Sheet:
    """Four planes."""
    return Sheet(
        {
            "90 degrees": plane(90, ratio=9, damping=0),
            "45 degrees": plane(45, ratio=9, damping=0),
            "Circles: no direction is surer": plane(90, ratio=1, damping=0),
            "45 degrees, λ_damp = 10": plane(45, ratio=9, damping=10),
        }
    )


# ---------------------------------------------------------------------------------- a layer, an upload
def one_run(seed: int = 0, **settings: Any) -> Outcome:
    """FedLPA on one of the lesson's seeds."""
    return runs("fedlpa", seeds=1, seed=seed, **settings)[0]


# ---------------------------------------------------------------------------------- what is worth what
LADDER = lesson_words(__name__, "ladder")


def ladder(outcomes: Sequence[Outcome]) -> Card:
    """Accuracy by how much of the precision is used, and whether the last step is more than noise."""
    lines = [f"{words}: {percent(outcomes, method):.0f} %" for method, words in LADDER.items()]
    ahead = versus(outcomes, "fedlpa", "regmean", clear="more than noise")
    return worked(*lines, f"FedLPA − RegMean: {ahead} ({seeds_of(accuracies(outcomes, 'fedlpa'))}).")


def share_of_a(outcomes: Sequence[Outcome]) -> str:
    """Which of SHARES RegMean is, by accuracy."""
    low, high, alone = (percent(outcomes, method) for method in ("fedavg", "fedlpa", "regmean"))
    return SHARES[1] if alone > high - 5 else SHARES[2] if alone < low + 5 else SHARES[0]


def solvers(damping: float = 1e-6, steps: int = 1000, seed: int = 0) -> Picture:
    """The three solvers on one run's uploads."""
    return solver(finished(solutions(one_run(seed), damping, steps)))


def steps_needed(damping: float = 1e-6, seed: int = 0) -> str:
    """Which of STEPS conjugate gradients need, in the slowest layer."""
    steps = max(one_run(seed, damping=damping).report.iterations.values())
    return STEPS[0] if steps < 100 else STEPS[1] if steps < 3000 else STEPS[2]


# ---------------------------------------------------------------------------------- reality
# ---------------------------------------------------------------------------------- on the record
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


# ---------------------------------------------------------------------------------- the function to build
SHAPES = ((1, 2), (2, 2), (3, 3), (2, 4), (5, 3))  # clients and weights of the hidden inputs


def product_mean(means, precisions):
    """The mean [d] of the product of M Gaussians with means [M, d] and precisions [M, d, d]."""
    weighted = sum(p @ m for p, m in zip(precisions, means, strict=True))
    return np.linalg.solve(precisions.sum(0), weighted)


def plain_mean(means, precisions):
    return means.mean(0)


def not_divided(means, precisions):
    return np.einsum("kij,kj->i", precisions, means)


def diagonals(means, precisions):
    weights = np.diagonal(precisions, axis1=1, axis2=2)
    return (weights * means).sum(0) / weights.sum(0)


def covariances(means, precisions):
    return product_mean(means, np.linalg.inv(precisions))


def hidden_inputs() -> list[tuple[np.ndarray, np.ndarray]]:
    """Means [M, d] and precisions [M, d, d]: one client, then several; every third one has diagonal matrices alone."""
    stream, made = np.random.default_rng(7), []
    for i, (clients, d) in enumerate(SHAPES * 2):
        root = stream.normal(size=(clients, d, d))
        precisions = root @ root.transpose(0, 2, 1) + 0.2 * np.eye(d)
        if i % 3 == 2:
            precisions *= np.eye(d)
        made.append((stream.normal(size=(clients, d)), precisions))
    return made


PRODUCT = Build(product_mean, hidden_inputs, (plain_mean, not_divided, diagonals, covariances))


q1, q2, q3, q4, q5 = exercises(__name__, q3=(two_dampings, dampings), q4=(different_starts, both_starts), q5=PRODUCT)
