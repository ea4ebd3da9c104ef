"""Build exercises: the learner completes a function of about ten lines, and hidden inputs judge what it returns.

    q4 = Build("match_units", right=match_units, inputs=hidden_inputs, slips={"rows": wrong_1, "twice": wrong_2})

Wrong solutions that people often write are functions too: an answer that returns what one of them returns gets the
text that the exercise's TOML table `slips` has under its name. So feedback names the mistake, and any solution that
returns the right values is right, however it is written. Nothing here raises: a learner's error becomes a sentence.
A mistake in an axis stops most functions. To name it, give hidden inputs in which these axes are equally long: there
it returns numbers, and a slip that does the same, and stops where the answer stops, is the one.
"""

import copy
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .problem import Problem, Verdict

Function = Callable[..., Any]
RIGHT_SHAPE = "has the right shape"


@dataclass(frozen=True)
class Build:
    """What judges a build exercise; its words stand in the lesson's TOML file.

    name:     of the learner's function in the notebook;   right: a function that solves the exercise
    inputs:   makes the hidden inputs: a tuple of arguments for each call
    slips:    {name of a mistake: a function that makes it}; of several that fit, the first is named
    accepts:  (returned, wanted, arguments) -> whether a value will do; default: the same shape and numbers
    """

    name: str
    right: Function
    inputs: Callable[[], Sequence[tuple]]
    slips: Mapping[str, Function] = field(default_factory=dict)
    accepts: Callable[[Any, Any, tuple], bool] | None = None


def by_name(functions: Iterable[Function]) -> dict[str, Function]:
    """Wrong functions by their names, under which the TOML table `slips` has their texts."""
    return {wrong.__name__: wrong for wrong in functions}


def close(returned: Any, wanted: Any, arguments: tuple = ()) -> bool:
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
class BuildProblem(Problem):
    """The answer is a function. `right_answer` is one that is right; `slips` pairs a wrong one with its text."""

    name: str = ""
    inputs: Callable[[], Sequence[tuple]] = tuple
    slips: tuple[tuple[Function, str], ...] = ()
    accepts: Callable[[Any, Any, tuple], bool] = close

    def solution(self) -> str:
        """The explanation, and the right function as it is written."""
        source = textwrap.dedent(inspect.getsource(self.right_answer)).replace(self.right_answer.__name__, self.name, 1)
        wide = "\n".join(line.replace("    ", "\N{NO-BREAK SPACE}" * 4) for line in source.rstrip().splitlines())
        return f"{self.explanation}\n{wide}"

    def judge(self, answer: Any) -> Verdict:
        if not callable(answer):
            return Verdict("wrong", f"The answer is the function {self.name}, not {type(answer).__name__}.")
        fitting, wrong, stopped = list(self.slips), [], ""
        for arguments in self.inputs():
            returned = tried(answer, arguments)
            if untouched(returned):
                return Verdict("unattempted", f"{self.name} returns nothing yet.")
            fitting = [slip for slip in fitting if alike(returned, tried(slip[0], arguments))]
            if isinstance(returned, Exception):
                text = " ".join(str(returned).split())
                stopped = stopped or f"{self.name} stopped with {type(returned).__name__}: {text}"
                continue
            wanted = self.right_answer(*copied(arguments))
            if not self.accepts(returned, wanted, arguments):
                wrong.append(difference(self.name, returned, wanted))
        if not wrong and not stopped:
            return Verdict("right", "Yes: right for all hidden inputs.")
        # Where two axes are equally long by chance, a wrong shape looks right: another input tells more.
        first = min(wrong, key=lambda words: RIGHT_SHAPE in words, default="")
        return Verdict("wrong", fitting[0][1] if wrong and fitting else stopped or first)


def tried(function: Function, arguments: tuple) -> Any:
    """What the function returns, or the error that stops it."""
    try:
        return function(*copied(arguments))
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


def copied(arguments: tuple) -> tuple:
    """The arguments anew, so that an answer that writes into them spoils nothing."""
    return copy.deepcopy(arguments)
