"""Class statistics: sums over clients are the pooled ones, whoever holds what; their way over the link; moments."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlab_nb.comm import serialise, size
from fedlab_nb.methods.parts.gaussian_heads import BY_CLASS, MOMENTS, by_class, class_sums, message, received

EXACT = torch.float64


def samples(n=60, d=5, classes=4, seed=0):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(classes, (n,), generator=g)
    return torch.randn(n, d, generator=g, dtype=EXACT) * (1 + y[:, None]) + y[:, None], y


def close(one, other, atol=1e-9):
    assert one.kind == other.kind
    for name in ("counts", "sums", "second"):
        torch.testing.assert_close(getattr(one, name), getattr(other, name), rtol=0, atol=atol)


@pytest.mark.parametrize("kind", MOMENTS)
@settings(max_examples=25, deadline=None)
@given(st.integers(1, 7), st.integers(0, 10**6))
def test_the_sum_over_clients_is_the_pooled_one_for_any_partition(kind, clients, seed):
    """Also over the link, for clients without a class, without a sample, with one."""
    x, y = samples()
    owner = torch.randint(clients, (len(y),), generator=torch.Generator().manual_seed(seed))
    sent = [message(class_sums(x[owner == k], y[owner == k], 4, kind), EXACT) for k in range(clients)]
    whole, *others = [received(one, kind) for one in sent]
    for other in others:
        whole = whole + other
    close(whole, class_sums(x, y, 4, kind))


def test_moments_are_numpys():
    x, y = samples(200)
    full, pooled, diagonal = (class_sums(x, y, 4, kind) for kind in ("full", "pooled", "diagonal"))
    for c in range(4):
        rows = x[y == c].numpy()
        np.testing.assert_allclose(full.means[c], rows.mean(0), atol=1e-12)
        np.testing.assert_allclose(full.covariances()[c], np.cov(rows.T, ddof=0), atol=1e-11)
        np.testing.assert_allclose(diagonal.variances()[c], rows.var(0), atol=1e-11)
        assert float(full.log_priors[c]) == pytest.approx(np.log(len(rows) / 200))
    centred = (x - pooled.means[y]).numpy()
    np.testing.assert_allclose(pooled.within(), centred.T @ centred / (200 - 4), atol=1e-11)
    np.testing.assert_allclose(pooled.total(), np.cov(x.numpy().T), atol=1e-11)


def test_a_class_of_nobody_and_a_class_of_one():
    x, y = torch.tensor([[1.0, 2.0], [3.0, 5.0], [4.0, 4.0]], dtype=EXACT), torch.tensor([0, 2, 2])
    for kind in MOMENTS:
        sums = class_sums(x, y, 4, kind)
        assert sums.counts.tolist() == [1, 0, 2, 0] and sums.log_priors[1] == sums.log_priors[3] == -torch.inf
        assert sums.means.tolist() == [[1, 2], [0, 0], [3.5, 4.5], [0, 0]]
    assert class_sums(x, y, 4, "full").covariances()[[0, 1]].abs().max() < 1e-12
    # Two classes exist: N - C is 3 - 2.
    expected = torch.tensor([[0.5, -0.5], [-0.5, 0.5]], dtype=EXACT)
    torch.testing.assert_close(class_sums(x, y, 4, "pooled").within(), expected)
    assert class_sums(x[:1], y[:1], 4, "pooled").within().isfinite().all()


@pytest.mark.parametrize("kind", MOMENTS)
def test_only_the_classes_that_are_held_travel_and_matrices_as_triangles(kind):
    x, y = samples(30)
    y = torch.where(y == 2, 0, y)
    own = class_sums(x, y, 4, kind)
    sent = message(own, torch.float32)
    numbers = {"none": 0, "diagonal": 3 * 5, "pooled": 15, "full": 3 * 15}[kind]
    assert size(sent) == len(serialise(sent)) == 4 * (4 + 3 * 5 + numbers)
    close(received(sent, kind), own, atol=1e-3)
    again = received(message(own, EXACT), kind)
    close(again, own, atol=0 if kind in BY_CLASS else 1e-12)


def test_rows_by_class_keep_their_order():
    x = torch.arange(6.0)[:, None]
    groups = by_class(x, torch.tensor([3, 0, 3, 0, 3, 5]))
    assert {c: rows[:, 0].tolist() for c, rows in groups.items()} == {0: [1, 3], 3: [0, 2, 4], 5: [5]}
