"""The panels Compare and Race: their own views before and after a run."""

import json
from types import SimpleNamespace

import pytest

import fedlab_nb as fl
from fedlab_nb import plots
from fedlab_nb.methods import METHODS
from fedlab_nb.panels.figures import plan_runs_by_method_or_empty
from fedlab_nb.panels.lab_view import PanelState
from fedlab_nb.panels.race import compute_seconds_until_each_curve_point


# Slow because the picture of what travels is drawn several times, once for a method of each group.
@pytest.mark.slow
def test_compare_shows_needs_at_once_and_time_after_a_run(make_panel):
    panel = make_panel(fl.comparison, seeds=1)
    rows_of_tabs = [name for name in panel.views.tabs._dom_classes if name.startswith("fl-split")]
    assert rows_of_tabs == ["fl-split-5"] and "fl-own-last" in panel.views.tabs._dom_classes
    table_picture = panel.show("needs")
    assert [row["method"] for row in table_picture.table] == ["FedAvg, one round", "FENS"]
    assert [row["local work"] for row in table_picture.table] == ["40 passes"] * 2
    assert (
        table_picture.sentence == "1 of 2 methods need nothing but the uploads: FedAvg, one round."
    )
    data, _ = table_picture._repr_mimebundle_()
    rows = len(table_picture.table)
    assert data["text/html"].startswith("<img alt=") and data["text/html"].count("<tr>") == rows + 1
    # One method of each group: to draw all of them takes ten seconds.
    methods_by_group = {method.info.group: name for name, method in METHODS.items()}
    one_of_each_group = list(methods_by_group.values())
    panel.controls.methods.chosen_method_names = one_of_each_group
    assert len(panel.views["needs"].picture.table) == len(one_of_each_group) and not panel.error
    shown = panel.views["needs"].frame.value
    assert 0 < shown.index("<svg") < shown.index("<table>") and 0 < shown.index("What travels")
    panel.controls.methods.chosen_method_names = ["fedavg", "fens"]
    panel.run(wait=True)
    assert "takes longest" in panel.show("times").sentence and not panel.error


def test_bars_of_time_stand_in_their_order_and_end_at_the_sum():
    times = [
        plots.MethodTime("A", 0.2, 0.1),
        plots.MethodTime("B", 0.2, 1.5),
        plots.MethodTime("C", 0.0, 0.7),
    ]
    picture = plots.draw_wall_times(times, setting="here")
    (ax,) = picture.figure.axes
    ends = {bar.get_y(): bar.get_x() + bar.get_width() for bar in ax.patches}
    assert [row["method"] for row in picture.table] == ["B", "C", "A"]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["B", "C", "A"]
    assert list(ends.values()) == pytest.approx([1.7, 0.7, 0.3])
    assert picture.sentence.startswith("B takes longest, 1.7 s")


@pytest.mark.parametrize("more_settings", [{}, {"fens.proxy": "server", "ee_data": "real"}])
def test_the_leaks_that_are_shown_follow_the_settings(more_settings):
    methods = ["fens", "coboosting"]
    settings = {"dataset": "digits", "seeds": 1, "preset": "classroom", **more_settings}
    plans = plan_runs_by_method_or_empty(PanelState(methods=methods, settings=settings))
    leaks = [plans[name].method.leaks for name in methods]
    assert (
        ("held-out samples, to the server" in leaks[0])
        == leaks[1].endswith("training samples")
        == bool(more_settings)
    )


def test_the_race_runs_once_and_its_scene_is_sent_to_the_browser(make_panel):
    panel = make_panel(fl.race, seeds=1)
    frame = panel.views["race"].frame
    assert panel.show("race") is None and "Press Run" in frame.value and frame.scene == {}
    panel.views.select_view("partition")
    panel.run(wait=True)
    assert panel.views.visible_view_name == "race"  # where Play is
    end = panel.show("race")
    assert "leads with" in end.sentence and not panel.error
    assert end.figure is not None and frame.value == ""  # a still picture is there, and is not sent
    json.dumps(frame.scene)
    methods = {one["name"]: one for one in frame.scene["methods"]}
    assert list(methods) == ["FedAvg, one round", "FENS"]
    outcomes = {outcome.method: outcome for outcome in panel.outcomes}
    for method, outcome in zip(methods.values(), outcomes.values(), strict=True):
        assert method["training"] == {"bytes": 1, "seconds": 1.0}
        assert method["points"] == [
            {"bytes": outcome.ledger.total, "seconds": 1.5, "accuracy": outcome.accuracy}
        ]
        assert sum(method["flight"]["legs"][1]["bytes"]) == outcome.ledger.up
    lowest, highest = frame.scene["bytes"]
    assert highest == max(outcome.ledger.total for outcome in outcomes.values())
    assert lowest < highest


def test_seconds_follow_the_progress_within_training_and_within_the_method():
    def point(phase, progress):
        return {"phase": phase, "progress": progress, "bytes": 0, "accuracy": 0.0}

    local = "local training"
    once = SimpleNamespace(seconds_local=4.0, seconds_method=2.0, history=[
        point(local, 0.25), point(local, 0.5), point("server", 0.75), point("other", 0.5),
        point("end", 1.0),
    ])  # fmt: skip
    assert compute_seconds_until_each_curve_point(once) == [
        2.0,
        4.0,
        5.0,
        5.0,
        6.0,
    ]  # it never falls
    rounds = SimpleNamespace(seconds_local=0.0, seconds_method=3.0, history=[
        point("rounds", 0.5), point("rounds", 1.0), point("end", 1.0),
    ])  # fmt: skip
    assert compute_seconds_until_each_curve_point(rounds) == [1.5, 3.0, 3.0]


@pytest.mark.slow
def test_calibration_asks_for_a_run_and_is_then_drawn(make_panel):
    panel = make_panel()
    panel.views.select_view("calibration")
    assert "Press Run" in panel.views["calibration"].frame.value
    panel.run(wait=True)
    assert not panel.error and "is calibrated best" in panel.views["calibration"].sentence.value
    assert panel.views["calibration"].picture.table[0]["NLL"] == "1.500"
