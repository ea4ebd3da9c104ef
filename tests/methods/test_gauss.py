"""Gaussian heads: the whole method is its pooled form, whatever the partition; bytes; what nobody holds; the report."""

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
    method_runs.context, clients=4, alpha=0.1, epochs=1, dtype=EXACT, holdout=0.0
)


def digits():
    return torch.rand(40, 1, 8, 8, generator=torch.Generator().manual_seed(0), dtype=EXACT)


@pytest.mark.parametrize("head", HEADS)
def test_it_is_the_pooled_classifier_for_every_partition(head):
    """And so the same for every skew, number of clients and seed."""
    data, x = federate("digits", alpha=1, clients=2, seed=0).dataset, digits()
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
def test_bytes(head, dtype):
    ctx = context(dtype=dtype)
    exhaust_generator(Gauss(head=head).run(ctx))
    held = [len(ctx.private.train(k)[1].unique()) for k in range(4)]
    assert min(held) < 10
    expected = {k: byte_formulas.gauss_bytes(64, h, 10, head) for k, h in enumerate(held)}
    if dtype == EXACT:  # counts are int32 all the same
        expected = {k: 2 * count - 40 for k, count in expected.items()}
    assert {k: up for k, (up, down) in ctx.link.ledger.by_client().items()} == expected
    assert ctx.link.ledger.down == 0


@pytest.mark.parametrize("head", HEADS)
def test_the_report_is_what_the_server_has(head):
    ctx = context()
    report = exhaust_generator(Gauss(head=head).run(ctx)).report
    x, y = ctx.private.train(1)
    assert report.counts[1].tolist() == torch.bincount(y, minlength=10).tolist()
    c = int(y[0])
    np.testing.assert_allclose(report.client_means[1, c], x[y == c].mean(0).flatten(), atol=1e-6)
    everyone, labels = (
        torch.cat(part) for part in zip(*(ctx.private.train(k) for k in range(4)), strict=True)
    )
    rows = everyone[labels == 3].flatten(1)
    np.testing.assert_allclose(report.means[3], rows.mean(0), atol=1e-6)
    if head in ("nb", "qda"):
        np.testing.assert_allclose(report.deviations[3], rows.std(0, correction=0), atol=1e-6)
    if head == "fedcgs":
        np.testing.assert_allclose(report.covariances[0], everyone.flatten(1).T.cov(), atol=1e-6)
    assert (report.deviations is None) == (head == "means")
    assert (report.covariances is None) == (head in ("means", "nb"))


# ------------------------------------------------------------------------------------------------ claims over seeds
@pytest.mark.slow
@pytest.mark.parametrize("features", ["pixels", "relu"])
@pytest.mark.parametrize("seed", [0, 4, 5, 7, 100, 103, 107])
def test_a_finer_picture_of_a_class_is_better_and_all_are_far_above_the_ensemble(seed, features):
    frozen = {"gauss.features": features, "alpha": 0.1, "seed": seed}
    accuracies = [run("gauss", **frozen, **{"gauss.head": head}).accuracy for head in ORDER]
    assert accuracies == sorted(accuracies) and len(set(accuracies)) == 4
    ahead = 0.15 if seed == 103 else 0.20  # the docstring says so
    assert (
        accuracies[0]
        >= run("ensemble", alpha=0.1, seed=seed, rule="probabilities").accuracy + ahead
    )


# ------------------------------------------------------------------------------------------------ test class statistics
# Class statistics: sums over clients are the pooled ones, whoever holds what; their way over the link; moments.


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
    sent = [
        pack_class_sums(measure_class_sums(x[owner == k], y[owner == k], 4, kind), EXACT)
        for k in range(clients)
    ]
    whole, *others = [unpack_class_sums(one, kind) for one in sent]
    for other in others:
        whole = whole + other
    close(whole, measure_class_sums(x, y, 4, kind))


def test_moments_are_numpys():
    x, y = samples(200)
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


def test_a_class_of_nobody_and_a_class_of_one():
    x, y = torch.tensor([[1.0, 2.0], [3.0, 5.0], [4.0, 4.0]], dtype=EXACT), torch.tensor([0, 2, 2])
    for kind in MOMENTS:
        sums = measure_class_sums(x, y, 4, kind)
        assert (
            sums.counts.tolist() == [1, 0, 2, 0]
            and sums.log_priors[1] == sums.log_priors[3] == -torch.inf
        )
        assert sums.means.tolist() == [[1, 2], [0, 0], [3.5, 4.5], [0, 0]]
    assert (
        measure_class_sums(x, y, 4, "full").compute_class_covariances()[[0, 1]].abs().max() < 1e-12
    )
    # Two classes exist: N - C is 3 - 2.
    expected = torch.tensor([[0.5, -0.5], [-0.5, 0.5]], dtype=EXACT)
    torch.testing.assert_close(
        measure_class_sums(x, y, 4, "pooled").compute_within_covariance(), expected
    )
    assert (
        measure_class_sums(x[:1], y[:1], 4, "pooled").compute_within_covariance().isfinite().all()
    )


@pytest.mark.parametrize("kind", MOMENTS)
def test_only_the_classes_that_are_held_travel_and_matrices_as_triangles(kind):
    x, y = samples(30)
    y = torch.where(y == 2, 0, y)
    own = measure_class_sums(x, y, 4, kind)
    sent = pack_class_sums(own, torch.float32)
    numbers = {"none": 0, "diagonal": 3 * 5, "pooled": 15, "full": 3 * 15}[kind]
    assert count_payload_bytes(sent) == len(serialise_payload(sent)) == 4 * (4 + 3 * 5 + numbers)
    close(unpack_class_sums(sent, kind), own, atol=1e-3)
    again = unpack_class_sums(pack_class_sums(own, EXACT), kind)
    close(again, own, atol=0 if kind in BY_CLASS else 1e-12)


# -------------------------------------------------------------------------------------------------- test gaussian heads
# Gaussian heads against scikit-learn's, against densities, and at their limits.


def head(name, x, y, shrinkage=0.0, classes=4):
    return make_class_scorer(measure_class_sums(x, y, classes, HEADS[name]), name, shrinkage)


def test_ldas_direction_is_scikit_learns():
    x, y = samples(200)
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(x.numpy(), y.numpy())
    ours = head("lda", x, y)
    # Theirs divides by N, ours by N - C.
    torch.testing.assert_close(
        ours.slopes * 200 / (200 - 4), torch.tensor(theirs.coef_.T), rtol=1e-8, atol=1e-9
    )
    new = samples(500, seed=1)[0]
    scaled = (
        (new @ ours.slopes + ours.constants - measure_class_sums(x, y, 4, "pooled").log_priors)
        * 200
        / (200 - 4)
    )
    np.testing.assert_allclose(
        scaled.numpy() + np.log(theirs.priors_), theirs.decision_function(new.numpy()), atol=1e-7
    )


def test_nb_and_qda_and_nearest_mean_are_scikit_learns():
    (x, y), (new, _) = samples(200), samples(500, seed=1)
    nb = GaussianNB(var_smoothing=0).fit(x.numpy(), y.numpy())
    np.testing.assert_allclose(
        head("nb", x, y)(new).softmax(1), nb.predict_proba(new.numpy()), atol=1e-9
    )
    nearest = NearestCentroid().fit(x.numpy(), y.numpy())
    np.testing.assert_array_equal(head("means", x, y)(new).argmax(1), nearest.predict(new.numpy()))
    qda = QuadraticDiscriminantAnalysis(store_covariance=True).fit(x.numpy(), y.numpy())
    sums = measure_class_sums(x, y, 4, "full")
    for ours, theirs in zip(
        sums.compute_class_covariances(), qda.covariance_, strict=True
    ):  # theirs may divide by n_c - 1
        np.testing.assert_allclose(ours / ours.trace(), theirs / theirs.trace(), atol=1e-10)
    density = torch.distributions.MultivariateNormal(sums.means, sums.compute_class_covariances())
    log = density.log_prob(new[:, None]) + sums.log_priors
    torch.testing.assert_close(head("qda", x, y)(new).softmax(1), log.softmax(1), rtol=0, atol=1e-9)


def test_shrinkage_is_that_of_the_covariance():
    x, y = samples(200)
    sums, s = measure_class_sums(x, y, 4, "pooled"), 0.3
    within = sums.compute_within_covariance()
    mixed = (1 - s) * within + s * within.diagonal().mean() * torch.eye(5, dtype=EXACT)
    slopes = torch.linalg.solve(mixed, sums.means.T)
    torch.testing.assert_close(head("lda", x, y, s).slopes, slopes, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", HEADS)
def test_a_class_of_nobody_is_never_named_and_nothing_is_nan(name):
    x, y = samples(60)
    for labels in (
        torch.where(y == 2, 0, y),
        torch.zeros(60, dtype=torch.long),
        torch.arange(60).clamp(max=3),
    ):
        scored = head(name, x, labels, 0.1)(x)
        gone = torch.bincount(labels, minlength=4) == 0
        assert (scored[:, gone] == -torch.inf).all() and scored[:, ~gone].isfinite().all()


@pytest.mark.parametrize("name", HEADS)
def test_features_that_never_change_do_no_harm(name):
    """Some are constant in a class, some everywhere, and there are more of them than samples."""
    x, y = samples(60)
    wide = torch.cat([x, torch.full((60, 70), 0.5, dtype=EXACT), (y == 1).double()[:, None]], 1)
    for s in (0.0, 0.1):
        scored = head(name, wide, y, s)(wide)
        assert scored.isfinite().all()
    assert head(name, torch.ones(60, 3), y)(torch.ones(5, 3)).isfinite().all()
