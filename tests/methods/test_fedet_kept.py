"""What Fed-ET keeps for its lab: logits of the last round, past models until they are measured, live frames."""

import pytest
import torch

from fedlab_nb.data import federate
from fedlab_nb.methods.context import Context
from fedlab_nb.methods.fedet import FedET
from fedlab_nb.methods.parts import fedet_model
from fedlab_nb.methods.parts.consensus import consensus
from fedlab_nb.training import Recipe

QUICK = {"one_shot_steps": 4, "server_steps": 3, "local_steps": 2, "server_width": 8}


def federation():
    return federate("digits", alpha=0.5, clients=4, seed=0)


def context(epochs=1):
    kinds = [("mlp", (1, 8, 8), 10, 8)] * 4
    return Context(federation(), architectures=kinds, recipe=Recipe(epochs=epochs), seed=0)


def finish(run):
    progress = []
    while True:
        try:
            progress.append(next(run))
        except StopIteration as end:
            return end.value, progress


def run(ctx=None, **values):
    return finish(FedET(**{**QUICK, **values}).run(ctx or context()))[0]


def test_what_is_kept_for_the_lesson():
    ctx = context()
    out = run(ctx, rounds=2, per_round=3)
    arrays = out.artefacts
    assert arrays["chosen"].shape == (2, 3) and arrays["loss"].shape == (2, 3) and arrays["dissent"].shape == (2,)
    assert arrays["members"].tolist() == arrays["chosen"][-1].tolist()
    x = torch.as_tensor(arrays["samples"])
    assert arrays["logits"].shape == (3, 200, 10)
    torch.testing.assert_close(torch.as_tensor(arrays["logits"]), out.clients.logits(x))
    torch.testing.assert_close(torch.as_tensor(arrays["student"]), out.logits(x))
    assert 1 <= out.numbers["effective_clients"] <= 3 and 0 <= out.numbers["dissent"] <= 1
    assert out.numbers["server"] == "mlp:8" and out.numbers["architectures"] == ["mlp:8"] * 4


def test_the_public_samples_that_are_kept_are_those_that_were_learnt_from():
    out = run(context(epochs=20), public="other-mix", public_size=60)
    labels = consensus(torch.as_tensor(out.artefacts["logits"])).labels
    assert len(labels) == len(out.artefacts["samples"]) == out.numbers["public_samples"] < 60
    assert len(labels.unique()) <= 5


def test_what_is_measured_when_it_has_ended():
    """By round: clients, consensus, small models before and after the head comes; then past models are let go."""
    data = federation().dataset
    x, y = data.x_test, data.y_test
    out = run(rounds=3)
    found = out.curves(x, y)
    assert found["shown_rounds"] == [1, 2, 3] and all(len(values) == 3 for values in found.values())
    last = {name: values[-1] for name, values in found.items()}
    votes = out.clients.logits(x)
    assert last["clients_accuracy"] == pytest.approx(float((votes.argmax(-1) == y).double().mean()))
    assert last["consensus_accuracy"] == pytest.approx(float((consensus(votes).labels == y).double().mean()))
    assert last["small_before"] == pytest.approx(out.small_before.logits(x).argmax(-1).eq(y).double().mean().item())
    assert last["small_after"] == pytest.approx(out.small.logits(x).argmax(-1).eq(y).double().mean().item())
    arrays = out.artefacts
    rows = torch.as_tensor(arrays["test_rows"])
    assert arrays["test_truth"].tolist() == y[rows].tolist() and len(rows) == len(x) == 360
    torch.testing.assert_close(torch.as_tensor(arrays["test_logits"]), votes[:, rows])
    assert out.curves(x, y) is found and not out._diary.frames


def test_large_models_of_past_rounds_are_not_kept(monkeypatch):
    monkeypatch.setattr(fedet_model, "KEPT", 1)
    data, out = federation().dataset, run(rounds=3)
    assert out.curves(data.x_test, data.y_test)["shown_rounds"] == [1]
    assert fedet_model.room(torch.zeros(50, 500, 100), 200) == 100
    assert fedet_model.room(torch.zeros(500, 500, 1000), 200) == 20
    assert fedet_model.room(torch.zeros(1, 7, 2), 200) == 7


@pytest.mark.parametrize("rounds", [1, 2])
def test_what_is_live(rounds):
    _, progress = finish(FedET(**QUICK, rounds=rounds).run(context()))
    shown = [p for p in progress if p.model is not None and p.phase in ("distillation", "rounds")]
    assert len(shown) >= rounds
    for p in shown:
        live = p.model.live
        assert live["logits"].shape == (4, 200, 10) and live["samples"].shape == (200, 1, 8, 8)
        assert live["student"].shape == (200, 10) and live["members"].tolist() == [0, 1, 2, 3]
        assert set(p.metrics) == {"dissent", "effective_clients"} | ({"round"} if rounds > 1 else set())
