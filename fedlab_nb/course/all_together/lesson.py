"""all together: the race of one call against many, how sure predictors are, and the exercises.

Accuracy against bytes of all methods is the picture of `fl.which()`, from stored results. The race
and the panel are the reader's own runs.
"""

from collections.abc import Sequence
from statistics import mean

import numpy as np

from ...studies import Outcome, Outcomes, stored_results
from ...studies.lesson_runs import ALPHA, CLIENTS, MANY, runs
from ...studies.statistics import compute_t_quantile
from ..kit import Build, Verdict, exercises
from ..kit.claims import BELOW, find_gaps, judge_two_kinds


def stored_percent(method: str, dataset: str) -> float:
    """Mean stored accuracy, in per cent."""
    return 100 * mean(stored_results.load(dataset).accuracies(method, ALPHA, CLIENTS).values())


def overtaken_in(target: str, method: str) -> int:
    """The round in which `method` first passes the final accuracy of `target`; first seed's curves.
    0: never.
    """
    goal, other = runs([target, method], seeds=1)
    rounds = [point for point in other.history if point["phase"] == "rounds"]
    for round_number, point in enumerate(rounds, 1):
        if point["accuracy"] > goal.accuracy:
            return round_number
    return 0


def confidence(outcomes: Sequence[Outcome], method: str = "ensemble") -> float:
    """How sure `method` is: the mean probability of the class that it names, in percent, over its
    outcomes.
    """
    return 100 * mean(o.calibration.mean_confidence for o in outcomes if o.method == method)


# ---------------------------------------------------------------------------------- exercises
def worth_it(outcomes: Sequence[Outcome], **words: str) -> Verdict:
    """The claim of exercise 2: in one setting FedLPA is clearly better than the cheaper ensemble,
    in another clearly worse. Both are found on validation images; the test images are looked at for
    these two alone.
    """

    def describe(conditions: tuple) -> str:
        return f"{conditions[0].dataset}, α = {conditions[0].alpha:g}"

    gaps = find_gaps(outcomes, None, "fedlpa", "ensemble", describe)
    return judge_two_kinds(gaps, others=(BELOW,), **words)


def solution_runs() -> Outcomes:
    """Runs that support the claim of exercise 2."""
    pair = ("ensemble", "fedlpa")
    digits = runs(pair, seeds=MANY)
    letters = runs(pair, 1, dataset="glyphs:16g", seeds=MANY)
    return Outcomes([*digits, *letters])


# ---------------------------------------------------------------------------- the function to build


def paired_band(a, b):
    """Mean of the differences a - b, seed by seed, and half the width of its 95 % band."""
    from scipy import stats

    gaps = a - b
    error = gaps.std(ddof=1) / np.sqrt(len(gaps))
    return gaps.mean(), stats.t.ppf(0.975, len(gaps) - 1) * error


def variant(gaps, ddof=1, factor=None, root=0.5):
    """Mean and half width with one part changed: `ddof` of the spread, the `factor` instead of t,
    the `root` of n.
    """
    n = len(gaps)
    if factor is None:
        factor = compute_t_quantile(n - 1)
    return gaps.mean(), factor * gaps.std(ddof=ddof) / n**root


def unpaired(a, b):
    error = np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / len(a))
    return np.mean(a) - np.mean(b), compute_t_quantile(2 * len(a) - 2) * error


SLIPS = {
    "ddof_0": lambda a, b: variant(a - b, ddof=0),
    "normal": lambda a, b: variant(a - b, factor=1.959963984540054),
    "n_degrees": lambda a, b: variant(a - b, factor=compute_t_quantile(len(a))),
    "no_root": lambda a, b: variant(a - b, root=0),
    "unpaired": unpaired,
}


def draw_hidden_case(stream: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Accuracies of two methods on n seeds, in per cent: a seed is easy or hard for both, as in a
    federation.
    """
    seeds = stream.normal(60, 12, size=n)
    first = seeds + stream.normal(0, 4, size=n)
    second = seeds + stream.normal(1, 4, size=n)
    return first, second


SIZES = ((3,), (5,), (10,), (4,))  # seeds
BUILD = Build(paired_band, SIZES, draw_hidden_case, SLIPS)

q1, q2, q3 = exercises(__name__, q2=(worth_it, solution_runs), q3=BUILD)
