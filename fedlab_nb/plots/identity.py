"""The look of a method, the same in every picture: a colour, a marker, a line.

look("fens"), look("FENS")                 by name, title or short name; the package's own are in methods/looks.toml
look("mine")                               any other: it follows from the name, in colours that no own method has
looks(["fens (rounds = 1)", "fens"])       of all lines of one picture: variants keep the colour, and no two are alike
"""

from collections.abc import Iterable
from typing import NamedTuple
from zlib import crc32

from ..declared import read_toml
from ..methods import METHODS, label_of, shorten_title

LINES, SHAPES, COLOURS = ("-", "--", "-.", ":"), "*hd8H", ("#00808C", "#8A6D00", "#B5487A")


class Look(NamedTuple):
    """colour: '#0072B2';   marker, line: as matplotlib writes them."""

    colour: str
    marker: str
    line: str


POOL = [Look(colour, marker, line) for line in LINES for marker in SHAPES for colour in COLOURS]


def look(name: str) -> Look:
    """The look of a method by its name, title or short name; of a variant such as 'fens (rounds = 10)', its method's.

    A name that the package does not know gets the place that its letters give, or a later one where a method that was
    registered before has that place or its colour. So a method that comes later changes no other.
    """
    titles = {words: m for m in reversed(METHODS) for title in (label_of(m), METHODS[m].info.title)
              for words in (title, shorten_title(title), m)}  # fmt: skip
    taken = {
        method: Look(*words.split()) for method, words in read_toml("methods/looks.toml").items()
    }
    name = (
        titles.get(name)
        or titles.get(shorten_title(name))
        or (shorten_title(name) if shorten_title(name) in taken else name)
    )
    for own in (*METHODS, name):
        if own not in taken:
            start, used = (
                crc32(own.encode()) % len(POOL),
                {p for one in taken.values() for p in (one, one.colour)},
            )
            taken[own] = min(
                POOL[start:] + POOL[:start],
                key=lambda one, used=used: (one in used, one.colour in used),
            )
    return taken[name]


def looks(names: Iterable[str]) -> dict[str, Look]:
    """The looks of all `names` of one picture: a second one of a method has its colour and another marker or line."""
    chosen: dict[str, Look] = {}
    for name in sorted(names, key=lambda name: shorten_title(name) != name):
        others = [one._replace(colour=look(name).colour) for one in POOL]
        chosen[name] = next(
            (one for one in (look(name), *others) if one not in chosen.values()), look(name)
        )
    return chosen
