"""FENS' lab without a kernel, on real but short runs: every view before, while and after, its controls at both ends."""

import pytest
from lab_views import look_at, picture_of, sentence_of

from fedlab_nb.comm import formulas
from fedlab_nb.data import load
from fedlab_nb.labs.fens.cost import measure_network_size
from fedlab_nb.labs.fens.sample import OneSampleView
from fedlab_nb.plots.words import format_client_letters

SYSTEM = "fens"
SHORT = {"epochs": 2, "rounds": 4, "clients": 3, "seeds": 1, "methods": []}


# Slow because it draws every view after a whole run of FENS.
def test_after_a_run_every_view_draws_and_marks_the_chosen_client_and_class(ran):
    rows = {row["what"]: row for row in ran.show("cost").table[:3]}
    measured = ran.outcomes[0].report.bytes["measured"]
    assert rows["FENS"]["bytes of one client"] == measured
    look_at(ran, client=2)
    assert "client C counts most" in sentence_of(ran, "trust")
    assert "Client C says" in sentence_of(ran, "sample")
    look_at(ran, class_index=7)
    assert "for class 7" in sentence_of(ran, "trust")
    assert "is a “7”: average says" in sentence_of(ran, "sample")
    look_at(ran)


def test_the_rounds_can_be_replayed(ran):
    view = ran.lab_views["trust"]
    assert list(view.round.options) == ["0", "1", "2", "3", "4"]
    assert view.play.max == 4
    ran.show("trust")
    view.round.index = 0
    assert "round 0 of 4, every client counts the same" in sentence_of(ran, "trust")
    view.round.index = 4
    assert "round 4 of 4" in sentence_of(ran, "trust")
    view.table.value = True
    assert "What it adds" in ran.show("trust").alt
    view.table.value = False


def test_samples_can_be_leafed_through_kind_by_kind(ran):
    view = ran.lab_views["sample"]
    for kind in OneSampleView.KINDS:
        view.kind.value = kind
        sentence_of(ran, "sample")  # the slider fits itself to what there is
        view.at.value = view.at.max
        count = view.at.max + 1
        assert f"Sample {count} of {count} ({kind})" in sentence_of(ran, "sample")
    view.kind.value = "all"
    for place in (view.at.max, view.at.min):
        view.at.value = place
        text = sentence_of(ran, "sample")
        assert text.startswith(f"Test sample {place} is a “")
        assert f"Sample {place + 1} of 360 (all)" in text


def test_a_drawing_is_answered_as_the_same_test_sample(ran):
    view = ran.lab_views["sample"]
    data = load("digits")
    sentence_of(ran, "sample")
    view.pen.value = True
    texts = []
    tables = []
    for x in data.x_test[:3]:
        ink = x.flatten().tolist()
        view.ink.value = ink
        view.ink.seen = ink
        tables.append(ran.show("sample").table)
        texts.append(view.answer_text.value)
        assert "Your drawing: " in sentence_of(ran, "sample")
    model = ran.outcomes[0].model
    x = data.x_test[:3].to(ran.outcomes[0].settings.device)
    shares = model.logits(x).softmax(1)
    logits = model.experts(x)  # [3, M, C]
    for i, (text, table) in enumerate(zip(texts, tables, strict=True)):
        label = int(shares[i].argmax())
        fens = next(row for row in table if row["who"] == "FENS")
        assert fens["says"] == f"“{label}”"
        assert fens[f"class {label}"] == f"{100 * float(shares[i].max()):.0f} %"
        client_labels = logits[i].argmax(1).tolist()
        assert [row["says"] for row in table[:3]] == [f"“{c}”" for c in client_labels]
        assert f"FENS says “{label}”" in text
        assert f"A “{client_labels[0]}”" in text
    view.ink.value = []
    assert sentence_of(ran, "sample").startswith("Test sample")
    view.pen.value = False


@pytest.mark.slow
def test_the_table_grows_while_phase_2_runs(live):
    _, pictures = live("trust", clients=2, aggregator="nn", k=4, rounds=900)
    assert all("of 900" in picture.alt for picture in pictures)


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
    assert "forgotten" in str(panel.show("trust").table)
    assert "client B" not in sentence_of(panel, "trust")
    look_at(panel, client=2)
    report = panel.outcomes[0].report
    sentence = sentence_of(panel, "sample")
    assert "Client C says" in sentence
    assert "student says" in sentence
    for share in (panel.outcomes[0].accuracy, report.teacher_accuracy, report.agreement):
        assert f"{100 * share:.0f} %" in sentence


def test_bytes_at_both_ends_of_the_controls(ran):
    # d, plain, tensors of an MLP 64-64-32-10: 4096 + 2048 + 320 coded
    assert measure_network_size("auto", (1, 8, 8), 10) == (6570, 64 + 32 + 10, 3)
    ran.set("cost", whose="the paper's", rounds=100)
    sentence = sentence_of(ran, "cost")
    assert "100 rounds of FedAvg 100 times." in sentence
    assert "4.36× with the paper's network" in sentence
    rows = ran.set("cost", rounds=1).table
    fens_rows = [row for row in rows if row["what"] == "FENS"]
    (paper,) = [row for row in fens_rows if row["network"] == "4.9 million"]
    formula = float(
        f"{formulas.compute_fens_bytes_relative_to_one_shot(4_932_344, 20, 8450, 500):.3g}"
    )
    assert paper["× one-shot"] == formula == 4.36
    ran.set("cost", whose="as set here")


@pytest.mark.slow
def test_forgetting_one_client_and_each_in_turn(make, monkeypatch):
    monkeypatch.setattr("fedlab_nb.panels.views.SOON", 0)  # nothing begins by itself
    panel = make()
    panel.run(wait=True)
    assert panel.show("forget").sentence.startswith("Press")
    assert len(panel.work("forget").table) == 1 + 3
    view = panel.lab_views["forget"]
    for client in (0, 2):
        view.who.value = client
        start = f"Without client {format_client_letters(client)}, accuracy goes from"
        assert start in sentence_of(panel, "forget")
    panel.controls.clients.value = 2
    panel.run(wait=True)  # what the button found belongs to the run before
    assert view.who.value == view.EACH
    assert picture_of(panel, "forget").sentence.startswith("Press")
    panel.set("forget", who=1)
    panel.views["forget"].button.click()
    panel.stop()
    assert panel.wait(20)
    assert panel.status == "stopped"
