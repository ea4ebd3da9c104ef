"""Fed-ET's pictures: what they say agrees with numbers made by hand, and they hold at the extremes."""

from types import SimpleNamespace

import numpy as np
from lab_views import sound
from toy_outcomes import toy

from fedlab_nb.labs.fedet.dissent import dissent, thirds
from fedlab_nb.labs.fedet.public import of_runs, public
from fedlab_nb.labs.fedet.rounds import AFTER, AVERAGED, BEFORE, COPIED, DISSENT, one_shot, rounds
from fedlab_nb.labs.fedet.target import target
from fedlab_nb.labs.fedet.traffic import amount, first_reached, traffic
from fedlab_nb.plots import png

SETTING = "digits, α = 0.1, 3 clients, seed 0"
NAMES = ["zero", "one", "two"]


def check(picture, *words):
    return sound(picture, SETTING, *words)


# ------------------------------------------------------------------------------------------------------- dissent
def test_dissent_says_whether_disagreement_predicts_error():
    mass, right = np.linspace(0, 1, 9), np.arange(9) < 5
    picture = dissent({s: (mass, right, np.arange(9) < 3) for s in (0, 1)}, SETTING, 0.5)
    check(
        picture,
        "right for 100 %",
        "0 % of the third with the most (AUC 1.00)",
        "56 % of the samples",
    )
    assert [row["server right"] for row in picture.table] == ["100 %", "0 %", "0 %", "60 %"]
    check(
        dissent({0: (mass + 0.1, right, right)}, SETTING, 0.0), "0 % of the samples get an answer"
    )
    one = np.ones(1, dtype=bool)
    assert (
        "AUC"
        not in check(
            dissent({0: (np.zeros(1), one, one)}, SETTING, 1.0), "right for 100 %"
        ).sentence
    )


def test_thirds_are_cut_by_dissent():
    assert thirds(np.array([0.9, 0.1, 0.5, 0.2, 0.6, 0.8]), np.array([0, 1, 1, 0, 0, 0])) == [
        0.5,
        0.5,
        0,
    ]
    assert thirds(np.zeros(2), np.array([1, 0])) == [1, 0, 0]  # an empty third is as its neighbour


# -------------------------------------------------------------------------------------------------------- target
def one(label, voice, strength, **more):
    """Of one sample."""
    voices = np.array([voice], dtype=float)
    return target(
        np.array([label]), voices, NAMES, strength=strength, sample=0, setting=SETTING, **more
    )


def test_target_is_the_soft_label():
    picture = check(
        one(0, [0, 0.3, 0.1], 0.5, klass=1), "(“zero”) the dissenters get 17 % of the target"
    )
    assert [row["target"] for row in picture.table] == ["83 %", "12 %", "4 %"]
    check(one(0, [0, 0.9, 0.1], 3), "they overrule the consensus on 1")
    check(one(2, [0, 0, 0], 1), "(“two”) the dissenters get 0 %")
    check(one(0, [0, 0.5, 0], 0), "get 0 %")


def test_target_of_many_classes():
    voices, names = np.random.default_rng(0).dirichlet([0.3] * 30, 4), list(map(str, range(30)))
    check(
        target(
            np.zeros(4, dtype=int), voices, names, strength=4, sample=3, setting=SETTING, klass=1
        )
    )


# -------------------------------------------------------------------------------------------------- public, rounds
def tried(images=True, **accuracies):
    """Choices of public data, of lists of accuracies."""
    report = SimpleNamespace(
        dissent=0.5, public_samples=20, samples=np.zeros((5, 1, 8, 8) if images else (5, 13))
    )
    runs = {
        name: {s: toy("fedet", a, report=report) for s, a in enumerate(of)}
        for name, of in accuracies.items()
    }
    return [of_runs(name, of) for name, of in runs.items()]


def test_public_compares_over_seeds():
    picture = public(tried(held=[0.7, 0.8, 0.75], noise=[0.3, 0.2, 0.25]), SETTING, 0.1)
    check(picture, "Best student: held, 75 %", "Worst: noise, 25 % (+50 ± ", "clear")
    assert [row["accuracy"][:2] for row in picture.table] == ["75", "25"]
    check(public(tried(a=[0.7, 0.5, 0.6], b=[0.5, 0.7, 0.55]), SETTING, 0.1), "within the noise")
    check(public(tried(False, a=[0.7], b=[0.5]), SETTING, 0.1), "one seed")
    check(public(tried(only=[0.02]), SETTING, 0.1), "Best student: only, 2 %")


def test_rounds_tells_of_the_marked_one():
    curves = {
        BEFORE: {1: 0.1, 2: 0.2},
        AFTER: {1: 0.3, 2: 0.5},
        AVERAGED: {1: 0.1, 2: 0.4},
        COPIED: {1: 0.1, 2: 0.45},
    }
    picture = check(
        rounds(curves, SETTING, 2, "Round 2"),
        f"Round 2: {BEFORE} 20 %, {AFTER} 50 %",
        f"{COPIED} 45 %",
    )
    assert picture.table[0] == {
        "round": 1,
        BEFORE: "10 %",
        AFTER: "30 %",
        AVERAGED: "10 %",
        COPIED: "10 %",
    }
    running = {DISSENT: {1: 0.7}, AFTER: {1: 0.3}}
    check(rounds(running, SETTING, 1, "Round 1"), f"{DISSENT} 70 %, {AFTER} 30 %")
    check(rounds(running, SETTING, 9, "Round 9"), "not measured")
    assert png(rounds({}, SETTING, 1, "Round 1")).startswith(b"\x89PNG")


def test_one_shot_against_its_teachers():
    reports = [
        SimpleNamespace(consensus_accuracy=[top], clients_accuracy=[low])
        for top, low in ((0.7, 0.2), (0.8, 0.4))
    ]
    student = {0: [(30, 0.2), (60, 0.6)], 1: [(30, 0.2), (60, 0.7)]}
    picture = rounds(one_shot(student, reports), SETTING, 60, "After 60 steps", "step")
    check(picture, f"After 60 steps: {AFTER} 65 %", "75 %", "30 %")
    assert [row[AFTER] for row in picture.table] == ["20 %", "65 %"]
    assert one_shot({0: [(30, 0.2)]}, []) == {AFTER: {30: 0.2}}


# -------------------------------------------------------------------------------------------------------- traffic
def test_traffic_finds_where_the_target_is_first_reached():
    small = {
        0: [(1, 100.0, 0.3), (2, 200.0, 0.7), (3, 300.0, 0.5)],
        1: [(1, 100.0, 0.65), (2, 200.0, 0.7)],
    }
    large = {0: [(1, 1000.0, 0.9)], 1: [(1, 1000.0, 0.9)]}
    assert first_reached(small, 0.6) == (1.5, 150) and first_reached(small, 0.8) is None
    picture = traffic({"Fed-ET": small, "FedAvg": large}, SETTING, 0.6)
    check(picture, "Fed-ET 150 numbers in 1.5 rounds; FedAvg 1 k numbers in 1 round.")
    assert [(row["numbers to 60 %"], row["rounds"]) for row in picture.table] == [
        ("150", "1.5"),
        ("1 k", "1"),
    ]
    check(traffic({"Fed-ET": small}, SETTING, 0.98), "only 0 of 2 seeds")
    check(
        traffic({"Fed-ET": {0: small[0], 1: [(1, 100.0, 0.1)]}}, SETTING, 0.6), "only 1 of 2 seeds"
    )
    assert [amount(v) for v in (7, 1500, 2_370_000, 4e9)] == ["7", "1.5 k", "2.37 M", "4 G"]
