"""Every number exercise of every lesson takes 200 spellings of its answer, and none of 200 that are wrong.

The spellings are made here from exact fractions: the parser is checked against arithmetic that it takes no part in.
"""

from fractions import Fraction
from math import factorial

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from lessons import list_problems

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
    "I'd say ",
    "it’s ",
    "c. ",
]
CLOSINGS = [
    *("", "", "", ".", " ", "\n", " at least", " exactly"),
    *("?", " ?", ":", " I think", ", right?", " or so", " approx."),
]
CHOICES = [
    "C({}, {})",
    "C({},{})",
    "({} choose {})",
    "binom({}, {})",
    "math.comb({}, {})",
    "{}C{}",
    r"\binom{{{}}}{{{}}}",
]
QUOTES = [("", ""), ("", ""), ("“", "”"), ('"', '"'), (" ", " ")]


def spell_in_words(value):
    """A whole number below a million in words; None where TENS lacks one."""
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
def ranges(draw, problem):
    """A range that is narrower than the tolerance."""
    value = Fraction(str(problem.right_answer))
    step = Fraction(str(problem.tolerance)) * Fraction(draw(st.integers(1, 9)), 10)
    low, high = float(value - step), float(value + step)
    forms = [
        f"{low:.4f}–{high:.4f}",
        f"{low:.4f} to {high:.4f}",
        f"between {low:.4f} and {high:.4f}",
    ]
    return draw(st.sampled_from(forms)) + draw(
        st.sampled_from(["", *(f" {unit}" for unit in problem.units)])
    )


@st.composite
def whole_quotients(draw, value):
    """A division with // whose whole quotient is `value`."""
    divisor = draw(st.integers(2, 99))
    dividend = int(value) * divisor + draw(st.integers(0, divisor - 1))
    return f"{dividend}{draw(st.sampled_from(['//', ' // ']))}{divisor}"


@st.composite
def choices(draw, value):
    """A binomial coefficient, and what is missing to `value`."""
    number = draw(st.integers(1, 40))
    chosen = draw(st.integers(0, number))
    form = draw(st.sampled_from(CHOICES))
    rest = value - factorial(number) // (factorial(chosen) * factorial(number - chosen))
    return form.format(number, chosen) + (f" + {rest}" if rest >= 0 else f" - {-rest}")


def right_spellings(problem):
    """Spellings of the right answer; each kind of them is as likely as the others."""
    value = Fraction(str(problem.right_answer))
    decimal = f"{float(value):g}"
    with_unit = [
        expressions(value),
        st.sampled_from(".,").map(lambda mark: decimal.replace(".", mark)),
    ]
    without_unit = []
    if value.denominator == 1:
        with_unit += [whole_quotients(value), choices(value)]
        words = spell_in_words(int(value))
        if words is not None:
            with_unit.append(st.just(words))
    if value >= 1000:
        with_unit.append(
            st.sampled_from(", '.").map(lambda mark: f"{int(value):,}".replace(",", mark))
        )
    if "times" in problem.units:
        signs = st.sampled_from(["x", "X", " x", " times", "×", "-fold"])
        without_unit.append(signs.map(lambda sign: decimal + sign))
    if "%" not in problem.units:
        without_unit.append(st.just(f"{float(100 * value):g} %"))
    kinds = [ranges(problem)]
    for texts in with_unit:
        kinds.append(texts.flatmap(lambda text: dressed(text, problem.units)))
    for texts in without_unit:
        kinds.append(texts.flatmap(dressed))
    return st.one_of(kinds)


@st.composite
def wrong_spellings(draw, problem):
    """Another number, the right one in a text that is none, a wide range, or an equation that does not hold."""
    value = Fraction(str(problem.right_answer))
    tolerance = Fraction(str(problem.tolerance))
    text = write_number(value)
    kinds = ["other", "other", "other", "junk", "range", "equation"]
    kind = draw(st.sampled_from(kinds))
    if kind == "junk":
        unit = draw(st.sampled_from(["furlongs", "apples", "bits", "or so, or less", "of 77"]))
        return draw(
            st.sampled_from(
                [
                    f"{text} {unit}", f"not {text}", f"It is not {text}", f"{text} or {text}", f"{text}/0",
                    f"{text}; 1", f"({text}", f"{text})", f"{text} +", f"[{text} for x in y]",
                    f"{text}^99",
                    f"never {text}", f"{text}//0", f"C({text})", f"C(9, 2, {text})", f"np.array({text})",
                    f"{text} {text}", f"eval('{text}')", f"{text}¿", "nan", "?", "heaps", "many",
                ]
            )
        )  # fmt: skip
    if kind == "range":
        step = tolerance * draw(st.integers(2, 50))
        return f"{float(value - step):.4f} to {float(value + step):.4f}"
    if kind == "equation":
        return f"{write_number(value + 1 + abs(value))} = {text}"
    shift = draw(st.sampled_from([2, 3, 10, 1000])) * tolerance
    others = [value + shift, value - shift, 2 * value, value / 3, 10 * value, value + 7]
    other = draw(st.sampled_from(others))
    for reading in (other, 100 * other, other / 100):  # a share may be given in per cent
        assume(abs(reading - value) > tolerance)
    return draw(dressed(draw(expressions(other)), problem.units))


@pytest.mark.slow
@pytest.mark.parametrize(("lesson", "problem"), list_problems(NumberProblem))
def test_what_a_person_would_call_right_is_right(lesson, problem):
    @MANY
    @given(right_spellings(problem))
    def check(text):
        verdict = problem.check(text)
        assert verdict.state == "right", (text, verdict.message)

    check()


@pytest.mark.slow
@pytest.mark.parametrize(("lesson", "problem"), list_problems(NumberProblem))
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
        ("heterogeneity q1", "54 %", "wrong", "54 % is 0.54. The answer is a number, not a perc"),
        ("fedet q1", "94 %", "right", "0.94"),
        ("fedet q1", "0.94 %", "wrong", "0.94 % is 0.0094"),
        ("distilled q1", "6 percent", "wrong", "a number of images, not a percentage"),
        ("fedlpa q1", "1+1 · (2)", "right", "3"),
        ("afl q1", "100·101/2 + 100·10", "right", "6050"),
        ("afl q1", "24,200 bytes", "wrong", "that is in bytes"),
        ("afl q1", "24200 B", "wrong", "that is in bytes"),
        ("afl q1", "24.2 kB", "wrong", "that is in bytes"),
        ("afl q2", "(6 + 5) / (4 + 1)", "right", "2.2"),
        ("afl q2", "2.2x", "right", "2.2"),
        ("matching q1", "4!*3!", "right", "144"),
        ("matching q1", "24*6", "right", "144"),
        ("matching q1", "144 ways", "right", "144"),
        ("distilled q1", "6 of them", "right", "6"),
        ("capstone q1", "floor(184,000 / 52,560)", "right", "3"),
        ("averaging q1", "0.8*log(1.6) + 0.2*log(0.4)", "right", "0.193"),
        ("averaging q2", "e / (1 + e)", "right", "73.1"),
        ("all_together q1", "a factor of 4", "right", "4"),
        ("heterogeneity q1", "54 (six times nine)", "right", "54"),
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
        ("afl q1", "C(101,2)+1000", "right", "6050"),
        ("afl q1", "101 choose 2 + 10*100", "right", "6050"),
        ("afl q1", "math.comb(101, 2) + 1000", "right", "6050"),
        ("capstone q1", "3x", "right", "3"),
        ("capstone q1", "184000 // 52560", "right", "3"),
        ("capstone q1", "184_000 // (2*6570*4)", "right", "3"),
        ("averaging q2", "sigmoid(1)", "right", "73.1"),
        ("averaging q2", "σ(1)", "right", "73.1"),
        ("averaging q1", "0.8*np.log(1.6) + 0.2*np.log(0.4)", "right", "0.193"),
        ("fedlpa q1", "mean 3", "right", "3"),
        ("fedlpa q1", "N(3, 9)", "right", "3"),
        ("fedlpa q1", "N(3, 1/9)", "right", "3"),
        ("fedlpa q1", "N(27/9, 6 + 3)", "right", "3"),
        ("fedlpa q1", "mean 3, precision 9", "right", "3"),
        ("fedlpa q1", "N(3, 4)", "wrong", "Give the mean alone"),
        ("fedlpa q1", "N(3.5, 9)", "wrong", "that is the plain average"),
        ("heterogeneity q1", "N(54, 1)", "wrong", "one number, not a Gaussian"),
        ("all_together q1", "quadruples", "right", "4"),
        ("all_together q1", "It quadruples.", "right", "4"),
        ("all_together q1", "doubles", "wrong", "that is the upload"),
        ("all_together q1", "four times as many", "right", "4"),
        ("matching q1", "factorial(4) * math.factorial(3)", "right", "144"),
        ("fens q1", r"$\frac{5}{4}$", "right", "1.25"),
        ("your_own q1", "30² / (30² + 10²)", "right", "0.9"),
        ("distilled q1", np.array([6]), "right", "6"),
        ("distilled q1", [6, 6], "wrong", "not [6, 6]"),
        ("distilled q1", [], "wrong", "not []"),
        ("distilled q1", "**6**", "right", "6"),
        ("distilled q1", "6 (images)", "right", "6"),
        ("afl q2", "apples", "wrong", "The answer is a number, not"),
        ("all_together q1", "lots", "wrong", "The answer is a number, not"),
        ("averaging q2", "most", "wrong", "The answer is a percentage, not"),
    ],
)
def test_answers_that_people_typed(exercise, answer, state, words):
    folder, name = exercise.split()
    for param in list_problems(NumberProblem):
        lesson, problem = param.values
        if COURSE[lesson] == folder and param.id.endswith(name):
            verdict = problem.check(answer)
            assert verdict.state == state, verdict
            assert words in verdict.message, verdict
            return
    pytest.fail(f"no exercise {exercise}")
