"""Every number exercise of every lesson takes 200 spellings of its answer, and none of 200 that are wrong.

The spellings are made here from exact fractions: the parser is checked against arithmetic that it takes no part in.
"""

from fractions import Fraction
from math import factorial

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from lessons import problems

from fedlab_nb.course import COURSE
from fedlab_nb.course.kit.problem import NumberProblem

MANY = settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
SMALL_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
TENS = {20: "twenty", 30: "thirty", 40: "forty", 50: "fifty", 60: "sixty", 90: "ninety"}
INTRODUCTIONS = [
    "",
    "",
    "",
    "= ",
    "x = ",
    "≈ ",
    "It is ",
    "The answer is ",
    "I think ",
    "answer: ",
    "about ",
]
CLOSINGS = ["", "", "", ".", " ", "\n", " at least", " exactly"]
QUOTES = [("", ""), ("", ""), ("“", "”"), ('"', '"'), (" ", " ")]


def spell_in_words(value):
    """A whole number below a million in words."""
    if value <= 12:
        return SMALL_WORDS[value]
    for size, name in ((1000, "thousand"), (100, "hundred")):
        if value >= size:
            rest = f" and {spell_in_words(value % size)}" if value % size else ""
            return f"{spell_in_words(value // size)} {name}{rest}"
    tens = value // 10 * 10
    if tens not in TENS:
        return None
    return TENS[tens] + (f"-{SMALL_WORDS[value % 10]}" if value % 10 else "")


def write_number(value):
    """An exact decimal, or a fraction in brackets; never one that a point makes ambiguous."""
    for decimals in (0, 1, 2, 4):
        if (value * 10**decimals).denominator == 1:
            return f"{float(value):.{decimals}f}"
    return f"({value.numerator}/{value.denominator})"


@st.composite
def expressions(draw, target, depth=2):
    """A text whose value is exactly the fraction `target`."""
    kinds = ["number"]
    if depth:
        kinds += ["sum", "difference", "product", "quotient", "brackets", "power", "factorial"]
    kind = draw(st.sampled_from(kinds))
    space = draw(st.sampled_from(["", " "]))
    if kind == "number":
        return write_number(target) if target >= 0 else f"({write_number(target)})"
    part = Fraction(draw(st.integers(1, 99)))
    deeper = depth - 1
    if kind == "sum":
        return f"{write_number(part)}{space}+{space}{draw(expressions(target - part, deeper))}"
    if kind == "difference":
        sign = draw(st.sampled_from("-−"))
        other = draw(expressions(target + part, deeper))
        return f"{other}{space}{sign}{space}{write_number(part)}"
    if kind == "product":
        sign = draw(st.sampled_from("·×*⋅"))
        return (
            f"{write_number(part)}{space}{sign}{space}({draw(expressions(target / part, deeper))})"
        )
    if kind == "quotient":
        sign = draw(st.sampled_from("/÷"))
        return (
            f"({draw(expressions(target * part, deeper))}){space}{sign}{space}{write_number(part)}"
        )
    if kind == "brackets":
        return f"({draw(expressions(target, deeper))})"
    if kind == "power":
        base = draw(st.integers(2, 12))
        power = draw(st.sampled_from([f"{base}^2", f"{base}**2", f"{base}²"]))
        return f"{power} + {draw(expressions(target - base**2, deeper))}"
    number = draw(st.integers(0, 5))
    return f"{number}! + {draw(expressions(target - factorial(number), deeper))}"


@st.composite
def dressed(draw, text, units=()):
    """The text as part of what a person types."""
    before = draw(st.sampled_from(INTRODUCTIONS))
    unit = draw(st.sampled_from(["", *(f" {unit}" for unit in units)]))
    opening, closing = draw(st.sampled_from(QUOTES))
    return f"{opening}{before}{text}{unit}{draw(st.sampled_from(CLOSINGS))}{closing}"


@st.composite
def right_spellings(draw, problem):
    value = Fraction(str(problem.right_answer))
    tolerance = Fraction(str(problem.tolerance))
    kinds = ["expression", "expression", "decimal", "range"]
    if value.denominator == 1:
        kinds += ["words", "words"]
    if value >= 1000:
        kinds.append("thousands")
    if "%" not in problem.units:
        kinds.append("per cent")
    kind = draw(st.sampled_from(kinds))
    if kind == "expression":
        text = draw(expressions(value))
    elif kind == "decimal":
        text = f"{float(value):g}".replace(".", draw(st.sampled_from(".,")))
    elif kind == "range":
        step = tolerance * Fraction(draw(st.integers(1, 9)), 10)
        low, high = float(value - step), float(value + step)
        text = draw(
            st.sampled_from(
                [
                    f"{low:.4f}–{high:.4f}",
                    f"{low:.4f} to {high:.4f}",
                    f"between {low:.4f} and {high:.4f}",
                ]
            )
        )
        return text + draw(st.sampled_from(["", *(f" {unit}" for unit in problem.units)]))
    elif kind == "words":
        text = spell_in_words(int(value))
        assume(text is not None)
    elif kind == "thousands":
        text = f"{int(value):,}".replace(",", draw(st.sampled_from(", '.")))
    else:
        return draw(dressed(f"{float(100 * value):g} %"))
    return draw(dressed(text, problem.units))


@st.composite
def wrong_spellings(draw, problem):
    value = Fraction(str(problem.right_answer))
    tolerance = Fraction(str(problem.tolerance))
    text = write_number(value)
    kind = draw(st.sampled_from(["other", "other", "other", "junk", "range", "equation"]))
    if kind == "junk":
        unit = draw(st.sampled_from(["furlongs", "apples", "bits", "or so, or less", "of 77"]))
        return draw(
            st.sampled_from(
                [
                    f"{text} {unit}", f"not {text}", f"It is not {text}", f"{text} or {text}", f"{text}/0",
                    f"{text}; 1", f"({text}", f"{text})", f"{text} +", f"{text}//1", f"[{text} for x in y]",
                    f"{text}^99",
                    f"never {text}", f"{text} {text}", f"eval('{text}')", f"{text}¿", "nan", "?", "heaps", "many",
                ]
            )
        )  # fmt: skip
    if kind == "range":
        step = tolerance * draw(st.integers(2, 50))
        return f"{float(value - step):.4f} to {float(value + step):.4f}"
    if kind == "equation":
        return f"{write_number(value + 1 + abs(value))} = {text}"
    shift = draw(st.sampled_from([2, 3, 10, 1000])) * tolerance
    other = draw(
        st.sampled_from([value + shift, value - shift, 2 * value, value / 3, 10 * value, value + 7])
    )
    for reading in (other, 100 * other, other / 100):
        assume(abs(reading - value) > tolerance)
    return draw(dressed(draw(expressions(other)), problem.units))


@pytest.mark.parametrize(("lesson", "problem"), problems(NumberProblem))
def test_what_a_person_would_call_right_is_right(lesson, problem):
    @MANY
    @given(right_spellings(problem))
    def check(text):
        verdict = problem.check(text)
        assert verdict.state == "right", (text, verdict.message)

    check()


@pytest.mark.parametrize(("lesson", "problem"), problems(NumberProblem))
def test_what_a_person_would_call_wrong_is_wrong(lesson, problem):
    @MANY
    @given(wrong_spellings(problem))
    def check(text):
        verdict = problem.check(text)
        assert verdict.state == "wrong", (text, verdict.message)

    check()


@pytest.mark.parametrize(
    ("exercise", "answer", "state", "words"),
    [
        ("heterogeneity q1", "9·6", "right", "54"),
        ("afl q1", "100·101/2 + 100·10", "right", "6050"),
        ("afl q1", "24,200 bytes", "wrong", "that is in bytes"),
        ("afl q1", "24200 B", "wrong", "that is in bytes"),
        ("afl q1", "24.2 kB", "wrong", "that is in bytes"),
        ("afl q2", "(6 + 5) / (4 + 1)", "right", "2.2"),
        ("afl q2", "2.2x", "right", "2.2"),
        ("matching q1", "4!*3!", "right", "144"),
        ("matching q1", "24*6", "right", "144"),
        ("matching q1", "7!", "wrong", "A unit cannot move into another layer"),
        ("distilled q1", "six", "right", "6"),
        ("coboosting q1", "a half", "right", "0.5"),
        ("capstone q1", "3 whole rounds", "right", "3"),
        ("capstone q2", "±2.53", "right", "2.53"),
        ("capstone q2", "100 · √(0.8 · 0.2 / 250)", "right", "2.53"),
        ("capstone q2", "between 2.5 and 2.55 points", "right", "2.53"),
        ("averaging q1", "0.8 · ln(0.8/0.5) + 0.2 · ln(0.2/0.5)", "right", "0.193"),
        ("averaging q2", "1 / (1 + e^-1)", "right", "73.1"),
        ("fedet q1", "16/17", "right", "0.94"),
        ("fedlpa q2", "10·21 + 21·22/2 + 10·11/2", "right", "496"),
        ("all_together q1", "fourfold", "right", "4"),
        ("your_own q1", "30² / (30² + 10²)", "right", "0.9"),
    ],
)
def test_answers_that_people_typed(exercise, answer, state, words):
    folder, name = exercise.split()
    for param in problems(NumberProblem):
        lesson, problem = param.values
        if COURSE[lesson] == folder and param.id.endswith(name):
            verdict = problem.check(answer)
            assert (verdict.state, words in verdict.message) == (state, True), verdict
            return
    pytest.fail(f"no exercise {exercise}")
