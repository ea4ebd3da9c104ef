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

from fedlab_nb.course import COURSE
from fedlab_nb.course.kit.problem import RecordProblem


@pytest.mark.parametrize(
    ("exercise", "record", "right", "words"),
    [
        (
            "heterogeneity q2",
            RIGHT["heterogeneity q2"],
            True,
            "On the test images: α = 0.1 +24 ± 2",
        ),
        (
            "heterogeneity q2",
            SKEWED + averages(0.03, [-4, 4, -4]),
            False,
            "α = 0.03 has 3 seeds",
        ),  # ten may look otherwise
        (
            "heterogeneity q2",
            SKEWED + averages(0.1, [-4, 4] * 5, clients=20),
            True,
            "noise at α = 0.1, 20 clients: -4",
        ),
        ("fens q2", RIGHT["fens q2"], True, "α = 0.1, per_class − weighted: +18, +24, +15, +18,"),
        (
            "fens q2",
            rules(0.1, [18, 24, 15] * 3) + COUNTED,
            False,
            "α = 0.1, per_class − weighted has 9 seeds",
        ),
        (
            "fens q2",
            rules(0.1, [18], clients=5) + rules(0.1, [24], clients=10),
            False,
            "1 seed with",
        ),
        ("fedet q2", sources([30, 40, 35], alpha=0.1), False, "no setting with α = 1 or more"),
        (
            "fedet q2",
            sources([8, 9, 8]),
            False,
            "clearly more than 20 points. Your record: held-out − noise: +8",
        ),
        (
            "fedet q2",
            RIGHT["fedet q2"],
            True,
            "held-out − noise: +30, +40, +35 points, mean +35 ± ",
        ),
        ("fedet q2", sources([30, 40]), False, "noise has 2 seeds with both"),
        ("fedet q2", sources([30, 40, 35], rounds=(1, 5)), False, "has Fed-ET with held-out"),
        (
            "coboosting q2",
            weights(0.1, [8, 7, 13]) + weights(10.0, [0, -2]),
            False,
            "no setting between α = 0.1 and 10",
        ),
        ("coboosting q2", RIGHT["coboosting q2"], True, "α = 0.3: +8, +7, +13, +8,"),
        ("coboosting q2", LEARNT + weights(3.0, [0, -2, -3] * 3), False, "α = 3 has 9 seeds"),
        (
            "coboosting q2",
            LEARNT + weights(0.3, [0, 0, 0], ee=False),
            False,
            "where the gain is not clearly",
        ),
        (
            "coboosting q2",
            weights(0.3, [8, 7, 13], answer="server") + IDLE,
            False,
            "clearly more than 5",
        ),
        (
            "coboosting q2",
            weights(0.3, [6, 4, 5] * 4) + IDLE,
            False,
            "by clearly more than 5 points",
        ),
        (
            "fusefl q1",
            RIGHT["fusefl q1"],
            True,
            "at α = 0.5, K = 2: +50, +61, +57 points, mean +56 ± 14.",
        ),
        ("fusefl q1", CALIBRATED[:2] + AVERAGED, False, "has 2 seeds with both"),
        (
            "fusefl q1",
            CALIBRATED + fused([40, 30, 35], 1, head="average"),
            False,
            "no runs of both",
        ),
        (
            "fusefl q1",
            CALIBRATED + fused([40, 30, 35], head="average", alpha=1),
            False,
            "no runs of both classifiers at the same α",
        ),
        (
            "fusefl q1",
            fused([90, 91, 92], alpha=0.1) + fused([40, 30, 35], head="average", alpha=0.1),
            False,
            "no runs of both",
        ),
        ("fedlpa q3", RIGHT["fedlpa q3"], True, "clear at α = 0.1, 40 epochs: +5, +6, +4, +5,"),
        ("fedlpa q3", without_b(0.1, [5, 6, 4] * 3) + LATE, False, "has 9 seeds"),
        (
            "fedlpa q3",
            without_b(0.1, [50] * 10, damping=100.0) + LATE,
            False,
            "clearly better",
        ),  # another FedLPA
        ("all_together q2", AHEAD, False, "in which FedLPA is clearly worse"),
        (
            "all_together q2",
            RIGHT["all_together q2"],
            True,
            "FedLPA − ensemble at digits, α = 0.1: +30, +30, +30 points",
        ),
        ("all_together q2", runs("fedlpa", [80] * 3, alpha=0.1), False, "has 0 seeds"),
        ("matching q3", RIGHT["matching q3"], True, "α = 1, matching − FedAvg: +40"),
        (
            "matching q3",
            matched(1, 20, 60, 93, seeds=9),
            False,
            "α = 1, ensemble − matching has 9 seeds",
        ),
        ("matching q3", matched(100, 10, 85, 94), False, "ensemble − matching: +9"),
        (
            "matching q3",
            matched(0.1, 15, 21, 52) + matched(100, 10, 85, 94),
            False,
            "matching − FedAvg: +6",
        ),
        ("matching q3", runs("fens", [80]), False, "no run of matching"),
        (
            "distilled q2",
            RIGHT["distilled q2"],
            True,
            "Clear at 1 per class and the kernel, α = 0.1: +5, +6, +4, +5,",
        ),
        (
            "distilled q2",
            FEW + images(10, [-1, 1, 0] * 3, "network"),
            False,
            "the network, α = 0.1 has 9 seeds",
        ),
        ("distilled q2", runs("fedavg", [50]), False, "no run of distilled"),
    ],
)
def test_the_claim_of_an_exercise(exercise, record, right, words):
    folder, name = exercise.split()
    (lesson,) = (lesson_of(source) for source in LESSONS if COURSE[source] == folder)
    verdict = getattr(lesson, name).problem.check(record)
    assert (verdict.state == "right", words in verdict.message) == (right, True), verdict.message


@pytest.mark.slow
@pytest.mark.parametrize(("lesson", "problem"), problems(RecordProblem))
def test_each_solution_supports_its_claim(lesson, problem):
    if lesson != "shelf/your_own":  # which needs the notebook's method, and has its own test
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
            if "afl seeds" in question or "ten seeds" in question:
                verdict = view.problem.check(runs("local", [50] * 3))
                assert "with 10 seeds or more" in verdict.message, (name, verdict.message)
