"""The lab of distilled data without a kernel, on short real runs; the attack on numbers made by hand; its pictures."""

import numpy as np
import pytest
import torch
from lab_views import sentence_of

from fedlab_nb.labs.distilled.budget import PER_CLASS, Budget, budgets
from fedlab_nb.labs.distilled.sent import MOST, attack, neighbours, pairs
from fedlab_nb.plots import png
from fedlab_nb.studies import run

SYSTEM = "distilled"
SHORT = {"clients": 3, "epochs": 2, "methods": []}
OWN = ("sent", "budget")
DIGITS = [str(c) for c in range(10)]


# ------------------------------------------------------------------------------------------------ the panel


def test_after_a_run_the_images_and_the_classes_of_the_chosen_client_are_shown(make):
    panel = make(**{"distilled.images": "random", "distilled.per_class": 2})
    panel.run(wait=True)
    outcome = panel.state("sent").outcome
    assert sentence_of(panel, "sent").startswith("Client 0 sends ")
    assert sentence_of(panel, "sent").endswith("Each of them is one of its own images, pixel by pixel.")
    held = (outcome.label_counts > 0).sum(1)
    panel.views.client.value = 2
    assert sentence_of(panel, "sent").startswith(f"Client 2 sends {outcome.report.counts[2].sum()} images")
    assert f"images of {held[2]} classes" in sentence_of(panel, "sent")
    klass = int(np.flatnonzero(outcome.report.counts[2])[-1])
    panel.views.klass.value = klass
    assert panel.show("sent").alt.startswith("2 pairs") or outcome.report.counts[2, klass] < 2


def test_the_button_tries_several_numbers_of_images(make):
    panel = make(methods=["fedavg"])
    panel.run(wait=True)
    panel.show("budget")
    panel.work("budget")
    assert panel.error == "" and panel.status == "done"
    text = sentence_of(panel, "budget")
    assert text.startswith("With 3 per class") and "Beside it: FedAvg, one round" in text
    table = panel.show("budget").table
    assert [row["images per class"] for row in table] == list(PER_CLASS)
    sizes = [row["bytes of one client"] for row in table]
    assert sizes == sorted(sizes) and sizes[0] % 260 == 0
    panel.lab_views["budget"].per_class.value = 10
    assert sentence_of(panel, "budget").startswith("With 10 per class")


# ------------------------------------------------------------------------------------------------ the attack
def test_the_nearest_of_the_clients_own_images():
    own = np.zeros((3, 1, 2, 2), dtype=np.float32)
    own[1], own[2] = 0.5, 1.0
    sent = np.stack([own[1], np.full((1, 2, 2), 0.9, dtype=np.float32)])
    of = neighbours(sent, np.array([4, 7]), own, np.array([1, 4, 7]), 2)
    np.testing.assert_allclose(of.distance, [0, 0.1], atol=1e-7)  # root mean square: each pixel is 0.1 away
    assert of.nearest_labels.tolist() == [4, 7] and of.copies.tolist() == [True, False]
    assert of.typical == pytest.approx(0.5) and of.closer == 2
    assert np.isnan(neighbours(sent, np.array([4, 7]), own[:1], np.array([1]), 0).typical)


@pytest.mark.parametrize(("images", "m", "same"), [("random", 3, True), ("kmeans", 500, True), ("kmeans", 1, False)])
def test_the_attack_on_a_run_has_distance_zero_where_images_are_the_clients_own(images, m, same):
    outcome = run("distilled", clients=3, alpha=0.5, **{"distilled.images": images, "distilled.per_class": m})
    attacks = attack(outcome)
    assert [of.client for of in attacks] == [0, 1, 2]
    for of in attacks:
        own = {
            image.tobytes()
            for image in outcome.federation().dataset.x_train[outcome.federation().shards[of.client]].numpy()
        }
        assert {image.tobytes() for image in of.nearest} <= own
        assert of.copies.all() if same else of.copies.mean() < 0.5


# ------------------------------------------------------------------------------------------------ the pictures
def test_pairs_of_many_images_few_images_and_feature_rows():
    stream = torch.Generator().manual_seed(0)
    for shape in ((1, 4, 4), (3, 4, 4), (7,)):
        x = torch.rand(40, *shape, generator=stream).numpy()
        y = np.arange(40) % 10
        of = neighbours(x[:25] * 0.9, y[:25], x, y, 1)
        whole = pairs(of, DIGITS, setting="here", way="w")
        assert whole.alt.startswith(f"{MOST} pairs of images") and len(whole.table) == 25
        assert pairs(of, DIGITS, setting="here", way="w", klass=3).alt.startswith("3 pairs")
        assert png(whole).startswith(b"\x89PNG")
    one = neighbours(x[:1], y[:1], x[:1], y[:1], 0)
    alone = pairs(one, DIGITS, setting="here", way="w", klass=5)
    assert "1 image of 1 class (0)" in alone.sentence and alone.table[0]["its own"] == "yes"


def test_bytes_and_accuracy_of_each_number_of_images():
    points = [Budget(1, 1000, {0: 0.8}, {0: 0.79}), Budget(3, 3000, {0: 0.9}, {0: 0.91})]
    picture = budgets(points, 3, setting="here", way="w", others={"FENS": (26280.0, 0.87)})
    assert "FENS 87 % for 26.3 kB" in picture.sentence and "91 %" in picture.sentence
    assert [row["validation"] for row in picture.table] == ["80 %", "90 %"]
    assert [row["test"] for row in picture.table] == ["", "91 %"] and png(picture).startswith(b"\x89PNG")
    unknown = budgets([Budget(2, 10, {}, {0: 0.5})], 7, setting="here", way="w", others={})
    assert unknown.table[0]["validation"] == "unknown" and unknown.sentence.endswith("50 % of the test images.")
