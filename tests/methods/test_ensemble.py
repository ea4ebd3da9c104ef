"""The ensemble: both plain means from one pass through the clients, and where comparisons show the other one."""

import pytest
import torch
from fens_runs import C, M, context, x_test

from fedlab_nb.cli import line
from fedlab_nb.course.all_together import lesson as comparison
from fedlab_nb.data import federate
from fedlab_nb.methods.ensemble import Ensemble, EnsembleReport
from fedlab_nb.panels.record import Row, Runs
from fedlab_nb.study import compare
from fedlab_nb.study.engine import study
from fedlab_nb.study.experiment import finished


@pytest.fixture(scope="module")
def federation():
    return federate("digits", alpha=0.1, clients=M, seed=0)


@pytest.mark.parametrize("rule", ["logits", "probabilities", "votes"])
def test_both_means_are_measured_from_one_pass(federation, rule, monkeypatch):
    model, x, y = (
        finished(Ensemble(rule=rule).run(context(federation))),
        x_test(federation).clone(),
        federation.dataset.y_test,
    )
    passes, logits = [], model.clients.logits
    monkeypatch.setattr(model.clients, "logits", lambda x: passes.append(len(x)) or logits(x))
    shares = model.measured(x, y).accuracy_by_rule
    answers = torch.stack([module(x) for module in model.clients.modules])  # [M, N, C]
    by_hand = {"logits": answers.mean(0), "probabilities": answers.softmax(-1).mean(0)}
    assert shares == {name: float((scores.argmax(1) == y).double().mean()) for name, scores in by_hand.items()}
    assert shares.get(rule, model.accuracy(x, y)) == model.accuracy(x, y)
    assert model.features(x).shape == (len(x), M * C) and passes == [len(x)]
    assert model.measured(x, y).others() == {f"mean of {name}": shares[name] for name in by_hand if name != rule}
    x.mul_(0)  # written to since: asked anew
    assert model.logits(x).shape == (len(x), C) and len(passes) == 2


def test_comparisons_show_the_other_mean():
    quick = {"dataset": "digits", "rule": "logits", "clients": 3, "epochs": 2, "seeds": 2, "alpha": 0.1}
    outcomes = compare(["ensemble", "fedavg"], **quick)
    first = outcomes[0]
    other = first.report.others()["mean of probabilities"]
    assert f"mean of probabilities {other:.1%}" in line(first) and "mean of" not in line(outcomes[1])
    assert "by the mean of probabilities" in comparison.price_list(outcomes).text
    row = Row(1, "ensemble", quick, 2, outcomes={o.settings.seed: o for o in outcomes if o.method == "ensemble"})
    own, beside = Runs((row,), 1).series(others=True)
    assert beside.name == "Ensemble (FedENS) (mean of probabilities)" and beside.accuracies[0] == other
    assert own.accuracies[0] == first.accuracy and len(Runs((row,), 1).series()) == 1
    table = study(["ensemble", "fedavg"], **quick).table("markdown")
    assert [text.split(" | ")[0] for text in table.splitlines()[2:]] == [
        "| ensemble", "| fedavg", "| ensemble, mean of probabilities",
    ]  # fmt: skip
    assert EnsembleReport().others() == {}
