"""AFL as a method: the pooled fit for every partition, exact forgetting, bytes, masks, noise, leaks; its algebra."""

import functools
import math

import byte_formulas
import method_runs
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from fedlab_nb.data import Federation, federate
from fedlab_nb.errors import UsageError
from fedlab_nb.methods.afl import (
    AFL,
    SENSITIVITY,
    RidgeSums,
    compute_accuracy_of_classifier_weights,
    compute_linear_scores,
    solve_classifier_weights,
    solve_classifier_weights_without_client,
)
from fedlab_nb.studies.experiment import exhaust_generator

EXACT = torch.float64
PARTITIONS = [
    {"alpha": 0.1, "clients": 10, "seed": 0},
    {"alpha": 0.1, "clients": 10, "seed": 7},
    {"alpha": 100.0, "clients": 20, "seed": 1},
    {"partition": "classes", "clients": 5, "seed": 2, "classes_per_client": 3},
    {"partition": "quantity", "alpha": 0.5, "clients": 20, "seed": 3},
]


context = functools.partial(
    method_runs.make_context, clients=10, alpha=0.1, dtype=EXACT, holdout=0.0
)


def run_method(method, **options):
    """The model of a whole run, and the run's context."""
    ctx = context(**options)
    return exhaust_generator(method.run(ctx)), ctx


def copy_with_shards(federation, shards):
    return Federation(
        federation.dataset, tuple(shards), federation.partition, federation.alpha, 0, 0, 1, ""
    )


def assert_close_to(actual, expected, tolerance=1e-9):
    """The largest difference, relative to the largest of the expected numbers."""
    assert np.abs(actual - expected).max() <= tolerance * np.abs(expected).max()


# ------------------------------------------------------------------------------------------------ the pooled fit
@pytest.mark.parametrize("features", ["pixels", "relu"])
def test_the_weights_are_the_pooled_ridge_fit_for_every_partition_and_client_order(features):
    data = federate("digits", alpha=1.0, clients=2, seed=0).dataset
    method = AFL(features=features, size=64)
    model, _ = run_method(method)
    rows = F.pad(model.features(data.x_train.double()), (0, 1), value=1.0)
    square = rows.T @ rows + method.rho * torch.eye(rows.shape[1], dtype=EXACT)
    pooled = torch.linalg.solve(square, rows.T @ F.one_hot(data.y_train, 10).double()).numpy()
    for setting in PARTITIONS:
        federation = federate("digits", **setting)
        model, _ = run_method(method, federation=federation)
        assert_close_to(model.report.weights, pooled)
        backwards = copy_with_shards(federation, federation.shards[::-1])
        assert_close_to(run_method(method, federation=backwards)[0].report.weights, pooled)
    assert (
        compute_accuracy_of_classifier_weights(
            pooled, model.features(data.x_test.double()).numpy(), data.y_test.numpy()
        )
        >= 0.938
    )


@pytest.mark.slow
def test_features_of_a_public_network_give_the_pooled_fit_too():
    small_shards = [
        shard[:20] for shard in federate("digits", alpha=0.1, clients=10, seed=0).shards
    ]
    one_client = copy_with_shards(federate("digits", clients=2), [torch.cat(small_shards)])
    ten_clients = copy_with_shards(one_client, small_shards)
    pooled, _ = run_method(AFL(features="lite0"), federation=one_client)
    summed, _ = run_method(AFL(features="lite0"), federation=ten_clients)
    assert_close_to(summed.report.weights, pooled.report.weights)


def test_one_client_a_client_of_one_sample_and_classes_that_nobody_has():
    data = federate("digits", alpha=1.0, clients=2, seed=0)
    n = len(data.dataset.x_train)
    one_client = copy_with_shards(data, [torch.arange(n)])
    one_sample_and_the_others = copy_with_shards(data, [torch.arange(1), torch.arange(1, n)])
    whole_fit, _ = run_method(AFL(), federation=one_client)
    split_fit, _ = run_method(AFL(), federation=one_sample_and_the_others)
    assert_close_to(split_fit.report.weights, whole_fit.report.weights)
    classes_0_to_4 = copy_with_shards(data, (data.dataset.y_train < 5).nonzero()[:, 0].split(200))
    model, _ = run_method(AFL(), federation=classes_0_to_4)
    x = data.dataset.x_test.double()
    assert model.logits(x).isfinite().all() and (model.predict(x) < 5).all()


# ------------------------------------------------------------------------------------------------ forgetting
@pytest.mark.parametrize("features", ["pixels", "relu"])
def test_forgetting_a_client_gives_the_weights_of_a_run_without_it(features):
    federation = federate("digits", alpha=0.1, clients=10, seed=0)
    method = AFL(features=features, size=64)
    model, _ = run_method(method, federation=federation)
    for k in (0, 3, 9):
        remaining_shards = [shard for j, shard in enumerate(federation.shards) if j != k]
        remaining_clients = copy_with_shards(federation, remaining_shards)
        run_without_k, _ = run_method(method, federation=remaining_clients)
        forgotten = solve_classifier_weights_without_client(model.report, k)
        assert_close_to(forgotten, run_without_k.report.weights)
        assert np.abs(forgotten - model.report.weights).max() > 1e-3
    total = add_sums([model.report.get_client_sums(k) for k in range(10)])
    assert_close_to(model.report.solve_server_classifier_weights(total, 10), model.report.weights)


def test_forgetting_is_refused_where_a_clients_sums_are_not_known():
    federation = federate("digits", alpha=1.0, clients=2, seed=0)
    total, _ = run_method(AFL(secure=True), federation=federation)
    with pytest.raises(UsageError, match="only their total"):
        solve_classifier_weights_without_client(total.report, 0)
    noisy, _ = run_method(AFL(epsilon=1.0), federation=federation)
    with pytest.raises(UsageError, match="noise in it"):
        solve_classifier_weights_without_client(noisy.report, 0)
    plain, _ = run_method(AFL(), federation=federation)
    with pytest.raises(UsageError, match="client is 2"):
        solve_classifier_weights_without_client(plain.report, 2)
    one_client = copy_with_shards(federation, [torch.arange(100)])
    with pytest.raises(UsageError, match="only client"):
        solve_classifier_weights_without_client(
            run_method(AFL(), federation=one_client)[0].report, 0
        )


def test_sums_of_too_many_numbers_are_not_kept(monkeypatch):
    monkeypatch.setattr("fedlab_nb.methods.afl.MOST_NUMBERS", 1000)
    model, ctx = run_method(AFL())
    assert model.report.moments is None and model.report.weights is not None
    assert model.complete_report_on_test_samples(*ctx.private.train(0)) is model.report


# ------------------------------------------------------------------------------------------------ bytes
@pytest.mark.parametrize(("dtype", "number"), [(torch.float32, 4), (EXACT, 8)])
def test_each_client_uploads_a_triangle_of_moments_and_its_class_sums(dtype, number):
    _, ctx = run_method(AFL(), dtype=dtype)
    expected = byte_formulas.count_afl_bytes(65, 10, number)
    assert set(ctx.link.ledger.by_client().values()) == {(expected, 0)}
    assert expected == {4: 11_180, 8: 22_360}[number]
    _, ctx = run_method(AFL(features="relu", size=256), dtype=dtype)
    assert set(ctx.link.ledger.by_client().values()) == {
        (byte_formulas.count_afl_bytes(257, 10, number), 8)
    }
    assert byte_formulas.count_afl_bytes(257, 10) == 142_892


# ------------------------------------------------------------------------------------------------ masks and noise
def test_masked_sums_give_the_same_fit_and_reveal_no_clients_sums():
    plain, _ = run_method(AFL(secure=False))
    secure, ctx = run_method(AFL(secure=True))
    assert set(ctx.link.ledger.by_client().values()) == {
        byte_formulas.count_secure_afl_bytes_up_and_down(65, 10, 10)
    }
    # Masked sums are rounded to 2^-32 before they are added.
    assert_close_to(secure.report.weights, plain.report.weights, 1e-6)
    assert secure.report.moments is None
    assert secure.report.classes is None
    assert secure.report.own_fits is None
    x = torch.rand(50, 1, 8, 8, generator=torch.Generator().manual_seed(0), dtype=EXACT)
    assert torch.equal(plain.predict(x), secure.predict(x))


def test_an_infinite_epsilon_adds_no_noise_to_the_last_digit():
    plain, _ = run_method(AFL())
    assert np.array_equal(plain.report.weights, run_method(AFL(epsilon=math.inf))[0].report.weights)
    configured = AFL.configure(epsilon="inf")
    assert configured == AFL() == AFL.configure(epsilon=0) == AFL.configure(epsilon=math.inf)
    with pytest.raises(UsageError, match="afl.rho"):
        AFL.configure(rho="inf")


@pytest.mark.parametrize("secure", [False, True])
def test_the_total_carries_the_promised_noise_once(secure, monkeypatch):
    """With masks the clients' shares of the noise add up to the same variance."""
    totals = []

    def record_total_and_solve(total, *args, **options):
        totals.append(total)
        return solve_classifier_weights(total, *args, **options)

    monkeypatch.setattr("fedlab_nb.methods.afl.solve_classifier_weights", record_total_and_solve)
    for seed in range(3):
        ctx = context()
        ctx.seed = seed
        list(AFL(features="relu", size=100, epsilon=1.0, secure=secure).run(ctx))
    differences = [later - earlier for earlier, later in zip(totals, totals[1:], strict=False)]
    noise = torch.cat([torch.triu(difference.moments).flatten() for difference in differences])
    noise = noise[noise != 0] / 2**0.5  # the difference of two noises has twice the variance
    # The analytic Gaussian mechanism at ε = 1, δ = 1e-5: 3.7304 times the sensitivity √2.
    assert noise.std().item() == pytest.approx(5.276, rel=0.03)


# ------------------------------------------------------------------------------------------------ what leaks
def test_the_only_image_of_a_class_at_a_client_is_in_its_class_sum():
    model, ctx = run_method(AFL())
    counts = model.report.classes[:, -1].round()
    checked = 0
    for k, c in np.argwhere(counts == 1):
        x, y = ctx.private.train(int(k))
        image = x[y == int(c)].flatten()
        np.testing.assert_allclose(model.report.classes[k, :-1, c], image, atol=1e-12)
        checked += 1
    assert checked > 0


# ---------------------------------------------------------------------------------------------- the algebra of the sums
# Pooled ridge regression for every split, the paper's two forms, the client ridge that is removed again, extreme cases.


def draw_samples(n=60, features=5, classes=3, seed=0):
    stream = torch.Generator().manual_seed(seed)
    x = torch.randn(n, features, generator=stream, dtype=EXACT)
    return x, torch.randint(classes, (n,), generator=stream)


def measure_client_sums(x, y, sizes, gamma=0.0, classes=3):
    return [
        RidgeSums.measure(a, b, classes).copy_with_added_ridge(gamma)
        for a, b in zip(x.split(sizes), y.split(sizes), strict=True)
    ]


def add_sums(sums):
    return sum(sums[1:], sums[0])


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=6),
    st.floats(0.0, 5.0),
    st.floats(0.01, 5.0),
    st.integers(0, 99),
)
@settings(max_examples=40, deadline=None)
def test_sums_of_any_split_give_ridge_regression_on_all_samples(sizes, gamma, rho, seed):
    """Scikit-learn's ridge regression; the intercept is the last weight and is shrunk like the others."""
    x, y = draw_samples(sum(sizes), seed=seed)
    weights = solve_classifier_weights(
        add_sums(measure_client_sums(x, y, sizes, gamma)), len(sizes), gamma, rho
    )
    rows = np.c_[x, np.ones(len(x))]
    expected = (
        Ridge(alpha=rho, fit_intercept=False, solver="svd").fit(rows, np.eye(3)[y.numpy()]).coef_.T
    )
    np.testing.assert_allclose(weights, expected, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(compute_linear_scores(x, weights), rows @ weights.numpy(), atol=1e-9)


def test_the_papers_pairwise_aggregation_equals_the_solution_from_the_sums():
    """The paper merges the weights of two clients, and then a third's, by explicit inverses."""
    x, y = draw_samples()
    sums = measure_client_sums(x, y, [7, 20, 33], gamma=1.0)
    local = [torch.linalg.inv(s.moments) @ s.classes for s in sums]
    merged_moments = sums[0].moments
    w = local[0]
    eye = torch.eye(6, dtype=EXACT)
    for client_sums, client_w in zip(sums[1:], local[1:], strict=True):
        a, b = merged_moments, client_sums.moments
        inverse_a = torch.linalg.inv(a)
        inverse_b = torch.linalg.inv(b)
        inverse_of_sum = torch.linalg.inv(a + b)
        factor_of_merged = eye - inverse_a @ b + inverse_a @ b @ inverse_of_sum @ b
        factor_of_client = eye - inverse_b @ a + inverse_b @ a @ inverse_of_sum @ a
        w = factor_of_merged @ w + factor_of_client @ client_w
        merged_moments = a + b
    torch.testing.assert_close(
        w, solve_classifier_weights(add_sums(sums), 3, 0.0, 0.0), rtol=1e-9, atol=1e-11
    )
    # The three client ridges of γ = 1 are removed, and one of ρ = 0.01 is added.
    without_ridges = torch.linalg.inv(merged_moments - 3 * eye + 0.01 * eye) @ merged_moments @ w
    torch.testing.assert_close(
        without_ridges,
        solve_classifier_weights(add_sums(sums), 3, 1.0, 0.01),
        rtol=1e-9,
        atol=1e-11,
    )


def test_too_few_samples_and_a_feature_of_zeros_give_the_smallest_least_squares_weights():
    x, y = draw_samples(4)
    x[:, 2] = 0
    weights = solve_classifier_weights(
        add_sums(measure_client_sums(x, y, [3, 1], 1.0)), 2, 1.0, 0.0
    )
    rows = torch.cat([x, torch.ones(4, 1, dtype=EXACT)], 1)
    smallest = torch.linalg.lstsq(rows, torch.eye(3, dtype=EXACT)[y], driver="gelsd").solution
    torch.testing.assert_close(weights, smallest, rtol=1e-6, atol=1e-8)
    assert weights[2].abs().max() < 1e-12


@given(st.integers(1, 30), st.integers(0, 10_000), st.floats(0.01, 100))
@settings(max_examples=40, deadline=None)
def test_one_sample_moves_the_sums_by_at_most_the_sensitivity(n, seed, scale):
    x, y = draw_samples(n, seed=seed)
    x = x * scale
    sums = RidgeSums.measure(x, y, 3, should_scale_rows_to_unit_length=True)
    without_one = RidgeSums.measure(x[1:], y[1:], 3, should_scale_rows_to_unit_length=True)
    change = sums - without_one
    class_square = change.classes.square().sum()
    sent_square = torch.triu(change.moments).square().sum()
    assert (sent_square + class_square).sqrt() <= SENSITIVITY + 1e-9
    length = (change.moments.square().sum() + class_square).sqrt()
    assert length == pytest.approx(SENSITIVITY, rel=1e-9)


def test_noise_is_symmetric_has_its_spread_and_vanishes_with_sigma():
    x, y = draw_samples(60, features=80)
    sums = RidgeSums.measure(x, y, 3, should_scale_rows_to_unit_length=True)
    noisy = sums.copy_with_added_noise(2.0, torch.Generator().manual_seed(0))
    noise = noisy.moments - sums.moments
    torch.testing.assert_close(noise, noise.T, rtol=0, atol=1e-12)
    assert torch.triu(noise)[torch.triu(noise) != 0].std().item() == pytest.approx(2, rel=0.05)
    assert (noisy.classes - sums.classes).std().item() == pytest.approx(2, rel=0.15)
    plain = solve_classifier_weights(sums, 1, 0.0, 0.1)
    with_faint_noise = solve_classifier_weights(
        sums.copy_with_added_noise(1e-12, torch.Generator().manual_seed(0)),
        1,
        0.0,
        0.1,
        sigma=1e-12,
    )
    torch.testing.assert_close(with_faint_noise, plain, rtol=0, atol=1e-9)
    noisy = sums.copy_with_added_noise(50.0, torch.Generator().manual_seed(0))
    with_strong_noise = solve_classifier_weights(noisy, 1, 0.0, 0.1, sigma=50.0)
    assert with_strong_noise.isfinite().all()  # though the moments have negative eigenvalues
    values, vectors = np.linalg.eigh(noisy.moments.numpy())
    assert values.min() < 0
    # Negative eigenvalues are set to 0, and the ridge of 0.1 grows by σ√d.
    eigenvalues = np.maximum(values, 0) + 0.1 + 50 * 81**0.5
    system = vectors @ np.diag(eigenvalues) @ vectors.T
    expected = np.linalg.solve(system, noisy.classes.numpy())
    np.testing.assert_allclose(with_strong_noise, expected, rtol=1e-9, atol=1e-12)
