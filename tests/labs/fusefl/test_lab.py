"""FuseFL's lab without a kernel, on real but short runs: every view before, while and after, controls at both ends."""

import pytest
from lab_views import sentence_of

from fedlab_nb.data import federate
from fedlab_nb.labs import lab
from fedlab_nb.labs.fusefl.run import with_and_without_cue
from fedlab_nb.methods.fusefl import FuseFL

SYSTEM = "fusefl"
SHORT = {"epochs": 4, "clients": 3, "methods": ["ensemble"], **{"fusefl.passes": 2, "fusefl.virtual": 20}}
OWN = ["steps", "cue", "halves", "sums", "probes", "cues"]
MADE = "digits, α = 0.1, 3 clients"


@pytest.fixture(scope="module")
def ran():
    """A panel after one run of two seeds with a cue client, for the tests that only look at it."""
    panel = lab("fusefl", spurious="0", seeds=2, **SHORT)
    panel.run(wait=True)
    yield panel
    panel.close()


# ----------------------------------------------------------------------------------------------------- before and after
def test_before_a_run_each_view_says_what_to_do(make):
    panel = make()
    assert list(panel.lab_views) == OWN
    for name in ("steps", "cue", "halves", "probes"):
        assert panel.show(name) is None and "Press Run" in panel.views[name].frame.value.replace("press", "Press")
    assert "the paper prints 55.38 MiB" in sentence_of(panel, "sums", "ResNet-18")
    assert "the shortcut says more" in sentence_of(panel, "cues", "10 classes")
    for view in panel.lab_views.values():
        assert all(c.description and c.tooltip for c in view.controls if hasattr(c, "value"))


def test_after_a_run_every_view_has_its_picture(ran):
    assert ran.status == "done" and ran.error == ""
    assert sentence_of(ran, "steps", MADE).startswith("Step ")
    assert sentence_of(ran, "cue", MADE).startswith("Client 0 has the cue")
    assert "press the button" in sentence_of(ran, "halves", MADE)
    assert "Probes train on 1237 samples" in sentence_of(ran, "probes", MADE)


@pytest.mark.parametrize("name", ["steps", "cue", "probes"])
def test_a_chosen_client_is_told_and_a_chosen_class_does_no_harm(ran, name):
    ran.views.client.value, ran.views.klass.value = 2, 9
    try:
        if name == "steps":
            ran.lab_views["steps"].step.value = 10
        assert "Client 2" in sentence_of(ran, name, MADE)
    finally:
        ran.views.client.value = ran.views.klass.value = -1


# --------------------------------------------------------------------------------------------------------- own controls
def test_steps_forwards_and_back_and_no_further_than_the_ends(ran):
    ran.show("steps")
    view = ran.lab_views["steps"]
    view.step.value = 1
    view.back.click()
    assert view.step.value == 1 and ran.sentence.startswith("Step 1 of 10, start")
    for _ in range(12):
        view.next.click()
    assert view.step.value == view.step.max == 10 and "calibrate" in ran.sentence
    view.back.click()
    assert "fuse the classifiers" in ran.sentence and view.play.max == 10
    assert ran.error == ""


def test_the_bytes_of_the_last_step_are_those_of_the_ledger(ran):
    from fedlab_nb.plots.words import data_size

    ledger = ran.state("steps").outcome.ledger
    last = ran.show("steps").table[-1]
    assert (last["up so far"], last["down so far"]) == (data_size(ledger.up), data_size(ledger.down))


@pytest.mark.parametrize("test", ["clean", "tied", "untied"])
def test_cue_on_every_kind_of_test_images(ran, test):
    ran.show("cue")
    view = ran.lab_views["cue"]
    view.test.value = test
    assert {"clean": "without a cue", "tied": "of their class", "untied": "random cue"}[test] in sentence_of(
        ran, "cue", MADE
    )
    view.test.value = "clean"


def test_test_images_with_a_cue_are_other_images():
    data = federate("digits", clients=3).dataset
    sets = with_and_without_cue(data, 0.8, 0)
    assert {name: tuple(x.shape) for name, x in sets.items()} == dict.fromkeys(
        ("clean", "tied", "untied"), tuple(data.x_test.shape)
    )
    assert not (sets["tied"] == sets["clean"]).all() and not (sets["untied"] == sets["tied"]).all()


def test_sums_at_both_ends_of_every_control(make):
    panel = make()
    panel.show("sums")
    view = panel.lab_views["sums"]
    for network in ("paper", "own"):
        view.network.value = network
        for control in (view.clients, view.blocks, view.adaptor):
            ends = (control.min, control.max) if hasattr(control, "min") else (control.options[0], control.options[-1])
            for value in ends[::-1]:
                control.value = value
                assert "The fused model of" in panel.sentence and panel.error == ""
    assert tuple(view.blocks.options) == (1, 2) and panel.sentence.startswith("The fused model of 2 clients")
    view.network.value = "paper"
    assert tuple(view.blocks.options) == (2, 4, 8)
    panel.controls.extras["model"].value = "cnn:12"
    view.network.value = "own"
    assert tuple(view.blocks.options) == (1, 2, 3, 4) and "five-layer CNN" in panel.show("sums").alt


def test_two_cues_at_their_ends(make):
    panel = make()
    panel.show("cues")
    view = panel.lab_views["cues"]
    for real in (0, 1):
        for spurious in (0, 1):
            view.real.value, view.spurious.value = real, spurious
            which = "shortcut says more" if spurious > real else "real cue still says" if real > spurious else "both"
            assert which in panel.sentence and panel.error == ""


# ---------------------------------------------------------------------------------------------------------- live, work
def test_steps_are_drawn_while_it_runs(make, monkeypatch, tmp_path):
    monkeypatch.setenv("FEDLAB_NB_STORE", str(tmp_path))  # nothing remembered: a remembered run has no while
    panel, seen = make(methods=[], epochs=60, seeds=1), []
    panel.show("steps")
    view = panel.lab_views["steps"]
    draw = view.draw

    def watched(state):
        picture = draw(state)
        seen.append((state.outcome is None, picture.sentence))
        return picture

    view.draw = watched
    panel.run(wait=True)
    assert panel.error == "" and any("train for block" in sentence for live, sentence in seen if live)


def test_the_button_runs_the_other_half_on_the_same_seeds(ran):
    sentence = ran.work("halves").sentence
    assert ran.error == "" and "between two calibrated networks" in sentence and "seeds 0–1" in sentence
    rows = ran.show("halves").table
    assert [(r["network"], r["classifier"]) for r in rows][-1] == ("ensemble", "everyone's own")
    assert {r["network"] for r in rows} == {"fused, K = 2", "not fused, K = 1", "ensemble"}
    again = {r["classifier"]: r["seeds"] for r in rows if r["network"] == "fused, K = 2"}
    outcome = ran.state("halves").outcomes[1]
    assert f"1: {100 * outcome.accuracy:.1f} %" in again["averaged and calibrated"]


@pytest.mark.parametrize("knobs", [{"blocks": 1}, {"head": "own"}])
def test_the_button_of_a_run_that_is_itself_unfused_or_uncalibrated(make, knobs):
    panel = make(methods=[], seeds=1, **knobs)
    panel.run(wait=True)
    assert panel.error == ""
    assert "between two calibrated networks" in panel.work("halves").sentence and panel.error == ""
    panel.run(wait=True)  # a new run: what the button found belongs to the old one
    assert "between two" not in panel.show("halves").sentence


def test_stop_in_a_run_and_in_the_work(make):
    panel = make(epochs=400, methods=[], seeds=1)
    panel.run()
    panel.stop()
    assert panel.wait(20) and panel.status == "stopped" and panel.error == ""
    panel = make(methods=[], seeds=1)
    panel.run(wait=True)
    panel.views.choose("halves")
    panel.views["halves"].button.click()
    panel.stop()
    assert panel.wait(20) and panel.status in ("stopped", "done") and panel.error == ""
    panel.stop()


# -------------------------------------------------------------------------------------------------------------- corners
@pytest.mark.parametrize("options", [{"clients": 1, "spurious": ""}, {"adaptor": "average", "head": "average"}])
def test_corners(make, options):
    panel = make(methods=[], seeds=1, epochs=2, **options)
    panel.run(wait=True)
    assert panel.error == ""
    for name in OWN:
        assert panel.show(name) is not None and panel.error == "", (name, panel.error)


def test_networks_too_large_to_keep_their_clients(make, monkeypatch):
    monkeypatch.setattr("fedlab_nb.methods.fusefl.network.MOST_NUMBERS", 0)
    panel = make(methods=[], seeds=1, epochs=2, **{"fusefl.merge": "mean"})
    panel.run(wait=True)
    assert "Step " in sentence_of(panel, "steps", MADE)
    assert panel.show("cue") is None and "tick Ensemble" in panel.controls.error.value


def test_more_blocks_than_layers_is_said_in_the_panel(make):
    panel = make(methods=[], seeds=1, blocks=5)
    panel.run(wait=True)
    assert "mlp has 2 layers to cut between" in panel.controls.error.value
    for name in OWN:
        panel.show(name)


def test_every_knob_of_the_method_is_a_control(make):
    panel = make(adaptor="average")
    assert list(panel.controls.knobs.controls) == [knob.name for knob in FuseFL.fields()]
    assert "'fusefl.adaptor': 'average'" in panel.code()
