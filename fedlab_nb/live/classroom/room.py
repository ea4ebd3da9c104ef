"""The state of a class: its seats, the messages that have arrived, their results, and what is kept.

A seat is a number; the same number as letters names its office. A student draws digits of two or
three classes, in shares q ~ Dirichlet(α), as in the package's partition `client_dirichlet`. The
largest share is that of class (seat mod 10), so that ten phones have all classes. For an extreme α
there are fewer classes, or more (`Room.choose_labels_to_draw`).

A seat's key is a MAC of its number, so it need not be stored. Of a phone that has not sent a message
the class remembers only how many digits it has drawn, and when it was last seen.
"""

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from ...data import load
from ...data.edits import format_client_letters
from ...data.partition import draw_symmetric_dirichlet
from ...errors import UsageError, check_number, check_whole_number
from ...rng import make_numpy_generator
from ...value_types import JsonObject
from .conductor import (
    BY_NAME,
    AccuracyByTitle,
    Conductor,
    CountsWithAndWithoutMessage,
    StepDescription,
)
from .journal import Journal
from .messages import (
    CLASSES,
    MAX_DRAWINGS,
    MAX_SEATS,
    SIDE,
    Message,
    MessageDescription,
    MonotonicSeconds,
    UncheckedJsonObject,
    parse_message,
)
from .results import ClassResults, DigitVotes, ShownContribution
from .rounds import (
    STAYING_SECONDS,
    PhonesNeededForRounds,
    RoundReply,
    Rounds,
    describe_phones_needed_for_rounds,
)
from .worth import LogitSizeBySeat, collect_test_drawings, generate_samples_with_same_sums

ArrayByFileEntry = dict[str, np.ndarray]  # the arrays of an .npz file by their names in it

MOST = 300  # the most messages in a class
FEWEST = 10  # the fewest drawings that make a test set
ASLEEP = 15.0  # seconds after its last request from which a phone is shown as asleep
GONE = 120.0  # seconds after which a phone that has sent no message is not shown any more
GIVE = 4  # every fourth drawing may be given to the test set
# Guesses that are stored one by one in the file; later ones are stored with the next step.
MAX_KEPT_GUESSES = 5000
ONE_CLASS = 0.02  # below this α a seat may have a single class
MANY_CLASSES = 1.0  # from this α on a seat may have more than three classes
# Fields in the first line of a file that messages are kept in: those that it always has, and those added later.
HEAD = {"alpha", "drawings", "seed", "token", "secret"}
LATER = {"port", "progress"}


@dataclass
class Presence:
    """The last report of a phone.

    seen:  when it came, in seconds of the room's clock
    drawn: number of digits that the phone has drawn
    """

    seen: float
    drawn: int = 0


class AssignedSeat(TypedDict):
    """What a phone that joins the class is told.

    seed:   of the class
    kept:   a sentence on how messages are kept
    keeps:  whether the class keeps messages in a file
    seat:   number of the seat
    office: its letters
    key:    proves that a later request comes from this phone
    labels: the digits to draw, in order
    """

    seed: int
    kept: str
    keeps: bool
    seat: int
    office: str
    key: str
    labels: list[int]


class RemovalEffect(CountsWithAndWithoutMessage):
    """What the removal of a message has changed. office: the letters of its seat"""

    office: str


class SeatDescription(TypedDict):
    """What the projector shows of a seat: its letters, digits drawn so far, asleep or staying."""

    seat: int
    office: str
    drawn: int
    sleeps: bool
    stays: bool


class TeacherDigit(TypedDict):
    """The digit that the teacher has drawn: 64 numbers 0–1, and which digit it is, or None."""

    image: list[float]
    label: int | None


class TeacherDigitVotes(DigitVotes, TeacherDigit):
    """The teacher's digit with everybody's votes on it."""


class PhoneDescription(StepDescription, total=False):
    """What a phone shows: the step, and what is shown of its seat's message.

    sent:     whether the seat has sent its message
    messages: number of messages in the class
    share:    what its message adds to all others
    digit:    the teacher's `image` and `label`, and the vote `own` of its network
    rounds:   the tiny rounds that have ended, `of` how many
    pause:    seconds until the phone shall ask again
    """

    sent: bool
    messages: int
    share: ShownContribution
    digit: dict[str, Any]
    rounds: dict[str, int]
    pause: float


class Room:
    """The state of one class: its seats, messages, results and tiny rounds.

    alpha:    skew of the digits that each phone is asked to draw
    drawings: how many digits each phone draws
    file:     where messages are kept, None if nowhere; the class of an existing file is continued
    clock:    returns seconds that never go back

    Raises UsageError for a value out of range and for a file that is not a class's, OSError if the
    file cannot be written.
    """

    def __init__(
        self,
        alpha: float | str,
        drawings: int | str,
        seed: int | str,
        file: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.about = {
            "alpha": check_number(
                "alpha", alpha, 0, excludes_low=True, hint="smaller is more skewed"
            ),
            "drawings": check_whole_number("drawings", drawings, 5, MAX_DRAWINGS),
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
        # The number of the present tiny rounds. It starts at random, so that a phone does not take the rounds of a
        # restarted class for those that it knows.
        self.serial = secrets.randbelow(1_000_000)
        self.joker: int | None = None  # the seat of the teacher's joker
        # The option of the joker's question that was right. Stored before a removal changes `before`.
        self.joker_answer: int | None = None
        self.simulated: set[int] = set()  # seats of simulated students
        self.conductor = Conductor(clock())
        # The accuracies before the joker came or somebody was forgotten.
        self.before: AccuracyByTitle = {}
        self.effect: RemovalEffect | None = None  # of the message that was removed last
        self.drawing: TeacherDigit | None = None
        self._kept_guesses = 0
        self._is_file_behind = False  # whether the file still has a message that has been forgotten
        if self.journal and self.journal.exists():
            self._restore_class_from_journal(self.journal)
        self._start_new_results()
        self.rewrite_class_file()

    # ---------------------------------------------------------------------- what is kept, and where
    def _restore_class_from_journal(self, journal: Journal) -> None:
        """Continue the class that this file holds. UsageError if it is not the file of a class."""
        try:
            head, *lines = journal.read_json_objects_of_existing_file()
            if head.keys() - LATER != HEAD:
                raise ValueError("the file of something else")
            self._restore_progress(head.pop("progress", {}))
            for line in lines:
                self._restore_from_journal_object(line)
            if self.joker not in self.messages:
                self.joker = None
        except (ValueError, AttributeError, TypeError, KeyError):
            raise UsageError(
                f"{journal.path} is no file of a class; name another one with --keep FILE."
            ) from None
        self.about = head
        # Some seats were assigned to phones that have not sent yet; these seats are not assigned again.
        self.joined = max(self.messages, default=-1) + MOST

    def _restore_from_journal_object(self, stored_object: UncheckedJsonObject) -> None:
        """Apply a line of the file after the first: a message, progress, a guess, or a simulated
        student."""
        if "progress" in stored_object:
            self._restore_progress(stored_object["progress"])
        elif "guess" in stored_object:
            step, seat, choice = stored_object["guess"]
            self.conductor.guesses.setdefault(step, {})[int(seat)] = int(choice)
        elif "simulated" in stored_object:
            self.simulated.add(int(stored_object["simulated"]))
        else:
            message = parse_message(json.dumps(stored_object, separators=(",", ":")))
            self.messages[message.seat] = message

    def _restore_progress(self, progress: UncheckedJsonObject) -> None:
        """Restore the class's progress from what `_describe_progress` returned, or from {}."""
        if not progress:
            return
        self.joker = progress["joker"]
        self.joker_answer = progress.get("joker_answer")
        self.simulated = set(progress["simulated"])
        self.before = progress["before"]
        self.effect = progress["effect"]
        self.conductor.step = BY_NAME[progress["step"]]
        self.conductor.shown = set(progress["shown"])
        self.conductor.guesses = {}
        for step, guesses in progress["guesses"].items():
            self.conductor.guesses[step] = {int(seat): guess for seat, guess in guesses.items()}

    def _describe_progress(self) -> JsonObject:
        """Describe what a restarted class needs apart from the messages.

        Tiny rounds and the teacher's digit are not kept; they start afresh.
        """
        return {
            "joker": self.joker,
            "joker_answer": self.joker_answer,
            "simulated": sorted(self.simulated),
            "before": self.before,
            "effect": self.effect,
            "step": self.conductor.step.name,
            "shown": sorted(self.conductor.shown - {"rounds", "digit"}),
            "guesses": self.conductor.guesses,
        }

    def _start_new_results(self) -> None:
        """Start new results, because messages or the tiny rounds have changed."""
        self.version += 1
        self.results = ClassResults(self.messages.values(), self.rounds, self.before, self.effect)

    def rewrite_class_file(self) -> None:
        """Rewrite the class's file, if it has one, without what is no longer in the class."""
        if self.journal is None:
            return
        head = self.about | {"progress": self._describe_progress()}
        texts = [message.text for message in self.messages.values()]
        self.journal.replace_all_lines([json.dumps(head), *texts])

    def _append_line_to_file(self, line: str) -> None:
        """Append a line to the class's file, if it has one. UsageError if it cannot be written."""
        if self.journal is None:
            return
        if not self.journal.exists():  # somebody has removed it
            self.rewrite_class_file()
        self.journal.append_line(line)

    def append_progress_to_file(self) -> None:
        """Store in the file which step it is, what is shown, and who is simulated."""
        self._append_line_to_file(json.dumps({"progress": self._describe_progress()}))

    def store_that_seat_is_simulated(self, seat: int) -> None:
        """Store in the file that the student of this seat is simulated."""
        if seat not in self.simulated:
            self.simulated.add(seat)
            self._append_line_to_file(json.dumps({"simulated": seat}))

    def sync_file_to_disk(self) -> None:
        """Wait until the class's file, if it has one, is on the disk."""
        if self.journal:
            self.journal.sync_file_to_disk()

    def store_port_in_file(self, port: int) -> None:
        """Store the port in the file, so that a restarted class listens there again."""
        if self.about.get("port") != port:
            self.about["port"] = port
            self.rewrite_class_file()

    @property
    def storage_notice(self) -> str:
        """What is kept of messages, in a sentence for everybody."""
        if self.journal:
            return (
                f"Messages are kept in {self.journal.path.name} on the teacher's computer; "
                "the teacher can save a copy of those that may be saved."
            )
        return (
            "Messages are in the memory of the teacher's computer, and gone when the class ends, "
            "but for those that may be saved: the teacher can write these to a file, and where "
            "nobody can be asked at the end, the class writes them itself."
        )

    # --------------------------------------------------------------------------- seats and messages
    def assign_next_seat(self) -> AssignedSeat:
        """Assign the next free seat: its number, its key, and the digits that it is asked to draw."""
        if self.joined >= MAX_SEATS:
            raise UsageError("The class has no free seat; ask the teacher to start it anew.")
        while self.joined in self.messages:
            self.joined += 1  # a message that was carried by hand has taken this seat
        seat = self.joined
        self.joined += 1
        return {
            "seed": self.about["seed"],
            "kept": self.storage_notice,
            "keeps": self.journal is not None,
            "seat": seat,
            "office": format_client_letters(seat),
            "key": self.compute_secret_key_of_seat(seat),
            "labels": self.choose_labels_to_draw(seat),
        }

    def compute_secret_key_of_seat(self, seat: int) -> str:
        secret = self.about["secret"].encode()
        return hmac.new(secret, str(seat).encode(), hashlib.sha256).hexdigest()[:24]

    def choose_labels_to_draw(self, seat: int) -> list[int]:
        """Choose the digits that a seat is asked to draw, in order.

        They are of two or three classes, with at least two drawings of each. With α < ONE_CLASS or
        α ≥ MANY_CLASSES the number of classes is random.
        """
        alpha = self.about["alpha"]
        drawings = self.about["drawings"]
        rng = make_numpy_generator(self.about["seed"], "seat of a class", seat)
        first_class = seat % CLASSES
        other_classes = np.delete(np.arange(CLASSES), first_class)
        shares = np.sort(draw_symmetric_dirichlet(rng, alpha, CLASSES))[::-1]
        classes = [first_class, *rng.permutation(other_classes)]  # the largest share first
        labels = rng.choice(classes, drawings, p=shares)
        if ONE_CLASS <= alpha < MANY_CLASSES:
            # Two or three classes with two drawings each; the other drawings follow the shares.
            drawn_class_count = len(set(labels.tolist()))
            class_count = int(np.clip(drawn_class_count, 2, min(3, drawings // 2)))
            used_shares = shares[:class_count]
            spare = drawings - 2 * class_count
            counts = 2 + np.floor(spare * used_shares / used_shares.sum()).astype(int)
            counts[0] += drawings - counts.sum()
            labels = rng.permutation(np.repeat(classes[:class_count], counts))
        return swap_labels_so_kept_have_every_class(labels.tolist())

    def note_phone_presence(self, seat: int, drawn_digit_count: int = 0) -> None:
        """Note that a phone is present and has drawn `drawn_digit_count` digits.

        If `MOST` phones are noted already, the one that is gone for longest makes room, if any is gone.
        """
        now = self.clock()
        if seat not in self.present and len(self.present) >= MOST:
            oldest = min(self.present, key=lambda other: self.present[other].seen)
            if now - self.present[oldest].seen < GONE:
                return
            del self.present[oldest]
        self.present[seat] = Presence(now, drawn_digit_count)

    def accept_message(
        self, message_json: str | bytes, sender_seat_or_none_if_carried: int | None = None
    ) -> Message:
        """Accept a message; the same message again changes nothing.

        sender_seat_or_none_if_carried: the seat that sent it over the network, None if it was carried by hand
        Raises UsageError if it cannot be accepted.
        """
        message = parse_message(message_json)
        if sender_seat_or_none_if_carried not in (None, message.seat):
            raise UsageError("The message is that of another seat; open the address anew.")
        earlier_message = self.messages.get(message.seat)
        if earlier_message is not None:
            if earlier_message.text == message.text:
                return earlier_message
            raise UsageError(
                f"Office {message.office_letters} has sent already; one shot is one message."
            )
        if len(self.messages) >= MOST:
            raise UsageError(f"The class has {MOST} messages, and takes no more.")
        # First to the file: a message that cannot be kept is not accepted.
        self._append_line_to_file(message.text)
        self.messages[message.seat] = message
        self._start_new_results()
        return message

    def forget_message(self, seat: int) -> RemovalEffect | None:
        """Remove a message from the class and from the file, as if it had never been sent.

        Returns what the removal has changed; None if the seat had not sent a message. UsageError if
        the file cannot be written; another call tries it again.
        """
        if seat not in self.messages:
            if self._is_file_behind:
                self._remove_message_from_file(seat)
            return None
        self.effect = {
            "office": format_client_letters(seat),
            **self.results.measure_loss_without_message(seat),
        }
        if self.joker is not None and self.joker_answer is None:
            self.joker_answer = self.results.find_right_option_index("joker")
        self.before = self.results.get_test_accuracies()
        del self.messages[seat]
        self.staying.pop(seat, None)
        for guesses in self.conductor.guesses.values():
            guesses.pop(seat, None)
        self.simulated.discard(seat)
        if self.joker == seat:
            self.joker = None
        if self.rounds and seat in self.rounds.known:
            self.rounds = None  # they have learnt from this student, too
        self._start_new_results()
        self._remove_message_from_file(seat)
        return self.effect

    def _remove_message_from_file(self, seat: int) -> None:
        """Rewrite the class's file without the message of this seat. UsageError if that fails."""
        self._is_file_behind = True
        try:
            self.rewrite_class_file()
        except OSError as error:
            raise UsageError(
                f"Office {format_client_letters(seat)} is out of every result, but its message is still "
                f"in the teacher's file, which cannot be written ({error.strerror}). Make room on "
                "the disk and try again."
            ) from None
        self._is_file_behind = False

    def remove_malicious_message(self) -> None:
        """Remove the joker's message, as if the joker had never sent it."""
        if self.joker is None:
            return
        self.forget_message(self.joker)
        self.effect = None
        self._start_new_results()
        self.append_progress_to_file()

    def add_malicious_message(self, message_json: str, seat: int) -> None:
        """Accept the message of the teacher's joker at this seat."""
        accuracies_before = self.results.get_test_accuracies()
        self.accept_message(message_json, seat)
        self.before = accuracies_before
        self.joker = seat
        self.joker_answer = None
        self.simulated.add(seat)
        self._start_new_results()
        self.append_progress_to_file()

    def store_guess(self, seat: int, step_name: str, option_index: int) -> None:
        """Store a seat's guess, in the file as well."""
        self.conductor.store_guess(seat, step_name, option_index)
        if self._kept_guesses < MAX_KEPT_GUESSES:
            self._kept_guesses += 1
            self._append_line_to_file(json.dumps({"guess": [step_name, seat, option_index]}))

    # ---------------------------------------------------------------------------------- tiny rounds
    def start_fens_rounds(self) -> None:
        """Start the tiny rounds with the networks of all messages. UsageError if there is none."""
        self.serial += 1
        self.rounds = Rounds(
            self.messages.values(), self.list_seats_of_staying_phones(), self.serial
        )
        self._start_new_results()

    def discard_fens_rounds(self) -> None:
        """Discard the tiny rounds and the guesses on them, so that new rounds can start."""
        self.rounds = None
        self.conductor.hide_result_and_discard_guesses("rounds")
        self._start_new_results()

    def list_seats_of_staying_phones(self) -> list[int]:
        """List the seats of the phones that stay: their last request is at most `STAYING_SECONDS` old."""
        now = self.clock()
        return [seat for seat, seen in self.staying.items() if now - seen < STAYING_SECONDS]

    def handle_round_request(
        self, seat: int, request_json: str | bytes, now: MonotonicSeconds
    ) -> RoundReply:
        """Take the answer of a phone that stays, and return what it needs for the next round.

        request_json: the phone's answer, see `Rounds.handle_round_request`
        now: seconds

        Returns {} before the rounds have started. Raises UsageError for an answer that is malformed,
        or if the seat has not sent a message.
        """
        if seat not in self.messages:
            raise UsageError("Send your message first; then you may stay.")
        self.staying[seat] = self.clock()
        if not self.rounds:
            return {}
        previous_round = self.rounds.round
        reply = self.rounds.handle_round_request(self.messages[seat], request_json, now)
        self._increment_version_if_round_ended(previous_round)
        return reply

    def end_round_if_due(self, now: MonotonicSeconds) -> None:
        """End the present round if it has waited long enough."""
        if self.rounds:
            previous_round = self.rounds.round
            self.rounds.end_round_if_due(now)
            self._increment_version_if_round_ended(previous_round)

    def _increment_version_if_round_ended(self, rounds_ended_before: int) -> None:
        """Announce new results if a round has ended since `rounds_ended_before`.

        Computing them delays the phones of the next round, so this happens after each round only
        while the results are shown.
        """
        if self.rounds is None or self.rounds.round == rounds_ended_before:
            return
        if self.rounds.is_over or self.conductor.is_result_shown("rounds"):
            self.version += 1

    @property
    def has_real_messages(self) -> bool:
        """Whether the class has messages of real students."""
        return not self.messages.keys() <= self.simulated

    # ---------------------------------------------------------------------------- for the projector
    def describe_messages_for_projector(self) -> list[MessageDescription]:
        """Describe all messages for the projector, in the order in which they came."""
        return [message.projector_description for message in self.messages.values()]

    def describe_seats_for_projector(self) -> list[SeatDescription]:
        """Describe all seats for the projector: letters, drawings so far, asleep or staying."""
        now = self.clock()
        staying = set(self.list_seats_of_staying_phones())
        descriptions = []
        for seat in sorted({*self.present, *self.messages}):
            drawn = 0
            is_asleep = False
            is_gone = False
            if seat in self.present:
                presence = self.present[seat]
                drawn = presence.drawn
                is_asleep = now - presence.seen > ASLEEP
                is_gone = now - presence.seen > GONE
            if is_gone and seat not in self.messages:
                continue
            descriptions.append(
                {
                    "seat": seat,
                    "office": format_client_letters(seat),
                    "drawn": drawn,
                    "sleeps": is_asleep,
                    "stays": seat in staying,
                }
            )
        return descriptions

    def describe_phones_needed_for_rounds(
        self, logit_size_by_seat: LogitSizeBySeat
    ) -> PhonesNeededForRounds:
        """Describe who has to stay for the tiny rounds.

        logit_size_by_seat: {seat: size of its network's logits, relative to the median network's}
        """
        return describe_phones_needed_for_rounds(
            self.messages, self.list_seats_of_staying_phones(), logit_size_by_seat
        )

    # ------------------------------------------------------------------------------ teacher's digit
    def set_teacher_digit(
        self, pixels_0_to_1: list[float], label_or_none_if_untold: int | None = None
    ) -> None:
        """Set the digit that the teacher has drawn.

        pixels_0_to_1: 64 numbers from 0 to 1
        label_or_none_if_untold: which digit it is, None as long as the teacher has not told
        """
        is_pixel = [isinstance(value, int | float) and 0 <= value <= 1 for value in pixels_0_to_1]
        if len(pixels_0_to_1) != SIDE * SIDE or not all(is_pixel):
            raise UsageError("A drawing is 64 numbers from 0 to 1.")
        if label_or_none_if_untold is not None and label_or_none_if_untold not in range(CLASSES):
            raise UsageError("A digit is one of 0 to 9.")
        self.drawing = {
            "image": [float(value) for value in pixels_0_to_1],
            "label": label_or_none_if_untold,
        }
        self.version += 1

    def clear_teacher_digit(self) -> None:
        """Remove the teacher's digit."""
        self.drawing = None
        self.conductor.hide_result_and_discard_guesses("digit")
        self.version += 1

    def collect_votes_on_teacher_digit(self, results: ClassResults) -> TeacherDigitVotes | None:
        """Collect everybody's votes on the teacher's digit, with its `image` and `label`.

        None if there is no digit, or if these results have no votes on it yet.
        """
        if self.drawing is None:
            return None
        image = tuple(self.drawing["image"])
        if not results.are_network_votes_computed(image):
            return None
        return {**results.collect_votes_on_image(image), **self.drawing}

    def find_right_option_index_of_present_step(self, results: ClassResults) -> int | None:
        """Find which option of the present step's question is right; None if that is not known.

        The answer on the joker stays the same after the joker, or a student, has been removed.
        """
        step_name = self.conductor.step.name
        if step_name == "joker":
            if self.joker_answer is not None:
                return self.joker_answer
            if self.joker is None:
                return None
        return results.find_right_option_index(step_name)

    # -------------------------------------------------------------------------------- for one phone
    def describe_for_phone(self, seat: int, results: ClassResults) -> PhoneDescription:
        """Describe the class for the phone of a seat.

        The step with its question, what the seat's message adds, and its vote on the teacher's digit.
        Results are included only if the teacher has shown them and they have been computed.
        """
        conductor = self.conductor
        description: PhoneDescription = {**conductor.describe_present_step(self.clock(), seat)}
        description["sent"] = seat in self.messages
        description["messages"] = len(self.messages)
        if "question" in description and description["is_shown"] and results is self.results:
            description["question"]["answer"] = self.find_right_option_index_of_present_step(
                results
            )
        if conductor.is_result_shown("reveal") and results.has_measured_contribution(seat):
            description["share"] = results.measure_contribution(seat)
        if conductor.step.name == "digit":
            votes = self.collect_votes_on_teacher_digit(results)
            if votes:
                label = votes["label"] if conductor.is_result_shown("digit") else None
                own = votes["seats"].get(seat)
                description["digit"] = {"image": votes["image"], "own": own, "label": label}
        if self.rounds:
            description["rounds"] = {
                "round": self.rounds.round,
                "of": self.rounds.describe_progress()["of"],
            }
        return description

    # ----------------------------------------------------------------------------------- afterwards
    def make_arrays_of_class_dataset(self) -> ArrayByFileEntry:
        """Make the arrays of an `.npz` data set, with one client per student, that panels can open.

        The drawings themselves stayed on the phones. A student's samples are random, with as many
        samples of each class as were drawn and the same sums (`generate_samples_with_same_sums`), except
        that pixels are clipped to 0–1. The test images are the drawings that were given for testing,
        or the package's test digits if fewer than FEWEST were given. Only students who allowed it are
        included.

        Raises UsageError if there is too little to save.
        """
        allowed = [m for m in self.results.messages if m.keep and m.sums and m.seat != self.joker]
        seed = self.about["seed"]
        # One block of samples for each student and class.
        samples: list[np.ndarray] = []
        classes: list[int] = []
        clients: list[str] = []
        for message in allowed:
            for c in np.flatnonzero(message.counts).tolist():
                rng = make_numpy_generator(seed, "rows", message.seat, c)
                samples.append(generate_samples_with_same_sums(message.sums, c, rng))
                classes.append(c)
                clients.append(message.office_and_nickname)
        if len(set(classes)) < 2:
            raise UsageError(
                "No two classes of those who let them be saved are here; nothing is saved."
            )
        counts = [len(block) for block in samples]
        pixels = np.concatenate(samples).clip(0, 1).astype(np.float32)
        digits = load("digits")
        x, y = collect_test_drawings(allowed)
        if len(y) < FEWEST:
            x, y = digits.x_test, digits.y_test
        is_known = np.isin(y.numpy(), classes)
        return {
            "x_train": pixels.reshape(-1, SIDE, SIDE),
            "y_train": np.repeat(classes, counts),
            "client_train": np.repeat(clients, counts),
            "x_test": x.numpy().reshape(-1, SIDE, SIDE)[is_known],
            "y_test": y.numpy()[is_known],
            "messages": np.array([m.text for m in allowed]),
            "about": np.array(
                f"These are you: {len(allowed)} offices of a class. The drawings in your sums "
                "stayed with you; these are made from the sums, as many and with the same sums."
            ),
        }


def swap_labels_so_kept_have_every_class(labels_to_draw: list[int]) -> list[int]:
    """Reorder labels so that the drawings that are kept have every class.

    The drawings at every GIVE-th position may be given to the test set. If one of them is the only
    one of its class, it changes places with a kept drawing of the class that is kept most often.
    """
    labels = list(labels_to_draw)
    given = range(GIVE - 1, len(labels), GIVE)
    kept = [i for i in range(len(labels)) if i not in given]
    for i in given:
        kept_labels = [labels[j] for j in kept]
        if labels[i] in kept_labels:
            continue
        most_frequent = max(kept_labels, key=kept_labels.count)
        j = kept[kept_labels.index(most_frequent)]
        labels[i], labels[j] = labels[j], labels[i]
    return labels
