"""Numbers as people type them, and the lessons' questions answered in every sensible form."""

import importlib
from fractions import Fraction

import numpy as np
import pytest

from fedlab_nb.course.kit.answers import readings


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2.8", 2.8),
        ("2,8", 2.8),
        (" .5 ", 0.5),
        ("5.", 5),
        ("-1", -1),
        ("−1", -1),
        ("≈ 0.19", 0.19),
        ("= 0.19", 0.19),
        ("> 1.25", 1.25),
        ("λ = 1.25", 1.25),
        ("T=8", 8),
        ("T ≥ 8", 8),
        ("λ > 1.25", 1.25),
        ("×4", 4),
        ("2^1.5", 2**1.5),
        ("8**0,5", 8**0.5),
        ("10^-3", 0.001),
        ("1/2^3", 0.125),
        ("1e-3", 0.001),
        ("9/4", 2.25),
        ("9 / 4", 2.25),
        ("9⁄4", 2.25),
        ("½", 0.5),
        ("2½", 2.5),
        ("2 ¼", 2.25),
        ("2 1/4", 2.25),
        ("-2 1/4", -2.25),
        ("−½", -0.5),
        ("2.5/2", 1.25),
        ("16 040", 16040),
        ("16\u202f040", 16040),
        ("16\N{NO-BREAK SPACE}040", 16040),
        ("16'040", 16040),
        ("1,234,567.5", 1234567.5),
        ("1.234.567,5", 1234567.5),
        ("87 %", 0.87),
        ("87%", 0.87),
        ("87 per cent", 0.87),
        ("½ %", 0.005),
    ],
)
def test_one_reading(text, value):
    assert readings(text) == [pytest.approx(value)]


def test_numbers_of_any_type():
    for number in (2, 2.0, np.float32(2), np.int64(2), Fraction(4, 2)):
        assert readings(number) == [2.0]


def test_a_comma_or_point_before_three_digits_has_two_readings():
    assert sorted(readings("16,040")) == sorted(readings("16.040")) == [16.04, 16040]
    assert sorted(readings("-2,250")) == [-2250, -2.25]
    assert readings("0,193") == [0.193]


@pytest.mark.parametrize(
    "answer",
    [
        None, ..., True, [2], "", " ", "half", "2 or 3", "two 2", "2..5", "1/0", "1/2/3", "nan", "inf", "1e999",
        "9" * 400, 10**400, "1e29/1e-29", "12,34,5", "16 04", float("nan"), float("inf"), "%", "-", "2 1/", "/2",
        "400 bits", "x = y", "λ 8", "< 8", "2^", "^2", "9^9^9^9", "9^99",
    ],
)  # fmt: skip
def test_no_number(answer):
    assert readings(answer) == []


def test_units_are_those_of_the_question():
    for text in ("6.25x", "6.25 X", "6.25 ×", "6,25 times"):
        assert readings(text, ("times", "x", "×")) == [6.25] and readings(text) == []
    for text in ("1 round", "1 rounds", "1 Rounds"):
        assert readings(text, ("rounds",)) == [1]
    assert readings("400 b", ("bytes", "B")) == [] and readings("400 B", ("bytes", "B")) == [400]
    assert [readings(text, ("bytes", "B")) for text in ("56.3 kB", "2 KiB", "1,5 MB")] == [[56300], [2048], [1.5e6]]
    assert readings("2 kB") == []


def test_per_cent_asked():
    for text in ("23 %", "23%", "23 per cent", "23 percent"):
        assert readings(text, ("per cent", "%")) == [23]
    assert readings("23", ("%",)) == [23, 2300] and readings(0.25, ("%",)) == [0.25, 25]


AFL, MATCH, IMAGES = (f"course.{x}.lesson" for x in ("afl", "matching", "distilled"))
FENS, FEDET, BOOST, FUSE, LPA = (f"course.{x}.lesson" for x in ("fens", "fedet", "coboosting", "fusefl", "fedlpa"))


@pytest.mark.parametrize(
    ("lesson", "exercise", "right", "wrong"),
    [
        (
            "course.heterogeneity.lesson",
            "q1",
            ["2.8", "2,83", "2.8 classes", "2.828", "2^1.5", "2.8 digits"],
            ["3", "2.7", "2.9", "28 %", "1.5"],
        ),
        ("course.averaging.lesson", "q1", ["0.19", "0,193", "0.1927", 0.19], ["0.2", "0.18", "0.223", "193"]),
        ("course.averaging.lesson", "q2", ["0.73", "73 %", "73.1%"], ["73", "0.98", "0.5"]),
        (FENS, "q1", ["5/4", "1¼", "1.25", "1,25", "λ > 1.25"], ["1.2", "1", "5/2", "½"]),
        (FENS, "q2", ["8", "8 rounds"], ["7.25", "7", "8 bytes"]),
        (FEDET, "q1", ["0.94", "16/17", "94 %", "94.1%"], ["94", "0.8", "0.5"]),
        (FEDET, "q2", ["23", "23 %", "23.1", "3/13", 0.23], ["30 %", "0.3", "60", "77"]),
        (BOOST, "q1", ["½", "1/2", "0.5", "50 %", "0,5"], ["50", "0.4", "0.556"]),
        (BOOST, "q2", ["8", "8x", "8 times", "8 ×"], ["64", "8 %", "55.4"]),
        (FUSE, "q1", ["16,040", "16 040", "16040", "16.040", "16040 numbers"], ["16,000", "16 %", "160,400", "1640"]),
        (LPA, "q1", ["3", "27/9", "3.0"], ["3.5", "4", "27"]),
        (LPA, "q2", ["496", "496 numbers"], ["210", "751", "500"]),
        ("course.all_together.lesson", "q1", ["4", "4x", "4 times", "4-fold"], ["2", "8", "4 %"]),
        ("course.all_together.lesson", "q2", ["9/4", "2.25", "2¼", "2,25", "2 1/4 rounds"], ["4.5", "2", "3", "6"]),
        (
            "course.your_own.lesson",
            "q1",
            ["400", "400 bytes", "400 B", "0.4 kB"],
            ["40", "3200 bits", "400 bits", "4 kB"],
        ),
        ("course.your_own.lesson", "q2", ["0.9", "9/10", "90 %"], ["90", "3/4", "0.5"]),
        (AFL, "q1", ["6050", "6,050", "6 050 numbers", "6.050"], ["11,000", "5950", "6050 bytes", "24,200"]),
        (AFL, "q2", ["2.2", "11/5", "2 1/5", "2,2", "2.20"], ["3.25", "13/4", "22 %", "11"]),
        (MATCH, "q1", ["144", "144 orders", "144.0"], ["5,040", "30", "24"]),
        (MATCH, "q2", ["11", "11.0", "22/2"], ["13", "10", "11 %"]),
        (IMAGES, "q1", ["31,400", "31 400 bytes", "31.4 kB", "31400 B"], ["31.4", "31,360", "7850", "31.4 MB"]),
        (IMAGES, "q2", ["6", "6 images"], ["9", "3", "6 bytes"]),
    ],
)
def test_lessons_questions(lesson, exercise, right, wrong):
    problem = getattr(importlib.import_module(f"fedlab_nb.{lesson}"), exercise).problem
    for state, answers in (("unattempted", [None, ..., "", "  "]), ("right", right), ("wrong", [*wrong, "many"])):
        for answer in answers:
            verdict = problem.check(answer)
            assert verdict.state == state, (answer, verdict)
    assert "a number" in problem.check("many").message
