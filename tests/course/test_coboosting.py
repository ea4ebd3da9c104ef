"""The lesson on Co-Boosting: the exercises by another way, worked numbers against another derivation,
statements against real runs."""

import numpy as np
import torch
from lessons import LESSONS
from toy_outcomes import make_toy_outcome

from fedlab_nb.course.coboosting import lesson
from fedlab_nb.methods.coboosting.boosting import step_down_gradient_sign_within_unit_interval


def test_exercise_1_is_what_the_method_does():
    weights = torch.tensor([0.02, 0.3, 0.5])
    gradient = torch.tensor([1.0, -1.0, 1.0])
    w = step_down_gradient_sign_within_unit_interval(weights, gradient, 0.1)
    assert lesson.q1.problem.check(float(w[1] / w.sum())).state == "right"


def test_one_step_by_hand():
    # p₁ = 1 / (1 + e^(1/3)) = 0.417; g_k = p₁ (f_k1 − f_k0) = p₁ · (−3, 3, −1), minus its mean −p₁/3
    text = LESSONS["shelf/co_boosting"]
    p = 1 / (1 + np.exp(1 / 3))
    for gradient in (p * np.array([-3, 3, -1]) + p / 3).tolist():
        assert f"{gradient:+.2f}" in text
    assert "w = (0.43, 0.23, 0.43), shares (0.39, 0.21, 0.39)" in text


def test_the_worst_class_and_its_holders():
    """Two images of each class; client B knows class 1, the two others say class 0 to all."""
    logits = np.zeros((4, 3, 2))  # [N, M, C]
    logits[:, :, 0] = 2
    logits[2:, 1] = (0, 3)
    outcome = make_toy_outcome(
        "ensemble",
        0.5,
        test_features=logits.reshape(4, -1),
        test_labels=np.array([0, 0, 1, 1]),
        label_counts=np.array([[9, 0], [0, 9], [9, 0]]),
        test_predictions=np.zeros(4, int),
        plan=None,
    )
    assert lesson.compute_worst_class_accuracy_percent(outcome) == 0
    text = repr(lesson.show_worst_class(outcome))
    assert "0 % of the “1”s" in text
    assert "(client B 100 %)" in text
    assert "2 of 3 clients" in text


def test_the_answer_on_the_student_follows_its_accuracy(monkeypatch):
    for student, answer in zip((70, 58, 45), lesson.STUDENTS, strict=True):
        means = {"server": student, "weighted": 60, "equal": 37}
        monkeypatch.setattr(lesson, "mean_of", means.get)
        assert lesson.find_right_option_on_student_accuracy() == answer
