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
from ...rng import numpy_rng
from ...training import ClientModels, Recipe, train_to_end
from .messages import CLASSES, SIDE, build_network, encode_array, write
from .room import GIVE, Room
from .rounds import PackedNetwork

JOKER_FACTOR = -100.0  # of the joker's change of the network
JOKER_DRAWINGS = 8
TICK = 0.1  # seconds between two looks of the rehearsed students at the class
PRESENT = 2.0  # seconds after which a rehearsed student says again that it is here
COMING = 6.0  # seconds in which a rehearsed class comes
SENDING = 10.0  # seconds in which it sends
LONGEST_GAP = 0.5  # seconds between two of a small class
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

    def has_networks(self, room: Room) -> bool:
        """Whether it has the networks of the tiny rounds that go on."""
        return room.rounds is None or room.rounds.serial == self.serial

    def ask_networks(self, networks: list[PackedNetwork], serial: int) -> None:
        """Ask all networks, as they come to a phone, what they say of its drawings."""
        models = [unpack_network(parts) for parts in networks]
        self.logits = ClientModels(models).logits(self.x.view(-1, 1, SIDE, SIDE))
        self.serial = serial
        self.round = -1

    def answer(self, room: Room, now: float) -> None:
        """One look at the tiny rounds, with an answer where a round is new."""
        news = room.stay(self.seat, "{}", now)
        if not news:
            return
        if news["serial"] != self.serial:
            news = room.stay(self.seat, '{"networks": true}', now)
            self.ask_networks(news["networks"], news["serial"])
        if news["round"] == self.round or news["round"] >= news["of"]:
            return
        self.round = news["round"]
        table = np.frombuffer(base64.b64decode(news["weights"]), "<f4").reshape(-1, CLASSES)
        weights = make_step(torch.from_numpy(table.copy()), self.logits, self.y)
        text = json.dumps({"round": self.round, "weights": encode_array(weights)})
        room.stay(self.seat, text, now)


def make_step(table: Tensor, logits: Tensor, y: Tensor) -> Tensor:
    """The weights λ `table [M, C]` after one step of size 1 down the mean cross-entropy of Σ_k λ_kc
    z_kc, for the networks' logits z `[M, N, C]` and the labels y `[N]`."""
    scores = (table[:, None] * logits).sum(0)
    slope = scores.softmax(1) - F.one_hot(y, CLASSES)
    return table - (slope * logits).mean(1)


def unpack_network(parts: PackedNetwork) -> Network:
    """A network as a phone gets it: those parts that have a scale are in 8 bits."""
    values = []
    for text, scale in parts:
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
def choose_drawings(room: Room, count: int) -> Iterator[Drawings]:
    """What each of `count` students draws; they have other images, as far as there are some.

    Those whose messages a restarted class still has come first, with the same drawings.
    """
    digits = load("digits")
    labels = digits.y_train.numpy()
    order = numpy_rng(room.about["seed"], "rehearsal").permutation(len(labels))
    pools = [order[labels[order] == c] for c in range(CLASSES)]
    known = sorted(room.simulated - {room.joker})
    used: Counter[int] = Counter()  # images of each class that the seats before have drawn
    counted = 0  # seats that are in `used`
    for number in range(count):
        seat = known[number] if number < len(known) else room.assign_seat()["seat"]
        while counted < seat:
            used.update(room.choose_labels(counted))
            counted += 1
        rows = []
        drawn = Counter(used)
        for label in room.choose_labels(seat):
            rows.append(int(pools[label][drawn[label] % len(pools[label])]))
            drawn[label] += 1
        yield Drawings(seat, digits.x_train[rows], digits.y_train[rows])


def make_student(drawings: Drawings, seed: int) -> Student:
    """The student who has these drawings, in a class of this seed; every GIVE-th one is given to
    the class's test."""
    x, y = drawings.x, drawings.y
    given = range(GIVE - 1, len(y), GIVE)
    kept = [i for i in range(len(y)) if i not in given]
    model = train_network(x[kept], y[kept], drawings.seat, seed)
    text = write(drawings.seat, "", x.flatten(1), y, given, model)
    return Student(drawings.seat, x[kept].flatten(1), y[kept], text)


def make_students(room: Room, count: int) -> Iterator[Student]:
    """Each of `count` students, after its drawing."""
    for drawings in choose_drawings(room, count):
        student = make_student(drawings, room.about["seed"])
        student.has_sent = student.seat in room.messages
        yield student


def train_network(x: Tensor, y: Tensor, seat: int, seed: int) -> Network:
    """The class's network after a phone's training on drawings x `[n, 1, 8, 8]` with labels y
    `[n]`."""
    return train_to_end([build_network(seed)], [(x, y)], Recipe(), seed=seed, ids=[seat])[0]


def make_joker_message(seed: int, seat: int) -> str:
    """The message of a joker at this seat, who has drawings of every digit and means harm."""
    digits = load("digits")
    rng = numpy_rng(seed, "joker", seat)
    rows = rng.choice(len(digits.y_train), JOKER_DRAWINGS, replace=False)
    x = digits.x_train[rows]
    y = CLASSES - 1 - digits.y_train[rows]
    model = train_network(x, y, seat, seed)
    start = model_state(build_network(seed))
    end = model_state(model)
    changed = {name: start[name] + JOKER_FACTOR * (end[name] - start[name]) for name in end}
    load_state(model, changed)
    return write(seat, "Joker", x.flatten(1), y, (), model)


# ------------------------------------------------------------------------------------ the rehearsal
async def rehearse(room: Room, count: int) -> None:
    """`count` students come one after another and draw. They send one after another when the
    teacher has gone on from *Draw*, and then stay until the class ends."""
    students: list[Student] = []
    coming = choose_drawings(room, count)
    arrival_gap = min(LONGEST_GAP, COMING / max(count, 1))
    message_gap = min(LONGEST_GAP, SENDING / max(count, 1))
    next_arrival = room.clock()
    next_message = room.clock()
    rng = numpy_rng(room.about["seed"], "guesses")
    while True:
        now = room.clock()
        if len(students) < count and now >= next_arrival:
            students.append(await arrive(room, next(coming), now))
            next_arrival = now + arrival_gap
        is_sending = room.conductor.step.name != "draw"
        if is_sending and now >= next_message and send_next(room, students, now):
            next_message = now + message_gap
        for student in students:
            keep_drawing(room, student, now)
            if student.seat in room.messages:
                await take_part(room, student, rng)
        volunteer(room, students, now)
        await asyncio.sleep(TICK)


async def arrive(room: Room, drawings: Drawings, now: float) -> Student:
    """The student who comes to the class at `now` seconds of its clock, and begins to draw."""
    room.note_simulated(drawings.seat)
    student = await asyncio.to_thread(make_student, drawings, room.about["seed"])
    student.has_sent = student.seat in room.messages
    student.came = now
    return student


def keep_drawing(room: Room, student: Student, now: float) -> None:
    """Tell the room how many digits this student has drawn, where that is new or a while ago."""
    drawings = room.about["drawings"]
    drawn = min(drawings, int(drawings * (now - student.came) / DRAWING))
    presence = room.present.get(student.seat)
    if presence is None or presence.drawn != drawn or now - presence.seen > PRESENT:
        room.note_presence(student.seat, drawn)


def send_next(room: Room, students: list[Student], now: float) -> bool:
    """The first student sends who has drawn everything and not sent; whether there was one."""
    for student in students:
        if not student.has_sent and now - student.came >= DRAWING:
            student.has_sent = True
            with suppress(FedlabError):  # a class that is full takes no more
                room.accept(student.text, student.seat)
            return True
    return False


async def take_part(room: Room, student: Student, rng: np.random.Generator) -> None:
    """Answer a tiny round, and guess, now and then."""
    rounds = room.rounds
    if rounds is not None and not student.has_networks(room):
        await asyncio.to_thread(student.ask_networks, rounds.networks, rounds.serial)
    conductor = room.conductor
    step = conductor.step
    try:
        student.answer(room, room.clock())
        has_guessed = student.seat in conductor.guesses.get(step.name, {})
        can_guess = bool(step.options) and not conductor.is_shown(step.name)
        if can_guess and not has_guessed and rng.random() < TICK:
            room.guess(student.seat, step.name, int(rng.integers(len(step.options))))
    except FedlabError:
        return  # the teacher has just taken its message out, or shown the result


def volunteer(room: Room, students: list[Student], now: float) -> None:
    """In the step *forget* the last student wants to be forgotten, where nobody but rehearsed
    students is there to want it."""
    conductor = room.conductor
    is_time = conductor.step.name == "forget" and now - conductor.since > VOLUNTEERING
    if not is_time or room.effect is not None or room.has_guests:
        return
    for student in reversed(students):
        if student.seat in room.messages:
            room.forget(student.seat)
            return
