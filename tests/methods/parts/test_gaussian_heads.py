"""Gaussian heads against scikit-learn's, against densities, and at their limits."""

import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import NearestCentroid

from fedlab_nb.methods.parts.gaussian_heads import HEADS, class_sums, scores

from .test_class_statistics import EXACT, samples


def head(name, x, y, shrinkage=0.0, classes=4):
    return scores(class_sums(x, y, classes, HEADS[name]), name, shrinkage)


def test_ldas_direction_is_scikit_learns():
    x, y = samples(200)
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(x.numpy(), y.numpy())
    ours = head("lda", x, y)
    # Theirs divides by N, ours by N - C.
    torch.testing.assert_close(ours.slopes * 200 / (200 - 4), torch.tensor(theirs.coef_.T), rtol=1e-8, atol=1e-9)
    new = samples(500, seed=1)[0]
    scaled = (new @ ours.slopes + ours.constants - class_sums(x, y, 4, "pooled").log_priors) * 200 / (200 - 4)
    np.testing.assert_allclose(
        scaled.numpy() + np.log(theirs.priors_), theirs.decision_function(new.numpy()), atol=1e-7
    )


def test_nb_and_qda_and_nearest_mean_are_scikit_learns():
    (x, y), (new, _) = samples(200), samples(500, seed=1)
    nb = GaussianNB(var_smoothing=0).fit(x.numpy(), y.numpy())
    np.testing.assert_allclose(head("nb", x, y)(new).softmax(1), nb.predict_proba(new.numpy()), atol=1e-9)
    nearest = NearestCentroid().fit(x.numpy(), y.numpy())
    np.testing.assert_array_equal(head("means", x, y)(new).argmax(1), nearest.predict(new.numpy()))
    qda = QuadraticDiscriminantAnalysis(store_covariance=True).fit(x.numpy(), y.numpy())
    sums = class_sums(x, y, 4, "full")
    for ours, theirs in zip(sums.covariances(), qda.covariance_, strict=True):  # theirs may divide by n_c - 1
        np.testing.assert_allclose(ours / ours.trace(), theirs / theirs.trace(), atol=1e-10)
    density = torch.distributions.MultivariateNormal(sums.means, sums.covariances())
    log = density.log_prob(new[:, None]) + sums.log_priors
    torch.testing.assert_close(head("qda", x, y)(new).softmax(1), log.softmax(1), rtol=0, atol=1e-9)


def test_shrinkage_is_that_of_the_covariance():
    x, y = samples(200)
    sums, s = class_sums(x, y, 4, "pooled"), 0.3
    within = sums.within()
    mixed = (1 - s) * within + s * within.diagonal().mean() * torch.eye(5, dtype=EXACT)
    slopes = torch.linalg.solve(mixed, sums.means.T)
    torch.testing.assert_close(head("lda", x, y, s).slopes, slopes, rtol=1e-9, atol=1e-10)


def test_two_classes_lda_points_where_least_squares_does():
    """Balanced or not (Fisher 1936): up to scale, with an intercept."""
    for n in (100, 140):
        g = torch.Generator().manual_seed(n)
        y = (torch.arange(200) >= n).long()
        x = torch.randn(200, 6, generator=g, dtype=EXACT) @ torch.randn(6, 6, generator=g, dtype=EXACT)
        x = x + y[:, None] * torch.rand(6, generator=g, dtype=EXACT)
        slopes = head("lda", x, y, classes=2).slopes
        augmented = torch.cat([x, torch.ones(200, 1, dtype=EXACT)], 1)
        squares = torch.linalg.lstsq(augmented, torch.nn.functional.one_hot(y).double()).solution[:-1]
        ours, theirs = slopes[:, 1] - slopes[:, 0], squares[:, 1] - squares[:, 0]
        assert float(torch.cosine_similarity(ours, theirs, dim=0)) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("name", HEADS)
def test_a_class_of_nobody_is_never_named_and_nothing_is_nan(name):
    x, y = samples(60)
    for labels in (torch.where(y == 2, 0, y), torch.zeros(60, dtype=torch.long), torch.arange(60).clamp(max=3)):
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
