"""Data are the same on every machine: their digests, also under other processors' arithmetic, and why the last bits of
a library's functions have no effect on them."""

import json
import math

import data_digests
import numpy as np
import pytest
from data_digests import (
    EXPECTED,
    SETTINGS,
    compute_digests_by_name,
    compute_digests_in_new_process,
    has_avx512,
)
from hypothesis import given
from hypothesis import strategies as st

from fedlab_nb.data import glyphs, natural, partition
from fedlab_nb.data.arrays import measure_mean_and_deviation_per_channel
from fedlab_nb.data.columns import HASHED_FEATURES, encode_texts_as_hashed_words
from fedlab_nb.data.cues import (
    INSIDE_TESTS,
    SHAPES,
    compute_exponential_decay,
    draw_shape_mask,
    make_point_in_star_or_polygon_test,
)
from fedlab_nb.data.sums import sum_rows_in_fixed_order
from fedlab_nb.data.tables import compute_pooled_mean_and_deviation

RECORDED_DIGESTS = json.loads(EXPECTED.read_text(encoding="utf-8"))


# Slow because it loads every bundled data set, draws the letters and deals fifty federations.
@pytest.mark.slow
def test_all_data_and_fifty_federations_have_the_recorded_digests():
    """The digests are in the repository; a machine with other digests has other data. After an intended change run
    `python tests/data_digests.py --write` and raise the data set's version."""
    found = compute_digests_by_name()
    # Their packages are not installed.
    missing = {f"data {name}" for name in data_digests.SOURCES} - set(found)
    assert found == {
        name: digest for name, digest in RECORDED_DIGESTS.items() if name not in missing
    }
    assert sum(name.startswith("federation ") for name in found) == 50


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_digests_are_the_same_under_other_arithmetic(setting):
    if setting == "avx512" and not has_avx512():
        pytest.skip("this processor has no AVX-512")
    found = compute_digests_in_new_process(setting)
    assert found == {name: RECORDED_DIGESTS[name] for name in found}
    assert len(found) > 80


@given(st.lists(st.floats(-1e6, 1e6), min_size=0, max_size=70))
def test_a_sum_in_fixed_order_is_exact_to_rounding(values):
    total = float(sum_rows_in_fixed_order(np.array(values)))
    # seven levels of additions, each within half a unit in the last place of at most the sum of magnitudes
    bound = 8 * np.finfo(float).eps * math.fsum(map(abs, values))
    assert abs(total - math.fsum(values)) <= bound


def test_a_sum_adds_in_the_documented_order():
    """By hand: (a + c) + (b + d), then the last of an odd number. From left to right the result is another one."""
    a = 1e16
    b = 1.0
    c = -1e16
    d = 1.0
    e = 3.0
    assert (
        float(sum_rows_in_fixed_order(np.array([a, b, c, d, e]))) == ((a + c) + (b + d)) + e == 5.0
    )
    assert a + b + c + d + e == 4.0


@pytest.mark.parametrize("shape", [(213, 5), (97, 3, 40)])
def test_mean_and_deviation_equal_numpys(shape):
    x = np.random.default_rng(0).normal(3, 20, shape)
    axes = 0 if len(shape) == 2 else (0, 2)
    mean, std = measure_mean_and_deviation_per_channel(x)
    # rounding of a few thousand additions
    assert np.allclose(mean, x.mean(axis=axes, keepdims=True), rtol=1e-12)
    assert np.allclose(std, x.std(axis=axes, keepdims=True), rtol=1e-12)


def test_moments_of_a_table_skip_missing_values():
    x = np.array([[1.0, np.nan], [2.0, 5.0], [np.nan, 7.0], [6.0, 9.0]])
    mean, scale = compute_pooled_mean_and_deviation(x, np.array([0, 0, 1, 1]))
    assert mean == pytest.approx([3, 7])
    assert scale == pytest.approx([(14 / 3) ** 0.5, (8 / 3) ** 0.5])


def test_rows_of_hashed_words_are_scaled_as_by_scikit_learn():
    from sklearn.feature_extraction.text import HashingVectorizer

    texts = ["one two two three", "", "a mail, a mail; the mail", None]
    plain = [text or "" for text in texts]
    usual = HashingVectorizer(n_features=HASHED_FEATURES, norm="l2", token_pattern=r"(?u)\b\w+\b")
    expected = HASHED_FEATURES**0.5 * usual.transform(plain).toarray()
    assert np.allclose(encode_texts_as_hashed_words(texts), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("values", "steps"),
    [
        ([math.cos(math.tau * k / glyphs.TURN) for k in range(glyphs.TURN)], glyphs.COSINE_STEPS),
        ([math.log1p(count) for count in range(8)], 2.0**44),
    ],
    ids=["cosines", "logarithms"],
)
def test_the_last_bits_of_a_function_cannot_change_its_rounded_table(values, steps):
    """A library may be off by ten units in the last place; no value is that near to the middle between two steps."""
    for value in values:
        part = value * steps % 1
        assert abs(part - 0.5) > 10 * math.ulp(abs(value)) * steps


def test_rounded_tables_differ_from_the_functions_by_at_most_half_a_step():
    steps = np.arange(-5000, 5000)
    exact = np.cos(2 * np.pi * steps / glyphs.TURN)
    assert (
        np.abs(glyphs.compute_rounded_cosine(steps) - exact).max()
        <= 0.5000001 / glyphs.COSINE_STEPS
    )
    exact = np.sin(2 * np.pi * steps / glyphs.TURN)
    assert (
        np.abs(glyphs.compute_rounded_sine(steps) - exact).max() <= 0.5000001 / glyphs.COSINE_STEPS
    )
    assert (
        np.abs(natural.compute_rounded_log1p(np.arange(8)) - np.log1p(np.arange(8))).max() < 2**-44
    )
    t = np.linspace(0, 20, 1001)
    assert np.abs(compute_exponential_decay(t) - np.exp(-t)).max() < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("share", [3e-16, -3e-16, 1e-14])
def test_the_last_bits_of_gamma_and_normal_draws_move_no_sample(share, monkeypatch):
    """A Dirichlet draw uses logarithms and powers of the C library, and another library gives other last bits. These
    must not decide which client gets a sample."""
    draw = partition.draw_symmetric_dirichlet
    normal = partition.draw_lognormal_shares

    def perturb(numbers):
        signs = np.where(np.arange(numbers.size).reshape(numbers.shape) % 2, 1, -1)
        return numbers * (1 + share * signs)

    monkeypatch.setattr(partition, "draw_symmetric_dirichlet", lambda *args: perturb(draw(*args)))
    monkeypatch.setattr(partition, "draw_lognormal_shares", lambda *args: perturb(normal(*args)))
    for number, settings in enumerate(data_digests.list_federation_settings()):
        federation = data_digests.federate(**settings)
        digest = data_digests.hash_federation(federation)
        assert digest == RECORDED_DIGESTS[f"federation {number}"], settings


@pytest.mark.parametrize("share", [1e-13, -1e-13])
def test_the_last_bits_of_a_sine_move_no_pixel_of_a_figure(share, monkeypatch):
    figures = {
        (name, size): draw_shape_mask(name, size, 32) for name in SHAPES for size in range(5, 33)
    }
    sine = math.sin
    cosine = math.cos
    monkeypatch.setattr(math, "sin", lambda angle: sine(angle) * (1 + share) + share)
    monkeypatch.setattr(math, "cos", lambda angle: cosine(angle) * (1 - share) - share)
    for name, is_inside in {
        "star": make_point_in_star_or_polygon_test(5, 0.45),
        "pentagon": make_point_in_star_or_polygon_test(5),
        "hexagon": make_point_in_star_or_polygon_test(6),
    }.items():
        monkeypatch.setitem(INSIDE_TESTS, name, is_inside)
    for (name, size), expected in figures.items():
        assert draw_shape_mask(name, size, 32) == expected, (name, size)
