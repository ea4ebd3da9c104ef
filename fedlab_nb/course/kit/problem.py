"""An exercise as a pure value: it judges an answer, and has hints and a solution. Nothing here is
displayed.

The solution's text is made from the same `right_answer` that the tests check, so the two cannot
drift apart. The answer is a number, the learner's own record of runs, or a function of about ten
lines. A function is judged by its results for hidden inputs:

    q4 = Build(match_units, ((3, 4), (5, 2)), layers, {"nearest": …, "inverse": …})

Any function that returns the right values is right, however it is written. A function that stops
with an error gets that error as a sentence.

Mistakes that people often make (`slips`) are functions, too. An answer that returns the same as one
of them gets the text that the exercise's TOML table `slips` has under its name, so that the feedback
names the mistake.

A wrong axis stops most functions with an error. If one of the hidden inputs has axes of equal
length, the function returns numbers for it. So the mistake is recognised: it is the slip that returns
the same numbers there, and that stops for the same inputs as the answer.
"""

import copy
import ctypes
import inspect
import math
import re
import textwrap
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...course.kit.array_types import AnyArray
from .answers import AnswerReading, LearnerAnswer, parse_typed_answer

RunOutcome = Any  # an `Outcome`, or what has its fields that claims read
ReturnedValue = Any  # by a learner's function: numbers, None, or anything else
ReturnedOrError = Any  # a ReturnedValue, or the Exception that stopped the function
UNITS_WITHOUT_NOUN = ("x", "times")  # "a number of times" would be a count
MAX_QUOTED = 60  # characters of an answer that a message repeats


@dataclass(frozen=True)
class Verdict:
    """What is said of an answer.

    state:   "unattempted", "wrong" or "right"
    message: a sentence or two for the learner
    """

    state: str
    message: str


@dataclass(frozen=True)
class Problem:
    """One exercise. Subclasses say how an answer is judged.

    right_answer: an answer that `check` calls right
    explanation:  text of the solution, in which `{answer}` is replaced by the right answer
    """

    title: str
    question: str
    right_answer: Any
    hints: tuple[str, ...]
    explanation: str

    def check(self, answer: LearnerAnswer) -> Verdict:
        """Judge an answer. None, `...` (the stub in a notebook) and an empty text are
        "unattempted".

        It never raises, so that no wrong answer becomes a traceback.
        """
        is_empty = isinstance(answer, str) and not answer.strip()
        if answer is None or answer is ... or is_empty:
            return Verdict("unattempted", "No answer yet.")
        return self.judge(answer)

    def judge(self, answer: LearnerAnswer) -> Verdict:
        """Judge an answer that is there."""
        raise NotImplementedError

    def hint(self, hint_number: int = 1) -> str:
        """Return a hint by its number, counted from 1; beyond the last one, the last one."""
        number = min(max(int(hint_number), 1), len(self.hints))
        return f"Hint {number} of {len(self.hints)}: {self.hints[number - 1]}"

    def solution(self) -> str:
        """Return the answer and why it is the answer."""
        return self.explanation.format(answer=self.right_answer)


class AnswerDistance(NamedTuple):
    """How far a number is from the right answer; smaller log ratios are nearer, then smaller differences.

    log_ratio: |log(number / right answer)|, infinite if their signs differ
    """

    log_ratio: float
    difference: float


@dataclass(frozen=True)
class NumberProblem(Problem):
    """The answer is a number, or a text that `answers.parse_typed_answer` reads as one.

    tolerance: an answer is right if it is at most this far from the right one
    slips:     pairs of a wrong number and a sentence on the mistake behind it
    units:     the units that the number may have, see `parse_typed_answer`
    spreads:   an answer such as "N(3, 9)" is right if its second number is one of these, too
    """

    tolerance: float = 0.01
    slips: tuple[tuple[float, str], ...] = ()
    units: tuple[str, ...] = ()
    spreads: tuple[float, ...] = ()

    def judge(self, answer: LearnerAnswer) -> Verdict:
        reading = parse_typed_answer(answer, self.units)
        values = reading.values
        is_right = self._find_value_within_tolerance_or_none(values, self.right_answer) is not None
        if is_right and reading.spreads:
            return self._judge_spreads_of_gaussian(reading.spreads)
        if is_right:
            return Verdict("right", f"Yes: {self.right_answer:g}.")
        for low, high in reading.ranges:
            is_low_right = self._is_within_tolerance_of_right_answer(low)
            is_high_right = self._is_within_tolerance_of_right_answer(high)
            if is_low_right and is_high_right:
                return Verdict("right", f"Yes: {self.right_answer:g}.")
        mistake = self._name_mistake(reading)
        if mistake:
            return Verdict("wrong", mistake)
        if reading.complaint:
            return Verdict("wrong", reading.complaint)
        if reading.ranges:
            low, high = reading.ranges[0]
            return Verdict("wrong", f"{low:g} to {high:g} is a range: give one number.")
        if not values:
            return Verdict("wrong", self._explain_unreadable_answer(answer, reading))
        nearest = min(values, key=self._measure_distance_to_right_answer)
        direction = "small" if nearest < self.right_answer else "large"
        return Verdict("wrong", f"{nearest:g} is too {direction}.")

    def _name_mistake(self, reading: AnswerReading) -> str:
        """Say which known mistake an answer is, or that its percent sign is too much; '' for others."""
        number = self._find_value_within_tolerance_or_none(reading.bare, self.right_answer)
        if number is not None and number / 100 in reading.values:
            return (
                f"{number:g} % is {number / 100:g}. The answer is {self._describe_kind()}, not a "
                "percentage: leave out the percent sign."
            )
        for number, mistake in self.slips:
            value = self._find_value_within_tolerance_or_none(
                [*reading.values, *reading.bare], number
            )
            if value is not None:
                return f"{value:g} is not it: {mistake}"
        return ""

    def _explain_unreadable_answer(self, answer: LearnerAnswer, reading: AnswerReading) -> str:
        """Explain that an answer is no number, or has a unit that the question does not have."""
        kind = self._describe_kind()
        text = repr(answer)
        if len(text) > MAX_QUOTED:
            text = f"{text[:MAX_QUOTED]}…"
        if reading.bare:
            return (
                f"In {text} the words after the number are not understood: the answer is {kind}. "
                "Type the number alone."
            )
        if isinstance(answer, str) and re.search(r"\d", answer):
            return (
                f"{text} cannot be read as one number. The answer is {kind}: type it alone, or as a "
                "sum such as 2 · (3 + 4)."
            )
        return f"The answer is {kind}, not {text}."

    def _describe_kind(self) -> str:
        """Say what the answer is: 'a number', 'a percentage' or 'a number of images'."""
        if "%" in self.units[:1]:
            return "a percentage"
        if self.units and self.units[0] not in UNITS_WITHOUT_NOUN:
            return f"a number of {self.units[0]}"
        return "a number"

    def _judge_spreads_of_gaussian(self, spreads: Sequence[float]) -> Verdict:
        """Judge the second number of a Gaussian whose mean is right."""
        if not self.spreads:
            return Verdict("wrong", "The answer is one number, not a Gaussian.")
        for spread in self.spreads:
            if self._find_value_within_tolerance_or_none(spreads, spread) is not None:
                return Verdict("right", f"Yes: {self.right_answer:g}.")
        return Verdict(
            "wrong",
            f"{self.right_answer:g} is right, but {spreads[0]:g} is neither its precision nor its "
            "variance. Give the mean alone: one number.",
        )

    def _is_within_tolerance_of_right_answer(self, value: float) -> bool:
        return self._find_value_within_tolerance_or_none([value], self.right_answer) is not None

    def _find_value_within_tolerance_or_none(
        self, candidates: Iterable[float], target: float
    ) -> float | None:
        """Find the first of the candidates that is `target`, within the tolerance; None without one."""
        for value in candidates:
            if abs(value - target) <= self.tolerance:
                return value
        return None

    def _measure_distance_to_right_answer(self, value: float) -> AnswerDistance:
        """Measure how far a value is from the right answer."""
        difference = abs(value - self.right_answer)
        if not self.right_answer or value / self.right_answer <= 0:
            return AnswerDistance(math.inf, difference)
        return AnswerDistance(abs(math.log(value / self.right_answer)), difference)


@dataclass(frozen=True)
class RecordProblem(Problem):
    """The answer is the learner's own record: outcomes of runs, or an object with these as its attribute
    `outcomes`.

    claim:        judges the list of outcomes
    right_answer: a function that makes a record which supports the claim
    """

    claim: Callable[[Sequence[RunOutcome]], Verdict] = None  # type: ignore[assignment]

    def solution(self) -> str:
        """Carry out the solution's own runs; return the explanation with what the claim says of them."""
        outcomes = list(self.right_answer())
        return self.explanation.format(verdict=self.claim(outcomes).message)

    def judge(self, answer: LearnerAnswer) -> Verdict:
        try:
            outcomes = list(getattr(answer, "outcomes", answer))
        except TypeError:  # also an array without an axis, which calls itself iterable
            outcomes = None
        if outcomes is None or isinstance(answer, str):
            return Verdict(
                "wrong", "Give the panel whose runs count, or the outcomes of `fl.compare`."
            )
        if not all(looks_like_run_outcome(outcome) for outcome in outcomes):
            return Verdict(
                "wrong",
                "Only outcomes of runs count here: give the panel, or what `fl.compare` returned.",
            )
        if not outcomes:
            return Verdict("unattempted", "No runs in the record yet: press Run first.")
        return self.claim(outcomes)


def looks_like_run_outcome(value: object) -> bool:
    """Whether a value looks like the outcome of a run."""
    return hasattr(value, "accuracy") and hasattr(value, "method")


# ---------------------------------------------------------------------------- functions to complete
Function = Callable[..., ReturnedValue]
Arguments = tuple  # of one call, in order
RIGHT_SHAPE = "has the right shape"


@dataclass(frozen=True)
class Build:
    """How the answer to a build exercise is judged; its texts are in the lesson's TOML file.

    right: a function that solves the exercise; the learner's function has the same name
    sizes: of the hidden inputs: for each input the arguments of `draw`
    draw:  makes the arguments of a call from a random stream and one of the sizes, or None if the
           drawn ones would not tell right from wrong
    slips: {name: function that makes a common mistake}; if several fit an answer, the first is named
    """

    right: Function
    sizes: Iterable[tuple]
    draw: Callable[..., Arguments | None]
    slips: Mapping[str, Function] = field(default_factory=dict)

    def draw_hidden_arguments(self) -> list[Arguments]:
        """Draw the hidden inputs: the arguments of each call, each from a stream of its own."""
        inputs = []
        for seed, size in enumerate(self.sizes):
            arguments = self.draw(np.random.default_rng(seed), *size)
            if arguments is not None:
                inputs.append(arguments)
        return inputs


@dataclass(frozen=True)
class BuildProblem(Problem):
    """The answer is a function.

    build: judges it
    slips: {name of a slip of `build`: text for the learner}
    """

    build: Build = None  # type: ignore[assignment]
    slips: Mapping[str, str] = field(default_factory=dict)

    @property
    def function_name(self) -> str:
        """The name of the learner's function in the notebook."""
        return self.right_answer.__name__

    def solution(self) -> str:
        """Return the explanation, and the right function as it is written."""
        source = textwrap.dedent(inspect.getsource(self.right_answer)).rstrip()
        # A page keeps no-break spaces, and with them the indents.
        return f"{self.explanation}\n{source.replace('    ', 4 * NO_BREAK_SPACE)}"

    def judge(self, answer: LearnerAnswer) -> Verdict:
        if not callable(answer):
            kind = type(answer).__name__
            return Verdict("wrong", f"The answer is the function {self.function_name}, not {kind}.")
        inputs = self.build.draw_hidden_arguments()
        all_returned = call_each_or_stop_after_limit(TIME_LIMIT, answer, inputs)
        if all_returned is None:
            return Verdict(
                "wrong",
                f"{self.function_name} is still running after {TIME_LIMIT:g} s, so it was stopped. "
                "Does a loop in it have no end?",
            )
        possible_slips = dict(
            self.build.slips
        )  # those that agree with the answer on all inputs so far
        differences = []
        error_text = ""
        for arguments, returned in zip(inputs, all_returned, strict=True):
            if is_unfinished_stub(returned):
                return Verdict("unattempted", f"{self.function_name} returns nothing yet.")
            possible_slips = select_slips_with_same_result(possible_slips, arguments, returned)
            if isinstance(returned, Exception):
                error_text = error_text or self._describe_error_of_function(returned)
                continue
            right = self.right_answer(*copy.deepcopy(arguments))
            if not are_close_arrays_or_dicts(returned, right):
                differences.append(describe_wrong_value(self.function_name, returned, right))
        if not differences and not error_text:
            return Verdict("right", "Yes: right for all hidden inputs.")
        if differences and possible_slips:
            first_slip = next(iter(possible_slips))
            return Verdict("wrong", self.slips[first_slip])
        return Verdict("wrong", error_text or choose_most_telling_difference(differences))

    def _describe_error_of_function(self, error: Exception) -> str:
        text = " ".join(str(error).split())
        return f"{self.function_name} stopped with {type(error).__name__}: {text}"


TIME_LIMIT = 10.0  # seconds for all hidden inputs together
NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"


def call_or_catch_error(function: Function, arguments: Arguments) -> ReturnedOrError:
    """Return what the function returns, or the error that stops it. It gets copies of its arguments."""
    try:
        return function(*copy.deepcopy(arguments))
    except Exception as error:
        return error


def select_slips_with_same_result(
    slips: Mapping[str, Function], arguments: Arguments, returned: ReturnedOrError
) -> dict[str, Function]:
    """Select the slips that do the same for these arguments as the learner's function did.

    returned: what the learner's function returned, or its error
    """
    agreeing = {}
    for name, slip in slips.items():
        if are_both_errors_or_close_values(returned, call_or_catch_error(slip, arguments)):
            agreeing[name] = slip
    return agreeing


def call_each_or_stop_after_limit(
    limit_seconds_of_all_calls: float, function: Function, arguments_of_calls: Sequence[Arguments]
) -> list[ReturnedOrError] | None:
    """Return what `call_or_catch_error` returns for each call; None if all calls together take longer.

    The calls run in a thread, in which SystemExit is raised when the time is over. That ends a loop in
    Python. It does not end a call into compiled code, which goes on in its thread.
    """
    all_returned: list[ReturnedOrError] = []

    def call_all() -> None:
        for arguments in arguments_of_calls:
            try:
                all_returned.append(call_or_catch_error(function, arguments))
            except SystemExit:  # raised when the time is over, or by the function's own sys.exit()
                all_returned.append(RuntimeError("sys.exit() ends nothing here; return a value."))
                if is_over.is_set():
                    return

    is_over = threading.Event()
    thread = threading.Thread(target=call_all, daemon=True)
    thread.start()
    thread.join(limit_seconds_of_all_calls)
    if not thread.is_alive():
        return all_returned
    is_over.set()
    thread_id = ctypes.c_ulong(thread.ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread_id, ctypes.py_object(SystemExit))
    return None


def is_unfinished_stub(value: ReturnedValue) -> bool:
    """Whether a value is what an unfinished function returns: None, `...`, or a dict with one of these."""
    if isinstance(value, Mapping):
        return any(is_unfinished_stub(item) for item in value.values())
    return value is None or value is ...


def are_both_errors_or_close_values(returned: ReturnedOrError, other: ReturnedOrError) -> bool:
    """Whether both are errors, or both are the same numbers."""
    if isinstance(returned, Exception) or isinstance(other, Exception):
        return isinstance(returned, Exception) and isinstance(other, Exception)
    return are_close_arrays_or_dicts(returned, other)


def are_close_arrays_or_dicts(returned: ReturnedValue, right: ReturnedValue) -> bool:
    """Whether two values have the same shape and, to a share of 1e-5, the same numbers; in dicts for each
    key.
    """
    if isinstance(right, Mapping):
        if not isinstance(returned, Mapping) or returned.keys() != right.keys():
            return False
        return all(are_close_arrays_or_dicts(returned[key], right[key]) for key in right)
    returned_numbers = convert_to_array_or_none(returned)
    right_numbers = convert_to_array_or_none(right)
    if returned_numbers is None or right_numbers is None:
        return False
    if returned_numbers.shape != right_numbers.shape:
        return False
    return np.allclose(returned_numbers, right_numbers, rtol=1e-5, atol=1e-6)


def convert_to_array_or_none(value: ReturnedValue) -> AnyArray | None:
    """Convert numbers, lists, arrays and tensors to an array; return None for anything else."""
    try:
        if hasattr(value, "detach"):  # a tensor
            value = value.detach().cpu()
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError, RuntimeError):
        return None


def choose_most_telling_difference(difference_texts: Sequence[str]) -> str:
    """Choose the text that says most: the first one on a wrong shape, if there is one.

    If two axes of an input are equally long, a wrong shape looks right; another input shows it.
    """
    for text in difference_texts:
        if RIGHT_SHAPE not in text:
            return text
    return difference_texts[0]


def describe_wrong_value(function_name: str, returned: ReturnedValue, right: ReturnedValue) -> str:
    """Describe what is wrong with a value that no known mistake explains."""
    if isinstance(right, Mapping):
        if not isinstance(returned, Mapping) or returned.keys() != right.keys():
            return describe_missing_and_extra_keys(function_name, returned, right)
        for key in right:
            if not are_close_arrays_or_dicts(returned[key], right[key]):
                return describe_wrong_value(
                    f"{function_name}, in the entry {key!r},", returned[key], right[key]
                )
    returned_numbers = convert_to_array_or_none(returned)
    right_numbers = convert_to_array_or_none(right)
    if returned_numbers is None:
        return f"{function_name} returns {type(returned).__name__}; return numbers."
    if right_numbers is not None and returned_numbers.shape != right_numbers.shape:
        return (
            f"{function_name} returns the shape {returned_numbers.shape}, "
            f"but {right_numbers.shape} is wanted."
        )
    return f"{function_name} {RIGHT_SHAPE}, but for a hidden input other numbers are wanted."


def describe_missing_and_extra_keys(
    function_name: str, returned: ReturnedValue, right: Mapping[str, ReturnedValue]
) -> str:
    """Describe what is wrong with a value that should be a dict with the keys of `right`."""
    keys = ", ".join(repr(key) for key in right)
    text = f"{function_name} does not return a dict with the keys {keys}."
    if not isinstance(returned, Mapping):
        return text
    missing = [repr(key) for key in right if key not in returned]
    if 0 < len(missing) < len(right):
        text += f" It lacks {', '.join(missing)}: is return inside a loop?"
    return text
