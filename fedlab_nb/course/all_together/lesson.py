"""All together: the race of one call against many, how sure predictors are, and the exercises.

The lesson's picture of accuracy against bytes of all methods is that of `fl.which()`, from stored
results. The race and the panel are the reader's own runs.
"""

from collections.abc import Sequence
from statistics import mean
from typing import NamedTuple

import numpy as np

from ...studies import Outcome, Outcomes, stored_results
from ...studies.lesson_runs import ALPHA, CLIENTS, MANY, runs
from ...studies.statistics import compute_two_sided_t_quantile
from ..kit import Build, Verdict, exercises
from ..kit.array_types import ValuePerSeed
from ..kit.claims import (
    BELOW,
    ClaimText,
    find_accuracy_gaps_between_variants,
    judge_one_gap_clear_and_one_not,
)
from ..kit.missing_name import make_getattr_for_missing_names

__getattr__ = make_getattr_for_missing_names(__name__)


def load_mean_accuracy_percent(method: str, dataset: str) -> float:
    """Load the stored accuracy of a method, as a mean over seeds, in per cent."""
    accuracies = stored_results.load(dataset).get_accuracies_by_seed(method, ALPHA, CLIENTS)
    return 100 * mean(accuracies.values())


def find_overtaking_round(overtaken_method: str, method: str) -> int:
    """Find the round in which `method` first passes the final accuracy of the other; 0 if it never does.

    Both run with the first seed.
    """
    overtaken, overtaking = runs([overtaken_method, method], seeds=1)
    rounds = [point for point in overtaking.history if point["phase"] == "rounds"]
    for round_number, point in enumerate(rounds, 1):
        if point["accuracy"] > overtaken.accuracy:
            return round_number
    return 0


def compute_mean_confidence_percent(outcomes: Sequence[Outcome], method: str = "ensemble") -> float:
    """Compute how sure `method` is: the mean probability of the class that it predicts, in per cent, over
    its outcomes.
    """
    confidences = [o.calibration.mean_confidence for o in outcomes if o.method == method]
    return 100 * mean(confidences)


# ---------------------------------------------------------------------------------- exercises
def check_fedlpa_beats_and_loses_to_ensemble(
    outcomes: Sequence[Outcome], **texts: ClaimText
) -> Verdict:
    """Judge the claim of exercise 2: in one setting FedLPA is clearly better than the cheaper ensemble,
    in another clearly worse.

    The settings are found on validation images; only for these two are the test images used.
    """

    def describe(conditions: tuple) -> str:
        return f"{conditions[0].dataset}, α = {conditions[0].alpha:g}"

    gaps = find_accuracy_gaps_between_variants(outcomes, None, "fedlpa", "ensemble", describe)
    return judge_one_gap_clear_and_one_not(gaps, kinds_of_other_gap=(BELOW,), **texts)


def run_solution() -> Outcomes:
    """Run what supports the claim of exercise 2."""
    pair = ("ensemble", "fedlpa")
    digits = runs(pair, seeds=MANY)
    letters = runs(pair, 1, dataset="glyphs:16g", seeds=MANY)
    return Outcomes([*digits, *letters])


# ---------------------------------------------------------------------------- the function to build


class MeanAndHalfWidth(NamedTuple):
    """The middle of a 95 % band, and half its width."""

    mean: float
    half_width: float


def paired_band(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Compute the mean of the differences a - b, seed by seed, and half the width of its 95 % band."""
    from scipy import stats

    gaps = a - b
    error = gaps.std(ddof=1) / np.sqrt(len(gaps))
    return gaps.mean(), stats.t.ppf(0.975, len(gaps) - 1) * error


def compute_band_with_part_changed_by_mistake(
    gaps: ValuePerSeed,
    ddof: int = 1,
    t_quantile: float | None = None,
    exponent_of_seed_count: float = 0.5,
) -> MeanAndHalfWidth:
    """Compute a band with one part of its formula changed.

    ddof:                   of the standard deviation; right is 1
    t_quantile:             None: the right one, with one degree of freedom less than there are seeds
    exponent_of_seed_count: of the number of seeds, by which the deviation is divided; right is 0.5
    """
    n = len(gaps)
    if t_quantile is None:
        t_quantile = compute_two_sided_t_quantile(n - 1)
    half_width = t_quantile * gaps.std(ddof=ddof) / n**exponent_of_seed_count
    return MeanAndHalfWidth(gaps.mean(), half_width)


def compute_unpaired_band_by_mistake(a: ValuePerSeed, b: ValuePerSeed) -> MeanAndHalfWidth:
    error = np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / len(a))
    half_width = compute_two_sided_t_quantile(2 * len(a) - 2) * error
    return MeanAndHalfWidth(np.mean(a) - np.mean(b), half_width)


SLIPS = {
    "ddof_0": lambda a, b: compute_band_with_part_changed_by_mistake(a - b, ddof=0),
    "normal": lambda a, b: compute_band_with_part_changed_by_mistake(
        a - b, t_quantile=1.959963984540054
    ),
    "n_degrees": lambda a, b: compute_band_with_part_changed_by_mistake(
        a - b, t_quantile=compute_two_sided_t_quantile(len(a))
    ),
    "no_root": lambda a, b: compute_band_with_part_changed_by_mistake(
        a - b, exponent_of_seed_count=0
    ),
    "unpaired": compute_unpaired_band_by_mistake,
}


class PairedBandArguments(NamedTuple):
    """The arguments of a call of `paired_band`: accuracies by seed, in per cent."""

    a: ValuePerSeed
    b: ValuePerSeed


def draw_random_paired_band_arguments(
    random_stream: np.random.Generator, seed_count: int
) -> PairedBandArguments:
    """Draw accuracies of two methods on some seeds, in per cent.

    A seed is easy or hard for both methods, as it is with a federation.
    """
    accuracy_of_seeds = random_stream.normal(60, 12, size=seed_count)
    first = accuracy_of_seeds + random_stream.normal(0, 4, size=seed_count)
    second = accuracy_of_seeds + random_stream.normal(1, 4, size=seed_count)
    return PairedBandArguments(first, second)


SIZES = ((3,), (5,), (10,), (4,))  # number of seeds
BUILD = Build(paired_band, SIZES, draw_random_paired_band_arguments, SLIPS)

q1, q2, q3 = exercises(
    __name__, q2=(check_fedlpa_beats_and_loses_to_ensemble, run_solution), q3=BUILD
)
