"""Who is who in the course's one federation, and the names that pictures give to clients.

client_axis(ax, M, setting)      ticks 0, 1, 2, '3✦', …, and a label that says who 3 is; elsewhere plain numbers
client_name(3, setting)          'client 3 ✦ sixes'; in another federation 'client 3'
short_name(3, setting)           '3 ✦ sixes', or '3';   row_name(3, setting): the same, or 'client 3'
known_words(setting)             ' Marked with ✦: 3 sixes, …', for an alt text

The characters stand in `characters.json`, which `python -m fedlab_nb.teach.story` makes from the federation itself.
"""

import json
import re
from collections.abc import Iterable
from functools import cache

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from ..declared import ROOT
from .axes import client_ticks
from .style import QUIET

SYMBOL = "✦"
# The federation in words, as `setting_of` says it; of several seeds the first one's clients are shown.
FEDERATION = "digits, α = 0.1, 10 clients"
OURS = re.compile(rf"{re.escape(FEDERATION)}, seeds? 0(?!\d)")
ROW = re.compile(rf"{re.escape(FEDERATION)}, \d+ local epochs")  # how a row of results says it, without its seed


@cache
def stored() -> dict[int, str]:
    """{client: what it is called} of the characters, in the order of their numbers."""
    names = json.loads((ROOT / "plots" / "characters.json").read_text(encoding="utf-8"))
    return {int(client): name for client, name in names.items()}


def characters(setting: str) -> dict[int, str]:
    """The characters if `setting` (in words, seed included) is the course's federation; none of another."""
    return stored() if OURS.match(setting) else {}


def setting_of_rows(settings: Iterable[str], seeds: Iterable[int]) -> str:
    """The setting, with its seed, of rows of results whose clients are one federation's; '' where they are several."""
    words, numbers = set(settings), set(seeds)
    if numbers == {0} and words and all(map(ROW.match, words)):
        return f"{FEDERATION}, seed 0"
    return ""


def short_name(client: int, setting: str) -> str:
    """A client in a row or a list: '3 ✦ sixes', or '4'."""
    name = characters(setting).get(client)
    return f"{client} {SYMBOL} {name}" if name else str(client)


def client_name(client: int, setting: str) -> str:
    """A client in a title: 'client 3 ✦ sixes', or 'client 4'."""
    return f"client {short_name(client, setting)}"


def row_name(client: int, setting: str) -> str:
    """A client at the left of its row, where there is little room: '3 ✦ sixes', or 'client 4'."""
    return (short_name if client in characters(setting) else client_name)(client, setting)


def known_words(setting: str) -> str:
    """What an alt text adds: who the marked clients are."""
    names = ", ".join(f"{k} {name}" for k, name in characters(setting).items())
    return f" Marked with {SYMBOL}: {names}." if names else ""


def axis_label(setting: str) -> str:
    """'client (✦ 3 sixes, 5 tiny)', or 'client'."""
    names = ", ".join(f"{k} {name}" for k, name in characters(setting).items())
    return f"client ({SYMBOL} {names})" if names else "client"


def client_axis(
    ax: Axes, clients: int, setting: str, axis: str = "x", *, few: int = 16, size: float = 10, label: bool = True
) -> None:
    """Ticks of `clients`, the characters with a ✦, and with `label` the axis' label in letters of `size`. It may be
    called again for another setting: the axes keep their place.
    """
    known = characters(setting)
    client_ticks(ax, clients, axis, few=few)
    form = FuncFormatter(lambda v, _: f"{v:g}{SYMBOL}" if v in known else f"{v:g}")
    getattr(ax, f"{axis}axis").set_major_formatter(form)
    if label:
        put = getattr(ax, f"set_{axis}label")
        put(axis_label(setting), fontsize=min(size, 9) if known else size, color=QUIET)
