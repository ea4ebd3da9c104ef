"""Lesson 05: the exercises by another way, worked numbers against another derivation, statements against real runs."""

import numpy as np
import pytest
import torch
from lessons import LESSONS
from toy_outcomes import toy

from fedlab_nb.course.coboosting import lesson
from fedlab_nb.methods.coboosting import CoBoostingReport
from fedlab_nb.methods.coboosting.boosting import perturb, sign_step, weight_gradient


def run(method, alpha, seed, accuracy, curve=None, **options):
    report = CoBoostingReport(ensemble_curve=curve)
    return toy(method, accuracy, options=options, report=report, settings={"alpha": alpha, "clients": 10, "seed": seed})


def pairs(alpha, gains, **options):
    """Runs of both methods, one pair a seed; `gains` of the weighted ensemble in points."""
    outcomes = []
    for seed, gain in enumerate(gains):
        outcomes.append(run("ensemble", alpha, seed, 0.5))
        outcomes.append(run("coboosting", alpha, seed, 0.4, [0.5, 0.5 + gain / 100], **options))
    return outcomes


CLEAR, IDLE = pairs(0.3, [8, 7, 13]), pairs(3.0, [0, -2, -3])


def test_exercise_1_is_what_the_method_does():
    w = sign_step(torch.tensor([0.02, 0.3, 0.5]), torch.tensor([1.0, -1.0, 1.0]), 0.1)
    assert lesson.q1.problem.check(float(w[1] / w.sum())).state == "right"


def test_exercise_2_is_what_the_method_does():
    x, weights, u = torch.rand(2, 1, 8, 8), torch.randn(64, 10) / 8, torch.rand(2, 10)
    steps = [
        (perturb(x, lambda x: x.flatten(1) @ weights, u, 0.1, kind=kind) - x).flatten(1).norm(dim=1)
        for kind in ("sign", "literal")
    ]
    ratio = float((steps[0] / steps[1]).mean())
    assert lesson.q2.problem.check(ratio).state == "right"


@pytest.mark.parametrize(
    ("record", "state", "words"),
    [
        (pairs(0.1, [8, 7, 13]) + pairs(10.0, [0, -2, -3]), "wrong", "no setting between α = 0.1 and 10"),
        (CLEAR + IDLE, "right", "α = 0.3, 10 clients: +8, +7, +13 points, mean +9 ± 8"),
        (CLEAR + IDLE[:4], "wrong", "α = 3, 10 clients has 2 seeds"),
        (CLEAR + pairs(0.3, [0, 0, 0], ee=False), "wrong", "where it is not"),
        (pairs(0.3, [8, 7, 13], ghs=False) + IDLE, "right", "no GHS"),
    ],
)
def test_exercise_3(record, state, words):
    verdict = lesson.q3.problem.check(record)
    assert verdict.state == state
    assert words in verdict.message


def test_one_step_by_hand():
    # p₁ = 1 / (1 + e^(1/3)) = 0.417; g_k = p₁ (f_k1 − f_k0) = p₁ · (−3, 3, −1), minus its mean −p₁/3
    text = LESSONS["05_co_boosting"]
    p = 1 / (1 + np.exp(1 / 3))
    for gradient in (p * np.array([-3, 3, -1]) + p / 3).tolist():
        assert f"{gradient:+.2f}" in text
    assert "w = (0.43, 0.23, 0.43), shares (0.39, 0.21, 0.39)" in text


def test_two_images_by_hand():
    text = LESSONS["05_co_boosting"]
    assert "(1 − p) · CE = 1.29" in text
    assert "31 times" in text and "502 times" in text  # ln 5 / ln (1/0.95), and times 0.8 / 0.05


def test_the_program_finds_the_one_client_who_is_right():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 60)
    logits = rng.normal(0, 1, (60, 4, 3)) * 3
    logits[:, 2] = np.eye(3)[labels]
    w = lesson.climb(logits.astype(np.float32), labels)
    total = np.einsum("m,nmc->nc", w, logits)
    assert (total.argmax(1) == labels).mean() > (logits.sum(1).argmax(1) == labels).mean()
    assert w[2] == w.max()


def by_the_method(logits, labels, w, eta):
    logits, labels, w = map(torch.as_tensor, (logits, labels, w))
    return sign_step(w, weight_gradient(logits, labels, w), eta)


def test_right_however_it_is_written():
    assert lesson.q4.problem.check(by_the_method).state == "right"
