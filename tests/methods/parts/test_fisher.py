"""Heads trained on draws from Gaussians: the Fisher subspace against scipy's, targets and loss, known best heads."""

import functools

import method_runs
import numpy as np
import pytest
import scipy.linalg
import scipy.stats
import torch
from scipy.special import log_softmax, softmax

from fedlab_nb.errors import UsageError
from fedlab_nb.methods.gauss import Gauss
from fedlab_nb.methods.parts import fisher
from fedlab_nb.methods.parts.fisher import Cosine, LowRank, find_fisher_subspace, train_fisher_head
from fedlab_nb.studies.experiment import exhaust_generator

EXACT = torch.float64
context = functools.partial(
    method_runs.make_context, clients=4, alpha=0.1, epochs=1, dtype=EXACT, holdout=0.0
)


def draw_gaussians(classes=4, d=5, seed=0):
    g = torch.Generator().manual_seed(seed)
    root = torch.randn(classes, d, d, generator=g, dtype=EXACT)
    shares = torch.rand(classes, generator=g, dtype=EXACT) + 0.2
    return (
        3 * torch.randn(classes, d, generator=g, dtype=EXACT),
        root @ root.mT + torch.eye(d),
        shares / shares.sum(),
    )


def test_the_subspace_solves_the_generalised_eigenproblem(monkeypatch):
    monkeypatch.setattr(fisher, "ENERGY", 1.0)
    means, covariances, shares = draw_gaussians()
    middle, p = find_fisher_subspace(means, covariances, shares)
    means, covariances, shares, middle, p = (
        part.numpy() for part in (means, covariances, shares, middle, p)
    )
    within = np.tensordot(shares, covariances, 1)
    between = sum(s * np.outer(m - middle, m - middle) for s, m in zip(shares, means, strict=True))
    values, vectors = scipy.linalg.eigh(between, within)
    assert p.shape == (5, 3)  # C - 1
    np.testing.assert_allclose(p.T @ within @ p, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(np.diag(p.T @ between @ p), values[::-1][:3], atol=1e-8)
    np.testing.assert_allclose(abs(np.diag(p.T @ within @ vectors[:, ::-1][:, :3])), 1, atol=1e-8)


def test_a_low_rank_head_starts_at_lda_and_a_cosine_head_at_the_means():
    z = torch.randn(6, 3, dtype=EXACT, generator=torch.Generator().manual_seed(0))
    slopes, constants = torch.ones(3, 2, dtype=EXACT), torch.tensor([0.5, -0.5], dtype=EXACT)
    assert torch.equal(LowRank(slopes, constants, torch.Generator())(z), z @ slopes + constants)
    by_hand = [
        [fisher.SCALE * float(a @ b) / float(a.norm() * b.norm()) for b in slopes.T] for a in z
    ]
    np.testing.assert_allclose(Cosine(slopes.T)(z).detach(), by_hand, atol=1e-12)


@pytest.mark.parametrize("kind", fisher.TRAINED)
def test_draws_targets_and_loss_equal_those_in_numpy_and_scipy(kind, monkeypatch):
    """The draws, the targets and the first loss for five classes, of which one has no sample."""
    recorded = {}

    def record_and_stop(head, x, targets, recipe, loss, stream):
        recorded.update(head=head, z=x, targets=targets, loss=loss(targets, head(x)))
        return iter(())

    monkeypatch.setattr(fisher, "distil_student_in_place", record_and_stop)
    means, covariances, _ = draw_gaussians(classes=5)
    counts, draws = torch.tensor([30.0, 0, 5, 20, 9], dtype=EXACT), 6
    exhaust_generator(
        train_fisher_head(
            context(), kind, means, covariances, counts, draws_per_class=draws, epochs=1, lr=0.01
        )
    )
    present = [0, 2, 3, 4]
    centre, p = (
        part.numpy()
        for part in find_fisher_subspace(
            means[present], covariances[present], counts[present] / counts.sum()
        )
    )
    centres, spreads = (means[present].numpy() - centre) @ p, p.T @ covariances[present].numpy() @ p
    noise = torch.randn(
        4, draws, p.shape[1], generator=context().generator("gauss", kind), dtype=EXACT
    ).numpy()
    z = np.concatenate([
        c + fisher.TAU * e @ np.linalg.cholesky(s).T for c, e, s in zip(centres, noise, spreads, strict=True)
    ])  # fmt: skip
    np.testing.assert_allclose(recorded["z"].numpy(), z, atol=1e-9)
    labels, priors = np.repeat(range(4), draws), np.log(counts[present].numpy() / 64)
    if kind == "fishermix":
        lengths = np.linalg.norm(z, axis=1)[:, None] * np.linalg.norm(centres, axis=1)
        targets = np.eye(4)[labels]
        logits = fisher.SCALE * (z @ centres.T / lengths - fisher.MARGIN * targets)
    else:
        density = scipy.stats.multivariate_normal

        def compute_log_posteriors(covariances):
            log_densities = [
                density(c, s).logpdf(z) for c, s in zip(centres, covariances, strict=True)
            ]
            return np.stack(log_densities, 1) + priors

        lda = compute_log_posteriors([np.eye(p.shape[1])] * 4)
        qda = compute_log_posteriors(spreads)
        mixture = (1 - fisher.SHARE) * softmax(lda, axis=1) + fisher.SHARE * softmax(qda, axis=1)
        targets = (mixture + np.eye(4)[labels]) / 2
        # LDA's scores without the terms that all classes share.
        scores = z @ centres.T - (centres**2).sum(1) / 2 + priors
        logits = (scores - scores.mean()) / scores.std(ddof=1)
    np.testing.assert_allclose(recorded["targets"].numpy(), targets, atol=1e-9)
    np.testing.assert_allclose(
        recorded["loss"].detach().numpy(),
        -(targets * log_softmax(logits, axis=1)).sum(1),
        atol=1e-9,
    )


@pytest.mark.parametrize("kind", fisher.TRAINED)
def test_distant_classes_are_separated_and_a_class_without_samples_is_never_predicted(
    kind,
):
    means = torch.zeros(4, 3, dtype=EXACT)
    means[:3] = 12 * torch.eye(3, dtype=EXACT)
    spread = torch.eye(3, dtype=EXACT).expand(4, 3, 3)
    counts = torch.tensor([30.0, 20, 10, 0], dtype=EXACT)
    head = exhaust_generator(
        train_fisher_head(
            context(), kind, means, spread, counts, draws_per_class=50, epochs=3, lr=0.01
        )
    )
    assert head(means[:3]).argmax(1).tolist() == [0, 1, 2]
    assert bool((head(means)[:, 3] == -torch.inf).all())
    with pytest.raises(UsageError, match="only one"):
        exhaust_generator(
            train_fisher_head(
                context(),
                kind,
                means,
                spread,
                counts * (counts == 30),
                draws_per_class=5,
                epochs=1,
                lr=0.01,
            )
        )


@pytest.mark.parametrize("kind", fisher.TRAINED)
def test_trained_heads_are_the_same_for_every_partition(kind):
    x = torch.rand(9, 1, 8, 8, dtype=EXACT, generator=torch.Generator().manual_seed(0))
    method = Gauss(head=kind, draws=20, epochs=2)
    skewed = exhaust_generator(method.run(context(alpha=0.05, clients=7)))
    even = exhaust_generator(method.run(context(alpha=100, clients=3)))
    torch.testing.assert_close(skewed.logits(x), even.logits(x), rtol=1e-5, atol=1e-5)
