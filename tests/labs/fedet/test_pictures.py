"""Fed-ET's pictures of numbers made by hand: what they say agrees with the numbers, also in extreme cases."""

from types import SimpleNamespace

import numpy as np
from lab_views import check_picture
from pytest import approx
from toy_outcomes import make_toy_outcome

from fedlab_nb.labs.fedet.dissent import (
    DissentSamples,
    compute_accuracy_by_dissent_thirds,
    draw_accuracy_by_dissent,
)
from fedlab_nb.labs.fedet.public import (
    draw_student_accuracies_and_public_samples,
    make_public_data_result,
)
from fedlab_nb.labs.fedet.rounds import (
    AFTER,
    AVERAGED,
    BEFORE,
    COPIED,
    DISSENT,
    draw_accuracy_curves_over_rounds,
    make_one_shot_curves,
)
from fedlab_nb.labs.fedet.target import draw_soft_target
from fedlab_nb.labs.fedet.traffic import (
    AccuracyAndTrafficAtRoundEnd,
    compute_mean_traffic_until_goal,
    draw_traffic,
    format_number_with_unit_prefix,
)
from fedlab_nb.plots import render_picture_png

SETTING = "digits, α = 0.1, 3 clients, seed 0"
NAMES = ["zero", "one", "two"]


def check(picture, *words):
    """Check the picture, and that it has these words."""
    return check_picture(picture, SETTING, *words)


# ------------------------------------------------------------------------------------------------------- dissent
def test_dissent_says_whether_disagreement_predicts_error():
    mass = np.linspace(0, 1, 9)
    samples = DissentSamples(mass, np.arange(9) < 5, np.arange(9) < 3)
    picture = draw_accuracy_by_dissent({0: samples, 1: samples}, SETTING, 0.5)
    check(
        picture,
        "on 100 % of the third with the least dissent, on 0 % of the third with the most.",
        "AUC 1.00",
        "56 % of the samples",
    )
    assert [row["server right"] for row in picture.table] == ["100 %", "0 %", "0 %", "60 %"]


def test_dissent_where_no_sample_gets_an_answer():
    right = np.arange(9) < 5
    samples = DissentSamples(np.linspace(0.1, 1.1, 9), right, right)
    check(draw_accuracy_by_dissent({0: samples}, SETTING, 0.0), "0 % of the samples get an answer")


def test_dissent_without_a_wrong_answer_has_no_auc():
    right = np.ones(1, dtype=bool)
    picture = draw_accuracy_by_dissent({0: DissentSamples(np.zeros(1), right, right)}, SETTING, 1.0)
    check(picture, "Dissent is no warning here: the consensus gets 100 % right")
    assert "AUC" not in picture.detail


def test_thirds_are_cut_by_dissent():
    dissent = np.array([0.9, 0.1, 0.5, 0.2, 0.6, 0.8])
    right = np.array([0, 1, 1, 0, 0, 0])
    assert compute_accuracy_by_dissent_thirds(dissent, right) == [0.5, 0.5, 0]
    # An empty third is as its neighbour.
    assert compute_accuracy_by_dissent_thirds(np.zeros(2), np.array([1, 0])) == [1, 0, 0]


# -------------------------------------------------------------------------------------------------------- target
def draw_one_target(label, voice, strength, class_index=None):
    """The target of a single sample."""
    return draw_soft_target(
        np.array([label]),
        np.array([voice], dtype=float),
        NAMES,
        diversity_strength=strength,
        sample_index=0,
        setting=SETTING,
        selected_class=class_index,
    )


def test_target_is_the_soft_label():
    picture = draw_one_target(0, [0, 0.3, 0.1], 0.5, class_index=1)
    check(picture, "(“zero”) the dissenters get 17 % of the target")
    assert [row["target"] for row in picture.table] == ["83 %", "12 %", "4 %"]
    check(draw_one_target(0, [0, 0.9, 0.1], 3), "they overrule the consensus on 1")
    check(draw_one_target(2, [0, 0, 0], 1), "(“two”) the dissenters get 0 %")
    check(draw_one_target(0, [0, 0.5, 0], 0), "get 0 %")


def test_target_of_many_classes():
    picture = draw_soft_target(
        np.zeros(4, dtype=int),
        np.random.default_rng(0).dirichlet([0.3] * 30, 4),
        [str(c) for c in range(30)],
        diversity_strength=4,
        sample_index=3,
        setting=SETTING,
        selected_class=1,
    )
    check(picture)


# -------------------------------------------------------------------------------------------------- public, rounds
def make_choices(has_images=True, **accuracies):
    """Choices of public data, each from a list of accuracies by seed."""
    shape = (5, 1, 8, 8) if has_images else (5, 13)
    report = SimpleNamespace(dissent=0.5, public_samples=20, samples=np.zeros(shape))
    choices = []
    for name, values in accuracies.items():
        outcomes = {
            seed: make_toy_outcome("fedet", accuracy, report=report)
            for seed, accuracy in enumerate(values)
        }
        choices.append(make_public_data_result(name, outcomes))
    return choices


def test_public_compares_over_seeds():
    choices = make_choices(held=[0.7, 0.8, 0.75], noise=[0.3, 0.2, 0.25])
    picture = draw_student_accuracies_and_public_samples(choices, SETTING, 0.1)
    check(picture, "best with held (75 %), worst with noise (25 %): +50 points, clear")
    assert [row["accuracy"][:2] for row in picture.table] == ["75", "25"]
    close = make_choices(a=[0.7, 0.5, 0.6], b=[0.5, 0.7, 0.55])
    check(draw_student_accuracies_and_public_samples(close, SETTING, 0.1), "within the noise")
    one_seed = make_choices(has_images=False, a=[0.7], b=[0.5])
    check(draw_student_accuracies_and_public_samples(one_seed, SETTING, 0.1), "one seed")
    one_choice = make_choices(only=[0.02])
    check(
        draw_student_accuracies_and_public_samples(one_choice, SETTING, 0.1),
        "With only the student gets 2 % right.",
    )


def test_rounds_describes_the_marked_round():
    curves = {
        BEFORE: {1: 0.1, 2: 0.2},
        AFTER: {1: 0.3, 2: 0.5},
        AVERAGED: {1: 0.1, 2: 0.4},
        COPIED: {1: 0.1, 2: 0.45},
    }
    picture = draw_accuracy_curves_over_rounds(curves, SETTING, 2, "Round 2")
    check(picture, f"Round 2: {BEFORE} 20 %, {AFTER} 50 %", f"{COPIED} 45 %")
    first = {"round": 1, BEFORE: "10 %", AFTER: "30 %", AVERAGED: "10 %", COPIED: "10 %"}
    assert picture.table[0] == first


def test_rounds_while_it_runs():
    curves = {DISSENT: {1: 0.7}, AFTER: {1: 0.3}}
    check(
        draw_accuracy_curves_over_rounds(curves, SETTING, 1, "Round 1"),
        f"{DISSENT} 70 %, {AFTER} 30 %",
    )
    check(draw_accuracy_curves_over_rounds(curves, SETTING, 9, "Round 9"), "not measured")
    assert render_picture_png(
        draw_accuracy_curves_over_rounds({}, SETTING, 1, "Round 1")
    ).startswith(b"\x89PNG")


def test_one_shot_against_its_teachers():
    reports = [
        SimpleNamespace(consensus_accuracy=[0.7], clients_accuracy=[0.2]),
        SimpleNamespace(consensus_accuracy=[0.8], clients_accuracy=[0.4]),
    ]
    student = {0: [(30, 0.2), (60, 0.6)], 1: [(30, 0.2), (60, 0.7)]}
    curves = make_one_shot_curves(student, reports)
    picture = draw_accuracy_curves_over_rounds(curves, SETTING, 60, "After 60 steps", "step")
    check(picture, f"After 60 steps: {AFTER} 65 %", "75 %", "30 %")
    assert [row[AFTER] for row in picture.table] == ["20 %", "65 %"]
    assert make_one_shot_curves({0: [(30, 0.2)]}, []) == {AFTER: {30: 0.2}}


# -------------------------------------------------------------------------------------------------------- traffic
SMALL = {
    0: [
        AccuracyAndTrafficAtRoundEnd(1, 100.0, 0.3),
        AccuracyAndTrafficAtRoundEnd(2, 200.0, 0.7),
        AccuracyAndTrafficAtRoundEnd(3, 300.0, 0.5),
    ],
    1: [AccuracyAndTrafficAtRoundEnd(1, 100.0, 0.65), AccuracyAndTrafficAtRoundEnd(2, 200.0, 0.7)],
}
LARGE = {
    0: [AccuracyAndTrafficAtRoundEnd(1, 1000.0, 0.9)],
    1: [AccuracyAndTrafficAtRoundEnd(1, 1000.0, 0.9)],
}


def test_traffic_finds_where_the_goal_is_first_reached():
    assert compute_mean_traffic_until_goal(SMALL, 0.6) == (1.5, 150)
    assert compute_mean_traffic_until_goal(SMALL, 0.8) is None
    picture = draw_traffic({"Fed-ET": SMALL, "FedAvg": LARGE}, SETTING, 0.6)
    check(picture, "Fed-ET 150 numbers in 1.5 rounds; FedAvg 1 k numbers in 1 round.")
    reached = [(row["numbers to 60 %"], row["rounds"]) for row in picture.table]
    assert reached == [("150", "1.5"), ("1 k", "1")]


def test_each_line_is_named_where_it_ends():
    picture = draw_traffic({"Fed-ET": SMALL, "FedAvg": LARGE}, SETTING, 0.6)
    texts = {text.get_text(): text for text in picture.figure.axes[0].texts}
    assert texts["Fed-ET"].xy == (200.0, approx(0.7))  # the common end of both seeds
    assert texts["FedAvg"].get_position() == (
        1.02,
        0.9,
    )  # beside the axes, as no line goes on further


def test_traffic_says_how_many_seeds_reach_the_goal():
    check(draw_traffic({"Fed-ET": SMALL}, SETTING, 0.98), "Fed-ET never.")
    one_fails = {0: SMALL[0], 1: [AccuracyAndTrafficAtRoundEnd(1, 100.0, 0.1)]}
    check(draw_traffic({"Fed-ET": one_fails}, SETTING, 0.6), "only 1 of 2 seeds")


def test_counts_are_readable():
    counts = [format_number_with_unit_prefix(count) for count in (7, 1500, 2_370_000, 4e9)]
    assert counts == ["7", "1.5 k", "2.37 M", "4 G"]
