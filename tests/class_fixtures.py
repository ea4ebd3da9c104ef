"""Make a class for a test, and the messages that its students send."""

import random

from fedlab_nb.data import load
from fedlab_nb.live.classroom.messages import encode_message
from fedlab_nb.live.classroom.rehearse import make_malicious_message
from fedlab_nb.live.classroom.room import Room

CODE_POINTS = [*range(32, 0xD800), *range(0xE000, 0x2FFFF)]  # of Unicode
# Names in many scripts, with emoji, markup, control characters, and of extreme lengths.
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
    names = list(SCRIPTS)
    while len(names) < count:
        points = rng.choices(CODE_POINTS, k=rng.randrange(40))
        names.append("".join(map(chr, points)))
    return names[:count]


def make_room(file=None, alpha=0.1):
    """A class of 20 drawings a student and seed 0, kept in `file`."""
    return Room(alpha, 20, 0, file)


def make_message(seat, n=6, given=1, model=None):
    """A message of `n` digits of the package, different ones for each seat.

    given: how many of them the message gives away as test drawings
    """
    digits = load("digits")
    rows = slice(seat * n, (seat + 1) * n)
    x = digits.x_train[rows].flatten(1)
    return encode_message(seat, "Ada", x, digits.y_train[rows], range(given), model)


def make_joker(room):
    """The seat and the message of a joker, who sends a harmful network."""
    seat = room.assign_next_seat()["seat"]
    return seat, make_malicious_message(room.about["seed"], seat)
