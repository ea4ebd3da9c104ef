"""Lesson 09, exercise 4: right functions of several kinds, typical wrong ones with their own words, no answer yet."""

import numpy as np
import pytest

from fedlab_nb.course.your_own import lesson as your_own
from fedlab_nb.course.your_own import your_own_build
from fedlab_nb.data.tables import client_sums, moments


def by_loop(counts, sums, squares):
    rows = total = total_squares = 0
    for n, s, q in zip(counts, sums, squares, strict=True):
        rows, total, total_squares = rows + n, total + s, total_squares + q
    return [total / rows, ((total_squares - total**2 / rows) / rows) ** 0.5]


def by_shares(counts, sums, squares):
    """Another right one: within and between the hospitals."""
    share, means = counts / counts.sum(), sums / counts[:, None]
    mean = share @ means
    within = share @ (squares / counts[:, None] - means**2)
    return np.stack([mean, np.sqrt(within + share @ (means - mean) ** 2)])


@pytest.mark.parametrize("answer", [your_own_build.mean_and_spread, by_loop, by_shares])
def test_right_functions(answer):
    assert your_own.q4.problem.check(answer).state == "right"


def spreads_by_rows(counts, sums, squares):
    """Another way to write a known mistake."""
    means = sums / counts[:, None]
    own = np.sqrt(squares / counts[:, None] - means**2)
    return np.average(means, axis=0, weights=counts), np.average(own, axis=0, weights=counts)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (your_own_build.mean_of_means, "own means"),
        (your_own_build.one_row_less, "rows minus 1"),
        (your_own_build.variance, "That is the variance"),
        (your_own_build.mean_not_taken_off, "distance from 0"),
        (your_own_build.own_spreads, "own spreads"),
        (spreads_by_rows, "own spreads"),
        (your_own_build.own_variances, "own variances"),
        (your_own_build.sums_squared, "then square"),
        (your_own_build.turned, "The mean comes first"),
        (your_own_build.last_left_out, "last hospital is missing"),
        (lambda n, s, q: s.sum(0) / n.sum(), "returns the shape"),
        (lambda n, s, q: s / n, "stopped with ValueError"),
        (0.5, "is the function mean_and_spread"),
    ],
)
def test_mistakes_are_named(wrong, words):
    verdict = your_own.q4.problem.check(wrong)
    assert verdict.state == "wrong" and words in verdict.message


@pytest.mark.parametrize("answer", [None, ..., "", lambda n, s, q: ..., lambda n, s, q: None])
def test_no_answer_yet(answer):
    assert your_own.q4.problem.check(answer).state == "unattempted"


def test_it_is_what_the_package_does_with_a_table():
    x, owner = np.random.default_rng(0).normal(2, 3, size=(40, 3)), np.arange(40) % 4
    counts, sums, squares = np.stack([client_sums(x[owner == k]) for k in range(4)], axis=1)
    wanted = your_own_build.mean_and_spread(counts[:, 0], sums, squares)
    np.testing.assert_allclose(wanted, moments(x, owner))
    np.testing.assert_allclose(wanted, (x.mean(0), x.std(0)))
