"""FedPFT: what a client sends, what the server draws, means alone without variance, bytes, the order against gauss."""

import byte_formulas
import numpy as np
import pytest
import torch

from fedlab_nb import run
from fedlab_nb.errors import UsageError
from fedlab_nb.methods.fedpft import COVARIANCES, FedPFT
from fedlab_nb.study.experiment import finished

from .test_gauss import EXACT, context, digits

QUICK = {"epochs": 3}


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize(("components", "smallest"), [(1, 1), (3, 4)])
def test_bytes(covariance, components, smallest):
    ctx = context(dtype=torch.float32)
    finished(FedPFT(components=components, covariance=covariance, smallest=smallest, **QUICK).run(ctx))
    for k, (up, down) in ctx.link.ledger.by_client().items():
        counts = torch.bincount(ctx.private.train(k)[1])
        sent = [min(components, n) for n in counts.tolist() if n >= smallest]
        assert (up, down) == (byte_formulas.fedpft_bytes(64, sent, 10, covariance), 0)


def test_one_diagonal_gaussian_is_two_numbers_a_feature():
    assert byte_formulas.fedpft_bytes(64, [1], 0, "diagonal") == 4 * (2 * 64 + 1)


def test_the_server_draws_as_many_as_there_are_of_each_class():
    ctx = context()
    method = FedPFT()
    frozen = lambda x: x.flatten(1)  # noqa: E731
    arrived = [method.mixtures(ctx, k, frozen) for k in range(4)]
    features, labels = method.draw(ctx, arrived)
    everyone = torch.cat([ctx.private.train(k)[1] for k in range(4)])
    assert torch.equal(labels.bincount(), everyone.bincount()) and features.dtype == EXACT
    for c in range(10):  # the drawn means are those of the class
        real = torch.cat([ctx.private.train(k)[0][ctx.private.train(k)[1] == c] for k in range(4)]).flatten(1)
        assert (features[labels == c].mean(0) - real.mean(0)).abs().max() < 0.15


def test_without_variance_only_the_means_count():
    """`none` is what a spread of zero would be: as many copies of each mean as it has samples."""
    ctx = context()
    method = FedPFT(covariance="none")
    arrived = [method.mixtures(ctx, k, lambda x: x.flatten(1)) for k in range(4)]
    features, labels = method.draw(ctx, arrived)
    at = 0
    for k in range(4):
        x, y = ctx.private.train(k)
        for c in y.unique().tolist():
            rows = x[y == c].flatten(1)
            expected = rows.mean(0).expand(len(rows), -1)
            torch.testing.assert_close(features[at : at + len(rows)], expected)
            at += len(rows)
    assert at == len(labels)
    for kind in ("spherical", "diagonal", "full"):  # all spreads set to zero
        other = FedPFT(covariance=kind)
        sent = [other.mixtures(ctx, k, lambda x: x.flatten(1)) for k in range(4)]
        for message in sent:
            for parts in message["mixtures"].values():
                parts["spread"].zero_()
        torch.testing.assert_close(other.draw(ctx, sent)[0], features)


def test_small_classes_are_left_out_and_too_small_ones_are_refused():
    ctx = context()
    report = finished(FedPFT(smallest=20, **QUICK).run(ctx)).report
    for k in range(4):
        counts = torch.bincount(ctx.private.train(k)[1], minlength=10)
        assert report.counts[k].tolist() == torch.where(counts >= 20, counts, 0).tolist()
    with pytest.raises(UsageError, match="smallest"):
        finished(FedPFT(smallest=10_000).run(context()))


def test_the_head_is_a_linear_one_and_learns():
    ctx = context()
    start = finished(FedPFT(lr=1e-6, epochs=1).run(ctx))
    x = digits()
    model = finished(FedPFT(epochs=20).run(context()))
    slopes = model.head.weight
    torch.testing.assert_close(model.logits(x), x.flatten(1) @ slopes.T + model.head.bias)
    assert model.parameters == 650 and start.head.weight.abs().max() < 1e-3 < slopes.abs().max()
    data = ctx.private._x, ctx.private._y
    assert model.accuracy(*data) > 0.85


def test_the_report_is_what_was_sent():
    ctx = context()
    report = finished(FedPFT(components=2, covariance="spherical", **QUICK).run(ctx)).report
    assert report.means.shape == report.spreads.shape == (len(report.owners), 64)
    first = (report.owners == 2) & (report.labels == report.labels[report.owners == 2][0])
    assert report.shares[first].sum() == pytest.approx(1, abs=1e-6)
    x, y = ctx.private.train(2)
    rows = x[y == int(report.labels[first][0])].flatten(1)
    np.testing.assert_allclose(report.shares[first] @ report.means[first], rows.mean(0), atol=1e-5)
    assert len(report.drawn) == len(report.drawn_labels) <= 500


# ------------------------------------------------------------------------------------------------ claims over seeds
@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 4, 5, 7, 100, 103])
def test_drawn_features_are_nearly_as_good_as_sums_and_far_above_the_ensemble(seed):
    setting = {"alpha": 0.1, "seed": seed}
    diagonal, full = (run("fedpft", covariance=kind, **setting).accuracy for kind in ("diagonal", "full"))
    assert run("gauss", **setting, **{"gauss.head": "qda"}).accuracy > full > diagonal
    assert diagonal >= run("ensemble", rule="probabilities", **setting).accuracy + 0.15
