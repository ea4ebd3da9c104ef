"""The stored table of results: what the first view of a panel shows before anything has been run.

Every method on the digits, and on the second classroom set, at the settings that `papers/declared/stored-*.toml` name.
The command `python -m fedlab_nb.papers.declared stored` makes them. `load()` and `load("glyphs:16g")` read them;
nothing is trained for that.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import fmean
from typing import Any

from ..methods import label_of
from .stored_rows import Row, find_file, read_stored_rows

DIGITS = "digits"
SETS = (DIGITS, "glyphs:16g")


def list_stored_sets() -> list[str]:
    """The data sets of which there is a table."""
    return [name for name in SETS if find_file("stored", name).exists()]


@dataclass(frozen=True, eq=False)
class StoredTable:
    """The stored results of one data set.

    about: version, torch, date (ISO), command, note
    rows: {(method, alpha, clients): the row}

    A row has, by seed, accuracy 0–1 on the test set, rounded to 4 digits; bytes_up, bytes_down; parameters;
    seconds_local, seconds_method: wall time on the machine that made the table, where other work went on; nll and ece,
    None for scores that are no probabilities.
    """

    dataset: str
    about: Mapping[str, Any]
    rows: Mapping[tuple[str, float, int], Row]

    @cached_property
    def axes(self) -> list[list[Any]]:
        """Methods, alphas and numbers of clients, in the table's order."""
        return [list(dict.fromkeys(values)) for values in zip(*self.rows, strict=True)]

    @property
    def methods(self) -> list[str]:
        """The methods that have stored results."""
        return self.axes[0]

    @property
    def alphas(self) -> list[float]:
        """The stored values of α."""
        return self.axes[1]

    @property
    def clients(self) -> list[int]:
        """The stored numbers of clients."""
        return self.axes[2]

    @property
    def seeds(self) -> list[int]:
        """The seeds of every row."""
        first_row = next(iter(self.rows.values()))
        return first_row["seeds"]

    def options(self, method: str) -> dict[str, Any]:
        """What a method's runs were made with, by qualified name: `recipe.epochs`, `fens.rounds`."""
        return next(row["made"] for (name, _, _), row in self.rows.items() if name == method)

    def title(self, method: str) -> str:
        """What a method's runs in the table are called."""
        options = self.options(method)
        plain = {name.removeprefix(f"{method}."): value for name, value in options.items()}
        return label_of(method, plain)

    @property
    def label(self) -> str:
        """What a picture says of its source: 'stored results of 2025-01-31, version 0.1.0'."""
        return f"stored results of {self.about['date']}, version {self.about['version']}"

    def values(self, column: str, method: str, alpha: float, clients: int) -> dict[int, Any]:
        """{seed: a number of the runs} of one stored setting; without the runs that failed; empty if the table lacks
        it."""
        row = self.rows.get((method, float(alpha), clients))
        if row is None:
            return {}
        pairs = zip(row["seeds"], row[column], strict=True)
        return {seed: value for seed, value in pairs if value is not None}

    def accuracies(self, method: str, alpha: float, clients: int) -> dict[int, float]:
        """{seed: accuracy} of one stored setting."""
        return self.values("accuracy", method, alpha, clients)

    def seconds(self) -> dict[str, float]:
        """{method: mean seconds of a run}, training of the clients included."""
        seconds: dict[str, list[float]] = {}
        for (name, _, _), row in self.rows.items():
            runs = zip(row["seconds_local"], row["seconds_method"], strict=True)
            seconds.setdefault(name, []).extend(local + method for local, method in runs)
        return {name: fmean(of_method) for name, of_method in seconds.items()}

    def list_accuracies_by_alpha(self, method: str, clients: int) -> dict[float, dict[int, float]]:
        """{alpha: {seed: accuracy}} at a stored number of clients."""
        return {alpha: self.accuracies(method, alpha, clients) for alpha in self.alphas}

    def find_nearest_clients(self, clients: float) -> int:
        """The stored number of clients nearest to `clients`, on a logarithmic scale."""
        return min(self.clients, key=lambda m: abs(math.log(m / max(clients, 1))))


@lru_cache(maxsize=len(SETS))
def load(dataset: str = DIGITS) -> StoredTable:
    """The table of a data set that came with the package; FedlabError where there is none."""
    about, rows = read_stored_rows(find_file("stored", dataset))
    by_setting = {}
    for row in rows:
        setting = row["at"]
        by_setting[row["method"], float(setting["alpha"]), setting["clients"]] = row
    return StoredTable(dataset, about, by_setting)
