"""Noise on the clients' samples (`data_noise`): its distribution, and that no sample is read without it."""

import numpy as np
import pytest
import torch
from method_runs import make_context
from scipy import stats

from fedlab_nb.data import federate
from fedlab_nb.errors import UsageError
from fedlab_nb.methods.fedlpa import FedLPA
from fedlab_nb.studies.experiment import exhaust_generator
from fedlab_nb.training import Recipe

SCALE = 0.2


def noisy_context(scale=SCALE, seed=0, **options):
    federation = federate("digits", share=0.3, alpha=0.5, clients=3, seed=0)
    return make_context(federation, recipe=Recipe(data_noise=scale), seed=seed, **options)


def test_the_noise_has_the_laplace_distribution_of_the_given_scale():
    """The Kolmogorov-Smirnov distance to scipy's distribution; 2.2 / sqrt(n) is its critical value at level 1e-4."""
    clean, noisy = noisy_context(0.0), noisy_context(dtype=torch.float64)
    differences = []
    for k in range(3):
        x, y = clean.private.everything(k)
        noisy_x, noisy_y = noisy.private.everything(k)
        assert torch.equal(y, noisy_y)
        differences.append((noisy_x - x.double()).flatten())
    draws = torch.cat(differences).numpy()
    distance = stats.kstest(draws, stats.laplace(scale=SCALE).cdf).statistic
    assert distance < 2.2 / np.sqrt(len(draws))


def test_the_noise_of_a_sample_is_drawn_once():
    """The training part, the held-out part and the whole shard give the same noisy samples at every access."""
    ctx = noisy_context()
    for k in range(3):
        train, held_out = ctx.private.train(k)[0], ctx.private.held_out(k)[0]
        assert torch.equal(train, ctx.private.train(k)[0])
        everything = {tuple(row.flatten().tolist()) for row in ctx.private.everything(k)[0]}
        parts = {tuple(row.flatten().tolist()) for row in torch.cat([train, held_out])}
        assert parts == everything
    assert not torch.equal(noisy_context(seed=1).private.train(0)[0], ctx.private.train(0)[0])


def test_fedlpa_measures_its_factors_on_noisy_samples():
    """The first layer's A is the second moment of its input [x 1], here computed by hand from the samples."""
    ctx, clean = noisy_context(dtype=torch.float64), noisy_context(0.0, dtype=torch.float64)
    model = exhaust_generator(FedLPA().run(ctx))
    for k, posterior in enumerate(model.posteriors):
        first_layer = next(iter(posterior.factors.values()))
        torch.testing.assert_close(first_layer.a, compute_second_moment(ctx.private.train(k)[0]))
        assert not torch.allclose(
            first_layer.a, compute_second_moment(clean.private.train(k)[0]), rtol=0.1
        )


def compute_second_moment(x):
    inputs = torch.cat([x.flatten(1), torch.ones(len(x), 1, dtype=x.dtype)], 1)
    return inputs.T @ inputs / len(x)


def test_a_negative_scale_is_refused():
    with pytest.raises(UsageError, match="data_noise is -1"):
        Recipe(data_noise=-1)
