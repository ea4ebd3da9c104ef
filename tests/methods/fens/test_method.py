"""FENS as a method: the quantised ensemble, where each rule starts, the samples that it uses, and its extensions."""

import dataclasses

import numpy as np
import pytest
import torch
from fens_runs import C, M, get_test_images, make_context, run_fens_and_collect_steps

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
def test_quantised_models_answer_and_phase_2_does_not_change_them(federation):
    ctx = make_context(federation)
    fens, _ = run_fens_and_collect_steps(ctx, bits=4, rounds=30)
    for k, state in enumerate(ctx._recall()):
        packed = quantise_state(state, 4)
        client_state = fens.experts.clients.state(k)
        for name, tensor in state.items():
            if tensor.ndim >= 2:
                assert torch.equal(client_state[name], packed[name].dequantise())
                assert (client_state[name] - tensor).abs().max() <= packed[name].scale / 2 * (
                    1 + 1e-5
                )
            else:
                assert torch.equal(client_state[name], tensor)


def test_averaging_without_quantisation_is_fedens_and_trained_weights_start_there(federation):
    average, _ = run_fens_and_collect_steps(
        make_context(federation), aggregator="averaging", bits=32
    )
    x = get_test_images(federation)
    fedens = EnsembleModel(average.experts.clients)
    torch.testing.assert_close(average.logits(x), fedens.logits(x))
    torch.testing.assert_close(average.features(x), fedens.features(x))
    _, steps = run_fens_and_collect_steps(make_context(federation), bits=32)
    initial = next(step.model for step in steps if step.phase == "aggregator")
    torch.testing.assert_close(initial.logits(x), fedens.logits(x))


def test_the_report_has_the_accuracies_of_the_average_and_of_each_client(federation):
    fens, _ = run_fens_and_collect_steps(make_context(federation), bits=3, rounds=2)
    x = get_test_images(federation)
    y = federation.dataset.y_test
    report = fens.complete_report_on_test_samples(x, y)
    average, _ = run_fens_and_collect_steps(
        make_context(federation), bits=3, aggregator="averaging"
    )
    assert report.average_accuracy == average.accuracy(x, y)
    assert average.complete_report_on_test_samples(x, y).average_accuracy == average.accuracy(x, y)
    by_hand = [
        float((fens.experts.clients.module(k)(x).argmax(1) == y).double().mean()) for k in range(M)
    ]
    assert report.member_accuracy == pytest.approx(by_hand)


def test_weighted_averaging_uses_the_label_counts_of_the_training_parts(federation):
    ctx = make_context(federation)
    fens, _ = run_fens_and_collect_steps(ctx, aggregator="weighted")
    counts = np.array([np.bincount(ctx.private.train(k)[1].numpy(), minlength=C) for k in range(M)])
    np.testing.assert_allclose(fens.report.weights, counts / counts.sum(0), rtol=1e-6)


@pytest.mark.parametrize("name", list(AGGREGATORS))
def test_every_rule_answers_and_reports_its_training(federation, name):
    ctx = make_context(federation)
    fens, steps = run_fens_and_collect_steps(ctx, aggregator=name, rounds=45, k=12)
    x = get_test_images(federation)
    assert fens.logits(x).shape == (len(x), C)
    assert bool(fens.logits(x).isfinite().all())
    assert fens.features(x).shape == (len(x), 12 if name in ("nn", "deepset") else M * C)
    client_parameters = sum(fens.experts.clients.parameters)
    assert fens.parameters == client_parameters + fens.rule.trained_parameter_count
    torch.testing.assert_close(fens.logits(x[:7]), fens.logits(x)[:7], rtol=1e-4, atol=1e-4)
    if name not in TRAINED:
        return
    rounds = [step for step in steps if step.phase == "aggregator"]
    assert [step.done for step in rounds] == list(range(46))
    assert {step.total for step in rounds} == {45}
    assert rounds[0].model is not None
    assert rounds[-1].model is not None
    torch.testing.assert_close(rounds[-1].model.logits(x), fens.logits(x))
    assert ctx.server_steps >= 45
    losses = fens.report.losses
    assert losses.shape == (45,)
    assert losses[-1] < losses[0]
    assert rounds[-1].metrics["loss"] == pytest.approx(losses[-1])
    frames = fens.report.frames
    assert frames.shape[1:] == (M, C)
    assert fens.report.frame_rounds[[0, -1]].tolist() == [0, 45]
    reports = [step.model.report for step in rounds if step.model is not None]
    assert [int(report.frame_rounds[-1]) for report in reports] == fens.report.frame_rounds.tolist()
    assert all(
        np.array_equal(report.frames[-1], frame)
        for report, frame in zip(reports, frames, strict=True)
    )
    assert reports[0].members.tolist() == fens.report.members.tolist() == list(range(M))
    if name in ("linear", "per_class"):
        np.testing.assert_allclose(frames[0], 1 / M, rtol=1e-6)
        assert np.array_equal(frames[-1], fens.report.weights)


# --------------------------------------------------------------------------------------------- the samples that it uses
def test_the_aggregator_is_trained_on_the_chosen_samples(federation):
    samples = {}
    for proxy in ("held-out", "reused", "reused-equal"):
        ctx = make_context(federation)
        samples[proxy] = run_fens_and_collect_steps(ctx, proxy=proxy, rounds=2)[
            0
        ].report.proxy_samples
    assert samples["held-out"] == samples["reused-equal"] == sum(ctx.private.sizes("held_out"))
    assert samples["reused"] == sum(ctx.sizes)


def test_held_out_samples_reach_the_aggregator_alone(federation, monkeypatch):
    """Training on held-out samples does not read the training part; training on reused ones reads no held-out part."""
    ctx = make_context(federation)
    list(Fens(aggregator="averaging").run(ctx))  # trains the clients and stores them
    ctx = make_context(federation)
    monkeypatch.setattr(ctx.private, "train", lambda k: pytest.fail("read the training part"))
    run_fens_and_collect_steps(ctx, rounds=2)
    ctx = make_context(federation)
    monkeypatch.setattr(ctx.private, "held_out", lambda k: pytest.fail("read the held-out part"))
    run_fens_and_collect_steps(ctx, rounds=2, proxy="reused")


# ------------------------------------------------------------------------------------------------ the extensions
def test_a_forgotten_client_takes_no_part_in_phase_2(federation):
    full, _ = run_fens_and_collect_steps(make_context(federation), rounds=8, aggregator="nn", k=6)
    ctx = make_context(federation)
    fens, _ = run_fens_and_collect_steps(ctx, rounds=8, aggregator="nn", k=6, without=2)
    remaining = [0, 1, 3, 4]
    assert fens.rule.hidden.weight.shape == (6, (M - 1) * C)
    assert full.rule.hidden.weight.shape == (6, M * C)
    assert fens.report.proxy_samples == sum(ctx.private.sizes("held_out")[k] for k in remaining)
    for i, k in enumerate(remaining):
        state = fens.experts.clients.state(i)
        full_state = full.experts.clients.state(k)
        assert all(torch.equal(state[name], full_state[name]) for name in state)
    rows = {(row["client"], row["direction"], row["phase"]) for row in ctx.link.ledger.rows()}
    assert {row for row in rows if row[0] == 2} == {
        (2, "down", "initial model"),
        (2, "up", "local models"),
    }
    assert all(
        (k, direction, "aggregator") in rows for k in remaining for direction in ("down", "up")
    )
    table, _ = run_fens_and_collect_steps(make_context(federation), rounds=3, without=0)
    assert table.report.weights.shape == (M - 1, C)
    assert table.report.members.tolist() == [1, 2, 3, 4]
    assert fens.report.members.tolist() == remaining
    for name in ("averaging", "weighted", "voting", "moe"):
        fens, _ = run_fens_and_collect_steps(
            make_context(federation), rounds=3, aggregator=name, without=4
        )
        assert fens.logits(get_test_images(federation)[:5]).shape == (5, C)


def test_training_at_the_server_equals_full_batch_rounds(federation):
    """With one local step on full batches, T federated rounds are T steps of Adam on the pooled samples."""
    at_clients = make_context(federation, dtype=torch.float64)
    federated, _ = run_fens_and_collect_steps(at_clients, rounds=20, batch=10_000)
    at_server = make_context(federation, dtype=torch.float64)
    central_training, _ = run_fens_and_collect_steps(
        at_server, rounds=20, batch=10_000, proxy="server"
    )
    torch.testing.assert_close(
        federated.rule.table, central_training.rule.table, rtol=0, atol=1e-12
    )
    phases = at_server.link.ledger.by_phase()
    assert list(phases) == ["initial model", "local models", "labelled set"]
    samples = sum(at_server.private.sizes("held_out"))
    assert phases["labelled set"] == (samples * (64 * 8 + 8), 0)
    federated_votes, _ = run_fens_and_collect_steps(make_context(federation), aggregator="voting")
    central_votes, _ = run_fens_and_collect_steps(
        make_context(federation), aggregator="voting", proxy="server"
    )
    assert torch.equal(federated_votes.rule.log_competency, central_votes.rule.log_competency)


def test_distillation_gives_one_network_and_sends_nothing(federation):
    plain_ctx = make_context(federation)
    distilled_ctx = make_context(federation)
    fens, _ = run_fens_and_collect_steps(plain_ctx, rounds=10)
    student, steps = run_fens_and_collect_steps(
        distilled_ctx, rounds=10, distil=True, distil_steps=60
    )
    assert student.module.architecture[0] == "mlp" and student.parameters == 6570
    assert plain_ctx.link.ledger == distilled_ctx.link.ledger
    assert student.report.agreement > 0.5 and student.report.bytes == fens.report.bytes
    assert np.array_equal(student.report.weights, fens.report.weights)
    distillation_steps = [step for step in steps if step.phase == "distillation"]
    assert (
        distillation_steps[-1].model is not None
        and distillation_steps[-1].done == distillation_steps[-1].total
    )
    x = get_test_images(federation)
    y = federation.dataset.y_test
    measured = student.complete_report_on_test_samples(x, y)
    assert (
        measured.get_plain_fields().items()
        >= fens.complete_report_on_test_samples(x, y).get_plain_fields().items()
    )
    assert measured.teacher_accuracy == fens.accuracy(x, y)
    assert measured.public_images == len(federation.dataset.x_public)
    second_student, _ = run_fens_and_collect_steps(
        make_context(federation), rounds=10, distil=True, distil_steps=60
    )
    assert torch.equal(
        second_student.logits(get_test_images(federation)),
        student.logits(get_test_images(federation)),
    )


# ------------------------------------------------------------------------------------------------ wrong use


def test_a_diverging_aggregator_names_its_rates(federation):
    with pytest.raises(RunError, match="diverged with eta_l=1e\\+38"):
        # Far beyond the knob's range, so that numbers overflow.
        run_fens_and_collect_steps(make_context(federation), server="fedavg", eta_l=1e38)


# ------------------------------------------------------------------------------------------------ test images


def test_test_images_have_no_effect_on_phase_2(federation):
    """With other test images the aggregator is the same to the last digit."""
    data = federation.dataset
    other_data = dataclasses.replace(
        data, x_test=torch.full_like(data.x_test, 7), y_test=data.y_test.flip(0)
    )
    other_federation = dataclasses.replace(federation, dataset=other_data)
    for name, weights in (("per_class", "table"), ("voting", "log_competency")):
        fens, _ = run_fens_and_collect_steps(make_context(federation), aggregator=name, rounds=9)
        other_fens, _ = run_fens_and_collect_steps(
            make_context(other_federation), aggregator=name, rounds=9
        )
        assert torch.equal(getattr(fens.rule, weights), getattr(other_fens.rule, weights))
