"""Pictures of stored results: no interpolated numbers, true sentences, any number of methods, redrawing in place."""

import numpy as np
import pytest

from fedlab_nb.plots import render_picture_png
from fedlab_nb.plots.stored_curves import StoredPlot

PNG = b"\x89PNG\r\n\x1a\n"
SOURCE = "stored results of 2025-01-31, version 0.1.0"
ALPHAS = (0.01, 0.1, 1.0, 10.0)


def make_results(low=(0.2, 0.8), high=(0.9, 0.94), names=("FedAvg", "FENS")):
    def make_accuracies(i, a, b):
        return {s: a + (b - a) * i / 3 + 0.01 * (s - 2) for s in range(5)}

    return {
        n: {x: make_accuracies(i, a, b) for i, x in enumerate(ALPHAS)}
        for n, a, b in zip(names, low, high, strict=True)
    }


def draw_stored_plot(data=None, **more):
    options = {
        "chosen_alpha": 0.1,
        "stored_client_count": 10,
        "source_text": SOURCE,
        "chance_accuracy": 0.1,
        **more,
    }
    return StoredPlot().show(make_results() if data is None else data, **options)


def test_the_sentence_says_where_the_numbers_come_from_and_who_is_best():
    picture = draw_stored_plot(appended_sentence="Their epochs differ.")
    sentence = picture.sentence
    assert picture.detail.lower().startswith(SOURCE)
    assert "FENS is best with 85 %" in sentence
    assert "epochs" in sentence


def test_the_table_has_the_stored_numbers_alone():
    row = draw_stored_plot(chosen_alpha=0.4).table[0]
    assert row == {"method": "FedAvg", "α = 0.01": "20 ± 2 %", "α = 0.1": "43 ± 2 %", "α = 1": "67 ± 2 %",
                   "α = 10": "90 ± 2 %"}  # fmt: skip
    assert (
        "at α = 1, 10 clients (the nearest" in draw_stored_plot(chosen_alpha=0.4).sentence
    )  # 1 is nearer than 0.1


@pytest.mark.slow
def test_redrawing_in_place_gives_the_picture_of_a_fresh_plot():
    redrawn = StoredPlot()
    other_results = make_results(low=(0.1, 0.5), high=(0.5, 0.9))
    options = {"source_text": SOURCE, "chance_accuracy": 0.1}
    render_picture_png(
        redrawn.show(make_results(), chosen_alpha=0.1, stored_client_count=10, **options)
    )
    for data, alpha, clients in (
        (make_results(), 5.0, 10),
        (other_results, 0.013, 20),
        (make_results(), 0.1, 5),
        (other_results, 900, 20),
    ):
        redrawn_png = render_picture_png(
            redrawn.show(data, chosen_alpha=alpha, stored_client_count=clients, **options)
        )
        assert redrawn_png == render_picture_png(
            StoredPlot().show(data, chosen_alpha=alpha, stored_client_count=clients, **options)
        )


@pytest.mark.parametrize("count", [1, 26])
def test_any_number_of_methods(count):
    low, high = np.linspace(0.1, 0.9, count), np.linspace(0.9, 0.95, count)
    picture = draw_stored_plot(make_results(low, high, [f"method {i}" for i in range(count)]))
    assert render_picture_png(picture).startswith(PNG) and len(picture.table) == count


def test_gaps_single_seeds_and_a_single_alpha():
    for data in (
        {"A": {0.1: {0: 0.5}, 1.0: {}}, "B": {1.0: {0: 0.7, 1: 0.8}}, "C": {}},
        {"A": {0.1: {0: 0.5}}},
    ):
        assert (
            render_picture_png(draw_stored_plot(data)).startswith(PNG)
            and "nan" not in draw_stored_plot(data).sentence
        )
    with pytest.raises(ValueError):
        draw_stored_plot({"A": {}})
