"""The practice word HARBOUR: what is stored is what a run gives, and the teachers' page says just that."""

import re

import pytest
from lessons import NOTEBOOKS, SOURCES, read_screen

from fedlab_nb.course.capstone import desk
from fedlab_nb.course.capstone.practice import (
    CHOICES,
    CODE,
    PLANS,
    load_practice_report,
    load_practice_tries,
    load_stored_practice,
    make_practice_argument_text,
    raise_unless_tries_support_argument_of_ada,
    replace_practice_reports_in_page,
)

TOLERANCE = 0.02  # on another processor some images near a border between classes change sides
REPORTS = (NOTEBOOKS / "instructor" / "6_reports.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_lesson_s_tries_are_those_of_a_fresh_run(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDLAB_NB_STORE", str(tmp_path))
    case = desk.Case(CODE, name="fresh")
    for result in load_practice_tries("Lesson"):
        case.trial(result.method, **result.knobs)
        fresh = case.record.tries[-1]
        assert fresh.bytes == result.bytes
        assert fresh.validation_band.mean == pytest.approx(
            result.validation_band.mean, abs=TOLERANCE
        )


def test_a_try_has_the_same_numbers_whoever_makes_it():
    for method in ("ensemble", "fens", "distilled", "gauss", "afl"):
        numbers = []
        for person in PLANS:
            for result in load_practice_tries(person):
                if result.method == method and not result.knobs:
                    numbers.append((result.validation, result.bytes))
        assert len(numbers) >= 2, method
        assert all(each == numbers[0] for each in numbers), method


def test_the_page_has_the_stored_reports():
    assert replace_practice_reports_in_page(REPORTS) == REPORTS
    with pytest.raises(ValueError, match="no place for the report of Ada"):
        replace_practice_reports_in_page("# Another page\n")


def test_ada_s_reasons_hold_and_are_written_with_the_tries_numbers():
    tries = load_practice_tries("Ada")
    budget = load_stored_practice()["Ada"]["budget"]
    assert make_practice_argument_text("Ada", tries, budget) == load_practice_report("Ada").argument
    by_number = {result.number: result for result in tries}
    by_number[11], by_number[1] = by_number[1], by_number[11]
    with pytest.raises(ValueError, match="try 11 is ahead of try 4 on every seed"):
        raise_unless_tries_support_argument_of_ada(by_number, budget)


def test_the_tables_of_points_say_what_the_reports_say():
    ada = load_practice_report("Ada")
    bo = load_practice_report("Bo")
    assert ada.chosen_try.method == bo.chosen_try.method == "gauss"
    assert ada.test_band.mean < ada.chosen_try.validation_band.low
    assert "The test accuracy is below the band of try 11, as she expected." in REPORTS
    assert ada.tries[9].bytes == pytest.approx(2 * ada.tries[8].bytes, rel=0.02)
    assert "twice the bytes of try 9" in REPORTS
    assert bo.tries[5].bytes == pytest.approx(bo.chosen_try.bytes / 5, rel=0.1)
    assert "try 6 costs a fifth of his choice" in REPORTS
    assert max(bo.tries, key=lambda result: result.validation_band.mean).number == CHOICES["Bo"]


def test_what_is_behind_the_word_is_what_the_lesson_says():
    hidden = desk.draw_random_federation_of_code_word(CODE)
    text = SOURCES["6_capstone"]
    (fold,) = re.findall(r"What is behind HARBOUR.*?</details>", text, re.DOTALL)
    assert f"(`{hidden.source}`)" in fold
    assert f"α = {hidden.alpha:g}" in fold
    rounds = hidden.budget // (2 * 4 * hidden.numbers)
    assert f"budget of {hidden.budget:,} bytes" in read_screen("6_capstone")
    assert desk.Case(CODE).budget_in_bytes == hidden.budget
    assert rounds == 3
