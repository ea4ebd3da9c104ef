"""Points and their rows: which runs a declared study wants, whether a stored row is still of them, making it again.

A point is one method at one setting. A row holds as long as its data sets are the same and the options that it has
keep their values: an option that came since then had its default when the row was made. A row also says on which
processor, and with which PyTorch and NumPy it was made (`on`); elsewhere the same runs differ by rounding. `Declared`
is a study: the points that are wanted, the rows that are stored, and the command that makes what is missing.
"""

from __future__ import annotations

import json
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

from .. import __version__
from ..data import DATASETS, describe
from ..files import write_file
from ..studies.code_version import torch_version
from ..studies.engine import run_cells
from ..studies.grid import Cell
from ..studies.outcome import Outcome
from ..studies.settings import Plan, Settings, plans_for
from ..studies.stored_rows import Row, make_row_key, read_rows

COMMAND = "python -m fedlab_nb.papers.declared"
COLUMNS: Mapping[str, Callable[[Outcome], Any]] = {
    "accuracy": lambda outcome: outcome.accuracy,
    "bytes": lambda outcome: outcome.bytes_up + outcome.bytes_down,
}


@dataclass(frozen=True)
class Point:
    """What a row is about: runs that differ in their seed alone.

    runs, at: what tells it from the other points of its study;   settings: of one of the runs
    columns: what the row keeps of each run;   watched: the options that decide whether it holds; None: all of them
    """

    runs: str
    method: str
    at: Mapping[str, Any]
    settings: Settings
    seeds: Sequence[int]
    columns: Mapping[str, Callable[[Outcome], Any]] = field(default_factory=dict)
    watched: Mapping[str, Any] | None = None

    def plan(self, seed: int) -> Plan:
        return plans_for(replace(self.settings, seed=seed), [self.method])[0]

    @cached_property
    def cells(self) -> list[Cell]:
        """The runs, one a seed."""
        return [Cell(self.plan(seed), self.at) for seed in self.seeds]

    @cached_property
    def key(self) -> str:
        return make_row_key({"runs": self.runs, "method": self.method, "at": self.at})

    @cached_property
    def made(self) -> Mapping[str, Any]:
        """What a row of this point is made with today: the clients' model and recipe, and the method's options."""
        if self.watched is not None:
            return self.watched
        plan = self.plan(self.seeds[0])
        parts: dict[str, Any] = {"recipe": plan.recipe, plan.name: plan.method}
        of = {
            f"{part}.{name}": value
            for part, own in parts.items()
            for name, value in asdict(own).items()
        }
        return json.loads(json.dumps({"model": plan.model, **of}))

    @cached_property
    def data(self) -> str:
        """Digests of the data sets that the runs read, joined by "+"; without those whose files are not here."""
        digests = [self.settings.describe().digest]
        for _, value in self.settings.overrides:
            if value in DATASETS:  # such as Fed-ET's public images
                digests.append(describe(value).digest)
        return "+".join(digest for digest in digests if digest)

    def is_now(self, row: Row | None) -> bool:
        """Whether a stored row is of this point, whole, and made with today's data and today's values of the options
        that it has."""
        if row is None or row["seeds"] != list(self.seeds):
            return False
        if row.get("data", self.data) != self.data:
            return False
        whole = "failed" in row or self.columns.keys() <= row.keys()
        return whole and row["made"].items() <= self.made.items()


def computed(
    points: Sequence[Point],
    decimals: int | None = None,
    finished: Callable[[Cell, Outcome | None, str], None] = lambda cell, outcome, error: None,
    **ways: Any,
) -> Iterator[tuple[Point, Row]]:
    """Each point with its row, as soon as all its runs are there. A run that failed has None in each column, and the
    row says why.

    decimals: of a number that is not whole; None: all of them;   finished: is told of each run
    ways: workers, cache and so on, as `run_cells` takes them
    """
    home = {id(cell): point for point in points for cell in point.cells}
    runs: dict[str, dict[int, Row]] = {point.key: {} for point in points}
    for cell, outcome, error in run_cells(neighbours(points), **ways):
        finished(cell, outcome, error)
        point = home[id(cell)]
        own, columns = runs[point.key], point.columns.items()
        values = (
            dict.fromkeys(point.columns)
            if outcome is None
            else {name: of(outcome) for name, of in columns}
        )
        own[cell.seed] = {name: rounded(value, decimals) for name, value in values.items()} | {
            "failed": error
        }
        if len(own) == len(point.seeds):
            row: Row = {
                "runs": point.runs,
                "method": point.method,
                "at": dict(point.at),
                "seeds": [*point.seeds],
            }
            row |= {"made": dict(point.made), "data": point.data, "on": made_on()}
            row |= {name: [own[seed][name] for seed in point.seeds] for name in point.columns}
            errors = [of["failed"] for of in own.values() if of["failed"]]
            yield point, row | ({"failed": errors[0]} if errors else {})


def neighbours(points: Iterable[Point]) -> list[Cell]:
    """All runs; those that begin with the same trained clients stand together."""
    first: dict[str, int] = {}
    cells = (cell for point in points for cell in point.cells)
    return sorted(cells, key=lambda cell: first.setdefault(cell.plan.clients_key(), len(first)))


def name_of(device: str) -> str:
    """What a device is called: "cpu", or the card's own name."""
    if device == "cpu":
        return device
    import torch

    return torch.cuda.get_device_name(device)


@cache
def made_on() -> str:
    """The processor and the libraries that decide the last digits of a run, such as "AMD EPYC; torch 2.14.1, numpy
    2.4.6"."""
    return f"{processor()}; torch {torch_version()}, numpy {metadata.version('numpy')}"


def stamps(rows: Iterable[Row]) -> dict[str, int]:
    """On what how many of the rows were made."""
    return dict(Counter(row.get("on", "not recorded") for row in rows))


def processor() -> str:
    """What the processor is called; where the system does not say, its kind."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    except OSError:
        pass  # no Linux
    return platform.processor() or platform.machine()


def rounded(value: Any, decimals: int | None) -> float | None:
    """A number as it is stored: whole numbers as they are."""
    return (
        value
        if value is None or decimals is None or isinstance(value, int)
        else round(float(value), decimals)
    )


def save(path: Path, about: Mapping[str, Any], rows: Iterable[Row]) -> None:
    """Write a file, whole or not at all."""
    made: dict[str, int] = {}
    lines = []
    for row in rows:
        place = made.setdefault(json.dumps(row["made"], sort_keys=True), len(made))
        lines.append(json.dumps({**row, "made": place}, separators=(",", ":")))
    parts = [
        f'"{name}": [\n{body}\n]'
        for name, body in (("made", ",\n".join(made)), ("rows", ",\n".join(lines)))
    ]
    write_file(path, f'{{"about": {json.dumps(about)},\n{parts[0]},\n{parts[1]}\n}}\n', force=True)


@dataclass(frozen=True)
class Declared:
    """A study by name. path: its results;   note: what its file says of them;   decimals: of a number in a row

    wanted: gives the points that are wanted, from the rows that are there already (for a study that goes on from what
    came out)
    """

    name: str
    path: Path
    note: str = ""
    decimals: int = 4
    wanted: Callable[[Sequence[Row]], Iterable[Point]] = lambda rows: ()

    def points(self, rows: Sequence[Row] = ()) -> Iterable[Point]:
        return self.wanted(rows)

    def rows(self) -> list[Row]:
        """The stored rows, none if nothing was stored yet."""
        return read_rows(self.path)[1] if self.path.exists() else []

    def missing(self, rows: Sequence[Row], anew: Sequence[str] = ()) -> list[Point]:
        """The points that have no row, or one that was made with other settings; and those of the methods `anew`."""
        stored = {make_row_key(row): row for row in rows}
        return [p for p in self.points(rows) if p.method in anew or not p.is_now(stored.get(p.key))]

    def stale(self) -> list[str]:
        """What `missing` says of the stored rows, a sentence for each method."""
        parts = dict.fromkeys(
            f"{self.name}/{point.runs}/{point.method}" for point in self.missing(self.rows())
        )
        return [
            f"{part}: rows are missing or have other settings; run {COMMAND} {self.name}"
            for part in parts
        ]

    def make(self, *, anew: Sequence[str] = (), **ways: Any) -> dict[str, str]:
        """Compute what is missing, and the methods `anew` in any case, until nothing is. A call that was stopped keeps
        its rows, and goes on where it was. Returns why points failed, by key."""
        rows, done, device = {make_row_key(row): row for row in self.rows()}, set[str](), "cpu"
        earlier = read_rows(self.path)[0].get("minutes", 0) if self.path.exists() else 0
        began = time.monotonic()
        try:
            while todo := [p for p in self.missing([*rows.values()], anew) if p.key not in done]:
                for point, row in computed(todo, self.decimals, **ways):
                    rows[point.key] = row
                    done.add(point.key)
                    device = point.cells[0].plan.settings.device
        finally:
            if done or not self.path.exists():
                wanted = [
                    rows[point.key] for point in self.points([*rows.values()]) if point.key in rows
                ]
                made: Row = {
                    "version": __version__,
                    "torch": torch_version(),
                    "date": date.today().isoformat(),
                }
                made |= {
                    "on": stamps(wanted),
                    "device": name_of(device),
                    "minutes": earlier + round((time.monotonic() - began) / 60),
                }
                save(
                    self.path,
                    {**made, "command": f"{COMMAND} {self.name}", "note": self.note},
                    wanted,
                )
        return {key: rows[key]["failed"] for key in done if "failed" in rows[key]}
