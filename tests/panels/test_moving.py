"""A picture in a browser follows a slider, and is dim while it is older; Stop does not wait for a drawing."""

import threading
import time

import pytest

from fedlab_nb.panels import views
from fedlab_nb.plots import style, vector


@pytest.fixture
def seen(make):
    """A panel whose frames a browser has seen."""
    panel = make()
    for view in panel.views.views.values():
        view.frame.size = [860, 345]
    return panel


def is_dim(view):
    return "fl-older" in view.box._dom_classes


def test_a_drag_draws_the_whole_picture_of_each_setting(seen, make):
    view = seen.views["partition"]
    before = view.frame.value
    for alpha in (0.5, 0.52):
        seen.controls.alpha.value = alpha
        assert f"α = {alpha:g}," in view.frame.alt
        assert "each effectively sees about" in view.sentence.value
        assert view.frame.value not in ("", before)
        before = view.frame.value
    fresh = make(alpha=0.52).views["partition"]
    assert fresh.frame.marks == view.frame.marks and fresh.frame.alt == view.frame.alt
    frame = make().views["partition"].frame  # of a panel that nobody has seen
    assert frame.value.startswith("<svg")


def test_a_picture_is_dim_from_the_change_until_the_new_one_is_drawn(seen, monkeypatch):
    view = seen.views["partition"]
    dim_while_drawing = []

    def draw(figure):
        dim_while_drawing.append(is_dim(view))
        return vector.draw_svg(figure)

    monkeypatch.setattr(views, "draw_svg", draw)
    seen.controls.alpha.value = 0.5
    assert dim_while_drawing == [True] and not is_dim(view)


def test_results_of_another_setting_are_dim_and_the_partition_is_not(seen, job):
    seen.run(wait=True)
    accuracy = seen.views["accuracy"]
    partition = seen.views["partition"]
    assert not is_dim(accuracy)
    seen.controls.alpha.value = 0.5
    assert is_dim(accuracy) and "press Run" in accuracy.caption.value
    seen.show("partition")
    assert not is_dim(partition)
    seen.controls.alpha.value = 0.1
    assert not is_dim(seen.views["accuracy"])
    seen.controls.alpha.value = 0.5
    seen.show("accuracy")
    job.gate.clear()
    seen.run()
    assert is_dim(accuracy) and "has no result yet" in accuracy.caption.value
    job.gate.set()
    assert seen.wait(20) and not is_dim(accuracy)


@pytest.mark.slow
def test_stop_does_not_wait_for_a_drawing_that_is_in_progress(make, job, monkeypatch):
    begun = threading.Event()
    go = threading.Event()
    lighten = style.exclude_data_from_layout
    panel = make(methods=["fedavg", "fens"], seeds=2)

    def layout(figure):
        if (
            panel.outcomes
            and threading.current_thread() is not threading.main_thread()
            and not go.is_set()
        ):
            begun.set()
            assert go.wait(20)
        return lighten(figure)

    monkeypatch.setattr(style, "exclude_data_from_layout", layout)
    monkeypatch.setattr(views.Views, "_pause_drawing_in_proportion_to_last_one", lambda *_: None)
    panel.views._resting_until = 0.0
    panel.run()
    assert begun.wait(20) and panel.status == "running"
    stop = threading.Thread(target=panel.stop)
    stop.start()
    end = time.monotonic() + 10
    while panel.status != "stopped" and time.monotonic() < end:
        time.sleep(0.01)
    assert panel.status == "stopped"  # while the drawing still goes on
    go.set()
    stop.join()
    assert panel.wait(20) and panel.status == "stopped" and not panel.error and panel.outcomes
    assert panel.views["accuracy"].frame.value.startswith("<svg")
