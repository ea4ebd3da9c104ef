"""AFL's lab without a kernel, on short real runs: its views, what it computes for them, its pictures."""

import numpy as np
import pytest
from lab_views import sentence_of

from fedlab_nb.labs.afl import budget, size, skew
from fedlab_nb.labs.afl.budget import budgets
from fedlab_nb.labs.afl.forget import Forgotten, forget, forgotten
from fedlab_nb.labs.afl.size import sizes
from fedlab_nb.plots import Series, png
from fedlab_nb.plots.words import data_size
from fedlab_nb.studies import run

SYSTEM = "afl"
SHORT = {"clients": 3, "epochs": 2, "methods": []}
DIGITS = [str(c) for c in range(10)]


# ------------------------------------------------------------------------------------------------ the panel


def test_a_client_is_forgotten_and_its_image_shown(make):
    panel = make(clients=10, **{"afl.rho": 0.1})
    panel.run(wait=True)
    assert panel.show("forget").sentence.startswith(
        "Without client A"
    )  # at once, as it takes no time
    panel.set("forget", who=3)
    text = sentence_of(panel, "forget")
    assert text.startswith("Without client D")
    assert "that image, pixel by pixel" in sentence_of(panel, "image")
    assert any(row["its own"] == "yes" for row in panel.show("image").table)


@pytest.mark.parametrize(
    ("change", "words"),
    [({"secure": True}, "has only the total"), ({"features": "relu"}, "not an image")],
)
def test_what_cannot_be_shown_is_said(make, change, words):
    panel = make(**{f"afl.{name}": value for name, value in change.items()})
    panel.run(wait=True)
    assert words in panel.show("image").sentence


def test_the_buttons_try_alphas_budgets_and_sizes(make, monkeypatch):
    monkeypatch.setattr(skew, "ALPHAS", (0.1, 10.0))
    monkeypatch.setattr(budget, "BUDGETS", (1.0, 10.0))
    monkeypatch.setattr(size, "SIZES", (16, 64))
    panel = make()
    for name in ("skew", "budget", "size"):
        panel.show(name)
        panel.work(name)
        assert panel.error == "" and panel.status == "done", (name, panel.error[-400:])
    assert "AFL 9" in panel.show("skew").sentence and "FedAvg" in panel.show("skew").sentence
    text = sentence_of(panel, "budget")
    assert "σ = 5.3" in text and "e^ε = 2.7" in text and "Not covered: what" in text
    panel.lab_views["budget"].epsilon.value = 10.0
    assert sentence_of(panel, "budget").startswith("ε = 10 ")
    picture = panel.show("size")
    assert [row["method"] for row in picture.table] == ["relu", "conv", "pixels"]
    assert (
        f"{data_size(4 * (17 * 18 // 2 + 170))} a client" in picture.sentence
        and data_size(11_180) in picture.sentence
    )


# ------------------------------------------------------------------------------------------------ the numbers
@pytest.mark.parametrize("features", ["pixels", "relu"])
def test_forgetting_is_a_fit_without_the_client(features):
    outcome = run("afl", clients=3, alpha=0.5, **{"afl.features": features, "afl.size": 50})
    forgotten = forget(outcome, 1)
    assert forgotten.distance < 1e-3 and forgotten.accuracy[0] == pytest.approx(outcome.accuracy)
    rows = [train for k, (train, _) in enumerate(outcome.federation().split(0.1)) if k == 1]
    assert forgotten.samples.sum() == len(rows[0])


# ------------------------------------------------------------------------------------------------ the pictures
def test_a_forgotten_client_in_words():
    before, after, samples = np.full(10, 0.9), np.full(10, 0.9), np.zeros(10, dtype=int)
    after[3], samples[3] = 0.2, 40
    picture = forgotten(
        Forgotten(None, 2, before, after, (0.9, 0.83), samples, 2e-9),
        DIGITS,
        setting="here",
        klass=3,
    )
    assert all(
        number in picture.sentence for number in ("40 samples", "83 %", "90 %", "more: 3.", "2e-09")
    )
    assert picture.table[3] == {
        "class": "3",
        "samples of the client": 40,
        "with it": "90 %",
        "without it": "20 %",
    }
    assert png(picture)


def test_budgets_and_sizes_in_words():
    of = {1.0: {0: 0.7, 1: 0.8}, 10.0: {0: 0.9, 1: 0.9}, None: {0: 0.94, 1: 0.94}}
    picture = budgets({"pixels": of, "9 random features": of}, 10.0, 1e-5, setting="here")
    numbers = ("ε = 10", "σ = 0.71", "pixels 90 %", "94 %", "e^ε = 2.2e+04")
    assert all(number in picture.sentence for number in numbers) and png(picture)
    by_size = {
        16: Series("relu", accuracies={0: 0.7}, up=1000),
        64: Series("relu", accuracies={0: 0.9}, up=9000),
    }
    picture = sizes({"relu": by_size}, Series("pixels", accuracies={0: 0.94}, up=2000), "a")
    numbers = ("16 relu features 70 % for 1 kB", "64 relu features 90 % for 9 kB", "94 % for 2 kB")
    assert all(number in picture.sentence for number in numbers)
    assert [row["method"] for row in picture.table] == ["relu", "pixels"] and png(picture)
