"""Bands, paired differences and ranks against scipy, and how often "clear" is said where there is nothing."""

import math

import numpy as np
import pytest
from scipy import stats

from fedlab_nb.studies.statistics import band, difference, mean_ranks, welch


@pytest.mark.parametrize("case", range(30))
def test_random_tables_as_scipy_has_them(case):
    rng = np.random.default_rng(case)
    n, m = rng.integers(2, 13, 2)
    a, b = rng.normal(0.6, 0.1, n), rng.normal(0.6, 0.2, m)
    low, high = stats.t.interval(0.95, n - 1, a.mean(), stats.sem(a))
    assert (band(a).low, band(a).high) == pytest.approx((low, high), abs=1e-12)
    common = min(n, m)
    test = stats.ttest_rel(a[:common], b[:common])
    paired = difference(dict(enumerate(a)), dict(enumerate(b)))
    interval = test.confidence_interval(0.95)
    assert (paired.low, paired.high) == pytest.approx((interval.low, interval.high), abs=1e-12)
    assert (paired.verdict == "clear") == (test.pvalue < 0.05)
    independent = stats.ttest_ind(a, b, equal_var=False)
    interval = independent.confidence_interval(0.95)
    assert (welch(a, b).low, welch(a, b).high) == pytest.approx((interval.low, interval.high), abs=1e-12)
    assert (welch(a, b).verdict == "clear") == (independent.pvalue < 0.05)
    assert difference(dict(enumerate(a)), dict(enumerate(b)), paired=False) == welch(a, b)


@pytest.mark.parametrize("n", [3, 5, 10])
def test_clear_is_said_of_nothing_in_five_percent(n):
    rng = np.random.default_rng(n)
    clear = sum(
        difference(dict(enumerate(rng.normal(size=n))), dict(enumerate(rng.normal(size=n)))).verdict == "clear"
        for _ in range(1000)
    )
    assert 30 <= clear <= 70


def test_worked_by_hand():
    """0.5, 0.6, 0.7: standard deviation 0.1, standard error 0.1/√3, times 4.3027."""
    assert band([0.5, 0.6, 0.7]).half_width == pytest.approx(4.30265 * 0.1 / math.sqrt(3), rel=1e-5)
    same = difference({0: 0.9, 1: 0.8}, {0: 0.5, 1: 0.4})
    assert same.mean == pytest.approx(0.4) and same.half_width == pytest.approx(0, abs=1e-12)
    assert same.verdict == "within the noise"  # two equal differences do not tell how they vary
    assert difference({0: 0.9, 1: 0.8, 2: 0.7}, {0: 0.5, 1: 0.4, 2: 0.3}).verdict == "clear"


def test_one_seed_is_no_band():
    alone = difference({0: 0.9}, {0: 0.5})
    assert alone.mean == pytest.approx(0.4) and math.isnan(alone.half_width)
    assert alone.verdict == band([0.3]).verdict == "one seed"


def test_seeds_are_paired_by_their_number():
    a, b = {0: 0.9, 1: 0.5, 2: 0.7}, {1: 0.4, 2: 0.6, 3: 0.1}
    assert difference(a, b).n == 2
    assert difference(a, b).mean == pytest.approx(0.1)
    apart = difference({0: 0.9, 1: 0.5}, {2: 0.4, 3: 0.6})  # nothing in common: two independent means
    assert apart == welch([0.9, 0.5], [0.4, 0.6])


def test_ranks_as_scipy_has_them():
    rng = np.random.default_rng(0)
    table = rng.integers(0, 5, (4, 6)) / 10
    ranks = mean_ranks({str(i): dict(enumerate(row)) for i, row in enumerate(table)})
    expected = np.mean([stats.rankdata(-column) for column in table.T], 0)
    assert list(ranks.values()) == pytest.approx(expected.tolist())
