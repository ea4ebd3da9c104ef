"""Lesson 10: exercises in three states, typical wrong solutions named, worked numbers against another derivation."""

import numpy as np
import pytest
from toy_outcomes import toy

from fedlab_nb.course.afl import exercises, lesson
from fedlab_nb.methods.afl import Sums, head


@pytest.mark.parametrize(
    ("answer", "state", "words"),
    [
        (None, "unattempted", "No answer"),
        (6050, "right", "Yes"),
        ("6050 numbers", "right", "Yes"),
        (11000, "wrong", "one triangle"),
        (5940, "wrong", "the 1 at the end"),
        (5950, "wrong", "diagonal"),
        (5050, "wrong", "class sums are missing"),
        (1000, "wrong", "moments are missing"),
        (7000, "wrong", "too large"),
    ],
)
def test_exercise_1(answer, state, words):
    verdict = lesson.q1.problem.check(answer)
    assert verdict.state == state and words in verdict.message


@pytest.mark.parametrize(
    ("answer", "state", "words"),
    [
        (None, "unattempted", "No answer"),
        (2.2, "right", "Yes"),
        ("11/5", "right", "Yes"),
        (3.25, "wrong", "mean of the two slopes"),
        (4.3, "wrong", "swapped"),
        (11, "wrong", "divide by the sum"),
        (0.455, "wrong", "divide Σxy"),
        (3, "wrong", "too large"),
    ],
)
def test_exercise_2(answer, state, words):
    verdict = lesson.q2.problem.check(answer)
    assert verdict.state == state and words in verdict.message


# ------------------------------------------------------------------------------------------------ to build
def by_pairs(moments, class_sums, gamma, rho):
    """Another right one: the paper's way, client by client, with explicit inverses."""
    total, weights = moments[0], np.linalg.inv(moments[0]) @ class_sums[0]
    for g, s in zip(moments[1:], class_sums[1:], strict=True):
        weights = np.linalg.inv(total + g) @ (total @ weights + s)
        total = total + g
    cleaned = total - (len(moments) * gamma - rho) * np.eye(len(total))
    return np.linalg.inv(cleaned) @ total @ weights


def by_loop(moments, class_sums, gamma, rho):
    d = moments.shape[1]
    a, b = np.zeros((d, d)), np.zeros(class_sums.shape[1:])
    for k in range(len(moments)):
        a += moments[k] - gamma * np.eye(d)
        b += class_sums[k]
    for i in range(d):
        a[i, i] += rho
    return np.linalg.lstsq(a, b, rcond=None)[0].tolist()


@pytest.mark.parametrize("answer", [exercises.fit, by_pairs, by_loop])
def test_exercise_3_takes_every_right_function(answer):
    assert lesson.q3.problem.check(answer).state == "right"


def own_inverse_means(moments, class_sums, gamma, rho):
    """The mean of the clients' own fits, written in another way."""
    d, parts = moments.shape[1], []
    for g, s in zip(moments, class_sums, strict=True):
        parts.append(np.linalg.inv(g + (rho - gamma) * np.eye(d)) @ s)
    return sum(parts) / len(parts)


def rho_for_each(moments, class_sums, gamma, rho):
    """The final ridge put on every client's moments."""
    return np.linalg.solve(sum(g + (rho - gamma) * np.eye(len(g)) for g in moments), class_sums.sum(0))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (exercises.mean_of_fits, "mean of the clients' own fits"),
        (own_inverse_means, "mean of the clients' own fits"),
        (exercises.ridges_left, "still on the diagonal"),
        (exercises.one_ridge_off, "took gamma off once"),
        (exercises.no_final_ridge, "rho is missing"),
        (exercises.means, "took means over the clients"),
        (rho_for_each, "added rho for each of them"),
        (exercises.not_solved, "You multiplied"),
        (lambda g, s, gamma, rho: exercises.fit(g, s, gamma, rho).T, "returns the shape (2, 3), but (3, 2) is wanted"),
        (lambda g, s, gamma, rho: exercises.fit(g, s, gamma, rho) * 2, "other numbers are wanted"),
        (lambda g, s: g, "stopped with TypeError"),
        (3, "is the function fit"),
    ],
)
def test_exercise_3_names_the_mistake(wrong, words):
    verdict = lesson.q3.problem.check(wrong)
    assert verdict.state == "wrong" and words in verdict.message


@pytest.mark.parametrize("answer", [None, ..., lambda g, s, gamma, rho: ..., lambda g, s, gamma, rho: None])
def test_exercise_3_untouched(answer):
    assert lesson.q3.problem.check(answer).state == "unattempted"


def test_exercise_3_is_what_the_method_does():
    import torch

    for moments, class_sums, gamma, rho in exercises.hidden():
        parts = [Sums(torch.from_numpy(g), torch.from_numpy(s)) for g, s in zip(moments, class_sums, strict=True)]
        weights = head(sum(parts[1:], parts[0]), len(parts), gamma, rho)
        np.testing.assert_allclose(exercises.fit(moments, class_sums, gamma, rho), weights, rtol=1e-9)
    assert "return np.linalg.solve" in lesson.q3.problem.solution()


# ------------------------------------------------------------------------------------------------ on the record
def pair(dataset, alpha, gap, seeds=3, **options):
    """Runs of both methods; `gap`: AFL's lead in points."""
    plain = {"features": "pixels", "epsilon": 0.0} | options
    outcomes = []
    for seed in range(seeds):
        settings = {"seed": seed, "dataset": dataset, "alpha": alpha}
        outcomes.append(toy("ensemble", 0.5 + 0.01 * seed, settings=settings))
        outcomes.append(toy("afl", 0.5 + 0.01 * seed + gap / 100, settings=settings, options=plain))
    return outcomes


AHEAD, BEHIND = pair("digits", 0.1, 40), pair("glyphs:16g", 100, -25)


@pytest.mark.parametrize(
    ("record", "state", "words"),
    [
        ([], "unattempted", "No runs"),
        (AHEAD, "wrong", "in which the ensemble is clearly better"),
        (BEHIND, "wrong", "in which AFL is clearly better"),
        (AHEAD + BEHIND, "right", "AFL − ensemble at digits, α = 0.1: +40, +40, +40 points"),
        (AHEAD[:4] + BEHIND, "wrong", "digits, α = 0.1 has 2 seeds"),
        (pair("digits", 0.1, 40, features="relu") + BEHIND, "wrong", "AFL is clearly better"),
        (pair("digits", 0.1, 40, epsilon=5.0) + BEHIND, "wrong", "AFL is clearly better"),
        ([toy("fedavg", 0.5)], "wrong", "no pair of afl"),
    ],
)
def test_exercise_4(record, state, words):
    verdict = lesson.q4.problem.check(record)
    assert verdict.state == state and words in verdict.message


@pytest.mark.slow
def test_the_solution_supports_the_claim():
    assert lesson.q4.problem.check(exercises.both_sides()).state == "right"


# ------------------------------------------------------------------------------------------------ worked numbers
def test_slopes_by_hand():
    text = repr(lesson.by_hand())
    assert "client 1 has (1, 2), (2, 2): Σx² = 5, Σxy = 6, own slope 1.2" in text
    assert "client 2 has (3, 9): Σx² = 9, Σxy = 27, own slope 3" in text
    x, y = np.array([1, 2, 3.0]), np.array([2, 2, 9.0])
    assert f"33 / 14 = {np.linalg.lstsq(x[:, None], y, rcond=None)[0][0]:.3g}" in text and "slopes: 2.1." in text


def test_the_upload_is_what_the_ledger_counts():
    text = repr(lesson.upload())
    assert "65 · 66 / 2 = 2145" in text and "2795 numbers of 4 bytes = 11.2 kB" in text
    assert lesson.runs("afl", seeds=1)[0].bytes_up == 10 * 4 * 2795


def test_all_federations_give_the_same_weights():
    lines = repr(lesson.same_weights()).splitlines()
    assert all("93.9 %" in line for line in lines) and lines[0].endswith("weights to compare with")
    assert all(float(line.split("weights ")[1].split(" ")[0]) < 1e-9 for line in lines[1:])


def test_clients_are_forgotten_and_single_images_found():
    outcome = lesson.runs("afl", seeds=1)
    text = repr(lesson.forgetting(outcome))
    assert "client 9: " in text and float(text.split("at most ")[1].split(" ")[0]) < 1e-9
    text = repr(lesson.single_images(outcome))
    single = int(text.split("Of ")[1].split(" ")[0])
    assert single > 3 and f"in {single} of {single} cases" in text
    assert lesson.to_forget(outcome) == lesson.RESENT[0] and lesson.seen(outcome) == lesson.SHOWN[0]


def test_masks_hide_and_cancel():
    lines = repr(lesson.masks()).splitlines()
    sent = [int(line.split("sends ")[1].replace(",", "")) for line in lines[:3]]
    assert sum(sent) % 2**64 == 42 * 2**32 and "2^32: 42." in lines[-1]
    assert all(abs(number) > 2**50 for number in sent)


def test_guesses_have_the_answers_that_runs_give():
    assert lesson.better_at() == lesson.SKEWS[2]
    assert 65 < lesson.private() < 90
    text = lesson.skew().sentence
    assert text.startswith("AFL 94 % at α = 0.1, 94 % at α = 100")


@pytest.mark.slow
def test_what_the_lesson_says_holds():
    heads = [int(line.rsplit(": ", 1)[1].split(" %")[0]) for line in repr(lesson.heads()).splitlines()[:-1]]
    assert heads[3] > heads[2] > heads[1] > heads[0] and heads[4] >= 93
    shares = [int(line.rsplit(": ", 1)[1].split(" %")[0]) for line in repr(lesson.glyphs()).splitlines()[:-1]]
    assert shares[0] < 70 and shares[2] > shares[0] + 15 and abs(lesson.on_glyphs() - shares[2]) <= 1
