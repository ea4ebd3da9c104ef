"""Simulated students, for a rehearsal before the lesson: they draw images of the package's digits.

Each takes a seat, gets images of the classes that the seat asks for, trains the network, sends,
guesses and stays for the tiny rounds, as a phone does. The joker names each digit c as 9 - c, and
sends its change of the network a hundred times as large, with the other sign.
"""

import asyncio
import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ...data import load
from ...errors import FedlabError
from ...models import load_state, model_state
from ...rng import numpy_rng
from ...training import ClientModels, Recipe, trained
from .messages import CLASSES, SIDE, coded, network, write
from .room import GIVE, Room

FACTOR = -100.0  # of the joker's change
JOKER_DRAWINGS = 8
ROUND = 0.1  # seconds between two looks of a rehearsed student at the tiny rounds
PRESENT = 2.0  # seconds after which a rehearsed student says again that it is here


@dataclass
class Student:
    """x `[n, 64]`, y `[n]`: the drawings that it has kept, from which its message was made."""

    seat: int
    x: Tensor
    y: Tensor
    text: str
    serial: int = 0
    round: int = -1
    logits: Tensor = field(default_factory=lambda: torch.empty(0))

    def answer(self, room: Room, now: float) -> None:
        """One look at the tiny rounds, with an answer where a round is new."""
        told = room.stay(self.seat, "{}", now)
        if not told:
            return
        if told["serial"] != self.serial:
            told = room.stay(self.seat, '{"networks": true}', now)
            models = [unpack_network(parts) for parts in told["networks"]]
            self.logits = ClientModels(models).logits(self.x.view(-1, 1, SIDE, SIDE))
            self.serial, self.round = told["serial"], -1
        if told["round"] == self.round or told["round"] >= told["of"]:
            return
        self.round = told["round"]
        table = np.frombuffer(base64.b64decode(told["weights"]), "<f4").reshape(-1, CLASSES)
        weights = make_step(torch.from_numpy(table.copy()), self.logits, self.y)
        room.stay(self.seat, json.dumps({"round": self.round, "weights": coded(weights)}), now)


def make_step(table: Tensor, logits: Tensor, y: Tensor) -> Tensor:
    """The weights λ `table [M, C]` after one step of size 1 down the mean cross-entropy of Σ_k λ_kc z_kc, for the
    networks' logits z `[M, N, C]` and the labels y `[N]`."""
    scores = (table[:, None] * logits).sum(0)
    slope = scores.softmax(1) - F.one_hot(y, CLASSES)
    return table - (slope * logits).mean(1)


def unpack_network(parts: list) -> torch.nn.Module:
    """A network as a phone gets it: those parts that have a scale are in 8 bits."""
    values = []
    for text, scale in parts:
        part = np.frombuffer(base64.b64decode(text), "u1" if scale else "<f4").astype("f4")
        values.append((part - 127) * np.float32(scale) if scale else part)
    model = network()
    vector = torch.from_numpy(np.concatenate(values))
    torch.nn.utils.vector_to_parameters(vector, model.parameters())
    return model


def students(room: Room, count: int) -> Iterator[Student]:
    """Each of `count` students, after its drawing; they have other images, as far as there are some."""
    digits = load("digits")
    seed = room.about["seed"]
    labels = digits.y_train.numpy()
    drawn = numpy_rng(seed, "rehearsal").permutation(len(labels))
    pools = [cycle(drawn[labels[drawn] == c].tolist()) for c in range(CLASSES)]
    for _ in range(count):
        seat = room.seat()["seat"]
        wanted = room.wanted(seat)
        x = digits.x_train[[next(pools[c]) for c in wanted]]
        y = torch.tensor(wanted)
        given = range(GIVE - 1, len(y), GIVE)
        kept = [i for i in range(len(y)) if i not in given]
        shard = x[kept], y[kept]
        model = trained([network(seed)], [shard], Recipe(), seed=seed, ids=[seat])[0]
        text = write(seat, "", x.flatten(1), y, given, model)
        yield Student(seat, x[kept].flatten(1), y[kept], text)


def make_joker(room: Room) -> tuple[int, str]:
    """Seat and message of a joker, who has drawings of every digit and means harm."""
    digits = load("digits")
    seed = room.about["seed"]
    seat = room.seat()["seat"]
    rng = numpy_rng(seed, "joker", seat)
    rows = rng.choice(len(digits.y_train), JOKER_DRAWINGS, replace=False)
    x = digits.x_train[rows]
    y = CLASSES - 1 - digits.y_train[rows]
    model = trained([network(seed)], [(x, y)], Recipe(), seed=seed, ids=[seat])[0]
    start, end = model_state(network(seed)), model_state(model)
    changed = {name: start[name] + FACTOR * (end[name] - start[name]) for name in end}
    load_state(model, changed)
    return seat, write(seat, "Joker", x.flatten(1), y, (), model)


async def rehearse(room: Room, count: int, pause: float = 0.5) -> None:
    """`count` students come, one each `pause` seconds, send, and then stay until the class ends."""
    here: list[Student] = []
    rng = numpy_rng(room.about["seed"], "guesses")
    come = students(room, count)
    waited = 0.0
    while True:
        if len(here) < count and waited <= 0:
            student = next(come)
            room.simulated.add(student.seat)
            room.see(student.seat, room.about["drawings"])
            room.accept(student.text, student.seat)
            here.append(student)
            waited = pause
        step = room.conductor.step
        for student in here:
            presence = room.present.get(student.seat)
            if presence and room.clock() - presence.seen > PRESENT:
                room.see(student.seat, room.about["drawings"])
            if student.seat not in room.messages:
                continue
            try:
                student.answer(room, room.clock())
                guesses = room.conductor.guesses.get(step.name, {})
                can_guess = step.options and not room.conductor.is_shown(step.name)
                if can_guess and student.seat not in guesses and rng.random() < ROUND:
                    choice = int(rng.integers(len(step.options)))
                    room.conductor.guess(student.seat, step.name, choice)
            except FedlabError:
                continue  # the teacher has just taken its message out, or shown the result
        await asyncio.sleep(ROUND)
        waited -= ROUND
