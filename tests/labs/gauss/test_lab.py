"""The Gaussian heads' lab without a kernel: its views before and after real runs, at other settings."""

import numpy as np
import pytest
from lab_views import show_view

from fedlab_nb.labs.gauss.class_pictures import draw_class_statistics
from fedlab_nb.methods.gauss import GaussReport
from fedlab_nb.plots import render_picture_png
from fedlab_nb.plots.words import format_client_letters

SYSTEM = "gauss"
SHORT_SETTINGS = {"clients": 3, "seeds": 1, "methods": []}
VIEWS = ["pictures", "sent", "heads"]


@pytest.mark.slow
def test_classes_and_what_a_client_sends(finished_lab):
    counts = finished_lab.outcomes[0].report.counts
    picture = show_view(finished_lab, "pictures")
    assert (
        f"knows this of {counts.sum()} samples: each class has a covariance of its own"
        in picture.sentence
    )
    assert [row["samples"] for row in picture.table] == counts.sum(0).tolist()
    before = picture.figure.axes[0].images[-1].get_array().copy()
    assert (
        finished_lab.set("pictures", draws=3).figure.axes[0].images[-1].get_array() != before
    ).any()
    for client in range(3):
        finished_lab.views.client.value = client
        picture = show_view(finished_lab, "sent")
        assert f"Client {format_client_letters(client)} holds" in picture.sentence
        assert "secure sum" in picture.detail
        held_counts = counts[client][counts[client] > 0]
        assert [row["images"] for row in picture.table] == held_counts.tolist()
        for row in picture.table:
            assert (row["its own"] == "yes") == (row["images"] == 1)
            if row["images"] == 1:
                assert row["class"] in picture.sentence
                assert "is that image, exactly" in picture.sentence
    finished_lab.views.client.value = -1


@pytest.mark.slow
def test_all_heads_side_by_side(open_lab):
    panel = open_lab()
    picture = panel.work("heads")
    assert panel.error == "" and len(picture.table) == 10
    classifiers = [row["classifier"] for row in picture.table]
    assert classifiers[:5] == ["Nearest mean", "Naive Bayes", "LDA", "FedCGS", "QDA"]
    least_accurate, *_, most_accurate = sorted(
        picture.table, key=lambda row: float(row["accuracy"].split()[1])
    )
    assert picture.sentence.startswith(f"{most_accurate['classifier']} is the most accurate with ")
    assert f", {least_accurate['classifier']} the least with " in picture.sentence


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"head": "means"},
        {"head": "lda"},
        {"features": "relu", "size": 12},
        {"head": "nb", "clients": 1},
    ],
)
def test_other_settings(open_lab, options):
    panel = open_lab(**options)
    panel.run(wait=True)
    panel.views.class_index.value = 3
    for name in VIEWS[:2]:
        show_view(panel, name)


def test_a_class_that_nobody_holds_is_named():
    counts = np.array([[3, 0], [2, 0]])
    means = np.zeros((2, 12), np.float32)
    report = GaussReport(
        counts, np.zeros((2, 2, 12), np.float32), means, np.ones((2, 12), np.float32)
    )
    for shape in ((3, 2, 2), None):
        picture = draw_class_statistics(
            report, "nb", ["a", "b"], pixel_image_shape=shape, setting="here"
        )
        assert "Nobody holds class b" in picture.sentence
        assert "5 samples" in picture.sentence
        assert render_picture_png(picture)
