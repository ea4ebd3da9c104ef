"""Pictures of what a method sends: `journey("fens")` shows its messages in four moments of their
flight, `journey()` is a map of all methods.

The moments are drawn by the stage's own modules (`front/flight_stills.js`) from the ledger of a run, and stored beside
it: `notebooks/draw_journeys.py` makes both. So the picture needs neither a kernel nor a script.
"""

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict
from xml.etree import ElementTree

from ..errors import check_allowed_name
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


class SettingsAndMessagesOfRun(TypedDict):
    """The messages of one run.

    settings: of the run, as `fl.run` takes them
    colours:  of the clients, "#rrggbb"
    """

    settings: dict[str, Any]
    colours: list[str]
    flight: Flight


def journey(*methods: str) -> Picture:
    """Show what clients send, what comes back, and what the server makes of it.

    For one method: the flight of its messages in a run with the settings of its lab, with the bytes. For
    several methods, or without a name for all: a map with a small drawing for each group of methods and kind
    of message, and what the server needs in addition. A method without a stored run, such as one of your own,
    has the map, and a sentence that says where to see its flight.

    Raises UsageError for a name that is not a method's.
    """
    names = [check_allowed_name("method", name, METHODS) for name in methods or METHODS]
    if len(names) == 1 and names[0] in read_stored_flights_by_method():
        return read_stored_journey_picture(names[0])
    picture = draw_method_map(names)
    if len(names) == 1 and METHODS[names[0]].info.sends:
        call = f"fl.playground(methods=[{names[0]!r}])"
        hint = f"No run of it is stored: {call} shows its messages travel after Run."
        picture.sentence = f"{hint} {picture.sentence}"
        picture.alt = f"{picture.alt} {hint}"
    return picture


@functools.cache
def read_stored_flights_by_method() -> Mapping[str, SettingsAndMessagesOfRun]:
    """Read the flights of the stored runs: {method: flight}."""
    return json.loads(FLIGHTS.read_text(encoding="utf-8"))


def get_stored_journey_path(method: str) -> Path:
    """Return where the stored picture of a method is."""
    return FOLDER / f"{method}.svg"


def read_stored_journey_picture(method: str) -> Picture:
    """Read a method's stored picture, with its words and its numbers."""
    stored = read_stored_flights_by_method()[method]
    svg = get_stored_journey_path(method).read_text(encoding="utf-8")
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
