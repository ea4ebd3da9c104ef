"""FENS' lab without a kernel, on short real runs: its views during and after a run, its controls at both ends."""

import pytest
from lab_views import choose_client_and_class, show_sentence, show_view

from fedlab_nb.comm import formulas
from fedlab_nb.data import load
from fedlab_nb.labs.fens.cost import measure_size_of_first_client_network
from fedlab_nb.labs.fens.sample import OneSampleView
from fedlab_nb.plots.words import format_client_letters

SYSTEM = "fens"
SHORT_SETTINGS = {"epochs": 2, "rounds": 4, "clients": 3, "seeds": 1, "methods": []}


# Slow because it draws every view after a whole run of FENS.
@pytest.mark.slow
def test_after_a_run_every_view_draws_and_marks_the_chosen_client_and_class(finished_lab):
    rows = {row["what"]: row for row in finished_lab.show("cost").table[:3]}
    measured = finished_lab.outcomes[0].report.bytes["measured"]
    assert rows["FENS"]["bytes of one client"] == measured
    choose_client_and_class(finished_lab, client=2)
    assert "client C counts most" in show_sentence(finished_lab, "trust")
    assert "Client C says" in show_sentence(finished_lab, "sample")
    choose_client_and_class(finished_lab, class_index=7)
    assert "for class 7" in show_sentence(finished_lab, "trust")
    assert "is a “7”: average says" in show_sentence(finished_lab, "sample")
    choose_client_and_class(finished_lab)


@pytest.mark.slow
def test_the_rounds_can_be_replayed(finished_lab):
    view = finished_lab.lab_views["trust"]
    assert list(view.round.options) == ["0", "1", "2", "3", "4"]
    assert view.play.max == 4
    finished_lab.show("trust")
    view.round.index = 0
    assert "round 0 of 4, every client counts the same" in show_sentence(finished_lab, "trust")
    view.round.index = 4
    assert "round 4 of 4" in show_sentence(finished_lab, "trust")
    view.table.value = True
    assert "What it adds" in finished_lab.show("trust").alt
    view.table.value = False


@pytest.mark.slow
def test_samples_can_be_leafed_through_kind_by_kind(finished_lab):
    view = finished_lab.lab_views["sample"]
    for kind in OneSampleView.KINDS:
        view.kind.value = kind
        show_sentence(finished_lab, "sample")  # the slider gets the number of these samples
        view.at.value = view.at.max
        count = view.at.max + 1
        assert f"Sample {count} of {count} ({kind})" in show_sentence(finished_lab, "sample")
    view.kind.value = "all"
    for row in (view.at.max, view.at.min):
        view.at.value = row
        text = show_sentence(finished_lab, "sample")
        assert text.startswith(f"Test sample {row} is a “")
        assert f"Sample {row + 1} of 360 (all)" in text


@pytest.mark.slow
def test_a_drawing_is_answered_as_the_same_test_sample(finished_lab):
    view = finished_lab.lab_views["sample"]
    data = load("digits")
    show_sentence(finished_lab, "sample")
    view.pen.value = True
    answers = []
    tables = []
    for x in data.x_test[:3]:
        ink = x.flatten().tolist()
        view.ink.value = ink
        view.ink.seen = ink
        tables.append(finished_lab.show("sample").table)
        answers.append(view.answer_text.value)
        assert "Your drawing: " in show_sentence(finished_lab, "sample")
    model = finished_lab.outcomes[0].model
    x = data.x_test[:3].to(finished_lab.outcomes[0].settings.device)
    shares = model.logits(x).softmax(1)
    logits = model.experts(x)  # [3, M, C]
    for i, (text, table) in enumerate(zip(answers, tables, strict=True)):
        label = int(shares[i].argmax())
        fens = next(row for row in table if row["who"] == "FENS")
        assert fens["says"] == f"“{label}”"
        assert fens[f"class {label}"] == f"{100 * float(shares[i].max()):.0f} %"
        client_labels = logits[i].argmax(1).tolist()
        assert [row["says"] for row in table[:3]] == [f"“{c}”" for c in client_labels]
        assert f"FENS says “{label}”" in text
        assert f"A “{client_labels[0]}”" in text
    view.ink.value = []
    assert show_sentence(finished_lab, "sample").startswith("Test sample")
    view.pen.value = False


@pytest.mark.slow
def test_the_table_grows_while_phase_2_runs(record_run):
    _, pictures = record_run("trust", clients=2, aggregator="nn", k=4, rounds=900)
    assert all("of 900" in picture.alt for picture in pictures)


@pytest.mark.slow
@pytest.mark.parametrize("aggregator", ["voting", "moe"])
def test_rules_without_a_table_of_weights(open_lab, aggregator):
    panel = open_lab(aggregator=aggregator)
    panel.run(wait=True)
    for name in ("trust", "sample", "cost"):
        show_sentence(panel, name)


@pytest.mark.slow
def test_a_forgotten_client_and_a_student_are_shown_as_they_are(open_lab):
    panel = open_lab(without=1, distil=True, distil_steps=40)
    panel.run(wait=True)
    choose_client_and_class(panel, client=1)
    assert "forgotten" in str(panel.show("trust").table)
    assert "client B" not in show_sentence(panel, "trust")
    choose_client_and_class(panel, client=2)
    report = panel.outcomes[0].report
    sentence = show_sentence(panel, "sample")
    assert "Client C says" in sentence
    assert "student says" in sentence
    for share in (panel.outcomes[0].accuracy, report.teacher_accuracy, report.agreement):
        assert f"{100 * share:.0f} %" in sentence


@pytest.mark.slow
def test_bytes_at_both_ends_of_the_controls(finished_lab):
    # d, plain, tensors of an MLP 64-64-32-10: 4096 + 2048 + 320 coded
    assert measure_size_of_first_client_network("auto", (1, 8, 8), 10) == (6570, 64 + 32 + 10, 3)
    finished_lab.set("cost", whose="the paper's", rounds=100)
    sentence = show_sentence(finished_lab, "cost")
    assert "100 rounds of FedAvg 100 times." in sentence
    assert "4.36× with the paper's network" in sentence
    rows = finished_lab.set("cost", rounds=1).table
    fens_rows = [row for row in rows if row["what"] == "FENS"]
    (paper,) = [row for row in fens_rows if row["network"] == "4.9 million"]
    formula = float(
        f"{formulas.compute_fens_bytes_relative_to_one_shot(4_932_344, 20, 8450, 500):.3g}"
    )
    assert paper["× one-shot"] == formula == 4.36
    finished_lab.set("cost", whose="as set here")


@pytest.mark.slow
def test_forgetting_one_client_and_each_in_turn(open_lab, monkeypatch):
    monkeypatch.setattr("fedlab_nb.panels.views.SOON", 0)  # nothing begins by itself
    panel = open_lab()
    panel.run(wait=True)
    assert panel.show("forget").sentence.startswith("Press")
    assert len(panel.work("forget").table) == 1 + 3
    view = panel.lab_views["forget"]
    for client in (0, 2):
        view.who.value = client
        start = f"Without client {format_client_letters(client)}, accuracy goes from"
        assert start in show_sentence(panel, "forget")
    panel.controls.clients.value = 2
    panel.run(wait=True)  # what the button found belongs to the run before
    assert view.who.value == view.EACH
    assert show_view(panel, "forget").sentence.startswith("Press")
    panel.set("forget", who=1)
    panel.views["forget"].button.click()
    panel.stop()
    assert panel.wait(20)
    assert panel.status == "stopped"
