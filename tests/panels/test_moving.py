"""A picture in a browser follows a slider, and is dim while it is older; Stop does not wait for a drawing."""

import threading
import time

import pytest

from fedlab_nb.panels import views
from fedlab_nb.plots import style


@pytest.fixture
def shown_panel(make_panel):
    """A panel whose frames a browser shows."""
    panel = make_panel()
    for view in panel.views.views.values():
        view.frame.size = [860, 345]
    return panel


def is_dim(view):
    return "fl-older" in view.box._dom_classes


@pytest.mark.slow
def test_a_drag_draws_the_whole_picture_of_each_setting(shown_panel, make_panel):
    view = shown_panel.views["partition"]
    before = view.frame.value
    for alpha in (0.5, 0.52):
        shown_panel.controls.alpha.value = alpha
        assert f"α = {alpha:g}," in view.frame.alt
        assert "each effectively sees about" in view.sentence.value
        assert view.frame.value not in ("", before)
        before = view.frame.value
    fresh = make_panel(alpha=0.52).views["partition"]
    assert fresh.frame.marks == view.frame.marks and fresh.frame.alt == view.frame.alt
    frame = make_panel().views["partition"].frame  # of a panel that no browser shows
    assert frame.value.startswith("<svg")


@pytest.mark.slow
def test_a_picture_is_dim_from_the_change_until_the_new_one_is_drawn(shown_panel, monkeypatch):
    view = shown_panel.views["partition"]
    dim_while_drawing = []

    def draw(figure):
        dim_while_drawing.append(is_dim(view))
        return style.draw_light_dark_svg_element(figure)

    monkeypatch.setattr(views, "draw_light_dark_svg_element", draw)
    shown_panel.controls.alpha.value = 0.5
    assert dim_while_drawing == [True] and not is_dim(view)


@pytest.mark.slow
def test_results_of_another_setting_are_dim_and_the_partition_is_not(shown_panel, job):
    shown_panel.run(wait=True)
    accuracy = shown_panel.views["accuracy"]
    partition = shown_panel.views["partition"]
    assert not is_dim(accuracy)
    shown_panel.controls.alpha.value = 0.5
    assert is_dim(accuracy) and "press Run" in accuracy.caption.value
    shown_panel.show("partition")
    assert not is_dim(partition)
    shown_panel.controls.alpha.value = 0.1
    assert not is_dim(shown_panel.views["accuracy"])
    shown_panel.controls.alpha.value = 0.5
    shown_panel.show("accuracy")
    job.gate.clear()
    shown_panel.run()
    assert is_dim(accuracy) and "has no result yet" in accuracy.caption.value
    job.gate.set()
    assert shown_panel.wait(20) and not is_dim(accuracy)


@pytest.mark.slow
def test_stop_does_not_wait_for_a_drawing_that_is_in_progress(make_panel, job, monkeypatch):
    started = threading.Event()
    may_go_on = threading.Event()
    exclude_data = style.exclude_data_from_layout
    panel = make_panel(methods=["fedavg", "fens"], seeds=2)

    def layout(figure):
        if (
            panel.outcomes
            and threading.current_thread() is not threading.main_thread()
            and not may_go_on.is_set()
        ):
            started.set()
            assert may_go_on.wait(20)
        return exclude_data(figure)

    monkeypatch.setattr(style, "exclude_data_from_layout", layout)
    monkeypatch.setattr(views.TabbedViews, "_delay_next_drawing_during_run", lambda *_: None)
    panel.views._resting_until = 0.0
    panel.run()
    assert started.wait(20) and panel.status == "running"
    stop = threading.Thread(target=panel.stop)
    stop.start()
    end = time.monotonic() + 10
    while panel.status != "stopped" and time.monotonic() < end:
        time.sleep(0.01)
    assert panel.status == "stopped"  # while the drawing still goes on
    may_go_on.set()
    stop.join()
    assert panel.wait(20) and panel.status == "stopped" and not panel.error and panel.outcomes
    assert panel.views["accuracy"].frame.value.startswith("<svg")
