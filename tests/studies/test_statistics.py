"""Bands, paired differences and ranks against scipy, and how often equal methods get the verdict "clear"."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from fedlab_nb.errors import UsageError
from fedlab_nb.studies.results import Outcomes
from fedlab_nb.studies.statistics import (
    Band,
    compute_band,
    compute_band_over_images,
    compute_mean_ranks,
    compute_p_value_of_95_percent_band,
    compute_welch_band,
    difference,
    list_verdicts_with_holm_correction,
)


@pytest.mark.parametrize("case", range(30))
def test_bands_and_differences_equal_scipys(case):
    rng = np.random.default_rng(case)
    n, m = rng.integers(2, 13, 2)
    a = rng.normal(0.6, 0.1, n)
    b = rng.normal(0.6, 0.2, m)
    low, high = stats.t.interval(0.95, n - 1, a.mean(), stats.sem(a))
    assert (compute_band(a).low, compute_band(a).high) == pytest.approx((low, high), abs=1e-12)
    common = min(n, m)
    test = stats.ttest_rel(a[:common], b[:common])
    paired = difference(dict(enumerate(a)), dict(enumerate(b)))
    interval = test.confidence_interval(0.95)
    assert (paired.low, paired.high) == pytest.approx((interval.low, interval.high), abs=1e-12)
    assert (paired.verdict == "clear") == (test.pvalue < 0.05)
    independent = stats.ttest_ind(a, b, equal_var=False)
    interval = independent.confidence_interval(0.95)
    assert (compute_welch_band(a, b).low, compute_welch_band(a, b).high) == pytest.approx(
        (interval.low, interval.high), abs=1e-12
    )
    assert (compute_welch_band(a, b).verdict == "clear") == (independent.pvalue < 0.05)
    assert difference(dict(enumerate(a)), dict(enumerate(b)), paired=False) == compute_welch_band(
        a, b
    )


@pytest.mark.parametrize("n", [3, 5, 10])
def test_equal_methods_are_clear_in_five_percent(n):
    rng = np.random.default_rng(n)
    clear = 0
    for _ in range(1000):
        a = dict(enumerate(rng.normal(size=n)))
        b = dict(enumerate(rng.normal(size=n)))
        clear += difference(a, b).verdict == "clear"
    assert 30 <= clear <= 70


def test_a_band_and_verdicts_by_hand():
    """0.5, 0.6, 0.7: standard deviation 0.1, standard error 0.1/√3, times 4.3027."""
    assert compute_band([0.5, 0.6, 0.7]).half_width == pytest.approx(
        4.30265 * 0.1 / math.sqrt(3), rel=1e-5
    )
    same = difference({0: 0.9, 1: 0.8}, {0: 0.5, 1: 0.4})
    assert same.mean == pytest.approx(0.4) and same.half_width == pytest.approx(0, abs=1e-12)
    # From two equal differences nothing follows about their variation.
    assert same.verdict == "within the noise"
    assert difference({0: 0.9, 1: 0.8, 2: 0.7}, {0: 0.5, 1: 0.4, 2: 0.3}).verdict == "clear"


def test_one_seed_has_no_band():
    one_seed = difference({0: 0.9}, {0: 0.5})
    assert one_seed.mean == pytest.approx(0.4) and math.isnan(one_seed.half_width)
    assert one_seed.verdict == compute_band([0.3]).verdict == "one seed"


def test_seeds_are_paired_by_their_number():
    a = {0: 0.9, 1: 0.5, 2: 0.7}
    b = {1: 0.4, 2: 0.6, 3: 0.1}
    assert difference(a, b).n == 2
    assert difference(a, b).mean == pytest.approx(0.1)
    # No seed in common: two independent means.
    apart = difference({0: 0.9, 1: 0.5}, {2: 0.4, 3: 0.6})
    assert apart == compute_welch_band([0.9, 0.5], [0.4, 0.6])


def test_ranks_equal_scipys():
    rng = np.random.default_rng(0)
    table = rng.integers(0, 5, (4, 6)) / 10
    ranks = compute_mean_ranks({str(i): dict(enumerate(row)) for i, row in enumerate(table)})
    expected = np.mean([stats.rankdata(-column) for column in table.T], 0)
    assert [ranks[str(i)] for i in range(4)] == pytest.approx(expected.tolist())


# ------------------------------------------------------------------------------- bands over images, many differences
def test_a_band_over_seeds_and_images_by_hand():
    """[[1, 0, 0], [1, 1, 0]]: mean squares 1/6 for seeds, 1/2 for images and 1/6 for the residual; variance 1/12."""
    gap = compute_band_over_images(np.array([[1.0, 0, 0], [1, 1, 0]]))
    degrees = (1 / 2) ** 2 / ((1 / 6) ** 2 / 1 + (1 / 2) ** 2 / 2 + (1 / 6) ** 2 / 2)
    assert gap.mean == pytest.approx(0.5) and gap.n == 2
    assert gap.half_width == pytest.approx(stats.t.ppf(0.975, degrees) * math.sqrt(1 / 12))
    assert compute_band_over_images(np.ones((1, 3))).verdict == "one seed"


@pytest.mark.slow
@pytest.mark.parametrize("seed_effect, image_effect", [(0.5, 0.0), (0.5, 1.0), (0.1, 2.0)])
def test_with_new_images_each_time_equal_methods_are_clear_in_five_percent(
    seed_effect, image_effect
):
    """1,000 pairs of equally good methods, ten seeds, 360 images; each method has other difficult images."""
    rng = np.random.default_rng(0)
    clear = {"seeds": 0, "both": 0}
    for _ in range(1000):
        right = []
        for _ in range(2):
            ease = 1 + seed_effect * rng.normal(size=(10, 1)) + image_effect * rng.normal(size=360)
            right.append(ease + rng.logistic(size=(10, 360)) > 0)
        gaps = right[0].astype(float) - right[1]
        clear["seeds"] += compute_band(gaps.mean(1).tolist()).verdict == "clear"
        clear["both"] += compute_band_over_images(gaps).verdict == "clear"
    assert 30 <= clear["both"] <= 70
    if image_effect == 2:
        # A band over seeds alone takes chance in the choice of images for a difference between methods.
        assert clear["seeds"] > 300


def test_holms_correction_steps_down_the_p_values():
    rng = np.random.default_rng(6)
    values = [rng.normal(shift, 1, 8) for shift in (0, 0.8, 0.8, 1, 3)]
    p = np.array([stats.ttest_1samp(v, 0).pvalue for v in values])
    expected = ["within the noise"] * 5
    for rank, i in enumerate(p.argsort()):
        if p[i] > 0.05 / (5 - rank):
            break
        expected[i] = "clear"
    assert (
        list_verdicts_with_holm_correction([compute_band(v.tolist()) for v in values]) == expected
    )
    # The correction removes some verdicts.
    assert 0 < expected.count("clear") < sum(p < 0.05)
    assert list_verdicts_with_holm_correction([Band(1.0, math.nan, 1), Band(0.5, 0.1, 5)]) == [
        "one seed",
        "clear",
    ]


@pytest.mark.slow
def test_of_families_of_equal_methods_one_in_twenty_has_a_clear_verdict():
    rng = np.random.default_rng(0)
    clear_alone = 0
    clear_together = 0
    for _ in range(500):
        family = [compute_band(rng.normal(size=10).tolist()) for _ in range(20)]
        clear_alone += "clear" in [gap.verdict for gap in family]
        clear_together += "clear" in list_verdicts_with_holm_correction(family)
    assert clear_alone > 250
    assert clear_together <= 45


def test_outcomes_are_compared_image_by_image():
    def make_outcome(method, seed, answers):
        return SimpleNamespace(
            method=method,
            settings=SimpleNamespace(seed=seed),
            accuracy=0.0,
            test_predictions=np.array(answers),
            test_labels=np.array([1, 1, 0]),
        )

    outcomes = Outcomes(
        [
            make_outcome("a", 0, [1, 0, 1]),
            make_outcome("a", 1, [1, 1, 1]),
            make_outcome("b", 0, [0, 0, 1]),
            make_outcome("b", 1, [0, 0, 1]),
        ]
    )
    gaps = np.array([[1.0, 0, 0], [1, 1, 0]])
    assert outcomes.difference("a", "b") == compute_band(gaps.mean(1).tolist())
    assert outcomes.difference("a", "b", images=True) == compute_band_over_images(gaps)
    with pytest.raises(UsageError, match="did you mean|allowed"):
        outcomes.difference("a", "c")


@pytest.mark.parametrize("paired", [True, False])
def test_p_values_equal_scipys(paired):
    """Paired, and for independent seeds (Welch), whose degrees of freedom are not n - 1."""
    draws = np.random.default_rng(3)
    for _ in range(20):
        a = draws.normal(1.0, 0.3, 6)
        b = draws.normal(0.0, 0.9, 6 if paired else 4)
        gap = difference(dict(enumerate(a)), dict(enumerate(b)), paired=paired)
        if gap.verdict != "clear":
            continue
        if paired:
            expected = stats.ttest_rel(a, b).pvalue
        else:
            expected = stats.ttest_ind(a, b, equal_var=False).pvalue
        assert compute_p_value_of_95_percent_band(gap) == pytest.approx(expected, rel=1e-9)
