"""The stored table of results: what the first view of a panel shows before anything has been run.

Every method on the digits, and on the second classroom set, at the settings that `declared/stored-*.toml` name. The
command `python -m fedlab_nb.studies.declared stored` makes them. `load()` and `load("glyphs:16g")` read them; nothing
is trained for that.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from ..declared import declared
from ..methods import label_of
from ..training.recipe import OFF
from .rows import read

DIGITS = "digits"
FOLDER = Path(__file__).parent / "declared"


@dataclass(frozen=True)
class Grid:
    """What is stored of a data set. `images`: what a sentence says of it."""

    alphas: tuple[float, ...]
    clients: tuple[int, ...]
    seeds: tuple[int, ...]
    images: str

    @classmethod
    def of(cls, dataset: str) -> "Grid":
        content = declared(f"studies/declared/{file_of(dataset).stem}.toml")
        runs = content["runs"]["table"]
        return cls(tuple(runs["alpha"]), tuple(runs["clients"]), tuple(runs["seeds"]), content["about"]["images"])


def file_of(dataset: str) -> Path:
    """Where the table of a data set stands, or would."""
    return FOLDER / f"stored-{dataset.replace(':', '')}.json"


GRIDS = {name: Grid.of(name) for name in (DIGITS, "glyphs:16g")}
ALPHAS, CLIENTS, SEEDS = GRIDS[DIGITS].alphas, GRIDS[DIGITS].clients, GRIDS[DIGITS].seeds


@dataclass(frozen=True, eq=False)
class Stored:
    """The table. `about`: version, torch, date (ISO), command, note, settings, recipe, methods (name -> options).

    `rows`: (method, alpha, clients, seed) -> accuracy 0–1 on the test set, rounded to 4 digits; bytes_up, bytes_down;
    parameters; seconds_local, seconds_method: wall time on the machine that made the table, where other work went on;
    nll and ece, None for scores that are no probabilities.
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

    def title(self, method: str) -> str:
        """What a method's runs in the table are called."""
        return label_of(method, self.about["methods"][method]["options"])

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


@lru_cache(maxsize=len(GRIDS))
def load(dataset: str = DIGITS) -> Stored:
    """The table of a data set that came with the package; FedlabError where there is none."""
    about, rows = read(file_of(dataset))
    options: dict[str, dict[str, Any]] = {}
    table: dict[tuple[str, float, int, int], Mapping[str, Any]] = {}
    for row in rows:
        own = {name.partition(".")[2]: v for name, v in row["made"].items() if name.startswith(f"{row['method']}.")}
        options[row["method"]] = {"options": own}
        at = {"method": row["method"], "alpha": float(row["at"]["alpha"]), "clients": row["at"]["clients"]}
        columns = [name for name in row if isinstance(row[name], list) and name != "seeds"]
        for i, seed in enumerate(row["seeds"]):
            if row["accuracy"][i] is not None:  # else it failed
                table[(*at.values(), seed)] = {**at, "seed": seed, **{name: row[name][i] for name in columns}}
    made = ((name.removeprefix("recipe."), v) for name, v in rows[0]["made"].items() if name.startswith("recipe."))
    recipe = {name: value for name, value in made if OFF.get(name) != value}
    grid = GRIDS[dataset]
    axes = {"alpha": list(grid.alphas), "clients": list(grid.clients), "seed": list(grid.seeds)}
    settings = {"dataset": dataset, "preset": "classroom", "device": "cpu", **axes}
    return Stored({**about, "settings": settings, "recipe": recipe, "methods": options}, table)


def sets() -> list[str]:
    """The data sets of which there is a table."""
    return [name for name in GRIDS if file_of(name).exists()]
