"""FedLPA's server once more from kept evidence: the same answer as the run's, and each use of the uploads by hand."""

import numpy as np
import pytest
import torch

from fedlab_nb.methods.fedlpa import FedLPA
from fedlab_nb.methods.parts import evidence as evidence_module
from fedlab_nb.methods.parts.again import USES, Again, used
from fedlab_nb.methods.parts.evidence import systems
from fedlab_nb.methods.parts.two_weights import two_weights
from fedlab_nb.methods.regmean import merge
from fedlab_nb.models import model_state
from tests.methods.test_fedlpa import context, finish


@pytest.fixture(scope="module")
def kept():
    """Local training, done once."""
    kept = []
    finish(FedLPA().run(context(clients=3, remembered=kept)))
    return kept


def server(kept, **options):
    ctx = context(clients=3, remembered=kept)
    model, progress = finish(FedLPA(**options).run(ctx))
    x, y = ctx.private.everything(0)
    return Again(model, x, y), model, progress


@pytest.mark.parametrize("damping, pi", [(1e-3, "one"), (1e-5, "trace")])
def test_the_servers_part_again_is_the_run(kept, damping, pi):
    again, model, _ = server(kept, damping=damping, pi=pi)
    state = again.use("exact", again.uploads(damping, pi))
    for name, tensor in model_state(model.module).items():
        torch.testing.assert_close(state[name], tensor, rtol=0, atol=0)
    assert again.accuracy(state) == model.accuracy(again.x, again.y)


def test_another_damping_is_the_run_with_that_damping(kept):
    again, _, _ = server(kept)
    _, other, _ = server(kept, damping=1e-5)
    state = again.use("exact", again.uploads(1e-5))
    for name, tensor in model_state(other.module).items():
        torch.testing.assert_close(state[name], tensor, rtol=0, atol=0)


def test_each_use_by_hand(kept):
    again, _, _ = server(kept)
    received = again.uploads(1e-2, "one")
    average, layers = systems(received)
    name = list(layers)[-1]
    system, weights = layers[name], layers[name].w
    assert list(USES) == ["none", "diagonal", "inputs", "shortcut", "exact"]
    torch.testing.assert_close(used(system, "none"), sum(w * m for w, m in zip(weights, system.m, strict=True)))
    torch.testing.assert_close(again.use("none", received)[f"{name}.bias"], average[f"{name}.bias"])
    # A alone is RegMean with the damping's root as ridge
    undamped = [own.factors[name].a for own in again.evidence]
    regmean = merge(list(system.m), undamped, weights.tolist(), 1e-2**0.5)
    torch.testing.assert_close(used(system, "inputs"), regmean, rtol=1e-6, atol=1e-8)
    # one entry of the diagonal's answer
    o, i = 3, 5
    trust = [w * b[o, o] * a[i, i] for w, a, b in zip(weights, system.a, system.b, strict=True)]
    entry = sum(t * m[o, i] for t, m in zip(trust, system.m, strict=True)) / sum(trust)
    torch.testing.assert_close(used(system, "diagonal")[o, i], entry)
    torch.testing.assert_close(used(system, "shortcut"), system.expectation_approximation())
    assert system.relative(system.apply(used(system, "exact")) - system.z) <= 1e-6


def test_noise_is_drawn_by_seed_and_spares_the_evidence(kept):
    again, _, _ = server(kept)
    clean = again.uploads(1e-3)
    one, same, other = (again.uploads(1e-3, noise=0.1, seed=seed)[0]["state"] for seed in (1, 1, 2))
    name = next(iter(one))
    assert torch.equal(one[name], same[name]) and not torch.equal(one[name], other[name])
    assert torch.equal(again.uploads(1e-3)[0]["state"][name], clean[0]["state"][name])


def test_the_path_of_each_solver(kept):
    again, model, _ = server(kept)
    received = again.uploads(1e-3)
    for solver, limit, steps in (("gd", 6, [0, 1, 2, 4, 6]), ("ea", 0, [0])):
        found = [(curves, point) for curves, point in again.path(solver, limit, received)]
        assert sorted({p.iteration for _, p in found if p}) == steps
        assert all(len(curve) == limit + 1 for curve in found[-1][0].values())
    *_, (curves, point) = again.path("cg", 0, received)
    assert point.iteration == max(model.numbers["iterations"].values()) and point.residual <= 1e-6
    assert point.accuracy == model.accuracy(again.x, again.y)


def test_residuals_are_live_while_it_solves(kept):
    _, model, progress = server(kept, solver="gd", iterations=9)
    lengths = [
        {len(curve) for curve in p.model.live.values()} for p in progress if p.phase == "solve" and p.model is not None
    ]
    assert lengths == [{1}, {2}, {3}, {5}, {9}]
    assert {len(curve) for curve in model.live.values()} == {10}
    assert set(model.live) == {f"residual.{layer}" for layer in model.numbers["layers"]}


def test_counts_that_were_trained_on_are_kept_and_evidence_that_is_too_large_is_not(kept, monkeypatch):
    ctx = context(clients=3, remembered=kept)
    _, model, _ = server(kept)
    for k, row in enumerate(model.artefacts["train_counts"]):
        assert row.tolist() == np.bincount(ctx.private.train(k)[1], minlength=10).tolist()
    floats = 6570 + sum(d * d for d in (65, 64, 65, 32, 33, 10))
    assert [own.size for own in model.evidence] == [8 * floats] * 3
    monkeypatch.setattr(evidence_module, "KEPT", 3 * 8 * floats - 1)
    _, model, _ = server(kept)
    assert model.evidence == []


def test_the_model_after_further_rounds_keeps_the_evidence(kept):
    _, model, _ = server(kept, rounds=1, local_epochs=1)
    assert len(model.evidence) == 3


# ------------------------------------------------------------------------------------------------ two weights, by hand
def test_two_weights_at_right_angles():
    found = two_weights(angle=90, ratio=9, damping=0)
    assert found.average == pytest.approx([2, 2])
    for point in (found.aggregate, found.diagonal, found.pooled):
        assert point == pytest.approx([1.2, 1.2])  # ((9*1 + 1*3) / 10, (1*3 + 9*1) / 10)
    assert found.precisions == pytest.approx(np.array([np.diag([9, 1]), np.diag([1, 9])]), abs=1e-12)


def test_two_weights_at_45_degrees_need_more_than_the_diagonal():
    found = two_weights(angle=45, ratio=9, damping=0)  # A_2 = [[5, 4], [4, 5]], S = [[14, 4], [4, 6]], Z = (28, 20)
    assert found.precisions[1] == pytest.approx(np.array([[5, 4], [4, 5]]))
    assert found.aggregate == pytest.approx([88 / 68, 168 / 68])
    assert found.pooled == pytest.approx(found.aggregate)
    assert found.diagonal == pytest.approx([24 / 14, 8 / 6])


def test_two_weights_and_the_damping():
    assert two_weights(90, 9, damping=1).aggregate == pytest.approx([16 / 12, 16 / 12])  # (10*1 + 2*3) / 12
    assert two_weights(45, 9, damping=1e12).aggregate == pytest.approx([2, 2], abs=1e-4)
    assert two_weights(30, 1, damping=0).aggregate == pytest.approx([2, 2])  # circles: the average is right
    assert two_weights(0, 25, damping=0).aggregate == pytest.approx([2, 2])  # equal ellipses too


def test_two_weights_equal_pooled_least_squares_at_every_angle():
    for angle in range(0, 181, 15):
        found = two_weights(angle, 16, 0)
        assert found.aggregate == pytest.approx(found.pooled, abs=1e-9)
