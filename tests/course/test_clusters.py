"""k-FED and one-shot PCA: exact where they must be, and the grid on which skew helps."""

import numpy as np
import pytest

from fedlab_nb.course.distilled import clusters
from fedlab_nb.course.distilled.clusters import (
    agreement,
    grid,
    in_one_place,
    kfed,
    kmeans,
    square_distances,
)


def points(n=40, d=6, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) * np.arange(1, d + 1)


# ------------------------------------------------------------------------------------------------ k-FED
def test_well_separated_heaps_are_named_as_they_are_at_every_client():
    means = 100.0 * np.eye(6)
    draw = np.random.default_rng(0)
    held = [(0, 1), (1, 2, 3), (4, 5), (0, 5), (3, 4)]
    truth = [np.repeat(own, 8) for own in held]
    x = [means[t] + draw.normal(size=(len(t), 6)) for t in truth]
    sent = [kmeans(part, len(own), draw) for part, own in zip(x, held, strict=True)]
    centres = kfed(sent, 6)
    named = [
        square_distances(c, centres).argmin(1)[square_distances(p, c).argmin(1)] for p, c in zip(x, sent, strict=True)
    ]
    assert agreement(np.concatenate(named), np.concatenate(truth), 6) == 1.0
    assert square_distances(means, centres).min(1).max() < 6  # each one near a heap's middle


def test_agreement_does_not_depend_on_names():
    truth = np.array([0, 0, 1, 1, 2, 2])
    assert agreement(np.array([2, 2, 0, 0, 1, 1]), truth, 3) == 1
    assert agreement(np.array([0, 0, 0, 0, 1, 1]), truth, 3) == pytest.approx(4 / 6)


def test_each_gaussian_of_the_grid_is_somewhere_and_few_are_at_each_client():
    few, every = grid(True), grid(False)
    assert set(np.concatenate(few.truth)) == set(range(16)) and max(len(set(t)) for t in few.truth) <= 3
    assert all(len(set(t)) == 16 == len(c) for t, c in zip(every.truth, every.sent, strict=True))
    assert few.centres.shape == every.centres.shape == (16, 2)


def test_skew_helps_on_the_grid():
    for seed in range(2):
        few, every = grid(True, 4, seed=seed), grid(False, 4, seed=seed)
        assert few.accuracy > every.accuracy + 0.08
        assert few.accuracy > in_one_place(few, seed=seed) + 0.03  # one start, all points together
    assert grid(True, 10).accuracy == 1


# ------------------------------------------------------------------------------------------------ principal components
def projector(basis):
    return basis @ basis.T


def test_summed_scatter_gives_the_pooled_components():
    parts = [points(n, seed=n) + n for n in (3, 1, 20, 40)]  # other means, and a single point
    exact = clusters.from_scatter([clusters.scatter(part) for part in parts], 3)
    pooled = clusters.components(np.concatenate(parts), 3)
    assert np.abs(projector(exact) - projector(pooled)).max() < 1e-9
    assert clusters.spanned(exact, pooled) == pytest.approx(1, abs=1e-9)


def test_the_mean_of_equal_projectors_is_the_subspace():
    basis, turned = np.linalg.qr(points(6))[0][:, :2], np.array([[0.6, -0.8], [0.8, 0.6]])
    mean = clusters.mean_of_projectors([basis, basis @ turned, -basis], 2)
    assert np.abs(projector(mean) - projector(basis)).max() < 1e-12


def test_other_subspaces_keep_less():
    first, second = np.eye(4)[:, :2], np.eye(4)[:, 2:]
    assert clusters.spanned(first, second) == 0 and clusters.spanned(first, np.eye(4)[:, 1:3]) == 0.5
    assert clusters.components(np.ones((1, 4)), 3).shape == (4, 0)  # one point has no direction
