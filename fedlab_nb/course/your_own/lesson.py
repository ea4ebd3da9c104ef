"""your own data, network and method: its worked numbers, and its exercises."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...methods import METHODS
from ...plots.words import join_words
from ...studies import Outcome, statistics
from ...studies.lesson_runs import LOGITS, MANY, accuracies, alike, runs
from ..kit import Build, Verdict, exercises
from ..kit.claims import CLEAR, SHORT, figures_of, find_gaps, load_stored_values

AVERAGING = (
    "no better than one hospital alone",
    "better, but clearly below the mean of probabilities",
    "as good as the mean of probabilities, within the noise",
)
_, over_seeds = figures_of(__name__, "over_seeds")


def scratch(name: str) -> str:
    """A path for a file of that name in a folder of its own, which the system may clean up."""
    return str(Path(tempfile.mkdtemp(prefix="fedlab_nb-")) / name)


# ---------------------------------------------------------------------------------- worked numbers
def how_good(outcomes: Sequence[Outcome]) -> str:
    """Which of AVERAGING these runs show of FedAvg."""
    alone = accuracies(outcomes, "local")
    fedavg = accuracies(outcomes, "fedavg")
    ensemble = accuracies(outcomes, "ensemble")
    if statistics.difference(fedavg, ensemble).is_noise:
        return AVERAGING[2]
    if statistics.difference(fedavg, alone).low > 0:
        return AVERAGING[1]
    return AVERAGING[0]


def wins(figure: str) -> int:
    """In how many of the ten federations a declared difference is above zero."""
    return sum(value > 0 for value in load_stored_values(__name__, figure).values())


# ---------------------------------------------------------------------------------- exercises
GIVEN = "counted"  # the lesson's own example, which is no answer
COUNTS = {"ensemble.rule": "class_counts"}  # the same as an option of the ensemble


def beats_the_ensemble(outcomes: Sequence[Outcome]) -> Verdict:
    """The claim of exercise 2: a method that the learner wrote is clearly better than the mean of
    logits somewhere. The place is found on validation images; the test images are looked at for it
    alone.
    """
    own_methods = sorted({o.method for o in outcomes if is_own(o.method)})
    if not own_methods:
        return Verdict(
            "wrong",
            "No run of a method of your own is in the record: register one under a new name "
            f"({GIVEN!r} is the lesson's), make the panel again, tick it, press Run.",
        )
    found = []
    for method in own_methods:
        pair = [o for o in outcomes if o.method in (method, "ensemble")]
        for gap in find_gaps(pair, None, method, "ensemble", describe_alpha):
            text = f"{method} at {gap.name}: {gap.mean} points"
            if gap.kind == CLEAR and is_the_lessons(method, pair):
                return Verdict(
                    "wrong",
                    f"{method} answers just as {GIVEN!r} does. Change something that it computes.",
                )
            if gap.kind == CLEAR:
                return Verdict(
                    "right",
                    f"Supported by your runs: {text}. "
                    f"On the test images: {gap.test_gap.mean} points.",
                )
            if gap.kind != SHORT:
                found.append(text)
    record = join_words(found) or "no setting has 3 seeds of both"
    return Verdict(
        "wrong",
        f"Not clear yet: {record}. "
        "Run the ensemble beside it, 3 seeds or more, where it should help.",
    )


def describe_alpha(conditions: tuple) -> str:
    """'α = 0.1' of the conditions that runs share."""
    return f"α = {conditions[0].alpha:g}"


def is_the_lessons(method: str, outcomes: Sequence[Outcome]) -> bool:
    """Whether a method is `counted` with ζ = 1 under another name: as accurate in every run of the
    record.
    """
    for (settings, _), by_method in alike(outcomes).items():
        own = by_method[method]
        if not own:
            continue
        seeds = {"seed": min(own), "seeds": len(own)}
        counted = runs("ensemble", settings.alpha, clients=settings.clients, **COUNTS, **seeds)
        if own != accuracies(counted, "ensemble"):
            return False
    return True


def is_own(method: str) -> bool:
    """Whether a method was written by the learner: it is neither the package's nor the lesson's."""
    is_package = method in METHODS and METHODS[method].__module__.startswith("fedlab_nb.")
    return method != GIVEN and not is_package


def example_runs() -> list[Any]:
    """Runs of the solution, `counted` with ζ = 0.5 under a new name; without it, of the ensemble
    alone.
    """
    methods = ["ensemble"]
    options = dict(LOGITS)
    if GIVEN in METHODS:
        methods.append(GIVEN)
        options[f"{GIVEN}.power"] = 0.5
    return [rename(outcome) for outcome in runs(methods, 1, seeds=MANY, **options)]


def rename(outcome: Outcome) -> SimpleNamespace:
    """What a claim reads of an outcome, with the learner's method under a new name."""
    return SimpleNamespace(
        method="rooted" if outcome.method == GIVEN else outcome.method,
        accuracy=outcome.accuracy,
        accuracy_validation=outcome.accuracy_validation,
        settings=outcome.settings,
        conditions=outcome.conditions,
    )


# ---------------------------------------------------------------------------- the function to build


def mean_and_spread(counts, sums, squares):
    """Mean [D] and standard deviation [D] of all rows, from what M hospitals send: counts [M], sums
    and sums of squares [M, D]."""
    rows = counts.sum()
    mean = sums.sum(0) / rows
    return mean, np.sqrt(squares.sum(0) / rows - mean**2)


def mean_of_means(counts, sums, squares):
    means = sums / counts[:, None]
    mean = means.mean(0)
    return mean, np.sqrt((squares / counts[:, None]).mean(0) - mean**2)


def one_row_less(counts, sums, squares):
    mean, spread = mean_and_spread(counts, sums, squares)
    return mean, spread * np.sqrt(counts.sum() / (counts.sum() - 1))


def variance(counts, sums, squares):
    mean, spread = mean_and_spread(counts, sums, squares)
    return mean, spread**2


def mean_not_taken_off(counts, sums, squares):
    rows = counts.sum()
    return sums.sum(0) / rows, np.sqrt(squares.sum(0) / rows)


SLIPS = {
    "mean_of_means": mean_of_means,
    "one_row_less": one_row_less,
    "variance": variance,
    "mean_not_taken_off": mean_not_taken_off,
}


def draw_hidden_case(
    stream: np.random.Generator, hospitals: int, columns: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums of hospitals of different sizes and patients: no value is exactly constant."""
    counts = []
    sums = []
    squares = []
    for k in range(hospitals):
        patients = int(stream.integers(3, 30))
        x = stream.normal(3 + k, 1 + k, size=(patients, columns))
        counts.append(patients)
        sums.append(x.sum(0))
        squares.append((x**2).sum(0))
    return np.array(counts), np.array(sums), np.array(squares)


SIZES = ((1, 2), (2, 3), (5, 4), (3, 1))  # hospitals and columns
BUILD = Build(mean_and_spread, SIZES, draw_hidden_case, SLIPS)

q1, q2, q3 = exercises(__name__, q2=(beats_the_ensemble, example_runs), q3=BUILD)
