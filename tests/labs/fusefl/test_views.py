"""FuseFL's lab without a kernel, on short real runs: its views during and after a run, its controls at both ends."""

import numpy as np
import pytest
from lab_views import (
    check_picture,
    choose_client_and_class,
    move_each_control_to_both_ends,
    read_texts,
    show_sentence,
)

from fedlab_nb.data import federate
from fedlab_nb.labs.fusefl.cue import (
    CueResults,
    draw_images_and_accuracies_with_cue,
    make_test_sets_by_cue,
)
from fedlab_nb.labs.fusefl.fusion_calibration import draw_fusion_calibration
from fedlab_nb.labs.fusefl.probes import DecoderReading, ProbeResults, draw_probe_curves
from fedlab_nb.labs.fusefl.steps import (
    RunReplay,
    choose_clients_to_draw,
    draw_fusion_step,
    list_fusion_steps,
)
from fedlab_nb.methods.fusefl.network import FuseFLReport
from fedlab_nb.plots.words import format_client_letters, format_data_size

SYSTEM = "fusefl"
EXTRA_SETTINGS = {"spurious": "0", "seeds": 2}
SHORT_SETTINGS = {
    "epochs": 4,
    "clients": 3,
    "methods": ["ensemble"],
    "fusefl.passes": 2,
    "fusefl.virtual": 20,
}
VIEWS = ["steps", "cue", "halves", "probes"]
SETTING_OF_RUN = "digits, α = 0.1, 3 clients"


# ----------------------------------------------------------------------------------------------------- before and after


# Slow because it draws every view at both ends of every control.
@pytest.mark.slow
def test_every_view_after_a_run_speaks_of_the_chosen_client(finished_lab):
    move_each_control_to_both_ends(finished_lab, VIEWS)
    choose_client_and_class(finished_lab, client=2, class_index=9)
    finished_lab.lab_views["steps"].step.value = 10
    for name in ("steps", "cue", "probes"):
        assert "client c" in show_sentence(finished_lab, name, SETTING_OF_RUN).lower()
    choose_client_and_class(finished_lab)


# --------------------------------------------------------------------------------------------------------- own controls
@pytest.mark.slow
def test_steps_forwards_and_back_and_no_further_than_the_ends(finished_lab):
    finished_lab.show("steps")
    view = finished_lab.lab_views["steps"]
    view.step.value = 1
    view.back.click()
    assert view.step.value == 1
    assert finished_lab.sentence.startswith("Step 1 of 10, start")
    for _ in range(12):
        view.next.click()
    assert view.step.value == view.step.max == 10
    assert "calibrate" in finished_lab.sentence
    view.back.click()
    assert "fuse the classifiers" in finished_lab.sentence
    assert view.play.max == 10
    ledger = finished_lab.state("steps").outcome.ledger
    last_row = finished_lab.show("steps").table[-1]
    assert last_row["up so far"] == format_data_size(ledger.up)
    assert last_row["down so far"] == format_data_size(ledger.down)


def test_every_kind_of_test_images():
    data = federate("digits", clients=3).dataset
    sets = make_test_sets_by_cue(data, 0.8, 0)
    assert list(sets) == ["clean", "tied", "untied"]
    assert all(x.shape == data.x_test.shape for x in sets.values())
    assert not (sets["tied"] == sets["clean"]).all()
    assert not (sets["untied"] == sets["tied"]).all()


# ---------------------------------------------------------------------------------------------------------- live, work
@pytest.mark.slow
def test_steps_are_drawn_while_it_runs(record_run):
    _, pictures = record_run("steps", methods=[], epochs=60, seeds=1)
    assert any("train for block" in picture.sentence for picture in pictures)


# Takes its time: FuseFL runs once for the panel and once for the button.
def test_the_button_runs_the_other_half_on_the_same_seeds(finished_lab):
    sentence = finished_lab.work("halves").sentence
    assert finished_lab.error == ""
    assert "between two calibrated networks" in sentence
    rows = finished_lab.show("halves").table
    networks = {row["network"] for row in rows}
    assert networks == {"fused, K = 2", "not fused, K = 1", "full width"}
    fused = [row for row in rows if row["network"] == "fused, K = 2"]
    seeds = {row["classifier"]: row["seeds"] for row in fused}
    outcome = finished_lab.state("halves").outcomes[1]
    assert f"1: {100 * outcome.accuracy:.1f} %" in seeds["averaged and calibrated"]


@pytest.mark.slow
def test_the_button_of_a_run_that_is_itself_unfused_and_uncalibrated(open_lab):
    panel = open_lab(methods=[], seeds=1, blocks=1, head="own")
    panel.run(wait=True)
    assert panel.error == ""
    assert "between two calibrated networks" in panel.work("halves").sentence
    assert panel.error == ""
    panel.run(wait=True)  # a new run: what the button found belongs to the old one
    assert "between two" not in panel.show("halves").sentence


@pytest.mark.slow
def test_networks_too_large_to_keep_their_clients_and_the_plain_ones_made_beside(
    open_lab, monkeypatch, finished_lab
):
    monkeypatch.setattr("fedlab_nb.methods.fusefl.network.MOST_NUMBERS", 0)
    panel = open_lab(methods=[], seeds=1, spurious="0", **{"fusefl.merge": "mean"})
    panel.run(wait=True)
    assert "right at home" not in str(show_sentence(panel, "steps", SETTING_OF_RUN))
    columns = ("own images", "own, cue removed", "test, without a cue")
    rows_with_ensemble = finished_lab.show("cue").table[:3]  # there the ensemble ran beside it
    for row, row_beside in zip(panel.show("cue").table[:3], rows_with_ensemble, strict=True):
        assert [row[name] for name in columns] == [row_beside[name] for name in columns]


# ---------------------------------------------------------------------------------------------- pictures by hand
@pytest.mark.parametrize("marked", [(), (0,)])
def test_without_a_cue_nothing_is_said_of_its_removal(marked):
    images = np.zeros((2, 1, 8, 8))
    results = CueResults(
        setting=SETTING,
        marked=marked,
        home=[0.9, 0.8],
        bare=[0.9, 0.8],
        outside={"clean": [0.3, 0.4]},
        systems={},
        images=[(images, images)] * 2,
    )
    picture = draw_images_and_accuracies_with_cue(results)
    legend = [text.get_text() for text in picture.figure.axes[1].get_legend().get_texts()]
    assert ("cue is removed" in picture.sentence) == bool(marked)
    assert ("own, cue removed" in legend) == bool(marked)


SETTING = "digits, α = 0.1, 5 clients, seed 0"


def check(picture):
    return check_picture(picture, SETTING)


def make_replay(clients=5, blocks=2, adaptor="conv", head="ccvr"):
    phases = {"initial model": (0, 100)}
    for k in range(1, blocks + 1):
        phases[f"block {k}"] = (10 * k, 40 * k)
    phases |= {"classifiers": (5, 0), "class statistics": (7, 0)}
    heads = {"own": 0.5, "average": 0.4, "ccvr": 0.9}
    outside = [[0.2 + 0.01 * m for m in range(clients)]] * blocks
    report = FuseFLReport(home=np.ones((blocks, clients)), outside=outside, heads=heads)
    return RunReplay(
        clients, SETTING, {"blocks": blocks, "adaptor": adaptor, "head": head}, phases, report
    )


def test_steps_are_the_algorithm_and_bytes_add_up():
    every = list_fusion_steps(make_replay())
    kinds = [(s.kind, s.block) for s in every]
    assert kinds == [
        ("start", 1), ("train", 1), ("send", 1), ("freeze", 1), ("adapt", 1), ("train", 2), ("send", 2), ("freeze", 2),
        ("average", 2), ("calibrate", 2),
    ]  # fmt: skip
    assert [s.last_frozen_block_number for s in every] == [0, 0, 0, 1, 1, 1, 1, 2, 2, 2]
    assert [s.up for s in every] == [0, 0, 10, 10, 10, 10, 30, 30, 35, 42]
    assert [s.down for s in every] == [100, 100, 140, 140, 140, 140, 220, 220, 220, 220]
    assert [s.last_adapted_block_number for s in every][3:6] == [1, 2, 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clients", "blocks", "adaptor"), [(1, 1, "conv"), (9, 4, "conv"), (50, 13, "average")]
)
def test_networks_of_any_size_at_every_step(clients, blocks, adaptor):
    data = make_replay(clients, blocks, adaptor=adaptor)
    assert clients - 1 in choose_clients_to_draw(clients, clients - 1)
    assert len(choose_clients_to_draw(clients, None)) == min(clients, 8)
    for i in (2, 5, 10**6):
        picture = check(draw_fusion_step(data, i, selected_client=clients - 1))
        assert len(picture.table) == len(list_fusion_steps(data))
    assert picture.table[-1]["at home, on test samples; fused"] == "90 %"
    assert (
        f"Client {format_client_letters(clients - 1)} after round {blocks}: 100 % at home"
        in picture.sentence
    )


def test_a_run_that_goes_on_is_drawn_without_accuracies():
    bare = RunReplay(
        5, SETTING, {"blocks": 2, "adaptor": "conv", "head": "ccvr"}, {}, FuseFLReport()
    )
    running = [bare._replace(report=FuseFLReport(block=k, sent=(1500, 3000))) for k in (2, 3)]
    now = check(draw_fusion_step(running[0], selected_client=1))
    assert "train for block 2" in now.sentence
    assert now.table[5]["up so far"] == "1.5 kB"
    assert "calibrate" in draw_fusion_step(running[1]).sentence


def make_cue_results(clients=5, marked=(0, 1), shape=(6, 1, 8, 8)):
    images = np.random.default_rng(0).random(shape)
    outside = {"clean": [0.4] * clients, "tied": [0.9] * clients, "untied": [0.3] * clients}
    systems = {
        "Ensemble": dict.fromkeys(outside, 0.6),
        "FuseFL": {**dict.fromkeys(outside, 0.8), "untied": 0.5},
    }
    return CueResults(
        SETTING,
        marked,
        [1.0] * clients,
        [0.25] * clients,
        outside,
        systems,
        [(images, images)] * clients,
    )


def test_cue_says_how_good_clients_are_at_home_and_outside():
    sentence = read_texts(check(draw_images_and_accuracies_with_cue(make_cue_results())))
    for words in ("2 clients", "100 %", "25 %", "40 %", "Ensemble 60 %", "FuseFL 80 %"):
        assert words in sentence
    assert "FuseFL 50 %" in draw_images_and_accuracies_with_cue(make_cue_results(), "untied").detail
    assert draw_images_and_accuracies_with_cue(
        make_cue_results(), selected_client=3
    ).sentence.startswith("Client D: correct")
    assert draw_images_and_accuracies_with_cue(make_cue_results(marked=())).sentence.startswith(
        "5 clients without a cue: correct"
    )
    for clients, test, shape in (
        (1, "untied", (6, 7)),
        (5, "tied", (3, 3, 8, 8)),
        (50, "clean", (9, 1, 8, 8)),
    ):
        picture = check(
            draw_images_and_accuracies_with_cue(
                make_cue_results(clients, (0,), shape), test, selected_client=clients - 1
            )
        )
        assert picture.table[-1]["who"] == "FuseFL"
        assert len(picture.table) == clients + 2


FUSED = {
    "average": {0: 0.4, 1: 0.3, 2: 0.35},
    "own": {0: 0.5, 1: 0.5, 2: 0.5},
    "ccvr": {0: 0.9, 1: 0.91, 2: 0.92},
}
ALONE = {
    "average": {0: 0.3, 1: 0.3, 2: 0.3},
    "own": {0: 0.5, 1: 0.4, 2: 0.6},
    "ccvr": {0: 0.91, 1: 0.9, 2: 0.92},
}


def test_halves_tell_noise_from_more():
    options = {
        "setting": SETTING,
        "ensemble_accuracies": {0: 0.6, 1: 0.5, 2: 0.55},
        "chance_accuracy": 0.1,
    }
    picture = check(draw_fusion_calibration({2: FUSED, 1: ALONE}, **options))
    assert len(picture.table) == 7
    assert picture.table[4]["accuracy"] == "91 %"
    assert "+56 points, more than noise" in picture.sentence
    assert "0 points, within the noise" in picture.sentence
    sentence = draw_fusion_calibration(
        {2: {"average": {0: 0.4}, "ccvr": {0: 0.9}}, 1: {"ccvr": {0: 0.8}}}, **options
    ).sentence
    for words in ("one seed", "+50 points", "+10 points"):
        assert words in sentence
    assert (
        "Press the button"
        in check(draw_fusion_calibration({2: {"own": {0: 0.5}}}, **options)).sentence
    )


def make_reading(accuracy):
    """A reading with twice as many bits of the labels as the accuracy, and three times as many of the images."""
    return DecoderReading(accuracy, 2 * accuracy, 3 * accuracy)


def make_layer_readings(client_accuracies, mean_accuracy):
    """The readings of each client's layer, and the reading of their mean."""
    return [make_reading(accuracy) for accuracy in client_accuracies], make_reading(mean_accuracy)


ISOLATED = [make_layer_readings([0.99, 0.97], 0.99), make_layer_readings([0.7, 0.6], 0.92)]


# Takes its time: matplotlib draws a picture of many bars.
def test_probes_compare_like_with_like():
    fused = [make_layer_readings([0.98, 0.96], 0.98), make_layer_readings([0.8, 0.68], 0.9)]
    data = ProbeResults(ISOLATED, fused, [1, 2], SETTING, 60)
    pictures = [
        check(draw_probe_curves(data, selected_client=1, measure=measure))
        for measure in ("accuracy", "labels", "images")
    ]
    top_accuracies = {
        "isolated, mean over the clients": 0.92,
        "isolated, one client": 0.65,
        "isolated, client B": 0.6,
    }
    top_accuracies |= {
        "fused, mean over the clients": 0.9,
        "fused, one client": 0.74,
        "fused, client B": 0.68,
    }
    formats = "{:.0%}".format, lambda a: f"{2 * a:.2f} bits", lambda a: f"{3 * a:.2f} bits"
    for picture, words in zip(pictures, formats, strict=True):
        cells = {name: words(share).replace("%", " %") for name, share in top_accuracies.items()}
        assert picture.table[1] == {"layer": 2, **cells}
        assert all(f"{name} {share}" in picture.sentence for name, share in cells.items())
    alone = draw_probe_curves(ProbeResults(ISOLATED, ISOLATED[-1:], [2], SETTING, 60))
    assert alone.table[0]["fused, one client"] == ""
    for clients, layers in ((1, 1), (50, 13)):
        point = make_layer_readings([0.5] * clients, 0.0)
        check(draw_probe_curves(ProbeResults([point] * layers, [point], [layers], SETTING, 60)))
