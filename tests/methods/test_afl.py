"""AFL as a method: the same weights for every partition, forgetting, bytes, masks, noise, what leaks, refusals."""

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


context = functools.partial(method_runs.context, clients=10, alpha=0.1, dtype=EXACT, holdout=0.0)


def fitted(method, **more):
    ctx = context(**more)
    return exhaust_generator(method.run(ctx)), ctx


def with_shards(federation, shards):
    return Federation(
        federation.dataset, tuple(shards), federation.partition, federation.alpha, 0, 0, 1, ""
    )


def close(one, other, tolerance=1e-9):
    assert np.abs(one - other).max() <= tolerance * np.abs(other).max()


# ------------------------------------------------------------------------------------------------ one place
@pytest.mark.parametrize("features", ["pixels", "relu"])
def test_the_weights_are_those_of_one_place_for_every_partition_and_order(features):
    data = federate("digits", alpha=1.0, clients=2, seed=0).dataset
    method = AFL(features=features, size=64)
    model, _ = fitted(method)
    rows = F.pad(model.features(data.x_train.double()), (0, 1), value=1.0)
    square = rows.T @ rows + method.rho * torch.eye(rows.shape[1], dtype=EXACT)
    pooled = torch.linalg.solve(square, rows.T @ F.one_hot(data.y_train, 10).double()).numpy()
    for setting in PARTITIONS:
        federation = federate("digits", **setting)
        model, _ = fitted(method, federation=federation)
        close(model.report.weights, pooled)
        backwards = with_shards(federation, federation.shards[::-1])
        close(fitted(method, federation=backwards)[0].report.weights, pooled)
    assert (
        compute_accuracy_of_classifier_weights(
            pooled, model.features(data.x_test.double()).numpy(), data.y_test.numpy()
        )
        >= 0.938
    )


def test_with_a_public_network_too():
    few = [shard[:20] for shard in federate("digits", alpha=0.1, clients=10, seed=0).shards]
    one = with_shards(federate("digits", clients=2), [torch.cat(few)])
    many = with_shards(one, few)
    (pooled, _), (summed, _) = (fitted(AFL(features="lite0"), federation=f) for f in (one, many))
    close(summed.report.weights, pooled.report.weights)


def test_one_client_one_sample_and_missing_classes():
    data = federate("digits", alpha=1.0, clients=2, seed=0)
    n = len(data.dataset.x_train)
    alone = with_shards(data, [torch.arange(n)])
    tiny = with_shards(data, [torch.arange(1), torch.arange(1, n)])
    (one, _), (two, _) = (fitted(AFL(), federation=f) for f in (alone, tiny))
    close(two.report.weights, one.report.weights)
    lacking = with_shards(data, (data.dataset.y_train < 5).nonzero()[:, 0].split(200))
    model, _ = fitted(AFL(), federation=lacking)
    x = data.dataset.x_test.double()
    assert model.logits(x).isfinite().all() and (model.predict(x) < 5).all()


# ------------------------------------------------------------------------------------------------ forgetting
@pytest.mark.parametrize("features", ["pixels", "relu"])
def test_a_forgotten_client_was_never_there(features):
    federation = federate("digits", alpha=0.1, clients=10, seed=0)
    method = AFL(features=features, size=64)
    model, _ = fitted(method, federation=federation)
    for k in (0, 3, 9):
        others = with_shards(
            federation, [shard for j, shard in enumerate(federation.shards) if j != k]
        )
        close(
            solve_classifier_weights_without_client(model.report, k),
            fitted(method, federation=others)[0].report.weights,
        )
        assert (
            np.abs(
                solve_classifier_weights_without_client(model.report, k) - model.report.weights
            ).max()
            > 1e-3
        )
    late = model.report.solve_server_classifier_weights(
        sum(
            (model.report.get_client_sums(j) for j in range(1, 10)), model.report.get_client_sums(0)
        ),
        10,
    )
    close(late, model.report.weights)


def test_what_cannot_be_forgotten_is_said():
    federation = federate("digits", alpha=1.0, clients=2, seed=0)
    total, _ = fitted(AFL(secure=True), federation=federation)
    with pytest.raises(UsageError, match="only their total"):
        solve_classifier_weights_without_client(total.report, 0)
    noisy, _ = fitted(AFL(epsilon=1.0), federation=federation)
    with pytest.raises(UsageError, match="noise in it"):
        solve_classifier_weights_without_client(noisy.report, 0)
    plain, _ = fitted(AFL(), federation=federation)
    with pytest.raises(UsageError, match="client is 2"):
        solve_classifier_weights_without_client(plain.report, 2)
    alone = with_shards(federation, [torch.arange(100)])
    with pytest.raises(UsageError, match="only client"):
        solve_classifier_weights_without_client(fitted(AFL(), federation=alone)[0].report, 0)


def test_sums_of_too_many_numbers_are_not_kept(monkeypatch):
    monkeypatch.setattr("fedlab_nb.methods.afl.MOST_NUMBERS", 1000)
    model, ctx = fitted(AFL())
    assert model.report.moments is None and model.report.weights is not None
    assert model.measured(*ctx.private.train(0)) is model.report


# ------------------------------------------------------------------------------------------------ bytes
@pytest.mark.parametrize(("dtype", "number"), [(torch.float32, 4), (EXACT, 8)])
def test_a_triangle_and_the_classes_sums_go_up(dtype, number):
    _, ctx = fitted(AFL(), dtype=dtype)
    expected = byte_formulas.afl_bytes(65, 10, number)
    assert set(ctx.link.ledger.by_client().values()) == {(expected, 0)}
    assert expected == {4: 11_180, 8: 22_360}[number]
    _, ctx = fitted(AFL(features="relu", size=256), dtype=dtype)
    assert set(ctx.link.ledger.by_client().values()) == {
        (byte_formulas.afl_bytes(257, 10, number), 8)
    }
    assert byte_formulas.afl_bytes(257, 10) == 142_892


# ------------------------------------------------------------------------------------------------ masks and noise
def test_masked_sums_give_the_same_fit_and_no_clients_part():
    (plain, _), (secure, ctx) = (fitted(AFL(secure=secure)) for secure in (False, True))
    assert set(ctx.link.ledger.by_client().values()) == {byte_formulas.secure_afl_bytes(65, 10, 10)}
    close(
        secure.report.weights, plain.report.weights, 1e-6
    )  # rounded to 2^-32 before they are summed
    assert (
        secure.report.moments is None
        and secure.report.classes is None
        and secure.report.own_fits is None
    )
    x = torch.rand(50, 1, 8, 8, generator=torch.Generator().manual_seed(0), dtype=EXACT)
    assert torch.equal(plain.predict(x), secure.predict(x))


def test_without_a_bound_nothing_changes_to_the_last_digit():
    plain, _ = fitted(AFL())
    assert np.array_equal(plain.report.weights, fitted(AFL(epsilon=math.inf))[0].report.weights)
    configured = AFL.configure(epsilon="inf")
    assert configured == AFL() == AFL.configure(epsilon=0) == AFL.configure(epsilon=math.inf)
    with pytest.raises(UsageError, match="afl.rho"):
        AFL.configure(rho="inf")


@pytest.mark.parametrize("secure", [False, True])
def test_the_total_has_noise_of_the_promised_spread_once(secure, monkeypatch):
    """With masks the clients' shares add up to the same variance."""
    seen = []
    monkeypatch.setattr(
        "fedlab_nb.methods.afl.solve_classifier_weights",
        lambda total, *a, **k: (seen.append(total), solve_classifier_weights(total, *a, **k))[1],
    )
    for seed in range(3):
        ctx = context()
        ctx.seed = seed
        list(AFL(features="relu", size=100, epsilon=1.0, secure=secure).run(ctx))
    noise = torch.cat(
        [torch.triu((a - b).moments).flatten() for a, b in zip(seen[1:], seen, strict=False)]
    )
    noise = noise[noise != 0] / 2**0.5
    assert noise.std().item() == pytest.approx(5.276, rel=0.03)


# ------------------------------------------------------------------------------------------------ what leaks
def test_the_only_image_of_a_class_at_a_client_is_in_its_class_sum():
    model, ctx = fitted(AFL())
    counts = model.report.classes[:, -1].round()
    checked = 0
    for k, c in np.argwhere(counts == 1):
        x, y = ctx.private.train(int(k))
        image = x[y == int(c)].flatten()
        np.testing.assert_allclose(model.report.classes[k, :-1, c], image, atol=1e-12)
        checked += 1
    assert checked > 0


# ------------------------------------------------------------------------------------------------------------ test sums
# AFL's algebra: pooled ridge regression for every partition, the paper's two forms, ridges that go again, ends.


def samples(n=60, features=5, classes=3, seed=0):
    stream = torch.Generator().manual_seed(seed)
    x = torch.randn(n, features, generator=stream, dtype=EXACT)
    return x, torch.randint(classes, (n,), generator=stream)


def parts(x, y, sizes, gamma=0.0, classes=3):
    return [
        RidgeSums.measure(a, b, classes).copy_with_ridge(gamma)
        for a, b in zip(x.split(sizes), y.split(sizes), strict=True)
    ]


def added(sums):
    return sum(sums[1:], sums[0])


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=6),
    st.floats(0.0, 5.0),
    st.floats(0.01, 5.0),
    st.integers(0, 99),
)
@settings(max_examples=40, deadline=None)
def test_any_split_is_ridge_regression_on_all_samples(sizes, gamma, rho, seed):
    """Scikit-learn's, its intercept as the last of the weights (which is shrunk as the others are)."""
    x, y = samples(sum(sizes), seed=seed)
    weights = solve_classifier_weights(added(parts(x, y, sizes, gamma)), len(sizes), gamma, rho)
    rows = np.c_[x, np.ones(len(x))]
    expected = (
        Ridge(alpha=rho, fit_intercept=False, solver="svd").fit(rows, np.eye(3)[y.numpy()]).coef_.T
    )
    np.testing.assert_allclose(weights, expected, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(compute_linear_scores(x, weights), rows @ weights.numpy(), atol=1e-9)


def test_absolute_aggregation_pair_by_pair_is_the_sum():
    """The paper's form of the weights of two clients, and then of a third, by explicit inverses."""
    x, y = samples()
    sums = parts(x, y, [7, 20, 33], gamma=1.0)
    local = [torch.linalg.inv(s.moments) @ s.classes for s in sums]
    a, w = sums[0].moments, local[0]
    eye = torch.eye(6, dtype=EXACT)
    for s, w2 in zip(sums[1:], local[1:], strict=True):
        r1, r2, both = (
            torch.linalg.inv(a),
            torch.linalg.inv(s.moments),
            torch.linalg.inv(a + s.moments),
        )
        first = eye - r1 @ s.moments + r1 @ s.moments @ both @ s.moments
        second = eye - r2 @ a + r2 @ a @ both @ a
        a, w = a + s.moments, first @ w + second @ w2
    torch.testing.assert_close(
        w, solve_classifier_weights(added(sums), 3, 0.0, 0.0), rtol=1e-9, atol=1e-11
    )
    cleaned = torch.linalg.inv(a - 3 * eye + 0.01 * eye) @ a @ w
    torch.testing.assert_close(
        cleaned, solve_classifier_weights(added(sums), 3, 1.0, 0.01), rtol=1e-9, atol=1e-11
    )


def test_fewer_samples_than_features_and_features_that_are_always_0():
    x, y = samples(4)
    x[:, 2] = 0
    weights = solve_classifier_weights(added(parts(x, y, [3, 1], 1.0)), 2, 1.0, 0.0)
    rows = torch.cat([x, torch.ones(4, 1, dtype=EXACT)], 1)
    smallest = torch.linalg.lstsq(rows, torch.eye(3, dtype=EXACT)[y], driver="gelsd").solution
    torch.testing.assert_close(weights, smallest, rtol=1e-6, atol=1e-8)
    assert weights[2].abs().max() < 1e-12


@given(st.integers(1, 30), st.integers(0, 10_000), st.floats(0.01, 100))
@settings(max_examples=40, deadline=None)
def test_one_sample_moves_the_sums_by_at_most_the_sensitivity(n, seed, scale):
    x, y = samples(n, seed=seed)
    x = x * scale
    sums = RidgeSums.measure(x, y, 3, has_unit_rows=True)
    without_one = RidgeSums.measure(x[1:], y[1:], 3, has_unit_rows=True)
    change = sums - without_one
    class_square = change.classes.square().sum()
    sent_square = torch.triu(change.moments).square().sum()
    assert (sent_square + class_square).sqrt() <= SENSITIVITY + 1e-9
    length = (change.moments.square().sum() + class_square).sqrt()
    assert length == pytest.approx(SENSITIVITY, rel=1e-9)


def test_noise_is_symmetric_has_its_spread_and_goes_to_nothing():
    x, y = samples(60, features=80)
    sums = RidgeSums.measure(x, y, 3, has_unit_rows=True)
    noisy = sums.copy_with_noise(2.0, torch.Generator().manual_seed(0))
    noise = noisy.moments - sums.moments
    torch.testing.assert_close(noise, noise.T, rtol=0, atol=1e-12)
    assert torch.triu(noise)[torch.triu(noise) != 0].std().item() == pytest.approx(2, rel=0.05)
    assert (noisy.classes - sums.classes).std().item() == pytest.approx(2, rel=0.15)
    plain = solve_classifier_weights(sums, 1, 0.0, 0.1)
    faint = solve_classifier_weights(
        sums.copy_with_noise(1e-12, torch.Generator().manual_seed(0)), 1, 0.0, 0.1, sigma=1e-12
    )
    torch.testing.assert_close(faint, plain, rtol=0, atol=1e-9)
    noisy = sums.copy_with_noise(50.0, torch.Generator().manual_seed(0))
    loud = solve_classifier_weights(noisy, 1, 0.0, 0.1, sigma=50.0)
    assert loud.isfinite().all()  # though the moments have negative eigenvalues
    values, vectors = np.linalg.eigh(noisy.moments.numpy())
    assert values.min() < 0
    whole = (
        vectors @ np.diag(np.maximum(values, 0) + 0.1 + 50 * 81**0.5) @ vectors.T
    )  # the ridge grows by σ√d
    np.testing.assert_allclose(
        loud, np.linalg.solve(whole, noisy.classes.numpy()), rtol=1e-9, atol=1e-12
    )
