"""FENS' lab without a kernel, on real but short runs: every view before, while and after, its controls at both ends."""

import pytest
from lab_views import drawn_live, look_at, picture_of, sentence_of

from fedlab_nb.comm import formulas
from fedlab_nb.labs.fens.cost import network
from fedlab_nb.labs.fens.sample import Sample
from fedlab_nb.labs.fens.vary import TRIES

SYSTEM = "fens"
SHORT = {"epochs": 2, "rounds": 4, "clients": 3, "seeds": 1, "methods": []}
OWN = ["trust", "sample", "vary", "forget", "cost"]


def test_after_a_run_every_view_draws_and_marks_the_chosen_client_and_class(ran):
    look_at(ran)
    for name in ("trust", "sample"):
        sentence_of(ran, name)
    of_a_client = {row["what"]: row for row in ran.show("cost").table[:3]}["FENS"]["bytes of one client"]
    assert of_a_client == ran.outcomes[0].report.bytes["measured"]
    look_at(ran, client=2)
    assert "client 2 counts most" in sentence_of(ran, "trust") and "Client 2 says" in sentence_of(ran, "sample")
    look_at(ran, klass=7)
    assert "for class 7" in sentence_of(ran, "trust") and "The truth is “7”" in sentence_of(ran, "sample")
    look_at(ran)


def test_the_rounds_can_be_replayed(ran):
    view = ran.lab_views["trust"]
    assert list(view.round.options) == ["0", "1", "2", "3", "4"] and view.play.max == 4
    ran.show("trust")
    view.round.index = 0
    assert "round 0 of 4 every client counts the same" in sentence_of(ran, "trust")
    view.round.index = 4
    assert "round 4 of 4" in sentence_of(ran, "trust")
    view.table.value = True
    assert "What it adds" in ran.show("trust").alt
    view.table.value = False


def test_samples_can_be_leafed_through_kind_by_kind(ran):
    view = ran.lab_views["sample"]
    for kind in Sample.KINDS:
        view.kind.value = kind
        sentence_of(ran, "sample")  # the slider fits itself to what there is
        view.at.value = view.at.max
        assert f", {view.at.max + 1} of {view.at.max + 1} ({kind})" in sentence_of(ran, "sample")
    view.kind.value = "all"
    for at in (view.at.max, view.at.min):
        view.at.value = at
        assert sentence_of(ran, "sample").startswith(f"Test sample {at}, {at + 1} of 360 (all)")


def test_the_table_grows_while_phase_2_runs(make, monkeypatch, tmp_path):
    monkeypatch.setenv("FEDLAB_NB_STORE", str(tmp_path))  # a remembered run has no while
    monkeypatch.setattr("fedlab_nb.panels.views.REDRAW", 0)
    panel = make(clients=2, aggregator="nn", k=4, rounds=900)
    assert all("of 900" in picture.alt for picture in drawn_live(panel, "trust"))


@pytest.mark.parametrize("aggregator", ["voting", "moe"])
def test_rules_without_a_table_of_weights(make, aggregator):
    panel = make(aggregator=aggregator)
    panel.run(wait=True)
    for name in ("trust", "sample", "cost"):
        sentence_of(panel, name)


def test_a_forgotten_client_and_a_student_are_shown_as_they_are(make):
    panel = make(without=1, distil=True, distil_steps=40)
    panel.run(wait=True)
    look_at(panel, client=1)
    assert "forgotten" in str(panel.show("trust").table) and "client 1" not in sentence_of(panel, "trust")
    look_at(panel, client=2)
    report, text = panel.outcomes[0].report, sentence_of(panel, "sample")
    assert "Client 2 says" in text and "student says" in text
    for share in (panel.outcomes[0].accuracy, report.teacher_accuracy, report.agreement):
        assert f"{100 * share:.0f} %" in text


def test_one_client_is_enough(make):
    panel = make(clients=1)
    panel.run(wait=True)
    for name in OWN:
        picture_of(panel, name)
    assert panel.work("forget").sentence.startswith("Press") and "others left" in panel.controls.error.value


def test_bytes_at_both_ends_of_the_controls(ran):
    # d, plain, tensors of an MLP 64-64-32-10: 4096 + 2048 + 320 coded
    assert network("auto", (1, 8, 8), 10) == (6570, 64 + 32 + 10, 3)
    view = ran.lab_views["cost"]
    ran.set("cost", whose="the paper's", rounds=view.rounds.max)
    assert "4.36× with the paper's network; 100 rounds of FedAvg cost 100×" in sentence_of(ran, "cost")
    rows = ran.set("cost", rounds=1).table
    there = [row for row in rows if row["network"] == "4.9 million" and row["what"] == "FENS"]
    assert there[0]["× one-shot"] == float(f"{formulas.fens_ratio(4_932_344, 20, 8450, 500):.3g}") == 4.36
    before = ran.set("cost", whose="as set here").sentence
    ran.controls.knobs["bits"].value = 2
    assert sentence_of(ran, "cost") != before
    ran.controls.knobs["bits"].value = 8


@pytest.mark.parametrize("what", ["holdout", "aggregator"])
def test_a_knob_at_several_values(make, what, monkeypatch):
    label, setting, values, ordered = TRIES[what]
    monkeypatch.setitem(TRIES, what, (label, setting, values[:2], ordered))
    panel = make(epochs=1)
    panel.lab_views["vary"].what.value = what
    assert panel.work("vary").sentence.startswith(f"{label}: on validation images (")
    assert panel.error == "" and panel.status == "done" and len(panel.show("vary").table) == 2
    panel.controls.knobs["rounds"].value = 3
    assert "the controls have moved" in picture_of(panel, "vary").sentence
    panel.lab_views["vary"].what.value = "rounds"
    assert picture_of(panel, "vary").sentence.startswith("Press")


def test_a_value_that_cannot_be_run_is_named_and_the_others_stay(make, monkeypatch):
    monkeypatch.setitem(TRIES, "bits", ("Bits", "fens.bits", (8, 12), True))
    panel = make()
    panel.lab_views["vary"].what.value = "bits"
    assert "Bits 12 failed: fens.bits is 12" in panel.work("vary").sentence
    monkeypatch.setitem(TRIES, "bits", ("Bits", "fens.bits", (12,), True))
    panel.work("vary")
    assert "fens.bits is 12" in panel.controls.error.value and panel.status == "error"


def test_forgetting_one_client_and_each_in_turn(make):
    panel = make()
    assert len(panel.work("forget").table) == 1 + 3
    view = panel.lab_views["forget"]
    for client in (0, 2):
        view.who.value = client
        assert f"Without client {client}, accuracy goes from" in sentence_of(panel, "forget")
    panel.controls.clients.value = 2
    assert view.who.value == view.EACH and "the controls have moved" in picture_of(panel, "forget").sentence


def test_the_work_of_a_view_can_be_stopped(make, monkeypatch):
    monkeypatch.setitem(TRIES, "rounds", ("Rounds", "fens.rounds", (5000, 6000), True))
    panel = make()
    panel.views.choose("vary")
    panel.lab_views["vary"].what.value = "rounds"
    panel.views["vary"].button.click()
    panel.stop()
    assert panel.wait(20) and panel.status == "stopped"
    assert picture_of(panel, "vary").sentence.startswith("Press")
