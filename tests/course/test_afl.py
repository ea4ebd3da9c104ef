"""Lesson 4: the exercises by another way, worked numbers against another derivation."""

import re

import numpy as np
import torch
from lessons import LESSONS

from fedlab_nb.course.afl import lesson
from fedlab_nb.methods.gauss import ClassSums, make_class_scorer


def test_slopes_by_hand():
    text = LESSONS["4_closed_form"]
    assert "Client A has (1, 2), (2, 2): Σx² = 5, Σxy = 6, own slope 1.2" in text
    assert "Client B has (3, 9): Σx² = 9, Σxy = 27, own slope 3" in text
    x, y = np.array([1, 2, 3.0]), np.array([2, 2, 9.0])
    assert (
        f"33 / 14 = {np.linalg.lstsq(x[:, None], y, rcond=None)[0][0]:.3g}" in text
        and "slopes: 2.1." in text
    )


def test_the_upload_is_what_the_ledger_counts():
    text = re.sub(r"<!--.*?-->", "", LESSONS["4_closed_form"])
    assert "65 · 66 / 2 = 2,145" in text and "2,795 numbers of 4 bytes = 11.2 kB" in text
    assert lesson.runs("afl", seeds=1)[0].bytes_up == 10 * 4 * 2795


def test_all_federations_give_the_same_weights():
    made = [
        lesson.runs("afl", alpha, clients=m, seed=7, seeds=1, holdout=0)[0]
        for alpha, m in ((0.1, 20), (100, 5))
    ]
    assert (
        float(repr(lesson.show_largest_weight_difference(*made)).split("at most ")[1].split(" ")[0])
        < 1e-9
    )


def test_guesses_have_the_answers_that_runs_give():
    outcome = lesson.runs("afl", seeds=1)
    assert (
        lesson.choose_answer_on_forgetting(outcome) == lesson.RESENT[0]
        and lesson.choose_answer_on_single_image_sum(outcome) == lesson.SHOWN[0]
    )
    assert lesson.choose_answer_on_skew() == lesson.SKEWS[2]


def test_the_bell_of_one_feature_by_hand():
    text = LESSONS["4_closed_form"]
    scores = [-((3.6 - mean) ** 2) / (2 * v) - np.log(v) / 2 for mean, v in ((2, 1), (6, 4))]
    assert f"= −{-scores[0]:.2f}. Digit 8:" in text and f"= −{-scores[1]:.2f}. So it is a 1" in text
    assert scores[0] > scores[1]
    without = [-((3.6 - mean) ** 2) / (2 * v) for mean, v in ((2, 1), (6, 4))]
    assert without[1] > without[0]  # "Without the last term it would be an 8."


def test_exercise_4_is_the_package_s_own_head():
    """Without shrinkage, on random totals: `classify` and the method's `make_class_scorer`."""
    stream = np.random.default_rng(5)
    images, counts, sums, products = lesson.draw_random_classify_arguments(stream, 3, 4, 100)
    totals = ClassSums(
        "full", *(torch.as_tensor(each).double() for each in (counts, sums, products))
    )
    scores = make_class_scorer(totals, "qda", shrinkage=0)(torch.from_numpy(images))
    assert (lesson.classify(images, counts, sums, products) == scores.argmax(1).numpy()).all()


def test_two_images_come_back_from_mean_and_covariance():
    stream = np.random.default_rng(1)
    a, b = stream.uniform(size=(2, 9))
    mean = (a + b) / 2
    covariance = np.outer(a - b, a - b) / 4
    pair = lesson.order_pair_like_images(
        lesson.recover_image_pair_from_moments(mean, covariance), np.stack([a, b])
    )
    np.testing.assert_allclose(pair, [a, b], atol=1e-9)
