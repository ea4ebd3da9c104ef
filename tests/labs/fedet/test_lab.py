"""Fed-ET's lab: its views during and after a run, at both ends of the controls, with a client and a class chosen."""

from dataclasses import replace

import pytest
from lab_views import move_each_control_to_both_ends, read_texts, show_view

from fedlab_nb.labs import lab
from fedlab_nb.labs.fedet.rounds import AVERAGED

SYSTEM = "fedet"
EXTRA_SETTINGS = {"seeds": 2}
SHORT_SETTINGS = {
    "clients": 3,
    "epochs": 2,
    "one_shot_steps": 20,
    "server_steps": 3,
    "local_steps": 2,
}
VIEWS = ("expert", "dissent", "target", "rounds", "public", "traffic")


@pytest.fixture(scope="module")
def lab_after_rounds():
    """A panel after three rounds with two of three clients."""
    panel = lab("fedet", **SHORT_SETTINGS, rounds=3, per_round=2)
    panel.run(wait=True)
    yield panel
    panel.close()


def check_view(panel, name, *words):
    """Draw the view again, and check that it names its setting and has these words; returns its picture."""
    picture = show_view(panel, name, "digits, α = 0.1, 3 clients")
    assert all(word in read_texts(picture) for word in words), read_texts(picture)
    return picture


def find_view(panel, name):
    return panel.lab_views[name]


# Slow because it draws every view at both ends of every control, on two panels.
@pytest.mark.slow
def test_every_view_after_one_round_and_after_several(finished_lab, lab_after_rounds):
    move_each_control_to_both_ends(finished_lab, VIEWS)
    move_each_control_to_both_ends(lab_after_rounds, VIEWS)


@pytest.mark.slow
def test_expert_follows_its_controls(finished_lab):
    view = find_view(finished_lab, "expert")
    outcome = finished_lab.state("expert").outcome
    first = check_view(finished_lab, "expert", "Test sample 0:", "it is")
    assert (
        finished_lab.set("expert", at=5).sentence
        == check_view(finished_lab, "expert", "Test sample 5:").sentence
        != first.sentence
    )
    view.rule.value = "uniform"
    assert {row["weight ω"] for row in check_view(finished_lab, "expert").table[:3]} == {"0.333"}
    assert view.heat.disabled
    flat = finished_lab.set("expert", rule="softmax", heat=100).table[:3]
    # So hot a softmax leaves hardly a difference.
    assert not view.heat.disabled and all(float(row["σ²"]) < 0.01 for row in flat)
    view.kind.value = "public"
    check_view(finished_lab, "expert", "Public sample")
    assert view.at.max == outcome.report.logits.shape[1] - 1 == 199
    view.kind.value = "wrong"
    check_view(finished_lab, "expert", "wrong, it is")
    view.kind.value, view.heat.value, view.at.value = "all", 1, 0


@pytest.mark.slow
def test_the_expert_starts_with_the_runs_own_weights_and_judges_all_test_samples(open_lab):
    panel = open_lab(
        weighting="logit-variance",
        temperature=5.0,
        normalise="dissenters-or-uniform",
        epochs=1,
        methods=[],
    )
    panel.run(wait=True)
    right = panel.outcomes[0].report.consensus_accuracy[-1]
    check_view(
        panel,
        "expert",
        f"the consensus of these weights gets {100 * right:.0f} % right, and in effect",
    )
    assert find_view(panel, "expert").rule.value == "logit-variance"
    assert find_view(panel, "expert").heat.value == 5
    check_view(panel, "target", "λ_div = 0.05:")


@pytest.mark.slow
def test_views_are_drawn_while_the_method_runs(lab_after_rounds):
    """A run that goes on is a report without an outcome."""
    sentences = {
        "expert": "Public sample 0: the consensus is",
        "target": "λ_div = 0.05",
        "rounds": "Round 3 of 3",
    }
    for name, words in sentences.items():
        view = find_view(lab_after_rounds, name)
        state = replace(lab_after_rounds.state(name), outcome=None)
        assert view.is_ready(state)
        view.adapt(state)
        assert words in view.draw(state).sentence


# Takes its time as the first test of its file: it waits for a run of three rounds.
def test_rounds_describes_the_round_that_is_marked(lab_after_rounds):
    view = find_view(lab_after_rounds, "rounds")
    check_view(lab_after_rounds, "rounds", "Round 3 of 3: large")
    assert view.round.max == view.play.max == 3
    view.round.value = 1
    check_view(lab_after_rounds, "rounds", "Round 1 of 3: large")
    view.round.value = 3
    before = lab_after_rounds.state("rounds").report.small_before
    assert check_view(lab_after_rounds, "rounds").table[2][AVERAGED] == f"{100 * before[2]:.0f} %"


@pytest.mark.slow
def test_other_public_data(open_lab, monkeypatch):
    monkeypatch.setattr("fedlab_nb.panels.views.SOON", 0)  # nothing begins by itself
    panel = open_lab(clients=2, methods=[])
    panel.run(wait=True)
    assert [row["samples"] for row in panel.set("public", vary="size").table] == [20, 50, 100, 200]
    assert "Stored" in panel.views["public"].caption.value
    panel.set("public", vary="source")
    picture = panel.work("public")
    assert not panel.error and [row["public data"] for row in picture.table] == [
        "held-out part", "half the classes", "glyphs", "noise",
    ]  # fmt: skip
    panel.set("public", vary="size")
    sizes = panel.work("public")
    assert [row["samples"] for row in sizes.table] == [20, 50, 100, 200]


@pytest.mark.slow
def test_fedavg_beside_it(open_lab):
    panel = open_lab(rounds=2, methods=[])
    panel.run(wait=True)
    panel.set("traffic", goal=0.2)
    picture = panel.work("traffic")
    assert not panel.error and [row["method"] for row in picture.table] == [
        "Fed-ET", "FedAvg, large (mlp:256)", "FedAvg, smallest (mlp:16)",
    ]  # fmt: skip
    small = [2850, 4538, 8682]  # each with its common head
    assert picture.table[0]["numbers in all"] == f"{2 * 2 * sum(small) / 1000:.3g} k"
    assert picture.table[2]["numbers in all"] == f"{2 * 2 * 3 * 1266 / 1000:.3g} k"
