"""Co-Boosting's lab without a kernel, on short real runs: every view before, while and after, and its controls."""

from dataclasses import replace

import numpy as np
import pytest
from lab_views import every_control_at_both_ends, look_at, sentence_of, sound

from fedlab_nb.labs import lab
from fedlab_nb.labs.coboosting.hand import EQUAL, YOURS, ByHand, Sliders, Tried, tried
from fedlab_nb.labs.coboosting.images import DATA_FREE
from fedlab_nb.labs.coboosting.switches import IDEAS, Variant, switches
from fedlab_nb.labs.coboosting.votes import by_class, client_logits, correct, halves, shares_of
from fedlab_nb.labs.coboosting.weights import Trajectories, trajectories
from fedlab_nb.methods.coboosting import CoBoostingReport
from fedlab_nb.plots import png
from fedlab_nb.studies import run
from fedlab_nb.studies.statistics import Band, band

SYSTEM, RAN = "coboosting", {"seeds": 2}
SHORT = {
    "clients": 3, "coboosting.epochs": 4, "coboosting.images": 16, "coboosting.batch": 8,
    "coboosting.passes": 2, "coboosting.generator_steps": 2, "coboosting.mu": 0.5, "epochs": 2,
}  # fmt: skip
OWN = ("hand", "weights", "images")


def test_after_a_run_every_view_has_its_picture_and_marks_client_and_class(ran):
    every_control_at_both_ends(ran, OWN)
    look_at(ran, client=2)
    assert "client C (rank " in sentence_of(ran, "weights")
    look_at(ran)


def test_dragging_changes_the_ensemble_and_equal_weights_are_fedens(ran):
    sentence_of(ran, "hand")
    view, fedens = ran.lab_views["hand"], ran.state("hand").runs.find("ensemble").outcomes[0]
    assert ran.state("hand").prepared is fedens
    np.testing.assert_array_equal(
        correct(client_logits(fedens), np.ones(3)), fedens.test_predictions
    )
    for i, slider in enumerate(view.sliders.children[:3]):
        for slider.value in (1, 0):
            assert view.sliders.value[i] == slider.value and sentence_of(ran, "hand")
    assert view.sliders.value == (0, 0, 0)
    view.start.value = "equal"
    assert len(set(view.sliders.value)) == 1 and "(0 ± 0 points" in sentence_of(ran, "hand")
    view.start.value = "Co-Boosting"
    w, outcome = np.array(view.sliders.value), ran.state("hand").outcome
    np.testing.assert_allclose(w / w.sum(), outcome.report.ensemble_weights, atol=1e-3)
    assert [s.value for s in view.sliders.children] == pytest.approx(list(w), abs=0.01)
    view.sliders.children[0].value = 0.36
    assert view.start.value == "own"  # from here on the weights are the learner's
    view.start.value = "by sample counts"
    held = outcome.label_counts.sum(1)
    np.testing.assert_allclose(view.sliders.value, held / held.max(), atol=1e-3)


def test_the_judge_half_is_spoilt_by_dragging_on(make):
    panel = make()
    panel.run(wait=True)
    view = panel.lab_views["hand"]
    assert "judge half decides" in sentence_of(panel, "hand")
    view.sliders.children[0].value = 0.9
    view.learnt.value = view.judge.value = True
    sentence = sentence_of(panel, "hand")
    assert (
        sentence.startswith("Judge half")
        and "Co-Boosting" in sentence
        and "no longer judges" not in sentence
    )
    view.sliders.children[0].value = 0.1
    assert "no longer judges" in sentence_of(panel, "hand")
    panel.controls.alpha.value = 1.0  # another run: equal weights again, and both secrets hidden
    panel.run(wait=True)
    assert "judge half decides" in panel.show("hand").sentence
    assert not view.judge.value and not view.learnt.value and len(set(view.sliders.value)) == 1


def test_weights_from_real_images_are_those_of_the_whole_method(make):
    """The button leaves out images and student, which these weights do not read."""
    panel = make(
        methods=[]
    )  # without the ensemble beside it: the logits are fetched by the view itself
    panel.run(wait=True)
    panel.work("hand")
    assert panel.error == "" and panel.status == "done"
    sentence_of(panel, "hand")
    view = panel.lab_views["hand"]
    weights = panel.state("hand").worked
    whole = run("coboosting", **{**SHORT, "coboosting.ee_data": "real"})
    np.testing.assert_allclose(weights, whole.report.ensemble_weights, rtol=1e-6)
    view.judge.value = True
    assert "real images" in panel.show("hand").sentence
    assert "real images" in view.start.options[-1]


def test_the_replay_shows_every_epoch_that_was_kept(ran):
    sentence_of(ran, "images")
    view = ran.lab_views["images"]
    assert [name for name, _ in view.epoch.options] == [
        "1",
        "2",
        "3",
        "4",
    ] and view.epoch.index == 3
    for i in (0, 3):
        view.epoch.index = i
        assert sentence_of(ran, "images").startswith(f"Images of epoch {i + 1}:")
    assert view.play.max == 3


@pytest.mark.parametrize("name", ["weights", "images"])
def test_while_it_runs_weights_and_images_move(live, name):
    panel, seen = live(name, model="mlp,lenet5", methods=[], **{"coboosting.answer": "ensemble"})
    assert all("seed 0" in picture.alt for picture in seen)
    report = CoBoostingReport(weights=np.full((2, 5), 0.2))  # of clients that are no longer there
    state = replace(panel.state("weights"), report=report, outcome=None)
    assert "holds 0 samples" in Trajectories().draw(state).sentence


def test_switches_run_their_variants_on_the_seeds_asked_for(make, monkeypatch):
    monkeypatch.setattr("fedlab_nb.panels.views.SOON", 0)  # nothing begins by itself
    panel = make(seeds=2, **{"coboosting.epochs": 2})
    panel.work("switches")
    assert panel.status == "done" and "seeds 0–1, against all three" in sentence_of(
        panel, "switches"
    )
    rows = panel.show("switches").table
    assert [r["variant"] for r in rows] == ["all three", "no GHS", "no DHS", "no EE", "none"]
    assert [r["EE"] for r in rows] == ["on", "on", "on", "off", "off"]
    stored = panel.set("switches", which="all eight")  # until they are run here, too
    assert len(stored.table) == 8 and "seeds 0–9, against all three" in stored.sentence
    assert "Stored" in panel.views["switches"].caption.value


def test_a_slider_for_each_client():
    block = Sliders()
    for clients in (1, 13):
        block.put(np.arange(1, clients + 1))
        assert [s.description for s in block.children] == list("ABCDEFGHIJKLM"[:clients])
        assert block.value[-1] == (0.5 if clients == 1 else 1)
    block.children[12].value = 0.02
    assert block.value[12] == 0.02 and block.value[11] == pytest.approx(12 / 13, abs=1e-4)


def test_halves_and_accuracy_by_class():
    tune, judge = halves(361)
    assert sorted([*tune, *judge]) == list(range(361)) and abs(len(tune) - len(judge)) <= 1
    accuracy = by_class(np.array([True, False, True]), np.array([0, 0, 2]), 4)
    np.testing.assert_array_equal(accuracy, [0.5, np.nan, 1, np.nan])


def test_what_weights_achieve_by_hand(ran):
    """Two seeds of weights on the run's own ensemble: accuracy on each half, and the paired difference."""
    ensemble, yours = ran.state("hand").runs.find("ensemble").outcomes[0], [1.0, 0.0, 0.0]
    hidden, shown = (
        tried(ensemble, {EQUAL: np.ones(3), YOURS: yours}, judged) for judged in (False, True)
    )
    right = client_logits(ensemble)[:, 0].argmax(1) == ensemble.test_labels
    equal = ensemble.test_predictions == ensemble.test_labels
    for half, accuracy in zip(halves(len(right)), (shown.tune, shown.judge), strict=True):
        assert accuracy == {EQUAL: equal[half].mean(), YOURS: right[half].mean()}
    assert hidden.judge is None and hidden.tune == shown.tune and sum(hidden.sizes) == len(right)
    for tries, half in zip((hidden, shown), halves(len(right)), strict=True):
        assert tries.gap == band((right[half].astype(float) - equal[half]).tolist())
    assert shown.shares[YOURS].tolist() == yours and shown.by_class[YOURS].shape == (10,)


# ------------------------------------------------------------------------------------------------ by hand
SETTING = "digits, α = 0.1, 4 clients, seed 0"


def made(picture):
    return sound(picture, SETTING)


def names(classes):
    return [str(c) for c in range(classes)]


def counts(clients, classes, seed=0):
    return np.random.default_rng(seed).integers(0, 30, (clients, classes))


def by_hand(picture=None, clients=4, classes=10, judge=None, gap=(0.07, 0.04, 180), **more):
    rng = np.random.default_rng(clients)
    weights = {"equal": np.ones(clients), "yours": np.array([3.0] + [1.0] * (clients - 1))}
    tune = {"equal": 0.54, "yours": 0.61}
    if judge:
        weights["Co-Boosting"], tune["Co-Boosting"] = rng.uniform(0, 1, clients), 0.63
        judge = {"equal": 0.5, "yours": 0.55, "Co-Boosting": 0.6}
    by_class = {
        who: np.append(rng.uniform(0, 1, classes - 1), np.nan) for who in ("equal", "yours")
    }
    shares = {who: shares_of(w) for who, w in weights.items()}
    tried = Tried(
        counts(clients, classes), shares, by_class, tune, judge or None, Band(*gap), (180, 180)
    )
    return (picture or ByHand()).show(tried, names(classes), setting=SETTING, **more)


def test_by_hand_draws_shares():
    picture = by_hand(judge=True, client=2, klass=3)
    upper = picture.figure.axes[0]
    np.testing.assert_allclose(
        [bar.get_height() for bar in upper.patches[1:5]], [0.5, 1 / 6, 1 / 6, 1 / 6]
    )
    assert (
        picture.table[1] | {"tune half": "61 %", "judge half": "55 %", "client A": "50 %"}
        == picture.table[1]
    )
    assert shares_of([0, 0, 0, 0]).tolist() == [0.25] * 4 and shares_of([3, 1]).tolist() == [
        0.75,
        0.25,
    ]


def test_redrawing_in_place_gives_the_picture_of_a_fresh_one():
    redrawn = ByHand()
    for options in ({}, {"judge": True, "client": 1, "klass": 2}, {}):
        assert png(by_hand(redrawn, **options)) == png(by_hand(**options))
    made(by_hand(clients=50, classes=40, judge=True, client=49, klass=39))


# ------------------------------------------------------------------------------------------------ trajectories
PATH = np.array([[0.25] * 4, [0.3, 0.2, 0.2, 0.1], [0.5, 0.3, 0.2, 0.0]])


def test_trajectories_rank_the_clients_and_tell_what_they_hold():
    held = np.array([[30, 10, 0], [0, 5, 5], [9, 0, 0], [1, 1, 1]])
    picture = made(trajectories(PATH, held, ["a", "b", "c"], SETTING))
    assert (
        "client A (rank 1) has 50 % of the weight (equal: 25 %); it holds 40 samples, mostly a"
        in picture.sentence
    )
    assert [row["client"] for row in picture.table] == list("ABCD")
    assert (
        picture.table[1] | {"epoch 1": "25 %", "epoch 3": "30 %", "class b": 5} == picture.table[1]
    )
    looked = trajectories(PATH, held, ["a", "b", "c"], SETTING, client=1, klass=2).sentence
    assert (
        "client B (rank 2) has 30 % of the weight" in looked
        and "mostly b (50 %) and c (50 %)" in looked
    )
    figure = trajectories(PATH, counts(4, 3), names(3), SETTING, epochs=20).figure
    lines = [line.get_ydata() for line in figure.axes[0].lines if len(line.get_xdata()) == 3]
    np.testing.assert_allclose(lines, (PATH / PATH.sum(1, keepdims=True)).T)
    assert figure.axes[0].get_xlim() == (1, 20)
    held = np.append(counts(49, 40), np.zeros((1, 40), dtype=int), 0)
    path = np.random.default_rng(0).uniform(0, 1, (500, 50))
    made(trajectories(path, held, names(40), SETTING, client=49, klass=1))


def variant(on, ensemble, server):
    return Variant(on, dict(enumerate(ensemble)), dict(enumerate(server)))


def test_switches_name_what_matters_and_what_is_noise():
    whole = variant(IDEAS, [0.7, 0.72, 0.71], [0.5, 0.52, 0.51])
    no_ee = variant(("GHS", "DHS"), [0.5, 0.5, 0.52], [0.5, 0.5, 0.53])
    no_ghs = variant(("DHS", "EE"), [0.71, 0.7, 0.71], [0.5, 0.53, 0.5])
    picture = made(switches([whole, no_ghs, no_ee], SETTING))
    assert (
        "(seeds 0–2, against all three): of the ensemble no EE -20 ± 4; of the server nothing"
        in picture.sentence
    )
    assert picture.table[2]["EE"] == "off" and picture.table[2]["ensemble"] == "51 %"
    assert picture.table[2]["ensemble, against all three"] == "-20 ± 4 points, clear"
    one = switches([variant(IDEAS, [0.7], [0.5]), variant((), [0.5], [0.4])], SETTING)
    assert made(one).table[1]["ensemble, against all three"] == "-20 points, one seed"


@pytest.mark.parametrize("method", DATA_FREE)
def test_images_of_every_epoch_are_shown_for_a_data_free_method(method, closing):
    panel = closing(lab(method, clients=3, epochs=1, methods=[], **{f"{method}.epochs": 2}))
    assert panel.show("images") is None and "Press Run" in panel.views["images"].frame.value
    panel.run(wait=True)
    picture = panel.show("images")
    assert panel.error == "" and "epoch 2 of 2" in picture.alt and len(picture.table) == 2
    panel.lab_views["images"].epoch.index = 0
    assert "epoch 1 of 2" in panel.views["images"].picture.alt
