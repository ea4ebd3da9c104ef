"""Reading the stored table: rows by method, alpha, clients and seed, and the nearest stored setting."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from ...declared import declared
from ...errors import FedlabError


@dataclass(frozen=True)
class Grid:
    """What is stored of a data set. `images`: what a sentence says of it."""

    alphas: tuple[float, ...]
    clients: tuple[int, ...]
    seeds: tuple[int, ...]
    images: str


DIGITS = "digits"
GRIDS = {
    name: Grid(tuple(map(float, of["alpha"])), tuple(of["clients"]), tuple(range(of["seeds"])), of["images"])
    for name, of in declared("study/stored/grids.toml").items()
}


def file_of(dataset: str) -> Path:
    """Where the table of a data set stands, or would."""
    return Path(__file__).parent / f"{dataset.replace(':', '')}.json"


ALPHAS, CLIENTS, SEEDS = GRIDS[DIGITS].alphas, GRIDS[DIGITS].clients, GRIDS[DIGITS].seeds
FILE = file_of(DIGITS)
KEYS = ("method", "alpha", "clients", "seed")
FIRST = (*KEYS, "accuracy", "bytes_up", "bytes_down", "parameters", "seconds_local", "seconds_method")
LATER = ("nll", "ece")  # what a table that was made before these columns were lacks
COLUMNS = (*FIRST, *LATER)


@dataclass(frozen=True)
class Stored:
    """The table. `about`: version, torch, date (ISO), command, note, settings, recipe, methods (name -> date, options).

    `rows`: (method, alpha, clients, seed) -> dict of COLUMNS; accuracy 0–1 on the test set, rounded to 4 digits; bytes
    exact; seconds of wall time on the machine that made the table, where other work went on. nll and ece are None in
    rows that were made before there were such columns, and for scores that are no probabilities.
    """

    about: Mapping[str, Any]
    rows: Mapping[tuple[str, float, int, int], Mapping[str, Any]]

    @property
    def dataset(self) -> str:
        """The data set's name."""
        return self.about["settings"]["dataset"]

    @property
    def grid(self) -> Grid:
        """What it has of each method."""
        return GRIDS[self.dataset]

    @cached_property
    def methods(self) -> list[str]:
        """The methods that are in the table, in its order."""
        return list(dict.fromkeys(key[0] for key in self.rows))

    @property
    def label(self) -> str:
        """What a picture says of its source: 'stored results of 2025-01-31, version 0.1.0'."""
        return f"stored results of {self.about['date']}, version {self.about['version']}"

    def accuracies(self, method: str, alpha: float, clients: int) -> dict[int, float]:
        """{seed: accuracy} of one stored setting; empty if the table lacks it."""
        stored = ((seed, self.rows.get((method, float(alpha), clients, seed))) for seed in self.grid.seeds)
        return {seed: row["accuracy"] for seed, row in stored if row is not None}

    def against_alpha(self, method: str, clients: int) -> dict[float, dict[int, float]]:
        """{alpha: {seed: accuracy}} at a stored number of clients."""
        return {alpha: self.accuracies(method, alpha, clients) for alpha in self.grid.alphas}

    def nearest_clients(self, clients: float) -> int:
        """The stored number of clients nearest to `clients`, on a logarithmic scale."""
        return min(self.grid.clients, key=lambda m: abs(math.log(m / max(clients, 1))))

    def row(self, method: str, alpha: float, clients: int, seed: int = 0) -> Mapping[str, Any]:
        """One row; KeyError if the table lacks it."""
        return self.rows[method, float(alpha), clients, seed]


def read(path: str | Path) -> Stored:
    """The table in `path`; FedlabError if it is missing or not such a table."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        columns = tuple(content["columns"])
        if columns not in (FIRST, COLUMNS):
            raise ValueError("its columns are another version's")
        blank: dict[str, Any] = dict.fromkeys(LATER)
        rows = [blank | dict(zip(columns, row, strict=True)) for row in content["rows"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FedlabError(f"The stored results in {Path(path).name} cannot be read: {error}.") from None
    about = {key: value for key, value in content.items() if key not in ("columns", "rows")}
    return Stored(about, {(r["method"], float(r["alpha"]), r["clients"], r["seed"]): r for r in rows})


@lru_cache(maxsize=len(GRIDS))
def load(dataset: str = DIGITS) -> Stored:
    """The table of a data set that came with the package; FedlabError where there is none."""
    return read(file_of(dataset))


def sets() -> list[str]:
    """The data sets of which there is a table."""
    return [name for name in GRIDS if file_of(name).exists()]
