"""The lesson “all together”: who is beaten, the exercises by another way, and the overtaking on hand-made numbers."""

import json
from types import SimpleNamespace

import pytest
from lessons import SOURCES

from fedlab_nb.course.all_together import lesson
from fedlab_nb.plots.series import Series
from fedlab_nb.studies.stored_rows import find_file


def test_the_front_keeps_whom_nobody_beats():
    points = {
        "cheap": (0.5, 1),
        "dear": (0.9, 9),
        "worse": (0.4, 1),
        "same": (0.9, 9),
        "wasteful": (0.5, 2),
    }
    rows = [Series(name, accuracies={0: share}, up=sent) for name, (share, sent) in points.items()]
    assert lesson.front(rows) == ["cheap", "dear", "same"]


def test_the_picture_has_all_methods_of_both_sets():
    picture = lesson.prices("digits", "glyphs:16g")
    count = len(picture.table) // 2
    assert (
        f"has {count} methods" in SOURCES["shelf/all_together"]
        and f"high={count}" in SOURCES["shelf/all_together"]
    )
    for rows in (picture.table[:count], picture.table[count:]):
        assert len({row["method"] for row in rows}) == count
        best = [float(row["accuracy"].split(" ")[0]) for row in rows if row["beaten"] == "no"]
        assert best == sorted(best)  # cheapest first: who costs more has to be better
    assert len(lesson.prices("heart").table) == count - 1  # F-ADI makes images
    assert len(lesson.prices("mnist:5k").table) == 9
    rows = json.loads(find_file("stored", "glyphs:16g").read_text(encoding="utf-8"))["rows"]
    (made,) = [r for r in rows if r["method"] == "afl" and r["at"]["alpha"] == 0.1]
    percent = 100 * sum(made["accuracy"]) / len(made["accuracy"])
    assert lesson.stored_percent("afl", "glyphs:16g") == pytest.approx(percent, abs=1e-9)


def test_overtaking_is_the_first_round_above(monkeypatch):
    history = [{"phase": "rounds", "accuracy": a} for a in (0.2, 0.9, 0.5, 0.95)] + [
        {"phase": "end", "accuracy": 1}
    ]
    for goal, wanted in ((0.8, 2), (0.95, 0)):
        pair = SimpleNamespace(accuracy=goal), SimpleNamespace(history=history)
        monkeypatch.setattr(lesson, "runs", lambda *_, pair=pair, **__: pair)
        assert lesson.overtaken_in("one", "other") == wanted
