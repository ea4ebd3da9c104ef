"""What the class is doing: the steps that the teacher chooses, a clock, the question before each
result, and everybody's guesses.

No result is computed here. A result is hidden until the teacher shows it (`is_result_shown`), and a
hidden result is not sent to any phone.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, TypedDict

from ...errors import UsageError
from .messages import MonotonicSeconds
from .worth import WAYS, describe_combination

StepName = Literal["draw", "send", "reveal", "joker", "forget", "rounds", "digit"]
# {title of a way of combining messages: its accuracy 0–1 on the 360 test digits}
AccuracyByTitle = dict[str, float]

MAX_GUESSES = 300
# The ways that the class chooses from in the steps *Reveal* and *Joker*, by the method's title.
REVEALED = ("Local only", "FedAvg", "Ensemble", "AFL")
ATTACKED = ("Mean of logits", "FedAvg", "Ensemble", "AFL")
FALL = 0.08  # the smallest fall of an accuracy (0–1) that counts; equals `FALL` in sentences.js


@dataclass(frozen=True)
class Step:
    """A step of the lesson.

    name:        what the server calls it
    title:       what the screens call it
    minutes:     its length in the run sheet
    question:    what the class guesses before the result, "" if nothing
    options:     the answers to choose from
    explanation: what the options mean; only phones have room to show it
    """

    name: StepName
    title: str
    minutes: int
    question: str = ""
    options: tuple[str, ...] = ()
    explanation: str = ""


STEPS = (
    Step("draw", "Draw", 5),
    Step("send", "Send", 5),
    Step(
        "reveal",
        "Reveal",
        10,
        "Which of these reads most of 360 new digits?",
        tuple(describe_combination(title) for title in REVEALED),
        "One alone: each network by itself; their mean counts. FedAvg: one network, the average of "
        "all. Equal vote: every network answers, and all count the same. AFL: no network; the sums "
        "of all are added up, and one equation makes a reader of them.",
    ),
    Step(
        "joker",
        "Joker",
        7,
        "A joker, a hundred times too loud: what falls most?",
        (*(describe_combination(title) for title in ATTACKED), "Nothing"),
        "Loud vote: the numbers of all networks are added up, so the loudest counts most. "
        "The others are those of the first question.",
    ),
    Step(
        "forget",
        "Forget",
        6,
        f"One office leaves. How many of 360 digits does {WAYS['AFL']['name']} lose?",
        ("None", "1 to 5", "6 to 20", "More"),
        "AFL adds up the sums of all. To forget an office, its sums are taken off again.",
    ),
    Step(
        "rounds",
        "Rounds",
        6,
        f"50 tiny rounds teach {WAYS['FENS']['name']} whom to believe. "
        f"Compared with the {WAYS['Ensemble']['name'].lower()} it reads …",
        ("Less", "The same, ± 3 points", "More"),
        "FENS: every network answers, with a weight for each digit. The phones that stay find the "
        "weights. The networks are those of the equal vote.",
    ),
    Step("digit", "Mine", 6),
)
BY_NAME = {step.name: step for step in STEPS}


class CountsWithAndWithoutMessage(TypedDict):
    """Number of right answers on the 360 test digits with and without one message.

    way: title of the method by which this was measured
    """

    way: str
    with_it: int
    without_it: int
    images: int


class QuestionDescription(TypedDict):
    """A step's question. counts: guesses for each option; own: index of a seat's own guess"""

    text: str
    options: list[str]
    counts: list[int]
    own: int | None


class StepDescription(TypedDict, total=False):
    """What a screen shows of a step.

    step, title, minutes: its name, its title, and the minutes that it should take
    seconds, total:       since the step and since the class began
    is_shown:             whether the step's result is shown
    shown:                names of all steps whose result is shown
    question:             only if the step has one
    """

    step: str
    title: str
    minutes: int
    seconds: int
    total: int
    is_shown: bool
    shown: list[str]
    question: QuestionDescription


@dataclass
class Conductor:
    """The present step, the results that are shown, and all guesses.

    begun:   when the class began, on the same clock as every `now`
    since:   when the present step began
    shown:   names of the steps whose result is shown
    guesses: {name of a step: {seat: index of the option that it chose}}
    """

    begun: MonotonicSeconds
    step: Step = STEPS[0]
    since: MonotonicSeconds = 0.0
    shown: set[str] = field(default_factory=set)
    guesses: dict[str, dict[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.since = self.begun

    def begin_step(self, step_name: str, now: MonotonicSeconds) -> None:
        """Begin a step, whose clock starts at `now` unless it is the present one.

        Raises UsageError for an unknown name.
        """
        if step_name not in BY_NAME:
            raise UsageError(f"There is no step {step_name!r}; there are {', '.join(BY_NAME)}.")
        if step_name != self.step.name:
            self.since = now
        self.step = BY_NAME[step_name]

    def show_result(self, step_name_or_none_for_present: StepName | None = None) -> None:
        """Show the result of a step, by default of the present one."""
        self.shown.add(step_name_or_none_for_present or self.step.name)

    def hide_result_and_discard_guesses(
        self, step_name_or_none_for_present: StepName | None = None
    ) -> None:
        """Hide the result of a step, by default of the present one, and discard the guesses on it."""
        step_name_or_none_for_present = step_name_or_none_for_present or self.step.name
        self.shown.discard(step_name_or_none_for_present)
        self.guesses.pop(step_name_or_none_for_present, None)

    def is_result_shown(self, step_name: StepName) -> bool:
        return step_name in self.shown

    def store_guess(self, seat: int, step_name: str, option_index: int) -> None:
        """Store a seat's guess on a step, in place of an earlier one.

        option_index: index of an option
        Raises UsageError if it is too late, or if there is no such option.
        """
        step = self.step
        if step_name != step.name:
            raise UsageError("It is too late to guess: the class has gone on.")
        if not step.options:
            raise UsageError("There is nothing to guess at this step.")
        if self.is_result_shown(step_name):
            raise UsageError("It is too late to guess: the result is shown.")
        if not (isinstance(option_index, int) and 0 <= option_index < len(step.options)):
            raise UsageError(f"A guess is a number from 0 to {len(step.options) - 1}.")
        guesses = self.guesses.setdefault(step_name, {})
        if seat in guesses or len(guesses) < MAX_GUESSES:
            guesses[seat] = option_index

    def describe_present_step(
        self, now: MonotonicSeconds, seat_of_own_guess: int | None = None
    ) -> StepDescription:
        """Describe the present step for a screen: its clock, its question, and how many chose each option.

        seat_of_own_guess: the seat whose guess is included, None for none
        """
        step = self.step
        description: StepDescription = {
            "step": step.name,
            "title": step.title,
            "minutes": step.minutes,
            "seconds": round(now - self.since),
            "total": round(now - self.begun),
            "is_shown": self.is_result_shown(step.name),
            "shown": sorted(self.shown),
        }
        if step.options:
            guesses = self.guesses.get(step.name, {})
            counts = Counter(guesses.values())
            description["question"] = {
                "text": step.question,
                "explanation": step.explanation,
                "options": list(step.options),
                "counts": [counts[i] for i in range(len(step.options))],
                "own": None if seat_of_own_guess is None else guesses.get(seat_of_own_guess),
            }
        return description


def find_right_option_index(
    step_name: StepName,
    accuracies: AccuracyByTitle,
    accuracies_before_joker: AccuracyByTitle,
    removal_effect: CountsWithAndWithoutMessage | None,
) -> int | None:
    """Find the index of the option that the run has shown to be right; None if it has not yet.

    accuracies: {title: accuracy 0–1 on the 360 test digits} now
    accuracies_before_joker: the same before the joker came
    removal_effect: right answers `with_it` and `without_it` the message that was removed last
    """
    if step_name == "reveal" and accuracies:
        return max(range(len(REVEALED)), key=lambda i: accuracies.get(REVEALED[i], 0))
    if step_name == "joker" and accuracies_before_joker:
        losses = [
            accuracies_before_joker.get(title, 0) - accuracies.get(title, 0) for title in ATTACKED
        ]
        largest = max(range(len(ATTACKED)), key=lambda i: losses[i])
        if losses[largest] < FALL:
            return len(ATTACKED)  # the last option: "Nothing"
        return largest
    if step_name == "forget" and removal_effect:
        lost = removal_effect["with_it"] - removal_effect["without_it"]
        return count_limits_below_value(lost, (0, 5, 20))
    if step_name == "rounds" and "FENS" in accuracies and "Ensemble" in accuracies:
        points = 100 * (accuracies["FENS"] - accuracies["Ensemble"])
        if points < -3:
            return 0
        if points <= 3:
            return 1
        return 2
    return None


def count_limits_below_value(value: float, ascending_limits: tuple[float, ...]) -> int:
    """Count the limits that are below a value."""
    return sum(value > limit for limit in ascending_limits)
