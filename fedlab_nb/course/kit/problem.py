"""An exercise as a pure value: it judges an answer and knows its hints and its solution. Nothing here is displayed.

The solution's text is made from the same `right_answer` that the tests check, so the two cannot drift apart. The answer
is a number, the learner's own record of runs, or a function of about ten lines that hidden inputs judge:

    q4 = Build(match_units, hidden_inputs, (nearest, inverse))

Wrong solutions that people often write (`slips`) are functions too: an answer that returns what one of them returns
gets the text that the exercise's TOML table `slips` has under its name. So feedback names the mistake, and any function
that returns the right values is right, however it is written. A learner's error becomes a sentence. A mistake in an
axis stops most functions. To name it, give hidden inputs in which these axes are equally long: there it returns
numbers, and a slip that does the same, and stops where the answer stops, is the one.
"""

import copy
import inspect
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .answers import readings


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
    """The answer is a number or a text that writes one (see `answers.readings`, also for `units`).

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
        return Verdict("wrong", f"{given:g} is too {'small' if given < self.right_answer else 'large'}.")

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
            return Verdict("wrong", "Give the panel whose runs count, or the outcomes of `fl.compare`.")
        outcomes = list(outcomes)
        if not all(hasattr(outcome, "accuracy") and hasattr(outcome, "method") for outcome in outcomes):
            return Verdict("wrong", "Only outcomes of runs count here: give the panel, or what `fl.compare` returned.")
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
    one, other = numbers(returned), numbers(wanted)
    return one is not None and other is not None and one.shape == other.shape and np.allclose(one, other, 1e-5, 1e-6)


def numbers(value: Any) -> np.ndarray | None:
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
    inputs:   makes the hidden inputs: a tuple of arguments for each call
    slips:    functions that make a common mistake each; of several that fit, the first is named
    """

    right: Function
    inputs: Callable[[], Sequence[tuple]]
    slips: Sequence[Function] = ()


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
        wide = "\n".join(line.replace("    ", "\N{NO-BREAK SPACE}" * 4) for line in source.rstrip().splitlines())
        return f"{self.explanation}\n{wide}"

    def judge(self, answer: Any) -> Verdict:
        if not callable(answer):
            return Verdict("wrong", f"The answer is the function {self.name}, not {type(answer).__name__}.")
        fitting, wrong, stopped = list(self.build.slips), [], ""
        for arguments in self.build.inputs():
            returned = tried(answer, arguments)
            if untouched(returned):
                return Verdict("unattempted", f"{self.name} returns nothing yet.")
            fitting = [slip for slip in fitting if alike(returned, tried(slip, arguments))]
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
        return Verdict("wrong", self.slips[fitting[0].__name__] if wrong and fitting else stopped or first)


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
            lost = [repr(key) for key in wanted if isinstance(returned, Mapping) and key not in returned]
            loop = f" It lacks {', '.join(lost)}: is return inside a loop?" if 0 < len(lost) < len(wanted) else ""
            return f"{name} does not return a dict with the keys {keys}.{loop}"
        key = next(key for key in wanted if not close(returned[key], wanted[key]))
        return difference(f"{name}, in the entry {key!r},", returned[key], wanted[key])
    one, other = numbers(returned), numbers(wanted)
    if one is None:
        return f"{name} returns {type(returned).__name__}; return numbers."
    if other is not None and one.shape != other.shape:
        return f"{name} returns the shape {one.shape}, but {other.shape} is wanted."
    return f"{name} {RIGHT_SHAPE}, but for a hidden input other numbers are wanted."
