"""The look of a method, the same in every picture: a colour, a marker, a line.

get_method_look("fens")   by name, title or short name; the looks of the package's methods are in methods/looks.toml
get_method_look("mine")   of any other method: it follows from the name, in colours that no method of the package has
choose_distinct_looks(["fens (rounds = 1)", "fens"])
                          for all lines of one picture: variants keep the colour, and no two looks are alike
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple
from zlib import crc32

from ..declared import read_toml
from ..methods import METHODS, choose_method_label, shorten_method_title

LINES = ("-", "--", "-.", ":")
SHAPES = "*hd8H"
COLOURS = ("#00808C", "#8A6D00", "#B5487A")


class ColourMarkerLine(NamedTuple):
    """How a method is drawn. colour: '#0072B2'; marker, line: in matplotlib's notation"""

    colour: str
    marker: str
    line: str


def list_looks_for_new_methods() -> list[ColourMarkerLine]:
    """List the looks for methods that have none in looks.toml: all colours with the first marker
    and line, then with the other markers, then with the other lines.
    """
    pool = []
    for line in LINES:
        for marker in SHAPES:
            for colour in COLOURS:
                pool.append(ColourMarkerLine(colour, marker, line))
    return pool


POOL = list_looks_for_new_methods()


def get_method_look(method_name: str) -> ColourMarkerLine:
    """Return the look of a method by its name, title or short name; a variant such as
    'fens (rounds = 10)' has its method's look.

    For a method without a look in looks.toml, the hash of its name chooses a look of the pool. If a
    method that was registered earlier has this look or its colour, a later look of the pool is
    taken. So a new method never changes the look of another one.
    """
    look_by_method = {}
    for method, words in read_toml("methods/looks.toml").items():
        look_by_method[method] = ColourMarkerLine(*words.split())
    method = resolve_method_name_or_keep_it(method_name, look_by_method)
    for known_method in (*METHODS, method):
        if known_method not in look_by_method:
            look_by_method[known_method] = choose_free_look(known_method, look_by_method.values())
    return look_by_method[method]


def resolve_method_name_or_keep_it(name_or_title: str, further_known_names: Collection[str]) -> str:
    """Resolve a name, title, short name or variant to a method's name; `name_or_title` itself if it
    is unknown.

    further_known_names: names of methods that are known without being registered
    """
    method_by_title = {}
    for method in reversed(METHODS):  # of methods with one title, the first keeps it
        for title in (choose_method_label(method), METHODS[method].info.title):
            method_by_title[title] = method
            method_by_title[shorten_method_title(title)] = method
        method_by_title[method] = method
    short_name = shorten_method_title(name_or_title)
    if name_or_title in method_by_title:
        return method_by_title[name_or_title]
    if short_name in method_by_title:
        return method_by_title[short_name]
    if short_name in further_known_names:
        return short_name
    return name_or_title


def choose_free_look(method_name: str, taken_looks: Iterable[ColourMarkerLine]) -> ColourMarkerLine:
    """Choose the first free look of the pool, counted from the hash of `method_name`; if possible
    one whose colour is free, too.
    """
    used_looks = set(taken_looks)
    used_colours = {one.colour for one in used_looks}
    start = crc32(method_name.encode()) % len(POOL)
    pool = POOL[start:] + POOL[:start]
    return min(pool, key=lambda one: (one in used_looks, one.colour in used_colours))


def choose_distinct_looks(method_names: Iterable[str]) -> dict[str, ColourMarkerLine]:
    """Return the looks of all `method_names` of one picture. A second variant of a method keeps the
    method's colour and gets another marker or line.
    """
    look_by_name: dict[str, ColourMarkerLine] = {}
    for name in sorted(method_names, key=has_settings_in_brackets):
        method_look = get_method_look(name)
        candidates = [method_look]
        candidates += [look._replace(colour=method_look.colour) for look in POOL]
        free_looks = [
            candidate for candidate in candidates if candidate not in look_by_name.values()
        ]
        look_by_name[name] = free_looks[0] if free_looks else method_look
    return look_by_name


def has_settings_in_brackets(method_name: str) -> bool:
    """Return whether a name has settings in brackets: 'fens (rounds = 10)'."""
    return shorten_method_title(method_name) != method_name
