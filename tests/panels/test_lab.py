"""What makes a panel a lab: knobs from the dataclass, own views with their slow work and their buttons, guesses."""

import threading

import numpy as np
import pytest

from fedlab_nb.draw import Picture
from fedlab_nb.draw.style import new_figure
from fedlab_nb.errors import UsageError
from fedlab_nb.methods import METHODS
from fedlab_nb.panels import Extra, LabSpec, LabView, build, lab
from fedlab_nb.panels.guess import reveal
from fedlab_nb.panels.knobs import KnobBox


def picture(text):
    figure = new_figure((2, 1))
    return Picture(figure, alt=f"alt of {text}", sentence=text)


class Always(LabView):
    name, title, ready = "always", "Always", "always"

    def draw(self, look):
        return picture(f"rounds {look.knobs['rounds']}, client {look.client}, class {look.klass}")


class Slow(LabView):
    name, title, ready = "slow", "Slow"[:], "run"
    work_label = "Try it"
    prepared_in = set()

    def prepare(self, look):
        self.prepared_in.add(threading.current_thread().name)
        yield
        return round(look.outcome.accuracy, 3)

    def work(self, look):
        """Count to two."""
        for done in range(2):
            yield done, 2, f"step {done}"
        return "counted"

    def draw(self, look):
        return picture(f"prepared {look.prepared}, worked {look.worked}")


class Live(LabView):
    name, title, ready = "live", "Live", "live"

    def draw(self, look):
        return picture(f"live {sorted(look.live)}, {len(look.metrics)} metrics, outcome {look.outcome is not None}")


SPEC = LabSpec(
    method="fens", companions=("fedavg",), knobs=("rounds", "aggregator"), views=(Always, Slow, Live), name="lab",
    extras=(Extra("init", "Start", (("same", "same"), ("different", "different")), "How clients start"),),
)  # fmt: skip


@pytest.fixture
def toy(job):
    panel = build(SPEC, methods=SPEC.companions, job=job, seeds=1)
    yield panel
    job.gate.set()
    panel.close()


def text(panel, name):
    return panel.views[name].sentence.value


def test_every_field_of_every_method_has_its_control():
    for name, cls in METHODS.items():
        box = KnobBox(name)
        assert list(box.controls) == [knob.name for knob in cls.fields()]
        assert box.changed == {}, name
        assert all(control.description and control.tooltip for control in box.controls.values())


def test_knobs_are_settings_of_the_run_and_of_its_python_lines(toy, job):
    toy.controls.knobs["rounds"].value = 7
    toy.controls.extras["init"].value = "different"
    assert "**{'fens.rounds': 7}" in toy.code() and "init='different'" in toy.code()
    toy.run(wait=True)
    methods, _, settings = job.calls[0]
    assert methods == ["fens", "fedavg"] and settings["fens.rounds"] == 7 and settings["init"] == "different"
    assert toy.error == "" and "fens.rounds = 7" in toy.record.rows[0].setting


def test_knobs_move_a_view_that_is_always_ready_and_clients_and_classes_are_told(toy):
    assert toy.show("always").sentence == "rounds 50, client None, class None"
    toy.controls.knobs["rounds"].value = 9
    toy.views.client.value, toy.views.klass.value = 3, 4
    assert text(toy, "always") == '<p role="status">rounds 9, client 3, class 4</p>'


def test_a_view_says_what_to_do_then_prepares_in_the_worker_and_works_at_its_button(toy):
    assert toy.show("slow") is None and "Press Run" in toy.views["slow"].frame.value
    with_nothing = toy.own.buttons["slow"]
    with_nothing.click()
    assert "needs a result" in toy.controls.error.value
    toy.run(wait=True)
    shown = toy.show("slow")
    assert shown.sentence.startswith("prepared 0.") and shown.sentence.endswith("worked None")
    assert Slow.prepared_in == {"fedlab_nb panel"}
    assert toy.work("slow").sentence.endswith("worked counted") and toy.status == "done"


def test_live_views_are_drawn_while_it_runs(toy, job):
    job.live = {"weights": np.zeros(3)}
    toy.show("live")
    toy.run(wait=True)
    assert text(toy, "live").startswith("<p role=\"status\">live ['weights']".replace("'", "&#x27;"))


def test_a_guess_is_revealed_after_the_run(toy):
    toy.controls.guess.method.value = "fens"
    toy.controls.guess.share.value = 100
    toy.run(wait=True)
    toy.show("accuracy")
    assert "You guessed 100 % for FENS; it is" in text(toy, "accuracy") and "too high" in text(toy, "accuracy")


def test_reveal_names_the_gap():
    assert reveal("X", 0.4, [0.5]) == "You guessed 40 % for X; it is 50 %: 10 points too low."
    assert reveal("X", 0.5, [0.4, 0.6]) == "You guessed 50 % for X; it is 50 % (mean of 2 seeds): exactly right."


def test_teachers_hide_and_fix_knobs_and_wrong_names_are_told(job):
    panel = lab("dense", job=job, hide=["epochs", "guess"], fixed={"dense.temperature": 2}, images=16)
    knobs = panel.controls.knobs
    assert knobs["temperature"].disabled and knobs["temperature"].value == 2 and knobs["images"].value == 16
    assert panel.controls.guess.row.layout.display == "none"
    panel.close()
    with pytest.raises(UsageError, match="did you mean 'fens'"):
        lab("fen", job=job)
    with pytest.raises(UsageError, match="aggregator"):
        build(SPEC, methods=(), job=job, aggregator="nothing")


def test_unknown_views_are_told(toy):
    with pytest.raises(UsageError, match="Unknown view"):
        toy.show("nowhere")


def test_a_view_that_cannot_be_drawn_does_not_hold_up_the_run(toy, monkeypatch):
    toy.show("always")
    monkeypatch.setattr(Always, "draw", lambda self, look: 1 / 0)
    toy.controls.knobs["rounds"].value = 3
    assert "ZeroDivisionError" in toy.controls.error.value
    toy.run(wait=True)
    assert toy.status == "done" and len(toy.outcomes) == 2


def test_plain_epochs_are_the_local_ones_and_the_method_s_own_are_qualified(job):
    panel = lab("dense", job=job, epochs=3, **{"dense.epochs": 4})
    assert panel.controls.epochs.value == 3 and panel.controls.knobs["epochs"].value == 4
    panel.close()


def test_a_slider_stands_where_the_preset_is():
    """A browser moves a slider to the nearest step: the preset's value has to be one."""
    for name in METHODS:
        for knob, control in KnobBox(name).controls.items():
            step = getattr(control, "step", None)
            if step and hasattr(control, "min") and isinstance(control.value, float):
                places = (control.value - control.min) / step
                assert abs(places - round(places)) < 1e-9, (name, knob)
