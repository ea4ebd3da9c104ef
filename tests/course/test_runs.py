"""Runs and claims of lessons: who is compared with whom, and the kinds of a gap, by hand."""

import pytest
from toy_outcomes import toy

from fedlab_nb.course.kit import claims
from fedlab_nb.course.kit.claims import Gap, judge_one_gap_clear_and_one_not
from fedlab_nb.plots.words import describe_accuracy_difference
from fedlab_nb.studies.lesson_runs import accuracies, alike, by_seed, percent, title


def outcomes(method, *values, alpha=0.1):
    return [
        toy(method, value, settings={"alpha": alpha, "seed": seed})
        for seed, value in enumerate(values)
    ]


def test_one_method_s_seeds_are_taken_and_the_first_of_a_repeated_one():
    record = [*outcomes("fens", 0.8, 0.6), *outcomes("fedavg", 0.3), *outcomes("fens", 0.1)]
    assert (
        accuracies(record, "fens") == {0: 0.8, 1: 0.6} and by_seed(record, "fens")[0] is record[0]
    )
    assert percent(record, "fens") == pytest.approx(50) and title("fens") == "FENS"


def test_two_methods_are_paired_by_seed():
    record = [
        *outcomes("fens", 0.8, 0.6, 0.7, 0.7, 0.7),
        *outcomes("fedavg", 0.3, 0.2, 0.2, 0.2, 0.2),
    ]
    # +50, +40, +50, +50, +50: mean 48, 2.78 (Student's t, 4 degrees of freedom) times 4.47 / √5: 5.6
    fens, fedavg = (accuracies(record, method) for method in ("fens", "fedavg"))
    assert describe_accuracy_difference(fens, fedavg) == "+48 ± 6 points, clear"
    assert (
        describe_accuracy_difference(fedavg, fens, clear_words="more than noise")
        == "-48 ± 6 points, more than noise"
    )
    assert (
        describe_accuracy_difference({0: 0.1, 1: 0.33, 2: 0.2}, {0: 0.2, 1: 0.2, 2: 0.2})
        == "+1 points, within the noise"  # no band of fewer than five seeds
    )


def test_runs_are_grouped_by_all_that_was_set():
    record = [*outcomes("fens", 0.8), *outcomes("fedavg", 0.3), *outcomes("fens", 0.9, alpha=1)]
    groups = alike(record)
    assert {settings.alpha: dict(methods) for (settings, _), methods in groups.items()} == {
        0.1: {"fens": {0: 0.8}, "fedavg": {0: 0.3}},
        1: {"fens": {0: 0.9}},
    }
    only = alike(record, lambda o: ("all", o.settings.alpha) if o.method == "fens" else None)
    assert only == {"all": {0.1: {0: 0.8}, 1: {0: 0.9}}}


def gap(*points, name="here"):
    return Gap(name, {i: p / 100 for i, p in enumerate(points)}, dict.fromkeys(range(9), 0.0))


@pytest.mark.parametrize(
    ("points", "kind"),
    [
        ((5, 6), claims.SHORT),
        ((5, 6, 7), claims.CLEAR),
        ((5, -6, 7), claims.NOISE),
        ((-5, -6, -7), claims.BELOW),
    ],
)
def test_kinds_of_a_gap(points, kind):
    assert gap(*points).kind == kind and [
        100 * share for share in gap(*points).accuracy_differences
    ] == pytest.approx(points)


def judged(*gaps, **more):
    words = {"clear": "a clear one", "other": "a dull one", "nothing": "nothing"}
    return judge_one_gap_clear_and_one_not(gaps, right="{clear} | {other}", **words, **more)


def test_the_claim_of_two_kinds_needs_both():
    verdict = judged(gap(5, 6, 7, name="a"), gap(5, -6, 7, name="b"))
    assert (
        verdict.state == "right"
        and verdict.message.startswith("a: +5")
        and "| b: +5, -6" in verdict.message
    )
    alone = judged(gap(5, 6, 7), gap(1))
    assert (
        alone.state == "wrong"
        and "with 3 seeds or more: a dull one. Your record: here: +5" in alone.message
    )
    assert (
        "has 1 seed with both methods" in alone.message
        and "a clear one and a dull one" in judged().message
    )
    assert judged().message.endswith("Your record: nothing.")
    worse = gap(-5, -6, -7)
    assert judged(gap(5, 6, 7), worse).state == "wrong"
    assert (
        judged(gap(5, 6, 7), worse, kinds_of_other_gap=(claims.NOISE, claims.BELOW)).state
        == "right"
    )
