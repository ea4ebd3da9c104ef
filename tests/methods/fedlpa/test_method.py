"""FedLPA as a method: bytes, the merged model, its report, noise, rounds after it; and its server once more."""

import dataclasses
import functools

import method_runs
import numpy as np
import pytest
import torch
from collected_steps import run_and_collect_steps

from fedlab_nb.comm import count_payload_bytes
from fedlab_nb.methods.base import weighted_mean
from fedlab_nb.methods.fedavg import FedAvg
from fedlab_nb.methods.fedlpa import FedLPA
from fedlab_nb.methods.fedlpa import server as model_module
from fedlab_nb.methods.fedlpa.client import (
    LocalPosterior,
    add_laplace_noise,
    add_noise_and_remove_negative_eigenvalues,
    guess_client_classes_from_diagonal,
    measure_label_leak,
)
from fedlab_nb.methods.fedlpa.server import (
    USES,
    ServerReplay,
    average_states_and_make_layer_systems,
    solve_layer_with_part_of_precision,
)
from fedlab_nb.methods.regmean import merge_layer_by_regmean
from fedlab_nb.models import build, copy_model_state
from fedlab_nb.studies import run
from fedlab_nb.training import Recipe, train_clients_in_place

EXACT = torch.float64


context = functools.partial(
    method_runs.make_context,
    clients=4,
    alpha=0.1,
    recipe=Recipe(batch_size=32, lr=0.01),
    holdout=0.0,
    dtype=EXACT,
)


def assert_states_close(state, expected, atol):
    assert state.keys() == expected.keys()
    for name in state:
        torch.testing.assert_close(state[name], expected[name], rtol=0, atol=atol)


@pytest.mark.parametrize("weights", ["samples", "uniform"])
def test_with_large_damping_the_model_is_the_average(weights):
    remembered = []
    ctx = context(remembered=remembered)
    out, _ = run_and_collect_steps(FedLPA(damping=1e12, weights=weights).run(ctx))
    average = weighted_mean(remembered[0], ctx.sizes if weights == "samples" else [1] * 4)
    assert_states_close(copy_model_state(out.module), average, 1e-4)


@pytest.mark.parametrize(
    "name, shape, floats",
    [("mlp", (1, 28, 28), 596_892), ("cnn", (1, 28, 28), 111_484), ("mlp", (1, 8, 8), 14_084)],
)
def test_an_upload_is_the_parameters_and_upper_triangles(name, shape, floats):
    module = build(name, shape, 10, generator=torch.Generator().manual_seed(0))
    posterior = LocalPosterior.measure(module, torch.rand(2, *shape), torch.tensor([3, 7]))
    assert count_payload_bytes(posterior.make_upload(1e-3, "one")) == 4 * floats


def test_the_ledger_has_one_download_and_one_upload():
    ctx = context(dtype=torch.float32)
    run_and_collect_steps(FedLPA().run(ctx))
    assert ctx.link.ledger.by_phase() == {
        "initial model": (0, 4 * 4 * 6570),
        "posteriors": (4 * 4 * 14_084, 0),
    }
    assert ctx.server_steps == 1  # so a read of private data would have been noticed


@pytest.mark.slow
def test_batch_norm_is_averaged_with_the_clients_weights():
    remembered = []
    ctx = context(clients=3, epochs=1, model="resnet8", width=4, remembered=remembered)
    out, _ = run_and_collect_steps(FedLPA().run(ctx))
    average = weighted_mean(remembered[0], ctx.sizes)
    state = copy_model_state(out.module)
    layers = {f"{name}.{part}" for name in out.report.layers for part in ("weight", "bias")}
    averaged_names = state.keys() - layers
    assert any("running_var" in name for name in averaged_names)
    for name in averaged_names:
        torch.testing.assert_close(state[name], average[name])
    assert any(
        (state[name] - average[name]).norm() > 0.01 * average[name].norm()
        for name in layers & state.keys()
    )


def test_the_report_has_label_leak_and_residuals():
    ctx = context()
    out, _ = run_and_collect_steps(FedLPA(damping=1e-2).run(ctx))
    diagonals = []
    for posterior in out.posteriors:
        last_factors = list(posterior.factors.values())[-1]
        diagonals.append(last_factors.b.diagonal() + 0.1)  # with the damping's root, as it was sent
    counts = torch.from_numpy(out.report.train_counts)
    assert out.report.label_leak == measure_label_leak(torch.stack(diagonals), counts)
    for name in out.report.layers:
        curve = out.report.curves[name]
        assert len(curve) == out.report.iterations[name] + 1
        assert out.report.residual[name] == curve[-1] <= 1e-6 < curve[0]


def test_gradient_descent_yields_models_and_can_be_stopped():
    remembered = []
    out, progress = run_and_collect_steps(
        FedLPA(solver="gd", iterations=33).run(context(remembered=remembered))
    )
    solving = [p for p in progress if p.phase == "solve"]
    assert [p.done for p in solving] == [0, 1, 2, 4, 8, 10, 16, 20, 30, 32]
    shown = [p.model.report for p in solving if p.model is not None]
    lengths = [{len(curve) for curve in report.curves.values()} for report in shown]
    assert lengths == [{1}, {2}, {3}, {5}, {9}, {17}, {33}]
    assert all(p.total == 33 for p in solving) and out.report.iterations == dict.fromkeys(
        out.report.layers, 33
    )
    shortcut, _ = run_and_collect_steps(FedLPA(solver="ea").run(context(remembered=remembered)))
    assert_states_close(
        copy_model_state(solving[0].model.module), copy_model_state(shortcut.module), 1e-12
    )
    assert [p.done for p in progress if p.phase == "factor pass"] == [1, 2, 3, 4]

    ctx = context(remembered=remembered)
    stopped = FedLPA(solver="gd", iterations=10_000).run(ctx)
    while next(stopped).phase != "solve":
        pass
    stopped.close()
    assert not ctx.private.locked


def test_float32_predicts_like_float64():
    x, _ = context().private.everything(0)
    predictions = []
    for dtype in (torch.float32, torch.float64):
        remembered = []
        run_and_collect_steps(
            FedAvg().run(context(remembered=remembered, epochs=5))
        )  # trained once, in float64
        ctx = context(
            remembered=[[{n: t.to(dtype) for n, t in s.items()} for s in remembered[0]]],
            dtype=dtype,
        )
        predictions.append(run_and_collect_steps(FedLPA().run(ctx))[0].logits(x.to(dtype)).double())
    torch.testing.assert_close(predictions[0], predictions[1], rtol=1e-3, atol=1e-3)


# ------------------------------------------------------------------------------------------------ extensions
def test_rounds_after_fedlpa_are_fedavg_from_its_model():
    """One round by hand: every client trains two epochs from FedLPA's model, the server averages by samples."""
    remembered = []
    start, _ = run_and_collect_steps(FedLPA().run(context(remembered=remembered)))
    ctx = context(remembered=remembered)
    end, progress = run_and_collect_steps(FedLPA(rounds=1, local_epochs=2).run(ctx))
    models = [ctx.new_model(copy_model_state(start.module)) for _ in range(4)]
    shards = [ctx.private.train(k) for k in range(4)]
    train_clients_in_place(models, shards, dataclasses.replace(ctx.recipe, epochs=2), seed=0)
    average = weighted_mean([copy_model_state(model) for model in models], ctx.sizes)
    assert_states_close(copy_model_state(end.module), average, 1e-12)
    state = 4 * 8 * 6570  # four clients, float64
    assert ctx.link.ledger.by_phase()["rounds"] == (state, state)
    assert end.report.residual == start.report.residual
    assert [p.metrics["round"] for p in progress if "round" in p.metrics] == [1]


def test_noise_changes_the_model_and_is_repeatable():
    remembered = []
    clean, _ = run_and_collect_steps(FedLPA().run(context(remembered=remembered)))
    noisy, _ = run_and_collect_steps(FedLPA(noise=0.1).run(context(remembered=remembered)))
    second_run, _ = run_and_collect_steps(FedLPA(noise=0.1).run(context(remembered=remembered)))
    assert_states_close(copy_model_state(noisy.module), copy_model_state(second_run.module), 0)
    name = "classifier.weight"
    assert (
        copy_model_state(noisy.module)[name] - copy_model_state(clean.module)[name]
    ).abs().max() > 1e-3


def test_noise_has_its_scale_and_factors_stay_positive():
    tensor = torch.full((300, 300), 2.0, dtype=EXACT)
    added = add_laplace_noise(tensor, 0.1, torch.Generator().manual_seed(0)) - tensor
    # The mean magnitude of Laplace noise is its scale.
    assert added.abs().mean().item() == pytest.approx(0.2, rel=0.02)
    assert added.std().item() == pytest.approx(0.2 * 2**0.5, rel=0.02)
    assert add_laplace_noise(tensor, 0.0, None) is tensor
    rows = torch.randn(5, 20, dtype=EXACT, generator=torch.Generator().manual_seed(1))
    factor = add_noise_and_remove_negative_eigenvalues(
        rows.T @ rows, 0.5, torch.Generator().manual_seed(2)
    )  # rank 5
    assert torch.equal(factor, factor.T) and torch.linalg.eigvalsh(factor).min() > -1e-9
    state = {"a": torch.ones(3), "running": torch.ones(3)}
    posterior = LocalPosterior(1, state, ("a",), {})
    noised = posterior.make_upload(1e-3, "one", 0.1, torch.Generator().manual_seed(0))["state"]
    assert (
        list(noised) == list(state)
        and noised["running"] is state["running"]
        and (noised["a"] != 1).all()
    )


def test_label_leak_by_hand():
    assert guess_client_classes_from_diagonal(torch.tensor([0.1, 0.9, 0.2, 0.8]), 2) == [1, 3]
    diagonals = torch.tensor([[0.3, 0.2, 0.1, 0.0], [0.0, 0.1, 0.2, 0.3]])
    counts = torch.tensor([[9, 5, 0, 0], [1, 0, 0, 7]])
    leak = measure_label_leak(diagonals, counts)
    # For the second client classes 2 and 3 are guessed, of which it has one.
    assert leak["precision"] == (1 + 1 / 2) / 2
    assert leak["chance"] == 4 / 8


@pytest.mark.slow
def test_conjugate_gradients_need_few_steps_and_beat_gradient_descent():
    setting = {"clients": 5, "alpha": 0.1, "holdout": 0, "epochs": 60, "batch_size": 32, "lr": 0.01}
    fast, slow = (run("fedlpa", **setting, **{"fedlpa.solver": s}).report for s in ("cg", "gd"))
    for layer, curve in fast.curves.items():
        assert np.flatnonzero(curve < 1e-4)[0] <= 20
        assert curve[min(20, len(curve) - 1)] < slow.residual[layer]


# ------------------------------------------------------------------------------------------------- replay of the server
# FedLPA's server once more from the stored posteriors: the same model, and each use of the uploads by hand.


@pytest.fixture(scope="module")
def remembered():
    """The trained clients of one run, for all tests below."""
    remembered = []
    run_and_collect_steps(FedLPA().run(context(clients=3, remembered=remembered)))
    return remembered


def replay_server(remembered, **options):
    ctx = context(clients=3, remembered=remembered)
    model, progress = run_and_collect_steps(FedLPA(**options).run(ctx))
    x, y = ctx.private.everything(0)
    return ServerReplay(model, x, y), model, progress


@pytest.mark.parametrize("damping, pi", [(1e-3, "one"), (1e-5, "trace")])
def test_replaying_the_server_gives_the_model_of_the_run(remembered, damping, pi):
    """Also with the damping of another run."""
    replay, _, _ = replay_server(remembered)
    _, model, _ = replay_server(remembered, damping=damping, pi=pi)
    state = replay.solve_global_state("exact", replay.make_uploads(damping, pi))
    for name, tensor in copy_model_state(model.module).items():
        torch.testing.assert_close(state[name], tensor, rtol=0, atol=0)
    assert replay.compute_accuracy_on_replay_samples(state) == model.accuracy(replay.x, replay.y)


def test_each_use_of_the_uploads_by_hand(remembered):
    replay, _, _ = replay_server(remembered)
    received = replay.make_uploads(1e-2, "one")
    average, systems = average_states_and_make_layer_systems(received)
    name = list(systems)[-1]
    system, weights = systems[name], systems[name].w
    assert USES == ("exact", "shortcut", "inputs", "diagonal", "none")  # each of them below
    torch.testing.assert_close(
        solve_layer_with_part_of_precision(system, "none"),
        sum(w * m for w, m in zip(weights, system.m, strict=True)),
    )
    torch.testing.assert_close(
        replay.solve_global_state("none", received)[f"{name}.bias"], average[f"{name}.bias"]
    )
    # A alone is RegMean with the damping's root as ridge
    undamped = [posterior.factors[name].a for posterior in replay.posteriors]
    regmean = merge_layer_by_regmean(list(system.m), undamped, weights.tolist(), 1e-2**0.5)
    torch.testing.assert_close(
        solve_layer_with_part_of_precision(system, "inputs"), regmean, rtol=1e-6, atol=1e-8
    )
    # one entry of the diagonal's answer
    o, i = 3, 5
    trust = [w * b[o, o] * a[i, i] for w, a, b in zip(weights, system.a, system.b, strict=True)]
    entry = sum(t * m[o, i] for t, m in zip(trust, system.m, strict=True)) / sum(trust)
    torch.testing.assert_close(solve_layer_with_part_of_precision(system, "diagonal")[o, i], entry)
    torch.testing.assert_close(
        solve_layer_with_part_of_precision(system, "shortcut"), system.solve_with_averaged_factors()
    )
    assert (
        system.compute_relative_residual(
            system.apply_precision(solve_layer_with_part_of_precision(system, "exact"))
            - system.precision_weighted_sum
        )
        <= 1e-6
    )


def test_noise_depends_on_the_seed_and_does_not_change_the_posteriors(remembered):
    replay, _, _ = replay_server(remembered)
    clean = replay.make_uploads(1e-3)
    state, same_seed, other_seed = (
        replay.make_uploads(1e-3, noise_relative_to_rms=0.1, noise_seed=seed)[0]["state"]
        for seed in (1, 1, 2)
    )
    name = next(iter(state))
    assert torch.equal(state[name], same_seed[name]) and not torch.equal(
        state[name], other_seed[name]
    )
    assert torch.equal(replay.make_uploads(1e-3)[0]["state"][name], clean[0]["state"][name])


def test_each_solver_yields_its_iterations_and_accuracies(remembered):
    replay, model, _ = replay_server(remembered)
    received = replay.make_uploads(1e-3)
    for solver, limit, steps in (("gd", 6, [0, 1, 2, 4, 6]), ("ea", 0, [0])):
        *path, last_pair = replay.iterate_solver_with_accuracies(solver, limit, received)
        assert [iterate.iteration for iterate, _ in path] == list(range(limit + 1)) and last_pair[
            0
        ] is path[-1][0]
        assert (
            sorted(
                {
                    iterate.iteration
                    for iterate, accuracy in [*path, last_pair]
                    if accuracy is not None
                }
            )
            == steps
        )
        assert all(len(curve) == limit + 1 for curve in last_pair[0].residuals.values())
    *_, (iterate, accuracy) = replay.iterate_solver_with_accuracies("cg", 0, received)
    assert (
        iterate.iteration == max(model.report.iterations.values())
        and iterate.worst_relative_residual <= 1e-6
    )
    assert accuracy == model.accuracy(replay.x, replay.y)


def test_label_counts_are_kept_and_too_large_posteriors_are_not(remembered, monkeypatch):
    ctx = context(clients=3, remembered=remembered)
    _, model, _ = replay_server(
        remembered, rounds=1, local_epochs=1
    )  # further rounds do not change the counts
    for k, row in enumerate(model.report.train_counts):
        assert row.tolist() == np.bincount(ctx.private.train(k)[1], minlength=10).tolist()
    floats = 6570 + sum(d * d for d in (65, 64, 65, 32, 33, 10))
    assert [posterior.byte_count for posterior in model.posteriors] == [8 * floats] * 3
    monkeypatch.setattr(model_module, "LIMIT", 3 * 8 * floats - 1)
    assert replay_server(remembered)[1].posteriors == []
