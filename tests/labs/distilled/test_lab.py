"""The lab of distilled data without a kernel, on short real runs."""

from types import SimpleNamespace

import numpy as np
import pytest
from lab_views import show_sentence

from fedlab_nb.labs.distilled.budget import (
    PER_CLASS,
    ImageBudgetResult,
    draw_accuracy_against_image_budget,
)
from fedlab_nb.labs.distilled.sent_images import describe_exact_copies_among_sent
from fedlab_nb.plots import format_count_and_noun, render_picture_png

SYSTEM = "distilled"
SHORT_SETTINGS = {"clients": 3, "epochs": 2, "methods": []}


# ------------------------------------------------------------------------------------------------ the panel


def test_after_a_run_the_images_and_the_classes_of_the_chosen_client_are_shown(open_lab):
    panel = open_lab(**{"distilled.images": "random", "distilled.per_class": 2})
    panel.run(wait=True)
    outcome = panel.state("sent").outcome
    assert show_sentence(panel, "sent").startswith("Client A sends ")
    assert all(row["its own"] == "yes" for row in panel.show("sent").table)
    class_counts = (outcome.label_counts > 0).sum(1)
    panel.views.client.value = 2
    assert show_sentence(panel, "sent").startswith(
        f"Client C sends {outcome.report.counts[2].sum()} images"
    )
    assert f"images of {class_counts[2]} classes" in show_sentence(panel, "sent")
    label = int(np.flatnonzero(outcome.report.counts[2])[-1])
    panel.views.class_index.value = label
    assert (
        format_count_and_noun(int(outcome.report.counts[2, label]), "pair")
        in panel.show("sent").alt
    )


@pytest.mark.slow
def test_the_button_tries_several_numbers_of_images(open_lab):
    panel = open_lab(methods=["fedavg"])
    panel.run(wait=True)
    panel.show("budget")
    panel.work("budget")
    assert panel.error == "" and panel.status == "done"
    text = show_sentence(panel, "budget")
    assert text.startswith("With 3 per class") and "FedAvg, one round: " in text
    assert set(panel.show("budget").table[0]) == {"method", *(f"m_c = {m}" for m in PER_CLASS)}
    panel.lab_views["budget"].per_class.value = 10
    assert show_sentence(panel, "budget").startswith("With 10 per class")


@pytest.mark.slow
def test_results_of_the_button_are_older_once_the_controls_have_moved(open_lab):
    """Its caption names its own setting, and not the run's; the run's methods stand beside their own setting alone."""
    panel = open_lab(methods=["fedavg"], alpha=0.1)
    panel.run(wait=True)
    panel.show("budget")
    panel.work("budget")
    view = panel.views["budget"]
    assert "α = 0.1" in view.caption.value and "moved" not in view.caption.value
    assert "fl-older" not in view.box._dom_classes
    panel.controls.alpha.value = 0.5
    panel.show("budget")
    assert "α = 0.1" in view.caption.value
    assert "the controls have moved: press “Try 1 to 10 per class”" in view.caption.value
    assert "fl-older" in view.box._dom_classes
    panel.work("budget")
    assert "α = 0.5" in view.caption.value and "moved" not in view.caption.value
    assert "fl-older" not in view.box._dom_classes
    assert "FedAvg" not in show_sentence(panel, "budget", "α = 0.5")
    panel.run(wait=True)
    assert "FedAvg, one round: " in show_sentence(panel, "budget", "α = 0.5")


def test_bytes_and_accuracy_of_each_number_of_images():
    points = {
        1: ImageBudgetResult(1000, {0: 0.8}, {0: 0.79}),
        3: ImageBudgetResult(3000, {0: 0.9}, {0: 0.91}),
    }
    picture = draw_accuracy_against_image_budget(
        points,
        3,
        setting="here",
        results_by_other_method_title={"FENS": ImageBudgetResult(26280, {}, {0: 0.87})},
    )
    assert "FENS: 87 %, 26.3 kB" in picture.sentence and "correct on 91 %" in picture.sentence
    assert "at most 3 kB a client" in picture.sentence
    assert render_picture_png(picture).startswith(b"\x89PNG")
    rows = {row["method"]: row for row in picture.table}
    assert [rows["validation images"][f"m_c = {m}"].split()[0] for m in (1, 3)] == ["80.0", "90.0"]
    assert rows["test images"]["m_c = 3"].startswith("91") and "m_c = 1" not in rows["test images"]
    unknown = draw_accuracy_against_image_budget(
        {2: ImageBudgetResult(10, {}, {0: 0.5})},
        2,
        setting="here",
        results_by_other_method_title={},
    )
    assert [row["method"] for row in unknown.table] == ["test images"]


@pytest.mark.parametrize(
    ("copies", "says"), [(0, "none of them is"), (1, "one of them is"), (2, "2 of them are")]
)
def test_how_many_images_are_the_clients_own(copies, says):
    are_exact_copies = np.arange(3) < copies
    attack = SimpleNamespace(
        client=0, labels=np.array([4, 4, 7]), are_exact_copies=are_exact_copies
    )
    sentence = describe_exact_copies_among_sent(attack, "")
    end = f"sends 3 images of 2 classes, and {says} its own, pixel by pixel."
    assert sentence == f"Client A {end}"
