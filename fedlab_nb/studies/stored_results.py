"""The stored tables of results, which the first view of a panel shows before anything has been run.

They have every method on the digits and on the second classroom set, at the settings in
`papers/declared/stored-*.toml`. The command `python -m fedlab_nb.papers.declared stored` makes them; `load()` and
`load("glyphs:16g")` only read them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import fmean
from typing import NamedTuple

from ..methods import choose_method_label
from ..value_types import JsonValue, SettingsByName
from .statistics import ValuesBySeed
from .stored_rows import StoredRow, make_path_of_stored_rows, read_stored_rows

MeanSecondsByMethod = dict[str, float]
AccuraciesByAlphaAndSeed = dict[float, ValuesBySeed]

DIGITS = "digits"
SETS = (DIGITS, "glyphs:16g")


def list_datasets_with_stored_results() -> list[str]:
    """List the data sets for which there is a table."""
    return [name for name in SETS if make_path_of_stored_rows("stored", name).exists()]


class TableAxes(NamedTuple):
    """The methods, alphas and numbers of clients in a table, in the table's order."""

    methods: list[str]
    alphas: list[float]
    client_counts: list[int]


@dataclass(frozen=True, eq=False)
class StoredTable:
    """The stored results of one data set.

    about: version, torch, date (ISO), command, note
    rows: {(method, alpha, clients): the row}

    A row has, for each seed, accuracy (0–1 on the test set, rounded to 4 digits), bytes_up, bytes_down, parameters,
    seconds_local and seconds_method (wall time on the machine that made the table, which was also doing other work),
    and nll and ece (None for scores that are not probabilities).
    """

    dataset: str
    about: Mapping[str, JsonValue]
    rows: Mapping[tuple[str, float, int], StoredRow]

    @cached_property
    def axes(self) -> TableAxes:
        """Methods, alphas and numbers of clients, in the table's order."""
        methods = list(dict.fromkeys(method for method, _, _ in self.rows))
        alphas = list(dict.fromkeys(alpha for _, alpha, _ in self.rows))
        clients = list(dict.fromkeys(clients for _, _, clients in self.rows))
        return TableAxes(methods, alphas, clients)

    @property
    def methods(self) -> list[str]:
        """The methods that have stored results."""
        return self.axes.methods

    @property
    def alphas(self) -> list[float]:
        """The stored values of α."""
        return self.axes.alphas

    @property
    def client_counts(self) -> list[int]:
        """The stored numbers of clients."""
        return self.axes.client_counts

    @property
    def seeds(self) -> list[int]:
        """The seeds of every row."""
        first_row = next(iter(self.rows.values()))
        return first_row["seeds"]

    def get_options_of_method(self, method: str) -> SettingsByName:
        """Return the settings of a method's runs, by qualified name: `recipe.epochs`, `fens.rounds`."""
        return next(row["made"] for (name, _, _), row in self.rows.items() if name == method)

    def get_title_of_method(self, method: str) -> str:
        """Return the title of a method's runs in the table."""
        options = self.get_options_of_method(method)
        plain = {name.removeprefix(f"{method}."): value for name, value in options.items()}
        return choose_method_label(method, plain)

    @property
    def label(self) -> str:
        """The source that a picture names: 'stored results of 2025-01-31, version 0.1.0'."""
        return f"stored results of {self.about['date']}, version {self.about['version']}"

    def get_values_by_seed(
        self, column: str, method: str, alpha: float, client_count: int
    ) -> ValuesBySeed:
        """{seed: a run's value of `column`} for one stored setting, without failed runs; {} if it is not stored."""
        row = self.rows.get((method, float(alpha), client_count))
        if row is None:
            return {}
        pairs = zip(row["seeds"], row[column], strict=True)
        return {seed: value for seed, value in pairs if value is not None}

    def get_accuracies_by_seed(self, method: str, alpha: float, client_count: int) -> ValuesBySeed:
        """{seed: accuracy} of one stored setting."""
        return self.get_values_by_seed("accuracy", method, alpha, client_count)

    def compute_mean_seconds_by_method(self) -> MeanSecondsByMethod:
        """Compute {method: mean seconds of a run}, training of the clients included."""
        seconds: dict[str, list[float]] = {}
        for (name, _, _), row in self.rows.items():
            runs = zip(row["seconds_local"], row["seconds_method"], strict=True)
            seconds.setdefault(name, []).extend(local + method for local, method in runs)
        return {name: fmean(method_seconds) for name, method_seconds in seconds.items()}

    def get_accuracies_by_alpha_and_seed(
        self, method: str, client_count: int
    ) -> AccuraciesByAlphaAndSeed:
        """{alpha: {seed: accuracy}} at a stored number of clients."""
        return {
            alpha: self.get_accuracies_by_seed(method, alpha, client_count) for alpha in self.alphas
        }

    def find_nearest_client_count(self, client_count: float) -> int:
        """Find the stored number of clients nearest to `client_count`, on a logarithmic scale."""
        return min(self.client_counts, key=lambda m: abs(math.log(m / max(client_count, 1))))


@lru_cache(maxsize=len(SETS))
def load(dataset: str = DIGITS) -> StoredTable:
    """Load the table of a data set that came with the package; FedlabError if there is none."""
    about, rows = read_stored_rows(make_path_of_stored_rows("stored", dataset))
    by_setting = {}
    for row in rows:
        setting = row["at"]
        by_setting[row["method"], float(setting["alpha"]), setting["clients"]] = row
    return StoredTable(dataset, about, by_setting)
