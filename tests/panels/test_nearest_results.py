"""What a panel shows before its first run: stored results where they fit the controls, nothing where they do not."""

import pytest

from fedlab_nb.panels import nearest_results
from fedlab_nb.panels.nearest_results import find_nearest_results
from fedlab_nb.plots.stored_curves import StoredPlot
from fedlab_nb.studies.stored_results import StoredTable

METHODS = ["local", "fedavg", "fens"]
SETTINGS = {
    "dataset": "digits",
    "alpha": 0.1,
    "clients": 10,
    "seed": 0,
    "epochs": 40,
    "device": "auto",
}


def test_titles_numbers_and_source_of_the_table():
    picture = find_nearest_results(["mine", *METHODS], SETTINGS).draw(
        StoredPlot()
    )  # one's own method is left out
    assert [row["method"] for row in picture.table] == ["Local only", "FedAvg, one round", "FENS"]
    assert (
        picture.detail.startswith("Stored results of ")
        and "at α = 0.1, 10 clients:" in picture.sentence
    )
    assert "For reference: Local only" in picture.sentence and "differ" not in picture.sentence


def test_settings_that_differ_are_named():
    asked = {**SETTINGS, "epochs": 5, "fens.rounds": 7, "fens.eta_l": 1, "holdout": "0.1"}
    assert (
        find_nearest_results(METHODS, asked).describe_differences()
        == "Their epochs and fens.rounds differ from yours."
    )


@pytest.mark.parametrize(
    "other",
    [
        {"dataset": "glyphs"},
        {"partition": "classes"},
        {"model": "cnn"},
        {"spurious": "0,1"},
        {"holdout": 0.3},
    ],
)
def test_nothing_where_the_table_would_mislead(other):
    assert find_nearest_results(METHODS, {**SETTINGS, **other}) is None


def test_the_second_classroom_set_has_a_table_of_its_own(monkeypatch):
    rows = {
        ("fens", a, 10): {"seeds": [0, 1], "accuracy": [0.5, 0.5], "made": {}} for a in (0.1, 1.0)
    }
    digits = nearest_results.load()
    tables = {"digits": digits, "glyphs:16g": StoredTable("glyphs:16g", digits.about, rows)}
    monkeypatch.setattr(nearest_results, "list_stored_sets", lambda: list(tables))
    monkeypatch.setattr(nearest_results, "load", tables.get)
    mine = {"dataset": "glyphs:16g", "alpha": 0.1, "clients": 10}
    picture = find_nearest_results(METHODS, mine).draw(kept := StoredPlot())
    assert [row["method"] for row in picture.table] == ["FENS"] and "50" in picture.sentence
    assert "glyphs:16g, α = 0.1" in picture.alt
    assert "digits, α = 0.1" in find_nearest_results(METHODS, SETTINGS).draw(kept).alt
    assert find_nearest_results(METHODS, {**mine, "transform": "none"}) is None
