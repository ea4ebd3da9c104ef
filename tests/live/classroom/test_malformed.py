"""Thousands of malformed messages and hundreds of names: each is taken, or refused in one sentence,
and nothing breaks."""

import base64
import json
import random

import pytest
from class_fixtures import make_message, make_names, make_room

from fedlab_nb.errors import UsageError
from fedlab_nb.live.classroom.messages import NAME
from fedlab_nb.models import copy_model_state

NAME_COUNT = 200
JUNK = [
    *(None, True, -1, 3.5, 10**30, float("nan"), "", "x", "=", "AAAA", "é", "\ud800"),
    *([], {}, [[]], [1] * 10, {"a": 1}),
]


def spoil(text, rng):
    """The bytes of a message that somebody has tampered with; a few are still right."""
    kind = rng.randrange(7)
    if kind == 0:  # another value
        about = json.loads(text)
        about[rng.choice([*about, "more"])] = rng.choice(JUNK)
        return json.dumps(about).encode()
    if kind == 1:  # a part is missing
        about = json.loads(text)
        del about[rng.choice([*about])]
        return json.dumps(about).encode()
    if kind == 2:  # cut off
        return text.encode()[: rng.randrange(len(text))]
    if kind == 3:  # some bytes are others
        spoilt = bytearray(text.encode())
        for _ in range(rng.randrange(1, 20)):
            spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
        return bytes(spoilt)
    if kind == 4:  # noise
        return rng.randbytes(rng.randrange(2000))
    if kind == 5:  # deep, or wide
        return rng.choice([b"[" * 50_000, b'{"seat":' * 20_000, b"[" + b"0," * 90_000 + b"0]"])
    about = json.loads(text)  # other numbers in an array
    part = rng.choice(["sums", "network", "test"])
    size = rng.choice([0, 1, 64, 65, 4 * 6570, 4 * 2144, 8 * 2144])
    about[part] = base64.b64encode(rng.randbytes(size)).decode()
    return json.dumps(about).encode()


@pytest.mark.parametrize("count", [300, pytest.param(2000, marks=pytest.mark.slow)])
def test_malformed_messages_are_refused_in_a_sentence_and_change_nothing(count):
    rng = random.Random(0)
    room = make_room()
    right = make_message(0, n=4)
    refused = 0
    for _ in range(count):
        version = room.version
        before = dict(room.messages)
        try:
            message = room.accept_message(spoil(right, rng), 0)
        except UsageError as error:
            refused += 1
            assert str(error).endswith(".")
            assert "\n" not in str(error)
            assert room.version == version
            assert room.messages == before
        else:
            assert message.seat == 0
            if message.network is not None:
                for part in copy_model_state(message.network).values():
                    assert part.isfinite().all()
            room.forget_message(0)
    assert refused > 0.9 * count
    room.accept_message(right, 0)
    assert room.results.measure_combination_accuracies()


def test_every_name_is_taken_and_short_and_in_every_table():
    room = make_room()
    about = json.loads(make_message(0, n=4))
    for seat, name in enumerate(make_names(NAME_COUNT)):
        message = room.accept_message(json.dumps(about | {"seat": seat, "name": name}), seat)
        assert len(message.nickname) <= NAME
        assert "\n" not in message.office_and_nickname
        json.dumps({"name": message.office_and_nickname}).encode()
    assert len({m.office_and_nickname for m in room.messages.values()}) == NAME_COUNT
    assert len(room.describe_messages_for_projector()) == NAME_COUNT
    assert json.dumps(room.describe_messages_for_projector()).encode()
