"""An exercise as a pure value: it judges an answer and knows its hints and its solution. Nothing
here is displayed.

The solution's text is made from the same `right_answer` that the tests check, so the two cannot
drift apart. The answer is a number, the learner's own record of runs, or a function of about ten
lines that hidden inputs judge:

    q4 = Build(match_units, ((3, 4), (5, 2)), layers, {"nearest": …, "inverse": …})

Wrong solutions that people often write (`slips`) are functions too: an answer that returns what one
of them returns gets the text that the exercise's TOML table `slips` has under its name. So feedback
names the mistake, and any function that returns the right values is right, however it is written. A
learner's error becomes a sentence. A mistake in an axis stops most functions. To name it, give
hidden inputs in which these axes are equally long: there it returns numbers, and a slip that does
the same, and stops where the answer stops, is the one.
"""

import copy
import inspect
import math
import numbers
import re
import textwrap
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from ...errors import parsed


@dataclass(frozen=True)
class Verdict:
    """`state` is "unattempted", "wrong" or "right"; `message` is a sentence or two for the
    learner.
    """

    state: str
    message: str


@dataclass(frozen=True)
class Problem:
    """One exercise. Subclasses say how an answer is judged.

    right_answer: an answer that `check` calls right;   explanation: may hold `{answer}`
    """

    title: str
    question: str
    right_answer: Any
    hints: tuple[str, ...]
    explanation: str

    def check(self, answer: Any) -> Verdict:
        """Judge an answer. None, `...` (the stub in a notebook) and an empty text are
        "unattempted".

        It never raises, so that no wrong answer becomes a traceback.
        """
        is_empty = isinstance(answer, str) and not answer.strip()
        if answer is None or answer is ... or is_empty:
            return Verdict("unattempted", "No answer yet.")
        return self.judge(answer)

    def judge(self, answer: Any) -> Verdict:
        """Judge an answer that is there."""
        raise NotImplementedError

    def hint(self, number: int = 1) -> str:
        """Hint `number`, counted from 1; beyond the last one, the last one."""
        number = min(max(int(number), 1), len(self.hints))
        return f"Hint {number} of {len(self.hints)}: {self.hints[number - 1]}"

    def solution(self) -> str:
        """The answer and why."""
        return self.explanation.format(answer=self.right_answer)


@dataclass(frozen=True)
class NumberProblem(Problem):
    """The answer is a number or a text that writes one (see `read_numbers`, also for `units`).

    It is right within `tolerance`; `slips` pairs known wrong numbers with the mistake.
    """

    tolerance: float = 0.01
    slips: tuple[tuple[float, str], ...] = ()
    units: tuple[str, ...] = ()

    def judge(self, answer: Any) -> Verdict:
        values = read_numbers(answer, self.units)
        if not values:
            kind = f"a number of {self.units[0]}" if self.units else "a number"
            return Verdict("wrong", f"The answer is {kind}, not {answer!r}.")
        if self._find_value(values, self.right_answer) is not None:
            return Verdict("right", f"Yes: {self.right_answer:g}.")
        for number, mistake in self.slips:
            value = self._find_value(values, number)
            if value is not None:
                return Verdict("wrong", f"{value:g} is not it: {mistake}")
        nearest = min(values, key=self._distance)
        direction = "small" if nearest < self.right_answer else "large"
        return Verdict("wrong", f"{nearest:g} is too {direction}.")

    def _find_value(self, values: Iterable[float], number: float) -> float | None:
        """The first of the values that is `number`, within the tolerance."""
        for value in values:
            if abs(value - number) <= self.tolerance:
                return value
        return None

    def _distance(self, value: float) -> tuple[float, float]:
        """How far a value is from the answer: how many times as large or small, then the
        difference.
        """
        difference = abs(value - self.right_answer)
        if not self.right_answer or value / self.right_answer <= 0:
            return math.inf, difference
        return abs(math.log(value / self.right_answer)), difference


@dataclass(frozen=True)
class RecordProblem(Problem):
    """The answer is the learner's own record: outcomes of runs, or anything that has them as
    `.outcomes`.

    claim:        judges the list of outcomes
    right_answer: a function that makes a record which supports the claim
    """

    claim: Callable[[Sequence[Any]], Verdict] = None  # type: ignore[assignment]

    def solution(self) -> str:
        """The explanation with what the claim says of the solution's own runs, which it carries
        out.
        """
        outcomes = list(self.right_answer())
        return self.explanation.format(verdict=self.claim(outcomes).message)

    def judge(self, answer: Any) -> Verdict:
        outcomes = getattr(answer, "outcomes", answer)
        if not isinstance(outcomes, Iterable) or isinstance(outcomes, str):
            return Verdict(
                "wrong", "Give the panel whose runs count, or the outcomes of `fl.compare`."
            )
        outcomes = list(outcomes)
        if not all(is_outcome(outcome) for outcome in outcomes):
            return Verdict(
                "wrong",
                "Only outcomes of runs count here: give the panel, or what `fl.compare` returned.",
            )
        if not outcomes:
            return Verdict("unattempted", "No runs in the record yet: press Run first.")
        return self.claim(outcomes)


def is_outcome(value: Any) -> bool:
    """Whether a value looks like the outcome of a run."""
    return hasattr(value, "accuracy") and hasattr(value, "method")


# ---------------------------------------------------------------------------- functions to complete
Function = Callable[..., Any]
RIGHT_SHAPE = "has the right shape"


@dataclass(frozen=True)
class Build:
    """What judges a build exercise; its words stand in the lesson's TOML file.

    right:    a function that solves the exercise; the learner's has the same name
    sizes:    of the hidden inputs, one after the other
    draw:     makes the arguments of a call from a random stream and one of the sizes; None: this
              one tells too little
    slips:    functions that make a common mistake each, by name; of several that fit, the first is
        named
    """

    right: Function
    sizes: Iterable[tuple]
    draw: Callable[..., tuple | None]
    slips: Mapping[str, Function] = field(default_factory=dict)

    def inputs(self) -> list[tuple]:
        """The hidden inputs: a tuple of arguments for each call, each from a stream of its own."""
        inputs = []
        for seed, size in enumerate(self.sizes):
            arguments = self.draw(np.random.default_rng(seed), *size)
            if arguments is not None:
                inputs.append(arguments)
        return inputs


@dataclass(frozen=True)
class BuildProblem(Problem):
    """The answer is a function; `build` judges it, `slips` has a text for each of its mistakes."""

    build: Build = None  # type: ignore[assignment]
    slips: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the learner's function in the notebook."""
        return self.right_answer.__name__

    def solution(self) -> str:
        """The explanation, and the right function as it is written."""
        source = textwrap.dedent(inspect.getsource(self.right_answer)).rstrip()
        # A page keeps no-break spaces, and with them the indents.
        return f"{self.explanation}\n{source.replace('    ', 4 * NO_BREAK_SPACE)}"

    def judge(self, answer: Any) -> Verdict:
        if not callable(answer):
            kind = type(answer).__name__
            return Verdict("wrong", f"The answer is the function {self.name}, not {kind}.")
        possible_slips = dict(self.build.slips)  # those that did as the answer does so far
        differences = []
        error_text = ""
        for arguments in self.build.inputs():
            returned = call_safely(answer, arguments)
            if is_stub(returned):
                return Verdict("unattempted", f"{self.name} returns nothing yet.")
            possible_slips = {
                name: slip
                for name, slip in possible_slips.items()
                if is_alike(returned, call_safely(slip, arguments))
            }
            if isinstance(returned, Exception):
                error_text = error_text or self._describe_error(returned)
                continue
            right = self.right_answer(*copy.deepcopy(arguments))
            if not is_close(returned, right):
                differences.append(describe_difference(self.name, returned, right))
        if not differences and not error_text:
            return Verdict("right", "Yes: right for all hidden inputs.")
        if differences and possible_slips:
            first_slip = next(iter(possible_slips))
            return Verdict("wrong", self.slips[first_slip])
        return Verdict("wrong", error_text or choose_difference(differences))

    def _describe_error(self, error: Exception) -> str:
        text = " ".join(str(error).split())
        return f"{self.name} stopped with {type(error).__name__}: {text}"


NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"


def call_safely(function: Function, arguments: tuple) -> Any:
    """What the function returns, or the error that stops it. It gets copies of its arguments."""
    try:
        return function(*copy.deepcopy(arguments))
    except Exception as error:
        return error


def is_stub(value: Any) -> bool:
    """Whether `value` is what a stub is or returns: nothing, dots, or a dict with one of them in
    it.
    """
    if isinstance(value, Mapping):
        return any(is_stub(item) for item in value.values())
    return value is None or value is ...


def is_alike(returned: Any, other: Any) -> bool:
    """Whether both are errors, or the same numbers. A wrong axis is an error only where two lengths
    differ.
    """
    if isinstance(returned, Exception) or isinstance(other, Exception):
        return isinstance(returned, Exception) and isinstance(other, Exception)
    return is_close(returned, other)


def is_close(returned: Any, right: Any) -> bool:
    """Whether two values are arrays of the same shape and, to 1e-5, the same numbers, or dicts of
    such arrays.
    """
    if isinstance(right, Mapping):
        if not isinstance(returned, Mapping) or returned.keys() != right.keys():
            return False
        return all(is_close(returned[key], right[key]) for key in right)
    returned_numbers = to_array(returned)
    right_numbers = to_array(right)
    if returned_numbers is None or right_numbers is None:
        return False
    if returned_numbers.shape != right_numbers.shape:
        return False
    return np.allclose(returned_numbers, right_numbers, rtol=1e-5, atol=1e-6)


def to_array(value: Any) -> np.ndarray | None:
    """Numbers, lists, arrays and tensors as an array; None for what is none of them."""
    try:
        if hasattr(value, "detach"):  # a tensor
            value = value.detach().cpu()
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError, RuntimeError):
        return None


def choose_difference(differences: Sequence[str]) -> str:
    """The difference that tells most. Where two axes are equally long by chance, a wrong shape
    looks right: then another input tells more.
    """
    for text in differences:
        if RIGHT_SHAPE not in text:
            return text
    return differences[0]


def describe_difference(name: str, returned: Any, right: Any) -> str:
    """What is wrong with a value, where no known mistake explains it."""
    if isinstance(right, Mapping):
        if not isinstance(returned, Mapping) or returned.keys() != right.keys():
            return describe_wrong_keys(name, returned, right)
        for key in right:
            if not is_close(returned[key], right[key]):
                return describe_difference(
                    f"{name}, in the entry {key!r},", returned[key], right[key]
                )
    returned_numbers = to_array(returned)
    right_numbers = to_array(right)
    if returned_numbers is None:
        return f"{name} returns {type(returned).__name__}; return numbers."
    if right_numbers is not None and returned_numbers.shape != right_numbers.shape:
        return (
            f"{name} returns the shape {returned_numbers.shape}, "
            f"but {right_numbers.shape} is wanted."
        )
    return f"{name} {RIGHT_SHAPE}, but for a hidden input other numbers are wanted."


def describe_wrong_keys(name: str, returned: Any, right: Mapping) -> str:
    """What is wrong with a value that should be a dict with the keys of `right`."""
    keys = ", ".join(repr(key) for key in right)
    text = f"{name} does not return a dict with the keys {keys}."
    if not isinstance(returned, Mapping):
        return text
    missing = [repr(key) for key in right if key not in returned]
    if 0 < len(missing) < len(right):
        text += f" It lacks {', '.join(missing)}: is return inside a loop?"
    return text


# --------------------------------------------------------------------------------- numbers as typed
# What a learner typed, as numbers: decimal point or comma, thousands, fractions, powers, per cent,
# a unit.
LARGEST = 1e30  # infinite and undefined numbers are no answers
MOST_BASE = 1e6  # of a power
MOST_EXPONENT = 50
QUOTES = " \t\r\n\"'“”„‘’«»`"  # around a number, with white space
PER_CENT = ("%", "percent", "per cent")
BYTES = {"kb": 1000, "kib": 1024, "mb": 1e6, "mib": 1024**2}  # where bytes are asked for
VULGAR_FRACTION = re.compile(r"(?<=\d)[¼-¾⅐-⅞]")  # behind a whole number
WORDS = r"(?:(?:more than|at least|above|over|about|exactly|slope) +)?"
# Before a number: it is, λ =, T ≥, >, ×, or nothing.
PREFIX = r"(?:\D*\bis )?(?:[^\W\d_]+ *(?=[=>≥]))?[=≈~>≥× ]*" + WORDS
NUMBER_AND_UNIT = re.compile(PREFIX + r"(\S.*?\d[.,]?|\d[.,]?) *([^\d.,/ ][^\d/]*)?")
# A whole number or none, numerator, denominator.
FRACTION = re.compile(r"(?:(-?\d+) +)?(.+?) */ *(.+)")
POWER = re.compile(r"(.+?) *(?:\^|\*\*) *(.+)")  # 2^1.5
# 16,040 or 1 234 567.8: all groups, the mark between them, and the decimals.
THOUSANDS = re.compile(r"([+-]?[1-9]\d{0,2}([ ,.'_])\d{3}(?:\2\d{3})*)(?:[.,](\d+))?")


def read_numbers(answer: Any, units: Collection[str] = ()) -> list[float]:
    """All numbers that `answer` may mean; [] if it is none.

    units: what may stand behind the number, in the singular or plural; with "%" the answer counts
    in per cent, and a number without a unit may be a share. Else "%" divides by 100. With "bytes"
    kB, KiB, MB and MiB are understood.

    >>> read_numbers("9/4"), read_numbers("2½"), read_numbers("87 %")
    ([2.25], [2.5], [0.87])
    >>> read_numbers("6.25x", ["x"]), read_numbers("6.25x")
    ([6.25], [])
    >>> sorted(read_numbers("16,040")), read_numbers(0.25, ["%"])
    ([16.04, 16040.0], [0.25, 25.0])
    >>> read_numbers("more than 1.25"), read_numbers("5050 + 1000"), read_numbers("two")
    ([1.25], [6050.0], [])
    """
    values, unit = split_unit(answer)
    values = [float(value) for value in values if is_finite_number(value)]
    if "%" in units and unit is None:
        return values + [100 * value for value in values]
    if "%" not in units and unit in PER_CENT:
        return [value / 100 for value in values]
    if "bytes" in units and unit is not None and unit.lower() in BYTES:
        return [value * BYTES[unit.lower()] for value in values]
    if unit is None or is_known_unit(unit, units):
        return values
    return []


def split_unit(answer: Any) -> tuple[list[Any], str | None]:
    """The numbers that an answer may mean, and its unit if it has one."""
    if not isinstance(answer, str):
        is_scalar_array = getattr(answer, "shape", None) == ()
        return [answer.item() if is_scalar_array else answer], None
    text = VULGAR_FRACTION.sub(lambda fraction: f" {fraction[0]}", answer)  # 2½ is 2 ½
    text = unicodedata.normalize("NFKC", text)
    text = text.replace("\N{FRACTION SLASH}", "/").replace("−", "-")
    parts = NUMBER_AND_UNIT.fullmatch(text.strip(QUOTES).rstrip(".! "))
    if parts is None:
        return [], None
    return list(read_sum(parts[1])), parts[2]


def is_finite_number(value: Any) -> bool:
    """Whether a value is a number that can be an answer."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return is_number and abs(value) < LARGEST


def is_known_unit(unit: str, units: Collection[str]) -> bool:
    """Whether `unit` is one of `units`, in the singular or plural."""
    known = {name.removesuffix("s") for name in units}
    if "%" in units:
        known.update(name.removesuffix("s") for name in PER_CENT)
    return unit.removesuffix("s") in known or unit.lower().removesuffix("s") in known


def read_sum(text: str) -> list[float]:
    """All values of a number, or of a sum of numbers."""
    terms = re.split(r"(?<=[\d.]) *\+ *", text)
    if len(terms) == 1:
        return read_fraction(text)
    values_of_terms = [read_decimal(term) for term in terms]
    return [sum(values) for values in product(*values_of_terms)]


def read_fraction(text: str) -> list[float]:
    """All values of a number, a fraction or a mixed number, such as 2 1/4."""
    parts = FRACTION.fullmatch(text)
    if parts is None:
        return read_decimal(text)
    whole_text, numerator_text, denominator_text = parts.groups()
    whole = float(whole_text or 0)
    sign = -1 if whole_text and whole_text.startswith("-") else 1
    values = []
    for numerator in read_decimal(numerator_text):
        for denominator in read_decimal(denominator_text):
            if denominator:
                values.append(whole + sign * numerator / denominator)
    return values


def read_decimal(text: str) -> list[float]:
    """All values of a number or power without a fraction bar: a comma or a point may divide
    decimals or thousands.
    """
    power = POWER.fullmatch(text)
    if power is not None:
        return read_power(power[1], power[2])
    spellings = [text.replace(",", ".")]
    grouped = THOUSANDS.fullmatch(text)
    if grouped is not None:
        digits, group_mark, decimals = grouped.groups()
        spelling = f"{digits.replace(group_mark, '')}.{decimals or 0}"
        if spelling not in spellings:
            spellings.append(spelling)
    values = [parsed(spelling) for spelling in spellings]
    return [float(value) for value in values if is_finite_number(value)]


def read_power(base_text: str, exponent_text: str) -> list[float]:
    """All values of a power of positive numbers."""
    values = []
    for base in read_decimal(base_text):
        for exponent in read_decimal(exponent_text):
            if 0 < base < MOST_BASE and abs(exponent) < MOST_EXPONENT:
                values.append(base**exponent)
    return values
