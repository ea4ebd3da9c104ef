"""Lesson 05: exercises in three states, worked numbers against another derivation, statements against real runs."""

import numpy as np
import pytest
import torch
from toy_outcomes import toy

from fedlab_nb.course.coboosting import lesson
from fedlab_nb.methods.coboosting import CoBoostingReport
from fedlab_nb.methods.coboosting.boosting import perturb, sign_step


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


@pytest.mark.parametrize(
    ("answer", "state"),
    [(None, "unattempted"), (0.5, "right"), (0.4, "wrong"), (0.556, "wrong"), (0.217, "wrong"), ("half", "wrong")],
)
def test_exercise_1(answer, state):
    assert lesson.q1.problem.check(answer).state == state


@pytest.mark.parametrize("answer", ["0.5", "0,5", ".5", "1/2", "½", "50 %", "50%", "0.50", "0.4/0.8", "50 percent"])
def test_exercise_1_in_every_sensible_format(answer):
    assert lesson.q1.problem.check(answer).state == "right"


@pytest.mark.parametrize("answer", ["8", "8.0", "8 times", "8x", "8 ×", "8×", "≈ 8", "64/8", "= 8"])
def test_exercise_2_in_every_sensible_format(answer):
    assert lesson.q2.problem.check(answer).state == "right"


def test_exercise_1_is_what_the_method_does():
    w = sign_step(torch.tensor([0.02, 0.3, 0.5]), torch.tensor([1.0, -1.0, 1.0]), 0.1)
    assert lesson.q1.problem.check(float(w[1] / w.sum())).state == "right"


@pytest.mark.parametrize(("answer", "state"), [(None, "unattempted"), (8, "right"), (64, "wrong"), (55.4, "wrong")])
def test_exercise_2(answer, state):
    assert lesson.q2.problem.check(answer).state == state


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
        ([], "unattempted", "No runs"),
        (CLEAR, "wrong", "where it is not"),
        # what the lesson prints at α = 0.1 and 10 is no answer
        (pairs(0.1, [8, 7, 13]) + pairs(10.0, [0, -2, -3]), "wrong", "no setting between α = 0.1 and 10"),
        (pairs(1, [5, 6, 7]) + pairs(2, [-5, -6, -7]), "right", "α = 1, 10 clients: +5"),
        (IDLE, "wrong", "clearly better"),
        (CLEAR + IDLE, "right", "α = 0.3, 10 clients: +8, +7, +13 points, mean +9 ± 8"),
        (CLEAR + IDLE[:4], "wrong", "α = 3, 10 clients has 2 seeds"),
        ([r for r in CLEAR + IDLE if r.method == "coboosting"], "wrong", "0 seeds"),
        ([run("fens", 0.3, 0, 0.9)], "wrong", "no setting between"),
        # without EE nothing is re-weighted: no answer to the question
        (CLEAR + pairs(0.3, [0, 0, 0], ee=False), "wrong", "where it is not"),
        # without GHS it is another setting of the same method, and counts
        (pairs(0.3, [8, 7, 13], ghs=False) + IDLE, "right", "no GHS"),
    ],
)
def test_exercise_3(record, state, words):
    verdict = lesson.q3.problem.check(record)
    assert verdict.state == state
    assert words in verdict.message


def test_exercise_3_counts_a_repeated_seed_once():
    assert "has 1 seed with" in lesson.q3.problem.check(pairs(0.3, [20]) * 3).message


def test_one_step_by_hand():
    # p₁ = 1 / (1 + e^(1/3)) = 0.417; g_k = p₁ (f_k1 − f_k0) = p₁ · (−3, 3, −1), minus its mean −p₁/3
    text = repr(lesson.one_step())
    p = 1 / (1 + np.exp(1 / 3))
    for gradient in (p * np.array([-3, 3, -1]) + p / 3).tolist():
        assert f"{gradient:+.2f}" in text
    assert "w = (0.43, 0.23, 0.43), shares (0.39, 0.21, 0.39)" in text


def test_two_images_by_hand():
    text = repr(lesson.two_images())
    assert "0.05 · " not in text and "(1 − p) · CE = 1.29" in text
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


@pytest.mark.slow
def test_what_the_lesson_says_holds():
    """Directions that the notebook's text names, with margins inside what was measured (seeds 0-2)."""
    outcomes = lesson.runs()
    s, real = lesson.scores(outcomes), lesson.with_real_weights()
    assert lesson.percent(real) >= lesson.percent(s["ensemble"]) >= lesson.percent(s["equal"]) + 4
    assert all(s["server"][seed] < s["ensemble"][seed] for seed in real)
    assert abs(lesson.percent(s["server"]) - lesson.percent(s["equal"])) <= 5
    assert "recognises 0 % of the" in repr(lesson.one_class(outcomes)) and lesson.worst_class(outcomes) == 0
    assert lesson.q3.problem.check(lesson.solution_runs()).state == "right"
    for seed, o in lesson.by_seed(outcomes, "coboosting").items():
        equal = lesson.by_seed(outcomes, "ensemble")[seed]
        assert o.report.ensemble_curve[0] == equal.accuracy  # EE begins with the second epoch
        assert o.bytes_up == equal.bytes_up  # the upload is one model a client
