"""Lesson 08: the exercises by another way, the front and the overtaking on hand-made numbers."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from toy_outcomes import toy

from fedlab_nb.course.all_together import lesson
from fedlab_nb.studies import stored
from fedlab_nb.studies.statistics import difference


def outcomes(alpha, **methods):
    """{method: (accuracy, bytes)} with three seeds each."""
    return [
        toy(method, accuracy, settings={"alpha": alpha, "seed": seed}, bytes_up=sent, bytes_down=0, local_passes=40.0)
        for method, (accuracy, sent) in methods.items()
        for seed in range(3)
    ]


THREE = {"ensemble": (0.5, 100), "fedlpa": (0.8, 200), "fens": (0.9, 400)}


def test_the_front_keeps_whom_nobody_beats():
    points = {"cheap": (0.5, 1), "dear": (0.9, 9), "worse": (0.4, 1), "same": (0.9, 9), "wasteful": (0.5, 2)}
    assert lesson.front(points) == ["cheap", "dear", "same"]
    assert lesson.front({}) == []


def test_both_sets_stand_side_by_side(monkeypatch):
    def table(dataset, shift):
        about = {"settings": {"dataset": dataset}}
        shares = {"fens": 0.893, "afl": 0.943}
        cells = {(m, 0.1, 10, s): {"accuracy": v + s / 100 - shift} for m, v in shares.items() for s in range(10)}
        return stored.Stored(about, cells)

    tables = {"digits": table("digits", 0.0), "glyphs:16g": table("glyphs:16g", 0.3)}
    monkeypatch.setattr(stored, "sets", lambda: list(tables))
    monkeypatch.setattr(stored, "load", lambda name="digits": tables[name])
    first, second, last = lesson.both_sets().text.splitlines()
    assert first == "AFL: Digits 99 ± 2 %, Glyphs 16x16 69 ± 2 %" and second.startswith("FENS: Digits 94 ± 2 %")
    assert last == "α = 0.1, 10 clients, stored results of 10 seeds."
    assert lesson.stored_percent("afl", "glyphs:16g") == pytest.approx(68.8)


def test_overtaking_is_the_first_round_above():
    history = [{"phase": "rounds", "accuracy": a, "bytes": 10 * (i + 1)} for i, a in enumerate((0.2, 0.9, 0.5, 0.95))]
    run = SimpleNamespace(history=[*history, {"phase": "end", "accuracy": 1.0, "bytes": 40}])
    assert lesson.overtaking(run, 0.8) == (2, 20) and lesson.overtaking(run, 0.95) is None


def longer(runs):
    """The same runs with more local epochs."""
    for run in runs:
        settings, recipe = run.conditions
        run.conditions = settings, replace(recipe, epochs=recipe.epochs + 1)
    return runs


def noisy(method, accuracies, sent):
    """One run a seed, of these accuracies."""
    return [outcomes(0.1, **{method: (accuracy, sent)})[seed] for seed, accuracy in enumerate(accuracies)]


NOISY_PAIR = noisy("ensemble", (0.3, 0.5, 0.7), 100) + noisy("fedlpa", (0.4, 0.6, 0.8), 200)

TWO = outcomes(0.1, ensemble=(0.5, 100), fens=(0.9, 400))


@pytest.mark.parametrize(
    ("runs", "state", "words"),
    [
        (TWO + longer(outcomes(0.1, fedlpa=(0.8, 200))), "wrong", "fewer than three"),
        (outcomes(0.1, **THREE), "right", "FedLPA (200 B, 80 %)"),
        ([o for o in outcomes(0.1, **THREE) if o.settings.seed < 2], "wrong", "no method with 3 seeds"),
        (TWO + noisy("fedlpa", (0.45, 0.58, 0.53), 200), "wrong", "FedLPA − mean of probabilities +2 ± 16 points"),
        (NOISY_PAIR + noisy("fens", (0.55, 0.75, 0.95), 400), "right", "FedLPA (200 B, 60 %), FENS (400 B, 75 %)"),
        (outcomes(0.1, **THREE, coboosting=(0.95, 100)), "wrong", "FENS − Co-Boosting -5 ± 0 points"),
    ],
)
def test_exercise_3(runs, state, words):
    verdict = lesson.q3.problem.check(runs)
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
    assert lesson.q4.problem.check(answer).state == "right"
