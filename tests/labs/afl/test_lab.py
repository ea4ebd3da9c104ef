"""AFL's lab without a kernel, on short real runs: its views, what it computes for them, its pictures."""

import re

import numpy as np
import pytest
from lab_views import show_sentence

from fedlab_nb.labs.afl import budget, size, skew
from fedlab_nb.labs.afl.budget import draw_accuracy_against_budget
from fedlab_nb.labs.afl.forget import (
    ClientRemovalEffect,
    draw_class_accuracies_before_and_after_removal,
    measure_effect_of_client_removal,
)
from fedlab_nb.labs.afl.size import draw_accuracy_against_feature_count
from fedlab_nb.plots import MethodResults, render_picture_png
from fedlab_nb.plots.words import format_data_size
from fedlab_nb.studies import run

SYSTEM = "afl"
SHORT_SETTINGS = {"clients": 3, "epochs": 2, "methods": []}
DIGITS = [str(c) for c in range(10)]


# ------------------------------------------------------------------------------------------------ the panel


@pytest.mark.slow
def test_a_client_is_forgotten_and_its_image_shown(open_lab):
    panel = open_lab(clients=10, **{"afl.rho": 0.1})
    panel.run(wait=True)
    # The view works at once, as it takes no time.
    assert panel.show("forget").sentence.startswith("Without client A")
    panel.set("forget", who=3)
    text = show_sentence(panel, "forget")
    assert text.startswith("Without client D")
    text = show_sentence(panel, "image")
    assert re.match(r"Client [A-J] has one image (of|each of) ", text), "it says whose image it is"
    assert "that image, pixel by pixel" in text
    assert any(row["its own"] == "yes" for row in panel.show("image").table)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "words"),
    [({"secure": True}, "has only the total"), ({"features": "relu"}, "not an image")],
)
def test_an_image_that_cannot_be_recovered_is_explained(open_lab, change, words):
    panel = open_lab(**{f"afl.{name}": value for name, value in change.items()})
    panel.run(wait=True)
    assert words in panel.show("image").sentence


@pytest.mark.slow
def test_the_buttons_try_alphas_budgets_and_sizes(open_lab, monkeypatch):
    monkeypatch.setattr(skew, "ALPHAS", (0.1, 10.0))
    monkeypatch.setattr(budget, "BUDGETS", (1.0, 10.0))
    monkeypatch.setattr(size, "SIZES", (16, 64))
    panel = open_lab()
    for name in ("skew", "budget", "size"):
        panel.show(name)
        panel.work(name)
        assert panel.error == "" and panel.status == "done", (name, panel.error[-400:])
    assert "AFL 9" in panel.show("skew").sentence and "FedAvg" in panel.show("skew").sentence
    text = show_sentence(panel, "budget")
    assert "σ = 5.3" in text and "e^ε = 2.7" in text and "Not covered: what" in text
    panel.lab_views["budget"].epsilon.value = 10.0
    assert show_sentence(panel, "budget").startswith("With a privacy budget of ε = 10 ")
    picture = panel.show("size")
    assert [row["method"] for row in picture.table] == ["relu", "conv", "pixels"]
    assert f"{format_data_size(4 * (17 * 18 // 2 + 170))} a client" in picture.sentence
    assert format_data_size(11_180) in picture.sentence


# ------------------------------------------------------------------------------------------------ the numbers
@pytest.mark.parametrize("features", ["pixels", "relu"])
def test_forgetting_is_a_fit_without_the_client(features):
    outcome = run("afl", clients=3, alpha=0.5, **{"afl.features": features, "afl.size": 50})
    removal = measure_effect_of_client_removal(outcome, 1)
    assert removal.distance < 1e-3
    assert removal.accuracy[0] == pytest.approx(outcome.accuracy)
    train_rows, _ = outcome.federation().split(0.1)[1]
    assert removal.samples.sum() == len(train_rows)


# ------------------------------------------------------------------------------------------------ the pictures
def test_a_forgotten_client_in_words():
    before = np.full(10, 0.9)
    after = np.full(10, 0.9)
    after[3] = 0.2
    samples = np.zeros(10, dtype=int)
    samples[3] = 40
    removal = ClientRemovalEffect(None, 2, before, after, (0.9, 0.83), samples, 2e-9)
    picture = draw_class_accuracies_before_and_after_removal(
        removal, DIGITS, setting="here", selected_class=3
    )
    for number in ("40 samples", "83 %", "90 %", "; “3” loses 10 points or more."):
        assert number in picture.sentence
    assert "2e-09" in picture.detail
    assert picture.table[3] == {
        "class": "3",
        "samples of the client": 40,
        "with it": "90 %",
        "without it": "20 %",
    }
    assert render_picture_png(picture)
    after[8] = 0.7
    removal = ClientRemovalEffect(None, 2, before, after, (0.9, 0.81), samples, 2e-9)
    picture = draw_class_accuracies_before_and_after_removal(
        removal, DIGITS, setting="here", selected_class=3
    )
    assert "; “3” and “8” lose 10 points or more." in picture.sentence
    removal = ClientRemovalEffect(None, 2, before, before, (0.9, 0.9), samples, 2e-9)
    picture = draw_class_accuracies_before_and_after_removal(
        removal, DIGITS, setting="here", selected_class=3
    )
    assert "; no class loses 10 points or more." in picture.sentence


def test_budgets_in_words():
    by_budget = {1.0: {0: 0.7, 1: 0.8}, 10.0: {0: 0.9, 1: 0.9}, None: {0: 0.94, 1: 0.94}}
    by_features = {"pixels": by_budget, "9 random features": by_budget}
    picture = draw_accuracy_against_budget(by_features, 10.0, 1e-5, setting="here")
    assert picture.sentence == (
        "With a privacy budget of ε = 10 the noise leaves pixels 90 % in place of 94 % and 9 random "
        "features 90 % in place of 94 %."
    )
    assert "σ = 0.71" in picture.detail and "e^ε = 2.2e+04" in picture.detail
    assert render_picture_png(picture)


def test_sizes_in_words():
    by_size = {
        16: MethodResults("relu", accuracies={0: 0.7}, up=1000),
        64: MethodResults("relu", accuracies={0: 0.9}, up=9000),
    }
    pixels = MethodResults("pixels", accuracies={0: 0.94}, up=2000)
    picture = draw_accuracy_against_feature_count({"relu": by_size}, pixels, "a")
    assert "16 relu features 70 % for 1 kB" in picture.sentence
    assert "64 relu features 90 % for 9 kB" in picture.sentence
    assert "94 % for 2 kB" in picture.sentence
    assert [row["method"] for row in picture.table] == ["relu", "pixels"]
    assert render_picture_png(picture)
