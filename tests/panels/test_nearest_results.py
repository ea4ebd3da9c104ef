"""Before its first run a panel shows stored results where they fit the controls, and nothing elsewhere."""

import statistics
from dataclasses import replace

import pytest
from fake_job import make_outcome
from matplotlib.colors import to_hex

from fedlab_nb.panels import nearest_results
from fedlab_nb.panels.figures import copy_results_with_stored_bands
from fedlab_nb.panels.lab_view import PanelState
from fedlab_nb.panels.nearest_results import find_nearest_stored_results
from fedlab_nb.panels.record import MethodRun, RunRecord
from fedlab_nb.plots.accuracy import draw_accuracy_bars_and_curves
from fedlab_nb.plots.kit import GHOST
from fedlab_nb.plots.stored_curves import StoredPlot
from fedlab_nb.plots.style import use_figure_size
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
    # A method of one's own has no stored results, and is left out.
    picture = find_nearest_stored_results(["mine", *METHODS], SETTINGS).draw_into_stored_plot(
        StoredPlot()
    )
    assert [row["method"] for row in picture.table] == ["Local only", "FedAvg, one round", "FENS"]
    assert picture.detail.startswith("Stored results of ")
    assert "at α = 0.1, 10 clients:" in picture.sentence
    assert "For reference: Local only" in picture.sentence and "differ" not in picture.sentence


def test_settings_that_differ_are_named():
    settings = {**SETTINGS, "epochs": 5, "fens.rounds": 7, "fens.eta_l": 1, "holdout": "0.1"}
    assert (
        find_nearest_stored_results(METHODS, settings).describe_setting_differences_or_empty()
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
    assert find_nearest_stored_results(METHODS, {**SETTINGS, **other}) is None


def test_the_second_classroom_set_has_a_table_of_its_own(monkeypatch):
    rows = {
        ("fens", a, 10): {"seeds": [0, 1], "accuracy": [0.5, 0.5], "made": {}} for a in (0.1, 1.0)
    }
    digits = nearest_results.load()
    tables = {"digits": digits, "glyphs:16g": StoredTable("glyphs:16g", digits.about, rows)}
    monkeypatch.setattr(nearest_results, "list_datasets_with_stored_results", lambda: list(tables))
    monkeypatch.setattr(nearest_results, "load", tables.get)
    mine = {"dataset": "glyphs:16g", "alpha": 0.1, "clients": 10}
    picture = find_nearest_stored_results(METHODS, mine).draw_into_stored_plot(plot := StoredPlot())
    assert [row["method"] for row in picture.table] == ["FENS"] and "50" in picture.sentence
    assert "glyphs:16g, α = 0.1" in picture.alt
    assert (
        "digits, α = 0.1"
        in find_nearest_stored_results(METHODS, SETTINGS).draw_into_stored_plot(plot).alt
    )
    assert find_nearest_stored_results(METHODS, {**mine, "transform": "none"}) is None


def test_bands_are_those_of_the_table_and_only_of_this_setting():
    nearest = find_nearest_stored_results(METHODS, SETTINGS)
    bands = nearest.get_bands_by_method_or_empty()
    shares = list(nearest.table.get_accuracies_by_seed("fens", 0.1, 10).values())
    assert len(shares) == 10 and bands["fens"].mean == pytest.approx(sum(shares) / 10)
    half_width = 2.262 * statistics.stdev(shares) / 10**0.5  # Student's t of 9 degrees of freedom
    assert bands["fens"].half_width == pytest.approx(half_width, rel=1e-3)
    assert nearest.describe_stored_seeds() == "10 stored seeds"
    near = find_nearest_stored_results(METHODS, {**SETTINGS, "alpha": 0.12})
    assert near.get_bands_by_method_or_empty() == bands
    assert near.describe_stored_seeds() == "10 stored seeds at α = 0.1"
    for other in ({"clients": 9}, {"epochs": 5}, {"fens.rounds": 7}):
        assert (
            find_nearest_stored_results(
                METHODS, {**SETTINGS, **other}
            ).get_bands_by_method_or_empty()
            == {}
        )


def test_the_stored_band_lies_behind_the_bar_of_its_method():
    """It is the band of the run's own setting, whatever the controls say now."""
    settings = {**SETTINGS, "seeds": 1}
    row = MethodRun(1, "fens", settings, 40, outcomes={0: make_outcome("fens", 0, settings)})
    state = PanelState(runs=RunRecord((row,), 1), class_names=[str(c) for c in range(10)])
    (series,) = copy_results_with_stored_bands(state.runs.list_results_of_shown_rows(), state)
    expected = find_nearest_stored_results(["fens"], settings).get_bands_by_method_or_empty()[
        "fens"
    ]
    assert series.stored == expected
    with use_figure_size((8, 4)):
        ax = draw_accuracy_bars_and_curves([series]).figure.axes[0]
    ghost = next(patch for patch in ax.patches if to_hex(patch.get_facecolor()) == GHOST)
    assert ghost.get_x() == pytest.approx(expected.low)
    assert ghost.get_x() + ghost.get_width() == pytest.approx(min(1, expected.high))
    assert ax.get_xlabel().endswith("; grey: 10 stored seeds")
    hidden = replace(state, shows_stored=False)
    assert (
        copy_results_with_stored_bands(hidden.runs.list_results_of_shown_rows(), hidden)[0].stored
        is None
    )


def test_a_bar_without_a_stored_band_says_why():
    settings = {**SETTINGS, "seeds": 1}
    few_epochs = {**settings, "epochs": 5}

    def describe(settings):
        row = MethodRun(1, "fens", settings, 40, outcomes={0: make_outcome("fens", 0, settings)})
        state = PanelState(runs=RunRecord((row,), 1), class_names=[str(c) for c in range(10)])
        (series,) = state.runs.list_results_of_shown_rows()
        rows = copy_results_with_stored_bands(
            [series, replace(series, method="fens without weights")], state
        )
        return [series_with_band.hover_text.splitlines()[-1] for series_with_band in rows]

    stored, variant = describe(settings)
    assert stored.startswith("10 stored seeds: ") and stored.endswith(" %")
    assert variant == "this variant is not in the stored results"
    nothing = "nothing is stored for this setting"
    assert describe(few_epochs) == describe({**settings, "dataset": "wine"}) == [nothing, nothing]
