"""Lesson 02: the exercises by another way, worked numbers against another derivation."""

import pytest
import torch
from toy_outcomes import toy

from fedlab_nb.course.averaging import lesson


def record(alpha, gaps, method="feddf", first=0, **other):
    """Runs of the ensemble and one student, a pair a seed; `gaps` in points."""
    outcomes = []
    for seed, gap in enumerate(gaps, first):
        settings = {"alpha": alpha, "seed": seed, **other}
        outcomes += [toy("ensemble", 0.6, settings=settings), toy(method, 0.6 + gap / 100, settings=settings)]
    return outcomes


def test_exercise_1_is_torch_s_divergence():
    p, q = torch.tensor([0.8, 0.2]), torch.tensor([0.5, 0.5])
    answer = torch.nn.functional.kl_div(q.log(), p, reduction="sum").item()
    assert lesson.q1.problem.check(answer).state == "right"
    reverse = torch.nn.functional.kl_div(p.log(), q, reduction="sum").item()
    assert "KL(student" in lesson.q1.problem.check(reverse).message


def test_exercise_2_is_torch_s_softmax():
    answer = (torch.tensor([4.0, 0.0]) / 4).softmax(0)[0].item()
    assert lesson.q2.problem.check(answer).state == "right"


@pytest.mark.parametrize(
    ("runs", "state", "words"),
    [
        (record(0.1, [-2, 0, -1]) + record(1, [0, -3, 0]), "right", "FedDF, one shot at α = 0.1: -1 ± 2 points"),
        (record(0.1, [-2, 0, -1]) + record(1, [5, 4, 6]), "wrong", "contradict the claim"),
        (record(0.1, [-2, 0, -1]) + record(1, [12, -4, 1]), "right", "at α = 1: +3 ± 20 points"),
        (record(0.1, [1, 0]) + record(0.1, [1], first=2, classes_per_client=3), "wrong", "has 2 seeds with"),
    ],
)
def test_exercise_3(runs, state, words):
    verdict = lesson.q3.problem.check(runs)
    assert verdict.state == state and words in verdict.message


def by_torch(logits, temperature):
    return (torch.tensor(logits, dtype=torch.float32).mean(0) / temperature).softmax(-1)


def test_right_however_it_is_written():
    assert lesson.q4.problem.check(by_torch).state == "right"
