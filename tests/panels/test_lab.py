"""What makes a panel a lab: knobs from the method's dataclass, and views of its own with slow work and buttons."""

import threading
from functools import partial

import ipywidgets as widgets
import pytest

from fedlab_nb.errors import UsageError
from fedlab_nb.labs import lab
from fedlab_nb.methods import METHODS
from fedlab_nb.methods.local import LocalReport
from fedlab_nb.panels import Extra, LabSpec, LabView, Panel
from fedlab_nb.panels.choices import KnobControls
from fedlab_nb.plots import Picture
from fedlab_nb.plots.style import make_figure


def make_picture(sentence):
    figure = make_figure((2, 1))
    return Picture(figure, alt=f"alt of {sentence}", sentence=sentence)


class Always(LabView):
    name, title, ready = "always", "Always", "always"

    def draw(self, state):
        return make_picture(
            f"rounds {state.knobs['rounds']}, client {state.client}, class {state.class_index}"
        )


class Slow(LabView):
    name, title, ready = "slow", "Slow", "run"
    work_label = "Try it"
    work_help = "Count to two."
    prepared_in = set()

    def prepare(self, state):
        self.prepared_in.add(threading.current_thread().name)
        yield
        return round(state.outcome.accuracy, 3)

    def work(self, state):
        for step in range(2):
            yield step, 2, f"step {step}"
        return "counted"

    def draw(self, state):
        return make_picture(f"prepared {state.prepared}, worked {state.worked}")


class Live(LabView):
    name, title, ready = "live", "Live", "live"
    running = []  # (fields of the report, metrics) of each drawing during a run

    def draw(self, state):
        shown = sorted(state.report.get_fields_that_are_not_none())
        if state.outcome is None:
            self.running.append((shown, len(state.metrics)))
        return make_picture(f"live {shown}, outcome {state.outcome is not None}")


class Chooser(LabView):
    name, title, ready = "chooser", "Chooser", "data"

    def __init__(self):
        super().__init__()
        self.which = widgets.Dropdown(options=[("first", 1), ("second", 2)])
        self.share = widgets.FloatSlider(0.5, min=0, max=1)
        self.controls = [self.which, self.share]
        self.label = "not a control"

    def draw(self, state):
        return make_picture(
            f"which {self.which.value}, share {self.share.value:g}, alpha {state.settings['alpha']:g}"
        )


SPEC = LabSpec(
    method="fens",
    companions=("fedavg",),
    knobs=("rounds", "aggregator"),
    views=(Always, Slow, Live, Chooser),
    name="lab",
    extras=(
        Extra("init", "Start", (("same", "same"), ("different", "different")), "How clients start"),
    ),
)


@pytest.fixture
def panel(make_panel):
    return make_panel(partial(Panel, SPEC), seeds=1, methods=None)


def read_sentence(panel, name):
    return panel.views[name].sentence.value


def test_every_field_of_every_method_has_its_control():
    """A browser moves a slider to the nearest step: the preset's value has to be one."""
    for name, cls in METHODS.items():
        box = KnobControls(name)
        assert list(box.controls) == [knob.name for knob in cls.fields()]
        assert box.non_default_settings == {}, name
        assert all(control.description and control.tooltip for control in box.controls.values())
        for knob, control in box.controls.items():
            if isinstance(control, widgets.FloatSlider):
                places = (control.value - control.min) / control.step
                assert abs(places - round(places)) < 1e-9, (name, knob)


@pytest.mark.slow
def test_knobs_are_settings_of_the_run_and_of_its_python_lines(panel, job):
    panel.controls.knobs["rounds"].value = 7
    panel.controls.extras["init"].value = "different"
    assert "**{'fens.rounds': 7}" in panel.code() and "init='different'" in panel.code()
    assert panel.show("always").sentence == "rounds 7, client None, class None"
    panel.views.client.value, panel.views.class_index.value = 3, 4
    assert read_sentence(panel, "always") == '<p role="status">rounds 7, client 3, class 4</p>'
    panel.run(wait=True)
    methods, _, settings = job.calls[0]
    assert methods == ["fens", "fedavg"]
    assert settings["fens.rounds"] == 7
    assert settings["init"] == "different"
    assert panel.error == ""
    assert "fens.rounds = 7" in str(panel.state("accuracy").runs.rows[0].setting)


def test_a_view_says_what_to_do_then_prepares_in_the_worker_and_works_when_its_button_is_pressed(
    panel,
):
    assert panel.show("slow") is None and "Press Run" in panel.views["slow"].frame.value
    button = panel.views["slow"].button
    assert button.tooltip == "Count to two."
    button.click()
    assert "needs a result" in panel.controls.error.value
    panel.run(wait=True)
    shown = panel.show("slow")
    assert shown.sentence.startswith("prepared 0.") and shown.sentence.endswith("worked None")
    assert Slow.prepared_in == {"fedlab_nb panel"}
    assert panel.work("slow").sentence.endswith("worked counted") and panel.status == "done"


def test_controls_of_a_view_without_a_result_are_hidden_until_the_run(panel):
    """They would show settings of a run that is still to come, beside knobs that have others."""

    def has_hidden_controls(name):
        return "fl-unready" in panel.views[name].box._dom_classes

    panel.show("live")
    panel.show("chooser")
    assert has_hidden_controls("live") and not has_hidden_controls("chooser")
    panel.run(wait=True)
    panel.show("live")
    assert not has_hidden_controls("live")


def test_set_opens_a_view_and_sets_its_controls(panel):
    assert panel.set("chooser", which=2, share=0.25).sentence == "which 2, share 0.25, alpha 0.1"
    assert panel.views.visible_view_name == "chooser" and panel.sentence.startswith("which 2")
    assert panel.set("chooser", which=1).sentence == "which 1, share 0.25, alpha 0.1"
    assert "α = 0.1" in panel.set("partition").alt and panel.views.visible_view_name == "partition"


@pytest.mark.slow
def test_set_refuses_wrong_names_and_values(panel):
    for view, controls, sentence in [
        ("chooser", {"witch": 2}, "Unknown control of chooser 'witch': did you mean 'which'"),
        ("chooser", {"which": 3}, "which is 3, but it must be one of: 1, 2"),
        ("chooser", {"share": 2}, "share is 2, but it must be a number from 0 to 1"),
        ("choser", {}, "did you mean 'chooser'"),
    ]:
        with pytest.raises(UsageError, match=sentence):
            panel.set(view, **controls)


@pytest.mark.slow
def test_a_view_is_drawn_from_its_state(panel):
    assert panel.state("slow").outcome is None and panel.state("slow").settings["alpha"] == 0.1
    panel.run(wait=True)
    panel.work("slow")
    state = panel.state("slow")
    assert state.outcome is panel.outcomes[0]
    assert set(state.others) == {"fedavg"}
    assert state.number == 1
    assert state.worked == "counted" and state.prepared == round(state.outcome.accuracy, 3)
    assert panel.state("accuracy").outcomes == {0: state.outcome}
    assert panel.state("accuracy").worked is None
    with pytest.raises(UsageError, match="did you mean 'slow'"):
        panel.state("slo")


def test_live_views_are_drawn_while_it_runs(panel, job, monkeypatch):
    monkeypatch.setattr("fedlab_nb.panels.views.REDRAW", 0)
    job.report = LocalReport(best_client=1)
    Live.running.clear()
    panel.show("live")
    panel.run(wait=True)
    assert Live.running and {tuple(shown) for shown, _ in Live.running} == {("best_client",)}
    assert read_sentence(panel, "live").startswith('<p role="status">live [], outcome True')


@pytest.mark.slow
def test_teachers_hide_and_fix_knobs_and_wrong_names_are_refused(make_panel, job):
    fixed = {"hide": ["epochs", "poison"], "fixed": {"dense.temperature": 2}}
    panel = make_panel(partial(lab, "dense"), **fixed, images=16, epochs=3)
    knobs = panel.controls.knobs
    # `epochs` without a method's name are the local ones.
    assert panel.controls.epochs.value == 3 != knobs["epochs"].value
    assert knobs["temperature"].disabled
    assert knobs["temperature"].value == 2
    assert knobs["images"].value == 16
    assert panel.controls.poison.row.layout.display == "none"
    with pytest.raises(UsageError, match="did you mean 'fens'"):
        lab("fen", job=job)
    with pytest.raises(UsageError, match="aggregator"):
        Panel(SPEC, methods=(), job=job, aggregator="nothing")
