"""Exercises that the learner's own runs answer: each claim on hand-made records, and on its solution's runs."""

from dataclasses import replace

import pytest
from lessons import LESSONS, import_lesson, list_problems
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
    record_coboosting,
    record_distilled,
    record_fedet,
    record_fedlpa,
    record_fens,
    record_fusefl,
    record_heterogeneity,
    record_matching,
    record_runs,
)

from fedlab_nb.course import COURSE
from fedlab_nb.course.kit.problem import RecordProblem


@pytest.mark.parametrize(
    ("exercise", "record", "is_right", "words"),
    [
        (
            "heterogeneity q2",
            RIGHT["heterogeneity q2"],
            True,
            "On the test images: α = 0.1 +24 ± 2",
        ),
        (
            "heterogeneity q2",
            SKEWED + record_heterogeneity(0.03, [-4, 4, -4]),
            False,
            "α = 0.03 has 3 seeds",
        ),  # ten may look otherwise
        (
            "heterogeneity q2",
            SKEWED + record_heterogeneity(0.1, [-4, 4] * 5, clients=20),
            True,
            "noise at α = 0.1, 20 clients: -4",
        ),
        ("fens q2", RIGHT["fens q2"], True, "α = 0.1, per_class − weighted: +18, +24, +15, +18,"),
        (
            "fens q2",
            record_fens(0.1, [18, 24, 15] * 3) + COUNTED,
            False,
            "α = 0.1, per_class − weighted has 9 seeds",
        ),
        (
            "fens q2",
            record_fens(0.1, [18], clients=5) + record_fens(0.1, [24], clients=10),
            False,
            "1 seed with",
        ),
        ("fedet q2", record_fedet([30, 40, 35], alpha=0.1), False, "no setting with α = 1 or more"),
        (
            "fedet q2",
            record_fedet([8, 9, 8]),
            False,
            "clearly more than 20 points. Your record: held-out − noise: +8",
        ),
        (
            "fedet q2",
            RIGHT["fedet q2"],
            True,
            "held-out − noise: +30, +40, +35 points, mean +35 ± ",
        ),
        ("fedet q2", record_fedet([30, 40]), False, "noise has 2 seeds with both"),
        ("fedet q2", record_fedet([30, 40, 35], rounds=(1, 5)), False, "has Fed-ET with held-out"),
        (
            "coboosting q2",
            record_coboosting(0.1, [8, 7, 13]) + record_coboosting(10.0, [0, -2]),
            False,
            "no setting between α = 0.1 and 10",
        ),
        ("coboosting q2", RIGHT["coboosting q2"], True, "α = 0.3: +8, +7, +13, +8,"),
        (
            "coboosting q2",
            LEARNT + record_coboosting(3.0, [0, -2, -3] * 3),
            False,
            "α = 3 has 9 seeds",
        ),
        (
            "coboosting q2",
            LEARNT + record_coboosting(0.3, [0, 0, 0], ee=False),
            False,
            "where the gain is not clearly",
        ),
        (
            "coboosting q2",
            record_coboosting(0.3, [8, 7, 13], answer="server") + IDLE,
            False,
            "clearly more than 5",
        ),
        (
            "coboosting q2",
            record_coboosting(0.3, [6, 4, 5] * 4) + IDLE,
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
            CALIBRATED + record_fusefl([40, 30, 35], 1, head="average"),
            False,
            "no runs of both",
        ),
        (
            "fusefl q1",
            CALIBRATED + record_fusefl([40, 30, 35], head="average", alpha=1),
            False,
            "no runs of both classifiers at the same α",
        ),
        (
            "fusefl q1",
            record_fusefl([90, 91, 92], alpha=0.1)
            + record_fusefl([40, 30, 35], head="average", alpha=0.1),
            False,
            "no runs of both",
        ),
        ("fedlpa q3", RIGHT["fedlpa q3"], True, "clear at α = 0.1, 40 epochs: +5, +6, +4, +5,"),
        ("fedlpa q3", record_fedlpa(0.1, [5, 6, 4] * 3) + LATE, False, "has 9 seeds"),
        (
            "fedlpa q3",
            record_fedlpa(0.1, [50] * 10, damping=100.0) + LATE,
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
        ("all_together q2", record_runs("fedlpa", [80] * 3, alpha=0.1), False, "has 0 seeds"),
        ("matching q3", RIGHT["matching q3"], True, "α = 1, matching − FedAvg: +40"),
        (
            "matching q3",
            record_matching(1, 20, 60, 93, ensemble_seeds=9),
            False,
            "α = 1, ensemble − matching has 9 seeds",
        ),
        ("matching q3", record_matching(100, 10, 85, 94), False, "ensemble − matching: +9"),
        (
            "matching q3",
            record_matching(0.1, 15, 21, 52) + record_matching(100, 10, 85, 94),
            False,
            "matching − FedAvg: +6",
        ),
        ("matching q3", record_runs("fens", [80]), False, "no run of matching"),
        (
            "distilled q2",
            RIGHT["distilled q2"],
            True,
            "Clear at 1 per class and the kernel, α = 0.1: +5, +6, +4, +5,",
        ),
        (
            "distilled q2",
            FEW + record_distilled(10, [-1, 1, 0] * 3, "network"),
            False,
            "the network, α = 0.1 has 9 seeds",
        ),
        ("distilled q2", record_runs("fedavg", [50]), False, "no run of distilled"),
    ],
)
def test_the_claim_of_an_exercise(exercise, record, is_right, words):
    folder, name = exercise.split()
    (lesson,) = (import_lesson(source) for source in LESSONS if COURSE[source] == folder)
    verdict = getattr(lesson, name).problem.check(record)
    assert (verdict.state == "right") is is_right, verdict.message
    assert words in verdict.message


@pytest.mark.slow
@pytest.mark.parametrize(("lesson", "problem"), list_problems(RecordProblem))
def test_each_solution_supports_its_claim(lesson, problem):
    if lesson != "shelf/your_own":  # which needs the notebook's method, and has its own test
        assert problem.check(problem.right_answer()).state == "right"


def test_a_gap_that_the_test_images_call_clear_is_not_within_the_noise():
    """The validation images may be too few for a small difference; then another setting is wanted."""
    small = record_heterogeneity(100.0, [-4, 4] * 5)
    for outcome in small:
        outcome.accuracy = 0.5 + 0.001 * outcome.settings.seed
        if outcome.method == "ensemble":
            outcome.accuracy += 0.02
    exercise = import_lesson("2_heterogeneity").q2
    verdict = exercise.problem.check(SKEWED + small)
    assert verdict.state == "wrong"
    assert "α = 100 looked like one" in verdict.message
    assert "the difference is clear: +2.0 ± 0.0 points" in verdict.message
    assert exercise.problem.check(SKEWED + small + MILD).state == "right"


def test_settings_of_the_same_name_are_told_apart():
    """One epoch and forty at the same α are two settings."""
    short = record_heterogeneity(0.1, [-4, 4] * 5)
    for outcome in short:
        settings, recipe = outcome.conditions
        outcome.conditions = settings, replace(recipe, epochs=1)
    message = import_lesson("2_heterogeneity").q2.problem.check(SKEWED + short).message
    assert "Clear at α = 0.1, epochs 40: " in message
    assert "noise at α = 0.1, epochs 1: " in message


def test_the_verdict_on_a_record_without_a_gap_says_how_many_seeds_are_wanted():
    for param in list_problems(RecordProblem):
        name, problem = param.values
        if "afl seeds" in problem.question or "ten seeds" in problem.question:
            verdict = problem.check(record_runs("local", [50] * 3))
            assert "with 10 seeds or more" in verdict.message, (name, verdict.message)
