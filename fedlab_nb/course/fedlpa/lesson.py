"""FedLPA: its picture and numbers, from ten stored seeds, and its exercises."""

from collections.abc import Hashable, Sequence

import numpy as np

from ...labs.fedlpa.two_weights import make_two_weights
from ...methods import METHODS
from ...studies import Outcome, Outcomes
from ...studies.lesson_runs import MANY, runs
from ..kit import Build, Verdict, exercises, lesson_words
from ..kit.claims import figures_of, find_gaps, judge_two_kinds, load_stored_values

PLACES = lesson_words(__name__, "places")
SHARES = lesson_words(__name__, "shares")
mean_of, ten_seeds = figures_of(__name__, "ten_seeds")


# ---------------------------------------------------------------------------------- worked numbers
def place(ratio: float = 9) -> str:
    """Which of PLACES the product of the two Gaussians is, where their axes are those of the
    plane.
    """
    x, y = make_two_weights(90, ratio).aggregate
    return next(words for words in PLACES if words.startswith(f"({x:.1f}, {y:.1f})"))


def share_of_a() -> str:
    """Which of SHARES RegMean is, by accuracy."""
    fedavg = mean_of("fedavg")
    fedlpa = mean_of("fedlpa")
    regmean = mean_of("regmean")
    if regmean > fedlpa - 5:
        return SHARES[1]
    return SHARES[2] if regmean < fedavg + 5 else SHARES[0]


def right_names(seed: int) -> int:
    """Percent of the classes named by a reader of the last B that are there; of one stored seed."""
    return round(100 * load_stored_values(__name__, "leak_40")[seed])


# ---------------------------------------------------------------------------------- on the record
def group_by_method(outcome: Outcome) -> tuple[Hashable, str] | None:
    """Runs of FedLPA with its knobs as they are, and of RegMean: all that was set, and the
    method.
    """
    if outcome.method not in ("fedlpa", "regmean"):
        return None
    for knob in METHODS[outcome.method].fields():
        if outcome.options.get(knob.name, knob.default) != knob.default:
            return None
    return outcome.conditions, outcome.method


def two_settings(outcomes: Sequence[Outcome], **words: str) -> Verdict:
    """The claim of exercise 3: somewhere RegMean is clearly better than FedLPA, elsewhere not. Both
    are found on validation images; the test images are looked at for these two alone."""

    def describe(conditions: tuple) -> str:
        settings, recipe = conditions
        return f"α = {settings.alpha:g}, {recipe.epochs} epochs"

    gaps = find_gaps(outcomes, group_by_method, "regmean", "fedlpa", describe, MANY)
    return judge_two_kinds(gaps, least_seeds=MANY, **words)


def solution_runs() -> Outcomes:
    """Runs that support the claim of exercise 3."""
    pair = ["fedlpa", "regmean"]
    return Outcomes([*runs(pair, 0.3, epochs=2, seeds=MANY), *runs(pair, 1, seeds=MANY)])


# ---------------------------------------------------------------------------- the function to build
# M and d of the hidden inputs, and whether the precisions are diagonal
SIZES = (
    (1, 2, False),
    (2, 2, False),
    (3, 3, True),
    (2, 4, False),
    (5, 3, False),
    (3, 3, False),
    (2, 4, True),
)


def product_mean(means, precisions):
    """The mean [d] of the product of M Gaussians with means [M, d] and precisions [M, d, d]."""
    weighted = sum(p @ m for p, m in zip(precisions, means, strict=True))
    return np.linalg.solve(precisions.sum(0), weighted)


def diagonals(means, precisions):
    weights = np.diagonal(precisions, axis1=1, axis2=2)
    return (weights * means).sum(0) / weights.sum(0)


SLIPS = {
    "plain_mean": lambda means, precisions: means.mean(0),
    "not_divided": lambda means, precisions: np.einsum("kij,kj->i", precisions, means),
    "diagonals": diagonals,
    "covariances": lambda means, precisions: product_mean(means, np.linalg.inv(precisions)),
}


def draw_hidden_case(
    stream: np.random.Generator, clients: int, d: int, diagonal: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Means [M, d] and precisions [M, d, d]."""
    root = stream.normal(size=(clients, d, d))
    precisions = root @ root.transpose(0, 2, 1) + 0.2 * np.eye(d)
    if diagonal:
        precisions = precisions * np.eye(d)
    means = stream.normal(size=(clients, d))
    return means, precisions


q1, q2, q3, q4 = exercises(
    __name__,
    q3=(two_settings, solution_runs),
    q4=Build(product_mean, SIZES, draw_hidden_case, SLIPS),
)
