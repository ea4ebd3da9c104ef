"""names of neurons: its numbers and pictures, and its exercises (digits, ten
clients).
"""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from ...data import load
from ...labs.matching.game import UNITS, draw_matching_game, make_matching_puzzle
from ...methods.base import weighted_mean
from ...methods.matching.wiring import find_unit_wiring, permute_units
from ...models import load_state, model_state
from ...plots import Picture
from ...studies import Outcome, Outcomes
from ...studies.lesson_runs import DATASET, MANY, runs
from ..kit import Build, GuessOption, Verdict, exercises, load_lesson_text
from ..kit.array_types import UnitDistances, UnitWeights
from ..kit.claims import (
    CLEAR,
    Gap,
    find_gaps_between_variants,
    make_figure_functions,
    make_verdict_on_missing_runs,
)
from ..kit.missing_name import make_getattr_for_missing_names

__getattr__ = make_getattr_for_missing_names(__name__)

SKEWED = load_lesson_text(__name__, "skewed")
mean_of, ten_seeds, two_causes = make_figure_functions(__name__, "ten_seeds", "two_causes")


# ------------------------------------------------------------------------------ units have no names
class PermutedCopyComparison(NamedTuple):
    """A network, the same in another order of its units, and the average of both."""

    accuracies: list[float]  # test accuracies 0–1 of the three
    largest_logit_difference: float  # between the first two
    log10_of_order_count: int  # how many orders the units have, in powers of ten


def compare_network_with_permuted_copy() -> PermutedCopyComparison:
    """Compare a client's network, the same in another order of its units, and the average of both."""
    data = load(DATASET)
    stream = torch.Generator().manual_seed(0)
    network = runs("matching", 100, seeds=1)[0].model.clients.module(0).cpu().double().eval()
    wiring = find_unit_wiring(network)
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
    return PermutedCopyComparison(accuracies, largest_difference, round(powers_of_ten))


def compute_accuracy_averaged_with_permuted_self() -> int:
    """Compute the accuracy of the average of a network and of itself in another order, in percent."""
    comparison = compare_network_with_permuted_copy()
    return round(100 * comparison.accuracies[2])


def draw_starting_puzzle(puzzle_number: int = 0) -> Picture:
    """Draw a puzzle as the tab shows it at the start, the units of B in their own order."""
    return draw_matching_game(make_matching_puzzle(puzzle_number), range(UNITS), puzzle_number)


# --------------------------------------------------------------------------------- ten stored seeds
def choose_answer_on_matching_under_skew() -> GuessOption:
    """Choose which of SKEWED matching is at α = 0.1 with a common start."""
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


def check_matching_gains_and_stays_behind_ensemble(outcomes: Sequence[Outcome]) -> Verdict:
    """Judge the claim of exercise 3: in one setting matching gains clearly more than LARGE, and stays
    clearly more than LARGE behind the average of predictions. It is found on validation images; the
    test images are looked at for it alone.
    """
    known = [o for o in outcomes if o.method in ("fedavg", "matching", "ensemble")]
    gaps_by_pair = [find_gaps_of_method_pair(known, pair) for pair in PAIRS]
    found = []
    for both in zip(*gaps_by_pair, strict=True):  # the gaps of one setting
        words = "; ".join(gap.describe() for gap in both)
        found.append(words)
        if all(gap.kind == CLEAR and gap.difference_band.low > LARGE for gap in both):
            points = " and ".join(gap.test_gap.mean_in_points for gap in both if gap.test_gap)
            return Verdict(
                "right", f"Supported by your runs. {words}. On the test images: {points} points."
            )
    wanted = (
        f"an α at which matching gains clearly more than {100 * LARGE:g} points, and stays clearly "
        "more behind"
    )
    return make_verdict_on_missing_runs(
        [wanted], found, "no run of matching, FedAvg and the ensemble", MANY
    )


def find_gaps_of_method_pair(outcomes: Sequence[Outcome], pair_name: str) -> list[Gap]:
    """Find the gaps of one of PAIRS, one for each setting."""
    better, worse = PAIRS[pair_name]

    def describe(conditions: tuple) -> str:
        return f"α = {conditions[0].alpha:g}, {pair_name}"

    return find_gaps_between_variants(outcomes, None, better, worse, describe, MANY)


def run_solution() -> Outcomes:
    """Run what supports the claim of exercise 3."""
    return runs(["fedavg", "matching", "ensemble"], 1, init="different", seeds=MANY)


# ---------------------------------------------------------------------------- the function to build
SIZES = ((3, 4), (4, 3), (5, 2), (5, 6), (4, 1))  # units and incoming numbers of the hidden inputs


def match_units(a: UnitWeights, b: UnitWeights) -> list[int]:
    from scipy.optimize import linear_sum_assignment

    distances = [[np.linalg.norm(one - other) for other in b] for one in a]
    return linear_sum_assignment(distances)[1].tolist()


class MatchUnitsArguments(NamedTuple):
    """The arguments of a call of `match_units`: the incoming numbers of two layers' units."""

    a: UnitWeights  # [units, inputs]
    b: UnitWeights  # [units, inputs]


def draw_random_match_units_arguments(
    random_stream: np.random.Generator, unit_count: int, input_count: int
) -> MatchUnitsArguments | None:
    """Draw two layers; None unless their best order is clear, and the same by distances and by their squares (or
    inner products).
    """
    a = random_stream.normal(size=(unit_count, input_count))
    b = a[random_stream.permutation(unit_count)] + 0.7 * random_stream.normal(
        size=(unit_count, input_count)
    )
    orders = [list(order) for order in itertools.permutations(range(unit_count))]
    differences = np.array([a - b[order] for order in orders])
    distance_sums = np.linalg.norm(differences, axis=2).sum(1)
    square_sums = (differences**2).sum((1, 2))
    is_clear = all(np.diff(np.sort(sums)[:2])[0] > 0.05 for sums in (distance_sums, square_sums))
    if not is_clear or distance_sums.argmin() != square_sums.argmin():
        return None
    return MatchUnitsArguments(a, b)


def compute_unit_distances(a: UnitWeights, b: UnitWeights) -> UnitDistances:
    return np.linalg.norm(a[:, None] - b[None], axis=2)


def match_units_first_come_first_served_by_mistake(a: UnitWeights, b: UnitWeights) -> list[int]:
    """Unit after unit takes the nearest one that is still free."""
    free = list(range(len(b)))
    order = []
    for row in compute_unit_distances(a, b):
        nearest = min(free, key=lambda j, row=row: row[j])
        order.append(nearest)
        free.remove(nearest)
    return order


SLIPS = {
    "as_they_stand": lambda a, b: np.arange(len(a)),
    "nearest": lambda a, b: compute_unit_distances(a, b).argmin(1),  # whoever else has it
    "inverse": lambda a, b: np.argsort(match_units(a, b)),  # where each unit of b goes
    "first_come": match_units_first_come_first_served_by_mistake,
    "from_one": lambda a, b: np.array(match_units(a, b)) + 1,
}


q1, q2, q3, q4 = exercises(
    __name__,
    q3=(check_matching_gains_and_stays_behind_ensemble, run_solution),
    q4=Build(match_units, SIZES * 6, draw_random_match_units_arguments, SLIPS),
)
