"""Run's estimated cost, a question before a long run, quick work that begins by itself, and projectors."""

import threading
import time
from types import SimpleNamespace

import pytest

from fedlab_nb.labs import lab
from fedlab_nb.methods import Report
from fedlab_nb.methods.local import LocalReport
from fedlab_nb.panels import comparison, controls, facts, lab_view, views
from fedlab_nb.panels.record import name_owner_of_features_or_empty
from fedlab_nb.plots.words import make_setting_caption
from fedlab_nb.studies.cost import EstimatedCost


@pytest.fixture
def costs(monkeypatch):
    """A function that sets how many seconds everything is estimated to cost; at first two."""

    def set_seconds(seconds):
        for module in (controls, lab_view):
            monkeypatch.setattr(
                module,
                "estimate_cost",
                lambda *_: EstimatedCost(seconds, 2400, True, 1200, 2, True),
            )

    set_seconds(2)
    return set_seconds


def test_the_cost_is_under_run_and_follows_the_controls(make_panel):
    panel = make_panel(methods=["fedavg"], clients=4)
    # 4 clients, 6570 numbers of four bytes, both ways; one of two seeds
    assert "210 kB both ways per seed" in panel.controls.cost.value
    panel.controls.clients.value = 8
    assert "420 kB both ways per seed" in panel.controls.cost.value
    panel.controls.methods.chosen_method_names = []
    assert panel.controls.cost.value == ""


@pytest.mark.slow
def test_with_a_browser_the_cost_is_estimated_once_the_controls_rest(make_panel, costs):
    panel = make_panel()
    panel.views["partition"].frame.size = [600, 400]
    costs(7)
    panel.controls.alpha.value = 1.0
    assert "bout 2 s" in panel.controls.cost.value
    time.sleep(facts.DELAY + 0.3)
    assert "bout 7 s" in panel.controls.cost.value


@pytest.mark.slow
def test_a_run_of_more_than_a_minute_asks_once_for_confirmation(make_panel, job, costs):
    costs(150)
    panel = make_panel()
    panel.controls.run.click()
    assert panel.status == "idle"
    assert "about 2 min" in panel.controls.phase.value
    assert job.calls == []
    assert panel.controls.run.description != "Run"
    panel.controls.alpha.value = 1.0  # another run, another question
    assert panel.controls.run.description == "Run"
    panel.controls.run.click()
    assert job.calls == []
    with panel._guard:  # the run cannot end meanwhile
        panel.controls.run.click()
        assert panel.controls.run.description == "Run"  # the next run asks again
    assert panel.wait(60) and len(job.calls) == 1
    panel.run(wait=True)  # a run from a cell asks nothing
    assert len(job.calls) == 2


@pytest.mark.slow
def test_the_second_half_of_a_double_click_starts_nothing(make_panel, job):
    panel = make_panel()
    with panel._guard:  # the run cannot end meanwhile
        panel.controls.run.click()
        panel.controls.run.click()
    assert panel.wait(60) and len(job.calls) == 1


def test_without_data_no_cost_is_shown(make_panel, tmp_path):
    panel = make_panel()
    tmp_path.joinpath("notes.npz").write_bytes(b"no array")
    panel.controls.path.value = str(tmp_path / "notes.npz")
    panel.controls.dataset.value = controls.OWN_FILE
    panel.wait()
    assert panel.controls.cost.value == "" and panel.controls.error.value.count("<p") == 1


def test_a_debouncer_shows_only_the_last_update_of_a_kind_under_the_guard_and_reports_errors(
    monkeypatch,
):
    monkeypatch.setattr(facts, "DELAY", 0.05)
    guard = threading.RLock()
    results = []
    errors = []
    started = threading.Event()
    go_on = threading.Event()
    debouncer = facts.Debouncer(guard, errors.append, lambda: False)

    def slow():
        started.set()
        return go_on.wait(5) and "old"

    debouncer.schedule_update("cost", slow, results.append)
    assert started.wait(5)
    # While the old cost is computed, another one is scheduled.
    debouncer.schedule_update("cost", lambda: "new", results.append)
    debouncer.schedule_update("samples", lambda: 1 / 0, results.append)
    go_on.set()
    with guard:
        time.sleep(0.2)
        assert results == errors == []
    time.sleep(0.1)
    assert results == ["new"] and isinstance(errors[0], ZeroDivisionError)
    debouncer.schedule_update("cost", lambda: "now", results.append, runs_at_once_in_caller=True)
    time.sleep(0.1)
    threads = threading.active_count()
    for kind in ("cost", "words") * 5:
        debouncer.schedule_update(kind, lambda: "never", results.append)
    # One thread serves all updates, so that a slider does not wait for threads to start.
    assert threading.active_count() == threads + 1
    debouncer.cancel_all_updates()
    time.sleep(0.1)
    assert results == ["new", "now"]


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.2, 30])
def test_opening_a_view_does_its_work_if_that_is_quick(costs, seconds, monkeypatch):
    costs(seconds)
    panel = lab("distilled", clients=3, seeds=1, methods=[])
    frames = []
    view = panel.lab_views["budget"]
    work = view.work

    def record_frame_and_work(state):
        frames.append(panel.views["budget"].frame.value)
        return work(state)

    monkeypatch.setattr(view, "work", record_frame_and_work)
    assert panel.state("budget").worked is None  # the view was not opened yet
    picture = panel.show("budget")
    assert picture.waits == (seconds > views.SOON) == ("about 30 s" in picture.sentence)
    assert panel.error == ""
    assert ("fl-todo" in panel.views["budget"].frame.value) == picture.waits
    assert ["Running …" in frame for frame in frames] == [True] * (seconds < views.SOON)
    panel.close()


@pytest.mark.slow
def test_a_projector_shows_stored_results_and_a_run_s_only_after_the_guess(make_panel):
    panel = make_panel(projector=True)
    assert panel.state("accuracy").stored is None
    panel.views.reveal.value = True
    assert panel.state("accuracy").stored is not None
    panel.run(wait=True)
    assert not panel.views.reveal.value  # covered for the next guess
    panel.views.projector.value = False
    assert make_panel(hide=["stored"]).state("accuracy").stored is None


@pytest.mark.slow
def test_enlarging_a_picture_covers_nothing(make_panel):
    panel = make_panel()
    assert panel.views.projector.description == "Projector: guess first"
    panel.views.enlarge.value = True
    assert "fl-enlarged" in panel._dom_classes
    assert not {"fl-projector", "fl-covering"} & set(panel._dom_classes)
    panel.views.enlarge.value = False
    panel.views.projector.value = True
    assert "fl-enlarged" not in panel._dom_classes
    assert {"fl-projector", "fl-covering"} <= set(panel._dom_classes)


@pytest.mark.slow
def test_letters_are_as_large_in_every_frame(make_panel):
    panel = make_panel()
    for frame in [(650, 400), (1400, 600), (900, 900)]:
        panel.views.frame = frame
        width, height = panel.views.picture_size_inches
        assert frame[0] / width == frame[1] / height == views.PIXELS_AN_INCH


@pytest.mark.slow
def test_exact_numbers_are_read_on_hover_of_the_sentence(make_panel):
    panel = make_panel(dataset="digits")
    panel.show("accuracy")
    sentence = panel.views["accuracy"].sentence.value
    assert 'title="Stored results of ' in sentence and ">Stored results at α = " in sentence
    assert "skew is " in panel.controls.facts.tooltip and "skew" not in panel.controls.facts.value


@pytest.mark.slow
def test_stored_results_stand_beside_the_partition_after_a_run_too(make_panel):
    panel = make_panel()
    panel.run(wait=True)
    panel.controls.alpha.value = 1.0
    assert "Stored: α = 1, 10 clients" in panel.show("partition").alt
    assert "Stored" not in panel.show("accuracy").sentence


def test_features_of_local_networks_name_their_client():
    outcome = SimpleNamespace(report=LocalReport(best_client=6))
    setting = make_setting_caption({"dataset": "digits", "alpha": 0.1, "clients": 10})
    assert name_owner_of_features_or_empty(outcome, setting) == "client G"
    assert name_owner_of_features_or_empty(SimpleNamespace(report=Report()), setting) == ""


def test_a_view_with_a_table_takes_its_whole_height(make_panel):
    panel = comparison(methods=["fedavg"], clients=3)
    panel.show("needs")
    assert "fl-tabled" in panel.views["needs"].box._dom_classes
    assert "fl-tabled" not in panel.views["partition"].box._dom_classes
    panel.close()


def test_each_drawing_is_counted_so_that_a_page_notices_an_old_picture(make_panel):
    panel = make_panel()
    frame = panel.views["partition"].frame
    before = frame.drawn, frame.value
    panel.views.draw_view_even_if_hidden("partition")
    assert (frame.drawn, frame.value) == (before[0] + 1, before[1])
