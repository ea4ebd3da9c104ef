"""A picture in a browser follows a slider: only what moves is sent; Stop does not wait for a drawing."""

import threading
import time
import xml.etree.ElementTree as ET

import pytest

from fedlab_nb.panels import views
from fedlab_nb.plots import style

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def seen(make):
    """A panel whose frames a browser has seen."""
    panel = make()
    for view in panel.views.views.values():
        view.frame.size = [860, 345]
    return panel


def groups(*texts):
    """{id: what it draws} of every group of SVGs."""
    drawn = {}
    for text in texts:
        for group in ET.fromstring(text).iter(f"{SVG}g"):
            paths = [
                e.get("d") or e.get("{http://www.w3.org/1999/xlink}href")
                for e in group.iter()
                if e.get("id") is None
            ]
            drawn[group.get("id")] = [path for path in paths if path]
    return drawn


def test_a_drag_sends_what_moves_and_that_is_what_a_whole_drawing_has(seen):
    view = seen.views["partition"]
    before, sent = view.frame.value, []
    for alpha in (0.5, 0.52):
        seen.controls.alpha.value = alpha
        assert view.frame.value == before and f"α = {alpha:g}," in view.frame.alt
        assert not view.frame.moves["parts"].keys() & view.frame.rested.keys()
        sent.append(view.frame.rested | view.frame.moves["parts"])
        assert "effectively sees" in view.sentence.value
    assert (
        sent[0]["dots"] != sent[1]["dots"] and sent[0]["stored"] is sent[1]["stored"]
    )  # the numbers of one stored α
    assert {"clients", "stored"} <= view.frame.rested.keys()  # they travel no more
    moves, view._drawn = view.frame.moves, None
    view.show(view.picture, "")
    assert view.frame.moves == view.frame.rested == {} and view.frame.value != before
    assert moves["marks"] == view.frame.marks
    whole, sent = groups(view.frame.value), groups(*sent[1].values())
    bars_and_dots = [name for name in sent if name and name.startswith("mark")]
    assert len(bars_and_dots) >= 11
    for name in bars_and_dots:
        assert len(whole[name]) == len(sent[name]) > 0, name


def test_what_cannot_move_is_drawn_as_a_whole(seen, make):
    frame = seen.views["partition"].frame
    for change in (
        lambda: setattr(seen.views.client, "value", 3),
        lambda: setattr(seen.controls.clients, "value", 7),
        lambda: setattr(frame, "size", [700, 400]),
    ):
        before = frame.value
        change()
        assert frame.value != before and frame.moves == {}
    frame = make().views["partition"].frame  # of a panel that nobody has seen
    assert frame.moves == {} and frame.value.startswith("<svg")


def test_stop_does_not_wait_for_a_drawing_that_is_in_progress(make, job, monkeypatch):
    begun, go, lighten = threading.Event(), threading.Event(), style.lighten
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

    monkeypatch.setattr(style, "lighten", layout)
    monkeypatch.setattr(views.Views, "_rest", lambda *_: None)
    panel.views._rests = 0.0
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
