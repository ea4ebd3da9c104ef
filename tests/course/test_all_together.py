"""The lesson “all together”: who is beaten, the exercises by another way, and the overtaking on hand-made numbers."""

import json
from types import SimpleNamespace

import pytest
from lessons import SOURCES

import fedlab_nb as fl
from fedlab_nb.course.all_together import lesson
from fedlab_nb.studies.stored_rows import FOLDER, make_path_of_stored_rows, read_stored_rows


def load_stored_rows(dataset):
    text = make_path_of_stored_rows("stored", dataset).read_text(encoding="utf-8")
    return json.loads(text)["rows"]


@pytest.mark.slow
def test_the_offers_are_all_methods_and_the_makes_of_two():
    """The counts of the text, from the stored rows and not from the study."""
    methods = {row["method"] for row in load_stored_rows("digits")} - {"local", "centralized"}
    offers = len(methods)
    for row in read_stored_rows(FOLDER / "which.json")[1]:
        if row["runs"] == "digits" and row["at"]["alpha"] == 0.1:
            is_another_make = row["at"][f"{row['method']}.features"] != "pixels"
            offers += is_another_make
    text = SOURCES["shelf/all_together"]
    assert f"has {len(methods)} methods" in text
    assert f"That makes {offers} offers" in text
    assert f"high={offers}" in text
    for federation in ("digits, α = 0.1", "glyphs:16g, α = 0.1"):
        assert len(fl.which().plot(federation).table) == offers


@pytest.mark.slow
def test_nobody_beats_those_that_the_lesson_counts():
    """By comparing every pair of offers."""
    study = fl.which()
    (digits,) = [each for each in study.federations if each.name == "digits, α = 0.1"]

    def is_beaten(candidate):
        for other in digits.candidates:
            is_as_accurate = other.mean >= candidate.mean
            is_as_cheap = other.bytes_each <= candidate.bytes_each
            is_better = other.mean > candidate.mean or other.bytes_each < candidate.bytes_each
            if is_as_accurate and is_as_cheap and is_better:
                return True
        return False

    unbeaten = {candidate.title for candidate in digits.candidates if not is_beaten(candidate)}
    assert set(study.list_unbeaten("digits, α = 0.1")) == unbeaten


def test_the_second_guess_is_answered_by_the_stored_rows():
    rows = [row for row in load_stored_rows("glyphs:16g") if row["at"]["alpha"] == 0.1]
    (accuracies,) = (row["accuracy"] for row in rows if row["method"] == "fedlpa")
    percent = 100 * sum(accuracies) / len(accuracies)
    stated = lesson.load_mean_accuracy_percent("fedlpa", "glyphs:16g")
    assert stated == pytest.approx(percent, abs=1e-9)


@pytest.mark.parametrize(("goal", "expected_round"), [(0.8, 2), (0.95, 0)])
def test_overtaking_is_the_first_round_above_the_goal_or_0(goal, expected_round, monkeypatch):
    history = [{"phase": "rounds", "accuracy": a} for a in (0.2, 0.9, 0.5, 0.95)]
    history.append({"phase": "end", "accuracy": 1})
    one_shot = SimpleNamespace(accuracy=goal)
    iterative = SimpleNamespace(history=history)
    monkeypatch.setattr(lesson, "runs", lambda *_, **__: (one_shot, iterative))
    assert lesson.find_overtaking_round("one", "other") == expected_round
