"""Lesson 2: the exercises by another way, and the two numbers that it computes by hand."""

import torch
from lessons import LESSONS

from fedlab_nb.course.heterogeneity import lesson
from fedlab_nb.papers.measures import measure_client_dominance_in_ensemble
from fedlab_nb.studies import run


def test_exercise_1_is_where_the_mean_of_logits_turns():
    logits = torch.zeros(10, 2)
    logits[:9, 0] = 6
    answers = []
    for loud in (lesson.q1.problem.right_answer - 0.1, lesson.q1.problem.right_answer + 0.1):
        logits[9, 1] = loud
        answers.append(logits.mean(0).argmax().item())
    assert answers == [0, 1]


def test_two_units_by_hand():
    # f_A(3) = 1·max(0, 3) = 3 and f_B(3) = −max(0, −3) = 0; the mean weights are 0
    text = LESSONS["2_heterogeneity"]
    assert "x = 3: A says 3, B says 0; mean of the predictions 1.5;" in text
    assert "x = −3: A says 0, B says −3; mean of the predictions −1.5;" in text
    assert text.count("θ = 0, v = 0, which says 0") == 2


def test_two_clients_of_seed_4_outshout_eight():
    outcome = run("ensemble", alpha=0.1, seed=4, rule="logits")
    counts = outcome.label_counts
    assert [k for k in range(10) if counts[k, 8] == counts[k].sum()] == [4, 5]
    assert set(outcome.test_predictions) == {8}
    measures = measure_client_dominance_in_ensemble(outcome)
    assert (measures["lonely"], measures["same"]) == (2, 1)
    assert 54 < measures["loudest"] < 58
