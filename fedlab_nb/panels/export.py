"""What a panel gives away: a folder with runs.csv, runs.json, reproduce.py, each picture as PNG and SVG; and the Python
lines.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..data import find_in_memory
from ..errors import RunError
from ..files import expand_path, write_file
from ..plots import Picture
from ..studies import results
from ..studies.outcome import ROUNDED
from .record import Runs

COLUMNS = ("run", *results.COLUMNS[:-1], "parameters", *ROUNDED)


def write(folder: str | Path, runs: Runs, pictures: Mapping[str, Picture], code: str) -> Path:
    """Write everything to `folder`, or to `folder-2`, … where that has something in it already; returns the folder."""
    from pandas import DataFrame

    try:
        place = free(expand_path(folder))
        place.mkdir(parents=True, exist_ok=True)
        rows = [
            {"run": row.run, **outcome.to_json()}
            for row in runs.rows
            for outcome in row.outcomes.values()
        ]
        write_file(place / "runs.csv", DataFrame(rows, columns=COLUMNS).to_csv(index=False))
        write_file(place / "runs.json", json.dumps(details(runs), indent=1, default=plain))
        again = script(runs) if runs.outcomes else code
        write_file(place / "reproduce.py", again + "\n")
        for name, picture in pictures.items():
            if picture.figure is not None:
                picture.save(place / f"{name}.png")
                picture.save(place / f"{name}.svg")
    except OSError as error:
        raise RunError(
            f"The export could not be written to {folder}: {error.strerror or error}; choose another folder."
        ) from None
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
    return [
        {"run": row.run, "pinned": row.pinned, **o.to_json(), "setting": o.about(), "ledger": o.ledger.to_json(),
         "history": o.history, "per_class": o.per_class, "per_client": o.per_client}
        for row in runs.rows for o in row.outcomes.values()
    ]  # fmt: skip


def plain(value: Any) -> Any:
    """numpy numbers and arrays as JSON; anything else as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def code(methods: Sequence[str], settings: Mapping[str, Any], runs: Runs) -> str:
    """The Python lines that do what Run would do now, and what the pinned runs were."""
    lines = ["import fedlab_nb as fl", *remarks([settings]), f"outs = {python(methods, settings)}"]
    for run in dict.fromkeys(row.run for row in runs.rows if row.pinned):
        rows = [row for row in runs.rows if row.pinned and row.run == run]
        lines.append(f"run_{run} = {python([row.method for row in rows], rows[0].settings)}")
    return "\n".join([*lines, "outs.table()"])


SCRIPT = Path(__file__).with_name("reproduce.txt").read_text(encoding="utf-8")


def script(runs: Runs) -> str:
    """A Python file that computes every result of runs.csv again and prints it beside the exported one."""
    calls = []
    for run, seed in dict.fromkeys((row.run, seed) for row in runs.rows for seed in row.outcomes):
        rows = [row for row in runs.rows if row.run == run and seed in row.outcomes]
        settings = {**rows[0].settings, "seed": seed, "seeds": 1}
        line = python([row.method for row in rows], settings, cache="CACHE")
        calls.append(f"results += [({run}, o) for o in {line}]")
    notes = remarks([row.settings for row in runs.rows])
    return SCRIPT.replace("# RUNS", "\n".join([*notes, *calls])).strip()


def remarks(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is to be done first, elsewhere: data sets of this session's memory are not in the package."""
    names = dict.fromkeys(str(each.get("dataset", "")) for each in settings)
    return [
        f"# {name!r} is in this session's memory: elsewhere, fl.add_dataset({name!r}, ...) first"
        for name in names
        if find_in_memory(name) is not None
    ]


def python(methods: Sequence[str], settings: Mapping[str, Any], **more: str) -> str:
    """The Python line that does what Run does; `more`: further arguments, as code."""
    given = [
        f"{key}={value!r}" for key, value in settings.items() if "." not in key and key not in more
    ]
    given += [f"{key}={value}" for key, value in more.items()]
    dotted = {key: value for key, value in settings.items() if "." in key}
    given += [f"**{dotted!r}"] if dotted else []
    return f"fl.compare({', '.join([repr(list(methods)), *given])})"
