"""SLOT-Align: barycentre and transport against closed forms and SciPy's matrix roots, and the bytes of its messages."""

import byte_formulas
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from method_runs import make_context
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
    compute_covariance_barycentre,
    compute_transport_map,
    pool_moments,
)
from fedlab_nb.methods.parts.frozen import align_client_feature_maps, make_frozen_feature_map
from fedlab_nb.studies.experiment import exhaust_generator

EXACT = torch.float64


def draw_samples(seed, n=40, d=4):
    """Samples whose mean and covariance depend on the seed."""
    stream = torch.Generator().manual_seed(seed)
    mix = torch.randn(d, d, generator=stream, dtype=EXACT)
    standard = torch.randn(n, d, generator=stream, dtype=EXACT)
    mean = torch.randn(d, generator=stream, dtype=EXACT)
    return standard @ mix + mean


@pytest.mark.parametrize(("n", "d"), [(2, 5), (6, 8), (40, 4), (300, 20)])
def test_shrunk_covariances_equal_scikit_learns(n, d):
    x = draw_samples(n, n, d)
    moments = FeatureMoments.measure_with_shrunk_covariance(x)
    expected = LedoitWolf().fit(x.numpy())
    np.testing.assert_allclose(moments.covariance, expected.covariance_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(moments.mean, expected.location_, rtol=1e-9)


def test_clients_send_shrunk_covariances():
    """Each client's message has the triangle of scikit-learn's estimate on its own pixels."""
    ctx = make_context(clients=3, alpha=0.3, dtype=EXACT)
    triangles = {}
    real_up = ctx.link.up

    def record(k, payload, phase):
        if phase == "moments":
            triangles[k] = payload["covariance"]
        return real_up(k, payload, phase=phase)

    ctx.link.up = record
    exhaust_generator(AFL(align=0.4, align_covariance="ledoit-wolf").run(ctx))
    for k, triangle in triangles.items():
        estimate = LedoitWolf().fit(ctx.private.train(k)[0].flatten(1).numpy()).covariance_
        expected = estimate[np.triu_indices(64)]
        assert sorted(triangle.tolist()) == pytest.approx(sorted(expected), rel=1e-8, abs=1e-12)
    assert sorted(triangles) == [0, 1, 2]


@given(st.lists(st.integers(5, 50), min_size=1, max_size=5), st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_the_barycentre_is_a_fixed_point_and_every_client_is_mapped_to_it(sizes, seed):
    samples = [draw_samples(100 * seed + k, n) for k, n in enumerate(sizes)]
    client_moments = [FeatureMoments.measure(x) for x in samples]
    shares = torch.tensor(sizes, dtype=EXACT) / sum(sizes)
    barycentre = compute_covariance_barycentre(
        torch.stack([moments.covariance for moments in client_moments]), shares
    )
    root_of_barycentre = sqrtm(barycentre.numpy()).real
    roots = [
        sqrtm(root_of_barycentre @ moments.covariance.numpy() @ root_of_barycentre).real
        for moments in client_moments
    ]
    mean_of_roots = np.tensordot(shares.numpy(), np.stack(roots), 1)
    np.testing.assert_allclose(mean_of_roots, barycentre, atol=1e-7 * float(barycentre.norm()))
    common = FeatureMoments(pool_moments(client_moments, shares).mean, barycentre)
    for x, moments in zip(samples, client_moments, strict=True):
        matrix, shift = compute_alignment_map(moments, common, 1.0)
        aligned = FeatureMoments.measure(x @ matrix + shift)
        size = float(barycentre.norm()) + 1
        torch.testing.assert_close(aligned.mean, common.mean, rtol=0, atol=1e-9 * size)
        smallest_eigenvalue = float(torch.linalg.eigvalsh(moments.covariance)[0])
        if smallest_eigenvalue > FLOOR * float(moments.covariance.trace()):
            torch.testing.assert_close(aligned.covariance, barycentre, rtol=0, atol=1e-9 * size)


def test_diagonal_covariances_follow_the_closed_form():
    """The barycentre's deviations are the mean of the clients'; the map divides them by the client's."""
    deviations = torch.tensor([[1.0, 2.0, 0.5], [3.0, 1.0, 0.5]], dtype=EXACT)
    shares = torch.tensor([0.25, 0.75], dtype=EXACT)
    barycentre = compute_covariance_barycentre(torch.diag_embed(deviations.square()), shares)
    expected = shares @ deviations
    torch.testing.assert_close(barycentre, torch.diag(expected.square()), rtol=0, atol=1e-12)
    transport = compute_transport_map(torch.diag(deviations[0].square()), barycentre)
    torch.testing.assert_close(transport, torch.diag(expected / deviations[0]), rtol=0, atol=1e-12)


def test_equal_covariances_give_a_translation_and_tau_interpolates():
    x = draw_samples(0)
    moments = FeatureMoments.measure(x)
    shifted = FeatureMoments(moments.mean + 2, moments.covariance)
    barycentre = compute_covariance_barycentre(
        torch.stack([moments.covariance] * 2), torch.tensor([0.3, 0.7], dtype=EXACT)
    )
    torch.testing.assert_close(barycentre, moments.covariance)
    matrix, shift = compute_alignment_map(moments, shifted, 1.0)
    torch.testing.assert_close(x @ matrix + shift, x + 2)
    target = FeatureMoments.measure(draw_samples(1))
    matrix, shift = compute_alignment_map(moments, target, 1.0)
    half_matrix, half_shift = compute_alignment_map(moments, target, 0.5)
    half_way = (x + x @ matrix + shift) / 2
    torch.testing.assert_close(x @ half_matrix + half_shift, half_way)


def test_pooled_moments_equal_those_of_all_samples():
    samples = [draw_samples(k, n) for k, n in enumerate((5, 20, 11))]
    shares = torch.tensor([5, 20, 11], dtype=EXACT) / 36
    pooled = pool_moments([FeatureMoments.measure(x) for x in samples], shares)
    expected = FeatureMoments.measure(torch.cat(samples))
    torch.testing.assert_close(pooled.mean, expected.mean)
    torch.testing.assert_close(pooled.covariance, expected.covariance)


def test_a_singular_covariance_gets_a_floor():
    moments = FeatureMoments.measure(draw_samples(0, n=2, d=6))
    floor = FLOOR * moments.covariance.trace() / 6
    eigenvalues = torch.linalg.eigvalsh(moments.copy_with_variance_floor().covariance)
    assert eigenvalues[0].item() == pytest.approx(floor.item(), rel=1e-6)
    matrix, shift = compute_alignment_map(
        moments, FeatureMoments.measure(draw_samples(1, d=6)), 1.0
    )
    assert matrix.isfinite().all() and shift.isfinite().all()


@pytest.mark.slow
@pytest.mark.parametrize("method", [AFL, Gauss, FedPFT])
def test_alignment_adds_two_counted_messages_and_tau_0_changes_nothing(method):
    knobs = {"features": "relu", "size": 8}
    x = torch.rand(9, 1, 8, 8, generator=torch.Generator().manual_seed(0), dtype=EXACT)

    def run(**options):
        """Logits of the samples, and bytes by phase."""
        ctx = make_context(dtype=EXACT)
        model = exhaust_generator(method(**knobs, **options).run(ctx))
        return model.logits(x), ctx.link.ledger.by_phase()

    plain, plain_bytes = run()
    with_tau_0, bytes_with_tau_0 = run(align=0.0)
    aligned, aligned_bytes = run(align=0.7)
    assert torch.equal(plain, with_tau_0)
    assert not torch.allclose(plain, aligned)
    assert plain_bytes == bytes_with_tau_0
    additional = {
        phase: count for phase, count in aligned_bytes.items() if phase not in plain_bytes
    }
    message = 8 * (8 + byte_formulas.count_triangle_entries(8))
    assert additional == {"moments": (3 * message, 0), "barycentre": (0, 3 * message)}


def test_clients_are_mapped_to_common_moments_and_so_are_test_samples():
    ctx = make_context(dtype=EXACT)
    frozen = make_frozen_feature_map("relu", (1, 8, 8), 6, 0, dtype=EXACT)
    client_maps, test_map = exhaust_generator(align_client_feature_maps(ctx, frozen, 1.0))
    aligned = []
    for k, client_map in enumerate(client_maps):
        aligned.append(FeatureMoments.measure(client_map(ctx.private.train(k)[0])))
    for moments in aligned[1:]:
        torch.testing.assert_close(moments.mean, aligned[0].mean, rtol=0, atol=1e-9)
        torch.testing.assert_close(moments.covariance, aligned[0].covariance, rtol=0, atol=1e-9)
    all_samples = torch.cat([ctx.private.train(k)[0] for k in range(3)])
    of_all = FeatureMoments.measure(test_map(all_samples))
    torch.testing.assert_close(of_all.covariance, aligned[0].covariance, rtol=0, atol=1e-9)
    assert test_map.parameters == frozen.parameters + 6 * 6 + 6


def test_alignment_is_refused_with_masks_noise_and_forgetting():
    for options in ({"secure": True}, {"epsilon": 1.0}):
        with pytest.raises(UsageError, match="align"):
            AFL(align=0.5, **options).validate(make_context())
    model = exhaust_generator(AFL(align=0.5, features="relu", size=8).run(make_context()))
    with pytest.raises(UsageError, match="align=0"):
        solve_classifier_weights_without_client(model.report, 0)
    assert "covariance" in AFL(align=0.5).leaks and "covariance" not in AFL().leaks
