"""Names of neurons: its numbers and pictures, and its exercises (digits, ten clients)."""

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
from ...models import copy_model_state, load_state
from ...plots import Picture
from ...studies import Outcome, Outcomes
from ...studies.lesson_runs import DATASET, MANY, runs
from ..kit import Build, GuessOption, Verdict, exercises, load_lesson_text_or_list
from ..kit.array_types import UnitDistances, UnitWeights
from ..kit.claims import (
    CLEAR,
    AccuracyGap,
    find_accuracy_gaps_between_variants,
    make_mean_and_bars_functions,
    make_verdict_on_missing_runs,
)
from ..kit.missing_name import make_getattr_for_missing_names

__getattr__ = make_getattr_for_missing_names(__name__)

SKEWED = load_lesson_text_or_list(__name__, "skewed")
mean_of, ten_seeds, two_causes = make_mean_and_bars_functions(__name__, "ten_seeds", "two_causes")


# ------------------------------------------------------------------------------ units have no names
class PermutedCopyComparison(NamedTuple):
    """A network, the same network with its units in another order, and the average of both."""

    accuracies: list[float]  # test accuracies 0–1 of the three
    largest_logit_difference: float  # between the first two
    log10_of_order_count: int  # how many orders the units have, in powers of ten


def compare_network_with_permuted_copy() -> PermutedCopyComparison:
    """Compare a client's network, the same network with its units in another order, and the average of both."""
    data = load(DATASET)
    stream = torch.Generator().manual_seed(0)
    outcome = runs("matching", 100, seeds=1)[0]
    network = outcome.model.clients.module(0).cpu().double().eval()
    wiring = find_unit_wiring(network)
    state = copy_model_state(network)
    orders = [torch.randperm(n, generator=stream) for n in wiring.units]
    permuted_state = permute_units(state, wiring, orders)
    average = weighted_mean([state, permuted_state], [1, 1])
    all_logits = []
    accuracies = []
    for weights in (state, permuted_state, average):
        load_state(network, weights)
        logits = network(data.x_test.double()).detach()
        all_logits.append(logits)
        is_right = logits.argmax(1) == data.y_test
        accuracies.append(float(is_right.double().mean()))
    largest_difference = float((all_logits[0] - all_logits[1]).abs().max())
    # The number of orders is the product of n! over the layers.
    log_of_order_count = sum(math.lgamma(n + 1) for n in wiring.units)
    powers_of_ten = round(log_of_order_count / math.log(10))
    return PermutedCopyComparison(accuracies, largest_difference, powers_of_ten)


def compute_accuracy_percent_averaged_with_permuted_copy() -> int:
    """Compute the accuracy of the average of a network and its permuted copy, in whole per cent."""
    comparison = compare_network_with_permuted_copy()
    return round(100 * comparison.accuracies[2])


def draw_starting_puzzle(puzzle_number: int = 0) -> Picture:
    """Draw a puzzle as the tab shows it at the start, with the units of B in their original order."""
    return draw_matching_game(make_matching_puzzle(puzzle_number), range(UNITS), puzzle_number)


# --------------------------------------------------------------------------------- ten stored seeds
def find_right_option_on_matching_under_skew() -> GuessOption:
    """Choose which of SKEWED is true of matching at α = 0.1 with a common start."""
    gap = mean_of("skewed_matched") - mean_of("skewed_plain")
    if gap > 5:
        return SKEWED[0]
    if gap < -5:
        return SKEWED[2]
    return SKEWED[1]


# ---------------------------------------------------------------------------------- on the record
LARGE = 0.2  # the gap that both pairs have to exceed, as a share
PAIRS = {
    "matching − FedAvg": ("matching", "fedavg"),
    "ensemble − matching": ("ensemble", "matching"),
}


def check_matching_gains_and_stays_behind_ensemble(outcomes: Sequence[Outcome]) -> Verdict:
    """Judge the claim of exercise 3: in one setting matching gains clearly more than LARGE, and stays
    clearly more than LARGE behind the average of predictions.

    The setting is found on validation images; only for it are the test images used.
    """
    known = [o for o in outcomes if o.method in ("fedavg", "matching", "ensemble")]
    gaps_by_pair = [find_accuracy_gaps_of_method_pair(known, pair) for pair in PAIRS]
    found = []
    for gaps in zip(*gaps_by_pair, strict=True):  # the gaps of all PAIRS in one setting
        text = "; ".join(gap.describe() for gap in gaps)
        found.append(text)
        if all(gap.kind == CLEAR and gap.difference_band.low > LARGE for gap in gaps):
            points = " and ".join(
                gap.test_gap.mean_with_band_in_points for gap in gaps if gap.test_gap
            )
            return Verdict(
                "right", f"Supported by your runs. {text}. On the test images: {points} points."
            )
    wanted = (
        f"an α at which matching gains clearly more than {100 * LARGE:g} points, and stays clearly "
        "more behind"
    )
    return make_verdict_on_missing_runs(
        [wanted], found, "no run of matching, FedAvg and the ensemble", MANY
    )


def find_accuracy_gaps_of_method_pair(
    outcomes: Sequence[Outcome], pair_name: str
) -> list[AccuracyGap]:
    """Find the gaps of one of PAIRS, one for each setting."""
    better, worse = PAIRS[pair_name]

    def describe(conditions: tuple) -> str:
        return f"α = {conditions[0].alpha:g}, {pair_name}"

    return find_accuracy_gaps_between_variants(outcomes, None, better, worse, describe, MANY)


def run_solution() -> Outcomes:
    """Run what supports the claim of exercise 3."""
    return runs(["fedavg", "matching", "ensemble"], 1, init="different", seeds=MANY)


# ---------------------------------------------------------------------------- the function to build
SIZES = (
    (3, 4),
    (4, 3),
    (5, 2),
    (5, 6),
    (4, 1),
)  # units, and the numbers that each of them receives


def match_units(a: np.ndarray, b: np.ndarray) -> list[int]:
    from scipy.optimize import linear_sum_assignment

    distances = [[np.linalg.norm(one - other) for other in b] for one in a]
    return linear_sum_assignment(distances)[1].tolist()


class MatchUnitsArguments(NamedTuple):
    """The arguments of a call of `match_units`: the incoming weights of the units of two layers."""

    a: UnitWeights  # [units, inputs]
    b: UnitWeights  # [units, inputs]


def draw_random_match_units_arguments_or_none(
    random_stream: np.random.Generator, unit_count: int, input_count: int
) -> MatchUnitsArguments | None:
    """Draw two layers; None if they do not have one best order.

    A learner may compare units by distances, by squared distances or by inner products. The best order
    has to be the same for all of these, and clearly better than the second-best one.
    """
    a = random_stream.normal(size=(unit_count, input_count))
    permuted = a[random_stream.permutation(unit_count)]
    b = permuted + 0.7 * random_stream.normal(size=(unit_count, input_count))
    orders = [list(order) for order in itertools.permutations(range(unit_count))]
    differences = np.array([a - b[order] for order in orders])  # [orders, units, inputs]
    distance_sums = np.linalg.norm(differences, axis=2).sum(1)
    square_sums = (differences**2).sum((1, 2))
    if distance_sums.argmin() != square_sums.argmin():
        return None
    for sums in (distance_sums, square_sums):
        best, second_best = np.sort(sums)[:2]
        if second_best - best <= 0.05:
            return None
    return MatchUnitsArguments(a, b)


def compute_unit_distances(a: UnitWeights, b: UnitWeights) -> UnitDistances:
    return np.linalg.norm(a[:, None] - b[None], axis=2)


def match_units_first_come_first_served_by_mistake(a: UnitWeights, b: UnitWeights) -> list[int]:
    """Make the mistake that each unit, one after the other, takes the nearest unit that is still free."""
    free = list(range(len(b)))
    order = []
    for row in compute_unit_distances(a, b):
        nearest = min(free, key=lambda j, row=row: row[j])
        order.append(nearest)
        free.remove(nearest)
    return order


SLIPS = {
    "as_they_stand": lambda a, b: np.arange(len(a)),
    # The nearest unit, even if another unit has the same one.
    "nearest": lambda a, b: compute_unit_distances(a, b).argmin(1),
    # The inverse order: where each unit of b goes.
    "inverse": lambda a, b: np.argsort(match_units(a, b)),
    "first_come": match_units_first_come_first_served_by_mistake,
    "from_one": lambda a, b: np.array(match_units(a, b)) + 1,
}


q1, q2, q3, q4 = exercises(
    __name__,
    q3=(check_matching_gains_and_stays_behind_ensemble, run_solution),
    q4=Build(match_units, SIZES * 6, draw_random_match_units_arguments_or_none, SLIPS),
)
