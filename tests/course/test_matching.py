"""Lesson 11: the exercises by another way, worked numbers against another derivation, statements against real runs."""

import itertools
import math
import re

import numpy as np
import pytest
from lessons import LESSONS
from toy_outcomes import toy

from fedlab_nb.course.matching import lesson


def run(method, init, alpha, seed, accuracy):
    settings = {"dataset": "digits", "alpha": alpha, "seed": seed, "init": init}
    return toy(method, accuracy, options={}, settings=settings)


def pairs(init, alpha, gaps):
    """Runs of FedAvg and of matching, one pair a seed; `gaps` in points."""
    outcomes = []
    for seed, gap in enumerate(gaps):
        outcomes += [run("fedavg", init, alpha, seed, 0.3), run("matching", init, alpha, seed, 0.3 + gap / 100)]
    return outcomes


def test_exercise_1_by_counting():
    assert math.factorial(4) * math.factorial(3) == lesson.q1.problem.right_answer


def table(text):
    """The fits that a text gives, 'Unit 1 … 5, 4, 1', row by row."""
    return np.array([[int(n) for n in row] for row in re.findall(r"(\d+), (\d+), (\d+)(?=[.;])", text)])


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
    text = LESSONS["11_names_of_neurons"].split("A 1 fits B's units with")[1].split("In the order")[0]
    every = sums(table(text))
    assert every[0, 1, 2] == 13 and max(every[p] for p in every if p[0] == 0) == 14
    assert max(every, key=every.get) == (1, 0, 2) and every[1, 0, 2] == 16


CLEAR, SAME = pairs("different", 100, [70, 74, 76]), pairs("same", 100, [0, 0, 0])


@pytest.mark.parametrize(
    ("record", "state", "words"),
    [
        (CLEAR + SAME, "right", "Clear at α = 100, different starts"),
        (CLEAR, "wrong", "the difference is within the noise"),
        (SAME, "wrong", "where matching is clearly better"),
        (CLEAR + pairs("same", 0.1, [0, 1, -1]), "wrong", "Still to find"),  # not the same α
        (CLEAR[:4] + SAME, "wrong", "2 seeds with both methods"),
        ([run("fens", "same", 0.1, 0, 0.8)], "wrong", "no run of matching"),
    ],
)
def test_exercise_3(record, state, words):
    verdict = lesson.q3.problem.check(record)
    assert (verdict.state, words in verdict.message) == (state, True), verdict.message


def all_orders(a, b):
    return min(itertools.permutations(range(len(a))), key=lambda p: np.linalg.norm(a - b[list(p)], axis=1).sum())


def test_half_way_the_loss_is_larger():
    assert lesson.middle() == lesson.MIDDLES[1]
    assert lesson.by_hand().sentence.startswith("With A 1 with B 1")


@pytest.mark.slow
def test_what_the_lesson_says_of_its_runs():
    same = repr(lesson.same_function())
    assert "less than 10⁻¹⁰" in same and "10^125 orders" in same
    right, average = map(int, re.findall(r"right for (\d+) %", same))
    assert average < right - 20
    assert lesson.under_skew() == lesson.SKEWED[1] and lesson.conflicts() == lesson.CONFLICTS[2]
    barriers = re.search(r"is ([\d.]+) with the units as they stand, and ([\d.]+) after", lesson.pair().sentence)
    assert float(barriers[1]) > 0.3 and float(barriers[2]) < 0.05


def test_right_however_it_is_written():
    assert lesson.q4.problem.check(all_orders).state == "right"
