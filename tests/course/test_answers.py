"""Numbers as people type them are read: one reading, two, a range, with a unit, or none."""

import pytest

from fedlab_nb.course.kit.answers import parse_possible_numbers, parse_typed_answer

ONE_READING = {
    "2,8": 2.8, " .5 ": 0.5, "−1": -1, "≈ 0.19": 0.19, "> 1.25": 1.25, "λ = 1.25": 1.25, "T ≥ 8": 8, "×4": 4,
    "8**0,5": 8**0.5, "10^-3": 0.001, "1e-3": 0.001, "9 / 4": 2.25, "9⁄4": 2.25, "2½": 2.5, "-2 1/4": -2.25,
    "−½": -0.5,
    "16 040": 16040, "16\u202f040": 16040, "16'040": 16040, "1,234,567.5": 1234567.5, "1.234.567,5": 1234567.5,
    "87 %": 0.87, "87 per cent": 0.87, "½ %": 0.005, "“2.5.”": 2.5, "It is 5.": 5,
    "9·6": 54, "9 × 6": 54, "6 x 9": 54, "9 ⋅ 6": 54, "24*6": 144, "(6 + 5) / (4 + 1)": 2.2, "24/2/3": 4,
    "100·101/2 + 100·10": 6050, "(4 · 3 · 2 · 1) · (3 · 2 · 1)": 144, "2(3+4)": 14, "100 - 46": 54, "-(2 - 3)": 1,
    "30² / (30² + 10²)": 0.9, "10⁻³": 0.001, "½ · 4 + ½ · 1": 2.5, "(-2)^2": 4, "-2^2": -4,
    "√(0.16)": 0.4, "sqrt(16) / 2": 2, "ln(1)": 0, "exp(0)": 1, "1/(1 + e^-1)": 0.7310586, "e⁰": 1,
    "±2.53": 2.53, "+/-2.53": 2.53, "y = 11/5": 2.2, "11/5 = 2.2": 2.2, "16/17 = 0.94": 0.94, "1.25 < λ": 1.25,
    "I think 54": 54, "The answer is about 54.": 54, "at least 6": 6, "6 at least": 6, "at most 3": 3, "3 at most": 3,
    "answer: 54": 54,
    "six": 6, "Fifty-four": 54, "a half": 0.5, "half": 0.5, "one half": 0.5, "two and a half": 2.5, "two fifths": 0.4,
    "three quarters": 0.75, "sixteen seventeenths": 16 / 17, "nine times six": 54, "four factorial / 2": 12,
    ">= 54": 54, "λ >= 1.25": 1.25, "It must be 54": 54, "54 (six times nine)": 54, "3 (3.5 rounded down)": 3,
    "54 (9 · 6)": 54, "2 (3 + 4)": 14, "floor(184000/52560)": 3, "⌊7/2⌋": 3, "int(3.5)": 3, "log(1)": 0,
    "e/(1 + e)": 0.7310586, "100 · e": 271.8281828, "6.05 thousand": 6050, "x4": 4, "times 4": 4, "by 4": 4,
    "a factor of 4": 4, "factor 4": 4,
    "one hundred and forty-four": 144, "six thousand and fifty": 6050, "zero point nine": 0.9, "minus two": -2,
}  # fmt: skip


@pytest.mark.parametrize(("text", "value"), ONE_READING.items())
def test_a_text_with_one_reading(text, value):
    assert parse_possible_numbers(text) == [pytest.approx(value)]


def test_a_comma_or_point_before_three_digits_has_two_readings():
    assert sorted(parse_possible_numbers("16,040")) == [16.04, 16040]
    assert sorted(parse_possible_numbers("16.040")) == [16.04, 16040]
    assert sorted(parse_possible_numbers("-2,250")) == [-2250, -2.25]
    assert parse_possible_numbers("0,193") == [0.193]


@pytest.mark.parametrize(
    "answer",
    [
        None, ..., True, [2], [], "", " ", "half of it", "2 or 3", "two 2", "2..5", "1/0", "1/(2 - 2)", "nan",
        "inf", "1e999",
        "9" * 400, 10**400, "1e29/1e-29", "12,34,5", "16 04", float("nan"), float("inf"), "%", "-", "2 1/", "/2",
        "400 bits", "x = y", "λ 8", "is not 8", "< 8", "2^", "^2", "9^9^9^9", "9^99",
        "21!/1", "2.5!/1", "(-3)!/1", "9!!!/1", "√(-1)", "ln(0)", "exp(99)", "(2", "2)", "()", "9·", "·9",
        "5·6 = 54", "54 = 55",
        "(" * 30 + "2" + ")" * 30, "1+" * 120 + "1", "2; import os", "__import__('os')", "[2 for x in y]",
        "0b1", "1_0",
        "not 2", "It isn't 2", "I don't think it is 2", "never 2", "two three", "hundred hundred",
        "six or seven", "2 of 3", "the 2nd", "<= 8", "floor", "log(-1)", "e8", "must not be 2",
    ],
)  # fmt: skip
def test_a_text_without_a_number(answer):
    assert parse_possible_numbers(answer) == []


@pytest.mark.parametrize(
    ("text", "values"), {"It is 5!": {5, 120}, "4!*3!": {144, 72}, "7!": {7, 5040}}.items()
)
def test_a_last_mark_is_a_factorial_or_closes_the_sentence(text, values):
    assert set(parse_possible_numbers(text)) == values


@pytest.mark.parametrize(
    "text",
    ["2.5–2.55", "2.5 to 2.55", "between 2.5 and 2.55", "from 2.5 to 2.55", "2.525 ± 0.025", "2.5-2.55", "2.5…2.55"],
)  # fmt: skip
def test_a_text_with_a_range(text):
    assert pytest.approx((2.5, 2.55)) in parse_typed_answer(text).ranges


def test_two_sides_of_an_equation_have_to_be_equal():
    assert "5·6 does not equal 54" in parse_typed_answer("5·6 = 54").complaint


def test_units_are_those_of_the_question():
    for text in ("6.25x", "6.25 X", "6.25 ×", "6,25 times"):
        assert parse_possible_numbers(text, ("times", "x", "×")) == [6.25]
        assert parse_possible_numbers(text) == []
    for text in ("1 round", "1 rounds", "1 Rounds"):
        assert parse_possible_numbers(text, ("rounds",)) == [1]
    in_bytes = {"400 b": [], "400 B": [400], "56.3 kB": [56300], "2 KiB": [2048], "1,5 MB": [1.5e6]}
    for text, readings in in_bytes.items():
        assert parse_possible_numbers(text, ("bytes", "B")) == readings
    assert parse_possible_numbers("2 kB") == []
    assert parse_typed_answer("24.2 kB").bare == (24200,)
    assert parse_possible_numbers("3 whole rounds", ("rounds",)) == [3]
    assert parse_possible_numbers("fourfold", ("fold",)) == [4]
    assert parse_possible_numbers("four times", ("times",)) == [4]


def test_where_per_cent_are_asked_for_a_number_may_be_a_share():
    for text in ("23 %", "23%", "23 per cent", "23 percent"):
        assert parse_possible_numbers(text, ("per cent", "%")) == [23]
    assert parse_possible_numbers("23", ("%",)) == [23, 2300]
    assert parse_possible_numbers(0.25, ("%",)) == [0.25, 25]
