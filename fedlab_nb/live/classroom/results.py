"""The results of the messages that a class has at one moment.

Every way to combine them, what each message adds, and the votes on a digit. The room makes a new
`ClassResults` whenever a message comes or is removed, and when tiny rounds begin or are discarded. Each
number is computed once, when it is first requested. A thread of the server requests it first, so
that no phone waits for a table.
"""

import threading
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple, TypedDict

import torch

from ...data import load
from ...tensor_types import Labels
from ...training.evaluate import cache_forward_passes
from .conductor import (
    AccuracyByTitle,
    CountsWithAndWithoutMessage,
    StepName,
    find_right_option_index,
)
from .messages import FULL, DigitPixels0To1, FlatDigits0To1, Message
from .rounds import Rounds, explain_fens_result
from .worth import (
    MAX_SHOWN_IMAGES,
    WAYS,
    ClassMeanMap,
    LogitSizeBySeat,
    Prediction,
    PredictionByTitle,
    collect_test_drawings,
    count_right_answers_with_and_without_message,
    measure_relative_logit_sizes,
    predict_classes_by_all_combinations,
    project_class_means_into_plane,
)


class CombinationAccuracy(TypedDict):
    """What one way of combining the messages reaches.

    title:  the method's title in the package
    name:   what every screen calls it
    phrase: what it does, in a few words
    of:     number of students whose messages are combined
    own:    accuracy on the class's drawings, 0–1, None if there are none
    digits: accuracy on the package's test digits, 0–1
    """

    title: str
    name: str
    phrase: str
    of: int
    own: float | None
    digits: float


class TestDigitCounts(TypedDict):
    """Right answers with and without one message, among so many images."""

    with_it: int
    without_it: int
    images: int


class ShownContribution(CountsWithAndWithoutMessage):
    """What a seat's message adds to all others, as its phone shows it.

    helped:   number of images that are right only with the message
    harmed:   number of images that are right only without it
    classes:  {class of the sender: [images, right with it, right without it]}
    drawings: the same counts for the drawings that other students gave for testing
    shown:    [label, 64 sixteenths] of the first few images that only it made right
    """

    helped: int
    harmed: int
    classes: dict[int, list[int]]
    drawings: TestDigitCounts
    shown: list[list[Any]]


class DigitVotes(TypedDict):
    """The class that is predicted for one digit.

    seats: {seat: prediction of its network}
    ways:  {title of a method: its prediction}
    """

    seats: dict[int, int]
    ways: dict[str, int]


class TestSet(NamedTuple):
    """The class's drawings, followed by the package's test digits.

    images `[N, 64]`, labels `[N]`; drawings: number of images that are the class's
    """

    images: FlatDigits0To1
    labels: Labels
    drawings: int


class ClassResults:
    """The results of the messages of one moment.

    messages: in the order in which they came
    rounds:   the tiny rounds, or None
    before:   {title: accuracy 0–1} before the joker came or somebody was forgotten
    effect:   of the message that was removed last, or None
    """

    def __init__(
        self,
        messages: Iterable[Message],
        rounds: Rounds | None = None,
        before: AccuracyByTitle | None = None,
        effect: CountsWithAndWithoutMessage | None = None,
    ) -> None:
        self.messages = tuple(messages)
        self.rounds = rounds
        self.before = before or {}
        self.effect = effect
        self._computed: dict[Hashable, Any] = {}
        self._lock = threading.RLock()

    def _compute_once(self, cache_key: Hashable, compute: Callable[[], Any]) -> Any:
        """Return what `compute()` returned the first time. Threads that ask at the same time share it."""
        if cache_key in self._computed:  # without the lock, which another thread may hold for long
            return self._computed[cache_key]
        with self._lock:
            if cache_key not in self._computed:
                self._computed[cache_key] = compute()
            return self._computed[cache_key]

    def find_message_of_seat(self, seat: int) -> Message | None:
        return next((message for message in self.messages if message.seat == seat), None)

    # ------------------------------------------------------------------------------------ every way
    def measure_combination_accuracies(self) -> list[CombinationAccuracy]:
        """Measure the accuracy of every way of combining the messages that came so far."""
        ended_rounds = self.rounds.round if self.rounds else None
        return self._compute_once(("ways", ended_rounds), self._compute_combination_accuracies)

    def _compute_combination_accuracies(self) -> list[CombinationAccuracy]:
        images, labels, drawings = self._load_test_set()
        predictions = dict(self._predict_test_set())
        if self.rounds:
            predictions["FENS"] = self._predict_by_fens("test", images)
        rows = []
        for title in WAYS:
            if title not in predictions:
                continue
            count, classes = predictions[title]
            is_right = (classes == labels).double()
            accuracy_on_drawings = float(is_right[..., :drawings].mean()) if drawings else None
            rows.append(
                {
                    "title": title,
                    **WAYS[title],
                    "of": count,
                    "own": accuracy_on_drawings,
                    "digits": float(is_right[..., drawings:].mean()),
                }
            )
        return rows

    def get_test_accuracies(self) -> AccuracyByTitle:
        """Return the accuracies of all ways on the 360 test digits, 0-1, by title."""
        return {row["title"]: row["digits"] for row in self.measure_combination_accuracies()}

    def find_right_option_index(self, step_name: StepName) -> int | None:
        """Find which option of a step's question is right; None as long as that is not known."""
        return find_right_option_index(
            step_name, self.get_test_accuracies(), self.before, self.effect
        )

    def _load_test_set(self) -> TestSet:
        """Load the class's test drawings and the package's test digits."""

        def collect() -> TestSet:
            x, y = collect_test_drawings(self.messages)
            digits = load("digits")
            images = torch.cat([x, digits.x_test.flatten(1)])
            return TestSet(images, torch.cat([y, digits.y_test]), drawings=len(y))

        return self._compute_once("test", collect)

    def _predict_test_set(self) -> PredictionByTitle:
        """Predict the test set in every way but the tiny rounds, by title."""

        def predict() -> PredictionByTitle:
            images, _, _ = self._load_test_set()
            with cache_forward_passes():
                return predict_classes_by_all_combinations(self.messages, images)

        return self._compute_once("predictions", predict)

    def _predict_by_fens(self, cache_key: Hashable, images: FlatDigits0To1) -> Prediction:
        """Predict `images [N, 64]` by FENS after the last round that has ended.

        cache_key: of the images, under which the prediction is cached
        """
        rounds = self.rounds
        assert rounds is not None

        def predict() -> Prediction:
            return Prediction(len(rounds.table), rounds.predict_classes(images))

        return self._compute_once(("rounds", cache_key, rounds.round), predict)

    # ---------------------------------------------------------------------------------- one student
    def measure_contribution(self, seat: int) -> ShownContribution:
        """Measure what a seat's message adds, on the 360 test digits and on others' drawings."""
        return self._compute_once(("share", seat), lambda: self._compute_contribution(seat))

    def has_measured_contribution(self, seat: int) -> bool:
        """Whether `measure_contribution` of this seat has been computed."""
        return ("share", seat) in self._computed

    def _compute_contribution(self, seat: int) -> ShownContribution:
        others = [message for message in self.messages if message.seat != seat]
        x_class, y_class = collect_test_drawings(others)
        digits = load("digits")
        x_test = digits.x_test.flatten(1)
        y_test = digits.y_test
        on_drawings = count_right_answers_with_and_without_message(
            self.messages, seat, x_class, y_class
        )
        on_digits = count_right_answers_with_and_without_message(
            self.messages, seat, x_test, y_test
        )
        x = torch.cat([x_class[on_drawings["helped"]], x_test[on_digits["helped"]]])
        y = torch.cat([y_class[on_drawings["helped"]], y_test[on_digits["helped"]]])
        pixels = (FULL * x[:MAX_SHOWN_IMAGES]).round().int().tolist()
        labels = y[:MAX_SHOWN_IMAGES].tolist()
        return {
            "way": on_digits["way"],
            "with_it": on_digits["with_it"],
            "without_it": on_digits["without_it"],
            "images": on_digits["images"],
            "helped": len(y),
            "harmed": on_digits["harmed"] + on_drawings["harmed"],
            "classes": on_digits["classes"],
            "drawings": {
                "with_it": on_drawings["with_it"],
                "without_it": on_drawings["without_it"],
                "images": on_drawings["images"],
            },
            "shown": [[label, row] for label, row in zip(labels, pixels, strict=True)],
        }

    def measure_loss_without_message(self, seat: int) -> CountsWithAndWithoutMessage:
        """Measure what the class loses on the 360 test digits without the message of this seat."""

        def measure() -> CountsWithAndWithoutMessage:
            digits = load("digits")
            contribution = count_right_answers_with_and_without_message(
                self.messages, seat, digits.x_test.flatten(1), digits.y_test
            )
            return {
                "way": contribution["way"],
                "with_it": contribution["with_it"],
                "without_it": contribution["without_it"],
                "images": contribution["images"],
            }

        return self._compute_once(("loss", seat), measure)

    # -------------------------------------------------------------------------- the teacher's digit
    def collect_votes_on_image(self, image: DigitPixels0To1) -> DigitVotes:
        """Predict the class of a digit (64 pixels, 0–1) by every network and in every way to combine them."""
        x = torch.tensor([image])

        def predict() -> PredictionByTitle:
            with cache_forward_passes():
                return predict_classes_by_all_combinations(self.messages, x)

        predictions = dict(self._compute_once(("digit", image), predict))
        if self.rounds:
            predictions["FENS"] = self._predict_by_fens(image, x)
        no_networks = Prediction(0, torch.empty(0, 1))
        local = predictions.pop("Local only", no_networks)
        classes_of_networks = local.classes[:, 0].tolist()
        senders = [message.seat for message in self.messages if message.network is not None]
        ways = {title: int(classes[0]) for title, (_, classes) in predictions.items()}
        return {"seats": dict(zip(senders, classes_of_networks, strict=True)), "ways": ways}

    def are_network_votes_computed(self, image: DigitPixels0To1) -> bool:
        """Whether `collect_votes_on_image` of this digit has been computed."""
        return ("digit", image) in self._computed

    # ----------------------------------------------------------------------------------- all others
    def measure_relative_logit_sizes(self) -> LogitSizeBySeat:
        """Measure {seat: size of its network's logits, relative to the median network's}."""

        def measure() -> LogitSizeBySeat:
            networks = [message for message in self.messages if message.network is not None]
            return measure_relative_logit_sizes(networks, load("digits").x_test.flatten(1))

        return self._compute_once("loudness", measure)

    def project_class_means_into_plane(self) -> ClassMeanMap:
        """Project all mean digits into a plane: `project_class_means_into_plane` of worth.py."""
        return self._compute_once("plane", lambda: project_class_means_into_plane(self.messages))

    def explain_result_of_fens_rounds(self) -> str:
        """Explain the result of the tiny rounds in a sentence; "" before their end."""
        rounds = self.rounds
        if rounds is None or not rounds.is_over:
            return ""
        accuracies = self.get_test_accuracies()
        counts = [message.counts for message in self.messages if message.network is not None]
        logit_sizes = self.measure_relative_logit_sizes()
        logit_sizes_in_rounds = {
            seat: size for seat, size in logit_sizes.items() if seat in rounds.known
        }
        return explain_fens_result(
            rounds, accuracies["FENS"], accuracies["Ensemble"], counts, logit_sizes_in_rounds
        )
