"""What the class is doing: steps that the teacher chooses, a clock, the question before each
result, who guessed what.

Nothing here computes a result. A result that the teacher has not shown yet is covered: `is_shown`
says so, and no phone is told a covered result.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ...errors import UsageError
from .worth import WAYS, describe_way

MOST_GUESSES = 300
REVEALED = ("Local only", "FedAvg", "Ensemble", "AFL")  # ways that the class chooses from
ATTACKED = ("Mean of logits", "FedAvg", "Ensemble", "AFL")  # and when the joker sends
FALL = 0.08  # of an accuracy, that counts; `FALL` of sentences.js


@dataclass(frozen=True)
class Step:
    """name: what the server calls it; title: what the screens call it; minutes: what the run sheet
    gives it; question and options: what the class guesses before the result, or nothing."""

    name: str
    title: str
    minutes: int
    question: str = ""
    options: tuple[str, ...] = ()


STEPS = (
    Step("draw", "Draw", 5),
    Step("send", "Send", 5),
    Step(
        "reveal",
        "Reveal",
        10,
        "Which of these reads most of 360 new digits?",
        tuple(describe_way(title) for title in REVEALED),
    ),
    Step(
        "joker",
        "Joker",
        7,
        "A hundred times too loud: what falls most?",
        (*(describe_way(title) for title in ATTACKED), "Nothing"),
    ),
    Step(
        "forget",
        "Forget",
        6,
        f"One office leaves. How many of 360 digits does {WAYS['AFL']['name']} lose?",
        ("None", "1 to 5", "6 to 20", "More"),
    ),
    Step(
        "rounds",
        "Rounds",
        7,
        f"50 tiny rounds teach {WAYS['FENS']['name']} whom to believe. "
        f"Beside the {WAYS['Ensemble']['name'].lower()} it is …",
        ("Worse", "The same, ± 3 points", "Better"),
    ),
    Step("digit", "Mine", 5),
)
BY_NAME = {step.name: step for step in STEPS}


@dataclass
class Conductor:
    """begun: when the class began, in seconds of the same clock as every `now`."""

    begun: float
    step: Step = STEPS[0]
    since: float = 0.0
    shown: set[str] = field(default_factory=set)
    guesses: dict[str, dict[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.since = self.begun

    def go(self, name: str, now: float) -> None:
        """Begin a step. UsageError for one that there is not."""
        if name not in BY_NAME:
            raise UsageError(f"There is no step {name!r}; there are {', '.join(BY_NAME)}.")
        if name != self.step.name:
            self.since = now
        self.step = BY_NAME[name]

    def show(self, name: str | None = None) -> None:
        """Show the result of a step, by default of the present one."""
        self.shown.add(name or self.step.name)

    def cover(self, name: str | None = None) -> None:
        """Cover it again, and let the class guess once more."""
        name = name or self.step.name
        self.shown.discard(name)
        self.guesses.pop(name, None)

    def is_shown(self, name: str) -> bool:
        return name in self.shown

    def guess(self, seat: int, name: str, choice: int) -> None:
        """A seat's guess; the last one counts. UsageError where it is too late, or no guess."""
        step = self.step
        if name != step.name:
            raise UsageError("It is too late to guess: the class has gone on.")
        if not step.options:
            raise UsageError("There is nothing to guess at this step.")
        if self.is_shown(name):
            raise UsageError("It is too late to guess: the result is shown.")
        if not (isinstance(choice, int) and 0 <= choice < len(step.options)):
            raise UsageError(f"A guess is a number from 0 to {len(step.options) - 1}.")
        guesses = self.guesses.setdefault(name, {})
        if seat in guesses or len(guesses) < MOST_GUESSES:
            guesses[seat] = choice

    def describe(self, now: float, seat: int | None = None) -> dict[str, Any]:
        """For a screen: the step, its clock (seconds), and its question with the guesses; `seat`:
        and that one's."""
        step = self.step
        description: dict[str, Any] = {
            "step": step.name,
            "title": step.title,
            "minutes": step.minutes,
            "seconds": round(now - self.since),
            "total": round(now - self.begun),
            "is_shown": self.is_shown(step.name),
            "shown": sorted(self.shown),
        }
        if step.options:
            guesses = self.guesses.get(step.name, {})
            counts = Counter(guesses.values())
            description["question"] = {
                "text": step.question,
                "options": list(step.options),
                "counts": [counts[i] for i in range(len(step.options))],
                "own": None if seat is None else guesses.get(seat),
            }
        return description


def find_answer(
    step: str,
    accuracies: dict[str, float],
    before: dict[str, float],
    effect: dict[str, Any] | None,
) -> int | None:
    """Which option of a step's question the run has shown to be right; None where it has not.

    accuracies, before: {title: share of the 360 test digits that is right, 0-1}, now and before the
    joker came; effect: right answers `with_it` and `without_it` of the message that was taken out
    last, or None.
    """
    if step == "reveal" and accuracies:
        return max(range(len(REVEALED)), key=lambda i: accuracies.get(REVEALED[i], 0))
    if step == "joker" and before:
        losses = [before.get(title, 0) - accuracies.get(title, 0) for title in ATTACKED]
        largest = max(range(len(ATTACKED)), key=lambda i: losses[i])
        if losses[largest] < FALL:
            return len(ATTACKED)
        return largest
    if step == "forget" and effect:
        lost = effect["with_it"] - effect["without_it"]
        return count_passed(lost, (0, 5, 20))
    if step == "rounds" and "FENS" in accuracies and "Ensemble" in accuracies:
        points = 100 * (accuracies["FENS"] - accuracies["Ensemble"])
        if points < -3:
            return 0
        return 1 if points <= 3 else 2
    return None


def count_passed(value: float, limits: tuple[float, ...]) -> int:
    """How many of the limits a value is above."""
    return sum(value > limit for limit in limits)
