"""FENS as a whole: the quantised ensemble, what each rule starts from, which samples it sees, its extensions."""

import dataclasses

import numpy as np
import pytest
import torch
from fens_runs import C, M, context, run, x_test

from fedlab_nb.comm import quantise_state
from fedlab_nb.data import federate
from fedlab_nb.errors import RunError
from fedlab_nb.methods.base import EnsembleModel
from fedlab_nb.methods.fens import Fens
from fedlab_nb.methods.fens.aggregators import AGGREGATORS, TRAINED


@pytest.fixture(scope="module")
def federation():
    return federate("digits", alpha=0.1, clients=M, seed=0)


# ------------------------------------------------------------------------------------------------ phases
def test_the_quantised_models_answer_and_phase_2_leaves_them_bit_identical(federation):
    ctx = context(federation)
    fens, _ = run(ctx, bits=4, rounds=30)
    for k, state in enumerate(ctx._recall()):
        packed = quantise_state(state, 4)
        used = fens.experts.clients.state(k)
        for name, tensor in state.items():
            if tensor.ndim >= 2:
                assert torch.equal(used[name], packed[name].dequantise())
                assert (used[name] - tensor).abs().max() <= packed[name].scale / 2 * (1 + 1e-5)
            else:
                assert torch.equal(used[name], tensor)


def test_averaging_without_quantisation_is_fedens_and_per_class_weights_start_there(federation):
    average, _ = run(context(federation), aggregator="averaging", bits=32)
    x = x_test(federation)
    fedens = EnsembleModel(average.experts.clients)
    torch.testing.assert_close(average.logits(x), fedens.logits(x))
    torch.testing.assert_close(average.features(x), fedens.features(x))
    _, steps = run(context(federation), bits=32)
    first = next(step.model for step in steps if step.phase == "aggregator")
    torch.testing.assert_close(first.logits(x), fedens.logits(x))


def test_what_the_rule_starts_from_is_measured_beside_it(federation):
    fens, _ = run(context(federation), bits=3, rounds=2)
    x, y = x_test(federation), federation.dataset.y_test
    report = fens.measured(x, y)
    average, _ = run(context(federation), bits=3, aggregator="averaging")
    assert (
        report.average_accuracy == average.accuracy(x, y) == average.measured(x, y).average_accuracy
    )
    by_hand = [
        float((fens.experts.clients.module(k)(x).argmax(1) == y).double().mean()) for k in range(M)
    ]
    assert report.member_accuracy == pytest.approx(by_hand)


def test_weighted_averaging_uses_the_label_counts_of_the_training_parts(federation):
    ctx = context(federation)
    fens, _ = run(ctx, aggregator="weighted")
    counts = np.array([np.bincount(ctx.private.train(k)[1].numpy(), minlength=C) for k in range(M)])
    np.testing.assert_allclose(fens.report.weights, counts / counts.sum(0), rtol=1e-6)


@pytest.mark.parametrize("name", list(AGGREGATORS))
def test_every_rule_answers_and_counts_its_numbers(federation, name):
    ctx = context(federation)
    fens, steps = run(ctx, aggregator=name, rounds=45, k=12)
    x = x_test(federation)
    assert fens.logits(x).shape == (len(x), C) and bool(fens.logits(x).isfinite().all())
    assert fens.features(x).shape == (len(x), 12 if name in ("nn", "deepset") else M * C)
    assert (
        fens.parameters == sum(fens.experts.clients.parameters) + fens.rule.trained_parameter_count
    )
    torch.testing.assert_close(fens.logits(x[:7]), fens.logits(x)[:7], rtol=1e-4, atol=1e-4)
    if name not in TRAINED:
        return
    rounds = [step for step in steps if step.phase == "aggregator"]
    assert [step.done for step in rounds] == list(range(46)) and {
        step.total for step in rounds
    } == {45}
    assert rounds[0].model is not None and rounds[-1].model is not None
    torch.testing.assert_close(rounds[-1].model.logits(x), fens.logits(x))
    assert ctx.server_steps >= 45
    losses = fens.report.losses
    assert losses.shape == (45,) and losses[-1] < losses[0]
    assert rounds[-1].metrics["loss"] == pytest.approx(losses[-1])
    frames = fens.report.frames
    assert frames.shape[1:] == (M, C) and fens.report.frame_rounds[[0, -1]].tolist() == [0, 45]
    seen = [step.model.report for step in rounds if step.model is not None]
    assert [int(so_far.frame_rounds[-1]) for so_far in seen] == fens.report.frame_rounds.tolist()
    assert all(
        np.array_equal(so_far.frames[-1], frame) for so_far, frame in zip(seen, frames, strict=True)
    )
    assert seen[0].members.tolist() == fens.report.members.tolist() == list(range(M))
    if name in ("linear", "per_class"):
        np.testing.assert_allclose(frames[0], 1 / M, rtol=1e-6)
        assert np.array_equal(frames[-1], fens.report.weights)


# ------------------------------------------------------------------------------------------------ which samples
def test_what_the_aggregator_is_trained_on(federation):
    used = {}
    for proxy in ("held-out", "reused", "reused-equal"):
        ctx = context(federation)
        used[proxy] = run(ctx, proxy=proxy, rounds=2)[0].report.proxy_samples
    assert used["held-out"] == used["reused-equal"] == sum(ctx.private.sizes("held_out"))
    assert used["reused"] == sum(ctx.sizes)


def test_held_out_samples_only_reach_the_aggregator(federation, monkeypatch):
    """Neither local training nor a rule on held-out samples reads the other part."""
    ctx = context(federation)
    list(Fens(aggregator="averaging").run(ctx))  # clients are trained
    ctx = context(federation)
    monkeypatch.setattr(ctx.private, "train", lambda k: pytest.fail("read the training part"))
    run(ctx, rounds=2)
    ctx = context(federation)
    monkeypatch.setattr(ctx.private, "held_out", lambda k: pytest.fail("read the held-out part"))
    run(ctx, rounds=2, proxy="reused")


# ------------------------------------------------------------------------------------------------ the extensions
def test_forgetting_a_client_leaves_no_trace_of_it_in_phase_2(federation):
    full, _ = run(context(federation), rounds=8, aggregator="nn", k=6)
    ctx = context(federation)
    fens, _ = run(ctx, rounds=8, aggregator="nn", k=6, without=2)
    left = [0, 1, 3, 4]
    assert fens.rule.hidden.weight.shape == (6, (M - 1) * C) and full.rule.hidden.weight.shape == (
        6,
        M * C,
    )
    assert fens.report.proxy_samples == sum(ctx.private.sizes("held_out")[k] for k in left)
    for i, k in enumerate(left):
        own, theirs = fens.experts.clients.state(i), full.experts.clients.state(k)
        assert all(torch.equal(own[name], theirs[name]) for name in own)
    rows = {(r["client"], r["direction"], r["phase"]) for r in ctx.link.ledger.rows()}
    assert {r for r in rows if r[0] == 2} == {
        (2, "down", "initial model"),
        (2, "up", "local models"),
    }
    assert all((k, way, "aggregator") in rows for k in left for way in ("down", "up"))
    table, _ = run(context(federation), rounds=3, without=0)
    assert table.report.weights.shape == (M - 1, C)
    assert table.report.members.tolist() == [1, 2, 3, 4] and fens.report.members.tolist() == left
    for name in ("averaging", "weighted", "voting", "moe"):
        fens, _ = run(context(federation), rounds=3, aggregator=name, without=4)
        assert fens.logits(x_test(federation)[:5]).shape == (5, C)


def test_a_labelled_set_at_the_server_gives_what_the_clients_would_find(federation):
    """With J = 1 and batches as large as the sets, T federated rounds are T steps of one Adam on the pooled samples."""
    at_clients = context(federation, dtype=torch.float64)
    one, _ = run(at_clients, rounds=20, batch=10_000)
    at_server = context(federation, dtype=torch.float64)
    two, _ = run(at_server, rounds=20, batch=10_000, proxy="server")
    torch.testing.assert_close(one.rule.table, two.rule.table, rtol=0, atol=1e-12)
    phases = at_server.link.ledger.by_phase()
    assert list(phases) == ["initial model", "local models", "labelled set"]
    samples = sum(at_server.private.sizes("held_out"))
    assert phases["labelled set"] == (samples * (64 * 8 + 8), 0)
    votes, _ = run(context(federation), aggregator="voting")
    central, _ = run(context(federation), aggregator="voting", proxy="server")
    assert torch.equal(votes.rule.log_competency, central.rule.log_competency)


def test_distilling_gives_one_network_and_sends_nothing(federation):
    plain, distilled = context(federation), context(federation)
    fens, _ = run(plain, rounds=10)
    student, steps = run(distilled, rounds=10, distil=True, distil_steps=60)
    assert student.module.architecture[0] == "mlp" and student.parameters == 6570
    assert plain.link.ledger == distilled.link.ledger
    assert student.report.agreement > 0.5 and student.report.bytes == fens.report.bytes
    assert np.array_equal(student.report.weights, fens.report.weights)
    learnt = [step for step in steps if step.phase == "distillation"]
    assert learnt[-1].model is not None and learnt[-1].done == learnt[-1].total
    x, y = x_test(federation), federation.dataset.y_test
    measured, before = student.measured(x, y), fens.measured(x, y).numbers()
    assert (
        measured.numbers().items() >= before.items()
        and measured.teacher_accuracy == fens.accuracy(x, y)
    )
    assert measured.public_images == len(federation.dataset.x_public)
    again, _ = run(context(federation), rounds=10, distil=True, distil_steps=60)
    assert torch.equal(again.logits(x_test(federation)), student.logits(x_test(federation)))


# ------------------------------------------------------------------------------------------------ wrong use


def test_an_aggregator_that_diverges_says_which_rates_did_it(federation):
    with pytest.raises(RunError, match="diverged with eta_l=1e\\+38"):
        run(
            context(federation), server="fedavg", eta_l=1e38
        )  # beyond the knob's range, so that numbers overflow


# ------------------------------------------------------------------------------------------------ what it is good for


def test_no_test_image_reaches_phase_2(federation):
    """Other test images, the same aggregator to the last digit."""
    data = federation.dataset
    spoilt = dataclasses.replace(
        data, x_test=torch.full_like(data.x_test, 7), y_test=data.y_test.flip(0)
    )
    other = dataclasses.replace(federation, dataset=spoilt)
    for name in ("per_class", "voting"):
        one, two = (run(context(f), aggregator=name, rounds=9)[0].rule for f in (federation, other))
        key = "table" if name == "per_class" else "log_competency"
        assert torch.equal(getattr(one, key), getattr(two, key))
