"""Lesson 09, your own data, network and method: its worked numbers, and its exercises."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...methods import METHODS
from ...plots.words import listed
from ...studies import Outcome, statistics
from ...studies.lesson_runs import LOGITS, MANY, accuracies, alike, runs
from ..kit import Build, Verdict, exercises
from ..kit.claims import CLEAR, SHORT, chosen_gaps, figures_of, stored_values

AVERAGING = (
    "no better than one hospital alone", "better, but clearly below the mean of probabilities",
    "as good as the mean of probabilities, within the noise",
)  # fmt: skip
_, over_seeds = figures_of(__name__, "over_seeds")


def scratch(name: str) -> str:
    """A path for a file of that name in a folder of its own, which the system may clean up."""
    return str(Path(tempfile.mkdtemp(prefix="fedlab_nb-")) / name)


# ---------------------------------------------------------------------------------- worked numbers
def how_good(outcomes: Sequence[Outcome]) -> str:
    """Which of AVERAGING these runs show of FedAvg."""
    alone, fedavg, ensemble = (
        accuracies(outcomes, method) for method in ("local", "fedavg", "ensemble")
    )
    if statistics.difference(fedavg, ensemble).is_noise:
        return AVERAGING[2]
    return AVERAGING[statistics.difference(fedavg, alone).low > 0]


def wins(figure: str) -> int:
    """In how many of the ten federations a declared difference is above zero."""
    return sum(value > 0 for value in stored_values(__name__, figure).values())


# ---------------------------------------------------------------------------------- exercises
GIVEN, COUNTS = (
    "counted",
    {"ensemble.rule": "class_counts"},
)  # the lesson's own example, which is no answer


def beats_the_ensemble(outcomes: Sequence[Outcome]) -> Verdict:
    """The claim of exercise 2: a method that the learner wrote is clearly better than the mean of logits somewhere. The
    place is found on validation images; the test images are looked at for it alone."""
    own = sorted({o.method for o in outcomes if is_own(o.method)})
    if not own:
        wanted = f"register one under a new name ({GIVEN!r} is the lesson's), make the panel again, tick it, press Run"
        return Verdict("wrong", f"No run of a method of your own is in the record: {wanted}.")
    seen = []
    for method in own:
        pair = [o for o in outcomes if o.method in (method, "ensemble")]
        for gap in chosen_gaps(pair, None, method, "ensemble", lambda at: f"α = {at[0].alpha:g}"):
            text = f"{method} at {gap.name}: {gap.mean} points"
            if gap.kind == CLEAR and is_the_lessons(method, pair):
                return Verdict(
                    "wrong",
                    f"{method} answers just as {GIVEN!r} does. Change something that it computes.",
                )
            if gap.kind == CLEAR:
                tested = f"On the test images: {gap.test_gap.mean} points."
                return Verdict("right", f"Supported by your runs: {text}. {tested}")
            seen += [text] * (gap.kind != SHORT)
    record = listed(seen) or "no setting has 3 seeds of both"
    advice = "Run the ensemble beside it, 3 seeds or more, where it should help."
    return Verdict("wrong", f"Not clear yet: {record}. {advice}")


def is_the_lessons(method: str, outcomes: Sequence[Outcome]) -> bool:
    """Whether a method is `counted` with ζ = 1 under another name: as accurate in every run of the record."""
    for (settings, _), of in alike(outcomes).items():
        seeds = {"seed": min(of[method], default=0), "seeds": len(of[method]) or 1}
        again = runs("ensemble", settings.alpha, clients=settings.clients, **COUNTS, **seeds)
        if of[method] and of[method] != accuracies(again, "ensemble"):
            return False
    return True


def is_own(method: str) -> bool:
    """Whether a method was written by the learner: it is neither the package's nor the lesson's."""
    return method != GIVEN and not (
        method in METHODS and METHODS[method].__module__.startswith("fedlab_nb.")
    )


def example_runs() -> list[Any]:
    """Runs of the solution, `counted` with ζ = 0.5 under a new name; without it, of the ensemble alone."""
    methods = ["ensemble", *filter(METHODS.__contains__, [GIVEN])]
    outcomes = runs(
        methods, 1, seeds=MANY, **LOGITS, **{f"{method}.power": 0.5 for method in methods[1:]}
    )
    return [
        SimpleNamespace(
            method="rooted" if o.method == GIVEN else o.method,
            **{
                name: getattr(o, name)
                for name in ("accuracy", "accuracy_validation", "settings", "conditions")
            },
        )
        for o in outcomes
    ]


# ---------------------------------------------------------------------------------- the function to build


def mean_and_spread(counts, sums, squares):
    """Mean [D] and standard deviation [D] of all rows, from what M hospitals send: counts [M], sums and sums of squares
    [M, D]."""
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
    slip.__name__: slip for slip in (mean_of_means, one_row_less, variance, mean_not_taken_off)
}


def hidden(
    stream: np.random.Generator, hospitals: int, columns: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums of hospitals of different sizes and patients: no value is exactly constant."""
    groups = [
        stream.normal(3 + k, 1 + k, size=(int(stream.integers(3, 30)), columns))
        for k in range(hospitals)
    ]
    return np.array([len(x) for x in groups]), *(
        np.array([(x**p).sum(0) for x in groups]) for p in (1, 2)
    )


SIZES = ((1, 2), (2, 3), (5, 4), (3, 1))  # hospitals and columns
q1, q2, q3 = exercises(
    __name__, q2=(beats_the_ensemble, example_runs), q3=Build(mean_and_spread, SIZES, hidden, SLIPS)
)
