"""The link that panels and the page without Python share: `playground.html#alpha=0.1&m=10&seed=4&methods=fedavg,fens`.

The page (`fedlab-nb page`) has its state after the `#` of its address. `fl.playground(link=…)` reads such a link, and
`panel.link()` writes one. Parts of a link that only the page has (an image, a selected client) are ignored; settings
that only a panel has (a partition, local epochs) are not in a link.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from ..data import PartitionEdits
from ..errors import UsageError, parse_if_number
from ..value_types import SettingsByName, SettingValue

NAMES = {
    "data": "dataset",
    "alpha": "alpha",
    "m": "clients",
    "clients": "clients",
    "seed": "seed",
    "moves": "moves",
}
EXAMPLE = "#alpha=0.1&m=10&seed=4"


def parse_settings_of_link(link: str) -> dict[str, SettingValue]:
    """Parse the settings in a link, with `methods` if it has some. UsageError if it has no settings.

    >>> parse_settings_of_link("file:///tmp/playground.html#alpha=0.1&m=7&methods=fedavg,fens")
    {'alpha': 0.1, 'clients': 7, 'methods': ['fedavg', 'fens']}
    """
    words = dict(parse_qsl(str(link).partition("#")[2]))
    found: dict[str, Any] = {}
    for name, text in words.items():
        if name in ("data", "moves"):
            found[NAMES[name]] = text
        elif name in NAMES:
            found[NAMES[name]] = parse_if_number(text)
    if "methods" in words:
        found["methods"] = words["methods"].split(",")
    if not found:
        raise UsageError(
            f"{link!r} is no link of the page; copy one from its button, or write one such as {EXAMPLE}."
        )
    return found


def make_link(
    settings: SettingsByName, methods: Iterable[str], page_file_or_address: str = "playground.html"
) -> str:
    """Make the link that shows these settings on a page.

    page_file_or_address: of the page

    >>> make_link({"dataset": "digits", "alpha": 0.1, "clients": 10, "seed": 4, "seeds": 3}, ["fedavg", "fens"])
    'playground.html#alpha=0.1&m=10&seed=4&methods=fedavg,fens'
    """
    words = {name: settings[NAMES[name]] for name in ("data", "alpha", "m", "seed")}
    if words["data"] == "digits":
        del words["data"]
    if settings.get("moves"):
        edits = PartitionEdits.parse(settings["moves"])
        if edits.seed is not None:  # the page makes the partition with the seed of the link
            words["seed"] = edits.seed
        words["moves"] = str(replace(edits, seed=None)).replace(" ", "")
    words["methods"] = ",".join(methods)
    return f"{page_file_or_address}#{urlencode(words, safe=',:>')}"
