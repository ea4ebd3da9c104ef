"""The lesson “all together”: who is beaten, the exercises by another way, and the overtaking on hand-made numbers."""

import json
from types import SimpleNamespace

import pytest
from lessons import SOURCES

import fedlab_nb as fl
from fedlab_nb.course.all_together import lesson
from fedlab_nb.studies.stored_rows import FOLDER, make_path_of_stored_rows, read_stored_rows


def stored_rows(dataset):
    return json.loads(make_path_of_stored_rows("stored", dataset).read_text(encoding="utf-8"))[
        "rows"
    ]


def test_the_offers_are_all_methods_and_the_makes_of_two():
    """The counts of the text, from the stored rows and not from the study."""
    methods = {row["method"] for row in stored_rows("digits")} - {"local", "centralized"}
    makes = 0
    for row in read_stored_rows(FOLDER / "which.json")[1]:
        if row["runs"] == "digits" and row["at"]["alpha"] == 0.1:
            is_new = row["at"][f"{row['method']}.features"] != "pixels"
            makes += is_new
    text = SOURCES["shelf/all_together"]
    assert f"has {len(methods)} methods" in text
    assert f"That makes {len(methods) + makes} offers" in text
    assert f"high={len(methods) + makes}" in text
    for federation in ("digits, α = 0.1", "glyphs:16g, α = 0.1"):
        assert len(fl.which().plot(federation).table) == len(methods) + makes


def test_nobody_beats_those_that_the_lesson_counts():
    """By comparing every pair of offers."""
    study = fl.which()
    (digits,) = [each for each in study.federations if each.name == "digits, α = 0.1"]
    unbeaten = set()
    for one in digits.candidates:
        is_beaten = False
        for other in digits.candidates:
            as_good = other.mean >= one.mean and other.bytes_each <= one.bytes_each
            better = other.mean > one.mean or other.bytes_each < one.bytes_each
            is_beaten = is_beaten or (as_good and better)
        if not is_beaten:
            unbeaten.add(one.title)
    assert set(study.list_unbeaten("digits, α = 0.1")) == unbeaten


def test_the_second_guess_is_answered_by_the_stored_rows():
    (made,) = [
        row
        for row in stored_rows("glyphs:16g")
        if row["method"] == "fedlpa" and row["at"]["alpha"] == 0.1
    ]
    percent = 100 * sum(made["accuracy"]) / len(made["accuracy"])
    assert lesson.load_mean_accuracy_percent("fedlpa", "glyphs:16g") == pytest.approx(
        percent, abs=1e-9
    )


def test_overtaking_is_the_first_round_above(monkeypatch):
    history = [{"phase": "rounds", "accuracy": a} for a in (0.2, 0.9, 0.5, 0.95)] + [
        {"phase": "end", "accuracy": 1}
    ]
    for goal, wanted in ((0.8, 2), (0.95, 0)):
        pair = SimpleNamespace(accuracy=goal), SimpleNamespace(history=history)
        monkeypatch.setattr(lesson, "runs", lambda *_, pair=pair, **__: pair)
        assert lesson.find_overtaking_round("one", "other") == wanted
