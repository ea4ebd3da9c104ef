"""What the sums are worth under skew: digits, M = 10, alpha = 0.1, on each of eight seeds."""

import numpy as np
import pytest

from fedlab_nb.study import compare

pytestmark = pytest.mark.slow

SEEDS = range(8)


def accuracies(methods, **settings):
    return {m: [compare([m], seed=s, **settings)[0].accuracy for s in SEEDS] for m in methods}


def test_ahead_of_the_mean_of_probabilities_and_of_the_clients_own_fits_on_every_seed():
    settings = {"afl.features": "relu", "ensemble.rule": "probabilities"}
    for seed in SEEDS:
        afl, others = compare(["afl", "ensemble"], seed=seed, **settings)
        assert afl.accuracy >= others.accuracy + 0.25
        assert afl.accuracy >= afl.report.own_fits + 0.10


def test_more_random_features_are_more_accurate():
    means = [np.mean(accuracies(["afl"], features="relu", size=d)["afl"]) for d in (16, 32, 64, 128, 256)]
    assert all(more > fewer + 0.005 for fewer, more in zip(means, means[1:], strict=False))


def test_a_larger_budget_is_more_accurate():
    means = [np.mean(accuracies(["afl"], epsilon=e)["afl"]) for e in (0.5, 1, 3, 10)]
    assert all(more > fewer + 0.02 for fewer, more in zip(means, means[1:], strict=False))


def test_more_features_need_more_noise():
    few, many = (np.mean(accuracies(["afl"], features="relu", size=d, epsilon=0.5)["afl"]) for d in (64, 512))
    assert many < few
