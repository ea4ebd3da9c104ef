"""Your own data, network and method: its worked numbers, and its exercises."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...methods import METHODS
from ...plots.words import join_with_and
from ...studies import Outcome, statistics
from ...studies.lesson_runs import (
    LOGITS,
    MANY,
    group_comparable_accuracies,
    runs,
    select_accuracies_by_seed,
)
from ...studies.outcome import Conditions
from ...studies.settings import Settings
from ..kit import Build, GuessOption, Verdict, exercises
from ..kit.array_types import ClientColumnSums, CountPerClient, Vector
from ..kit.claims import (
    CLEAR,
    SHORT,
    find_accuracy_gaps_between_variants,
    load_stored_figure_by_seed,
    make_mean_and_bars_functions,
)
from ..kit.missing_name import make_getattr_for_missing_names

__getattr__ = make_getattr_for_missing_names(__name__)

AVERAGING = (
    "no better than one hospital alone",
    "better, but clearly below the mean of probabilities",
    "as good as the mean of probabilities, within the noise",
)
_, over_seeds = make_mean_and_bars_functions(__name__, "over_seeds")


def make_temporary_file_path(file_name: str) -> str:
    """Make a path for a file of this name in a new temporary folder."""
    return str(Path(tempfile.mkdtemp(prefix="fedlab_nb-")) / file_name)


# ---------------------------------------------------------------------------------- worked numbers
def find_right_option_on_averaging(outcomes: Sequence[Outcome]) -> GuessOption:
    """Choose which of AVERAGING is true of FedAvg in these runs."""
    alone = select_accuracies_by_seed(outcomes, "local")
    fedavg = select_accuracies_by_seed(outcomes, "fedavg")
    ensemble = select_accuracies_by_seed(outcomes, "ensemble")
    if statistics.difference(fedavg, ensemble).is_noise:
        return AVERAGING[2]
    if statistics.difference(fedavg, alone).low > 0:
        return AVERAGING[1]
    return AVERAGING[0]


def count_seeds_with_gain(figure_name: str) -> int:
    """Count the seeds, of ten, at which a declared difference is above zero."""
    differences = load_stored_figure_by_seed(__name__, figure_name)
    return sum(value > 0 for value in differences.values())


# ---------------------------------------------------------------------------------- exercises
GIVEN = "counted"  # the method of the lesson's own example, which does not count as the learner's
COUNTS = {"ensemble.rule": "class_counts"}  # the option of the ensemble that does the same


def check_own_method_beats_ensemble(outcomes: Sequence[Outcome]) -> Verdict:
    """Judge the claim of exercise 2: in one setting a method that the learner wrote is clearly better
    than the mean of logits.

    The setting is found on validation images; only for it are the test images used.
    """
    own_methods = sorted({o.method for o in outcomes if is_method_of_learner(o.method)})
    if not own_methods:
        return Verdict(
            "wrong",
            "No run of a method of your own is in the record: register one under a new name "
            f"({GIVEN!r} is the lesson's), make the panel again, tick it, press Run.",
        )
    found = []
    for method in own_methods:
        pair = [o for o in outcomes if o.method in (method, "ensemble")]
        for gap in find_accuracy_gaps_between_variants(
            pair, None, method, "ensemble", describe_alpha_of_conditions
        ):
            text = f"{method} at {gap.name}: {gap.mean_with_band_in_points} points"
            if gap.kind == CLEAR and is_as_accurate_as_lessons_example(method, pair):
                return Verdict(
                    "wrong",
                    f"{method} answers just as {GIVEN!r} does. Change something that it computes.",
                )
            if gap.kind == CLEAR:
                return Verdict(
                    "right",
                    f"Supported by your runs: {text}. "
                    f"On the test images: {gap.test_gap.mean_with_band_in_points} points.",
                )
            if gap.kind != SHORT:
                found.append(text)
    record = join_with_and(found) or "no setting has 3 seeds of both"
    return Verdict(
        "wrong",
        f"Not clear yet: {record}. "
        "Run the ensemble beside it, 3 seeds or more, where it should help.",
    )


def describe_alpha_of_conditions(conditions: Conditions) -> str:
    """Describe the conditions that runs share by their α: 'α = 0.1'."""
    return f"α = {conditions.settings.alpha:g}"


def is_as_accurate_as_lessons_example(method: str, outcomes: Sequence[Outcome]) -> bool:
    """Whether a method is as accurate as the lesson's example with ζ = 1 in every run of the record.

    Then it is that example under another name.
    """
    for (settings, _), by_method in group_comparable_accuracies(outcomes).items():
        own = by_method[method]
        if not own:
            continue
        seeds = {"seed": min(own), "seeds": len(own)}
        counted = runs("ensemble", settings.alpha, clients=settings.clients, **COUNTS, **seeds)
        if own != select_accuracies_by_seed(counted, "ensemble"):
            return False
    return True


def is_method_of_learner(method: str) -> bool:
    """Whether a method was written by the learner: it is neither the package's nor the lesson's."""
    is_package = method in METHODS and METHODS[method].__module__.startswith("fedlab_nb.")
    return method != GIVEN and not is_package


class RenamedOutcome(NamedTuple):
    """What a claim reads of an outcome, with the learner's method under a new name."""

    method: str
    accuracy: float
    accuracy_validation: float | None
    settings: Settings
    conditions: Conditions


def run_solution() -> list[RenamedOutcome]:
    """Run the solution: `counted` with ζ = 0.5 under a new name, and the ensemble.

    If the learner has not registered `counted`, only the ensemble is run.
    """
    methods = ["ensemble"]
    options = dict(LOGITS)
    if GIVEN in METHODS:
        methods.append(GIVEN)
        options[f"{GIVEN}.power"] = 0.5
    return [
        rename_method_of_outcome(outcome) for outcome in runs(methods, 1, seeds=MANY, **options)
    ]


def rename_method_of_outcome(outcome: Outcome) -> RenamedOutcome:
    """Copy what a claim reads of an outcome; in the copy the lesson's example is called "rooted"."""
    return RenamedOutcome(
        method="rooted" if outcome.method == GIVEN else outcome.method,
        accuracy=outcome.accuracy,
        accuracy_validation=outcome.accuracy_validation,
        settings=outcome.settings,
        conditions=outcome.conditions,
    )


# ---------------------------------------------------------------------------- the function to build


class MeanAndSpread(NamedTuple):
    """Mean and standard deviation of each column over all rows."""

    mean: Vector  # [D]
    spread: Vector  # [D] standard deviations


def mean_and_spread(
    counts: np.ndarray, sums: np.ndarray, squares: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the mean [D] and standard deviation [D] of all rows, from what M hospitals send: counts [M], sums
    and sums of squares [M, D]."""
    rows = counts.sum()
    mean = sums.sum(0) / rows
    return mean, np.sqrt(squares.sum(0) / rows - mean**2)


def average_hospital_means_by_mistake(
    counts: CountPerClient, sums: ClientColumnSums, squares: ClientColumnSums
) -> MeanAndSpread:
    means = sums / counts[:, None]
    mean = means.mean(0)
    return MeanAndSpread(mean, np.sqrt((squares / counts[:, None]).mean(0) - mean**2))


def divide_variance_by_one_row_less_by_mistake(
    counts: CountPerClient, sums: ClientColumnSums, squares: ClientColumnSums
) -> MeanAndSpread:
    mean, spread = mean_and_spread(counts, sums, squares)
    return MeanAndSpread(mean, spread * np.sqrt(counts.sum() / (counts.sum() - 1)))


def return_variance_for_spread_by_mistake(
    counts: CountPerClient, sums: ClientColumnSums, squares: ClientColumnSums
) -> MeanAndSpread:
    mean, spread = mean_and_spread(counts, sums, squares)
    return MeanAndSpread(mean, spread**2)


def omit_subtracting_mean_by_mistake(
    counts: CountPerClient, sums: ClientColumnSums, squares: ClientColumnSums
) -> MeanAndSpread:
    rows = counts.sum()
    return MeanAndSpread(sums.sum(0) / rows, np.sqrt(squares.sum(0) / rows))


SLIPS = {
    "mean_of_means": average_hospital_means_by_mistake,
    "one_row_less": divide_variance_by_one_row_less_by_mistake,
    "variance": return_variance_for_spread_by_mistake,
    "mean_not_taken_off": omit_subtracting_mean_by_mistake,
}


class HospitalTotals(NamedTuple):
    """The arguments of a call of `mean_and_spread`."""

    counts: CountPerClient  # [M] rows of each hospital
    sums: ClientColumnSums  # [M, D]
    squares: ClientColumnSums  # [M, D] sums of squares


def draw_random_hospital_totals(
    random_stream: np.random.Generator, hospital_count: int, column_count: int
) -> HospitalTotals:
    """Draw the sums of hospitals that differ in size and in their patients' values. No column is constant."""
    counts = []
    sums = []
    squares = []
    for k in range(hospital_count):
        patients = int(random_stream.integers(3, 30))
        x = random_stream.normal(3 + k, 1 + k, size=(patients, column_count))
        counts.append(patients)
        sums.append(x.sum(0))
        squares.append((x**2).sum(0))
    return HospitalTotals(np.array(counts), np.array(sums), np.array(squares))


SIZES = ((1, 2), (2, 3), (5, 4), (3, 1))  # hospitals and columns
BUILD = Build(mean_and_spread, SIZES, draw_random_hospital_totals, SLIPS)

q1, q2, q3 = exercises(__name__, q2=(check_own_method_beats_ensemble, run_solution), q3=BUILD)
