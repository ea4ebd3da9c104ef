"""What Fed-ET leaves behind: logits of the last round, past models until they are measured; and while it runs."""

import functools

import fedet_runs
import method_runs
import pytest
import torch
from fedet_runs import QUICK
from watched import watched

from fedlab_nb.data import federate
from fedlab_nb.methods.fedet import FedET
from fedlab_nb.methods.fedet import model as fedet_model
from fedlab_nb.methods.fedet.consensus import consensus
from fedlab_nb.methods.fedet.model import room


def federation():
    return federate("digits", alpha=0.5, clients=4, seed=0)


context = functools.partial(method_runs.context, clients=4, models=("mlp:8",), epochs=1)


def run(ctx=None, **values):
    return fedet_runs.run(ctx or context(), **values)


def test_what_a_run_leaves_behind():
    ctx = context()
    out = run(ctx, rounds=2, per_round=3)
    report = out.report
    assert type(report) is FedET.report
    assert report.chosen.shape == (2, 3) and report.loss.shape == (2, 3)
    assert report.members.tolist() == report.chosen[-1].tolist()
    x = torch.as_tensor(report.samples)
    assert report.logits.shape == (3, 200, 10)
    torch.testing.assert_close(torch.as_tensor(report.logits), out.last.clients.logits(x))
    torch.testing.assert_close(torch.as_tensor(report.student), out.logits(x))
    assert report.server == "mlp:8" and report.architectures == ["mlp:8"] * 4


def test_rounds_follow_each_other():
    """Dissent and effective clients of every round; the plain numbers are the last round's."""
    report = run(rounds=3, per_round=2, temperature=1.0).report
    vote = consensus(torch.as_tensor(report.logits))  # of all 200 public samples
    assert report.dissent_by_round.shape == report.effective_by_round.shape == (3,)
    assert report.dissent == report.dissent_by_round[-1] == pytest.approx(vote.dissent_fraction)
    assert report.effective_clients == report.effective_by_round[-1]
    assert report.effective_clients == pytest.approx(float(vote.effective_clients.mean()))
    assert 1 <= report.effective_clients <= 2 and 0 <= report.dissent <= 1
    one = run(rounds=1).report
    assert one.numbers()["dissent"] == one.dissent and "dissent_by_round" not in one.numbers()


def test_the_public_samples_of_the_report_are_those_that_were_learnt_from():
    report = run(context(epochs=20), public="other-mix", public_size=60).report
    labels = consensus(torch.as_tensor(report.logits)).labels
    assert len(labels) == len(report.samples) == report.public_samples < 60
    assert len(labels.unique()) <= 5


def test_what_is_measured_when_it_has_ended():
    """By round: clients, consensus, small models before and after the head comes; then past models are let go."""
    data = federation().dataset
    x, y = data.x_test, data.y_test
    out = run(rounds=3)
    assert out.report.shown_rounds is None
    report = out.measured(x, y)
    names = ("clients_accuracy", "consensus_accuracy", "small_before", "small_after")
    assert report.shown_rounds == [1, 2, 3] and all(len(getattr(report, name)) == 3 for name in names)
    votes = out.last.clients.logits(x)
    assert report.clients_accuracy[-1] == pytest.approx(float((votes.argmax(-1) == y).double().mean()))
    assert report.consensus_accuracy[-1] == pytest.approx(float((consensus(votes).labels == y).double().mean()))
    for name, models in (("small_before", out.last.before), ("small_after", out.last.after)):
        answers = models.logits(x).argmax(-1)
        assert getattr(report, name)[-1] == pytest.approx(answers.eq(y).double().mean().item())
    rows = torch.as_tensor(report.test_rows)
    assert report.test_truth.tolist() == y[rows].tolist() and len(rows) == len(x) == 360
    torch.testing.assert_close(torch.as_tensor(report.test_logits), votes[:, rows])
    torch.testing.assert_close(torch.as_tensor(report.test_student), out.logits(x[rows]))
    assert out.measured(x, y) is report and not out._past


def test_models_of_past_rounds_do_not_pile_up(monkeypatch):
    monkeypatch.setattr(fedet_model, "MOST", 1)
    data, out = federation().dataset, run(rounds=3)
    assert out.measured(data.x_test, data.y_test).shown_rounds == [1]
    assert room(torch.zeros(50, 500, 100), 200) == 100
    assert room(torch.zeros(500, 500, 1000), 200) == 20
    assert room(torch.zeros(1, 7, 2), 200) == 7


@pytest.mark.parametrize("rounds", [1, 2])
def test_what_a_running_method_shows(rounds):
    _, progress = watched(FedET(**QUICK, rounds=rounds).run(context()))
    shown = [p for p in progress if p.model is not None and p.phase in ("distillation", "rounds")]
    assert len(shown) >= rounds
    for p in shown:
        report = p.model.report
        assert report.logits.shape == (4, 200, 10) and report.samples.shape == (200, 1, 8, 8)
        assert report.members.tolist() == [0, 1, 2, 3]
        torch.testing.assert_close(torch.as_tensor(report.student), p.model.logits(torch.as_tensor(report.samples)))
        assert set(p.metrics) == {"dissent", "effective_clients"} | ({"round"} if rounds > 1 else set())
    heads = [p.model.report.filled() for p in progress if p.phase == "heads averaged"]
    assert len(heads) == (rounds if rounds > 1 else 0)
    assert not heads or (heads[0] == {} and len(heads[1]["chosen"]) == 1)  # before anybody was heard: nothing
