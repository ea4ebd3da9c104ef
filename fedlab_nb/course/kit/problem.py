"""An exercise as a pure value: it judges an answer and knows its hints and its solution. Nothing here is displayed.

The solution's text is made from the same `right_answer` that the tests check, so the two cannot drift apart. The answer
is a number, the learner's own record of runs, or a function of about ten lines that hidden inputs judge:

    q4 = Build(match_units, ((3, 4), (5, 2)), layers, {"nearest": …, "inverse": …})

Wrong solutions that people often write (`slips`) are functions too: an answer that returns what one of them returns
gets the text that the exercise's TOML table `slips` has under its name. So feedback names the mistake, and any function
that returns the right values is right, however it is written. A learner's error becomes a sentence. A mistake in an
axis stops most functions. To name it, give hidden inputs in which these axes are equally long: there it returns
numbers, and a slip that does the same, and stops where the answer stops, is the one.
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
    """`state` is "unattempted", "wrong" or "right"; `message` is a sentence or two for the learner."""

    state: str
    message: str


@dataclass(frozen=True)
class Problem:
    """One exercise. `right_answer` is an answer that `check` calls right; `explanation` may hold `{answer}`.

    Subclasses say how an answer is judged. None, `...` (the stub in a notebook) and an empty text are "unattempted".
    """

    title: str
    question: str
    right_answer: Any
    hints: tuple[str, ...]
    explanation: str

    def check(self, answer: Any) -> Verdict:
        """Judge an answer; it never raises, so that no wrong answer becomes a traceback."""
        if answer is None or answer is ... or (isinstance(answer, str) and not answer.strip()):
            return Verdict("unattempted", "No answer yet.")
        return self.judge(answer)

    def judge(self, answer: Any) -> Verdict:
        raise NotImplementedError

    def hint(self, number: int = 1) -> str:
        """Hint `number`, counted from 1; beyond the last one, the last one."""
        index = min(max(int(number), 1), len(self.hints))
        return f"Hint {index} of {len(self.hints)}: {self.hints[index - 1]}"

    def solution(self) -> str:
        """The answer and why."""
        return self.explanation.format(answer=self.right_answer)


@dataclass(frozen=True)
class NumberProblem(Problem):
    """The answer is a number or a text that writes one (see `readings`, also for `units`).

    It is right within `tolerance`; `slips` pairs known wrong numbers with the mistake.
    """

    tolerance: float = 0.01
    slips: tuple[tuple[float, str], ...] = ()
    units: tuple[str, ...] = ()

    def judge(self, answer: Any) -> Verdict:
        values = readings(answer, self.units)
        if not values:
            of = f" of {self.units[0]}" if self.units else ""
            return Verdict("wrong", f"The answer is a number{of}, not {answer!r}.")
        if any(abs(value - self.right_answer) <= self.tolerance for value in values):
            return Verdict("right", f"Yes: {self.right_answer:g}.")
        for number, slip in self.slips:
            if meant := [value for value in values if abs(value - number) <= self.tolerance]:
                return Verdict("wrong", f"{meant[0]:g} is not it: {slip}")
        given = min(values, key=self.far)
        return Verdict(
            "wrong", f"{given:g} is too {'small' if given < self.right_answer else 'large'}."
        )

    def far(self, value: float) -> tuple[float, float]:
        """How far a reading is from the answer: how many times as large or small, then the difference."""
        times = value / self.right_answer if self.right_answer else 0.0
        return abs(math.log(times)) if times > 0 else math.inf, abs(value - self.right_answer)


@dataclass(frozen=True)
class RecordProblem(Problem):
    """The answer is the learner's own record: outcomes of runs, or anything that keeps them as `.outcomes`.

    `claim` gets the list of outcomes and judges it; `right_answer` is a function that makes a record which supports it.
    """

    claim: Callable[[Sequence[Any]], Verdict] = None  # type: ignore[assignment]

    def solution(self) -> str:
        """The explanation with what the claim says of the solution's own runs, which are carried out for it."""
        return self.explanation.format(verdict=self.claim(list(self.right_answer())).message)

    def judge(self, answer: Any) -> Verdict:
        outcomes = getattr(answer, "outcomes", answer)
        if not isinstance(outcomes, Iterable) or isinstance(outcomes, str):
            return Verdict(
                "wrong", "Give the panel whose runs count, or the outcomes of `fl.compare`."
            )
        outcomes = list(outcomes)
        if not all(
            hasattr(outcome, "accuracy") and hasattr(outcome, "method") for outcome in outcomes
        ):
            return Verdict(
                "wrong",
                "Only outcomes of runs count here: give the panel, or what `fl.compare` returned.",
            )
        if not outcomes:
            return Verdict("unattempted", "No runs in the record yet: press Run first.")
        return self.claim(outcomes)


# ---------------------------------------------------------------------------------- functions to complete
Function = Callable[..., Any]
RIGHT_SHAPE = "has the right shape"


def close(returned: Any, wanted: Any) -> bool:
    """Whether two values are arrays of the same shape and, to 1e-5, the same numbers, or dicts of such arrays."""
    if isinstance(wanted, Mapping):
        same = isinstance(returned, Mapping) and returned.keys() == wanted.keys()
        return same and all(close(returned[key], wanted[key]) for key in wanted)
    one, other = as_numbers(returned), as_numbers(wanted)
    return (
        one is not None
        and other is not None
        and one.shape == other.shape
        and np.allclose(one, other, 1e-5, 1e-6)
    )


def as_numbers(value: Any) -> np.ndarray | None:
    """Numbers, lists, arrays and tensors as an array; None for what is none of them."""
    try:
        return np.asarray(value.detach().cpu() if hasattr(value, "detach") else value, dtype=float)
    except (TypeError, ValueError, RuntimeError):
        return None


def untouched(value: Any) -> bool:
    """Whether `value` is what an untouched stub is or returns: nothing, dots, or a dict with nothing or dots in it."""
    inside = value.values() if isinstance(value, Mapping) else ()
    return value is None or value is ... or any(map(untouched, inside))


@dataclass(frozen=True)
class Build:
    """What judges a build exercise; its words stand in the lesson's TOML file.

    right:    a function that solves the exercise; the learner's has the same name
    sizes:    of the hidden inputs, one after the other
    draw:     makes the arguments of a call from a random stream and one of the sizes; None: this one tells too little
    slips:    functions that make a common mistake each, by name; of several that fit, the first is named
    """

    right: Function
    sizes: Iterable[tuple]
    draw: Callable[..., tuple | None]
    slips: Mapping[str, Function] = field(default_factory=dict)

    def inputs(self) -> list[tuple]:
        """The hidden inputs: a tuple of arguments for each call, each from a stream of its own."""
        drawn = (
            self.draw(np.random.default_rng(seed), *size) for seed, size in enumerate(self.sizes)
        )
        return [arguments for arguments in drawn if arguments is not None]


@dataclass(frozen=True)
class BuildProblem(Problem):
    """The answer is a function; `build` judges it, `slips` has a text for each of its mistakes."""

    build: Build = None  # type: ignore[assignment]
    slips: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Of the learner's function in the notebook."""
        return self.right_answer.__name__

    def solution(self) -> str:
        """The explanation, and the right function as it is written."""
        source = textwrap.dedent(inspect.getsource(self.right_answer))
        wide = "\n".join(
            line.replace("    ", "\N{NO-BREAK SPACE}" * 4) for line in source.rstrip().splitlines()
        )
        return f"{self.explanation}\n{wide}"

    def judge(self, answer: Any) -> Verdict:
        if not callable(answer):
            return Verdict(
                "wrong", f"The answer is the function {self.name}, not {type(answer).__name__}."
            )
        fitting, wrong, stopped = dict(self.build.slips), [], ""
        for arguments in self.build.inputs():
            returned = tried(answer, arguments)
            if untouched(returned):
                return Verdict("unattempted", f"{self.name} returns nothing yet.")
            fitting = {
                name: slip
                for name, slip in fitting.items()
                if alike(returned, tried(slip, arguments))
            }
            if isinstance(returned, Exception):
                text = " ".join(str(returned).split())
                stopped = stopped or f"{self.name} stopped with {type(returned).__name__}: {text}"
                continue
            wanted = self.right_answer(*copy.deepcopy(arguments))
            if not close(returned, wanted):
                wrong.append(difference(self.name, returned, wanted))
        if not wrong and not stopped:
            return Verdict("right", "Yes: right for all hidden inputs.")
        # Where two axes are equally long by chance, a wrong shape looks right: another input tells more.
        first = min(wrong, key=lambda words: RIGHT_SHAPE in words, default="")
        return Verdict(
            "wrong", self.slips[next(iter(fitting))] if wrong and fitting else stopped or first
        )


def tried(function: Function, arguments: tuple) -> Any:
    """What the function returns, or the error that stops it; what it writes into its arguments spoils nothing."""
    try:
        return function(*copy.deepcopy(arguments))
    except Exception as error:
        return error


def alike(returned: Any, other: Any) -> bool:
    """Whether both are errors, or the same numbers. A wrong axis is an error only where two lengths differ."""
    if isinstance(returned, Exception) or isinstance(other, Exception):
        return isinstance(returned, Exception) and isinstance(other, Exception)
    return close(returned, other)


def difference(name: str, returned: Any, wanted: Any) -> str:
    """What is wrong with a value, where no known mistake explains it."""
    if isinstance(wanted, Mapping):
        keys = ", ".join(map(repr, wanted))
        if not isinstance(returned, Mapping) or returned.keys() != wanted.keys():
            lost = [
                repr(key) for key in wanted if isinstance(returned, Mapping) and key not in returned
            ]
            loop = (
                f" It lacks {', '.join(lost)}: is return inside a loop?"
                if 0 < len(lost) < len(wanted)
                else ""
            )
            return f"{name} does not return a dict with the keys {keys}.{loop}"
        key = next(key for key in wanted if not close(returned[key], wanted[key]))
        return difference(f"{name}, in the entry {key!r},", returned[key], wanted[key])
    one, other = as_numbers(returned), as_numbers(wanted)
    if one is None:
        return f"{name} returns {type(returned).__name__}; return numbers."
    if other is not None and one.shape != other.shape:
        return f"{name} returns the shape {one.shape}, but {other.shape} is wanted."
    return f"{name} {RIGHT_SHAPE}, but for a hidden input other numbers are wanted."


# ------------------------------------------------------------------------------------------------ numbers as typed
# What a learner typed, as numbers: decimal point or comma, thousands, fractions, powers, per cent, a unit.
LARGEST = 1e30  # infinite and undefined numbers are no answers
QUOTES = " \t\r\n\"'“”„‘’«»`"  # round a number, with white space
PER_CENT = ("%", "percent", "per cent")
BYTES = {"kb": 1000, "kib": 1024, "mb": 1e6, "mib": 1024**2}  # where bytes are asked for
WORDS = r"(?:(?:more than|at least|above|over|about|exactly|slope) +)?"
NAMED = (
    r"(?:\D*\bis )?(?:[^\W\d_]+ *(?=[=>≥]))?[=≈~>≥× ]*" + WORDS
)  # it is, λ = or T ≥ or > or × or nothing
TYPED = re.compile(NAMED + r"(\S.*?\d[.,]?|\d[.,]?) *([^\d.,/ ][^\d/]*)?")  # a number and a unit
FRACTION = re.compile(
    r"(?:(-?\d+) +)?(.+?) */ *(.+)"
)  # a whole number or none, numerator, denominator
POWER = re.compile(r"(.+?) *(?:\^|\*\*) *(.+)")  # 2^1.5
GROUPED = re.compile(
    r"([+-]?[1-9]\d{0,2}([ ,.'_])\d{3}(?:\2\d{3})*)(?:[.,](\d+))?"
)  # 16,040 or 1 234 567.8


def readings(answer: Any, units: Collection[str] = ()) -> list[float]:
    """All numbers that `answer` may mean; [] if it is none.

    units: what may stand behind the number, in the singular or plural; with "%" the answer counts in per cent, and a
    number without a unit may be a share. Else "%" divides by 100. With "bytes" kB, KiB, MB and MiB are understood.

    >>> readings("9/4"), readings("2½"), readings("87 %"), readings("6.25x", ["x"]), readings("6.25x")
    ([2.25], [2.5], [0.87], [6.25], [])
    >>> sorted(readings("16,040")), readings(0.25, ["%"])
    ([16.04, 16040.0], [0.25, 25.0])
    >>> readings("more than 1.25"), readings("5050 + 1000"), readings("two")
    ([1.25], [6050.0], [])
    """
    values, unit = [answer.item() if getattr(answer, "shape", None) == () else answer], None
    if isinstance(answer, str):
        spread = re.sub(r"(?<=\d)[¼-¾⅐-⅞]", lambda sign: f" {sign[0]}", answer)
        text = (
            unicodedata.normalize("NFKC", spread)
            .replace("\N{FRACTION SLASH}", "/")
            .replace("−", "-")
        )
        parts = TYPED.fullmatch(text.strip(QUOTES).rstrip(".! "))
        values, unit = (quotients(parts[1]), parts[2]) if parts else ([], None)
    real: list[Any] = [v for v in values if isinstance(v, numbers.Real) and not isinstance(v, bool)]
    values = [float(v) for v in real if abs(v) < LARGEST]
    if "%" in units:
        values += [100 * value for value in values if unit is None]
    elif unit in PER_CENT:
        return [value / 100 for value in values]
    elif "bytes" in units and (unit or "").lower() in BYTES:
        return [value * BYTES[str(unit).lower()] for value in values]
    known = {name.removesuffix("s") for name in (*units, *(PER_CENT if "%" in units else ()))}
    return (
        values
        if unit is None or {unit.removesuffix("s"), unit.lower().removesuffix("s")} & known
        else []
    )


def quotients(text: str) -> list[float]:
    """All values of a number, a fraction or a mixed number, such as 2 1/4, or of a sum of numbers."""
    if len(terms := re.split(r"(?<=[\d.]) *\+ *", text)) > 1:
        return [sum(values) for values in product(*map(decimals, terms))]
    if not (parts := FRACTION.fullmatch(text)):
        return decimals(text)
    whole, sign = float(parts[1] or 0), -1 if text.startswith("-") and parts[1] else 1
    return [whole + sign * a / b for a in decimals(parts[2]) for b in decimals(parts[3]) if b]


def decimals(text: str) -> list[float]:
    """All values of a number or power without a fraction bar: a comma or a point may part decimals or thousands."""
    if parts := POWER.fullmatch(text):
        bases, exponents = decimals(parts[1]), decimals(parts[2])
        return [a**b for a in bases for b in exponents if 0 < a < 1e6 and abs(b) < 50]
    forms = {text.replace(",", ".")}
    if grouped := GROUPED.fullmatch(text):
        forms.add(f"{grouped[1].replace(grouped[2], '')}.{grouped[3] or 0}")
    return [float(v) for v in map(parsed, forms) if isinstance(v, int | float) and abs(v) < LARGEST]
