"""Lesson 08: who is beaten, the exercises by another way, and the overtaking on hand-made numbers."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from toy_outcomes import toy

from fedlab_nb.course.all_together import lesson
from fedlab_nb.plots.series import Series
from fedlab_nb.studies.statistics import difference


def test_the_front_keeps_whom_nobody_beats():
    points = {"cheap": (0.5, 1), "dear": (0.9, 9), "worse": (0.4, 1), "same": (0.9, 9), "wasteful": (0.5, 2)}
    rows = [Series(name, accuracies={0: share}, up=sent) for name, (share, sent) in points.items()]
    assert lesson.front(rows) == ["cheap", "dear", "same"]


def test_the_picture_has_all_methods_of_both_sets():
    picture = lesson.prices("digits", "glyphs:16g")
    for rows in (picture.table[:31], picture.table[31:]):
        assert len({row["method"] for row in rows}) == 31
        best = [float(row["accuracy"].split(" ")[0]) for row in rows if row["beaten"] == "no"]
        assert best == sorted(best)  # cheapest first: who costs more has to be better
    assert lesson.stored_percent("afl", "glyphs:16g") == pytest.approx(62.7, abs=0.1)


def test_overtaking_is_the_first_round_above(monkeypatch):
    history = [{"phase": "rounds", "accuracy": a} for a in (0.2, 0.9, 0.5, 0.95)] + [{"phase": "end", "accuracy": 1}]
    for goal, wanted in ((0.8, 2), (0.95, 0)):
        pair = SimpleNamespace(accuracy=goal), SimpleNamespace(history=history)
        monkeypatch.setattr(lesson, "runs", lambda *_, pair=pair, **__: pair)
        assert lesson.overtaken_in("one", "other") == wanted


def pair(dataset, alpha, gap, seeds=3):
    """Runs of both methods; `gap`: FedLPA's lead in points."""
    return [
        toy(method, 0.5 + 0.01 * seed + more / 100, settings={"seed": seed, "dataset": dataset, "alpha": alpha})
        for seed in range(seeds)
        for method, more in (("ensemble", 0), ("fedlpa", gap))
    ]


AHEAD, BEHIND = pair("digits", 0.1, 30), pair("glyphs:16g", 1, -28)


@pytest.mark.parametrize(
    ("record", "state", "words"),
    [
        (AHEAD, "wrong", "in which FedLPA is clearly worse"),
        (AHEAD + BEHIND, "right", "FedLPA − ensemble at digits, α = 0.1: +30, +30, +30 points"),
        (AHEAD[:4] + BEHIND, "wrong", "digits, α = 0.1 has 2 seeds"),
        ([run for run in AHEAD if run.method == "fedlpa"], "wrong", "has 0 seeds"),
    ],
)
def test_exercise_2(record, state, words):
    verdict = lesson.q2.problem.check(record)
    assert verdict.state == state and words in verdict.message


def by_interval(a, b):
    """Another right one: the ends of scipy's interval."""
    d = a - b
    low, high = stats.t.interval(0.95, len(d) - 1, loc=d.mean(), scale=stats.sem(d))
    return np.array([(low + high) / 2, (high - low) / 2])


def by_the_package(a, b):
    band = difference(dict(enumerate(a)), dict(enumerate(b)))
    return band.mean, band.half_width


@pytest.mark.parametrize("answer", [by_interval, by_the_package])
def test_right_however_it_is_written(answer):
    assert lesson.q3.problem.check(answer).state == "right"
