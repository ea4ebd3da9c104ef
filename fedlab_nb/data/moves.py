"""A federation that a person makes by hand: changes, one after the other, of what a partition has dealt out.

    "0: A3>B, C>, D*, E=north"

Of what seed 0 deals out, A's samples of class 3 (the third after class 0) go to B and all of C's to nobody, D gets a
double, one more client behind all others with the same samples, and E is called north where people look. All seeds of
a run have this one federation; without "0: " it is the one that the (first) seed of the run deals out.

Every client of a run needs a sample, so a client's last one stays where it is; nobody holds a sample twice. As long as
there is no double and nothing goes to nobody, each sample has exactly one client.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fedlab_nb.errors import demand

FORM = re.compile(r"([A-Z]{1,2})(?:(\d*)>([A-Z]{0,2})|(\*)|=(.+))")
HINT = "write moves such as 'A3>B' (A's class 3 to B), 'A>B', 'A>' (to nobody), 'A*' (a double) or 'A=north' (a name)"


def letter(client: int) -> str:
    """What a client is called where people look: 0 -> 'A', 25 -> 'Z', 26 -> 'AA'. Digits are classes."""
    high, low = divmod(client, 26)
    return (letter(high - 1) if high else "") + chr(ord("A") + low)


def number_of(letters: str) -> int:
    """The client of these letters.

    >>> [number_of(letter(k)) for k in (0, 25, 26, 53)]
    [0, 25, 26, 53]
    """
    return (
        sum((ord(one) - ord("A") + 1) * 26**place for place, one in enumerate(reversed(letters)))
        - 1
    )


@dataclass(frozen=True)
class Move:
    """One change. `klass` None: of all classes;   `to` None: to nobody;   a `double` or a `name` moves nothing."""

    client: int
    klass: int | None = None
    to: int | None = None
    double: bool = False
    name: str = ""

    def __str__(self) -> str:
        who = letter(self.client)
        if self.double or self.name:
            return f"{who}*" if self.double else f"{who}={self.name}"
        return f"{who}{'' if self.klass is None else self.klass}>{'' if self.to is None else letter(self.to)}"


@dataclass(frozen=True)
class Moves:
    """Changes in order, and the seed that deals out what they change (None: that of the run)."""

    all: tuple[Move, ...] = ()
    seed: int | None = None

    @staticmethod
    @lru_cache(maxsize=256)
    def read(text: str) -> Moves:
        """The changes that a text says; UsageError for one that it cannot say.

        >>> str(Moves.read("0:A3>B,  C*")), Moves.read("")
        ('0: A3>B, C*', Moves(all=(), seed=None))
        """
        head, colon, rest = text.partition(":")
        seeded = colon and head.strip().isdecimal()
        found = []
        for part in filter(None, (part.strip() for part in (rest if seeded else text).split(","))):
            like = FORM.fullmatch(part)
            demand(like, f"{part!r} in moves is no move; {HINT}.")
            who, klass, to, double, name = like.groups()  # type: ignore[union-attr]
            goal = number_of(to) if to else None
            found.append(
                Move(
                    number_of(who),
                    int(klass) if klass else None,
                    goal,
                    bool(double),
                    (name or "").strip(),
                )
            )
        return Moves(tuple(found), int(head) if seeded else None)

    def __str__(self) -> str:
        start = "" if self.seed is None or not self.moving else f"{self.seed}: "
        return start + ", ".join(map(str, self.all))

    @property
    def moving(self) -> tuple[Move, ...]:
        """Those that change who holds what: all but names."""
        return tuple(move for move in self.all if not move.name)

    @property
    def doubles(self) -> list[int]:
        """Whose doubles stand behind the clients that were dealt to, in order."""
        return [move.client for move in self.all if move.double]

    @property
    def names(self) -> dict[int, str]:
        """{client: its name} of those that were given one."""
        return {move.client: move.name for move in self.all if move.name}

    def check(self, clients: int, classes: int) -> int:
        """How many clients there are in the end, of so many at the start; UsageError for a move that cannot be."""
        for move in self.all:
            known = f"there are clients A to {letter(clients - 1)}, and classes 0 to {classes - 1}"
            fits = (
                max(move.client, move.to or 0) < clients
                and (move.klass or 0) < classes
                and move.client != move.to
            )
            demand(
                fits,
                f"The move {str(move)!r} cannot be done, as {known}; leave it out, or name others.",
            )
            clients += move.double
        return clients

    def applied(self, shards: Sequence[np.ndarray], labels: np.ndarray) -> list[np.ndarray]:
        """What clients hold after the moves: sorted indices into `labels` [N], from sorted `shards`.

        >>> Moves.read("A1>B, B*, B>").applied([np.array([0, 1]), np.array([2])], np.array([0, 1, 1]))
        [array([0]), array([1]), array([1, 2])]
        """
        held = list(shards)
        for move in self.moving:
            own = held[move.client]
            if move.double:
                held.append(own)
                continue
            leaves = own if move.klass is None else own[labels[own] == move.klass]
            leaves = leaves[len(leaves) == len(own) :]  # the last one stays
            held[move.client] = np.setdiff1d(own, leaves, assume_unique=True)
            if move.to is not None:
                held[move.to] = np.union1d(held[move.to], leaves)
        return held
