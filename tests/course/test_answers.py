"""Numbers as people type them, and the lessons' questions answered in every sensible form."""

import pytest

from fedlab_nb.course.kit.problem import read_numbers

ONE_READING = {
    "2,8": 2.8, " .5 ": 0.5, "−1": -1, "≈ 0.19": 0.19, "> 1.25": 1.25, "λ = 1.25": 1.25, "T ≥ 8": 8, "×4": 4,
    "8**0,5": 8**0.5, "10^-3": 0.001, "1e-3": 0.001, "9 / 4": 2.25, "9⁄4": 2.25, "2½": 2.5, "-2 1/4": -2.25, "−½": -0.5,
    "16 040": 16040, "16\u202f040": 16040, "16'040": 16040, "1,234,567.5": 1234567.5, "1.234.567,5": 1234567.5,
    "87 %": 0.87, "87 per cent": 0.87, "½ %": 0.005, "“2.5.”": 2.5, "It is 5!": 5,
}  # fmt: skip


@pytest.mark.parametrize(("text", "value"), ONE_READING.items())
def test_one_reading(text, value):
    assert read_numbers(text) == [pytest.approx(value)]


def test_a_comma_or_point_before_three_digits_has_two_readings():
    assert sorted(read_numbers("16,040")) == sorted(read_numbers("16.040")) == [16.04, 16040]
    assert sorted(read_numbers("-2,250")) == [-2250, -2.25]
    assert read_numbers("0,193") == [0.193]


@pytest.mark.parametrize(
    "answer",
    [
        None, ..., True, [2], "", " ", "half", "2 or 3", "two 2", "2..5", "1/0", "1/2/3", "nan", "inf", "1e999",
        "9" * 400, 10**400, "1e29/1e-29", "12,34,5", "16 04", float("nan"), float("inf"), "%", "-", "2 1/", "/2",
        "400 bits", "x = y", "λ 8", "is not 8", "< 8", "2^", "^2", "9^9^9^9", "9^99",
    ],
)  # fmt: skip
def test_no_number(answer):
    assert read_numbers(answer) == []


def test_units_are_those_of_the_question():
    for text in ("6.25x", "6.25 X", "6.25 ×", "6,25 times"):
        assert read_numbers(text, ("times", "x", "×")) == [6.25] and read_numbers(text) == []
    for text in ("1 round", "1 rounds", "1 Rounds"):
        assert read_numbers(text, ("rounds",)) == [1]
    assert read_numbers("400 b", ("bytes", "B")) == [] and read_numbers(
        "400 B", ("bytes", "B")
    ) == [400]
    assert [read_numbers(text, ("bytes", "B")) for text in ("56.3 kB", "2 KiB", "1,5 MB")] == [
        [56300],
        [2048],
        [1.5e6],
    ]
    assert read_numbers("2 kB") == []


def test_per_cent_asked():
    for text in ("23 %", "23%", "23 per cent", "23 percent"):
        assert read_numbers(text, ("per cent", "%")) == [23]
    assert read_numbers("23", ("%",)) == [23, 2300] and read_numbers(0.25, ("%",)) == [0.25, 25]
