"""The analytic Gaussian mechanism and its accountant, against the privacy loss itself, integrated and convolved."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from fedlab_nb.errors import UsageError
from fedlab_nb.methods.parts.privacy import delta_of, epsilon_of, gaussian, sigma_for

CASES = [(0.8, 1), (3.73, 1), (5.0, 7), (20.0, 100)]


def integrated_delta(sigma, epsilon):
    """δ = ∫ max(p − e^ε q, 0), where p and q are the outcomes' densities with and without the sample; one query."""
    p, q = stats.norm(1, sigma), stats.norm(0, sigma)
    edge = 0.5 + epsilon * sigma**2  # above it p > e^ε q
    return integrate.quad(lambda t: p.pdf(t) - math.exp(epsilon) * q.pdf(t), edge, edge + 40 * sigma, epsabs=1e-14)[0]


def convolved_delta(sigma, queries, epsilon, points=2**15):
    """The same for several queries: the loss ln(p/q) of one query on a grid, convolved with itself, query by query."""
    mean, width = 1 / (2 * sigma**2), 1 / sigma  # of one query's loss under p, a sum of which is wanted
    far = queries * mean + 12 * width * math.sqrt(queries) + 1
    step = 2 * far / points
    loss = (np.arange(points) - points // 2) * step
    one = np.diff(stats.norm(mean, width).cdf(np.concatenate([loss - step / 2, loss[-1:] + step / 2])))
    many = np.fft.ifft(np.fft.fft(np.fft.ifftshift(one)) ** queries).real
    many = np.fft.fftshift(many)
    above = loss > epsilon
    return float((many[above] * (1 - np.exp(epsilon - loss[above]))).sum())


@pytest.mark.parametrize(("sigma", "epsilon"), [(0.7, 0.5), (1.0, 3.0), (3.73, 1.0), (4.0, 0.0), (0.3, 8.0)])
def test_delta_is_the_integral_of_the_densities(sigma, epsilon):
    assert delta_of(sigma, epsilon) == pytest.approx(integrated_delta(sigma, epsilon), rel=1e-6, abs=1e-13)


@pytest.mark.parametrize(("sigma", "queries"), CASES)
@pytest.mark.parametrize("delta", [1e-3, 1e-5])
def test_the_accountants_epsilon_gives_the_convolved_loss_that_delta(sigma, queries, delta):
    epsilon = epsilon_of(sigma, delta, queries=queries)
    assert convolved_delta(sigma, queries, epsilon) == pytest.approx(delta, rel=5e-3)
    assert convolved_delta(sigma, queries, 0.97 * epsilon) > 1.02 * delta


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-5), (5.0, 1e-5), (50.0, 1e-3)])
def test_sigma_and_epsilon_are_inverse_and_scale_with_the_sensitivity(epsilon, delta):
    sigma = sigma_for(epsilon, delta)
    assert epsilon_of(sigma, delta) == pytest.approx(epsilon, rel=1e-9)
    assert delta_of(sigma, epsilon) <= delta < delta_of(0.999 * sigma, epsilon)  # enough, and not more
    assert sigma_for(epsilon, delta, sensitivity=3.0, queries=4) == pytest.approx(6 * sigma, rel=1e-12)
    assert epsilon_of(6 * sigma, delta, sensitivity=3.0, queries=4) == pytest.approx(epsilon, rel=1e-9)


def test_the_ends():
    assert sigma_for(math.inf, 1e-5) == 0 and epsilon_of(0, 1e-5) == math.inf and delta_of(0, 5.0) == 1
    assert epsilon_of(1e9, 1e-5) == 0
    assert 0 < sigma_for(1e6, 1e-5) < 1e-2 and math.isfinite(delta_of(1e-3, 1e6))
    for epsilon, delta in [(0, 1e-5), (-1, 1e-5), (math.nan, 1e-5), (1, 0), (1, 1)]:
        with pytest.raises(UsageError):
            sigma_for(epsilon, delta)


def test_noise_has_its_spread_and_its_stream():
    one, again = (gaussian(torch.zeros(200, 100), 3.0, torch.Generator().manual_seed(1)) for _ in range(2))
    assert torch.equal(one, again) and one.dtype == torch.float32
    assert one.std().item() == pytest.approx(3, rel=0.02) and abs(one.mean().item()) < 0.1
