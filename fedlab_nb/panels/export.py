"""What a panel gives away: a folder with runs.csv, runs.json, each picture as PNG and SVG; and the Python lines."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..data import in_memory
from ..errors import RunError, sentence
from ..plots import Picture
from ..study import results
from .record import Runs

COLUMNS = ("run", *results.COLUMNS[:-1], "parameters", "nll", "ece", "seconds_local", "seconds_method", "seconds_total")


def write(folder: str | Path, runs: Runs, pictures: Mapping[str, Picture], code: str) -> Path:
    """Write everything to `folder`, or to `folder-2`, … where that has something in it already; returns the folder."""
    try:
        place = free(Path(folder).expanduser())
        place.mkdir(parents=True, exist_ok=True)
        rows = [{"run": row.run, **outcome.to_json()} for row in runs.rows for outcome in row.outcomes.values()]
        with open(place / "runs.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", restval="")
            writer.writeheader()
            writer.writerows(rows)
        (place / "runs.json").write_text(json.dumps(details(runs), indent=1, default=plain), encoding="utf-8")
        (place / "reproduce.py").write_text(code + "\n", encoding="utf-8")
        for name, picture in pictures.items():
            if picture.figure is not None:
                picture.save(place / f"{name}.png")
                picture.save(place / f"{name}.svg")
    except OSError as error:
        raise RunError(sentence("panel.export", folder=folder, why=error.strerror or error)) from None
    return place


def free(folder: Path) -> Path:
    """`folder`, or the first of `folder-2`, `folder-3`, … that is not there or empty."""
    place, number = folder, 1
    while place.is_file() or (place.is_dir() and any(place.iterdir())):
        number += 1
        place = folder.with_name(f"{folder.name}-{number}")
    return place


def details(runs: Runs) -> list[dict[str, Any]]:
    """Every result with what the CSV has no room for: curves, accuracies by class and client, the ledger."""
    rows = []
    for row in runs.rows:
        for o in row.outcomes.values():
            more = {name: getattr(o, name) for name in ("history", "per_class", "per_client")}
            more = {"setting": o.about(), **more, "ledger": o.ledger.to_json()}
            rows.append({"run": row.run, "pinned": row.pinned, **o.to_json(), **more})
    return rows


def plain(value: Any) -> Any:
    """numpy numbers and arrays as JSON; anything else as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def code(methods: Sequence[str], settings: Mapping[str, Any], runs: Runs) -> str:
    """The Python lines that do what Run would do now, and what the pinned runs were."""
    name = settings.get("dataset", "")
    memory = f"# {name!r} is in this session's memory: elsewhere, fl.add_dataset({name!r}, ...) first"
    lines = [
        "import fedlab_nb as fl",
        memory if in_memory(name) is not None else "",
        f"outs = {python(methods, settings)}",
    ]
    for run in dict.fromkeys(row.run for row in runs.rows if row.pinned):
        rows = [row for row in runs.rows if row.pinned and row.run == run]
        lines.append(f"run_{run} = {python([row.method for row in rows], rows[0].settings)}")
    return "\n".join([*lines, "outs.table()"])


def python(methods: Sequence[str], settings: Mapping[str, Any]) -> str:
    """The Python line that does what Run does."""
    given = ", ".join(f"{key}={value!r}" for key, value in settings.items() if "." not in key)
    dotted = {key: value for key, value in settings.items() if "." in key}
    given += f", **{dotted!r}" if dotted else ""
    return f"fl.compare({list(methods)!r}, {given})"
