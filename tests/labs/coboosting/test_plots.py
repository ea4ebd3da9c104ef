"""Co-Boosting's pictures: PNG, words and table on hand-made data, true sentences, and corners."""

import numpy as np
import pytest

from fedlab_nb.labs.coboosting.numbers import Tried, shares_of
from fedlab_nb.labs.coboosting.plots.curves import curves
from fedlab_nb.labs.coboosting.plots.hand import ByHand
from fedlab_nb.labs.coboosting.plots.switches import IDEAS, Variant, switches
from fedlab_nb.labs.coboosting.plots.weights import trajectories
from fedlab_nb.plots import png
from fedlab_nb.study.statistics import Band

SETTING = "digits, α = 0.1, 4 clients, seed 0"


def names(classes):
    return [f"class {c}" if classes > 26 else str(c) for c in range(classes)]


def counts(clients, classes, seed=0):
    return np.random.default_rng(seed).integers(0, 30, (clients, classes))


def sound(picture, setting=SETTING):
    """PNG, setting in the alt text, sentences, a table without nan."""
    assert png(picture).startswith(b"\x89PNG")
    assert setting in picture.alt and len(picture.alt) > 60
    assert picture.sentence[-1] in ".?" and "nan" not in picture.sentence + picture.alt + str(picture.table)
    assert picture.table
    return picture


# ------------------------------------------------------------------------------------------------ by hand
AHEAD = Band(0.07, 0.04, 180)


def by_hand(picture=None, clients=4, classes=10, judge=None, gap=AHEAD, real=False, **more):
    rng = np.random.default_rng(clients)
    weights = {"equal": np.ones(clients), "yours": np.array([3.0] + [1.0] * (clients - 1))}
    tune = {"equal": 0.54, "yours": 0.61}
    if judge:
        weights["Co-Boosting"], tune["Co-Boosting"] = rng.uniform(0, 1, clients), 0.63
        judge = {"equal": 0.5, "yours": 0.55, "Co-Boosting": 0.6}
    if real:
        weights["real images"], tune["real images"] = rng.uniform(0, 1, clients), 0.7
        judge = judge and {**judge, "real images": 0.72}
    by_class = {who: np.append(rng.uniform(0, 1, classes - 1), np.nan) for who in ("equal", "yours")}
    shares = {who: shares_of(w) for who, w in weights.items()}
    tried = Tried(counts(clients, classes), shares, by_class, tune, judge or None, gap, (180, 180))
    return (picture or ByHand()).show(tried, names(classes), setting=SETTING, **more)


def test_by_hand_says_what_the_weights_reach_and_that_they_are_tuned_on_test_images():
    text = sound(by_hand()).sentence
    assert "On the 180 images of the tune half your weights are right for 61 %, equal ones for 54 %" in text
    assert "(+7 ± 4 points, more than noise)" in text and "You tune on test images. Co-Boosting never sees one" in text
    assert "within the noise" in by_hand(gap=Band(0.02, 0.04, 180)).sentence
    assert "equal weights are right for 54 %" in by_hand(gap=Band(0.0, 0.0, 180)).sentence
    assert "too few images to tell" in by_hand(gap=Band(0.5, float("nan"), 1)).sentence


def test_the_judge_half_speaks_once_it_is_shown_and_no_more_once_it_is_spoilt():
    text = by_hand(judge=True).sentence
    assert text.startswith("Judge half: your weights 55 %, equal ones 50 %") and "Co-Boosting 60 %" in text
    assert text.endswith("On the tune half your weights had 61 %.")
    assert "no longer judges" in by_hand(judge=True, spoilt=True).sentence


def test_by_hand_draws_shares_and_marks():
    picture = by_hand(judge=True, client=2, klass=3)
    upper = picture.figure.axes[0]
    np.testing.assert_allclose([bar.get_height() for bar in upper.patches[1:5]], [0.5, 1 / 6, 1 / 6, 1 / 6])
    assert "yours are largest for client 0 50 %" in picture.alt
    assert "Client 2 is marked. Class number 3 is marked." in picture.alt
    assert picture.table[1] | {"tune half": "61 %", "judge half": "55 %", "client 0": "50 %"} == picture.table[1]


def test_redrawing_in_place_gives_the_picture_of_a_fresh_one():
    redrawn = ByHand()
    for options in ({}, {"judge": True, "client": 1, "klass": 2}, {"real": True}, {}):
        assert png(by_hand(redrawn, **options)) == png(by_hand(**options))


@pytest.mark.parametrize(("clients", "classes"), [(1, 2), (50, 10), (20, 40)])
def test_by_hand_at_the_extremes(clients, classes):
    sound(by_hand(clients=clients, classes=classes, judge=True, real=True, client=clients - 1, klass=classes - 1))


def test_all_weights_0_are_equal_shares():
    assert shares_of([0, 0, 0, 0]).tolist() == [0.25] * 4 and shares_of([3, 1]).tolist() == [0.75, 0.25]


# ------------------------------------------------------------------------------------------------ trajectories
PATH = np.array([[0.25] * 4, [0.3, 0.2, 0.2, 0.1], [0.5, 0.3, 0.2, 0.0]])


def test_trajectories_rank_the_clients_and_tell_what_they_hold():
    held = np.array([[30, 10, 0], [0, 5, 5], [9, 0, 0], [1, 1, 1]])
    picture = sound(trajectories(PATH, held, ["a", "b", "c"], setting=SETTING))
    assert picture.sentence == (
        "After 3 epochs client 0 counts most: 50 % of the weight (equal: 25 %); it holds 40 samples, mostly a. "
        "1 client with nearly no weight."
    )
    assert [row["client"] for row in picture.table] == [0, 1, 2, 3]
    assert picture.table[1] | {"epoch 1": "25 %", "epoch 3": "30 %", "class b": 5} == picture.table[1]
    looked = trajectories(PATH, held, ["a", "b", "c"], setting=SETTING, client=1, klass=2)
    assert "client 1 has 30 % of the weight (equal: 25 %), rank 2 of 4" in looked.sentence
    assert "mostly b and c" in looked.sentence and "Class number 2 is marked" in looked.alt


def test_lines_are_shares_of_the_weight():
    figure = trajectories(PATH, counts(4, 3), names(3), setting=SETTING, epochs=20).figure
    lines = [line.get_ydata() for line in figure.axes[0].lines if len(line.get_xdata()) == 3]
    np.testing.assert_allclose(lines, (PATH / PATH.sum(1, keepdims=True)).T)
    assert figure.axes[0].get_xlim() == (1, 20)


@pytest.mark.parametrize(("clients", "classes", "epochs"), [(1, 2, 1), (50, 10, 500), (17, 100, 3)])
def test_trajectories_at_the_extremes(clients, classes, epochs):
    path = np.random.default_rng(0).uniform(0, 1, (epochs, clients))
    held = counts(clients, classes)
    held[0] = 0
    for client in (None, 0, clients - 1):
        sound(trajectories(path, held, names(classes), setting=SETTING, client=client, klass=1))


# ------------------------------------------------------------------------------------------------ curves
TEACHER = {0: [0.5, 0.6, 0.7], 1: [0.5, 0.65, 0.74], 2: [0.5, 0.62, 0.72]}
STUDENT = {0: [(1, 0.2), (3, 0.6)], 1: [(1, 0.3), (3, 0.6)], 2: [(1, 0.25), (3, 0.6)]}


def test_curves_tell_the_rise_and_the_distance_to_the_teacher():
    flat = {"equal weights": {0: 0.5, 1: 0.5}, "FedAvg": {0: 0.3, 1: 0.4}}
    picture = sound(curves(TEACHER, STUDENT, flat, setting=SETTING, chance=0.1))
    assert picture.sentence == (
        "The ensemble goes from 50 % to 72 % (+22 ± 5 points, more than noise). The server model ends at 60 %; "
        "against its teacher, -12 ± 5 points, more than noise."
    )
    assert "FedAvg 35 %" in picture.alt and "guessing" in picture.alt
    rows = {row["what"]: row["accuracy"] for row in picture.table}
    assert rows["ensemble (teacher), first epoch"] == "50 %" and rows["equal weights"] == "50 %"


def test_one_seed_is_no_noise_and_no_server_model_is_no_line():
    one = sound(curves({3: TEACHER[0]}, {3: STUDENT[0]}, {}, setting=SETTING, chance=0.1))
    assert one.sentence == (
        "The ensemble goes from 50 % to 70 %. The server model ends at 60 %, 10 points from its teacher. With one seed "
        "nobody can tell how much of this is noise."
    )
    assert "server" not in sound(curves(TEACHER, {}, {}, setting=SETTING, chance=0.1)).sentence
    assert "server" not in sound(curves({0: [0.4]}, {}, {}, setting=SETTING, chance=0.1)).sentence


# ------------------------------------------------------------------------------------------------ switches
def variant(name, on, ensemble, server):
    return Variant(name, on, dict(enumerate(ensemble)), dict(enumerate(server)))


ALL = variant("all three", IDEAS, [0.7, 0.72, 0.71], [0.5, 0.52, 0.51])


def test_switches_name_what_matters_and_what_is_noise():
    no_ee = variant("no EE", ("GHS", "DHS"), [0.5, 0.5, 0.52], [0.5, 0.5, 0.53])
    no_ghs = variant("no GHS", ("DHS", "EE"), [0.71, 0.7, 0.71], [0.5, 0.53, 0.5])
    picture = sound(switches([ALL, no_ghs, no_ee], setting=SETTING))
    assert picture.sentence == (
        "Ensemble: no EE -20 ± 4 points; no GHS within the noise. Server: no switch matters clearly; no GHS and no EE "
        "within the noise (seeds 0–2, against all three)."
    )
    assert picture.table[2]["EE"] == "off" and picture.table[2]["ensemble"] == "51 %"
    assert "more than noise" in picture.table[2]["ensemble, against all three"]


def test_one_seed_decides_nothing_and_no_run_asks_for_a_guess():
    one = [variant("all three", IDEAS, [0.7], [0.5]), variant("none", (), [0.5], [0.4])]
    assert "With one seed nobody can tell" in sound(switches(one, setting=SETTING)).sentence
    empty = sound(switches([variant("all three", IDEAS, [], []), variant("none", (), [], [])], setting=SETTING))
    assert "Guess, then press the button" in empty.sentence and "not run yet" in empty.alt
