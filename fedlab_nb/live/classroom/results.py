"""What the messages of one moment are worth: every way to combine them, shares, votes on a digit.

The room makes a new `Results` whenever a message comes or goes, or tiny rounds begin or are
cleared. Each number is computed once, when somebody asks for it. The server has a thread that asks
first, so that no phone waits for a table.
"""

import threading
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import torch
from torch import Tensor

from ...data import load
from ...training.evaluate import cache_passes
from .conductor import find_answer
from .messages import FULL, Message
from .rounds import Rounds, explain_result
from .worth import (
    SHOWN,
    WAYS,
    collect_given_drawings,
    measure_loudness,
    measure_share,
    predict_by_all_ways,
    project_means,
)

Prediction = tuple[int, Tensor]  # of how many students, and the classes


class Results:
    """messages: in the order in which they came;   rounds: the tiny rounds, or None;   before:
    accuracies by way (0-1) before the joker came or somebody was forgotten;   effect: of the message
    that was taken out last, or None."""

    def __init__(
        self,
        messages: Iterable[Message],
        rounds: Rounds | None = None,
        before: dict[str, float] | None = None,
        effect: dict[str, Any] | None = None,
    ) -> None:
        self.messages = tuple(messages)
        self.rounds = rounds
        self.before = before or {}
        self.effect = effect
        self._computed: dict[Hashable, Any] = {}
        self._lock = threading.RLock()

    def _compute_once(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """What `compute()` returned the first time. Two threads that ask at once compute it
        once."""
        if key in self._computed:  # also while another thread computes something else
            return self._computed[key]
        with self._lock:
            if key not in self._computed:
                self._computed[key] = compute()
            return self._computed[key]

    def find_message(self, seat: int) -> Message | None:
        return next((message for message in self.messages if message.seat == seat), None)

    # ------------------------------------------------------------------------------------ every way
    def measure_ways(self) -> list[dict[str, Any]]:
        """What the class is worth so far: of each way its title, how many students it is of, and
        its accuracy on the class's drawings (None: there are none) and on the package's test
        digits, 0-1."""
        known = self.rounds.round if self.rounds else None
        return self._compute_once(("ways", known), self._measure_ways)

    def _measure_ways(self) -> list[dict[str, Any]]:
        images, truth, drawings = self._load_test()
        predictions = dict(self._predict_test())
        if self.rounds:
            predictions["FENS"] = self._predict_by_rounds("test", images)
        rows = []
        for title in WAYS:
            if title not in predictions:
                continue
            count, classes = predictions[title]
            is_right = (classes == truth).double()
            own = float(is_right[..., :drawings].mean()) if drawings else None
            digits = float(is_right[..., drawings:].mean())
            rows.append({"title": title, **WAYS[title], "of": count, "own": own, "digits": digits})
        return rows

    def read_accuracies(self) -> dict[str, float]:
        """The accuracies of all ways on the 360 test digits, 0-1, by title."""
        return {row["title"]: row["digits"] for row in self.measure_ways()}

    def find_answer(self, step: str) -> int | None:
        """Which option of a step's question is right, as far as the run has shown: `find_answer` of
        conductor.py."""
        return find_answer(step, self.read_accuracies(), self.before, self.effect)

    def _load_test(self) -> tuple[Tensor, Tensor, int]:
        """Images `[N, 64]` and classes `[N]` of the class's drawings and, after them, the package's
        test digits; and how many are the class's."""

        def collect() -> tuple[Tensor, Tensor, int]:
            x, y = collect_given_drawings(self.messages)
            digits = load("digits")
            images = torch.cat([x, digits.x_test.flatten(1)])
            return images, torch.cat([y, digits.y_test]), len(y)

        return self._compute_once("test", collect)

    def _predict_test(self) -> dict[str, Prediction]:
        """By title, without the tiny rounds."""

        def predict() -> dict[str, Prediction]:
            images, _, _ = self._load_test()
            with cache_passes():
                return predict_by_all_ways(self.messages, images)

        return self._compute_once("predictions", predict)

    def _predict_by_rounds(self, name: Hashable, images: Tensor) -> Prediction:
        """The classes that FENS gives to `images [N, 64]` after the last round that has ended."""
        rounds = self.rounds
        assert rounds is not None
        key = ("rounds", name, rounds.round)
        return self._compute_once(key, lambda: (len(rounds.table), rounds.answers(images)))

    # ---------------------------------------------------------------------------------- one student
    def measure_share(self, seat: int) -> dict[str, Any]:
        """What a seat's message has brought to the class: `measure_share` on the class's drawings
        and the 360 test digits, and the first few images that only it made right: `shown [[label,
        64 sixteenths], …]`."""
        return self._compute_once(("share", seat), lambda: self._measure_share(seat))

    def has_share(self, seat: int) -> bool:
        """Whether `measure_share` of this seat has been computed."""
        return ("share", seat) in self._computed

    def _measure_share(self, seat: int) -> dict[str, Any]:
        others = [message for message in self.messages if message.seat != seat]
        x_class, y_class = collect_given_drawings(others)
        digits = load("digits")
        x = torch.cat([x_class, digits.x_test.flatten(1)])
        y = torch.cat([y_class, digits.y_test])
        share = measure_share(self.messages, seat, x, y)
        helped = share.pop("helped")
        pixels = (FULL * x[helped[:SHOWN]]).round().int().tolist()
        labels = y[helped[:SHOWN]].tolist()
        share["helped"] = len(helped)
        share["shown"] = [list(pair) for pair in zip(labels, pixels, strict=True)]
        share["of_class"] = len(y_class)
        return share

    def measure_loss(self, seat: int) -> dict[str, Any]:
        """What the class loses on the 360 test digits without this seat: `way`, right answers
        `with_it` and `without_it`, and `images`."""

        def measure() -> dict[str, Any]:
            digits = load("digits")
            share = measure_share(self.messages, seat, digits.x_test.flatten(1), digits.y_test)
            return {name: share[name] for name in ("way", "with_it", "without_it", "images")}

        return self._compute_once(("loss", seat), measure)

    # -------------------------------------------------------------------------- the teacher's digit
    def collect_votes(self, image: tuple[float, ...]) -> dict[str, Any]:
        """What everybody says of a digit, 64 numbers 0-1: `seats` {seat: class} and `ways` {title:
        class}."""
        x = torch.tensor([image])

        def predict() -> dict[str, Prediction]:
            with cache_passes():
                return predict_by_all_ways(self.messages, x)

        predictions = dict(self._compute_once(("digit", image), predict))
        if self.rounds:
            predictions["FENS"] = self._predict_by_rounds(image, x)
        nobody = (0, torch.empty(0, 1))
        alone = predictions.pop("Local only", nobody)[1][:, 0].tolist()
        senders = [message.seat for message in self.messages if message.network is not None]
        ways = {title: int(classes[0]) for title, (_, classes) in predictions.items()}
        return {"seats": dict(zip(senders, alone, strict=True)), "ways": ways}

    def has_votes(self, image: tuple[float, ...]) -> bool:
        """Whether `collect_votes` of this digit has been computed."""
        return ("digit", image) in self._computed

    # ----------------------------------------------------------------------------------- all others
    def measure_loudness(self) -> dict[int, float]:
        """{seat: how many times as large as the middle network's the logits of this seat's network
        are}."""

        def measure() -> dict[int, float]:
            networks = [message for message in self.messages if message.network is not None]
            return measure_loudness(networks, load("digits").x_test.flatten(1))

        return self._compute_once("loudness", measure)

    def project_means(self) -> dict[str, Any]:
        """All mean digits on a plane: `project_means` of worth.py."""
        return self._compute_once("plane", lambda: project_means(self.messages))

    def explain_rounds(self) -> str:
        """One sentence on the result of the tiny rounds; "" before their end."""
        rounds = self.rounds
        if rounds is None or not rounds.is_over:
            return ""
        accuracies = self.read_accuracies()
        counts = [message.counts for message in self.messages if message.network is not None]
        loudness = self.measure_loudness()
        heard = {seat: times for seat, times in loudness.items() if seat in rounds.known}
        return explain_result(rounds, accuracies["FENS"], accuracies["Ensemble"], counts, heard)
