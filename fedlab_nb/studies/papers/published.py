"""The papers' tables as data. A TOML file beside this one holds a table: its rows, and its numbers as they are printed.

[rows.NAME]            a method of the paper: how this package runs it, or `why` it does not
[published.DATASET]    "alpha = 0.1" = "17.38±0.22 48.40±9.01 ...": the numbers of a column, in the order of the rows
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...declared import declared
from ...errors import choose, parsed

FOLDER = "studies/papers"
TABLES = ("fens:1", "fedet:2", "fedet:3", "coboosting:1", "coboosting:2", "fusefl:2", "fedlpa:1")


@dataclass(frozen=True)
class Number:
    """A published number with its printed spread (nan where there is none), and as it is printed."""

    mean: float
    spread: float = math.nan
    printed: str = field(default="", compare=False)

    @classmethod
    def of(cls, text: str) -> Number | None:
        """'17.38±0.22' or '17.38'; None for '-', where the paper has no number."""
        if text == "-":
            return None
        mean, _, spread = text.partition("±")
        return cls(float(mean), float(spread or "nan"), text.replace("±", " ± "))

    def __str__(self) -> str:
        return self.printed or f"{self.mean:g}" + ("" if math.isnan(self.spread) else f" ± {self.spread:g}")


@dataclass(frozen=True)
class Row:
    """A method of a table. `method`: its name here, "" where the package has none, and then `why`; `settings`: what the
    row sets at every scale; `classroom`: at classroom scale beside it; `measure`: what is read off a run."""

    name: str
    method: str = ""
    why: str = ""
    measure: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    classroom: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Column:
    """A column of a table: the data set, what is set for it (`alpha`, `classes_per_client`, `clients`, `target`), and
    the published number of each row that has one."""

    dataset: str
    values: tuple[tuple[str, Any], ...]
    numbers: Mapping[str, Number]

    @property
    def setting(self) -> str:
        """'alpha = 0.1'."""
        return ", ".join(f"{name} = {value:g}" for name, value in self.values)


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper.

    number: what the numbers are;   runs: how many seeds are behind each mean, where the printed spread is a standard
    deviation (0: the spread tells nothing);   settings, classroom: of all its runs, the second at classroom scale alone
    """

    name: str
    title: str
    paper: str
    table: int
    number: str
    runs: int
    preset: str
    rows: Mapping[str, Row]
    columns: tuple[Column, ...]
    less_is_better: bool = False
    measure: str = "accuracy"
    settings: Mapping[str, Any] = field(default_factory=dict)
    classroom: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    @property
    def datasets(self) -> list[str]:
        """The data sets of its columns, in order."""
        return list(dict.fromkeys(column.dataset for column in self.columns))

    def measured(self, row: str) -> str:
        """What is read off a run of that row; see `measures`."""
        return self.rows[row].measure or self.measure


@functools.cache
def paper_table(name: str) -> PaperTable:
    """The table of that name, such as "fedlpa:1"; UsageError for another one."""
    file = choose("table of a paper", name, TABLES).replace(":", "-")
    content = dict(declared(f"{FOLDER}/{file}.toml"))
    rows = {own: Row(own, **about) for own, about in content.pop("rows").items()}
    columns = []
    for dataset, of in content.pop("published").items():
        for setting, line in of.items():
            numbers = dict(zip(rows, map(Number.of, line.split()), strict=True))
            pairs = (part.split(" = ") for part in setting.split(", "))
            values = tuple((key, parsed(value)) for key, value in pairs)
            columns.append(Column(dataset, values, {k: n for k, n in numbers.items() if n is not None}))
    return PaperTable(name, rows=rows, columns=tuple(columns), **content)
