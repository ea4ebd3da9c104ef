"""Simulated students, for a rehearsal before the lesson: they draw images of the package's digits.

Each takes a seat, draws images of the classes that the seat asks for, and trains the network. They
send one after another when the teacher goes on to *Send*; then they guess, and stay for the tiny
rounds, as phones do. Where nobody but them is there, one wants to be forgotten.
The joker names each digit c as 9 - c, and sends its change of the network a hundred times as large,
with the other sign.

What takes longer than a moment, a network's training and the passes through all networks, is done
in a thread, so that the projector does not stand still.
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
from ...models import Network, load_state, model_state
from ...rng import make_numpy_generator
from ...tensor_types import ClientLogits, ClientWeights, Images, Labels
from ...training import ClientModels, Recipe, train_clients_to_end
from .messages import (
    CLASSES,
    SIDE,
    Seconds,
    build_network,
    encode_array_in_base64,
    encode_message,
)
from .room import GIVE, Room
from .rounds import PackedNetwork

JOKER_FACTOR = -100.0  # of the joker's change of the network
JOKER_DRAWINGS = 8
TICK = 0.1  # seconds between two looks of the simulated students at the class
PRESENT = 2.0  # seconds after which a rehearsed student says again that it is here
COMING = 6.0  # seconds in which a rehearsed class comes
SENDING = 10.0  # seconds in which it sends
MAX_ARRIVAL_GAP = 0.5  # seconds between two of a small class
DRAWING = 3.0  # seconds that a rehearsed student draws
VOLUNTEERING = 10.0  # seconds of the step *forget* after which one wants to be forgotten


@dataclass
class Drawings:
    """What a rehearsed student of a seat has drawn: x `[n, 1, 8, 8]`, y `[n]`."""

    seat: int
    x: Tensor
    y: Tensor


@dataclass
class Student:
    """x `[n, 64]`, y `[n]`: the drawings that it has kept, from which its message `text` was made;
    came: seconds of the room's clock;   has_sent: also if its message was taken out again;   serial: of
    the tiny rounds whose networks it has;   round: the last one that it has answered;   logits `[M, n,
    C]`: of these networks on x."""

    seat: int
    x: Tensor
    y: Tensor
    text: str
    came: float = 0.0
    has_sent: bool = False
    serial: int = 0
    round: int = -1
    logits: Tensor = field(default_factory=lambda: torch.empty(0))

    def has_networks_of_current_rounds(self, room: Room) -> bool:
        """Whether the student has the networks of the present tiny rounds."""
        return room.rounds is None or room.rounds.serial == self.serial

    def compute_and_store_network_logits(
        self, packed_networks: list[PackedNetwork], rounds_serial: int
    ) -> None:
        """Compute and keep the logits of all networks on the student's drawings.

        rounds_serial: number of the tiny rounds that the networks belong to
        """
        models = [unpack_network(parts) for parts in packed_networks]
        self.logits = ClientModels(models).logits(self.x.view(-1, 1, SIDE, SIDE))
        self.serial = rounds_serial
        self.round = -1

    def answer_new_round(self, room: Room, now: Seconds) -> None:
        """Ask where the tiny rounds are, and answer if a new round has begun."""
        news = room.handle_round_request(self.seat, "{}", now)
        if not news:
            return
        if news["serial"] != self.serial:
            news = room.handle_round_request(self.seat, '{"networks": true}', now)
            self.compute_and_store_network_logits(news["networks"], news["serial"])
        if news["round"] == self.round or news["round"] >= news["of"]:
            return
        self.round = news["round"]
        table = np.frombuffer(base64.b64decode(news["weights"]), "<f4").reshape(-1, CLASSES)
        weights = take_weight_gradient_step_of_size_1(
            torch.from_numpy(table.copy()), self.logits, self.y
        )
        text = json.dumps({"round": self.round, "weights": encode_array_in_base64(weights)})
        room.handle_round_request(self.seat, text, now)


def take_weight_gradient_step_of_size_1(
    weights: ClientWeights, logits: ClientLogits, labels: Labels
) -> ClientWeights:
    """Compute the weights λ `[M, C]` after one gradient step of size 1.

    The loss is the mean cross-entropy of Σ_k λ_kc z_kc.

    weights: λ before the step, `[M, C]`
    logits:  z of the networks, `[M, N, C]`
    labels:  `[N]`
    """
    scores = (weights[:, None] * logits).sum(0)
    slope = scores.softmax(1) - F.one_hot(labels, CLASSES)
    return weights - (slope * logits).mean(1)


def unpack_network(packed_network: PackedNetwork) -> Network:
    """Decode a network as a phone receives it; parts with a scale are 8-bit codes."""
    values = []
    for text, scale in packed_network:
        data = base64.b64decode(text)
        if scale:
            codes = np.frombuffer(data, "u1").astype("f4")
            values.append((codes - 127) * np.float32(scale))
        else:
            values.append(np.frombuffer(data, "<f4"))
    model = build_network()
    vector = torch.from_numpy(np.concatenate(values))
    torch.nn.utils.vector_to_parameters(vector, model.parameters())
    return model


# ----------------------------------------------------------------------------- students and a joker
def assign_seats_and_choose_drawings(room: Room, student_count: int) -> Iterator[Drawings]:
    """Give `student_count` simulated students a seat, and choose the images that each of them draws.

    Students draw different images as long as there are enough. Students whose messages a restarted
    class still has come first, with the same drawings as before.
    """
    digits = load("digits")
    labels = digits.y_train.numpy()
    order = make_numpy_generator(room.about["seed"], "rehearsal").permutation(len(labels))
    pools = [order[labels[order] == c] for c in range(CLASSES)]
    known = sorted(room.simulated - {room.joker})
    used: Counter[int] = Counter()  # images of each class that the seats before have drawn
    counted = 0  # seats that are in `used`
    for number in range(student_count):
        seat = known[number] if number < len(known) else room.assign_next_seat()["seat"]
        while counted < seat:
            used.update(room.choose_labels_to_draw(counted))
            counted += 1
        rows = []
        drawn = Counter(used)
        for label in room.choose_labels_to_draw(seat):
            rows.append(int(pools[label][drawn[label] % len(pools[label])]))
            drawn[label] += 1
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


def train_network(images: Images, labels: Labels, seat: int, seed: int) -> Network:
    """Train the class's network as a phone does, on drawings `images [n, 1, 8, 8]` with labels `labels [n]`."""
    return train_clients_to_end(
        [build_network(seed)], [(images, labels)], Recipe(), seed=seed, ids=[seat]
    )[0]


def make_malicious_message(seed: int, seat: int) -> str:
    """Make the message of a malicious student, the joker, who has drawings of every digit."""
    digits = load("digits")
    rng = make_numpy_generator(seed, "joker", seat)
    rows = rng.choice(len(digits.y_train), JOKER_DRAWINGS, replace=False)
    x = digits.x_train[rows]
    y = CLASSES - 1 - digits.y_train[rows]
    model = train_network(x, y, seat, seed)
    start = model_state(build_network(seed))
    end = model_state(model)
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
    coming = assign_seats_and_choose_drawings(room, student_count)
    arrival_gap = min(MAX_ARRIVAL_GAP, COMING / max(student_count, 1))
    message_gap = min(MAX_ARRIVAL_GAP, SENDING / max(student_count, 1))
    next_arrival = room.clock()
    next_message = room.clock()
    rng = make_numpy_generator(room.about["seed"], "guesses")
    while True:
        now = room.clock()
        if len(students) < student_count and now >= next_arrival:
            students.append(await start_simulated_student(room, next(coming), now))
            next_arrival = now + arrival_gap
        is_sending = room.conductor.step.name != "draw"
        if is_sending and now >= next_message and send_next_message_if_drawn(room, students, now):
            next_message = now + message_gap
        for student in students:
            report_drawn_digit_count(room, student, now)
            if student.seat in room.messages:
                await answer_round_and_guess(room, student, rng)
        forget_last_message_when_due(room, students, now)
        await asyncio.sleep(TICK)


async def start_simulated_student(room: Room, drawings: Drawings, now: Seconds) -> Student:
    """Seat a simulated student, who begins to draw at `now` (seconds of the class's clock)."""
    room.store_that_seat_is_simulated(drawings.seat)
    student = await asyncio.to_thread(make_simulated_student, drawings, room.about["seed"])
    student.has_sent = student.seat in room.messages
    student.came = now
    return student


def report_drawn_digit_count(room: Room, student: Student, now: Seconds) -> None:
    """Report how many digits a student has drawn, if that has changed or the last report is old."""
    drawings = room.about["drawings"]
    drawn = min(drawings, int(drawings * (now - student.came) / DRAWING))
    presence = room.present.get(student.seat)
    if presence is None or presence.drawn != drawn or now - presence.seen > PRESENT:
        room.note_phone_presence(student.seat, drawn)


def send_next_message_if_drawn(room: Room, students: list[Student], now: Seconds) -> bool:
    """Let the first student who has finished drawing send a message; returns whether there was one."""
    for student in students:
        if not student.has_sent and now - student.came >= DRAWING:
            student.has_sent = True
            with suppress(FedlabError):  # a class that is full takes no more
                room.accept_message(student.text, student.seat)
            return True
    return False


async def answer_round_and_guess(room: Room, student: Student, rng: np.random.Generator) -> None:
    """Let a student answer the present tiny round and, now and then, guess."""
    rounds = room.rounds
    if rounds is not None and not student.has_networks_of_current_rounds(room):
        await asyncio.to_thread(
            student.compute_and_store_network_logits, rounds.networks, rounds.serial
        )
    conductor = room.conductor
    step = conductor.step
    try:
        student.answer_new_round(room, room.clock())
        has_guessed = student.seat in conductor.guesses.get(step.name, {})
        can_guess = bool(step.options) and not conductor.is_result_shown(step.name)
        if can_guess and not has_guessed and rng.random() < TICK:
            room.store_guess(student.seat, step.name, int(rng.integers(len(step.options))))
    except FedlabError:
        return  # the teacher has just taken its message out, or shown the result


def forget_last_message_when_due(room: Room, students: list[Student], now: Seconds) -> None:
    """Forget the last student some seconds into the step *forget*, if all students are simulated."""
    conductor = room.conductor
    is_time = conductor.step.name == "forget" and now - conductor.since > VOLUNTEERING
    if not is_time or room.effect is not None or room.has_real_messages:
        return
    for student in reversed(students):
        if student.seat in room.messages:
            room.forget_message(student.seat)
            return
