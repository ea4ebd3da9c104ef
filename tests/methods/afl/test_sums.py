"""AFL's algebra: pooled ridge regression for every partition, the paper's two forms, ridges that go again, ends."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from fedlab_nb.methods.afl import SENSITIVITY, Sums, head, scores

EXACT = torch.float64


def samples(n=60, features=5, classes=3, seed=0):
    stream = torch.Generator().manual_seed(seed)
    x = torch.randn(n, features, generator=stream, dtype=EXACT)
    return x, torch.randint(classes, (n,), generator=stream)


def parts(x, y, sizes, gamma=0.0, classes=3):
    return [Sums.of(a, b, classes).ridged(gamma) for a, b in zip(x.split(sizes), y.split(sizes), strict=True)]


def added(sums):
    return sum(sums[1:], sums[0])


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=6), st.floats(0.0, 5.0), st.floats(0.01, 5.0), st.integers(0, 99)
)
@settings(max_examples=40, deadline=None)
def test_any_split_is_ridge_regression_on_all_samples(sizes, gamma, rho, seed):
    """Scikit-learn's, its intercept as the last of the weights (which is shrunk as the others are)."""
    x, y = samples(sum(sizes), seed=seed)
    weights = head(added(parts(x, y, sizes, gamma)), len(sizes), gamma, rho)
    rows = np.c_[x, np.ones(len(x))]
    expected = Ridge(alpha=rho, fit_intercept=False, solver="svd").fit(rows, np.eye(3)[y.numpy()]).coef_.T
    np.testing.assert_allclose(weights, expected, rtol=1e-9, atol=1e-11)


def test_absolute_aggregation_pair_by_pair_is_the_sum():
    """The paper's form of the weights of two clients, and then of a third, by explicit inverses."""
    x, y = samples()
    sums = parts(x, y, [7, 20, 33], gamma=1.0)
    local = [torch.linalg.inv(s.moments) @ s.classes for s in sums]
    a, w = sums[0].moments, local[0]
    eye = torch.eye(6, dtype=EXACT)
    for s, w2 in zip(sums[1:], local[1:], strict=True):
        r1, r2, both = torch.linalg.inv(a), torch.linalg.inv(s.moments), torch.linalg.inv(a + s.moments)
        first = eye - r1 @ s.moments + r1 @ s.moments @ both @ s.moments
        second = eye - r2 @ a + r2 @ a @ both @ a
        a, w = a + s.moments, first @ w + second @ w2
    torch.testing.assert_close(w, head(added(sums), 3, 1.0, 0.0, clean=False), rtol=1e-9, atol=1e-11)
    cleaned = torch.linalg.inv(a - 3 * eye + 0.01 * eye) @ a @ w
    torch.testing.assert_close(cleaned, head(added(sums), 3, 1.0, 0.01), rtol=1e-9, atol=1e-11)


def test_local_ridges_leave_no_trace_unless_they_stay():
    x, y = samples()
    heads = [head(added(parts(x, y, [10, 50], gamma)), 2, gamma, 0.1) for gamma in (0.0, 1.0, 30.0)]
    for other in heads[1:]:
        torch.testing.assert_close(other, heads[0], rtol=1e-10, atol=1e-12)
    ridged = head(added(parts(x, y, [10, 50], 30.0)), 2, 30.0, 0.1, clean=False)
    torch.testing.assert_close(ridged, head(added(parts(x, y, [60])), 1, 0.0, 60.0), rtol=1e-10, atol=1e-12)
    assert (ridged - heads[0]).abs().max() > 0.01


def test_a_large_ridge_leaves_the_classes_sums():
    x, y = samples()
    sums = added(parts(x, y, [60]))
    torch.testing.assert_close(1e12 * head(sums, 1, 0.0, 1e12), sums.classes, rtol=1e-8, atol=1e-8)
    assert sums.classes[-1].tolist() == torch.bincount(y, minlength=3).tolist()  # the row of the appended 1


def test_fewer_samples_than_features_and_features_that_are_always_0():
    x, y = samples(4)
    x[:, 2] = 0
    weights = head(added(parts(x, y, [3, 1], 1.0)), 2, 1.0, 0.0)
    rows = torch.cat([x, torch.ones(4, 1, dtype=EXACT)], 1)
    smallest = torch.linalg.lstsq(rows, torch.eye(3, dtype=EXACT)[y], driver="gelsd").solution
    torch.testing.assert_close(weights, smallest, rtol=1e-6, atol=1e-8)
    assert weights[2].abs().max() < 1e-12


def test_scores_append_the_one():
    x, y = samples()
    weights = head(added(parts(x, y, [60])), 1, 0.0, 1.0)
    rows = torch.cat([x, torch.ones(60, 1, dtype=EXACT)], 1)
    torch.testing.assert_close(scores(x, weights), rows @ weights)


@given(st.integers(1, 30), st.integers(0, 10_000), st.floats(0.01, 100))
@settings(max_examples=40, deadline=None)
def test_one_sample_moves_the_sums_by_at_most_the_sensitivity(n, seed, scale):
    x, y = samples(n, seed=seed)
    x = x * scale
    all_of_them, without = Sums.of(x, y, 3, unit=True), Sums.of(x[1:], y[1:], 3, unit=True)
    moved = all_of_them - without
    upper = torch.triu(moved.moments)  # what is sent
    assert (upper.square().sum() + moved.classes.square().sum()).sqrt() <= SENSITIVITY + 1e-9
    assert (moved.moments.square().sum() + moved.classes.square().sum()).sqrt() == pytest.approx(SENSITIVITY, rel=1e-9)


def test_noise_is_symmetric_has_its_spread_and_goes_to_nothing():
    x, y = samples(60, features=80)
    sums = Sums.of(x, y, 3, unit=True)
    noisy = sums.noisy(2.0, torch.Generator().manual_seed(0))
    noise = noisy.moments - sums.moments
    torch.testing.assert_close(noise, noise.T, rtol=0, atol=1e-12)
    assert torch.triu(noise)[torch.triu(noise) != 0].std().item() == pytest.approx(2, rel=0.05)
    assert (noisy.classes - sums.classes).std().item() == pytest.approx(2, rel=0.15)
    plain = head(sums, 1, 0.0, 0.1)
    faint = head(sums.noisy(1e-12, torch.Generator().manual_seed(0)), 1, 0.0, 0.1, sigma=1e-12)
    torch.testing.assert_close(faint, plain, rtol=0, atol=1e-9)
    noisy = sums.noisy(50.0, torch.Generator().manual_seed(0))
    loud = head(noisy, 1, 0.0, 0.1, sigma=50.0)
    assert loud.isfinite().all()  # though the moments have negative eigenvalues
    values, vectors = np.linalg.eigh(noisy.moments.numpy())
    assert values.min() < 0
    whole = vectors @ np.diag(np.maximum(values, 0) + 0.1 + 50 * 81**0.5) @ vectors.T  # the ridge grows by σ√d
    np.testing.assert_allclose(loud, np.linalg.solve(whole, noisy.classes.numpy()), rtol=1e-9, atol=1e-12)
