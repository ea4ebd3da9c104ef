"""Who is who: the characters of the course's one federation, the clients that a file names, and how pictures say it.

setting: a `words.Setting`; what is no more than words names nobody
client_axis(ax, M, setting)      ticks A, B, C, 'D✦', …, and a label that says who D is
client_name(3, setting)          'client D ✦ sixes'; of a file's own clients 'client D (north)'; else 'client D'
short_name(3, setting)           'D ✦ sixes', 'D (north)', or 'D';   row_name(3, setting): the same, or 'client D'
known_words(setting)             ' Marked with ✦: D sixes, …' or ' Clients: A east, …', for an alt text

Clients are numbers in programs and letters where people look: both axes from 0 to 9 would be misread.

The characters stand in `characters.json`: who holds the largest share of a digit, who has the fewest images, and whose
largest logits are the largest. The names of a file's own clients are known as long as its data are in memory; without
them a client is its letter.
"""

import json
from collections.abc import Iterable
from functools import cache

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from ..data import Edits, client_list, letter, members
from ..data.registry import names_of_clients
from ..declared import ROOT
from .axes import client_tick, client_ticks
from .style import QUIET, shorten
from .words import dealt_otherwise, name_of, setting_of

SYMBOL = "✦"
FEDERATION = {"dataset": "digits", "partition": "dirichlet", "alpha": 0.1, "clients": 10, "seed": 0}
LONGEST, LINE = 16, 60  # letters of a client's own name, and of all names below an axis


@cache
def stored() -> dict[int, str]:
    """{client: what it is called} of the characters, in the order of their numbers."""
    names = json.loads((ROOT / "plots" / "characters.json").read_text(encoding="utf-8"))
    return {int(client): name for client, name in names.items()}


def characters(setting: str) -> dict[int, str]:
    """The characters if `setting` is the course's federation; none of another, or of words alone."""
    of = {"partition": "dirichlet", **getattr(setting, "of", {})}
    ours = all(of.get(name) == value for name, value in FEDERATION.items()) and not dealt_otherwise(
        of
    )
    return stored() if ours and not of.get("moves") else {}


def own_names(setting: str) -> dict[int, str]:
    """The names that a file gives to its own clients, if `setting` is of such a file, and those that were given by
    hand; a double is called after its client. Long ones are cut."""
    of = getattr(setting, "of", {})
    hand, natural = Edits.parse(of.get("moves") or ""), of.get("partition") == "natural"
    own = names_of_clients(name_of(of["dataset"]), of["clients"]) if natural else ()
    again = {of["clients"] + i: f"double of {letter(k)}" for i, k in enumerate(hand.doubles)}
    names = {**dict(enumerate(own)), **again, **hand.names}
    numbers = (
        [number(place, setting) for place in range(of["clients"] + len(again))] if names else []
    )
    places = [place for place, k in enumerate(numbers) if k in names]
    return dict(
        zip(places, shorten([names[numbers[place]] for place in places], LONGEST), strict=True)
    )


def number(place: int, setting: str) -> int:
    """The client at a place: those that are absent or unseen stand behind the others, and everybody keeps the name."""
    of = getattr(setting, "of", {})
    if not (of.get("absent") or of.get("unseen")):
        return place
    names = (
        names_of_clients(name_of(of["dataset"]), of["clients"])
        if of.get("partition") == "natural"
        else ()
    )
    count = of["clients"] + len(Edits.parse(of.get("moves") or "").doubles)
    gone = [client_list(what, of.get(what) or "", count, names) for what in ("absent", "unseen")]
    return (*members(count, *gone), *gone[0], *gone[1])[place]


def own_letter(client: int, setting: str) -> str:
    """The letter of the client at a place."""
    return letter(number(client, setting))


def own_name(client: int, setting: str) -> str:
    """A client in a sentence or a table: 'D (north)', or 'D'; characters have no other name there."""
    name = own_names(setting).get(client)
    return f"{own_letter(client, setting)} ({name})" if name else own_letter(client, setting)


def setting_of_rows(settings: Iterable[str], seeds: Iterable[int]) -> str:
    """The setting, with its seed, of rows of results whose clients are one federation's; '' where they are several.

    A file's own clients are the same for every seed.
    """
    federations = {setting_of(s.of): s.of for s in settings if getattr(s, "of", None)}
    numbers = sorted(set(seeds))
    if len(federations) != 1 or not numbers:
        return ""
    ((words, of),) = federations.items()
    if of.get("partition") == "natural":
        return words
    return setting_of({**of, "seed": numbers[0]}, f"seed {numbers[0]}") if len(numbers) == 1 else ""


def short_name(client: int, setting: str) -> str:
    """A client in a row or a list: 'D ✦ sixes', 'D (north)', or 'E'."""
    if name := characters(setting).get(client):
        return f"{letter(client)} {SYMBOL} {name}"
    return own_name(client, setting)


def client_name(client: int, setting: str) -> str:
    """A client in a title: 'client D ✦ sixes', 'client D (north)', or 'client E'."""
    return f"client {short_name(client, setting)}"


def row_name(client: int, setting: str) -> str:
    """A client at the left of its row, where there is little room: 'D ✦ sixes', 'D (north)', or 'client E'."""
    named = client in characters(setting) or client in own_names(setting)
    return (short_name if named else client_name)(client, setting)


def known_words(setting: str) -> str:
    """What an alt text adds: who the clients are that have a name."""
    if known := characters(setting):
        return f" Marked with {SYMBOL}: {_listed(known, setting)}."
    own = own_names(setting)
    return f" Clients: {_listed(own, setting)}." if own else ""


def axis_label(setting: str) -> str:
    """'client (✦ D sixes, E tiny)', 'client (A east, B north)' if there is room for all names, or 'client'."""
    if known := characters(setting):
        return f"client ({SYMBOL} {_listed(known, setting)})"
    names = _listed(own_names(setting), setting)
    return f"client ({names})" if 0 < len(names) <= LINE else "client"


def _listed(names: dict[int, str], setting: str) -> str:
    return ", ".join(f"{own_letter(k, setting)} {name}" for k, name in names.items())


def client_axis(ax: Axes, clients: int, setting: str, *, few: int = 16) -> None:
    """Ticks of `clients`, the characters with a ✦, and the x axis' label. It may be called again for another setting:
    the axes keep their place.
    """
    known, words = characters(setting), axis_label(setting)
    client_ticks(ax, clients, few=few)

    def tick(value: float, _: object) -> str:
        return (
            own_letter(round(value), setting) + SYMBOL * (value in known)
            if client_tick(value, clients)
            else ""
        )

    ax.xaxis.set_major_formatter(FuncFormatter(tick))
    ax.set_xlabel(words, fontsize=10 if words == "client" else 9, color=QUIET)
