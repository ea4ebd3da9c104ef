"""Gaussian heads: the pooled classifier for every partition, bytes, absent classes, the report; and their algebra."""

import functools

import byte_formulas
import method_runs
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import NearestCentroid

from fedlab_nb import run
from fedlab_nb.comm import count_payload_bytes, serialise_payload
from fedlab_nb.data import federate
from fedlab_nb.methods.gauss import (
    BY_CLASS,
    HEADS,
    MOMENTS,
    Gauss,
    make_class_scorer,
    measure_class_sums,
    pack_class_sums,
    unpack_class_sums,
)
from fedlab_nb.studies.experiment import exhaust_generator

EXACT = torch.float64
ORDER = ("means", "nb", "lda", "qda")


context = functools.partial(
    method_runs.make_context, clients=4, alpha=0.1, epochs=1, dtype=EXACT, holdout=0.0
)


def draw_images():
    return torch.rand(40, 1, 8, 8, generator=torch.Generator().manual_seed(0), dtype=EXACT)


@pytest.mark.parametrize("head", HEADS)
def test_every_partition_gives_the_pooled_classifier(head):
    """The result is therefore the same for every skew, number of clients and seed."""
    data, x = federate("digits", alpha=1, clients=2, seed=0).dataset, draw_images()
    pooled = measure_class_sums(data.x_train.to(EXACT).flatten(1), data.y_train, 10, HEADS[head])
    expected = make_class_scorer(pooled, head, 0.1)(x.flatten(1))
    for alpha, clients, seed in ((0.05, 7, 3), (0.1, 1, 1), (100, 20, 0)):
        model = exhaust_generator(
            Gauss(head=head, shrinkage=0.1).run(context(clients=clients, alpha=alpha, seed=seed))
        )
        torch.testing.assert_close(model.logits(x), expected, rtol=1e-8, atol=1e-7)
        assert torch.equal(model.features(x), x.flatten(1))


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("dtype", [torch.float32, EXACT])
def test_bytes_follow_the_formula(head, dtype):
    ctx = context(dtype=dtype)
    exhaust_generator(Gauss(head=head).run(ctx))
    held = [len(ctx.private.train(k)[1].unique()) for k in range(4)]
    assert min(held) < 10
    expected = {k: byte_formulas.count_gauss_bytes(64, h, 10, head) for k, h in enumerate(held)}
    if dtype == EXACT:  # twice the bytes, but the ten counts stay int32
        expected = {k: 2 * count - 40 for k, count in expected.items()}
    assert {k: up for k, (up, down) in ctx.link.ledger.by_client().items()} == expected
    assert ctx.link.ledger.down == 0


@pytest.mark.parametrize("head", HEADS)
def test_the_report_holds_the_statistics_that_the_server_has(head):
    ctx = context()
    report = exhaust_generator(Gauss(head=head).run(ctx)).report
    x, y = ctx.private.train(1)
    assert report.counts[1].tolist() == torch.bincount(y, minlength=10).tolist()
    c = int(y[0])
    np.testing.assert_allclose(report.client_means[1, c], x[y == c].mean(0).flatten(), atol=1e-6)
    x_of_all, y_of_all = (
        torch.cat(part) for part in zip(*(ctx.private.train(k) for k in range(4)), strict=True)
    )
    class_rows = x_of_all[y_of_all == 3].flatten(1)
    np.testing.assert_allclose(report.means[3], class_rows.mean(0), atol=1e-6)
    if head in ("nb", "qda"):
        np.testing.assert_allclose(report.deviations[3], class_rows.std(0, correction=0), atol=1e-6)
    if head == "fedcgs":
        np.testing.assert_allclose(report.covariances[0], x_of_all.flatten(1).T.cov(), atol=1e-6)
    assert (report.deviations is None) == (head == "means")
    assert (report.covariances is None) == (head in ("means", "nb"))


# ------------------------------------------------------------------------------------------------ claims over seeds
@pytest.mark.slow
@pytest.mark.parametrize("features", ["pixels", "relu"])
@pytest.mark.parametrize("seed", [0, 4, 5, 7, 100, 103, 107])
def test_a_richer_model_of_a_class_is_better_and_all_are_far_above_the_ensemble(seed, features):
    frozen = {"gauss.features": features, "alpha": 0.1, "seed": seed}
    accuracies = [run("gauss", **frozen, **{"gauss.head": head}).accuracy for head in ORDER]
    assert accuracies == sorted(accuracies) and len(set(accuracies)) == 4
    ensemble = run("ensemble", alpha=0.1, seed=seed, rule="probabilities").accuracy
    margin = 0.15 if seed == 103 else 0.20
    assert accuracies[0] >= ensemble + margin


# ------------------------------------------------------------------------------------------------ class statistics
# Sums over clients are the pooled ones for every partition; their messages; their moments.


def draw_samples(n=60, d=5, classes=4, seed=0):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(classes, (n,), generator=g)
    return torch.randn(n, d, generator=g, dtype=EXACT) * (1 + y[:, None]) + y[:, None], y


def assert_sums_close(actual, expected, atol=1e-9):
    assert actual.kind == expected.kind
    for name in ("counts", "sums", "second"):
        torch.testing.assert_close(
            getattr(actual, name), getattr(expected, name), rtol=0, atol=atol
        )


@pytest.mark.parametrize("kind", MOMENTS)
@settings(max_examples=25, deadline=None)
@given(st.integers(1, 7), st.integers(0, 10**6))
def test_the_sum_over_clients_is_the_pooled_sum_for_any_partition(kind, clients, seed):
    """After a trip over the link, also with clients that lack a class or have no sample or a single one."""
    x, y = draw_samples()
    owner = torch.randint(clients, (len(y),), generator=torch.Generator().manual_seed(seed))
    messages = [
        pack_class_sums(measure_class_sums(x[owner == k], y[owner == k], 4, kind), EXACT)
        for k in range(clients)
    ]
    total, *summands = [unpack_class_sums(message, kind) for message in messages]
    for summand in summands:
        total = total + summand
    assert_sums_close(total, measure_class_sums(x, y, 4, kind))


def test_moments_equal_numpys():
    x, y = draw_samples(200)
    full, pooled, diagonal = (
        measure_class_sums(x, y, 4, kind) for kind in ("full", "pooled", "diagonal")
    )
    for c in range(4):
        rows = x[y == c].numpy()
        np.testing.assert_allclose(full.means[c], rows.mean(0), atol=1e-12)
        np.testing.assert_allclose(
            full.compute_class_covariances()[c], np.cov(rows.T, ddof=0), atol=1e-11
        )
        np.testing.assert_allclose(diagonal.compute_class_variances()[c], rows.var(0), atol=1e-11)
        assert float(full.log_priors[c]) == pytest.approx(np.log(len(rows) / 200))
    centred = (x - pooled.means[y]).numpy()
    np.testing.assert_allclose(
        pooled.compute_within_covariance(), centred.T @ centred / (200 - 4), atol=1e-11
    )
    np.testing.assert_allclose(pooled.compute_total_covariance(), np.cov(x.numpy().T), atol=1e-11)


def test_moments_of_a_class_without_samples_and_of_a_single_sample():
    x, y = torch.tensor([[1.0, 2.0], [3.0, 5.0], [4.0, 4.0]], dtype=EXACT), torch.tensor([0, 2, 2])
    for kind in MOMENTS:
        sums = measure_class_sums(x, y, 4, kind)
        assert sums.counts.tolist() == [1, 0, 2, 0]
        assert sums.log_priors[1] == sums.log_priors[3] == -torch.inf
        assert sums.means.tolist() == [[1, 2], [0, 0], [3.5, 4.5], [0, 0]]
    assert (
        measure_class_sums(x, y, 4, "full").compute_class_covariances()[[0, 1]].abs().max() < 1e-12
    )
    # Two classes have samples, so N - C is 3 - 2.
    expected = torch.tensor([[0.5, -0.5], [-0.5, 0.5]], dtype=EXACT)
    torch.testing.assert_close(
        measure_class_sums(x, y, 4, "pooled").compute_within_covariance(), expected
    )
    assert (
        measure_class_sums(x[:1], y[:1], 4, "pooled").compute_within_covariance().isfinite().all()
    )


@pytest.mark.parametrize("kind", MOMENTS)
def test_a_message_holds_the_clients_classes_alone_and_triangles_of_matrices(kind):
    x, y = draw_samples(30)
    y = torch.where(y == 2, 0, y)  # the client has no sample of class 2
    sums = measure_class_sums(x, y, 4, kind)
    message = pack_class_sums(sums, torch.float32)
    numbers = {"none": 0, "diagonal": 3 * 5, "pooled": 15, "full": 3 * 15}[kind]
    assert (
        count_payload_bytes(message) == len(serialise_payload(message)) == 4 * (4 + 3 * 5 + numbers)
    )
    assert_sums_close(unpack_class_sums(message, kind), sums, atol=1e-3)
    restored = unpack_class_sums(pack_class_sums(sums, EXACT), kind)
    assert_sums_close(restored, sums, atol=0 if kind in BY_CLASS else 1e-12)


# -------------------------------------------------------------------------------------------------- Gaussian heads
# Against scikit-learn's classifiers, against densities, and in extreme cases.


def make_head(name, x, y, shrinkage=0.0, classes=4):
    return make_class_scorer(measure_class_sums(x, y, classes, HEADS[name]), name, shrinkage)


def test_lda_equals_scikit_learns():
    x, y = draw_samples(200)
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(x.numpy(), y.numpy())
    ours = make_head("lda", x, y)
    # Their covariance divides by N, ours by N - C.
    torch.testing.assert_close(
        ours.slopes * 200 / (200 - 4), torch.tensor(theirs.coef_.T), rtol=1e-8, atol=1e-9
    )
    new = draw_samples(500, seed=1)[0]
    log_priors = measure_class_sums(x, y, 4, "pooled").log_priors
    without_priors = new @ ours.slopes + ours.constants - log_priors
    scores = (without_priors * 200 / (200 - 4)).numpy() + np.log(theirs.priors_)
    np.testing.assert_allclose(scores, theirs.decision_function(new.numpy()), atol=1e-7)


def test_naive_bayes_nearest_mean_and_qda_equal_scikit_learns():
    (x, y), (new, _) = draw_samples(200), draw_samples(500, seed=1)
    nb = GaussianNB(var_smoothing=0).fit(x.numpy(), y.numpy())
    np.testing.assert_allclose(
        make_head("nb", x, y)(new).softmax(1), nb.predict_proba(new.numpy()), atol=1e-9
    )
    nearest = NearestCentroid().fit(x.numpy(), y.numpy())
    np.testing.assert_array_equal(
        make_head("means", x, y)(new).argmax(1), nearest.predict(new.numpy())
    )
    qda = QuadraticDiscriminantAnalysis(store_covariance=True).fit(x.numpy(), y.numpy())
    sums = measure_class_sums(x, y, 4, "full")
    # Theirs may divide by n_c - 1, hence the traces.
    for ours, theirs in zip(sums.compute_class_covariances(), qda.covariance_, strict=True):
        np.testing.assert_allclose(ours / ours.trace(), theirs / theirs.trace(), atol=1e-10)
    density = torch.distributions.MultivariateNormal(sums.means, sums.compute_class_covariances())
    log_posterior = density.log_prob(new[:, None]) + sums.log_priors
    torch.testing.assert_close(
        make_head("qda", x, y)(new).softmax(1), log_posterior.softmax(1), rtol=0, atol=1e-9
    )


def test_shrinkage_mixes_the_covariance_with_its_mean_variance():
    x, y = draw_samples(200)
    sums = measure_class_sums(x, y, 4, "pooled")
    s = 0.3
    within = sums.compute_within_covariance()
    mixed = (1 - s) * within + s * within.diagonal().mean() * torch.eye(5, dtype=EXACT)
    slopes = torch.linalg.solve(mixed, sums.means.T)
    torch.testing.assert_close(make_head("lda", x, y, s).slopes, slopes, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", HEADS)
def test_a_class_without_samples_is_never_predicted_and_no_score_is_nan(name):
    x, y = draw_samples(60)
    for labels in (
        torch.where(y == 2, 0, y),
        torch.zeros(60, dtype=torch.long),
        torch.arange(60).clamp(max=3),
    ):
        scores = make_head(name, x, labels, 0.1)(x)
        is_absent = torch.bincount(labels, minlength=4) == 0
        assert (scores[:, is_absent] == -torch.inf).all() and scores[:, ~is_absent].isfinite().all()


@pytest.mark.parametrize("name", HEADS)
def test_constant_features_leave_all_scores_finite(name):
    """Some are constant within a class, some everywhere, and there are more of them than samples."""
    x, y = draw_samples(60)
    wide = torch.cat([x, torch.full((60, 70), 0.5, dtype=EXACT), (y == 1).double()[:, None]], 1)
    for s in (0.0, 0.1):
        scores = make_head(name, wide, y, s)(wide)
        assert scores.isfinite().all()
    assert make_head(name, torch.ones(60, 3), y)(torch.ones(5, 3)).isfinite().all()
