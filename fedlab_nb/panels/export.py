"""Write a panel's results to a folder: runs.csv, runs.json, each picture as PNG and SVG, and the Python lines."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..draw import Picture, png, svg
from ..errors import RunError
from .record import Record

COLUMNS = (
    "run", "method", "dataset", "alpha", "clients", "seed", "preset", "accuracy", "bytes_up", "bytes_down",
    "parameters", "seconds_local", "seconds_method", "seconds_total",
)  # fmt: skip


def write(folder: str | Path, record: Record, pictures: Mapping[str, Picture], code: str) -> Path:
    """Write everything to `folder`, or to `folder-2`, … where that has something in it already; returns the folder."""
    try:
        place = free(Path(folder).expanduser())
        place.mkdir(parents=True, exist_ok=True)
        rows = [
            {"run": row.run, **row.outcomes[seed].to_json()} for row in record.rows for seed in sorted(row.outcomes)
        ]
        with open(place / "runs.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", restval="")
            writer.writeheader()
            writer.writerows(rows)
        (place / "runs.json").write_text(json.dumps(details(record), indent=1, default=plain), encoding="utf-8")
        (place / "reproduce.py").write_text(code + "\n", encoding="utf-8")
        for name, picture in pictures.items():
            if picture.figure is None:
                continue
            (place / f"{name}.png").write_bytes(png(picture))
            (place / f"{name}.svg").write_bytes(svg(picture))
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


def details(record: Record) -> list[dict[str, Any]]:
    """Every result with what the CSV has no room for: curves, accuracies by class and client, the ledger."""
    found = []
    for row in record.rows:
        for seed in sorted(row.outcomes):
            o = row.outcomes[seed]
            more = {
                "setting": o.setting,
                "history": o.history,
                "per_class": o.per_class,
                "per_client": o.per_client,
                "ledger": o.ledger.to_json(),
            }
            found.append({"run": row.run, "pinned": row.pinned, **o.to_json(), **more})
    return found


def plain(value: Any) -> Any:
    """numpy numbers and arrays as JSON; anything else as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
