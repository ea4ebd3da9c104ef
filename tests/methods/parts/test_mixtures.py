"""Gaussian mixtures: EM against scikit-learn's and its own promise, densities, draws, and what is sent."""

import numpy as np
import pytest
import torch
from sklearn.mixture import GaussianMixture

from fedlab_nb.comm import size
from fedlab_nb.methods.fedpft import COVARIANCES, FLOOR, Mixture, fitted, maximised

EXACT = torch.float64
THEIRS = {"spherical": "spherical", "diagonal": "diag", "full": "full"}


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def clumps(n=90, d=3):
    rows = torch.randn(n, d, generator=seeded(), dtype=EXACT)
    return rows * torch.tensor([1.0, 2.0, 0.5]) + 3 * (torch.arange(n)[:, None] % 3)


@pytest.mark.parametrize("kind", THEIRS)
def test_em_is_scikit_learns_from_the_same_start(kind):
    rows = clumps()
    begin = torch.nn.functional.one_hot(torch.cdist(rows, rows[:3]).argmin(1), 3).double()
    ours = maximised(rows, begin, kind)
    precisions = torch.linalg.inv(ours.spread) if kind == "full" else 1 / ours.spread
    theirs = GaussianMixture(3, covariance_type=THEIRS[kind], weights_init=ours.weights, means_init=ours.means.numpy(),
                             precisions_init=precisions.numpy(), max_iter=7, tol=0, reg_covar=FLOOR)  # fmt: skip
    with pytest.warns(UserWarning, match="converge"):
        theirs.fit(rows.numpy())
    for _ in range(7):
        ours = maximised(rows, ours.log_densities(rows).softmax(1), kind)
    np.testing.assert_allclose(ours.weights, theirs.weights_, atol=1e-7)
    np.testing.assert_allclose(ours.means, theirs.means_, atol=1e-6)
    np.testing.assert_allclose(ours.spread, theirs.covariances_, atol=1e-6)
    np.testing.assert_allclose(ours.log_densities(rows).logsumexp(1), theirs.score_samples(rows.numpy()), atol=1e-5)


@pytest.mark.parametrize("kind", THEIRS)
@pytest.mark.parametrize("seed", range(5))
def test_each_step_of_em_makes_the_data_likelier(kind, seed):
    rows = clumps()
    heights = [float(fitted(rows, 4, kind, seeded(seed), steps).log_densities(rows).logsumexp(1).sum())
               for steps in range(8)]  # fmt: skip
    assert all(after > before - 1e-3 for before, after in zip(heights, heights[1:], strict=False))
    assert heights[-1] > heights[0] + 1


@pytest.mark.parametrize("kind", COVARIANCES)
def test_one_component_is_the_mean_and_the_variance(kind):
    rows = clumps()
    one = fitted(rows, 1, kind, seeded())
    torch.testing.assert_close(one.means[0], rows.mean(0))
    expected = {
        "none": torch.zeros(0),
        "spherical": rows.var(0, correction=0).mean()[None] + FLOOR,
        "diagonal": rows.var(0, correction=0)[None] + FLOOR,
        "full": rows.T.cov(correction=0)[None] + FLOOR * torch.eye(3),
    }[kind]
    torch.testing.assert_close(one.spread, expected.double())


def test_densities_integrate_to_one_and_are_torchs():
    mixture = fitted(clumps(), 3, "full", seeded())
    parts = torch.distributions.MultivariateNormal(mixture.means, mixture.spread)
    rows = clumps()[:7]
    torch.testing.assert_close(mixture.log_densities(rows), parts.log_prob(rows[:, None]) + mixture.weights.log())
    line = torch.linspace(-30, 30, 20_001, dtype=EXACT)[:, None]
    for kind in ("spherical", "diagonal", "full"):
        alone = fitted(clumps()[:, :1], 3, kind, seeded())
        assert float(alone.log_densities(line).logsumexp(1).exp().sum() * 60 / 20_000) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("kind", COVARIANCES)
def test_draws_follow_the_mixture(kind):
    weights = torch.tensor([0.2, 0.8], dtype=EXACT)
    means = torch.tensor([[0.0, 10.0], [50.0, -5.0]], dtype=EXACT)
    full = torch.tensor([[[2.0, 1.0], [1.0, 1.0]], [[1.0, -0.5], [-0.5, 3.0]]], dtype=EXACT)
    spread = {"none": full.new_zeros(0), "spherical": full[:, 0, 0], "full": full,
              "diagonal": full.diagonal(dim1=1, dim2=2)}[kind]  # fmt: skip
    drawn = Mixture(kind, weights, means, spread).draw(40_000, seeded(1))
    first = drawn[:, 0] < 25
    assert float(first.double().mean()) == pytest.approx(0.2, abs=0.01)
    for k, rows in enumerate((drawn[first], drawn[~first])):
        torch.testing.assert_close(rows.mean(0), means[k], rtol=0, atol=0.08)
        expected = {"none": torch.zeros(2, 2), "full": full[k], "spherical": full[k, 0, 0] * torch.eye(2),
                    "diagonal": full[k].diagonal().diag()}[kind]  # fmt: skip
        torch.testing.assert_close(rows.T.cov(), expected.double(), rtol=0, atol=0.12)


@pytest.mark.parametrize("kind", COVARIANCES)
def test_without_variance_the_draws_are_the_means(kind):
    rows = torch.tensor([[1.0, 2.0]] * 5, dtype=EXACT)
    drawn = fitted(rows, 1, kind, seeded()).draw(6, seeded(1))
    assert (drawn - rows[0]).abs().max() < 6 * FLOOR**0.5
    if kind == "none":
        assert (drawn == rows[0]).all()


@pytest.mark.parametrize("kind", COVARIANCES)
def test_few_rows_and_rows_that_are_alike(kind):
    for rows in (clumps()[:1], clumps()[:2], clumps()[:1].expand(6, -1)):
        mixture = fitted(rows, 4, kind, seeded())
        assert len(mixture.weights) == min(4, len(rows)) and float(mixture.weights.sum()) == pytest.approx(1)
        assert mixture.draw(20, seeded(1)).isfinite().all()


@pytest.mark.parametrize("kind", COVARIANCES)
def test_what_is_sent_comes_back(kind):
    mixture = fitted(clumps(), 2, kind, seeded())
    numbers = {"none": 0, "spherical": 1, "diagonal": 3, "full": 6}[kind]
    assert size(mixture.message(torch.float32)) == 4 * 2 * (1 + 3 + numbers)
    again = Mixture.received(mixture.message(EXACT), kind)
    for part in ("weights", "means", "spread"):
        torch.testing.assert_close(getattr(again, part), getattr(mixture, part), rtol=0, atol=1e-15)
