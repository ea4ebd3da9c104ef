"""Lesson 08, exercise 4: right functions of several kinds, typical wrong ones with their own words, no answer yet."""

import math
import statistics

import numpy as np
import pytest
from scipy import stats

from fedlab_nb.course.all_together import comparison_build
from fedlab_nb.course.all_together import lesson as comparison
from fedlab_nb.study.statistics import difference


def by_interval(a, b):
    """Another right one: the ends of scipy's interval."""
    d = a - b
    low, high = stats.t.interval(0.95, len(d) - 1, loc=d.mean(), scale=stats.sem(d))
    return np.array([(low + high) / 2, (high - low) / 2])


def by_loop(a, b):
    d = [x - y for x, y in zip(a, b, strict=True)]
    half = stats.t.ppf(0.975, len(d) - 1) * statistics.stdev(d) / math.sqrt(len(d))
    return [statistics.fmean(d), half]


def by_the_package(a, b):
    band = difference(dict(enumerate(a)), dict(enumerate(b)))
    return band.mean, band.half_width


@pytest.mark.parametrize("answer", [comparison_build.paired_band, by_interval, by_loop, by_the_package])
def test_right_functions(answer):
    assert comparison.q4.problem.check(answer).state == "right"


WORDS = {
    "ddof": "std(ddof=1)", "normal": "1.96", "normal_rounded": "1.96", "degrees": "one degree of freedom less",
    "root": "spread of single seeds", "whole_n": "You divided by the number of seeds.", "one_sided": "97.5 % point",
    "unpaired": "different seeds", "unpaired_few": "different seeds", "turned": "b − a", "absolute": "Keep their signs",
    "ends": "two ends", "whole_width": "half of it",
    "half_first": "The mean comes first", "no_factor": "standard error alone",
}  # fmt: skip


@pytest.mark.parametrize("name", comparison_build.SLIPS)
def test_mistakes_are_named(name):
    verdict = comparison.q4.problem.check(comparison_build.SLIPS[name])
    assert verdict.state == "wrong" and WORDS[name] in verdict.message


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda a, b: ((a - b).mean(), 1.96 * stats.sem(a - b)), "1.96"),
        (lambda a, b: (a - b).mean(), "returns the shape (), but (2,) is wanted"),
        (lambda a, b: (0, 0), "other numbers are wanted"),
        (lambda a: a, "stopped with TypeError"),
        (2.5, "is the function paired_band"),
    ],
)
def test_other_wrong_answers(wrong, words):
    verdict = comparison.q4.problem.check(wrong)
    assert verdict.state == "wrong" and words in verdict.message


@pytest.mark.parametrize("answer", [None, ..., "", lambda a, b: ..., lambda a, b: None])
def test_no_answer_yet(answer):
    assert comparison.q4.problem.check(answer).state == "unattempted"


def test_the_solution_can_be_run_as_it_is_shown():
    shown = comparison.q4.problem.solution().split("\n", 1)[1].replace("\N{NO-BREAK SPACE}", " ")
    space = {"np": np}
    exec(shown, space)
    assert comparison.q4.problem.check(space["paired_band"]).state == "right"
