"""The lesson on names of neurons: the exercises by another way, worked numbers against another derivation,
statements against real runs."""

import itertools
import math
import re

import numpy as np
import pytest
from lessons import LESSONS

from fedlab_nb.course.matching import lesson
from fedlab_nb.labs.matching.pairs import match_networks_of_two_clients


def test_exercise_1_by_counting():
    assert math.factorial(4) * math.factorial(3) == lesson.q1.problem.right_answer


def read_fits(text):
    """The table of fits that a text gives, 'Unit 1 … 5, 4, 1', row by row."""
    rows = re.findall(r"(\d+), (\d+), (\d+)(?=[.;])", text)
    return np.array(rows).astype(int)


def sum_fits_of_all_orders(fits):
    """{order: sum}: unit i of A is matched with unit order[i] of B."""
    units = range(3)
    return {order: fits[units, order].sum() for order in itertools.permutations(units)}


def test_exercise_2_and_its_slips_by_trying_all_orders():
    question = lesson.q2.problem.question.replace("1, 2, 3 with", "with")
    by_order = sum_fits_of_all_orders(read_fits(question))
    sums = sorted(by_order.values())
    assert sums[-1] == lesson.q2.problem.right_answer
    assert sums.count(11) == 1
    slips = {value for value, _ in lesson.q2.problem.slips}
    assert slips == {13, *sums[-4:-1], by_order[0, 1, 2]} - {11}


def test_the_worked_assignment_by_trying_all_orders():
    _, text = LESSONS["shelf/names_of_neurons"].split("A 1 fits B's units with")
    by_order = sum_fits_of_all_orders(read_fits(text.split("In the order")[0]))
    assert by_order[0, 1, 2] == 13
    assert max(total for order, total in by_order.items() if order[0] == 0) == 14
    assert max(by_order, key=by_order.get) == (1, 0, 2)
    assert by_order[1, 0, 2] == 16


def test_the_first_picture_is_in_b_s_own_order():
    assert lesson.draw_starting_puzzle().sentence.startswith("With A 1 with B 1")


@pytest.mark.slow
def test_what_the_lesson_says_of_its_runs():
    accuracies, difference, order_digits = lesson.compare_network_with_permuted_copy()
    network, copy, average = accuracies
    assert network == copy > 0.8
    assert average < network - 0.2
    assert difference < 1e-10
    assert order_digits == 125
    assert "about $10^{125}$ of them" in LESSONS["shelf/names_of_neurons"]
    assert lesson.compute_accuracy_percent_averaged_with_permuted_copy() == round(100 * average)
    assert lesson.find_right_option_on_matching_under_skew() == lesson.SKEWED[1]
    outcome = lesson.runs("matching", 100, init="different", seeds=1)[0]
    pair = match_networks_of_two_clients(outcome, 0, 1, "rebasin")
    assert pair.before.loss_barrier > 0.3
    assert pair.after.loss_barrier < 0.05
