"""Co-Boosting's lab without a kernel, on short real runs: every view before, while and after, and its controls."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from lab_views import sentence_of

from fedlab_nb.labs import lab
from fedlab_nb.labs.coboosting.lab import LAB, Images, Switches, TeacherAndStudent, Trajectories
from fedlab_nb.labs.coboosting.numbers import (
    EQUAL,
    YOURS,
    by_class,
    client_logits,
    correct,
    halves,
    settings_for,
    tried,
)
from fedlab_nb.labs.sliders import Sliders
from fedlab_nb.methods.coboosting import CoBoostingReport
from fedlab_nb.study import job, run

SHORT = {
    "clients": 3, "coboosting.epochs": 4, "coboosting.images": 16, "coboosting.batch": 8,
    "coboosting.passes": 2, "coboosting.generator_steps": 2, "coboosting.mu": 0.5,
}  # fmt: skip
OWN = ("hand", "weights", "images", "curves", "switches")


def quick(**options):
    """A lab whose clients train for two epochs."""
    panel = lab("coboosting", **{**SHORT, **options})
    panel.controls.epochs.value = 2
    return panel


@pytest.fixture
def make(closing):
    return lambda **options: closing(quick(**options))


@pytest.fixture(scope="module")
def ran():
    """A panel after a run of two seeds, for tests that only look at it."""
    panel = quick(seeds=2)
    panel.run(wait=True)
    yield panel
    panel.close()


def test_before_a_run_every_view_says_what_to_do(make):
    panel = make()
    assert tuple(panel.lab_views) == OWN
    for name in OWN[:4]:
        assert panel.show(name) is None and "Press Run" in panel.views[name].frame.value
    assert "Guess, then press the button" in sentence_of(panel, "switches")
    assert all(len(view.title) <= 20 for view in panel.lab_views.values())


def test_after_a_run_every_view_has_its_picture_and_marks_client_and_class(ran):
    try:
        for client, klass in ((-1, -1), (0, 0), (2, 9)):
            ran.views.client.value, ran.views.klass.value = client, klass
            for name in OWN[:4]:
                sentence_of(ran, name)
                if client >= 0 and name in ("hand", "weights"):
                    assert f"Client {client} is marked. Class number {klass} is marked." in ran.views[name].picture.alt
        assert "seeds 0–1" in ran.show("curves").alt
    finally:
        ran.views.client.value = ran.views.klass.value = -1


def test_dragging_changes_the_ensemble_and_equal_weights_are_fedens(ran):
    sentence_of(ran, "hand")
    view, fedens = ran.lab_views["hand"], ran.state("hand").runs.find("ensemble").outcomes[0]
    assert ran.state("hand").prepared is fedens
    np.testing.assert_array_equal(correct(client_logits(fedens), np.ones(3)), fedens.test_predictions)
    for i, slider in enumerate(view.sliders.sliders[:3]):
        for value in (0, 1):
            slider.value = value
            assert view.sliders.value[i] == value and sentence_of(ran, "hand")
    for slider in view.sliders.sliders[:3]:
        slider.value = 0
    assert sentence_of(ran, "hand") and view.sliders.value == (0, 0, 0)
    view.start.value = "equal"
    assert len(set(view.sliders.value)) == 1 and "equal weights are right for" in sentence_of(ran, "hand")


def test_setting_all_sliders_at_once(ran):
    sentence_of(ran, "hand")
    view = ran.lab_views["hand"]
    outcome = ran.state("hand").runs.find("coboosting").outcomes[0]
    view.start.value = "Co-Boosting"
    w = np.array(view.sliders.value)
    np.testing.assert_allclose(w / w.sum(), outcome.report.ensemble_weights, atol=1e-3)
    assert [s.value for s in view.sliders.sliders[:3]] == pytest.approx(list(w), abs=0.01)
    view.sliders.sliders[0].value = 0.36
    assert view.start.value == "own"  # from here on the weights are the learner's
    view.start.value = "by sample counts"
    np.testing.assert_allclose(
        view.sliders.value, outcome.label_counts.sum(1) / outcome.label_counts.sum(1).max(), atol=1e-3
    )


def test_the_judge_half_is_spoilt_by_dragging_on(make):
    panel = make()
    panel.run(wait=True)
    view = panel.lab_views["hand"]
    assert "judge half decides" in sentence_of(panel, "hand")
    view.sliders.sliders[0].value = 0.9
    view.learnt.value = view.judge.value = True
    sentence = sentence_of(panel, "hand")
    assert sentence.startswith("Judge half") and "Co-Boosting" in sentence and "no longer judges" not in sentence
    view.sliders.sliders[0].value = 0.1
    assert "no longer judges" in sentence_of(panel, "hand")
    panel.controls.alpha.value = 1.0  # another run: equal weights again, and both secrets hidden
    panel.run(wait=True)
    assert "judge half decides" in panel.show("hand").sentence
    assert not view.judge.value and not view.learnt.value and len(set(view.sliders.value)) == 1


def test_weights_from_real_images_are_those_of_the_whole_method(make):
    """The button leaves out images and student, which these weights do not read."""
    panel = make(methods=[])  # without the ensemble beside it: the logits are fetched by the view itself
    panel.run(wait=True)
    panel.work("hand")
    assert panel.error == "" and panel.status == "done"
    sentence_of(panel, "hand")
    view = panel.lab_views["hand"]
    weights = panel.state("hand").worked["weights"]
    whole = run("coboosting", epochs=2, **{**SHORT, "coboosting.ee_data": "real"})
    np.testing.assert_allclose(weights, whole.report.ensemble_weights, rtol=1e-6)
    view.judge.value = True
    assert "real images" in panel.show("hand").sentence
    assert "real images" in view.start.options[-1]


def test_the_replay_shows_every_epoch_that_was_kept(ran):
    sentence_of(ran, "images")
    view = ran.lab_views["images"]
    assert [name for name, _ in view.epoch.options] == ["1", "2", "3", "4"] and view.epoch.index == 3
    for i in (0, 3):
        view.epoch.index = i
        assert sentence_of(ran, "images").startswith(f"Images of epoch {i + 1}:")
    assert view.play.max == 3


def test_while_it_runs_weights_and_images_move(make):
    """From the report that the method shows as it goes."""
    panel = make()
    settings = settings_for("coboosting", panel.state("weights").settings)
    events = [e for e in job(["coboosting"], **settings, cache=False) if e.report is not None]
    for event in events[::2]:
        state = replace(panel.state("weights"), report=event.report)
        for view in (Trajectories(), Images()):
            view.adapt(state)
            picture = view.draw(state)
            assert picture.sentence and "seed 0" in picture.alt
    assert len(events) == 4 and len(events[-1].report.weights) == 4


def test_a_federation_that_moved_on_while_the_method_runs_does_not_stop_the_picture(make):
    state = replace(make().state("weights"), report=CoBoostingReport(weights=np.full((2, 5), 0.2)))
    assert "holds 0 samples" in Trajectories().draw(state).sentence


def test_switches_run_their_variants_on_the_seeds_asked_for(make):
    panel = make(**{"coboosting.epochs": 2})
    panel.set("switches", seeds=2)
    panel.work("switches")
    assert panel.status == "done" and "seeds 0–1, against all three" in sentence_of(panel, "switches")
    rows = panel.show("switches").table
    assert [r["variant"] for r in rows] == ["all three", "no GHS", "no DHS", "no EE", "none"]
    assert [r["EE"] for r in rows] == ["on", "on", "on", "off", "off"]
    assert len(panel.set("switches", which="all eight").table) == 8  # not run yet
    assert "Guess" in sentence_of(panel, "switches")


def test_stop_ends_the_switches_and_another_press_goes_on(make):
    panel = make()
    panel.show("switches")
    panel.views["switches"].button.click()
    panel.stop()
    assert panel.wait(20) and panel.status in ("stopped", "done") and panel.error == ""


def test_settings_of_methods_beside_it_do_not_reach_the_variants():
    own = {"alpha": 0.1, "lr": 0.1, "coboosting.mu": 0.5, "mu": 0.5, "seeds": 2, "partition": "iid"}
    assert settings_for("coboosting", {**own, "dense.images": 32, "rounds": 3, "overrides": ()}) == own
    assert settings_for("ensemble", own) == {"alpha": 0.1, "lr": 0.1, "seeds": 2, "partition": "iid"}


def test_a_run_that_answers_with_the_ensemble_has_no_student(make):
    panel = make(**{"coboosting.answer": "ensemble"})
    panel.run(wait=True)
    assert "server" not in sentence_of(panel, "curves") and sentence_of(panel, "hand")


def test_clients_of_two_architectures(make):
    panel = make(model="mlp,lenet5", methods=["ensemble"])
    panel.run(wait=True)
    assert all(sentence_of(panel, name) for name in OWN[:4])


def test_feature_rows_have_strips_for_images(tmp_path, make):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 90)
    x = (rng.normal(size=(90, 7)) + 2 * y[:, None]).astype(np.float32)
    path = tmp_path / "rows.npz"
    np.savez(path, x_train=x[:60], y_train=y[:60], x_test=x[60:], y_test=y[60:])
    panel = make(dataset=str(path), methods=["ensemble"])
    panel.run(wait=True)
    for name in OWN[:4]:
        assert panel.show(name) is not None and panel.error == "", name


@pytest.mark.parametrize("clients", [1, 13, 50])
def test_ten_sliders_for_any_number_of_clients(clients):
    block = Sliders()
    block.fit(clients, 0)
    shown = [s.description for s in block.sliders if s.layout.visibility == "visible"]
    assert shown == [str(k) for k in range(min(10, clients))] and len(block.value) == clients
    last = (clients - 1) // 10 * 10
    block.fit(clients, last)
    block.sliders[0].value = 0.02
    assert block.value[last] == 0.02 and len(block.value) == clients
    block.put(np.arange(1, clients + 1))
    assert block.value[-1] == (0.5 if clients == 1 else 1)


def test_a_chosen_client_brings_its_sliders(make):
    panel = make(clients=12, methods=["ensemble"])
    panel.run(wait=True)
    panel.views.client.value = 11
    sentence_of(panel, "hand")
    assert panel.lab_views["hand"].sliders.sliders[1].description == "11"


def test_halves_are_disjoint_and_fixed():
    tune, judge = halves(361)
    assert sorted([*tune, *judge]) == list(range(361)) and abs(len(tune) - len(judge)) <= 1
    assert np.array_equal(halves(361)[0], tune)


def test_accuracy_by_class_by_hand():
    accuracy = by_class(np.array([True, False, True]), np.array([0, 0, 2]), 4)
    np.testing.assert_array_equal(accuracy, [0.5, np.nan, 1, np.nan])


def test_what_weights_achieve_by_hand(ran):
    """Two seeds of weights on the run's own ensemble: accuracy on each half, and the paired difference."""
    ensemble, yours = ran.state("hand").runs.find("ensemble").outcomes[0], [1.0, 0.0, 0.0]
    hidden, shown = (tried(ensemble, {EQUAL: np.ones(3), YOURS: yours}, judged) for judged in (False, True))
    right = client_logits(ensemble)[:, 0].argmax(1) == ensemble.test_labels
    equal = ensemble.test_predictions == ensemble.test_labels
    for half, accuracy in zip(halves(len(right)), (shown.tune, shown.judge), strict=True):
        assert accuracy == {EQUAL: equal[half].mean(), YOURS: right[half].mean()}
    assert hidden.judge is None and hidden.tune == shown.tune and sum(hidden.sizes) == len(right)
    for tries, half in zip((hidden, shown), halves(len(right)), strict=True):
        difference = right[half].astype(float) - equal[half]
        error = difference.std(ddof=1) / len(half) ** 0.5
        wide = scipy.stats.t.ppf(0.975, len(half) - 1) * error
        assert (tries.gap.mean, tries.gap.half_width) == pytest.approx((difference.mean(), wide))
    assert shown.shares[YOURS].tolist() == yours and shown.by_class[YOURS].shape == (10,)


def test_the_spec_names_what_exists():
    assert LAB.method == "coboosting" and LAB.views[3:] == (TeacherAndStudent, Switches)
