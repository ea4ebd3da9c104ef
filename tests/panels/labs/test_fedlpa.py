"""FedLPA's lab without a kernel, on real but short runs: views before, while and after, controls at both ends."""

import pytest

from fedlab_nb.panels import lab
from fedlab_nb.panels.labs import fedlpa_damping, fedlpa_leak
from fedlab_nb.panels.labs.fedlpa import image_shape

SHORT = {"epochs": 2, "clients": 3, "seeds": 1, "methods": []}
OWN = ["plane", "factors", "damping", "solver", "leak"]


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Three λ and two kinds of noise in place of all."""
    monkeypatch.setattr(fedlpa_damping, "HALVES", [1e-6, 1e-3, 100.0])
    monkeypatch.setattr(fedlpa_leak, "NOISES", (0.0, 3.0))


@pytest.fixture(scope="module")
def ran():
    """A panel after one run, for the tests that only look at it."""
    panel = lab("fedlpa", **SHORT)
    panel.run(wait=True)
    yield panel
    panel.close()


@pytest.fixture
def make():
    made = []

    def new(**options):
        made.append(lab("fedlpa", **{**SHORT, **options}))
        return made[-1]

    yield new
    for panel in made:
        panel.close()


def look_at(panel, client=-1, klass=-1):
    panel.views.client.value, panel.views.klass.value = client, klass


def told(panel, name):
    picture = panel.show(name)
    assert panel.error == "" and picture is not None, name
    assert picture.sentence and "nan" not in picture.sentence and picture.table
    assert "data:image/png;base64,iVBOR" in panel.views[name].frame.value
    return picture.sentence


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
    assert list(panel.own.views) == OWN and panel.views.visible == "plane"
    assert "Both clients' data together give (1.20, 1.20)" in told(panel, "plane")
    for name in OWN[1:]:
        assert panel.show(name) is None and "Press Run" in panel.views[name].frame.value
    for view in panel.own.views.values():
        assert all(c.description and c.tooltip for c in view.controls)
    panel.own.buttons["solver"].click()
    panel.wait()
    assert "no finished run" in panel.controls.error.value or "needs a result" in panel.controls.error.value


def test_the_plane_follows_its_sliders_without_a_run(make):
    panel = make()
    view = panel.own.views["plane"]
    view.angle.value = 45
    assert "FedLPA lies at (1.29, 2.47), which is the same" in told(panel, "plane")
    assert "the diagonal alone at (1.71, 1.33), 1.21 away" in panel.sentence
    assert "angle 45 degrees" in panel.views["plane"].picture.alt
    view.damping.value = 1e6
    assert "FedLPA lies at (2.00, 2.00)" in panel.sentence


@pytest.mark.parametrize("name", OWN)
def test_every_view_after_a_run_with_its_controls_at_both_ends(ran, name):
    look_at(ran)
    told(ran, name)
    for control in ran.own.views[name].controls:
        before = control.value
        for value in ends(control):
            control.value = value
            assert ran.error == "" and ran.views[name].picture is not None
        control.value = before
    look_at(ran, client=2, klass=9)
    told(ran, name)
    look_at(ran)


def test_factors_are_those_of_the_chosen_client_and_layer(ran):
    counts = ran.outcomes[0].artefacts["train_counts"]
    for client in (0, 2):
        look_at(ran, client=client)
        assert told(ran, "factors").startswith(f"Client {client} holds mostly {counts[client].argmax()} ")
    layer = ran.own.views["factors"].layer
    layer.value = 2
    assert "inputs to layer 3 vary in" in ran.sentence and "mean image" not in ran.sentence
    layer.value = 0
    assert "the last column of A is its mean image" in ran.sentence
    look_at(ran)


def test_lambda_starts_where_the_run_was_and_the_curve_passes_through_the_runs_accuracy(ran):
    outcome = ran.outcomes[0]
    told(ran, "damping")
    ran.own.views["damping"].damping.value = 1e-3
    assert f"At λ = 10⁻³: exact (FedLPA) {100 * outcome.accuracy:.0f} %" in ran.sentence
    ran.own.views["damping"].pi.value = "trace"
    assert "π = trace" in ran.views["damping"].picture.alt
    ran.own.views["damping"].pi.value = "one"


def test_the_solver_of_the_run_then_all_three(ran):
    outcome = ran.outcomes[0]
    first = told(ran, "solver")
    assert first.startswith("Conjugate gradients after") and f"accuracy {100 * outcome.accuracy:.0f} %" in first
    view = ran.own.views["solver"]
    view.steps.value, view.damping.value = 100, 1e-6
    picture = ran.work("solver")
    assert ran.error == "" and "gradient descent after 100 steps" in picture.sentence
    assert "λ = 1e-06" in picture.alt and "shortcut EA after 0 steps" in picture.sentence
    view.step.value = 0
    assert ran.sentence.count("after 0 steps") == 3


def test_labels_are_read_off_and_noise_hides_them(ran):
    view = ran.own.views["leak"]
    view.noise.value = 0.0
    clean = told(ran, "leak")
    assert clean.startswith("Without noise whoever reads the diagonal of the last B")
    view.source.value = fedlpa_leak.BIAS
    assert "bias of the last layer" in ran.sentence
    view.noise.value = 3.0
    assert ran.sentence.startswith("At noise 3")
    view.source.value, view.noise.value = fedlpa_leak.DIAGONAL, 0.0


def test_the_residuals_move_while_it_solves(make):
    panel = make(solver="gd", iterations=200)
    panel.show("solver")
    panel.run(wait=True)
    assert panel.error == "" and "Gradient descent after 200 steps" in panel.sentence
    assert set(panel.own.live) == {f"residual.{name}" for name in panel.outcomes[0].extras["layers"]}
    look = panel.own.look("solver")
    look.outcome = None  # as it was before the end
    assert panel.own.views["solver"].draw(look).sentence.startswith("Solving. Gradient descent after 128 steps")


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
        told(panel, name)
    assert ("mean patch" in panel.show("factors").sentence) == (options.get("model") == "cnn")


def test_evidence_that_is_too_large_is_told_in_one_sentence(make, monkeypatch):
    monkeypatch.setattr("fedlab_nb.methods.parts.evidence.KEPT", 100)
    panel = make(seed=5)
    panel.run(wait=True)
    assert panel.show("factors") is None and "too large to keep" in panel.controls.error.value


def test_which_first_layers_see_an_image():
    assert image_shape("digits", (64, 64)) == (1, 8, 8)
    assert image_shape("digits", (6, 1, 5, 5)) == (1, 5, 5)
    assert image_shape("digits", (16, 6, 5, 5)) is None
