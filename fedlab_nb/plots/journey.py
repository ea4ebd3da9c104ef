"""What travels in a method: `journey("fens")`, the flight of its messages in four moments; `journey()`, a map of all.

The moments are drawn by the stage's own modules (`front/flight_stills.js`) from the ledger of a run, and stored beside
it: `notebooks/draw_journeys.py` makes both. So the picture needs neither a kernel nor a script.
"""

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict
from xml.etree import ElementTree

from ..errors import choose
from ..front.flight import Flight
from ..methods import METHODS
from .kit import describe_picture
from .method_map import draw_method_map
from .style import Picture
from .words import build_table, make_setting_caption

FOLDER = Path(__file__).parent / "journeys"
FLIGHTS = FOLDER / "flights.json"
SVG = "{http://www.w3.org/2000/svg}"
COLUMNS = "phase | direction | messages | bytes"


class StoredFlight(TypedDict):
    """What has travelled in one run.

    settings: of the run, as `fl.run` takes them
    colours:  of the clients, "#rrggbb"
    """

    settings: dict[str, Any]
    colours: list[str]
    flight: Flight


def journey(*methods: str) -> Picture:
    """What clients send, what comes back, and what the server makes of it.

    Of one method the flight of its messages in a run as its lab has it, with the bytes of that run.
    Of several a map: a small drawing for each group and kind of thing that is sent, with what the
    server needs beside it. Without a name: of all methods. A method without a stored run, such as
    one of your own, has the map alone, and a sentence that says where its flight is seen.

    Raises UsageError for a name that is no method's.
    """
    names = [choose("method", name, METHODS) for name in methods or METHODS]
    if len(names) == 1 and names[0] in read_stored_flights_by_method():
        return read_stored_picture(names[0])
    picture = draw_method_map(names)
    if len(names) == 1 and METHODS[names[0]].info.sends:
        call = f"fl.playground(methods=[{names[0]!r}])"
        where = f"No run of it is stored: {call} shows its messages travel after Run."
        picture.sentence = f"{where} {picture.sentence}"
        picture.alt = f"{picture.alt} {where}"
    return picture


@functools.cache
def read_stored_flights_by_method() -> Mapping[str, StoredFlight]:
    """Read what has travelled in the stored runs, by method."""
    return json.loads(FLIGHTS.read_text(encoding="utf-8"))


def get_stored_picture_path(method: str) -> Path:
    """Return where the stored picture of a method is."""
    return FOLDER / f"{method}.svg"


def read_stored_picture(method: str) -> Picture:
    """Read a method's stored picture, with its words and its numbers."""
    stored = read_stored_flights_by_method()[method]
    svg = get_stored_picture_path(method).read_text(encoding="utf-8")
    root = ElementTree.fromstring(svg)
    sentence = root.findtext(f"{SVG}title", "")
    moments = root.findtext(f"{SVG}desc", "")
    settings = stored["settings"]
    setting = make_setting_caption(settings, f"seed {settings['seed']}")
    rows = []
    for leg in stored["flight"]["legs"]:
        rows.append((leg["phase"], leg["way"], sum(leg["messages"]), sum(leg["bytes"])))
    title = f"What travels in {METHODS[method].info.title}"
    detail = f"The run: {setting}."
    picture = describe_picture(None, title, setting, sentence, build_table(COLUMNS, rows))
    picture.alt = f"{title} ({setting}). {moments} {sentence}"
    picture.detail = detail
    picture.svg = svg
    return picture
