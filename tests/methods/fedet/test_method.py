"""Fed-ET as a method: one server step by hand, heads and bodies after a round, bytes, public samples, its report."""

import dataclasses
import functools

import byte_formulas
import fedet_runs
import method_runs
import pytest
import torch
import torch.nn.functional as F
from collected_steps import run_and_collect_steps
from fedet_runs import QUICK

from fedlab_nb.data import load
from fedlab_nb.errors import RunError
from fedlab_nb.methods.fedet import FedET
from fedlab_nb.methods.fedet import model as fedet_model
from fedlab_nb.methods.fedet.consensus import HEAD, compute_consensus, extract_head
from fedlab_nb.methods.fedet.model import count_samples_to_keep_in_report
from fedlab_nb.methods.parts import images as public
from fedlab_nb.models import copy_model_state
from fedlab_nb.training import Recipe

context = functools.partial(method_runs.make_context, clients=4, models=("mlp:8",), epochs=1)


def run(ctx=None, **values):
    return fedet_runs.run_short_fedet(ctx or context(), **values)


def record_uploads(ctx):
    """A list to which every payload of a client is added."""
    uploads = []
    real_up = ctx.link.up

    def up(k, payload, phase):
        uploads.append(payload)
        return real_up(k, payload, phase=phase)

    ctx.link.up = up
    return uploads


def list_consensus_labels(out):
    """The classes that the consensus gives to the public samples."""
    return set(compute_consensus(torch.as_tensor(out.report.logits)).labels.tolist())


def test_one_server_step_by_hand():
    """A step on the whole public set is a gradient step on a cross-entropy with soft labels (F6 in test_consensus)."""
    remembered = []
    ctx = context(dtype=torch.float64, remember=remembered.append)
    step = {"one_shot_steps": 1, "server_batch": 200, "server_lr": 1.0, "server_momentum": 0}
    method = FedET(**step, diversity=0.5, temperature=1.0, server_width=8)
    out, _ = run_and_collect_steps(method.run(ctx))
    start = method._make_network(ctx, ("mlp", (1, 8, 8), 10, 8), "server")
    p = remembered[0].logits(ctx.public).softmax(-1)
    weights = p.square().sum(-1) - 0.1
    weights = weights / weights.sum(0)
    y = torch.einsum("mb,mbn->bn", weights, p).argmax(-1)
    is_dissenter = p.argmax(-1) != y
    target = F.one_hot(y, 10) + 0.5 * torch.einsum("mb,mbn->bn", weights * is_dissenter, p)
    loss = -(target * start(ctx.public).log_softmax(-1)).sum(-1).mean()
    for (name, before), gradient in zip(
        start.named_parameters(), torch.autograd.grad(loss, list(start.parameters())), strict=True
    ):
        torch.testing.assert_close(out.module.get_parameter(name), before - gradient)


def test_bytes_of_one_shot_by_hand():
    ctx = context(dtype=torch.float32)
    out = run(ctx)
    n = 64 * 8 + 8 + 8 * 4 + 4 + 4 * 10 + 10
    assert ctx.link.ledger.by_phase() == {
        "initial model": (0, 4 * 4 * n),
        "local models": (4 * 4 * n, 0),
    }
    assert ctx.link.ledger.total == byte_formulas.count_fedet_bytes_of_all_clients([n] * 4)
    assert out.report.numbers_sent == byte_formulas.count_fedet_numbers_of_all_clients([n] * 4)
    assert ctx.server_steps == 1


@pytest.mark.parametrize(("options", "directions"), [({}, 1), ({"transfer": "both"}, 2)])
def test_reported_numbers_are_those_that_are_sent(options, directions):
    """Clients with initial weights of their own receive no model unless heads are transferred."""
    ctx = context(dtype=torch.float32, init="different")
    out = run(ctx, **options)
    total = ctx.link.ledger.total
    assert out.report.numbers_sent == total / 4
    assert (ctx.link.ledger.down == 0) == (directions == 1)


def test_bytes_of_rounds_are_the_models_of_the_chosen_clients_both_ways():
    ctx = context(clients=5, models=("mlp:8", "lenet5:2", "mlp:16"))
    out = run(ctx, rounds=3, per_round=2)
    chosen = out.report.chosen
    assert chosen.shape == (3, 2)
    sizes = dict(zip(["mlp:8", "lenet5:2", "mlp:16"], out.report.small_parameters, strict=True))
    models = [sizes[out.report.architectures[k]] for k in chosen.flatten()]
    assert out.report.numbers_sent == byte_formulas.count_fedet_numbers_of_all_clients(models)
    (phase,) = ctx.link.ledger.by_phase().items()
    assert phase == ("small models", (4 * sum(models), 4 * sum(models)))
    for k, (up, down) in ctx.link.ledger.by_client().items():
        assert up == down == 4 * sizes[out.report.architectures[k]] * (chosen == k).sum()


@pytest.mark.parametrize("head", ["mlp", "last-linear"])
def test_after_a_round_heads_are_the_servers_and_bodies_the_mean(head):
    ctx = context(models=("mlp:8", "lenet5:2"), clients=4)
    uploads = record_uploads(ctx)
    out = run(ctx, rounds=1, transfer="both", head=head)
    server = extract_head(copy_model_state(out.module))
    for kind, before, after in zip(
        (0, 1), out.last.before.modules, out.last.after.modules, strict=True
    ):
        states = uploads[kind::2]
        mean = {name: (states[0][name] + states[1][name]) / 2 for name in states[0]}
        for name, tensor in copy_model_state(before).items():
            torch.testing.assert_close(tensor, mean[name])
        for name, tensor in copy_model_state(after).items():
            torch.testing.assert_close(tensor, server[name] if name in server else mean[name])
    assert any(name.startswith(HEAD) for name in server)


def test_uploaded_heads_are_averaged():
    """With hardly any training at the server, its head is the mean of the clients' heads."""
    ctx = context()
    uploads = record_uploads(ctx)
    out = run(ctx, transfer="up", one_shot_steps=1, server_lr=1e-9)
    for name, tensor in extract_head(copy_model_state(out.module)).items():
        torch.testing.assert_close(
            tensor, sum(state[name] for state in uploads) / 4, atol=1e-6, rtol=0
        )
    without_transfer = run(context(), transfer="none", one_shot_steps=1)
    # Where no head is transferred, networks have no common head.
    assert "hidden.0.weight" not in copy_model_state(without_transfer.module)


@pytest.mark.parametrize(
    "transfer, up, down", [("up", 1, 0), ("down", 0, 1), ("none", 0, 0), ("auto", 1, 1)]
)
def test_transfer_of_heads_can_be_switched(transfer, up, down):
    out, progress = run_and_collect_steps(
        FedET(**QUICK, rounds=2, transfer=transfer).run(context())
    )
    assert sum(p.phase == "heads averaged" for p in progress) == 2 * up
    is_unchanged = True
    for before, after in zip(out.last.before.modules, out.last.after.modules, strict=True):
        for a, b in zip(
            copy_model_state(before).values(), copy_model_state(after).values(), strict=True
        ):
            is_unchanged = is_unchanged and torch.equal(a, b)
    assert is_unchanged == (not down)


def test_stored_clients_are_used_in_one_shot_runs_alone():
    stored = []
    run(context(remember=stored.append))
    assert len(stored) == 1
    for options in ({"rounds": 2}, {"transfer": "both"}):
        run(context(remember=stored.append), **options)
    assert len(stored) == 1
    run(
        context(remember=stored.append), pool="drawn"
    )  # with one architecture there is nothing to draw
    assert len(stored) == 2


@pytest.mark.slow
@pytest.mark.parametrize("source", ["held-out", "other-mix", "noise", "glyphs", "digits"])
def test_public_samples_come_from_the_chosen_source(source):
    out = run(context(epochs=20), public=source, public_size=40)
    if source == "other-mix":
        all_labels = list_consensus_labels(run(context(epochs=20), public_size=40))
        labels = list_consensus_labels(out)
        assert labels < all_labels
        assert len(labels) == (len(all_labels) + 1) // 2
    else:
        assert out.report.public_samples == 40


def test_of_another_data_set_only_public_samples_are_read(monkeypatch):
    class Foreign:
        """A data set of which anything but the public samples raises."""

        x_public = load("digits").x_public

        def __getattr__(self, name):
            raise AssertionError(f"the server read {name}")

    monkeypatch.setattr(public, "load", lambda name: Foreign())
    assert run(public="glyphs", public_size=30).report.public_samples == 30


def test_noise_replaces_missing_public_samples_also_for_feature_rows():
    without_public = dataclasses.replace(load("digits"), x_public=None, digest="bare")
    x, test = without_public.x_train.flatten(1), without_public.x_test.flatten(1)
    rows = dataclasses.replace(without_public, x_train=x, x_test=test, x_public=test, digest="rows")
    assert (
        run(context(data=without_public), public="noise", public_size=9).report.public_samples == 9
    )
    model = run(context(data=rows), public="noise", public_size=9)
    assert model.logits(rows.x_test).shape == (360, 10)


def test_divergence_is_an_error_with_the_learning_rate():
    with pytest.raises(RunError, match="server_lr=100"):
        run(server_lr=100.0, diversity=1e30, one_shot_steps=30)
    diverging = context(recipe=Recipe(epochs=1, lr=100.0, weight_decay=10))
    with pytest.raises(RunError, match="Local training of client"):
        run(diverging, rounds=3, local_steps=40)


@pytest.mark.slow
def test_progress_shows_models_and_reports():
    ctx = context()
    out, progress = run_and_collect_steps(FedET(**{**QUICK, "one_shot_steps": 60}).run(ctx))
    with_model = [
        step for step in progress if step.phase == "distillation" and step.model is not None
    ]
    assert [step.done for step in with_model] == list(range(3, 61, 3))
    assert progress[-1].done == progress[-1].total == 60
    x = ctx.public[:5]
    assert torch.equal(with_model[-1].model.logits(x), out.logits(x))
    assert not torch.equal(with_model[0].model.logits(x), out.logits(x))
    report = with_model[0].model.report
    assert report.members.tolist() == [0, 1, 2, 3] and report.logits.shape == (4, 200, 10)
    student = with_model[0].model.logits(torch.as_tensor(report.samples))
    torch.testing.assert_close(torch.as_tensor(report.student), student)
    assert set(with_model[0].metrics) == {"dissent", "effective_clients"}
    _, progress = run_and_collect_steps(FedET(**QUICK, rounds=40, per_round=1).run(context()))
    with_model = [step for step in progress if step.model is not None and step.phase == "rounds"]
    assert 15 <= len(with_model) <= 25
    assert set(with_model[0].metrics) == {"round", "dissent", "effective_clients"}
    _, steps_of_two_rounds = run_and_collect_steps(FedET(**QUICK, rounds=2).run(context()))
    heads = [
        step.model.report.get_fields_that_are_not_none()
        for step in steps_of_two_rounds
        if step.phase == "heads averaged"
    ]
    assert (
        heads[0] == {} and len(heads[1]["chosen"]) > 0
    )  # before the first vote the report is empty
    assert all(a.done <= b.done for a, b in zip(progress, progress[1:], strict=False))


# ---------------------------------------------------------------------------------------------------------- the report
# Dissent and effective clients by round, the accuracies of all rounds, and how many models are stored.


def test_the_report_has_dissent_and_effective_clients_by_round():
    """Dissent and effective clients of every round; the plain numbers are the last round's."""
    report = run(rounds=3, per_round=2, temperature=1.0).report
    vote = compute_consensus(torch.as_tensor(report.logits))  # of all 200 public samples
    assert report.dissent_by_round.shape == (3,)
    assert report.dissent == report.dissent_by_round[-1] == pytest.approx(vote.dissent_fraction)
    assert report.effective_clients == pytest.approx(float(vote.effective_clients.mean()))
    assert 1 <= report.effective_clients <= 2 and 0 <= report.dissent <= 1
    one_round = run(rounds=1).report
    assert (
        one_round.get_plain_fields()["dissent"] == one_round.dissent
        and "dissent_by_round" not in one_round.get_plain_fields()
    )


def test_final_measurements_cover_all_rounds():
    """By round: clients, consensus, small models before and after they receive the head; then models are dropped."""
    data, out = load("digits"), run(rounds=3)
    x, y = data.x_test, data.y_test
    assert out.report.shown_rounds is None
    report = out.complete_report_on_test_samples(x, y)
    names = ("clients_accuracy", "consensus_accuracy", "small_before", "small_after")
    assert report.shown_rounds == [1, 2, 3] and all(
        len(getattr(report, name)) == 3 for name in names
    )
    votes = out.last.clients.logits(x)
    assert report.clients_accuracy[-1] == pytest.approx(
        float((votes.argmax(-1) == y).double().mean())
    )
    assert report.consensus_accuracy[-1] == pytest.approx(
        float((compute_consensus(votes).labels == y).double().mean())
    )
    for name, models in (("small_before", out.last.before), ("small_after", out.last.after)):
        answers = models.logits(x).argmax(-1)
        assert getattr(report, name)[-1] == pytest.approx(answers.eq(y).double().mean().item())
    rows = torch.as_tensor(report.test_rows)
    assert report.test_truth.tolist() == y[rows].tolist() and len(rows) == len(x) == 360
    torch.testing.assert_close(torch.as_tensor(report.test_logits), votes[:, rows])
    torch.testing.assert_close(torch.as_tensor(report.test_student), out.logits(x[rows]))
    assert out.complete_report_on_test_samples(x, y) is report and not out._past


def test_the_number_of_stored_past_models_is_bounded(monkeypatch):
    monkeypatch.setattr(fedet_model, "MOST", 1)
    data, out = load("digits"), run(rounds=3)
    assert out.complete_report_on_test_samples(data.x_test, data.y_test).shown_rounds == [1]
    for shape, rows in (((50, 500, 100), 100), ((500, 500, 1000), 20), ((1, 7, 2), 7)):
        assert count_samples_to_keep_in_report(torch.zeros(1, 1, 1).expand(shape), 200) == rows
