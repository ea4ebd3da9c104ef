"""SLOT-Align: barycentre and transport against closed forms and SciPy's roots; what the methods send for it."""

import byte_formulas
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from method_runs import context
from scipy.linalg import sqrtm
from sklearn.covariance import LedoitWolf

from fedlab_nb.errors import UsageError
from fedlab_nb.methods.afl import AFL, solve_classifier_weights_without_client
from fedlab_nb.methods.fedpft import FedPFT
from fedlab_nb.methods.gauss import Gauss
from fedlab_nb.methods.parts.align import (
    FLOOR,
    FeatureMoments,
    compute_alignment_map,
    compute_barycentre,
    compute_transport_map,
    pool_moments,
)
from fedlab_nb.methods.parts.frozen import align_client_features, make_feature_map
from fedlab_nb.studies.experiment import exhaust_generator

EXACT = torch.float64


def rows(seed, n=40, d=4):
    """Samples with a covariance of their own."""
    stream = torch.Generator().manual_seed(seed)
    mix = torch.randn(d, d, generator=stream, dtype=EXACT)
    return torch.randn(n, d, generator=stream, dtype=EXACT) @ mix + torch.randn(
        d, generator=stream, dtype=EXACT
    )


@pytest.mark.parametrize(("n", "d"), [(2, 5), (6, 8), (40, 4), (300, 20)])
def test_shrunk_covariances_are_those_of_scikit_learn(n, d):
    x = rows(n, n, d)
    moments, expected = (
        FeatureMoments.measure_with_shrunk_covariance(x),
        LedoitWolf().fit(x.numpy()),
    )
    np.testing.assert_allclose(moments.covariance, expected.covariance_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(moments.mean, expected.location_, rtol=1e-9)


def test_a_run_with_shrunk_covariances_sends_them():
    """Each client's message has the triangle of scikit-learn's estimate on its own pixels."""
    ctx = context(clients=3, alpha=0.3, dtype=EXACT)
    sent, up = {}, ctx.link.up

    def record(k, payload, phase):
        if phase == "moments":
            sent[k] = payload["covariance"]
        return up(k, payload, phase=phase)

    ctx.link.up = record
    exhaust_generator(AFL(align=0.4, align_covariance="ledoit-wolf").run(ctx))
    for k, triangle in sent.items():
        estimate = LedoitWolf().fit(ctx.private.train(k)[0].flatten(1).numpy()).covariance_
        expected = estimate[np.triu_indices(64)]
        assert sorted(triangle.tolist()) == pytest.approx(sorted(expected), rel=1e-8, abs=1e-12)
    assert sorted(sent) == [0, 1, 2]


@given(st.lists(st.integers(5, 50), min_size=1, max_size=5), st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_the_barycentre_is_the_fixed_point_and_every_client_gets_there(sizes, seed):
    samples = [rows(100 * seed + k, n) for k, n in enumerate(sizes)]
    each = [FeatureMoments.measure(x) for x in samples]
    shares = torch.tensor(sizes, dtype=EXACT) / sum(sizes)
    middle = compute_barycentre(torch.stack([moments.covariance for moments in each]), shares)
    half = sqrtm(middle.numpy()).real
    roots = [sqrtm(half @ moments.covariance.numpy() @ half).real for moments in each]
    fixed = np.tensordot(shares.numpy(), np.stack(roots), 1)
    np.testing.assert_allclose(fixed, middle, atol=1e-7 * float(middle.norm()))
    common = FeatureMoments(pool_moments(each, shares).mean, middle)
    for x, moments in zip(samples, each, strict=True):
        matrix, shift = compute_alignment_map(moments, common, 1.0)
        aligned = FeatureMoments.measure(x @ matrix + shift)
        size = float(middle.norm()) + 1
        torch.testing.assert_close(aligned.mean, common.mean, rtol=0, atol=1e-9 * size)
        if float(torch.linalg.eigvalsh(moments.covariance)[0]) > FLOOR * float(
            moments.covariance.trace()
        ):
            torch.testing.assert_close(aligned.covariance, middle, rtol=0, atol=1e-9 * size)


def test_variances_that_commute_have_a_closed_form():
    """The barycentre's deviations are the mean of the clients', and A divides the one by the other."""
    deviations = torch.tensor([[1.0, 2.0, 0.5], [3.0, 1.0, 0.5]], dtype=EXACT)
    shares = torch.tensor([0.25, 0.75], dtype=EXACT)
    middle = compute_barycentre(torch.diag_embed(deviations.square()), shares)
    expected = shares @ deviations
    torch.testing.assert_close(middle, torch.diag(expected.square()), rtol=0, atol=1e-12)
    move_ = compute_transport_map(torch.diag(deviations[0].square()), middle)
    torch.testing.assert_close(move_, torch.diag(expected / deviations[0]), rtol=0, atol=1e-12)


def test_equal_covariances_give_a_translation_and_half_the_way_is_half_the_way():
    x = rows(0)
    moments = FeatureMoments.measure(x)
    shifted = FeatureMoments(moments.mean + 2, moments.covariance)
    both = compute_barycentre(
        torch.stack([moments.covariance] * 2), torch.tensor([0.3, 0.7], dtype=EXACT)
    )
    torch.testing.assert_close(both, moments.covariance)
    matrix, shift = compute_alignment_map(moments, shifted, 1.0)
    torch.testing.assert_close(x @ matrix + shift, x + 2)
    there, back = (
        FeatureMoments.measure(rows(1)),
        compute_alignment_map(moments, FeatureMoments.measure(rows(1)), 1.0),
    )
    half = compute_alignment_map(moments, there, 0.5)
    torch.testing.assert_close(x @ half[0] + half[1], (x + x @ back[0] + back[1]) / 2)


def test_pooled_moments_are_those_of_one_place():
    samples = [rows(k, n) for k, n in enumerate((5, 20, 11))]
    shares = torch.tensor([5, 20, 11], dtype=EXACT) / 36
    mine, whole = (
        pool_moments([FeatureMoments.measure(x) for x in samples], shares),
        FeatureMoments.measure(torch.cat(samples)),
    )
    torch.testing.assert_close(mine.mean, whole.mean)
    torch.testing.assert_close(mine.covariance, whole.covariance)


def test_a_client_with_fewer_samples_than_features_has_a_floor():
    moments = FeatureMoments.measure(rows(0, n=2, d=6))
    least = FLOOR * moments.covariance.trace() / 6
    assert torch.linalg.eigvalsh(moments.copy_with_variance_floor().covariance)[
        0
    ].item() == pytest.approx(least.item(), rel=1e-6)
    matrix, shift = compute_alignment_map(moments, FeatureMoments.measure(rows(1, d=6)), 1.0)
    assert matrix.isfinite().all() and shift.isfinite().all()


@pytest.mark.parametrize("method", [AFL, Gauss, FedPFT])
def test_both_messages_are_counted_and_without_it_nothing_changes(method):
    settings = {"features": "relu", "size": 8}
    runs = {}
    for tau in (None, 0.0, 0.7):
        ctx = context(dtype=EXACT)
        made = method(**settings) if tau is None else method(**settings, align=tau)
        runs[tau] = exhaust_generator(made.run(ctx)), ctx.link.ledger.by_phase()
    x = torch.rand(9, 1, 8, 8, generator=torch.Generator().manual_seed(0), dtype=EXACT)
    plain, zero, some = (runs[tau][0].logits(x) for tau in runs)
    assert torch.equal(plain, zero) and not torch.allclose(plain, some)
    assert runs[None][1] == runs[0.0][1]
    more = {phase: bytes_ for phase, bytes_ in runs[0.7][1].items() if phase not in runs[None][1]}
    one = 8 * (8 + byte_formulas.triangle(8))
    assert more == {"moments": (3 * one, 0), "barycentre": (0, 3 * one)}


def test_clients_go_their_own_ways_and_test_samples_that_of_all():
    ctx = context(dtype=EXACT)
    frozen = make_feature_map("relu", (1, 8, 8), 6, 0, dtype=EXACT)
    own, tested = exhaust_generator(align_client_features(ctx, frozen, 1.0))
    there = [
        FeatureMoments.measure(features(ctx.private.train(k)[0])) for k, features in enumerate(own)
    ]
    for each in there[1:]:
        torch.testing.assert_close(each.mean, there[0].mean, rtol=0, atol=1e-9)
        torch.testing.assert_close(each.covariance, there[0].covariance, rtol=0, atol=1e-9)
    whole = FeatureMoments.measure(tested(torch.cat([ctx.private.train(k)[0] for k in range(3)])))
    torch.testing.assert_close(whole.covariance, there[0].covariance, rtol=0, atol=1e-9)
    assert tested.parameters == frozen.parameters + 6 * 6 + 6


def test_what_does_not_go_with_it_is_said():
    for options in ({"secure": True}, {"epsilon": 1.0}):
        with pytest.raises(UsageError, match="align"):
            AFL(align=0.5, **options).validate(context())
    model = exhaust_generator(AFL(align=0.5, features="relu", size=8).run(context()))
    with pytest.raises(UsageError, match="align=0"):
        solve_classifier_weights_without_client(model.report, 0)
    assert "covariance" in AFL(align=0.5).leaks and "covariance" not in AFL().leaks
