"""The playground when things go wrong, or in an odd order: errors, Stop, double Run, stale jobs, close."""

import threading
from types import SimpleNamespace

import pytest

from fedlab_nb.errors import RunError
from fedlab_nb.panels import worker


def list_busy_threads():
    """List the worker threads that run a job; the others wait for one."""
    started = [t for t in threading.enumerate() if t.name == "fedlab_nb panel"]
    return started[len(worker._idle) :]


def test_a_free_thread_takes_the_next_job_and_a_thread_whose_job_failed_ends(monkeypatch):
    monkeypatch.setattr(worker, "_idle", [])
    monkeypatch.setattr(threading, "excepthook", lambda args: None)
    threads_used = []

    def work():
        threads_used.append(threading.current_thread())

    for _ in range(3):
        worker.run_on_idle_or_new_thread(work).result(10)
    gate = threading.Event()
    jobs = worker.run_on_idle_or_new_thread(gate.wait), worker.run_on_idle_or_new_thread(work)
    jobs[1].result(10)
    assert len(set(threads_used)) == 2
    assert threads_used[0] is threads_used[1] is threads_used[2] is not threads_used[3]
    gate.set()
    jobs[0].result(10)
    for idle_count in 1, 0:
        worker.run_on_idle_or_new_thread(lambda: 1 / 0).result(10)
        assert len(worker._idle) == idle_count
    for thread in threads_used:
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.slow
def test_a_method_that_fails_does_not_lose_the_others(make_panel, job):
    job.fails = {
        "fedavg": RunError("Its numbers are no longer finite; use a smaller learning rate.")
    }
    panel = make_panel(methods=["fedavg", "fens", "fedlpa"])
    panel.run(wait=True)
    assert panel.status == "done" and {o.method for o in panel.outcomes} == {"fens", "fedlpa"}
    error = panel.controls.error.value
    assert error.count("<p") == 1 and "FedAvg, one round: Its numbers are no longer finite" in error
    assert 'role="alert"' in error and "RunError" in panel.error
    assert "no longer finite" in panel.runs_panel.runs.children[1].children[1].value
    job.fails = {}
    panel.run(wait=True)
    assert not panel.controls.error.value


@pytest.mark.slow
def test_wrong_input_shows_one_sentence_and_loses_nothing(make_panel, tmp_path):
    panel = make_panel()
    panel.run(wait=True)
    panel.controls.methods.chosen_method_names = []
    panel.controls.run.click()
    assert "No method is chosen" in panel.controls.error.value and len(panel.outcomes) == 4
    panel.controls.methods.chosen_method_names = ["fens"]
    panel.controls.dataset.value = "own file"
    assert "No file is named" in panel.controls.error.value
    assert panel.controls.path.layout.display is None
    panel.controls.path.value = str(tmp_path / "missing.npz")
    assert panel.wait(60)
    assert "missing.npz" in panel.controls.error.value
    assert panel.controls.error.value.count("<p") == 1
    panel.controls.run.click()
    assert "missing.npz" in panel.controls.error.value and len(panel.outcomes) == 4
    assert "without" in repr(panel) or "missing.npz" in repr(panel)
    panel.controls.dataset.value = "digits"
    assert panel.wait(60) and not panel.controls.error.value
    panel.views.select_view("partition")
    assert "digits" in panel.views["partition"].picture.alt
    panel.run(wait=True)
    assert panel.status == "done"


def test_stop_before_start_and_twice(make_panel, job):
    panel = make_panel()
    panel.stop()
    panel.controls.stop.click()
    assert panel.status == "idle" and not panel.error
    job.gate.clear()
    panel.run()
    panel.stop()
    panel.stop()
    job.gate.set()
    assert panel.wait(60) and panel.status == "stopped" and job.closed == 1 and panel.outcomes == []
    job.gate.clear()
    panel.run()
    assert list_busy_threads()
    threading.Timer(0.1, job.gate.set).start()
    panel.close()
    assert not list_busy_threads() and job.closed == 2


@pytest.mark.slow
def test_stop_keeps_what_is_finished(make_panel, monkeypatch):
    monkeypatch.setattr("fedlab_nb.panels.worker.QUICK", -1)  # every step moves the bar
    panel = make_panel(methods=["fedavg", "fens"], seeds=1)
    panel.controls.progress.observe(
        lambda _: panel.outcomes and panel.controls.stop.click(), "value"
    )
    panel.run()
    assert panel.wait(60)
    assert panel.status == "stopped"
    assert [o.method for o in panel.outcomes] == ["fedavg"]
    assert "fedavg" in panel.code()
    assert panel.views["accuracy"].picture.sentence.startswith("FedAvg, one round reaches")


@pytest.mark.slow
def test_the_last_good_picture_stays_until_there_is_a_new_result(make_panel, job):
    """Stop before the first result leaves pictures, rows and captions of the run before; nothing says "press Run"."""
    panel = make_panel()
    panel.run(wait=True)
    panel.views.select_view("communication")
    view = panel.views["communication"]
    before = view.frame.value
    job.gate.clear()
    panel.controls.alpha.value = 1
    panel.run()
    assert view.frame.value == before and "Run 2 has no result yet" in view.caption.value
    panel.views.select_view("accuracy")
    assert view.frame.value.startswith("<svg")
    assert "ress Run" not in panel.views["accuracy"].caption.value
    panel.controls.stop.click()
    job.gate.set()
    assert panel.wait(60) and panel.status == "stopped" and len(panel.outcomes) == 4
    for name in ("communication", "accuracy"):
        panel.views.select_view(name)
        assert panel.views[name].frame.value.startswith("<svg")
        assert "Run 1: " in panel.views[name].caption.value
    panel.run(wait=True)
    assert {row.run for row in panel.state("accuracy").runs.rows} == {1, 2} and not panel.error


def test_the_time_left_is_shown_as_soon_as_it_is_known(make_panel, job, monkeypatch):
    texts = []
    clock = iter(range(0, 10_000, 3))
    monkeypatch.setattr(
        "fedlab_nb.panels.worker.time", SimpleNamespace(monotonic=lambda: next(clock))
    )
    panel = make_panel(seeds=1)
    panel.controls.phase.observe(lambda change: texts.append(change["new"]), "value")
    panel.run(wait=True)
    assert sum("s left)" in words for words in texts) > 3 and "left" not in texts[-1]


@pytest.mark.slow
def test_a_second_run_replaces_the_first_and_its_late_results_are_dropped(make_panel, job):
    panel = make_panel()
    job.gate.clear()
    panel.run()
    panel.run()
    job.gate.set()
    assert panel.wait(60) and panel.status == "done" and job.closed == 2
    assert len(panel.outcomes) == 4
    assert {row.run for row in panel.state("accuracy").runs.rows if row.outcomes} == {2}


@pytest.mark.slow
def test_sliders_move_while_a_run_goes_on(make_panel, job):
    panel = make_panel()
    job.gate.clear()
    panel.run()
    panel.controls.alpha.value = 3
    panel.views.select_view("partition")
    assert "α = 3" in panel.views["partition"].picture.alt and panel.status == "running"
    job.gate.set()
    assert panel.wait(60)
    assert {o.settings.alpha for o in panel.outcomes} == {0.1} and not panel.error
    panel.views.select_view("accuracy")
    assert "the controls have moved" in panel.views["accuracy"].caption.value


def test_errors_in_callbacks_are_shown(make_panel, monkeypatch):
    panel = make_panel()
    monkeypatch.setattr(panel.views["partition"].lab_view, "draw", lambda state: 1 / 0)
    panel.controls.alpha.value = 5
    assert "Unexpected ZeroDivisionError" in panel.controls.error.value
    assert "Traceback" in panel.error
    monkeypatch.undo()
    panel.controls.alpha.value = 6
    assert not panel.controls.error.value


@pytest.mark.slow
def test_warnings_of_a_run_are_shown_in_the_panel_and_nowhere_else(make_panel, job, capfd):
    job.warns = "The result could not be kept."
    panel = make_panel()
    panel.run(wait=True)
    assert "Note: The result could not be kept." in panel.controls.error.value
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_an_inline_run_that_is_interrupted_or_raises_can_be_run_again(make_panel, job, monkeypatch):
    def raise_interrupt(*_):
        yield from ()
        raise KeyboardInterrupt

    panel = make_panel(inline=True)
    monkeypatch.setattr(job, "_events", raise_interrupt)
    with pytest.raises(KeyboardInterrupt):
        panel.run()
    assert panel.status == "stopped" and not panel.controls.run.disabled

    def raise_key_error(*_):
        yield from ()
        raise KeyError("lost")

    monkeypatch.setattr(job, "_events", raise_key_error)
    panel.run()
    assert panel.status == "error" and "Unexpected KeyError" in panel.controls.error.value
    assert "Traceback" in panel.error and not panel.controls.run.disabled
    monkeypatch.undo()
    panel.run(wait=True)
    assert panel.status == "done" and len(panel.outcomes) == 4
