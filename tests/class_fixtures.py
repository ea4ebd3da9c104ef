"""A class, and what a student of it sends."""

import random

from fedlab_nb.data import load
from fedlab_nb.live.classroom.messages import encode_message
from fedlab_nb.live.classroom.rehearse import make_malicious_message
from fedlab_nb.live.classroom.room import Room

POINTS = [*range(32, 0xD800), *range(0xE000, 0x2FFFF)]  # of Unicode
SCRIPTS = [
    *("Ада", "سارة بنت أحمد", "שרה", "ศิริ", "प्रिया", "李小龍", "たろう", "한솔", "Ὀδυσσεύς"),
    *("👩\u200d🚀👨\u200d👩\u200d👧", "🏳️\u200d🌈", "ก็็็็็็็็็็็", "ﷺ" * 24, "a\u0301" * 30, "W" * 24),
    *(
        "<script>alert(1)</script>",
        "'\"><svg onload=alert(1)>",
        "${x}",
        "<img src=x onerror=alert(1)>",
    ),
    *("\u202edrow", "\u2067\u202eevil", "\x00\x1b[2J", "a\nb\tc", "x" * 10_000, "\u202e" * 10_000),
]


def make_names(count):
    """Names of any script, direction and length, and then of characters drawn from all of Unicode."""
    rng = random.Random(1)
    drawn = ["".join(map(chr, rng.choices(POINTS, k=rng.randrange(40)))) for _ in range(count)]
    return [*SCRIPTS, *drawn][:count]


def a_room(file=None, alpha=0.1):
    return Room(alpha, 20, 0, file)


def a_message(seat, n=6, given=1, model=None):
    """A message of `n` digits of the package, others for each seat."""
    digits, rows = load("digits"), slice(seat * n, (seat + 1) * n)
    return encode_message(
        seat, "Ada", digits.x_train[rows].flatten(1), digits.y_train[rows], range(given), model
    )


def make_joker(room):
    """Seat and message of a joker."""
    seat = room.assign_next_seat()["seat"]
    return seat, make_malicious_message(room.about["seed"], seat)
