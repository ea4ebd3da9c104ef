"""FedPFT: bytes, the mixtures that clients send, the features that the server draws, and claims about accuracy."""

import byte_formulas
import numpy as np
import pytest
import torch
from method_runs import make_torch_generator
from sklearn.mixture import GaussianMixture

from fedlab_nb import run
from fedlab_nb.comm import count_payload_bytes
from fedlab_nb.errors import UsageError
from fedlab_nb.methods.fedpft import (
    COVARIANCES,
    FLOOR,
    FeatureMixture,
    FedPFT,
    fit_gaussian_mixture,
    fit_mixture_to_responsibilities,
)
from fedlab_nb.studies.experiment import exhaust_generator

from .test_gauss import EXACT, context, draw_images

QUICK = {"epochs": 3}


def flatten_images(x):
    """The frozen feature map of these tests: the pixels."""
    return x.flatten(1)


@pytest.mark.slow
@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize(("components", "smallest"), [(1, 1), (3, 4)])
def test_bytes_follow_the_formula(covariance, components, smallest):
    ctx = context(dtype=torch.float32)
    exhaust_generator(
        FedPFT(components=components, covariance=covariance, smallest=smallest, **QUICK).run(ctx)
    )
    for k, (up, down) in ctx.link.ledger.by_client().items():
        counts = torch.bincount(ctx.private.train(k)[1])
        components_by_class = [min(components, n) for n in counts.tolist() if n >= smallest]
        assert (up, down) == (
            byte_formulas.count_fedpft_bytes(64, components_by_class, 10, covariance),
            0,
        )


def test_the_server_draws_as_many_features_of_a_class_as_clients_have():
    ctx = context()
    method = FedPFT()
    messages = [method.fit_and_pack_client_mixtures(ctx, k, flatten_images) for k in range(4)]
    features, labels = method.draw_features_from_mixtures(ctx, messages)
    x = torch.cat([ctx.private.train(k)[0] for k in range(4)]).flatten(1)
    y = torch.cat([ctx.private.train(k)[1] for k in range(4)])
    assert torch.equal(labels.bincount(), y.bincount())
    assert features.dtype == EXACT
    for c in range(10):
        difference_of_means = features[labels == c].mean(0) - x[y == c].mean(0)
        assert difference_of_means.abs().max() < 0.15


def test_small_classes_are_not_sent_and_a_run_without_any_class_is_refused():
    ctx = context()
    for k in range(4):
        message = FedPFT(smallest=20).fit_and_pack_client_mixtures(ctx, k, flatten_images)
        counts = torch.bincount(ctx.private.train(k)[1], minlength=10)
        assert message["counts"].tolist() == torch.where(counts >= 20, counts, 0).tolist()
        assert list(message["mixtures"]) == (counts >= 20).nonzero()[:, 0].tolist()
    with pytest.raises(UsageError, match="smallest"):
        exhaust_generator(FedPFT(smallest=10_000).run(context()))


def test_the_head_is_linear_and_learns():
    ctx = context()
    hardly_trained = exhaust_generator(FedPFT(lr=1e-6, epochs=1).run(ctx))
    x = draw_images()
    model = exhaust_generator(FedPFT(epochs=20).run(context()))
    weights = model.head.weight
    torch.testing.assert_close(model.logits(x), x.flatten(1) @ weights.T + model.head.bias)
    assert (
        model.parameters == 650
        and hardly_trained.head.weight.abs().max() < 1e-3 < weights.abs().max()
    )
    data = ctx.private._x, ctx.private._y
    assert model.accuracy(*data) > 0.85


# ------------------------------------------------------------------------------------------------ claims over seeds
@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 4, 5, 7, 100, 103])
def test_drawn_features_come_near_exact_sums_and_are_far_above_the_ensemble(seed):
    setting = {"alpha": 0.1, "seed": seed}
    diagonal, full = (
        run("fedpft", covariance=kind, **setting).accuracy for kind in ("diagonal", "full")
    )
    assert run("gauss", **setting, **{"gauss.head": "qda"}).accuracy > full > diagonal
    assert diagonal >= run("ensemble", rule="probabilities", **setting).accuracy + 0.15


# ---------------------------------------------------------------------------------------------------- Gaussian mixtures
# EM against scikit-learn's, its likelihood step by step, draws, and messages.

SKLEARN_NAMES = {"spherical": "spherical", "diagonal": "diag", "full": "full"}


def draw_three_clusters(n=90, d=3):
    rows = torch.randn(n, d, generator=make_torch_generator(), dtype=EXACT)
    return rows * torch.tensor([1.0, 2.0, 0.5]) + 3 * (torch.arange(n)[:, None] % 3)


@pytest.mark.parametrize("kind", SKLEARN_NAMES)
def test_em_equals_scikit_learns_from_the_same_start(kind):
    rows = draw_three_clusters()
    responsibilities = torch.nn.functional.one_hot(
        torch.cdist(rows, rows[:3]).argmin(1), 3
    ).double()
    ours = fit_mixture_to_responsibilities(rows, responsibilities, kind)
    precisions = torch.linalg.inv(ours.spread) if kind == "full" else 1 / ours.spread
    theirs = GaussianMixture(
        3,
        covariance_type=SKLEARN_NAMES[kind],
        weights_init=ours.weights,
        means_init=ours.means.numpy(),
        precisions_init=precisions.numpy(),
        max_iter=7,
        tol=0,
        reg_covar=FLOOR,
    )
    with pytest.warns(UserWarning, match="converge"):
        theirs.fit(rows.numpy())
    for _ in range(7):
        ours = fit_mixture_to_responsibilities(
            rows, ours.compute_weighted_log_densities(rows).softmax(1), kind
        )
    np.testing.assert_allclose(ours.weights, theirs.weights_, atol=1e-7)
    np.testing.assert_allclose(ours.means, theirs.means_, atol=1e-6)
    np.testing.assert_allclose(ours.spread, theirs.covariances_, atol=1e-6)
    np.testing.assert_allclose(
        ours.compute_weighted_log_densities(rows).logsumexp(1),
        theirs.score_samples(rows.numpy()),
        atol=1e-5,
    )


@pytest.mark.parametrize("kind", SKLEARN_NAMES)
@pytest.mark.parametrize("seed", range(5))
def test_each_step_of_em_raises_the_likelihood(kind, seed):
    rows = draw_three_clusters()
    log_likelihoods = []
    for steps in range(8):
        mixture = fit_gaussian_mixture(rows, 4, kind, make_torch_generator(seed), steps)
        log_likelihoods.append(
            float(mixture.compute_weighted_log_densities(rows).logsumexp(1).sum())
        )
    assert all(
        after > before - 1e-3
        for before, after in zip(log_likelihoods, log_likelihoods[1:], strict=False)
    )
    assert log_likelihoods[-1] > log_likelihoods[0] + 1


@pytest.mark.parametrize("kind", COVARIANCES)
def test_one_component_is_the_mean_and_the_variance(kind):
    rows = draw_three_clusters()
    mixture = fit_gaussian_mixture(rows, 1, kind, make_torch_generator())
    torch.testing.assert_close(mixture.means[0], rows.mean(0))
    expected = {
        "none": torch.zeros(0),
        "spherical": rows.var(0, correction=0).mean()[None] + FLOOR,
        "diagonal": rows.var(0, correction=0)[None] + FLOOR,
        "full": rows.T.cov(correction=0)[None] + FLOOR * torch.eye(3),
    }[kind]
    torch.testing.assert_close(mixture.spread, expected.double())


@pytest.mark.parametrize("kind", COVARIANCES)
def test_draws_follow_the_mixture(kind):
    weights = torch.tensor([0.2, 0.8], dtype=EXACT)
    means = torch.tensor([[0.0, 10.0], [50.0, -5.0]], dtype=EXACT)
    full = torch.tensor([[[2.0, 1.0], [1.0, 1.0]], [[1.0, -0.5], [-0.5, 3.0]]], dtype=EXACT)
    spread = {"none": full.new_zeros(0), "spherical": full[:, 0, 0], "full": full,
              "diagonal": full.diagonal(dim1=1, dim2=2)}[kind]  # fmt: skip
    features = FeatureMixture(kind, weights, means, spread).draw_features(
        40_000, make_torch_generator(1)
    )
    is_component_0 = features[:, 0] < 25
    assert float(is_component_0.double().mean()) == pytest.approx(0.2, abs=0.01)
    for k, rows in enumerate((features[is_component_0], features[~is_component_0])):
        torch.testing.assert_close(rows.mean(0), means[k], rtol=0, atol=0.08)
        expected = {"none": torch.zeros(2, 2), "full": full[k], "spherical": full[k, 0, 0] * torch.eye(2),
                    "diagonal": full[k].diagonal().diag()}[kind]  # fmt: skip
        torch.testing.assert_close(rows.T.cov(), expected.double(), rtol=0, atol=0.12)


@pytest.mark.parametrize("kind", COVARIANCES)
def test_few_rows_and_equal_rows_still_give_a_mixture(kind):
    for rows in (
        draw_three_clusters()[:1],
        draw_three_clusters()[:2],
        draw_three_clusters()[:1].expand(6, -1),
    ):
        mixture = fit_gaussian_mixture(rows, 4, kind, make_torch_generator())
        assert len(mixture.weights) == min(4, len(rows))
        assert float(mixture.weights.sum()) == pytest.approx(1)
        assert mixture.draw_features(20, make_torch_generator(1)).isfinite().all()


@pytest.mark.parametrize("kind", COVARIANCES)
def test_a_mixture_survives_its_message(kind):
    mixture = fit_gaussian_mixture(draw_three_clusters(), 2, kind, make_torch_generator())
    numbers = {"none": 0, "spherical": 1, "diagonal": 3, "full": 6}[kind]
    assert count_payload_bytes(mixture.make_message(torch.float32)) == 4 * 2 * (1 + 3 + numbers)
    restored = FeatureMixture.from_message(mixture.make_message(EXACT), kind)
    for part in ("weights", "means", "spread"):
        torch.testing.assert_close(
            getattr(restored, part), getattr(mixture, part), rtol=0, atol=1e-15
        )
