"""An exercise as a pure value: it judges an answer and knows its hints and its solution. Nothing here is displayed.

The solution's text is made from the same `right_answer` that the tests check, so the two cannot drift apart.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

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
