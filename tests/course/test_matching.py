"""The lesson on names of neurons: the exercises by another way, worked numbers against another derivation,
statements against real runs."""

import itertools
import math
import re

import numpy as np
import pytest
from lessons import LESSONS

from fedlab_nb.course.matching import lesson
from fedlab_nb.labs.matching.pairs import match_clients


def test_exercise_1_by_counting():
    assert math.factorial(4) * math.factorial(3) == lesson.q1.problem.right_answer


def table(text):
    """The fits that a text gives, 'Unit 1 … 5, 4, 1', row by row."""
    return np.array(
        [[int(n) for n in row] for row in re.findall(r"(\d+), (\d+), (\d+)(?=[.;])", text)]
    )


def sums(fits):
    return {p: sum(fits[i, j] for i, j in enumerate(p)) for p in itertools.permutations(range(3))}


def test_exercise_2_and_its_slips_by_trying_all_orders():
    question = lesson.q2.problem.question.replace("1, 2, 3 with", "with")
    every = sums(table(question))
    assert max(every.values()) == lesson.q2.problem.right_answer
    assert list(every.values()).count(11) == 1
    wrong = {value for value, _ in lesson.q2.problem.slips}
    assert wrong == {13, *sorted(every.values())[-4:-1], every[0, 1, 2]} - {11}


def test_the_worked_assignment_by_trying_all_orders():
    text = (
        LESSONS["shelf/names_of_neurons"]
        .split("A 1 fits B's units with")[1]
        .split("In the order")[0]
    )
    every = sums(table(text))
    assert every[0, 1, 2] == 13 and max(every[p] for p in every if p[0] == 0) == 14
    assert max(every, key=every.get) == (1, 0, 2) and every[1, 0, 2] == 16


def test_the_first_picture_is_in_b_s_own_order():
    assert lesson.draw_starting_puzzle().sentence.startswith("With A 1 with B 1")


@pytest.mark.slow
def test_what_the_lesson_says_of_its_runs():
    (own, other, average), apart, orders = lesson.compare_network_with_permuted_copy()
    assert own == other > 0.8 and average < own - 0.2 and apart < 1e-10 and orders == 125
    assert (
        lesson.compute_accuracy_averaged_with_permuted_self() == round(100 * average)
        and "about $10^{125}$ of them" in LESSONS["shelf/names_of_neurons"]
    )
    assert lesson.choose_answer_on_matching_under_skew() == lesson.SKEWED[1]
    outcome = lesson.runs("matching", 100, init="different", seeds=1)[0]
    pair = match_clients(outcome, 0, 1, "rebasin")
    assert pair.before.barrier > 0.3 and pair.after.barrier < 0.05
