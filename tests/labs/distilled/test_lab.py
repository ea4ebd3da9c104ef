"""The lab of distilled data without a kernel, on short real runs."""

import numpy as np
from lab_views import sentence_of

from fedlab_nb.labs.distilled.budget import PER_CLASS, Budget, draw_budgets
from fedlab_nb.plots import plural, png

SYSTEM = "distilled"
SHORT = {"clients": 3, "epochs": 2, "methods": []}


# ------------------------------------------------------------------------------------------------ the panel


def test_after_a_run_the_images_and_the_classes_of_the_chosen_client_are_shown(make):
    panel = make(**{"distilled.images": "random", "distilled.per_class": 2})
    panel.run(wait=True)
    outcome = panel.state("sent").outcome
    assert sentence_of(panel, "sent").startswith("Client A sends ")
    assert all(row["its own"] == "yes" for row in panel.show("sent").table)
    held = (outcome.label_counts > 0).sum(1)
    panel.views.client.value = 2
    assert sentence_of(panel, "sent").startswith(
        f"Client C sends {outcome.report.counts[2].sum()} images"
    )
    assert f"images of {held[2]} classes" in sentence_of(panel, "sent")
    label = int(np.flatnonzero(outcome.report.counts[2])[-1])
    panel.views.class_index.value = label
    assert plural(int(outcome.report.counts[2, label]), "pair") in panel.show("sent").alt


def test_the_button_tries_several_numbers_of_images(make):
    panel = make(methods=["fedavg"])
    panel.run(wait=True)
    panel.show("budget")
    panel.work("budget")
    assert panel.error == "" and panel.status == "done"
    text = sentence_of(panel, "budget")
    assert text.startswith("With 3 per class") and "FedAvg, one round: " in text
    assert set(panel.show("budget").table[0]) == {"method", *(f"m_c = {m}" for m in PER_CLASS)}
    panel.lab_views["budget"].per_class.value = 10
    assert sentence_of(panel, "budget").startswith("With 10 per class")


def test_bytes_and_accuracy_of_each_number_of_images():
    points = {1: Budget(1000, {0: 0.8}, {0: 0.79}), 3: Budget(3000, {0: 0.9}, {0: 0.91})}
    picture = draw_budgets(points, 3, setting="here", others={"FENS": Budget(26280, {}, {0: 0.87})})
    assert "FENS: 87 %, 26.3 kB" in picture.sentence and "correct on 91 %" in picture.sentence
    assert "at most 3 kB a client" in picture.sentence and png(picture).startswith(b"\x89PNG")
    rows = {row["method"]: row for row in picture.table}
    assert [rows["validation images"][f"m_c = {m}"].split()[0] for m in (1, 3)] == ["80.0", "90.0"]
    assert rows["test images"]["m_c = 3"].startswith("91") and "m_c = 1" not in rows["test images"]
    unknown = draw_budgets({2: Budget(10, {}, {0: 0.5})}, 2, setting="here", others={})
    assert [row["method"] for row in unknown.table] == ["test images"]
