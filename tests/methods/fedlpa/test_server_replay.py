"""FedLPA's server once more: the same answer as the run's, and each use of the uploads by hand."""

import numpy as np
import pytest
import torch
from watched import watched

from fedlab_nb.methods.fedlpa import FedLPA
from fedlab_nb.methods.fedlpa import server as model_module
from fedlab_nb.methods.fedlpa.server import USES, ServerReplay, layer_systems, used
from fedlab_nb.methods.regmean import merge
from fedlab_nb.models import model_state
from tests.methods.fedlpa.test_method import context


@pytest.fixture(scope="module")
def remembered():
    """Local training, done once."""
    remembered = []
    watched(FedLPA().run(context(clients=3, remembered=remembered)))
    return remembered


def server(remembered, **options):
    ctx = context(clients=3, remembered=remembered)
    model, progress = watched(FedLPA(**options).run(ctx))
    x, y = ctx.private.everything(0)
    return ServerReplay(model, x, y), model, progress


@pytest.mark.parametrize("damping, pi", [(1e-3, "one"), (1e-5, "trace")])
def test_the_servers_part_again_is_the_run(remembered, damping, pi):
    again, model, _ = server(remembered, damping=damping, pi=pi)
    state = again.use("exact", again.uploads(damping, pi))
    for name, tensor in model_state(model.module).items():
        torch.testing.assert_close(state[name], tensor, rtol=0, atol=0)
    assert again.accuracy(state) == model.accuracy(again.x, again.y)


def test_another_damping_is_the_run_with_that_damping(remembered):
    again, _, _ = server(remembered)
    _, other, _ = server(remembered, damping=1e-5)
    state = again.use("exact", again.uploads(1e-5))
    for name, tensor in model_state(other.module).items():
        torch.testing.assert_close(state[name], tensor, rtol=0, atol=0)


def test_each_use_by_hand(remembered):
    again, _, _ = server(remembered)
    received = again.uploads(1e-2, "one")
    average, systems = layer_systems(received)
    name = list(systems)[-1]
    system, weights = systems[name], systems[name].w
    assert USES == ("exact", "shortcut", "inputs", "diagonal", "none")  # each of them below
    torch.testing.assert_close(used(system, "none"), sum(w * m for w, m in zip(weights, system.m, strict=True)))
    torch.testing.assert_close(again.use("none", received)[f"{name}.bias"], average[f"{name}.bias"])
    # A alone is RegMean with the damping's root as ridge
    undamped = [own.factors[name].a for own in again.posteriors]
    regmean = merge(list(system.m), undamped, weights.tolist(), 1e-2**0.5)
    torch.testing.assert_close(used(system, "inputs"), regmean, rtol=1e-6, atol=1e-8)
    # one entry of the diagonal's answer
    o, i = 3, 5
    trust = [w * b[o, o] * a[i, i] for w, a, b in zip(weights, system.a, system.b, strict=True)]
    entry = sum(t * m[o, i] for t, m in zip(trust, system.m, strict=True)) / sum(trust)
    torch.testing.assert_close(used(system, "diagonal")[o, i], entry)
    torch.testing.assert_close(used(system, "shortcut"), system.expectation_approximation())
    assert system.relative(system.apply(used(system, "exact")) - system.z) <= 1e-6


def test_noise_is_drawn_by_seed_and_spares_what_was_measured(remembered):
    again, _, _ = server(remembered)
    clean = again.uploads(1e-3)
    one, same, other = (again.uploads(1e-3, noise=0.1, seed=seed)[0]["state"] for seed in (1, 1, 2))
    name = next(iter(one))
    assert torch.equal(one[name], same[name]) and not torch.equal(one[name], other[name])
    assert torch.equal(again.uploads(1e-3)[0]["state"][name], clean[0]["state"][name])


def test_the_path_of_each_solver(remembered):
    again, model, _ = server(remembered)
    received = again.uploads(1e-3)
    for solver, limit, steps in (("gd", 6, [0, 1, 2, 4, 6]), ("ea", 0, [0])):
        *path, last = again.path(solver, limit, received)
        assert [now.iteration for now, _ in path] == list(range(limit + 1)) and last[0] is path[-1][0]
        assert sorted({now.iteration for now, accuracy in [*path, last] if accuracy is not None}) == steps
        assert all(len(curve) == limit + 1 for curve in last[0].residuals.values())
    *_, (now, accuracy) = again.path("cg", 0, received)
    assert now.iteration == max(model.report.iterations.values()) and now.worst <= 1e-6
    assert accuracy == model.accuracy(again.x, again.y)


def test_residuals_are_live_while_it_solves(remembered):
    _, model, progress = server(remembered, solver="gd", iterations=9)
    reports = [p.model.report for p in progress if p.phase == "solve" and p.model is not None]
    assert [{len(curve) for curve in report.curves.values()} for report in reports] == [{1}, {2}, {3}, {5}, {9}]
    assert {len(curve) for curve in model.report.curves.values()} == {10}
    for report in reports:
        assert report.layers == model.report.layers and report.label_leak is None
        for name, curve in report.curves.items():
            assert (curve == model.report.curves[name][: len(curve)]).all()


def test_counts_that_were_trained_on_are_kept_and_posteriors_that_are_too_large_are_not(remembered, monkeypatch):
    ctx = context(clients=3, remembered=remembered)
    _, model, _ = server(remembered)
    for k, row in enumerate(model.report.train_counts):
        assert row.tolist() == np.bincount(ctx.private.train(k)[1], minlength=10).tolist()
    floats = 6570 + sum(d * d for d in (65, 64, 65, 32, 33, 10))
    assert [own.size for own in model.posteriors] == [8 * floats] * 3
    monkeypatch.setattr(model_module, "LIMIT", 3 * 8 * floats - 1)
    _, model, _ = server(remembered)
    assert model.posteriors == []


def test_the_model_after_further_rounds_keeps_the_posteriors(remembered):
    _, model, _ = server(remembered, rounds=1, local_epochs=1)
    assert len(model.posteriors) == 3
