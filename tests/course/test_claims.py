"""Exercises that the learner's own runs answer: each claim on hand-made records, and on its solution's runs."""

from dataclasses import replace

import pytest
from lessons import LESSONS, lesson_of, problems
from records import (
    AHEAD,
    AVERAGED,
    CALIBRATED,
    COUNTED,
    FEW,
    IDLE,
    LATE,
    LEARNT,
    MILD,
    RIGHT,
    SKEWED,
    averages,
    fused,
    images,
    matched,
    rules,
    runs,
    sources,
    weights,
    without_b,
)

from fedlab_nb.course.kit.problem import RecordProblem


@pytest.mark.parametrize(
    ("exercise", "record", "right", "words"),
    [
        ("01 q2", RIGHT["01 q2"], True, "On the test images: α = 0.1 +24 ± 2"),
        (
            "01 q2",
            SKEWED + averages(0.03, [-4, 4, -4]),
            False,
            "α = 0.03 has 3 seeds",
        ),  # ten may look otherwise
        (
            "01 q2",
            SKEWED + averages(0.1, [-4, 4] * 5, clients=20),
            True,
            "noise at α = 0.1, 20 clients: -4",
        ),
        ("03 q2", RIGHT["03 q2"], True, "α = 0.1, per_class − weighted: +18, +24, +15, +18,"),
        (
            "03 q2",
            rules(0.1, [18, 24, 15] * 3) + COUNTED,
            False,
            "α = 0.1, per_class − weighted has 9 seeds",
        ),
        ("03 q2", rules(0.1, [18], clients=5) + rules(0.1, [24], clients=10), False, "1 seed with"),
        ("04 q2", sources([30, 40, 35], alpha=0.1), False, "no setting with α = 1 or more"),
        (
            "04 q2",
            sources([8, 9, 8]),
            False,
            "clearly more than 20 points. Your record: held-out − noise: +8",
        ),
        ("04 q2", RIGHT["04 q2"], True, "held-out − noise: +30, +40, +35 points, mean +35 ± "),
        ("04 q2", sources([30, 40]), False, "noise has 2 seeds with both"),
        ("04 q2", sources([30, 40, 35], rounds=(1, 5)), False, "has Fed-ET with held-out"),
        (
            "05 q2",
            weights(0.1, [8, 7, 13]) + weights(10.0, [0, -2]),
            False,
            "no setting between α = 0.1 and 10",
        ),
        ("05 q2", RIGHT["05 q2"], True, "α = 0.3: +8, +7, +13, +8,"),
        ("05 q2", LEARNT + weights(3.0, [0, -2, -3] * 3), False, "α = 3 has 9 seeds"),
        (
            "05 q2",
            LEARNT + weights(0.3, [0, 0, 0], ee=False),
            False,
            "where the gain is not clearly",
        ),
        ("05 q2", weights(0.3, [8, 7, 13], answer="server") + IDLE, False, "clearly more than 5"),
        ("05 q2", weights(0.3, [6, 4, 5] * 4) + IDLE, False, "by clearly more than 5 points"),
        ("06 q1", RIGHT["06 q1"], True, "at α = 0.5, K = 2: +50, +61, +57 points, mean +56 ± 14."),
        ("06 q1", CALIBRATED[:2] + AVERAGED, False, "has 2 seeds with both"),
        ("06 q1", CALIBRATED + fused([40, 30, 35], 1, head="average"), False, "no runs of both"),
        (
            "06 q1",
            CALIBRATED + fused([40, 30, 35], head="average", alpha=1),
            False,
            "no runs of both classifiers at the same α",
        ),
        (
            "06 q1",
            fused([90, 91, 92], alpha=0.1) + fused([40, 30, 35], head="average", alpha=0.1),
            False,
            "no runs of both",
        ),
        ("07 q3", RIGHT["07 q3"], True, "clear at α = 0.1, 40 epochs: +5, +6, +4, +5,"),
        ("07 q3", without_b(0.1, [5, 6, 4] * 3) + LATE, False, "has 9 seeds"),
        (
            "07 q3",
            without_b(0.1, [50] * 10, damping=100.0) + LATE,
            False,
            "clearly better",
        ),  # another FedLPA
        ("08 q2", AHEAD, False, "in which FedLPA is clearly worse"),
        (
            "08 q2",
            RIGHT["08 q2"],
            True,
            "FedLPA − ensemble at digits, α = 0.1: +30, +30, +30 points",
        ),
        ("08 q2", runs("fedlpa", [80] * 3, alpha=0.1), False, "has 0 seeds"),
        ("11 q3", RIGHT["11 q3"], True, "α = 1, matching − FedAvg: +40"),
        ("11 q3", matched(1, 20, 60, 93, seeds=9), False, "α = 1, ensemble − matching has 9 seeds"),
        ("11 q3", matched(100, 10, 85, 94), False, "ensemble − matching: +9"),
        (
            "11 q3",
            matched(0.1, 15, 21, 52) + matched(100, 10, 85, 94),
            False,
            "matching − FedAvg: +6",
        ),
        ("11 q3", runs("fens", [80]), False, "no run of matching"),
        (
            "12 q2",
            RIGHT["12 q2"],
            True,
            "Clear at 1 per class and the kernel, α = 0.1: +5, +6, +4, +5,",
        ),
        (
            "12 q2",
            FEW + images(10, [-1, 1, 0] * 3, "network"),
            False,
            "the network, α = 0.1 has 9 seeds",
        ),
        ("12 q2", runs("fedavg", [50]), False, "no run of distilled"),
    ],
)
def test_the_claim_of_an_exercise(exercise, record, right, words):
    number, name = exercise.split()
    (lesson,) = (lesson_of(source) for source in LESSONS if source.startswith(number))
    verdict = getattr(lesson, name).problem.check(record)
    assert (verdict.state == "right", words in verdict.message) == (right, True), verdict.message


@pytest.mark.slow
@pytest.mark.parametrize(("lesson", "problem"), problems(RecordProblem))
def test_each_solution_supports_its_claim(lesson, problem):
    if not lesson.startswith("09"):  # which needs the notebook's method, and has its own test
        assert problem.check(problem.right_answer()).state == "right"


def test_a_gap_that_the_test_images_call_clear_is_not_within_the_noise():
    """The validation images may be too few for a small difference; then another setting is wanted."""
    small = averages(100.0, [-4, 4] * 5)
    for outcome in small:
        outcome.accuracy = (
            0.5 + 0.02 * (outcome.method == "ensemble") + 0.001 * outcome.settings.seed
        )
    (exercise,) = (lesson_of(name).q2 for name in LESSONS if "heterogeneity" in name)
    verdict = exercise.problem.check(SKEWED + small)
    assert verdict.state == "wrong"
    assert "α = 100 looked like one" in verdict.message
    assert "the difference is clear: +2.0 ± 0.0 points" in verdict.message
    assert exercise.problem.check(SKEWED + small + MILD).state == "right"


def test_settings_of_the_same_name_are_told_apart():
    """One epoch and forty at the same α are two settings."""
    short = averages(0.1, [-4, 4] * 5)
    for outcome in short:
        settings, recipe = outcome.conditions
        outcome.conditions = settings, replace(recipe, epochs=1)
    (exercise,) = (lesson_of(name).q2 for name in LESSONS if "heterogeneity" in name)
    message = exercise.problem.check(SKEWED + short).message
    assert "Clear at α = 0.1, epochs 40: " in message and "noise at α = 0.1, epochs 1: " in message


def test_a_record_without_a_gap_hears_how_many_seeds_are_wanted():
    for name in LESSONS:
        for exercise in ("q2", "q3"):
            view = getattr(lesson_of(name), exercise, None)
            question = getattr(getattr(view, "problem", None), "question", "")
            if "10 seeds" in question or "ten seeds" in question:
                verdict = view.problem.check(runs("local", [50] * 3))
                assert "with 10 seeds or more" in verdict.message, (name, verdict.message)
