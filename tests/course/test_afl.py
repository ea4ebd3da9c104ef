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
    x = np.array([1, 2, 3.0])
    y = np.array([2, 2, 9.0])
    slope = np.linalg.lstsq(x[:, None], y, rcond=None)[0][0]
    assert f"33 / 14 = {slope:.3g}" in text
    assert "slopes: 2.1." in text


def test_the_upload_is_what_the_ledger_counts():
    text = re.sub(r"<!--.*?-->", "", LESSONS["4_closed_form"])
    assert "65 · 66 / 2 = 2,145" in text
    assert "2,795 numbers of 4 bytes = 11.2 kB" in text
    assert lesson.runs("afl", seeds=1)[0].bytes_up == 10 * 4 * 2795


def test_all_federations_give_the_same_weights():
    outcomes = []
    for alpha, clients in ((0.1, 20), (100, 5)):
        outcomes += lesson.runs("afl", alpha, clients=clients, seed=7, seeds=1, holdout=0)
    sentence = repr(lesson.show_largest_weight_difference(*outcomes))
    difference = float(re.search(r"at most (\S+)", sentence)[1])
    assert difference < 1e-9


def test_guesses_have_the_answers_that_runs_give():
    outcomes = lesson.runs("afl", seeds=1)
    assert lesson.find_right_option_on_forgetting(outcomes) == lesson.RESENT[0]
    assert lesson.find_right_option_on_single_image_sum(outcomes) == lesson.SHOWN[0]
    assert lesson.find_right_option_on_skew() == lesson.SKEWS[2]


def test_the_bell_of_one_feature_by_hand():
    text = LESSONS["4_closed_form"]
    bells = {1: (2, 1), 8: (6, 4)}  # {digit: (mean, variance)}
    exponents = {digit: -((3.6 - mean) ** 2) / (2 * v) for digit, (mean, v) in bells.items()}
    scores = {digit: exponents[digit] - np.log(v) / 2 for digit, (_, v) in bells.items()}
    assert f"= −{-scores[1]:.2f}. Digit 8:" in text
    assert f"= −{-scores[8]:.2f}. So it is a 1" in text
    assert scores[1] > scores[8]
    assert exponents[8] > exponents[1]  # "Without the last term it would be an 8."


def test_exercise_4_is_the_package_s_own_head():
    """`classify` and the method's `make_class_scorer` without shrinkage agree on random totals."""
    stream = np.random.default_rng(5)
    images, *arrays = lesson.draw_random_classify_arguments(stream, 3, 4, 100)
    counts, sums, products = (torch.as_tensor(array).double() for array in arrays)
    totals = ClassSums("full", counts, sums, products)
    scores = make_class_scorer(totals, "qda", shrinkage_0_to_1=0)(torch.from_numpy(images))
    assert (lesson.classify(images, *arrays) == scores.argmax(1).numpy()).all()


def test_two_images_come_back_from_mean_and_covariance():
    stream = np.random.default_rng(1)
    a, b = stream.uniform(size=(2, 9))
    mean = (a + b) / 2
    covariance = np.outer(a - b, a - b) / 4
    pair = lesson.recover_image_pair_from_moments(mean, covariance)
    ordered = lesson.order_pair_like_images(pair, np.stack([a, b]))
    np.testing.assert_allclose(ordered, [a, b], atol=1e-9)
