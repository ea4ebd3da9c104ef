"""Lesson 10: its four exercises: two by hand, one to build, one on the learner's own record of runs.

Their texts are in `exercises.toml`; here is what judges the function and the record.
"""

from collections.abc import Hashable, Sequence

import numpy as np

from ...study import Outcome, Outcomes
from ...study.lesson_runs import MANY, SEEDS, runs
from ..kit.build import Build
from ..kit.claims import BELOW, two_kinds
from ..kit.exercises import exercises
from ..kit.problem import Verdict
from ..kit.runs import chosen_gaps


# ------------------------------------------------------------------------------------------------ to build
def fit(moments, class_sums, gamma, rho):
    """The weights [d, C] from the clients' moments [M, d, d], each with gamma on its diagonal, and class sums
    [M, d, C]."""
    clients, d, _ = moments.shape
    total = moments.sum(0) + (rho - clients * gamma) * np.eye(d)
    return np.linalg.solve(total, class_sums.sum(0))


def mean_of_fits(moments, class_sums, gamma, rho):
    return np.mean([fit(g[None], s[None], gamma, rho) for g, s in zip(moments, class_sums, strict=True)], axis=0)


def ridges_left(moments, class_sums, gamma, rho):
    return np.linalg.solve(moments.sum(0) + rho * np.eye(moments.shape[1]), class_sums.sum(0))


def one_ridge_off(moments, class_sums, gamma, rho):
    return np.linalg.solve(moments.sum(0) + (rho - gamma) * np.eye(moments.shape[1]), class_sums.sum(0))


def no_final_ridge(moments, class_sums, gamma, rho):
    return fit(moments, class_sums, gamma, 0.0)


def means(moments, class_sums, gamma, rho):
    return np.linalg.solve(moments.mean(0) + (rho - gamma) * np.eye(moments.shape[1]), class_sums.mean(0))


def not_solved(moments, class_sums, gamma, rho):
    return moments.sum(0) @ class_sums.sum(0)


def hidden() -> list[tuple]:
    """Sums of random samples for several numbers of clients, features and classes; some clients lack classes."""
    made = []
    for seed, (clients, d, classes) in enumerate(((1, 3, 2), (2, 4, 3), (5, 6, 3))):
        stream = np.random.default_rng(seed)
        gamma, rho = stream.uniform(0.5, 2.0), stream.uniform(0.1, 1.0)
        moments, sums = np.zeros((clients, d, d)), np.zeros((clients, d, classes))
        for k in range(clients):
            x = np.c_[stream.normal(size=(4 + 3 * k, d - 1)), np.ones(4 + 3 * k)]
            y = np.eye(classes)[stream.integers(0, 1 + k % classes, len(x))]
            moments[k], sums[k] = x.T @ x + gamma * np.eye(d), x.T @ y
        made.append((moments, sums, gamma, rho))
    return made


BUILD = Build(
    "fit",
    fit,
    hidden,
    {
        "fits": mean_of_fits, "left": ridges_left, "one": one_ridge_off, "none": no_final_ridge, "means": means,
        "product": not_solved,
    },
)  # fmt: skip


# ------------------------------------------------------------------------------------------------ on the record
def by_method(outcome: Outcome) -> tuple[Hashable, str] | None:
    """AFL with pixels and without noise, and the ensemble, under the same setting."""
    if outcome.method == "ensemble":
        return outcome.conditions, "ensemble"
    plain = outcome.method == "afl" and outcome.options["features"] == "pixels" and not outcome.options["epsilon"]
    return (outcome.conditions, "afl") if plain else None


def two_sides(outcomes: Sequence[Outcome], **words: str) -> Verdict:
    """The claim of exercise 4: in one setting AFL is clearly better than the ensemble, in another the ensemble is. The
    settings are found on validation images; the test images are looked at for these two alone."""
    gaps = chosen_gaps(outcomes, by_method, "afl", "ensemble", lambda at: f"{at[0].dataset}, α = {at[0].alpha:g}")
    return two_kinds(gaps, others=(BELOW,), **words)


def both_sides() -> Outcomes:
    """Runs that support the claim of exercise 4."""
    pair = ["afl", "ensemble"]
    few = runs(pair, 100, dataset="glyphs:16g", seeds=SEEDS)
    return Outcomes([*runs(pair, 0.1, seeds=MANY), *few])


q1, q2, q3, q4 = exercises(__name__, q3=BUILD, q4=(two_sides, both_sides))
