"""Simulated students, for a rehearsal before the lesson: they draw images of the package's digits.

Each takes a seat, gets images of the classes that the seat asks for, trains the network and sends, as a phone does. The
last of ten or more is a joker: it names each digit c as 9 - c, and sends its change of the network a hundred times as
large, with the other sign.
"""

from collections.abc import Iterator
from itertools import cycle

import torch

from ...data import load
from ...models import load_state, model_state
from ...rng import numpy_rng
from ...training import Recipe, trained
from .messages import CLASSES, network, write
from .room import Room

GIVEN = 4  # every so many-th drawing is given to the test set
FACTOR = -100.0


def messages(room: Room, count: int) -> Iterator[tuple[int, str]]:
    """Seat and message of each of `count` students, who have other images, as far as there are some."""
    digits, seed = load("digits"), room.about["seed"]
    labels = digits.y_train.numpy()
    drawn = numpy_rng(seed, "rehearsal").permutation(len(labels))
    pools = [cycle(drawn[labels[drawn] == c].tolist()) for c in range(CLASSES)]
    for i in range(count):
        seat = room.seat()["seat"]
        wanted = room.wanted(seat)
        x, y = digits.x_train[[next(pools[c]) for c in wanted]], torch.tensor(wanted)
        joker = i == count - 1 and count >= 10
        y = CLASSES - 1 - y if joker else y
        test = [] if joker else range(GIVEN - 1, len(y), GIVEN)
        kept = [j for j in range(len(y)) if j not in test]
        model = trained([network(seed)], [(x[kept], y[kept])], Recipe(), seed=seed, ids=[seat])[0]
        if joker:
            start, end = model_state(network(seed)), model_state(model)
            load_state(
                model, {name: start[name] + FACTOR * (end[name] - start[name]) for name in end}
            )
        yield seat, write(seat, "Joker" if joker else "Rehearsal", x.flatten(1), y, test, model)
