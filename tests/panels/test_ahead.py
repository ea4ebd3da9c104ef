"""While another process makes a map, views that nobody looks at are drawn; Stop ends a drawing that is in progress."""

import threading
import time
from contextlib import contextmanager

import pytest

from fedlab_nb.panels import ahead, figures, redraw
from fedlab_nb.plots import style, vector


@pytest.fixture
def apart(monkeypatch):
    """The process that makes maps: it waits for `gate` before each."""
    gate = threading.Event()

    @contextmanager
    def process():
        yield lambda x: gate.wait(20) and figures.plots.pca(x)

    monkeypatch.setattr(figures, "tsne_apart", process)
    yield gate
    gate.set()


def until(condition):
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    assert condition()


def looking(make, **options):
    """A panel after a run, in a browser that shows its features."""
    panel = make(**options)
    panel.views["partition"].frame.size = [700, 420]
    panel.run(wait=True)
    panel.views.choose("features")
    return panel


def test_while_a_map_is_made_the_other_views_are_drawn_once(make, apart):
    panel = looking(make)
    waited = ("communication", "classes")
    until(lambda: all(panel.views[name].frame.value.startswith("<svg") for name in waited))
    until(lambda: "fl-mapping" in panel._dom_classes)
    assert panel.views.visible == "features"
    drawn = {name: panel.views[name].picture for name in waited}
    apart.set()
    assert panel.wait(20) and not panel.error
    for name in waited:
        assert panel.show(name) is drawn[name]  # looked at, it is not drawn again
        assert panel.views[name].sentence.value and panel.views[name].caption.value


def test_a_view_that_is_drawn_ahead_just_now_shows_that_drawing_or_a_newer_one(make, apart, monkeypatch):
    """Chosen meanwhile, it waits for the one drawing; changed meanwhile, it is drawn anew from what is true now."""
    begun, go, made = threading.Event(), threading.Event(), []

    def slow(view, state):
        if view.kind.name != "classes":
            return original(view, state)
        begun.set()
        assert go.wait(20)
        made.append(original(view, state))
        return made[-1]

    original = ahead.made_of
    monkeypatch.setattr(ahead, "made_of", slow)
    panel = looking(make)
    assert begun.wait(20)
    threading.Timer(0.2, go.set).start()
    panel.views.choose("classes")
    assert panel.views["classes"].picture is made[0][0] and panel.views["classes"].frame.value == made[0][1].svg
    apart.set()
    assert panel.wait(20)

    for event in (begun, go, apart):
        event.clear()
    panel.views.choose("accuracy")
    panel.run(wait=True)
    panel.views["features"].kind._maps.clear()
    panel.views.choose("features")
    assert begun.wait(20)
    panel.views.client.value = 1
    go.set()
    apart.set()
    assert panel.wait(20)
    assert panel.views["classes"].picture is not made[1][0]
    assert "Client 1 on its own mix" in panel.show("classes").sentence and not panel.error


def test_what_cannot_be_drawn_ahead_says_so_where_it_is_looked_at(make, apart, monkeypatch):
    panel = make()
    monkeypatch.setattr(type(panel.views["classes"].kind), "draw", lambda self, state: 1 / 0)
    panel.views["partition"].frame.size = [700, 420]
    panel.run(wait=True)
    panel.views.choose("features")
    until(lambda: panel.views["communication"].picture is not None)
    apart.set()
    assert panel.wait(20) and not panel.error
    panel.views.choose("classes")
    assert "ZeroDivisionError" in panel.error


def test_stop_gives_up_a_drawing_that_is_in_progress(make, job, monkeypatch):
    """Between its layout and its lines: neither Stop nor the end of the run waits for the rest, and nothing is lost."""
    begun, go, stages = threading.Event(), threading.Event(), []
    lighten, written = style.lighten, vector.written
    panel = make(methods=["fedavg", "fens"], seeds=2)

    def layout(figure):
        stages.append("layout")
        if panel.outcomes and threading.current_thread() is not threading.main_thread() and not go.is_set():
            begun.set()
            assert go.wait(20)
        return lighten(figure)

    monkeypatch.setattr(style, "lighten", layout)
    monkeypatch.setattr(vector, "written", lambda *a, **k: stages.append("lines") or written(*a, **k))
    monkeypatch.setattr(redraw.Redraw, "rested", True)
    panel.run()
    assert begun.wait(20)
    start, at = time.monotonic(), len(stages)
    panel.stop()
    assert time.monotonic() - start < 5 and panel.status == "running"  # the drawing has the lock, Stop did not wait
    go.set()
    assert panel.wait(20) and panel.status == "stopped" and not panel.error and panel.outcomes
    assert stages[at:] == ["layout", "lines"]  # of the drawing after the end: the lines of the one before were not made
    assert panel.views["accuracy"].frame.value.startswith("<svg")


def test_what_is_looked_at_after_stop_is_drawn_though_the_work_has_not_ended(make, job):
    panel = make()
    panel.run(wait=True)
    job.gate.clear()
    panel.run()
    panel.stop()
    assert panel.status == "running"  # a long step, which goes on to its end
    panel.views.choose("partition")
    before = panel.views["partition"].frame.value
    panel.views.client.value = 1
    assert panel.views["partition"].frame.value != before and panel.status == "running"
    job.gate.set()
    assert panel.wait(20) and panel.status == "stopped" and not panel.error
