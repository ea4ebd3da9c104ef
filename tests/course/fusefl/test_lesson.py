"""Lesson 06: exercises in three states, worked numbers against another derivation, statements against real runs."""

from statistics import mean
from types import SimpleNamespace

import pytest
import torch
from toy_outcomes import toy

from fedlab_nb.course.fusefl import lesson
from fedlab_nb.course.fusefl.exercises import cue_runs, halves_runs, runs
from fedlab_nb.labs.fusefl.cue import with_and_without_cue
from fedlab_nb.labs.fusefl.probes import blocks_of, layers_of, probe
from fedlab_nb.study.lesson_runs import accuracies, by_seed
from fedlab_nb.study.statistics import difference


def run(seed, accuracy, method="fusefl", blocks=2, head="ccvr", **other):
    options = {"blocks": blocks, "head": head, "adaptor": "conv"} if method == "fusefl" else {"rule": "logits"}
    return toy(method, accuracy, options=options, settings={"clients": 5, "seed": seed, "alpha": 0.5, **other})


def several(values, **more):
    return [run(seed, value, **more) for seed, value in enumerate(values)]


CALIBRATED, AVERAGED = several([0.9, 0.91, 0.92]), several([0.4, 0.3, 0.35], head="average")
ALONE = several([0.91, 0.9, 0.92], blocks=1)


def at(alpha):
    """Both comparisons of exercise 2."""
    alone = several([0.91, 0.9, 0.92], blocks=1, alpha=alpha)
    averaged = several([0.4, 0.3, 0.35], head="average", alpha=alpha)
    return several([0.9, 0.91, 0.92], alpha=alpha) + averaged + alone


ENSEMBLE = several([0.89, 0.9, 0.83], method="ensemble")
HURT = several([0.6, 0.75, 0.62], method="ensemble", spurious="0,1")


# ------------------------------------------------------------------------------------------------------- exercise 1
@pytest.mark.parametrize(
    ("answer", "state", "words"),
    [
        (None, "unattempted", ""),
        (16040, "right", ""),
        (4020, "wrong", "channels, not 20"),
        (1640, "wrong", "all 10 clients"),
        (16000, "wrong", "bias"),
        (160400, "wrong", "all ten"),
        (7, "wrong", "too small"),
        ("many", "wrong", "a number"),
    ],
)
def test_exercise_1(answer, state, words):
    verdict = lesson.q1.problem.check(answer)
    assert verdict.state == state and words in verdict.message


@pytest.mark.parametrize(
    "answer",
    ["16040", "16,040", "16 040", "16.040", "16'040", "16_040", "16040 numbers", "16,040 parameters", "16040.0"],
)
def test_exercise_1_in_every_sensible_format(answer):
    assert lesson.q1.problem.check(answer).state == "right"


def test_exercise_1_is_the_layer_itself():
    import torch

    layer = torch.nn.Conv2d(10 * 40, 40, 1)
    assert lesson.q1.problem.check(sum(p.numel() for p in layer.parameters())).state == "right"


# ------------------------------------------------------------------------------------------------------- exercise 2
@pytest.mark.parametrize(
    ("record", "state", "words"),
    [
        ([], "unattempted", "No runs"),
        (CALIBRATED, "wrong", "clearly better than one without"),
        (CALIBRATED + AVERAGED, "wrong", "Blocks = 1 and Blocks = 2"),
        (CALIBRATED + ALONE, "wrong", "clearly better than one without"),
        (
            CALIBRATED + AVERAGED + ALONE,
            "right",
            "adds 56 ± 14 points; fusing (K = 2 against 1) changes 0 ± 2 points, w",
        ),
        (CALIBRATED[:2] + AVERAGED + ALONE, "wrong", "cannot be told from 2 seeds"),
        (several([0.3, 0.5, 0.2]) + several([0.31, 0.49, 0.2], head="own") + ALONE, "wrong", "within the noise"),
        (several([0.9, 0.91, 0.92], alpha=1) + AVERAGED + ALONE, "wrong", "Blocks = 1 and Blocks = 2"),
        (
            CALIBRATED + AVERAGED + several([0.9] * 3, alpha=1) + several([0.9] * 3, alpha=1, blocks=1),
            "wrong",
            "under the same setting",
        ),
        # what the lesson prints at α = 0.1 is no answer
        (at(0.1), "wrong", "nothing that can be compared at α = 0.3 or more"),
        (at(0.1) + at(2), "right", "adds 56 ± 14 points"),
        ([run(0, 0.9, method="fens")], "wrong", "nothing that can be compared"),
        ("everything", "wrong", "panel"),
    ],
)
def test_exercise_2(record, state, words):
    verdict = lesson.q2.problem.check(record)
    assert verdict.state == state and words in verdict.message


def test_a_repeated_seed_counts_once():
    assert lesson.q2.problem.check((CALIBRATED[:1] + AVERAGED[:1] + ALONE[:1]) * 4).state == "wrong"


# ------------------------------------------------------------------------------------------------------- exercise 3
@pytest.mark.parametrize(
    ("record", "state", "words"),
    [
        ([], "unattempted", "No runs"),
        (ENSEMBLE, "wrong", "with and without"),
        (ENSEMBLE + HURT, "right", "clients 0,1 the ensemble loses 22 ± 17 points."),
        (
            ENSEMBLE + HURT + CALIBRATED + several([0.8, 0.88, 0.7], spurious="0,1"),
            "right",
            "FuseFL 12 ± 24 points, within the noise.",
        ),
        (
            ENSEMBLE + HURT + CALIBRATED + several([0.8, 0.79, 0.82], spurious="0,1"),
            "right",
            "FuseFL 11 ± 3 points.",
        ),
        (ENSEMBLE[:2] + HURT, "wrong", "2 seeds"),
        (ENSEMBLE + several([0.9, 0.88, 0.85], method="ensemble", spurious="0"), "wrong", "within the noise"),
        (several([0.9] * 3, method="ensemble", alpha=5) + HURT, "wrong", "all else equal"),
    ],
)
def test_exercise_3(record, state, words):
    verdict = lesson.q3.problem.check(record)
    assert verdict.state == state and words in verdict.message


@pytest.mark.slow
def test_solutions_support_their_claims():
    assert lesson.q2.problem.check(halves_runs()).state == "right"
    assert lesson.q3.problem.check(cue_runs()).state == "right"
    assert "Measured: calibration" in repr(lesson.q2.solution()) and "Supported" in repr(lesson.q3.solution())


# ------------------------------------------------------------------------------------------------------- worked numbers
def test_storage_by_hand():
    """Parameters of the paper's network at width 32, counted by torch; the formula written out."""
    from fedlab_nb.models import build, parameter_count

    network = build("resnet18", (3, 32, 32), 10, width=32)
    whole, head = parameter_count(network), parameter_count(network.classifier)
    adaptors = sum(5 * c * c + c for c in (32, 64, 128))
    stored = 4 * (5 * (whole - head) + head + 5 * adaptors)
    text = repr(lesson.storage(5, 4))
    assert f"{stored:,} bytes" in text and "= 55.38 MiB. The paper prints 55.38." in text


def test_all_of_table_4_is_as_printed():
    text = repr(lesson.table_4())
    assert text.count("as printed") == 12 and "K = 8: 159.08" in text and "times M 7954" in text


def test_sizes_and_directions():
    assert lesson.networks(50, 8) == 3.7 and lesson.networks(10, 2) == 1.0
    text = repr(lesson.both_directions(5, 4))
    assert "62 up and 275 down" in text and "213 up and 213 down" in text
    assert "5.9 ordinary networks, more than an ensemble of 5" in repr(lesson.toy_storage())


def test_the_bound_breaks_inside_and_holds_outside():
    inside, outside = repr(lesson.cue_in_bits(0.6, 0.9)).split("\n")
    assert inside.endswith("is broken.") and outside.endswith("holds.")
    assert "the shortcut has 2.60 bits about the label, the real cue 1.24" in inside


def test_the_premise_is_false_where_two_clients_share_a_palette():
    counts = torch.tensor([[40, 0], [0, 40], [20, 20]])
    words = repr(lesson.premise([SimpleNamespace(label_counts=counts, settings=SimpleNamespace(spurious="0,1"))]))
    assert (
        "clients 0 and 1 have the cue, and it tells 0.7 of the label's 1.0 bits" in words
        and "premise is false here" in words
    )
    assert "If only client 0 had it, it would tell 0.5 bits" in words


def test_lost_reads_the_view_s_table():
    rows = [
        {"cue": "yes", "test, without a cue": "39 %"},
        {"cue": "yes", "test, without a cue": "38 %"},
        {"cue": "", "test, without a cue": "70 %"},
    ]
    assert lesson.lost(SimpleNamespace(table=rows)) == 38


def test_a_change_within_the_noise_says_so():
    assert lesson.change({0: 0.5, 1: 0.6}, {0: 0.4, 1: 0.5}) == "+10 ± 0 points"
    assert lesson.change({0: 0.5, 1: 0.6}, {0: 0.51, 1: 0.58}).endswith("points, within the noise")


# ------------------------------------------------------------------------------------------------------ what is claimed
@pytest.mark.slow
def test_what_the_lesson_says_holds():
    """Directions that the notebook names, three seeds; margins far inside what was measured."""
    knobs = ({}, {"head": "average"}, {"blocks": 1})
    fused, averaged, alone = (accuracies(runs(**more), "fusefl") for more in knobs)
    assert mean(fused.values()) > mean(averaged.values()) + 0.3
    assert difference(fused, alone).is_noise and lesson.without_fusion() == lesson.EFFECTS[1]
    ensemble = accuracies(runs("ensemble"), "ensemble")
    assert mean(fused.values()) > mean(ensemble.values()) + 0.1


@pytest.mark.slow
def test_cues_hurt_and_are_not_unlearnt():
    data, means = lesson.load("digits"), {}
    for spurious in ("", "0,1"):
        for method in ("ensemble", "fusefl"):
            outcomes = runs(method, alpha=0.5, spurious=spurious)
            untied = [
                o.model.accuracy(with_and_without_cue(data, 0.8, o.settings.seed)["untied"], data.y_test)
                for o in outcomes
            ]
            means[method, spurious] = mean(o.accuracy for o in outcomes), mean(untied)
    assert means["ensemble", ""][0] > means["ensemble", "0,1"][0] + 0.1
    assert means["fusefl", "0,1"][0] > means["ensemble", "0,1"][0] + 0.05
    clean, untied = means["fusefl", "0,1"]
    assert clean - untied > 0.05 and untied < means["fusefl", ""][1] - 0.05


@pytest.mark.slow
def test_fusing_helps_a_client_and_not_the_mean():
    """One client's features are more separable fused than isolated; the mean over the clients needs no fusing."""
    data = lesson.load("digits")
    sets = data.x_train, data.y_train, data.x_test, data.y_test
    gains = {"each": {}, "mean": {}}
    isolated, fused = (by_seed(runs(blocks=blocks), "fusefl") for blocks in (1, 2))
    for seed in isolated:
        ends = []
        for outputs, of in ((layers_of, isolated), (blocks_of, fused)):
            x, y, x_test, y_test = sets
            network = of[seed].model.module
            *_, last = probe(outputs(network, x), y, outputs(network, x_test), y_test)
            ends.append(last)
        (alone, alone_mean), (each, of_mean) = ends
        gains["each"][seed], gains["mean"][seed] = mean(each) - mean(alone), of_mean - alone_mean
        assert alone_mean > mean(alone) + 0.15
    assert min(gains["each"].values()) > 0.04
    assert mean(gains["mean"].values()) < 0.01
