"""Co-Boosting's lab without a kernel, on short real runs: its views before, during and after a run, its controls."""

from base64 import b64encode
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from javascript import run_javascript
from lab_views import (
    check_picture,
    choose_client_and_class,
    move_each_control_to_both_ends,
    show_sentence,
)

from fedlab_nb.labs import lab
from fedlab_nb.labs.coboosting.by_hand import (
    EQUAL,
    LEARNT,
    YOURS,
    WeightsByHandPicture,
    WeightsByHandView,
    WeightScores,
    WeightSliders,
    compute_weight_scores,
)
from fedlab_nb.labs.coboosting.images import DATA_FREE
from fedlab_nb.labs.coboosting.switches import IDEAS, IdeaVariant, draw_idea_variants
from fedlab_nb.labs.coboosting.votes import (
    compute_accuracy_by_class,
    get_client_logits_on_test_images,
    normalise_weights_to_shares,
    predict_by_weighted_logits,
    split_image_indices_into_fixed_halves,
    sum_weighted_logits,
)
from fedlab_nb.labs.coboosting.weights import (
    WeightTrajectoriesView,
    draw_weight_share_lines_and_class_bars,
)
from fedlab_nb.methods.coboosting import CoBoostingReport
from fedlab_nb.plots import render_picture_png
from fedlab_nb.studies import run
from fedlab_nb.studies.statistics import Band, compute_band

SYSTEM = "coboosting"
EXTRA_SETTINGS = {"seeds": 2}
SHORT_SETTINGS = {
    "clients": 3, "coboosting.epochs": 4, "coboosting.images": 16, "coboosting.batch": 8,
    "coboosting.passes": 2, "coboosting.generator_steps": 2, "coboosting.mu": 0.5, "epochs": 2,
}  # fmt: skip
VIEWS = ("hand", "weights", "images")


def drag_sliders(view, levels):
    """Set the sliders, as a person does in the browser."""
    view.adopt_values_set_in_browser_scene(
        {"count": view._given + 1, "levels": [float(level) for level in levels]}
    )


@pytest.mark.slow
def test_after_a_run_every_view_has_its_picture_and_marks_client_and_class(finished_lab):
    move_each_control_to_both_ends(finished_lab, VIEWS)
    choose_client_and_class(finished_lab, client=2)
    assert "client C (rank " in show_sentence(finished_lab, "weights")
    choose_client_and_class(finished_lab)


# Takes its time as the first test of its file: it waits for a run of Co-Boosting.
def test_dragging_changes_the_ensemble_and_equal_weights_are_fedens(finished_lab):
    show_sentence(finished_lab, "hand")
    view = finished_lab.lab_views["hand"]
    state = finished_lab.state("hand")
    fedens = state.runs.find_current_row("ensemble").outcomes[0]
    assert state.prepared is fedens
    equal_classes = predict_by_weighted_logits(get_client_logits_on_test_images(fedens), np.ones(3))
    np.testing.assert_array_equal(equal_classes, fedens.test_predictions)
    for i in range(3):
        for value in (1, 0):
            levels = list(view.sliders.value)
            levels[i] = value
            drag_sliders(view, levels)
            assert view.sliders.value[i] == value
            assert show_sentence(finished_lab, "hand")
    assert view.sliders.value == (0, 0, 0)
    view.start.value = "equal"
    assert len(set(view.sliders.value)) == 1
    assert show_sentence(finished_lab, "hand")
    assert "0 ± 0 points" in finished_lab.show("hand").detail
    view.start.value = "Co-Boosting"
    weights = np.array(view.sliders.value)
    outcome = finished_lab.state("hand").outcome
    learnt = outcome.report.ensemble_weights
    np.testing.assert_allclose(weights / weights.sum(), learnt, atol=1e-3)
    assert finished_lab.show("hand").scene["levels"] == list(weights)
    drag_sliders(view, [0.36, *weights[1:]])
    assert view.start.value == "own"  # from here on the weights are the learner's
    view.start.value = "by sample counts"
    sample_counts = outcome.label_counts.sum(1)
    np.testing.assert_allclose(view.sliders.value, sample_counts / sample_counts.max(), atol=1e-3)


@pytest.mark.slow
def test_the_judge_half_no_longer_judges_once_weights_are_dragged_after_a_look(open_lab):
    panel = open_lab()
    panel.run(wait=True)
    view = panel.lab_views["hand"]
    assert "the other half judges them" in show_sentence(panel, "hand")
    drag_sliders(view, [0.9, *view.sliders.value[1:]])
    view.learnt.value = True
    view.judge.value = True
    sentence = show_sentence(panel, "hand")
    assert sentence.startswith("On new images")
    assert "Co-Boosting" in sentence
    assert "no longer judges" not in sentence
    drag_sliders(view, [0.1, *view.sliders.value[1:]])
    assert "no longer judges" in show_sentence(panel, "hand")
    panel.controls.alpha.value = 1.0  # another run: equal weights again, and both secrets hidden
    panel.run(wait=True)
    assert "the other half judges them" in panel.show("hand").sentence
    assert not view.judge.value
    assert not view.learnt.value
    assert len(set(view.sliders.value)) == 1


@pytest.mark.slow
def test_weights_from_real_images_are_those_of_the_whole_method(open_lab):
    """The button leaves out images and student, which these weights do not read."""
    panel = open_lab(methods=[])  # without the ensemble beside it, the view gets the logits itself
    panel.run(wait=True)
    panel.work("hand")
    assert panel.error == ""
    assert panel.status == "done"
    show_sentence(panel, "hand")
    view = panel.lab_views["hand"]
    weights = panel.state("hand").worked
    whole = run("coboosting", **{**SHORT_SETTINGS, "coboosting.ee_data": "real"})
    np.testing.assert_allclose(weights, whole.report.ensemble_weights, rtol=1e-6)
    view.judge.value = True
    assert "real images" in panel.show("hand").sentence
    assert "real images" in view.start.options[-1]


def test_the_replay_shows_every_epoch_that_was_kept(finished_lab):
    show_sentence(finished_lab, "images")
    view = finished_lab.lab_views["images"]
    assert [name for name, _ in view.epoch.options] == ["1", "2", "3", "4"]
    assert view.epoch.index == 3
    for i in (0, 3):
        view.epoch.index = i
        assert show_sentence(finished_lab, "images").startswith(f"Images of epoch {i + 1}:")
    assert view.play.max == 3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["weights", "images"])
def test_while_it_runs_weights_and_images_move(record_run, name):
    options = {"model": "mlp,lenet5", "methods": [], "coboosting.answer": "ensemble"}
    panel, pictures = record_run(name, **options)
    assert all("seed 0" in picture.alt for picture in pictures)
    report = CoBoostingReport(weights=np.full((2, 5), 0.2))  # of clients that are no longer there
    state = replace(panel.state("weights"), report=report, outcome=None)
    assert "holds 0 samples" in WeightTrajectoriesView().draw(state).detail


@pytest.mark.slow
def test_switches_run_their_variants_on_the_seeds_asked_for(open_lab, monkeypatch):
    monkeypatch.setattr("fedlab_nb.panels.views.SOON", 0)  # nothing begins by itself
    panel = open_lab(seeds=2, **{"coboosting.epochs": 2})
    panel.work("switches")
    assert panel.status == "done"
    assert "Against all three ideas (seeds 0–1)" in show_sentence(panel, "switches")
    rows = panel.show("switches").table
    variants = [row["variant"] for row in rows]
    assert variants == ["all three", "no GHS", "no DHS", "no EE", "none"]
    assert [row["EE"] for row in rows] == ["on", "on", "on", "off", "off"]
    stored = panel.set("switches", which="all eight")  # until they are run here, too
    assert len(stored.table) == 8
    assert "Against all three ideas (seeds 0–9)" in stored.sentence
    assert "Stored" in panel.views["switches"].caption.value


def test_a_slider_for_each_client():
    sliders = WeightSliders()
    for clients in (1, 13):
        sliders.set_weights(np.arange(1, clients + 1))
        assert len(sliders.value) == clients
        assert sliders.value[-1] == (0.5 if clients == 1 else 1)
    assert sliders.value[11] == pytest.approx(12 / 13, abs=1e-4)


def test_weights_that_no_slider_allows_are_ignored():
    view = WeightsByHandView()
    view.sliders.set_weights([1, 2])
    before = view.sliders.value
    for levels in ([1.0], [0.5, 1.1], [float("nan"), 0.5], []):
        view.adopt_values_set_in_browser_scene({"count": 1, "levels": levels})
        assert view.sliders.value == before


@settings(max_examples=3, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([(7, 1, 3), (20, 4, 10), (30, 13, 2)]))
def test_the_browser_adds_up_as_python_does(seed, shape):
    """Sums of logits to 1e-6, and what weights get right, also weights that are all 0."""
    images, clients, classes = shape
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 5, shape).astype(np.float32)
    labels = rng.integers(0, classes, images)
    tune, _ = split_image_indices_into_fixed_halves(images)
    for weights in (rng.uniform(0, 1, clients), np.zeros(clients)):
        sums, share, scores = run_javascript(
            "hand_sums",
            "const logits = unpackNumbers(packed);"
            "return [[...sumLogits(logits, weights, classes)], normaliseWeights(weights),"
            " scoreWeights({ logits, labels, classes }, weights, numbers)];",
            packed=b64encode(logits.tobytes()).decode(),
            weights=weights.tolist(),
            labels=labels.tolist(),
            classes=classes,
            numbers=tune.tolist(),
        )
        expected = sum_weighted_logits(logits, weights)
        np.testing.assert_allclose(np.reshape(sums, expected.shape), expected, rtol=0, atol=1e-6)
        np.testing.assert_allclose(share, normalise_weights_to_shares(weights), atol=1e-12)
        is_right = predict_by_weighted_logits(logits, weights) == labels
        assert scores["all"] == is_right[tune].mean()
        by_class = compute_accuracy_by_class(is_right[tune], labels[tune], classes)
        found_by_class = [
            np.nan if accuracy is None else accuracy for accuracy in scores["byClass"]
        ]
        np.testing.assert_allclose(found_by_class, by_class)


def test_halves_and_accuracy_by_class():
    tune, judge = split_image_indices_into_fixed_halves(361)
    assert sorted([*tune, *judge]) == list(range(361))
    assert abs(len(tune) - len(judge)) <= 1
    accuracy = compute_accuracy_by_class(np.array([True, False, True]), np.array([0, 0, 2]), 4)
    np.testing.assert_array_equal(accuracy, [0.5, np.nan, 1, np.nan])


def test_scores_of_weights_computed_by_hand(finished_lab):
    """The first client alone against equal weights, on the run's own ensemble: accuracy on each
    half, and the paired difference.
    """
    ensemble = finished_lab.state("hand").runs.find_current_row("ensemble").outcomes[0]
    weights = {EQUAL: np.ones(3), YOURS: [1.0, 0.0, 0.0]}
    scores_without_judge = compute_weight_scores(ensemble, weights, includes_judge_half=False)
    scores_with_judge = compute_weight_scores(ensemble, weights, includes_judge_half=True)
    is_yours_right = (
        get_client_logits_on_test_images(ensemble)[:, 0].argmax(1) == ensemble.test_labels
    )
    is_equal_right = ensemble.test_predictions == ensemble.test_labels
    tune, judge = split_image_indices_into_fixed_halves(len(is_yours_right))
    for half, accuracy in ((tune, scores_with_judge.tune), (judge, scores_with_judge.judge)):
        assert accuracy == {EQUAL: is_equal_right[half].mean(), YOURS: is_yours_right[half].mean()}
    assert scores_without_judge.judge is None
    assert scores_without_judge.tune == scores_with_judge.tune
    assert sum(scores_without_judge.sizes) == len(is_yours_right)
    for half, scores in ((tune, scores_without_judge), (judge, scores_with_judge)):
        assert scores.gap == compute_band(
            (is_yours_right[half].astype(float) - is_equal_right[half]).tolist()
        )
    assert scores_with_judge.shares[YOURS].tolist() == weights[YOURS]
    assert scores_with_judge.by_class[YOURS].shape == (10,)


# ------------------------------------------------------------------------------------------------ by hand
SETTING = "digits, α = 0.1, 4 clients, seed 0"


def list_class_names(classes):
    return [str(c) for c in range(classes)]


def draw_random_counts(clients, classes):
    return np.random.default_rng(0).integers(0, 30, (clients, classes))


def draw_by_hand(picture=None, clients=4, classes=10, shows_judge=False, **marks):
    """Draw scores made by hand: YOURS gives the first client three times as much."""
    rng = np.random.default_rng(clients)
    weights = {EQUAL: np.ones(clients), YOURS: np.array([3.0] + [1.0] * (clients - 1))}
    tune = {EQUAL: 0.54, YOURS: 0.61}
    judge = None
    if shows_judge:
        weights[LEARNT] = rng.uniform(0, 1, clients)
        tune[LEARNT] = 0.63
        judge = {EQUAL: 0.5, YOURS: 0.55, LEARNT: 0.6}
    scores = WeightScores(
        counts=draw_random_counts(clients, classes),
        shares={name: normalise_weights_to_shares(w) for name, w in weights.items()},
        by_class={
            name: np.append(rng.uniform(0, 1, classes - 1), np.nan) for name in (EQUAL, YOURS)
        },
        tune=tune,
        judge=judge,
        gap=Band(0.07, 0.04, 180),
        sizes=(180, 180),
    )
    picture = picture or WeightsByHandPicture()
    return picture.redraw(scores, list_class_names(classes), setting=SETTING, **marks)


def test_by_hand_draws_shares():
    picture = draw_by_hand(shows_judge=True, selected_client=2, selected_class=3)
    bars = picture.figure.axes[0].patches[1:5]
    heights = [bar.get_height() for bar in bars]
    np.testing.assert_allclose(heights, [0.5, 1 / 6, 1 / 6, 1 / 6])
    yours = picture.table[1]
    assert yours["tune half"] == "61 %"
    assert yours["judge half"] == "55 %"
    assert yours["client A"] == "50 %"
    assert normalise_weights_to_shares([0, 0, 0, 0]).tolist() == [0.25] * 4
    assert normalise_weights_to_shares([3, 1]).tolist() == [0.75, 0.25]


@pytest.mark.slow
def test_redrawing_in_place_gives_the_picture_of_a_fresh_one():
    redrawn = WeightsByHandPicture()
    for options in ({}, {"shows_judge": True, "selected_client": 1, "selected_class": 2}, {}):
        assert render_picture_png(draw_by_hand(redrawn, **options)) == render_picture_png(
            draw_by_hand(**options)
        )
    picture_of_many_clients = draw_by_hand(
        clients=50, classes=40, shows_judge=True, selected_client=49, selected_class=39
    )
    check_picture(picture_of_many_clients, SETTING)


# ------------------------------------------------------------------------------------------------ trajectories
PATH = np.array([[0.25] * 4, [0.3, 0.2, 0.2, 0.1], [0.5, 0.3, 0.2, 0.0]])
HELD = np.array([[30, 10, 0], [0, 5, 5], [9, 0, 0], [1, 1, 1]])


def test_trajectories_rank_the_clients_and_say_what_they_hold():
    picture = check_picture(
        draw_weight_share_lines_and_class_bars(PATH, HELD, ["a", "b", "c"], SETTING), SETTING
    )
    assert (
        "client A (rank 1) has 50 % of the weight; equal shares would be 25 %." in picture.sentence
    )
    assert "Client A holds 40 samples, mostly a" in picture.detail
    assert [row["client"] for row in picture.table] == list("ABCD")
    second = picture.table[1]
    assert second["epoch 1"] == "25 %"
    assert second["epoch 3"] == "30 %"
    assert second["class b"] == 5


def test_trajectories_tell_of_the_selected_client():
    selected = {"selected_client": 1, "selected_class": 2}
    picture = draw_weight_share_lines_and_class_bars(
        PATH, HELD, ["a", "b", "c"], SETTING, **selected
    )
    assert "client B (rank 2) has 30 % of the weight" in picture.sentence
    assert "mostly b (50 %) and c (50 %)" in picture.detail


def test_trajectories_draw_shares_over_the_epochs_of_the_whole_run():
    counts = draw_random_counts(4, 3)
    figure = draw_weight_share_lines_and_class_bars(
        PATH, counts, list_class_names(3), SETTING, planned_epochs_or_0_if_ended=20
    ).figure
    line_axes = figure.axes[0]
    lines = [line.get_ydata() for line in line_axes.lines if len(line.get_xdata()) == 3]
    np.testing.assert_allclose(lines, (PATH / PATH.sum(1, keepdims=True)).T)
    assert line_axes.get_xlim() == (1, 20)


@pytest.mark.slow
def test_trajectories_of_many_clients_one_of_whom_holds_nothing():
    counts = np.append(draw_random_counts(49, 40), np.zeros((1, 40), dtype=int), 0)
    path = np.random.default_rng(0).uniform(0, 1, (500, 50))
    selected = {"selected_client": 49, "selected_class": 1}
    check_picture(
        draw_weight_share_lines_and_class_bars(
            path, counts, list_class_names(40), SETTING, **selected
        ),
        SETTING,
    )


# ------------------------------------------------------------------------------------------------ switches
def make_variant(active_ideas, ensemble, server):
    return IdeaVariant(active_ideas, dict(enumerate(ensemble)), dict(enumerate(server)))


def test_switches_tell_differences_from_noise():
    whole = make_variant(IDEAS, [0.7, 0.72, 0.71], [0.5, 0.52, 0.51])
    no_ghs = make_variant(("DHS", "EE"), [0.71, 0.7, 0.71], [0.5, 0.53, 0.5])
    no_ee = make_variant(("GHS", "DHS"), [0.5, 0.5, 0.52], [0.5, 0.5, 0.53])
    picture = check_picture(draw_idea_variants([whole, no_ghs, no_ee], SETTING), SETTING)
    assert picture.sentence == (
        "Against all three ideas (seeds 0–2) the teacher loses most with no EE, 20 points; the student "
        "is as good without any of them."
    )
    assert "the teacher loses 20 points with no EE" in picture.detail
    row = picture.table[2]
    assert row["EE"] == "off"
    assert row["ensemble"] == "51 %"
    assert row["ensemble, against all three"] == "-20 points, clear"


def test_where_switched_off_ideas_change_nothing_none_of_them_is_named():
    variants = [make_variant(IDEAS, [0.1], [0.1]), make_variant((), [0.1], [0.1])]
    picture = check_picture(draw_idea_variants(variants, SETTING), SETTING)
    assert picture.sentence == (
        "Against all three ideas (seed 0) the teacher is as good without any of them; the student is as "
        "good without any of them."
    )
    assert "0 points" not in picture.detail


def test_switches_of_one_seed_give_no_verdict():
    variants = [make_variant(IDEAS, [0.7], [0.5]), make_variant((), [0.5], [0.4])]
    picture = check_picture(draw_idea_variants(variants, SETTING), SETTING)
    assert picture.table[1]["ensemble, against all three"] == "-20 points, one seed"


# ------------------------------------------------------------------------------------------------ data-free methods
@pytest.mark.slow
@pytest.mark.parametrize("method", DATA_FREE)
def test_images_of_every_epoch_are_shown_for_a_data_free_method(method, closing):
    panel = closing(lab(method, clients=3, epochs=1, methods=[], **{f"{method}.epochs": 2}))
    assert panel.show("images") is None
    assert "Press Run" in panel.views["images"].frame.value
    panel.run(wait=True)
    picture = panel.show("images")
    assert panel.error == ""
    assert "epoch 2 of 2" in picture.alt
    assert len(picture.table) == 2
    panel.lab_views["images"].epoch.index = 0
    assert "epoch 1 of 2" in panel.views["images"].picture.alt
