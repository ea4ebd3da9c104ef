"""FedLPA's lab without a kernel, on real but short runs: views before, while and after, controls at both ends."""

import dataclasses

import pytest
from lab_views import look_at, sentence_of

from fedlab_nb.labs.fedlpa import numbers
from fedlab_nb.methods.fedlpa.server import FedLPAReport
from fedlab_nb.study import job

SYSTEM = "fedlpa"
SHORT = {"epochs": 2, "clients": 3, "seeds": 1, "methods": []}
OWN = ["plane", "factors", "damping", "solver", "leak"]


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Three λ_damp and two kinds of noise in place of all."""
    monkeypatch.setattr(numbers, "HALVES", [1e-6, 1e-3, 100.0])
    monkeypatch.setattr(numbers, "NOISES", (0.0, 3.0))


def ends(control):
    """The first and the last value of a control."""
    if hasattr(control, "options"):
        values = [o[1] if isinstance(o, tuple) else o for o in control.options]
        return values[0], values[-1]
    if hasattr(control, "base"):
        return control.base**control.min, control.base**control.max
    return control.min, control.max


def test_before_a_run_the_plane_is_there_and_the_others_say_what_to_do(make):
    panel = make()
    assert list(panel.lab_views) == OWN and panel.views.visible == "plane"
    assert "Both clients' data together give (1.20, 1.20)" in sentence_of(panel, "plane", "")
    for name in OWN[1:]:
        assert panel.show(name) is None and "Press Run" in panel.views[name].frame.value
    for view in panel.lab_views.values():
        assert all(c.description and c.tooltip for c in view.controls)
    panel.views["solver"].button.click()
    panel.wait()
    assert "no finished run" in panel.controls.error.value or "needs a result" in panel.controls.error.value


def test_the_plane_follows_its_sliders_without_a_run(make):
    panel = make()
    picture = panel.set("plane", angle=45)
    assert "FedLPA lies at (1.29, 2.47), which is the same" in picture.sentence
    assert "the precision's diagonal at (1.71, 1.33), 1.21 away" in picture.sentence
    assert "angle 45 degrees" in picture.alt
    assert "FedLPA lies at (2.00, 2.00)" in panel.set("plane", damping=1e6).sentence


@pytest.mark.parametrize("name", OWN)
def test_every_view_after_a_run_with_its_controls_at_both_ends(ran, name):
    look_at(ran)
    sentence_of(ran, name, "")
    for control in ran.lab_views[name].controls:
        before = control.value
        for value in ends(control):
            control.value = value
            assert ran.error == "" and ran.views[name].picture is not None
        control.value = before
    look_at(ran, client=2, klass=9)
    sentence_of(ran, name, "")
    look_at(ran)


def test_factors_are_those_of_the_chosen_client_and_layer(ran):
    counts = ran.outcomes[0].report.train_counts
    for client in (0, 2):
        look_at(ran, client=client)
        assert sentence_of(ran, "factors").startswith(f"Client {client} holds mostly {counts[client].argmax()} ")
    last = ran.set("factors", layer=2).sentence
    assert "inputs to layer 3 vary in" in last and "mean image" not in last
    assert "the last column of A is its mean image" in ran.set("factors", layer=0).sentence
    assert "Shown as sent: λ_damp adds 0.032 to A's diagonal" in sentence_of(ran, "factors")
    assert "before damping" in ran.set("factors", what="measured").sentence
    ran.set("factors", what="sent")
    look_at(ran)


def test_lambda_starts_where_the_run_was_and_the_curve_passes_through_the_runs_validation_accuracy(ran):
    outcome = ran.outcomes[0]
    sentence = ran.set("damping", damping=1e-3).sentence
    words = "At λ_damp = 10⁻³, on validation images (the clients' held-out samples): exact "
    assert f"{words}{100 * outcome.accuracy_validation:.0f} %" in sentence
    assert "π = trace" in ran.set("damping", pi="trace").alt
    assert "π = 1 " in ran.set("damping", pi="one").alt


def test_the_solver_of_the_run_then_all_three(ran):
    outcome = ran.outcomes[0]
    first = sentence_of(ran, "solver")
    assert first.startswith("Conjugate gradients after") and f"accuracy {100 * outcome.accuracy:.0f} %" in first
    ran.set("solver", steps=100, damping=1e-6)
    picture = ran.work("solver")
    assert ran.error == "" and "gradient descent after 100 steps" in picture.sentence
    assert "λ_damp = 1e-06" in picture.alt and "shortcut EA after 0 steps" in picture.sentence
    assert ran.set("solver", step=0).sentence.count("after 0 steps") == 3


def test_labels_are_read_off_and_noise_hides_them(ran):
    clean = ran.set("leak", noise=0.0).sentence
    assert clean.startswith("Without noise a reader of the diagonal of the last B")
    assert "bias of the last layer" in ran.set("leak", source=numbers.BIAS).sentence
    assert ran.set("leak", noise=3.0).sentence.startswith("At noise 3")
    ran.set("leak", source=numbers.DIAGONAL, noise=0.0)


def test_the_residuals_move_while_it_solves(make):
    panel = make(solver="gd", iterations=200)
    panel.show("solver")
    panel.run(wait=True)
    assert panel.error == "" and "Gradient descent after 200 steps" in panel.sentence
    state = panel.state("solver")
    assert isinstance(state.report, FedLPAReport) and state.report is panel.outcomes[0].report
    work = job("fedlpa", epochs=2, clients=3, solver="gd", iterations=200, cache=False)
    *_, running = [event.report for event in work if event.report is not None]
    assert running.iterations == dict.fromkeys(state.report.layers, 128)
    before = dataclasses.replace(
        state, outcome=None, report=running, knobs={**state.knobs, "solver": "cg"}
    )  # moved since
    assert panel.lab_views["solver"].draw(before).sentence.startswith("Solving. Gradient descent after 128 steps")


def test_stop_while_it_solves(make):
    panel = make(solver="gd", iterations=20_000)
    panel.run()
    panel.stop()
    assert panel.wait(20) and panel.status == "stopped" and not panel.error


@pytest.mark.parametrize("options", [{"clients": 1}, {"model": "cnn", "clients": 2}])
def test_other_settings(make, options):
    panel = make(**options)
    panel.run(wait=True)
    look_at(panel, client=0, klass=0)
    for name in OWN:
        sentence_of(panel, name, "")
    assert ("mean patch" in panel.show("factors").sentence) == (options.get("model") == "cnn")


def test_posteriors_that_are_too_large_are_said_in_one_sentence(make, monkeypatch):
    monkeypatch.setattr("fedlab_nb.methods.fedlpa.server.LIMIT", 100)
    panel = make(seed=5)
    panel.run(wait=True)
    assert panel.show("factors") is None and "too large to be stored" in panel.controls.error.value


def test_which_first_layers_see_an_image():
    assert numbers.image_shape("digits", (64, 64)) == (1, 8, 8)
    assert numbers.image_shape("digits", (6, 1, 5, 5)) == (1, 5, 5)
    assert numbers.image_shape("digits", (16, 6, 5, 5)) is None
