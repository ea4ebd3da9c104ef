"""Simulated students, for a rehearsal before the lesson.

Each takes a seat, "draws" images of the classes that the seat is asked for (they are images of the
package's digits), and trains the network. When the teacher goes on to the step *Send*, they send one
after another. Then they guess and stay for the tiny rounds, as phones do. If all students of the
class are simulated, one of them is forgotten in the step *Forget*.

The joker is a malicious student. It labels each digit c as 9 - c, and multiplies its change of the
network by -100 before it sends the network.

Training a network and applying all networks take longer than a moment. They run in a thread, so that
the projector goes on.
"""

import asyncio
import base64
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ...data import load
from ...errors import FedlabError
from ...models import Network, copy_model_state, load_state
from ...rng import make_numpy_generator
from ...tensor_types import ClientLogits, ClientWeights, Images, Labels
from ...training import ClientModels, Recipe, train_clients_in_place
from .messages import (
    CLASSES,
    SIDE,
    MonotonicSeconds,
    build_untrained_class_network,
    encode_message,
    encode_tensor_in_base64,
)
from .room import GIVE, Room
from .rounds import PackedNetwork

JOKER_FACTOR = -100.0  # by which the joker multiplies its change of the network
JOKER_DRAWINGS = 8
# All times are in seconds.
TICK = 0.1  # between two looks of the simulated students at the class
PRESENT = 2.0  # after which a student reports again that it is present
COMING = 6.0  # in which all students arrive
SENDING = 10.0  # in which all students send
MAX_ARRIVAL_GAP = 0.5  # the longest time between two students who arrive, or send
DRAWING = 3.0  # that a student draws
VOLUNTEERING = 10.0  # after the step *Forget* has begun, one student is forgotten


@dataclass
class Drawings:
    """What the simulated student of a seat has drawn: images x `[n, 1, 8, 8]`, 0–1, and labels y `[n]`."""

    seat: int
    x: Tensor
    y: Tensor


@dataclass
class Student:
    """A simulated student.

    x, y:     the drawings that it keeps, `[n, 64]`, and their labels `[n]`
    text:     its message, made from these drawings
    came:     when it came, in seconds of the room's clock
    has_sent: whether it has sent its message, even if the message was removed later
    serial:   number of the tiny rounds whose networks it has
    round:    the last round that it has answered, -1 if none
    logits:   of these networks on x, `[M, n, C]`
    """

    seat: int
    x: Tensor
    y: Tensor
    text: str
    came: float = 0.0
    has_sent: bool = False
    serial: int = 0
    round: int = -1
    logits: Tensor = field(default_factory=lambda: torch.empty(0))

    def lacks_networks_of_current_rounds(self, room: Room) -> bool:
        """Whether tiny rounds are in progress whose networks the student does not have."""
        return room.rounds is not None and room.rounds.serial != self.serial

    def compute_and_store_network_logits(
        self, packed_networks: list[PackedNetwork], rounds_serial: int
    ) -> None:
        """Compute and keep the logits of all networks on the student's drawings.

        rounds_serial: number of the tiny rounds that the networks belong to
        """
        models = [unpack_network(packed) for packed in packed_networks]
        self.logits = ClientModels(models).logits(self.x.view(-1, 1, SIDE, SIDE))
        self.serial = rounds_serial
        self.round = -1

    def answer_new_round(self, room: Room, now: MonotonicSeconds) -> None:
        """Ask where the tiny rounds are, and answer if a new round has begun."""
        reply = room.handle_round_request(self.seat, "{}", now)
        if not reply:
            return
        if reply["serial"] != self.serial:
            reply = room.handle_round_request(self.seat, '{"networks": true}', now)
            self.compute_and_store_network_logits(reply["networks"], reply["serial"])
        has_answered = reply["round"] == self.round
        are_over = reply["round"] >= reply["of"]
        if has_answered or are_over:
            return
        self.round = reply["round"]
        received = np.frombuffer(base64.b64decode(reply["weights"]), "<f4").reshape(-1, CLASSES)
        weights = compute_weights_after_gradient_step_of_size_1(
            torch.from_numpy(received.copy()), self.logits, self.y
        )
        text = json.dumps({"round": self.round, "weights": encode_tensor_in_base64(weights)})
        room.handle_round_request(self.seat, text, now)


def compute_weights_after_gradient_step_of_size_1(
    weights: ClientWeights, logits: ClientLogits, labels: Labels
) -> ClientWeights:
    """Compute the weights λ `[M, C]` after one gradient step of size 1; `weights` stay as they are.

    The loss is the mean cross-entropy of the scores Σ_k λ_kc z_kc.

    weights: λ before the step, `[M, C]`
    logits:  z of the networks, `[M, N, C]`
    labels:  labels `[N]`
    """
    scores = (weights[:, None] * logits).sum(0)
    gradient_by_score = scores.softmax(1) - F.one_hot(labels, CLASSES)
    return weights - (gradient_by_score * logits).mean(1)


def unpack_network(packed_network: PackedNetwork) -> Network:
    """Decode a network as a phone receives it; tensors with a scale are 8-bit codes."""
    values = []
    for text, scale in packed_network:
        data = base64.b64decode(text)
        if scale:
            codes = np.frombuffer(data, "u1").astype("f4")
            values.append((codes - 127) * np.float32(scale))
        else:
            values.append(np.frombuffer(data, "<f4"))
    model = build_untrained_class_network()
    vector = torch.from_numpy(np.concatenate(values))
    torch.nn.utils.vector_to_parameters(vector, model.parameters())
    return model


# ----------------------------------------------------------------------------- students and a joker
def assign_seats_and_choose_drawings(room: Room, student_count: int) -> Iterator[Drawings]:
    """Give `student_count` simulated students a seat, and choose the images that each of them draws.

    Students draw different images as long as there are enough. The simulated students that a
    restarted class already has come first, with the same drawings as before.
    """
    digits = load("digits")
    labels = digits.y_train.numpy()
    order = make_numpy_generator(room.about["seed"], "rehearsal").permutation(len(labels))
    images_by_class = [order[labels[order] == c] for c in range(CLASSES)]
    known_seats = sorted(room.simulated - {room.joker})
    # How many images of each class all seats below `counted_seats` have drawn.
    used: Counter[int] = Counter()
    counted_seats = 0
    for number in range(student_count):
        if number < len(known_seats):
            seat = known_seats[number]
        else:
            seat = room.assign_next_seat()["seat"]
        while counted_seats < seat:
            used.update(room.choose_labels_to_draw(counted_seats))
            counted_seats += 1
        rows = []
        next_image = Counter(used)
        for label in room.choose_labels_to_draw(seat):
            images = images_by_class[label]
            rows.append(int(images[next_image[label] % len(images)]))
            next_image[label] += 1
        yield Drawings(seat, digits.x_train[rows], digits.y_train[rows])


def make_simulated_student(drawings: Drawings, seed: int) -> Student:
    """Make a student from drawings: train the network and write the message.

    Every GIVE-th drawing is given to the class's test set.
    """
    x, y = drawings.x, drawings.y
    given = range(GIVE - 1, len(y), GIVE)
    kept = [i for i in range(len(y)) if i not in given]
    model = train_network(x[kept], y[kept], drawings.seat, seed)
    text = encode_message(drawings.seat, "", x.flatten(1), y, given, model)
    return Student(drawings.seat, x[kept].flatten(1), y[kept], text)


def make_simulated_students(room: Room, student_count: int) -> Iterator[Student]:
    """Make `student_count` students who have finished drawing."""
    for drawings in assign_seats_and_choose_drawings(room, student_count):
        student = make_simulated_student(drawings, room.about["seed"])
        student.has_sent = student.seat in room.messages
        yield student


def train_network(drawn_images: Images, labels: Labels, seat: int, seed: int) -> Network:
    """Train the class's network as a phone does, on drawings `drawn_images [n, 1, 8, 8]` with labels `labels [n]`."""
    trained = train_clients_in_place(
        [build_untrained_class_network(seed)],
        [(drawn_images, labels)],
        Recipe(),
        seed=seed,
        ids=[seat],
    )
    return trained[0]


def make_malicious_message(seed: int, seat: int) -> str:
    """Make the message of a malicious student, the joker, who has drawings of every digit."""
    digits = load("digits")
    rng = make_numpy_generator(seed, "joker", seat)
    rows = rng.choice(len(digits.y_train), JOKER_DRAWINGS, replace=False)
    x = digits.x_train[rows]
    y = CLASSES - 1 - digits.y_train[rows]
    model = train_network(x, y, seat, seed)
    start = copy_model_state(build_untrained_class_network(seed))
    end = copy_model_state(model)
    changed = {name: start[name] + JOKER_FACTOR * (end[name] - start[name]) for name in end}
    load_state(model, changed)
    return encode_message(seat, "Joker", x.flatten(1), y, (), model)


# ------------------------------------------------------------------------------------ the rehearsal
async def simulate_students_until_cancelled(room: Room, student_count: int) -> None:
    """Rehearse a class with `student_count` simulated students.

    They come one after another and draw. Once the teacher has left the step *Draw*, they send one
    after another, and then stay until the class ends.
    """
    students: list[Student] = []
    next_drawings = assign_seats_and_choose_drawings(room, student_count)
    arrival_gap = min(MAX_ARRIVAL_GAP, COMING / max(student_count, 1))
    message_gap = min(MAX_ARRIVAL_GAP, SENDING / max(student_count, 1))
    next_arrival = room.clock()
    next_message = room.clock()
    rng = make_numpy_generator(room.about["seed"], "guesses")
    while True:
        now = room.clock()
        if len(students) < student_count and now >= next_arrival:
            students.append(await start_simulated_student(room, next(next_drawings), now))
            next_arrival = now + arrival_gap
        is_sending = room.conductor.step.name != "draw"
        if is_sending and now >= next_message and send_next_message_if_drawn(room, students, now):
            next_message = now + message_gap
        for student in students:
            report_drawn_digit_count(room, student, now)
            if student.seat in room.messages:
                await answer_round_and_sometimes_guess(room, student, rng)
        forget_last_message_if_due(room, students, now)
        await asyncio.sleep(TICK)


async def start_simulated_student(room: Room, drawings: Drawings, now: MonotonicSeconds) -> Student:
    """Seat a simulated student, who begins to draw at `now`."""
    room.store_that_seat_is_simulated(drawings.seat)
    student = await asyncio.to_thread(make_simulated_student, drawings, room.about["seed"])
    student.has_sent = student.seat in room.messages
    student.came = now
    return student


def report_drawn_digit_count(room: Room, student: Student, now: MonotonicSeconds) -> None:
    """Report how many digits a student has drawn, if that has changed or the last report is old."""
    drawings = room.about["drawings"]
    drawn = min(drawings, int(drawings * (now - student.came) / DRAWING))
    presence = room.present.get(student.seat)
    if presence is None or presence.drawn != drawn or now - presence.seen > PRESENT:
        room.note_phone_presence(student.seat, drawn)


def send_next_message_if_drawn(room: Room, students: list[Student], now: MonotonicSeconds) -> bool:
    """Let the first student who has finished drawing send a message; returns whether there was one."""
    for student in students:
        if not student.has_sent and now - student.came >= DRAWING:
            student.has_sent = True
            with suppress(FedlabError):  # a full class accepts no further message
                room.accept_message(student.text, student.seat)
            return True
    return False


async def answer_round_and_sometimes_guess(
    room: Room, student: Student, guess_rng: np.random.Generator
) -> None:
    """Let a student answer the present tiny round and, now and then, guess."""
    rounds = room.rounds
    if rounds is not None and student.lacks_networks_of_current_rounds(room):
        await asyncio.to_thread(
            student.compute_and_store_network_logits, rounds.networks, rounds.serial
        )
    conductor = room.conductor
    step = conductor.step
    try:
        student.answer_new_round(room, room.clock())
        has_guessed = student.seat in conductor.guesses.get(step.name, {})
        can_guess = bool(step.options) and not conductor.is_result_shown(step.name)
        if can_guess and not has_guessed and guess_rng.random() < TICK:
            room.store_guess(student.seat, step.name, int(guess_rng.integers(len(step.options))))
    except FedlabError:
        return  # the teacher has just removed the student's message, or shown the result


def forget_last_message_if_due(room: Room, students: list[Student], now: MonotonicSeconds) -> None:
    """Forget the last student some seconds into the step *forget*, if all students are simulated."""
    conductor = room.conductor
    is_time = conductor.step.name == "forget" and now - conductor.since > VOLUNTEERING
    if not is_time or room.effect is not None or room.has_real_messages:
        return
    for student in reversed(students):
        if student.seat in room.messages:
            room.forget_message(student.seat)
            return
