"""names of neurons: its numbers and pictures, and its exercises (digits, ten
clients).
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import torch

from ...data import load
from ...labs.matching.game import UNITS, draw_game, make_puzzle
from ...methods.base import weighted_mean
from ...methods.matching.wiring import find_wiring, permute_units
from ...models import load_state, model_state
from ...plots import Picture
from ...studies import Outcome, Outcomes
from ...studies.lesson_runs import DATASET, MANY, runs
from ..kit import Build, Verdict, exercises, lesson_words
from ..kit.claims import CLEAR, Gap, figures_of, find_gaps, report_missing

SKEWED = lesson_words(__name__, "skewed")
mean_of, ten_seeds, two_causes = figures_of(__name__, "ten_seeds", "two_causes")


# ------------------------------------------------------------------------------ units have no names
def orders_and_average() -> tuple[list[float], float, int]:
    """A client's network, the same in another order of its units, and the average of both: their
    test accuracies 0-1; the largest difference of a logit of the first two; how many powers of ten
    there are orders.
    """
    data = load(DATASET)
    stream = torch.Generator().manual_seed(0)
    network = runs("matching", 100, seeds=1)[0].model.clients.module(0).cpu().double().eval()
    wiring = find_wiring(network)
    state = model_state(network)
    orders = [torch.randperm(n, generator=stream) for n in wiring.units]
    other = permute_units(state, wiring, orders)
    average = weighted_mean([state, other], [1, 1])
    logits = []
    accuracies = []
    for weights in (state, other, average):
        load_state(network, weights)
        logits.append(network(data.x_test.double()).detach())
        is_right = logits[-1].argmax(1) == data.y_test
        accuracies.append(float(is_right.double().mean()))
    largest_difference = float((logits[0] - logits[1]).abs().max())
    powers_of_ten = sum(math.lgamma(n + 1) for n in wiring.units) / math.log(10)
    return accuracies, largest_difference, round(powers_of_ten)


def with_itself() -> int:
    """Accuracy of the average of a network and of itself in another order, in percent."""
    accuracies, _, _ = orders_and_average()
    return round(100 * accuracies[2])


def by_hand(number: int = 0) -> Picture:
    """A puzzle as the tab shows it at the start, the units of B in their own order."""
    return draw_game(make_puzzle(number), range(UNITS), number)


# --------------------------------------------------------------------------------- ten stored seeds
def under_skew() -> str:
    """Which of SKEWED matching is at α = 0.1 with a common start."""
    gap = mean_of("skewed_matched") - mean_of("skewed_plain")
    if gap > 5:
        return SKEWED[0]
    return SKEWED[2] if gap < -5 else SKEWED[1]


# ---------------------------------------------------------------------------------- on the record
LARGE = 0.2
PAIRS = {
    "matching − FedAvg": ("matching", "fedavg"),
    "ensemble − matching": ("ensemble", "matching"),
}


def both_causes(outcomes: Sequence[Outcome]) -> Verdict:
    """The claim of exercise 3: in one setting matching gains clearly more than LARGE, and stays
    clearly more than LARGE behind the average of predictions. It is found on validation images; the
    test images are looked at for it alone.
    """
    known = [o for o in outcomes if o.method in ("fedavg", "matching", "ensemble")]
    gaps_by_pair = [find_gaps_of_pair(known, pair) for pair in PAIRS]
    found = []
    for both in zip(*gaps_by_pair, strict=True):  # the gaps of one setting
        words = "; ".join(gap.words() for gap in both)
        found.append(words)
        if all(gap.kind == CLEAR and gap.band.low > LARGE for gap in both):
            points = " and ".join(gap.test_gap.mean for gap in both if gap.test_gap)
            return Verdict(
                "right", f"Supported by your runs. {words}. On the test images: {points} points."
            )
    wanted = (
        f"an α at which matching gains clearly more than {100 * LARGE:g} points, and stays clearly "
        "more behind"
    )
    return report_missing([wanted], found, "no run of matching, FedAvg and the ensemble", MANY)


def find_gaps_of_pair(outcomes: Sequence[Outcome], pair: str) -> list[Gap]:
    """The gaps of one of PAIRS, one for each setting."""
    better, worse = PAIRS[pair]

    def describe(conditions: tuple) -> str:
        return f"α = {conditions[0].alpha:g}, {pair}"

    return find_gaps(outcomes, None, better, worse, describe, MANY)


def solution_runs() -> Outcomes:
    """Runs that support the claim of exercise 3."""
    return runs(["fedavg", "matching", "ensemble"], 1, init="different", seeds=MANY)


# ---------------------------------------------------------------------------- the function to build
SIZES = ((3, 4), (4, 3), (5, 2), (5, 6), (4, 1))  # units and incoming numbers of the hidden inputs


def match_units(a: np.ndarray, b: np.ndarray) -> list[int]:
    from scipy.optimize import linear_sum_assignment

    distances = [[np.linalg.norm(one - other) for other in b] for one in a]
    return linear_sum_assignment(distances)[1].tolist()


def draw_hidden_case(
    stream: np.random.Generator, units: int, width: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Two layers whose best order is clear, and the same by distances and by their squares (or
    inner products).
    """
    a = stream.normal(size=(units, width))
    b = a[stream.permutation(units)] + 0.7 * stream.normal(size=(units, width))
    orders = [list(order) for order in itertools.permutations(range(units))]
    differences = np.array([a - b[order] for order in orders])
    distance_sums = np.linalg.norm(differences, axis=2).sum(1)
    square_sums = (differences**2).sum((1, 2))
    is_clear = all(np.diff(np.sort(sums)[:2])[0] > 0.05 for sums in (distance_sums, square_sums))
    if not is_clear or distance_sums.argmin() != square_sums.argmin():
        return None
    return a, b


def compute_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.linalg.norm(a[:, None] - b[None], axis=2)


def first_come(a: np.ndarray, b: np.ndarray) -> list[int]:
    """Unit after unit takes the nearest one that is still free."""
    free = list(range(len(b)))
    order = []
    for row in compute_distances(a, b):
        nearest = min(free, key=lambda j, row=row: row[j])
        order.append(nearest)
        free.remove(nearest)
    return order


SLIPS = {
    "as_they_stand": lambda a, b: np.arange(len(a)),
    "nearest": lambda a, b: compute_distances(a, b).argmin(1),  # whoever else has it
    "inverse": lambda a, b: np.argsort(match_units(a, b)),  # where each unit of b goes
    "first_come": first_come,
    "from_one": lambda a, b: np.array(match_units(a, b)) + 1,
}


q1, q2, q3, q4 = exercises(
    __name__,
    q3=(both_causes, solution_runs),
    q4=Build(match_units, SIZES * 6, draw_hidden_case, SLIPS),
)
