"""Make the pictures of what travels that `fl.journey` shows: run each method as its lab does, and draw its ledger as
the stage does.

    python notebooks/draw_journeys.py                # run all methods, and draw
    python notebooks/draw_journeys.py fens fedlpa    # only these
    python notebooks/draw_journeys.py --stored       # run nothing: draw what is stored, after a change of the drawing
    python notebooks/draw_journeys.py --check        # run nothing; exit 1 if a picture is not what would be drawn

The drawing is JavaScript, so this script needs Node.js; to show the pictures nobody does.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from typing import Any

import numpy as np

from fedlab_nb.errors import RunError, UsageError, check_allowed_name, format_error_on_one_line
from fedlab_nb.files import write_file
from fedlab_nb.front import join_front_modules_into_expression
from fedlab_nb.front.flight import describe_flight
from fedlab_nb.front.vocabulary import choose_words_for_clients_and_samples
from fedlab_nb.labs import find_lab_spec
from fedlab_nb.methods import METHODS
from fedlab_nb.methods.base import shorten_method_title
from fedlab_nb.plots.journey import (
    FLIGHTS,
    SettingsAndMessagesOfRun,
    get_stored_journey_path,
    read_stored_flights_by_method,
)
from fedlab_nb.plots.style import list_class_colours
from fedlab_nb.studies.experiment import run

ONE_SHOT = {"dataset": "digits", "clients": 10, "alpha": 0.1, "seed": 0}
SAMPLES = "images"


def make_stored_flight(method: str) -> SettingsAndMessagesOfRun | None:
    """Run a method as its lab does, and describe what has travelled; None if nothing was sent."""
    settings = {**ONE_SHOT, **find_lab_spec(method).settings}
    settings.pop("seeds", None)
    own_settings = {}
    for name, value in settings.items():
        if "." not in name:
            own_settings[name] = value
    outcome = run(method, **own_settings)
    flight = describe_flight(method, outcome.ledger)
    if flight is None:
        return None
    palette = list_class_colours(outcome.label_counts.shape[1])
    # Each client has the colour of the class that it holds most of, as on the stage.
    colours = [str(palette[label]) for label in np.argmax(outcome.label_counts, axis=1)]
    return {"settings": own_settings, "colours": colours, "flight": flight}


def draw_stills(flights: dict[str, SettingsAndMessagesOfRun]) -> dict[str, str]:
    """Draw the SVG of each method's flight with the stage's modules, in Node.js."""
    node = shutil.which("node")
    if node is None:
        raise UsageError("Node.js is not installed, and draws the pictures; install it (node).")
    tasks = []
    for method, stored in flights.items():
        people = choose_words_for_clients_and_samples(str(stored["settings"]["dataset"]), SAMPLES)
        title = shorten_method_title(METHODS[method].info.title)
        tasks.append([title, stored["flight"], people, stored["colours"]])
    program = (
        f"const front = {join_front_modules_into_expression('flight_stills')};"
        "const tasks = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
        "console.log(JSON.stringify(tasks.map((task) => front.drawStills(...task))));"
    )
    process = subprocess.run(
        [node, "-e", program], input=json.dumps(tasks), capture_output=True, text=True, check=False
    )
    if process.returncode != 0:
        raise RunError(f"Node.js could not draw the pictures: {process.stderr[-1000:]}")
    return dict(zip(flights, json.loads(process.stdout), strict=True))


def list_stale_stills(flights: dict[str, SettingsAndMessagesOfRun]) -> list[str]:
    """The names of the files that are not what would be drawn."""
    stale = []
    for method, svg in draw_stills(flights).items():
        path = get_stored_journey_path(method)
        if not path.is_file() or path.read_text(encoding="utf-8") != svg:
            stale.append(path.name)
    return stale


def write_stills(flights: dict[str, SettingsAndMessagesOfRun]) -> None:
    """Write what has travelled, and the picture of it."""
    lines = []
    for method, stored in flights.items():
        lines.append(f"{json.dumps(method)}: {json.dumps(stored, ensure_ascii=False)}")
    write_file(FLIGHTS, "{\n" + ",\n".join(lines) + "\n}\n", force=True)
    for method, svg in draw_stills(flights).items():
        write_file(get_stored_journey_path(method), svg, force=True)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("methods", nargs="*", metavar="METHOD", help="default: all")
    parser.add_argument("--stored", action="store_true", help="run nothing, draw what is stored")
    parser.add_argument("--check", action="store_true", help="run nothing, write nothing")
    options = parser.parse_args(arguments)
    flights: dict[str, Any] = dict(read_stored_flights_by_method()) if FLIGHTS.is_file() else {}
    if options.check:
        stale = list_stale_stills(flights)
        for name in stale:
            print(f"{name} is not what is drawn now: python notebooks/draw_journeys.py --stored")
        return int(bool(stale))
    if not options.stored:
        for method in options.methods or METHODS:
            stored = make_stored_flight(check_allowed_name("method", method, METHODS))
            if stored is not None:
                flights[method] = stored
                print(method, flush=True)
    in_order = {method: flights[method] for method in METHODS if method in flights}
    write_stills(in_order)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (UsageError, RunError) as error:
        sys.exit(format_error_on_one_line(error))
