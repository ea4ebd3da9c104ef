"""Runs and claims of lessons: which runs are compared with which, and the kinds of a gap, on hand-made records."""

import pytest
from toy_outcomes import make_toy_outcome

from fedlab_nb.course.kit import claims
from fedlab_nb.course.kit.claims import AccuracyGap, judge_one_gap_clear_and_one_not
from fedlab_nb.plots.words import describe_accuracy_difference
from fedlab_nb.studies.lesson_runs import (
    group_comparable_accuracies,
    percent,
    select_accuracies_by_seed,
    select_outcomes_by_seed,
    title,
)


def make_outcomes(method, *accuracies, alpha=0.1):
    """An outcome for each seed: seed 0 has the first of the accuracies."""
    outcomes = []
    for seed, accuracy in enumerate(accuracies):
        outcomes.append(make_toy_outcome(method, accuracy, settings={"alpha": alpha, "seed": seed}))
    return outcomes


def test_of_a_seed_that_was_run_twice_the_first_run_counts():
    first = make_outcomes("fens", 0.8, 0.6)
    record = [*first, *make_outcomes("fedavg", 0.3), *make_outcomes("fens", 0.1)]
    assert select_accuracies_by_seed(record, "fens") == {0: 0.8, 1: 0.6}
    assert select_outcomes_by_seed(record, "fens")[0] is first[0]
    assert percent(record, "fens") == pytest.approx(50)
    assert title("fens") == "FENS"


def test_two_methods_are_paired_by_seed():
    """+50, +40, +50, +50, +50 points: the mean is 48, the standard deviation 4.47.

    The half width is 2.78 (Student's t, 4 degrees of freedom) times 4.47 / √5: 5.6.
    """
    record = [
        *make_outcomes("fens", 0.8, 0.6, 0.7, 0.7, 0.7),
        *make_outcomes("fedavg", 0.3, 0.2, 0.2, 0.2, 0.2),
    ]
    fens = select_accuracies_by_seed(record, "fens")
    fedavg = select_accuracies_by_seed(record, "fedavg")
    assert describe_accuracy_difference(fens, fedavg) == "+48 ± 6 points, clear"
    worse = describe_accuracy_difference(fedavg, fens, clear_words="more than noise")
    assert worse == "-48 ± 6 points, more than noise"
    # no band of fewer than five seeds
    few = describe_accuracy_difference({0: 0.1, 1: 0.33, 2: 0.2}, {0: 0.2, 1: 0.2, 2: 0.2})
    assert few == "+1 points, within the noise"


def test_runs_are_grouped_by_all_that_was_set():
    record = [
        *make_outcomes("fens", 0.8),
        *make_outcomes("fedavg", 0.3),
        *make_outcomes("fens", 0.9, alpha=1),
    ]
    groups = group_comparable_accuracies(record)
    assert {settings.alpha: dict(methods) for (settings, _), methods in groups.items()} == {
        0.1: {"fens": {0: 0.8}, "fedavg": {0: 0.3}},
        1: {"fens": {0: 0.9}},
    }

    def get_group_of_fens(outcome):
        return ("all", outcome.settings.alpha) if outcome.method == "fens" else None

    assert group_comparable_accuracies(record, get_group_of_fens) == {
        "all": {0.1: {0: 0.8}, 1: {0: 0.9}}
    }


def make_gap(*points, name="here"):
    """A gap in points for each seed, over a variant whose accuracy is 0."""
    accuracies = {seed: each / 100 for seed, each in enumerate(points)}
    return AccuracyGap(name, accuracies, dict.fromkeys(range(9), 0.0))


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
    gap = make_gap(*points)
    assert gap.kind == kind
    assert [100 * share for share in gap.accuracy_differences] == pytest.approx(points)


def judge(*gaps, **options):
    words = {"clear": "a clear one", "other": "a dull one", "nothing": "nothing"}
    return judge_one_gap_clear_and_one_not(gaps, right="{clear} | {other}", **words, **options)


def test_the_claim_of_two_kinds_needs_both():
    verdict = judge(make_gap(5, 6, 7, name="a"), make_gap(5, -6, 7, name="b"))
    assert verdict.state == "right"
    assert verdict.message.startswith("a: +5")
    assert "| b: +5, -6" in verdict.message
    clear = make_gap(5, 6, 7)
    verdict = judge(clear, make_gap(1))
    assert verdict.state == "wrong"
    assert "with 3 seeds or more: a dull one. Your record: here: +5" in verdict.message
    assert "has 1 seed with both methods" in verdict.message
    verdict = judge()
    assert "a clear one and a dull one" in verdict.message
    assert verdict.message.endswith("Your record: nothing.")
    worse = make_gap(-5, -6, -7)
    assert judge(clear, worse).state == "wrong"
    kinds = (claims.NOISE, claims.BELOW)
    assert judge(clear, worse, kinds_of_other_gap=kinds).state == "right"
