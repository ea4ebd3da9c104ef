"""Rows of a declared study: one method at one setting, with a value for each seed, and what it was made with.

A study's results are one JSON file, with a line for each row. A row holds as long as the options that it has keep their
values: an option that came since then had its default when the row was made.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import FedlabError
from .engine import carried_out
from .experiment import Event
from .grid import Cell
from .outcome import Outcome
from .results import write
from .settings import Plan, Settings, plans_for

Row = dict[str, Any]
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

    @cached_property
    def cells(self) -> list[Cell]:
        """The runs, one a seed."""
        return [Cell(self.plan(seed), self.at) for seed in self.seeds]

    def plan(self, seed: int) -> Plan:
        return plans_for(replace(self.settings, seed=seed), [self.method])[0]

    @cached_property
    def key(self) -> str:
        return key_of({"runs": self.runs, "method": self.method, "at": self.at})

    @cached_property
    def made(self) -> Mapping[str, Any]:
        """What a row of this point is made with today."""
        return made_with(self.plan(self.seeds[0])) if self.watched is None else self.watched

    def is_now(self, row: Mapping[str, Any] | None) -> bool:
        """Whether a stored row is of this point, whole, and made with today's values of the options that it has."""
        if row is None or row["seeds"] != list(self.seeds):
            return False
        whole = "failed" in row or self.columns.keys() <= row.keys()
        return whole and all(self.made.get(name) == value for name, value in row["made"].items())


def key_of(row: Mapping[str, Any]) -> str:
    """What tells a row from the others of its study."""
    return json.dumps([row["runs"], row["method"], row["at"]], sort_keys=True)


def made_with(plan: Plan) -> dict[str, Any]:
    """The clients' model and recipe, and the method's options, by qualified name."""
    recipe = {f"recipe.{name}": value for name, value in asdict(plan.recipe).items()}
    options = {f"{plan.name}.{name}": value for name, value in asdict(plan.method).items()}  # type: ignore[call-overload]
    return json.loads(json.dumps({"model": plan.model, **recipe, **options}))


def neighbours(cells: Iterable[Cell]) -> list[Cell]:
    """The cells in another order: those that begin with the same trained clients stand together."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.plan.clients_key(), []).append(cell)
    return [cell for of in groups.values() for cell in of]


def computed(
    points: Sequence[Point],
    decimals: int | None = None,
    *,
    workers: int = 1,
    cache: bool = True,
    watch: Callable[[Event], None] = lambda event: None,
    finished: Callable[[Cell, Outcome | None, str], None] = lambda cell, outcome, error: None,
) -> Iterator[tuple[Point, Row]]:
    """Each point with its row, as soon as all its runs are there. A run that failed has None in each column, and the
    row says why.

    decimals: of a number that is not whole; None: all of them;   finished: is told of each run, as `carried_out` says
    """
    home = {id(cell): point for point in points for cell in point.cells}
    runs: dict[str, dict[int, Row]] = {point.key: {} for point in points}
    cells = neighbours(cell for point in points for cell in point.cells)
    for cell, outcome, error in carried_out(cells, workers=workers, cache=cache, watch=watch):
        finished(cell, outcome, error)
        point = home[id(cell)]
        own = runs[point.key]
        own[cell.seed] = dict.fromkeys(point.columns) | {"failed": error}
        if outcome is not None:
            own[cell.seed] |= {name: rounded(column(outcome), decimals) for name, column in point.columns.items()}
        if len(own) == len(point.cells):
            row: Row = {"runs": point.runs, "method": point.method, "at": dict(point.at), "seeds": [*point.seeds]}
            row |= {"made": dict(point.made)}
            row |= {name: [own[seed][name] for seed in point.seeds] for name in point.columns}
            errors = [of["failed"] for of in own.values() if of["failed"]]
            yield point, row | ({"failed": errors[0]} if errors else {})


def rounded(value: Any, decimals: int | None) -> float | None:
    """A number as it is stored: whole numbers as they are."""
    return value if value is None or decimals is None or isinstance(value, int) else round(float(value), decimals)


def read(path: Path) -> tuple[dict[str, Any], list[Row]]:
    """What a file says of itself, and its rows; FedlabError if it is missing or is no such file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        made = content["made"]
        return content["about"], [{**row, "made": made[row["made"]]} for row in content["rows"]]
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise FedlabError(f"The stored results in {path.name} cannot be read: {error!r}.") from None


def save(path: Path, about: Mapping[str, Any], rows: Iterable[Row]) -> None:
    """Write a file, whole or not at all."""
    made: dict[str, int] = {}
    lines = []
    for row in rows:
        place = made.setdefault(json.dumps(row["made"], sort_keys=True), len(made))
        lines.append(json.dumps({**row, "made": place}, separators=(",", ":")))
    parts = [f'"{name}": [\n{body}\n]' for name, body in (("made", ",\n".join(made)), ("rows", ",\n".join(lines)))]
    write(path, f'{{"about": {json.dumps(about)},\n{parts[0]},\n{parts[1]}\n}}\n')
