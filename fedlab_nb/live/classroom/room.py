"""The class: who has which digits to draw, what has arrived, what is made of it, and what of it is
kept.

A seat is a number, and its office has the seat's letters. Its student draws digits of two or three
classes; how evenly, says q ~ Dirichlet(α), as in the package's partition `client_dirichlet`. Class
(seat mod 10) has the largest share, so that ten phones have all classes. Where α is extreme there
are fewer classes, or more (`Room.choose_labels`). A seat's key is a MAC of its number: of a phone
that has not sent nothing is remembered but when it was last seen.
"""

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...data import load
from ...data.edits import format_letters
from ...data.partition import draw_dirichlet
from ...errors import UsageError, check_number, check_whole_number
from ...rng import numpy_rng
from .conductor import BY_NAME, Conductor
from .journal import Journal
from .messages import CLASSES, MOST_DRAWINGS, MOST_SEATS, SIDE, Message, read
from .results import Results
from .rounds import HERE, Rounds, describe_need
from .worth import collect_given_drawings, make_rows

MOST = 300  # messages in a class
FEWEST = 10  # test drawings that are a test set
ASLEEP = 15.0  # seconds after its last word that a phone is shown as asleep
GONE = 120.0  # and after these it has no desk, where it has not sent
GIVE = 4  # every so many-th drawing may be given to the test set
MOST_KEPT_GUESSES = 5000  # lines in the class's own file; later ones are kept with the next step
ONE_CLASS = 0.02  # below this α a seat may have one class
MANY_CLASSES = 1.0  # and from this one on more than three
# Of the first line of a file that messages are kept in.
HEAD = {"alpha", "drawings", "seed", "token", "secret"}
LATER = {"port", "progress"}


@dataclass
class Presence:
    """What a phone has last said of itself: when, and how many digits it has drawn."""

    seen: float
    drawn: int = 0


class Room:
    """alpha: of the mixes;   drawings: how many each phone makes;   file: where messages are kept, or
    None: nowhere. A class whose file is there goes on as it was begun.   clock: seconds that never
    go back.

    UsageError for a value out of range, and for a file of something else; OSError where it cannot
    be written.
    """

    def __init__(
        self,
        alpha: Any,
        drawings: Any,
        seed: Any,
        file: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.about = {
            "alpha": check_number("alpha", alpha, 0, open_low=True, hint="smaller is more skewed"),
            "drawings": check_whole_number("drawings", drawings, 5, MOST_DRAWINGS),
            "seed": check_whole_number("seed", seed),
            "token": secrets.token_hex(4),
            "secret": secrets.token_hex(16),
        }
        self.journal = Journal(file) if file else None
        self.clock = clock
        self.joined = 0
        self.version = 0
        self.messages: dict[int, Message] = {}
        self.present: dict[int, Presence] = {}
        self.staying: dict[int, float] = {}  # when a phone that stays was last heard
        self.rounds: Rounds | None = None
        # Which tiny rounds these are. A restarted class has others than those that phones still
        # know.
        self.serial = secrets.randbelow(1_000_000)
        self.joker: int | None = None  # the seat of the teacher's joker
        self.simulated: set[int] = set()  # seats of no real student
        self.conductor = Conductor(clock())
        # The accuracies before the joker came or somebody was forgotten.
        self.before: dict[str, float] = {}
        self.effect: dict[str, Any] | None = None  # of the message that was taken out last
        # The teacher's digit: `image`, 64 numbers, and `label`, or None.
        self.drawing: dict[str, Any] | None = None
        self._kept_guesses = 0
        self._is_file_behind = False  # somebody has been forgotten whose message is still in it
        if self.journal and self.journal.exists():
            self._go_on(self.journal)
        self._note_change()
        self.write_file()

    # ---------------------------------------------------------------------- what is kept, and where
    def _go_on(self, journal: Journal) -> None:
        """Go on with the class in this file."""
        try:
            head, *lines = journal.read()
            if head.keys() - LATER != HEAD:
                raise ValueError("the file of something else")
            self._apply_progress(head.pop("progress", {}))
            for line in lines:
                self._apply_line(line)
            if self.joker not in self.messages:
                self.joker = None
        except (ValueError, AttributeError, TypeError, KeyError):
            raise UsageError(
                f"{journal.path} is no file of a class; name another one with --keep FILE."
            ) from None
        self.about = head
        self.joined = max(self.messages, default=-1) + MOST  # some that joined have not sent

    def _apply_line(self, line: dict[str, Any]) -> None:
        """What a line of the file after the first one says: a message, progress, a guess, or a
        simulated student."""
        if "progress" in line:
            self._apply_progress(line["progress"])
        elif "guess" in line:
            step, seat, choice = line["guess"]
            self.conductor.guesses.setdefault(step, {})[int(seat)] = int(choice)
        elif "simulated" in line:
            self.simulated.add(int(line["simulated"]))
        else:
            message = read(json.dumps(line, separators=(",", ":")))
            self.messages[message.seat] = message

    def _apply_progress(self, progress: dict[str, Any]) -> None:
        """Be where the class was: `progress` as `_describe_progress` gives it, or {}."""
        if not progress:
            return
        self.joker = progress["joker"]
        self.simulated = set(progress["simulated"])
        self.before = progress["before"]
        self.effect = progress["effect"]
        self.conductor.step = BY_NAME[progress["step"]]
        self.conductor.shown = set(progress["shown"])
        self.conductor.guesses = {}
        for step, guesses in progress["guesses"].items():
            self.conductor.guesses[step] = {int(seat): guess for seat, guess in guesses.items()}

    def _describe_progress(self) -> dict[str, Any]:
        """What a restarted class needs beside the messages. Tiny rounds and the teacher's digit are
        not kept: they begin anew."""
        return {
            "joker": self.joker,
            "simulated": sorted(self.simulated),
            "before": self.before,
            "effect": self.effect,
            "step": self.conductor.step.name,
            "shown": sorted(self.conductor.shown - {"rounds", "digit"}),
            "guesses": self.conductor.guesses,
        }

    def _note_change(self) -> None:
        """Messages, or the tiny rounds, are others: so are all results."""
        self.version += 1
        self.results = Results(self.messages.values(), self.rounds, self.before, self.effect)

    def write_file(self) -> None:
        """Write the class's own file anew, where it has one: without what is no longer in the
        class."""
        if self.journal is None:
            return
        head = self.about | {"progress": self._describe_progress()}
        texts = [message.text for message in self.messages.values()]
        self.journal.rewrite([json.dumps(head), *texts])

    def _append(self, line: str) -> None:
        """One more line for the class's own file, where it has one. UsageError where it cannot be
        written."""
        if self.journal is None:
            return
        if not self.journal.exists():  # somebody has removed it
            self.write_file()
        self.journal.append(line)

    def note_progress(self) -> None:
        """Keep which step it is, what is shown, and who is simulated."""
        self._append(json.dumps({"progress": self._describe_progress()}))

    def note_simulated(self, seat: int) -> None:
        """The student of this seat is no real one."""
        if seat not in self.simulated:
            self.simulated.add(seat)
            self._append(json.dumps({"simulated": seat}))

    def sync(self) -> None:
        """Wait until the class's own file, where it has one, is on the disk."""
        if self.journal:
            self.journal.sync()

    def set_port(self, port: int) -> None:
        """Remember where the class listens, so that it is there again after a restart."""
        if self.about.get("port") != port:
            self.about["port"] = port
            self.write_file()

    @property
    def storage_notice(self) -> str:
        """What is kept of messages, in a sentence for everybody."""
        if self.journal:
            where = f"Messages are kept in {self.journal.path.name} on the teacher's computer"
        else:
            where = (
                "Messages are in the memory of the teacher's computer, and gone when the class ends"
            )
        return f"{where}; the teacher can save those that may be saved."

    # --------------------------------------------------------------------------- seats and messages
    def assign_seat(self) -> dict[str, Any]:
        """The next free seat: its number, its key, and the digits that it is asked to draw."""
        if self.joined >= MOST_SEATS:
            raise UsageError("The class has no free seat; ask the teacher to start it anew.")
        while self.joined in self.messages:  # one that was carried by hand
            self.joined += 1
        seat = self.joined
        self.joined += 1
        return {
            "seed": self.about["seed"],
            "kept": self.storage_notice,
            "keeps": self.journal is not None,
            "seat": seat,
            "office": format_letters(seat),
            "key": self.make_key(seat),
            "labels": self.choose_labels(seat),
        }

    def make_key(self, seat: int) -> str:
        secret = self.about["secret"].encode()
        return hmac.new(secret, str(seat).encode(), hashlib.sha256).hexdigest()[:24]

    def choose_labels(self, seat: int) -> list[int]:
        """The digits that it is asked to draw, in order: two or three classes with two drawings or
        more of each. With α < ONE_CLASS or ≥ MANY_CLASSES there are as many classes as the draw
        says."""
        alpha, drawings = self.about["alpha"], self.about["drawings"]
        rng = numpy_rng(self.about["seed"], "seat of a class", seat)
        first = seat % CLASSES
        shares = np.sort(draw_dirichlet(rng, alpha, CLASSES))[::-1]
        classes = [first, *rng.permutation(np.delete(np.arange(CLASSES), first))]
        labels = rng.choice(classes, drawings, p=shares)
        if ONE_CLASS <= alpha < MANY_CLASSES:
            many = int(np.clip(len(set(labels.tolist())), 2, min(3, drawings // 2)))
            spare = drawings - 2 * many
            counts = 2 + np.floor(spare * shares[:many] / shares[:many].sum()).astype(int)
            counts[0] += drawings - counts.sum()
            labels = rng.permutation(np.repeat(classes[:many], counts))
        return keep_every_class(labels.tolist())

    def note_presence(self, seat: int, drawn: int = 0) -> None:
        """A phone is here, and has drawn so many digits."""
        now = self.clock()
        if seat not in self.present and len(self.present) >= MOST:
            oldest = min(self.present, key=lambda other: self.present[other].seen)
            if now - self.present[oldest].seen < GONE:
                return
            del self.present[oldest]
        self.present[seat] = Presence(now, drawn)

    def accept(self, text: str | bytes, seat: int | None = None) -> Message:
        """Take a message, that of `seat` where it came by the network; the same one again changes
        nothing. UsageError where it cannot be taken."""
        message = read(text)
        if seat not in (None, message.seat):
            raise UsageError("The message is that of another seat; open the address anew.")
        before = self.messages.get(message.seat)
        if before is not None and before.text == message.text:
            return before
        if before is not None:
            raise UsageError(f"Office {message.office} has sent already; one shot is one message.")
        if len(self.messages) >= MOST:
            raise UsageError(f"The class has {MOST} messages, and takes no more.")
        self._append(message.text)  # first: what cannot be kept has not arrived
        self.messages[message.seat] = message
        self._note_change()
        return message

    def forget(self, seat: int) -> dict[str, Any] | None:
        """Take a message out, as if it had never been sent; also out of the file. Returns what that
        has changed: `office`, `way`, and right answers of the 360 test digits `with_it` and
        `without_it`; None where there was none."""
        if seat not in self.messages:
            if self._is_file_behind:
                self._remove_from_file(seat)
            return None
        self.effect = {"office": format_letters(seat), **self.results.measure_loss(seat)}
        self.before = self.results.read_accuracies()
        del self.messages[seat]
        self.staying.pop(seat, None)
        for guesses in self.conductor.guesses.values():
            guesses.pop(seat, None)
        self.simulated.discard(seat)
        if self.joker == seat:
            self.joker = None
        if self.rounds and seat in self.rounds.known:
            self.rounds = None  # what they learnt is of this student, too
        self._note_change()
        self._remove_from_file(seat)
        return self.effect

    def _remove_from_file(self, seat: int) -> None:
        """Write the class's own file without the message of this seat. UsageError where that
        fails."""
        self._is_file_behind = True
        try:
            self.write_file()
        except OSError as error:
            raise UsageError(
                f"Office {format_letters(seat)} is out of every result, but its message is still in the "
                f"teacher's file, which cannot be written ({error.strerror}). Make room on the disk and try again."
            ) from None
        self._is_file_behind = False

    def take_joker_out(self) -> None:
        """The teacher's joker has never been there; nobody has been forgotten."""
        if self.joker is None:
            return
        self.forget(self.joker)
        self.effect = None
        self._note_change()
        self.note_progress()

    def add_joker(self, text: str, seat: int) -> None:
        """The teacher's joker sends."""
        before = self.results.read_accuracies()
        self.accept(text, seat)
        self.before = before
        self.joker = seat
        self.simulated.add(seat)
        self._note_change()
        self.note_progress()

    def guess(self, seat: int, step: Any, choice: Any) -> None:
        """A seat's guess, as `Conductor.guess` takes it."""
        self.conductor.guess(seat, step, choice)
        if self._kept_guesses < MOST_KEPT_GUESSES:
            self._kept_guesses += 1
            self._append(json.dumps({"guess": [step, seat, choice]}))

    # ---------------------------------------------------------------------------------- tiny rounds
    def start_rounds(self) -> None:
        """Begin the tiny rounds, with the networks that are here. UsageError without a network."""
        self.serial += 1
        self.rounds = Rounds(self.messages.values(), self.find_staying(), self.serial)
        self._note_change()

    def clear_rounds(self) -> None:
        """Take the tiny rounds' result away, so that others can begin; those who guessed guess once
        more."""
        self.rounds = None
        self.conductor.cover("rounds")
        self._note_change()

    def find_staying(self) -> list[int]:
        """The seats of the phones that stay, and have been heard of lately."""
        now = self.clock()
        return [seat for seat, seen in self.staying.items() if now - seen < HERE]

    def stay(self, seat: int, text: str | bytes, now: float) -> dict[str, Any]:
        """What a phone that stays is told at `now` (seconds), after its answer `text` to a round;
        {} before the rounds. UsageError for an answer that is none, and for who has not sent."""
        if seat not in self.messages:
            raise UsageError("Send your message first; then you may stay.")
        self.staying[seat] = self.clock()
        if not self.rounds:
            return {}
        before = self.rounds.round
        answer = self.rounds.take(self.messages[seat], text, now)
        self._note_round(before)
        return answer

    def end_round(self, now: float) -> None:
        """End the round that goes on, where it has waited long enough."""
        if self.rounds:
            before = self.rounds.round
            self.rounds.end_round(now)
            self._note_round(before)

    def _note_round(self, before: int) -> None:
        """Results are others where a round has ended. They cost time that the phones of the next
        round wait, so that they follow each round only where they are seen."""
        if self.rounds is None or self.rounds.round == before:
            return
        if self.rounds.is_over or self.conductor.is_shown("rounds"):
            self.version += 1

    @property
    def has_guests(self) -> bool:
        """Whether messages are here that no simulated student has sent."""
        return not self.messages.keys() <= self.simulated

    # ---------------------------------------------------------------------------- for the projector
    def describe_messages(self) -> list[dict[str, Any]]:
        """What has come from whom, in the order in which it came: `Message.description`."""
        return [message.description for message in self.messages.values()]

    def describe_seats(self) -> list[dict[str, Any]]:
        """The offices for the projector, by seat: letters, drawings so far, and whether the phone
        sleeps or stays."""
        now = self.clock()
        staying = set(self.find_staying())
        shown = []
        for seat in sorted({*self.present, *self.messages}):
            presence = self.present.get(seat)
            is_gone = presence is not None and now - presence.seen > GONE
            if is_gone and seat not in self.messages:
                continue
            shown.append(
                {
                    "seat": seat,
                    "office": format_letters(seat),
                    "drawn": presence.drawn if presence else 0,
                    "sleeps": presence is not None and now - presence.seen > ASLEEP,
                    "stays": seat in staying,
                }
            )
        return shown

    def describe_need(self, loudness: dict[int, float]) -> dict[str, Any]:
        """Who has to stay for the tiny rounds, see `describe_need` of rounds.py; `loudness`: of
        each seat's network."""
        return describe_need(self.messages, self.find_staying(), loudness)

    # ------------------------------------------------------------------------------ teacher's digit
    def draw(self, image: list[Any], label: Any = None) -> None:
        """The teacher's digit, 64 numbers 0-1; `label`: which one it is, where it is told."""
        is_pixel = [isinstance(value, int | float) and 0 <= value <= 1 for value in image]
        if len(image) != SIDE * SIDE or not all(is_pixel):
            raise UsageError("A drawing is 64 numbers from 0 to 1.")
        if label is not None and label not in range(CLASSES):
            raise UsageError("A digit is one of 0 to 9.")
        self.drawing = {"image": [float(value) for value in image], "label": label}
        self.version += 1

    def clear_drawing(self) -> None:
        """No digit of the teacher is there any more."""
        self.drawing = None
        self.conductor.cover("digit")
        self.version += 1

    def collect_votes(self, results: Results) -> dict[str, Any] | None:
        """What everybody says of the teacher's digit: `seats` {seat: class}, `ways` {title: class},
        `label`, `image`. None without a digit, and as long as these results have no votes on it."""
        if self.drawing is None:
            return None
        image = tuple(self.drawing["image"])
        if not results.has_votes(image):
            return None
        return {**results.collect_votes(image), **self.drawing}

    # -------------------------------------------------------------------------------- for one phone
    def describe_for_phone(self, seat: int, results: Results) -> dict[str, Any]:
        """What the phone of a seat is told: the step and its question, its share and its vote, as
        far as they are shown and have been computed in these results."""
        conductor = self.conductor
        description = conductor.describe(self.clock(), seat)
        description["sent"] = seat in self.messages
        description["messages"] = len(self.messages)
        if "question" in description and description["is_shown"] and results is self.results:
            description["question"]["answer"] = results.find_answer(conductor.step.name)
        if conductor.is_shown("reveal") and results.has_share(seat):
            description["share"] = results.measure_share(seat)
        if conductor.step.name == "digit":
            votes = self.collect_votes(results)
            if votes:
                label = votes["label"] if conductor.is_shown("digit") else None
                own = votes["seats"].get(seat)
                description["digit"] = {"image": votes["image"], "own": own, "label": label}
        if self.rounds:
            description["rounds"] = {"round": self.rounds.round, "of": self.rounds.about()["of"]}
        return description

    # ----------------------------------------------------------------------------------- afterwards
    def make_arrays(self) -> dict[str, np.ndarray]:
        """The class as a data set with clients of its own: arrays of an `.npz` that every panel
        opens. UsageError where there is too little.

        Drawings stayed on the phones. A student's rows are made from the sums: as many of each
        class as were drawn, with the very same sums (`make_rows`), but for numbers that are cut off
        at 0 and 1. Test images are the drawings that were given, or the package's test digits where
        they are fewer than 10. `messages`: what was sent, by those alone who allowed it.
        """
        allowed = [m for m in self.results.messages if m.keep and m.sums and m.seat != self.joker]
        pairs = [(m, c) for m in allowed for c in np.flatnonzero(m.counts).tolist()]
        classes = [c for _, c in pairs]
        if len(set(classes)) < 2:
            raise UsageError(
                "No two classes of those who let them be saved are here; nothing is saved."
            )
        seed = self.about["seed"]
        rows = [make_rows(m.sums, c, numpy_rng(seed, "rows", m.seat, c)) for m, c in pairs]
        counts = [len(own) for own in rows]
        digits = load("digits")
        x, y = collect_given_drawings(allowed)
        if len(y) < FEWEST:
            x, y = digits.x_test, digits.y_test
        known = np.isin(y.numpy(), classes)
        return {
            "x_train": np.concatenate(rows).clip(0, 1).astype(np.float32).reshape(-1, SIDE, SIDE),
            "y_train": np.repeat(classes, counts),
            "client_train": np.repeat([m.name for m, _ in pairs], counts),
            "x_test": x.numpy().reshape(-1, SIDE, SIDE)[known],
            "y_test": y.numpy()[known],
            "messages": np.array([m.text for m in allowed]),
            "about": np.array(
                f"These are you: {len(allowed)} offices of a class. The drawings in your sums "
                "stayed with you; these are made from the sums, as many and with the same sums."
            ),
        }


def keep_every_class(labels: list[int]) -> list[int]:
    """The labels in another order where need be: those at every GIVE-th place may be given to the
    test set, and what is left must have every class."""
    labels = list(labels)
    given = range(GIVE - 1, len(labels), GIVE)
    kept = [i for i in range(len(labels)) if i not in given]
    for i in given:
        if labels[i] in [labels[j] for j in kept]:
            continue
        often = max(kept, key=lambda j: [labels[q] for q in kept].count(labels[j]))
        labels[i], labels[often] = labels[often], labels[i]
    return labels
