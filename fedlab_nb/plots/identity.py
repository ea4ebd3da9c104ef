"""The look of a method, the same in every picture: a colour, a marker, a line.

look("fens"), look("FENS")                 by name, title or short name; the package's own are in methods/looks.toml
look("mine")                               any other: it follows from the name, in colours that no own method has
looks(["fens (rounds = 1)", "fens"])       of all lines of one picture: variants keep the colour, and no two are alike
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple
from zlib import crc32

from ..declared import read_toml
from ..methods import METHODS, label_of, shorten_title

LINES = ("-", "--", "-.", ":")
SHAPES = "*hd8H"
COLOURS = ("#00808C", "#8A6D00", "#B5487A")


class Look(NamedTuple):
    """colour: '#0072B2';   marker, line: as matplotlib writes them."""

    colour: str
    marker: str
    line: str


def list_pool() -> list[Look]:
    """The looks of methods that the package does not know by name: all colours, then all markers,
    then all lines."""
    pool = []
    for line in LINES:
        for marker in SHAPES:
            for colour in COLOURS:
                pool.append(Look(colour, marker, line))
    return pool


POOL = list_pool()


def look(name: str) -> Look:
    """The look of a method by its name, title or short name; of a variant such as
    'fens (rounds = 10)', its method's.

    A name that the package does not know gets the place that its letters give, or a later one where
    a method that was registered before has that place or its colour. So a method that comes later
    changes no other.
    """
    taken = {}
    for method, words in read_toml("methods/looks.toml").items():
        taken[method] = Look(*words.split())
    method = find_method(name, taken)
    for other in (*METHODS, method):
        if other not in taken:
            taken[other] = choose_free_look(other, taken.values())
    return taken[method]


def find_method(name: str, declared_looks: Collection[str]) -> str:
    """The method of a name, title, short name or variant; `name` itself if there is none.

    declared_looks: further methods that are known by name
    """
    method_of = {}
    for method in reversed(METHODS):  # of methods with one title, the first keeps it
        for title in (label_of(method), METHODS[method].info.title):
            method_of[title] = method
            method_of[shorten_title(title)] = method
        method_of[method] = method
    short_name = shorten_title(name)
    if name in method_of:
        return method_of[name]
    if short_name in method_of:
        return method_of[short_name]
    if short_name in declared_looks:
        return short_name
    return name


def choose_free_look(name: str, taken: Iterable[Look]) -> Look:
    """The first look of the pool, from the place on that the letters of `name` give, that nobody
    has; if possible one whose colour nobody has, either."""
    used_looks = set(taken)
    used_colours = {one.colour for one in used_looks}
    start = crc32(name.encode()) % len(POOL)
    pool = POOL[start:] + POOL[:start]
    return min(pool, key=lambda one: (one in used_looks, one.colour in used_colours))


def looks(names: Iterable[str]) -> dict[str, Look]:
    """The looks of all `names` of one picture: a second one of a method has its colour and another
    marker or line."""
    chosen: dict[str, Look] = {}
    for name in sorted(names, key=is_variant):
        own = look(name)
        candidates = [own]
        candidates += [one._replace(colour=own.colour) for one in POOL]
        free = [candidate for candidate in candidates if candidate not in chosen.values()]
        chosen[name] = free[0] if free else own
    return chosen


def is_variant(name: str) -> bool:
    """Whether a name has settings in brackets: 'fens (rounds = 10)'."""
    return shorten_title(name) != name
