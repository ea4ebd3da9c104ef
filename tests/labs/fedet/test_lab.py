"""Fed-ET's lab: its views before, during and after a run, at the ends of the controls, client and class chosen."""

from dataclasses import replace

import pytest
from lab_views import ends, look_at, picture_of

from fedlab_nb.labs import lab
from fedlab_nb.labs.fedet.rounds import AVERAGED

SYSTEM, RAN = "fedet", {"seeds": 2}
SHORT = {"clients": 3, "epochs": 2, "one_shot_steps": 20, "server_steps": 3, "local_steps": 2}
VIEWS = ("expert", "temperature", "dissent", "target", "rounds", "public", "traffic")


@pytest.fixture(scope="module")
def looped():
    """A panel after three rounds with two of three clients."""
    panel = lab("fedet", **SHORT, rounds=3, per_round=2)
    panel.run(wait=True)
    yield panel
    panel.close()


def fresh(panel, name, *words):
    """The view's picture, drawn anew; it says where it was made, and `words`."""
    picture = picture_of(panel, name, "digits, α = 0.1, 3 clients")
    assert all(word in picture.sentence for word in words), picture.sentence
    return picture


def own(panel, name):
    return panel.lab_views[name]


def test_every_control_at_both_ends(ran, looped):
    for panel, names in ((ran, set(VIEWS) - {"rounds"}), (looped, {"rounds"})):
        for name in names:
            panel.views.choose(name)
            for widget in (w for w in own(panel, name).controls if hasattr(w, "value")):
                start = widget.value
                for end in ends(widget):
                    widget.value = end
                    fresh(panel, name)
                widget.value = start


def test_client_and_class_are_marked_after_one_round_and_after_several(ran, looped):
    for panel in (ran, looped):
        look_at(panel, client=2, klass=9)
        said = {name: fresh(panel, name).sentence for name in VIEWS}
        assert "Client 2" in said["expert"] or panel is looped  # which has two of the clients
        assert "test samples of class 9" in said["dissent"]
        look_at(panel)


def test_expert_follows_its_controls(ran):
    view, outcome = own(ran, "expert"), ran.state("expert").outcome
    first = fresh(ran, "expert", "Test sample 0:", "it is")
    assert ran.set("expert", at=5).sentence == fresh(ran, "expert", "Test sample 5:").sentence != first.sentence
    view.rule.value = "uniform"
    assert {row["weight ω"] for row in fresh(ran, "expert").table[:3]} == {"0.333"} and view.heat.disabled
    flat = ran.set("expert", rule="softmax", heat=100).table[:3]
    assert not view.heat.disabled and all(float(row["σ²"]) < 0.01 for row in flat)  # hardly a difference is left
    view.kind.value = "public"
    fresh(ran, "expert", "Public sample")
    assert view.at.max == outcome.report.logits.shape[1] - 1 == 199
    view.kind.value = "wrong"
    fresh(ran, "expert", "wrong, it is")
    view.kind.value, view.heat.value, view.at.value = "all", 1, 0


def test_expert_and_target_start_with_the_runs_own_options(make):
    rule = {"weighting": "logit-variance", "temperature": 5.0, "diversity": 0.7, "normalise": "dissenters-or-uniform"}
    panel = make(**rule, epochs=1, methods=[])
    panel.run(wait=True)
    fresh(panel, "expert")
    assert own(panel, "expert").rule.value == "logit-variance" and own(panel, "expert").heat.value == 5
    view = own(panel, "target")
    fresh(panel, "target", "λ_div = 0.7:")
    assert view.strength.value == 0.7 and view.over.value == "dissenters"
    view.strength.value = 2.0  # stays where it is put, until the next run
    fresh(panel, "target", "λ_div = 2:")
    panel.controls.knobs["diversity"].value = 5.0
    panel.run(wait=True)
    fresh(panel, "target", "λ_div = 5:")


def test_what_is_shown_while_it_runs(looped):
    """A run that goes on is a report without an outcome."""
    said = {"expert": "Public sample 0: the consensus is", "target": "λ_div = 0.05", "rounds": "Round 3 of 3"}
    for name, words in said.items():
        view, state = own(looped, name), replace(looped.state(name), outcome=None)
        assert view.is_ready(state)
        view.adapt(state)
        assert words in view.draw(state).sentence


def test_rounds_tells_of_the_round_that_is_marked(looped):
    view = own(looped, "rounds")
    fresh(looped, "rounds", "Round 3 of 3: large")
    assert view.round.max == view.play.max == 3
    view.round.value = 1
    fresh(looped, "rounds", "Round 1 of 3: large")
    view.round.value = 3
    before = looped.state("rounds").report.small_before
    assert fresh(looped, "rounds").table[2][AVERAGED] == f"{100 * before[2]:.0f} %"


def test_other_public_data(make):
    panel = make(clients=2, methods=[])
    panel.run(wait=True)
    assert "then “Try them”" in panel.show("public").sentence
    picture = panel.work("public")
    assert not panel.error and [row["public data"] for row in picture.table] == [
        "held-out part", "half the classes", "glyphs", "noise",
    ]  # fmt: skip
    panel.set("public", vary="size")
    sizes = panel.work("public")
    assert [row["samples"] for row in sizes.table] == [20, 50, 100, 200]


def test_fedavg_beside_it(make):
    panel = make(rounds=2, methods=[])
    panel.run(wait=True)
    panel.set("traffic", goal=0.2)
    picture = panel.work("traffic")
    assert not panel.error and [row["method"] for row in picture.table] == [
        "Fed-ET", "FedAvg, large (mlp:256)", "FedAvg, smallest (mlp:16)",
    ]  # fmt: skip
    small = [2850, 4538, 8682]  # each with its common head
    assert picture.table[0]["numbers in all"] == f"{2 * 2 * sum(small) / 1000:.3g} k"
    assert picture.table[2]["numbers in all"] == f"{2 * 2 * 3 * 1266 / 1000:.3g} k"


def test_one_client_is_enough(make):
    panel = make(clients=1, epochs=1, methods=[])
    panel.run(wait=True)
    assert panel.status == "done" and not panel.error
    for name in ("expert", "temperature", "dissent", "target"):
        assert panel.show(name) is not None and not panel.error, name
