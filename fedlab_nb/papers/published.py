"""The papers' tables as data. A TOML file beside this one holds a table: its rows, and its numbers as they are printed.

like = "fens:1"        the table that has what this one does not say itself
[rows.NAME]            a method of the paper: how this package runs it, or `why` it does not
[published.DATASET]    "alpha = 0.1" = "17.38±0.22 48.40±9.01 ...": the numbers of a column, in the order of the rows;
                       a column without " = ", such as "minutes", is shown, and neither run nor put into an order

`others.toml` has the figures and tables without numbers. `every.paper_tables` shows both.

And which of its orderings agree: every pair of methods within a column whose numbers are of the same quantity is one,
and gets one verdict.
In the paper the better method's mean is ahead by `gap`. That is clear if Welch's 95 % interval from the printed
standard deviations leaves out zero (`clear_there`; None where the paper prints none). Here both methods ran on the same
seeds, so `ours` is their paired difference with its band of Student's t, the paper's better one minus the other: beyond
zero it agrees, below it disagrees, else it is within the noise. It is not compared where nothing was run, where our
runs are of another setting or budget than the paper's (`comparison.py`), or where a target was not reached.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..data import DATASETS
from ..declared import read_toml
from ..errors import choose, parse_number
from ..studies.statistics import Band, compute_welch_width, difference

FOLDER = "papers/tables"
PAPERS = {
    "fens": "FENS",
    "fedet": "Fed-ET",
    "coboosting": "Co-Boosting",
    "fusefl": "FuseFL",
    "fedlpa": "FedLPA",
}


def place_of(name: str) -> tuple[int, bool, int]:
    """Where a table ("fedlpa:11") or a figure ("fens:f7") stands among all: by paper, tables before figures."""
    paper, _, item = name.partition(":")
    return list(PAPERS).index(paper), item.startswith("f"), int(item.lstrip("f"))


_files = (
    path.stem.replace("-", ":") for path in (Path(__file__).parent / "tables").glob("*-*.toml")
)
TABLES = tuple(sorted(_files, key=place_of))  # whose numbers are here
VERDICTS = ("agrees", "disagrees", "within the noise", "tie in the paper", "not compared")
TRIED = VERDICTS[:3]
Place = tuple[str, int]  # of a number: its row, and the place of its column
Values = Mapping[Place, Mapping[int, float]]  # {...: {seed: value}}


@dataclass(frozen=True)
class Number:
    """A published number with its printed spread (nan where there is none), and as it is printed."""

    mean: float
    spread: float
    printed: str

    @classmethod
    def of(cls, text: str) -> Number | None:
        """'17.38±0.22' or '17.38'; None for '-', where the paper has no number."""
        if text == "-":
            return None
        mean, _, spread = text.partition("±")
        return cls(float(mean), float(spread or "nan"), text.replace("±", " ± "))


@dataclass(frozen=True)
class Row:
    """A method of a table. `method`: its name here, "" where the package has none, and then `why`; `settings`: what the
    row sets at every scale; `classroom`: at classroom scale beside it; `measure`: what is read off a run; `quantity`:
    what the paper's number is, where it is not that of the table; `why_small`: it is not run at classroom scale."""

    name: str
    method: str = ""
    why: str = ""
    measure: str = ""
    quantity: str = ""
    why_small: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    classroom: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Column:
    """A column of a table: the data set, what is set for it (`alpha`, `classes_per_client`, `clients`, `target`, ...;
    None: nothing, its name says what it is), and the published number of each row that has one."""

    dataset: str
    values: tuple[tuple[str, Any], ...]
    numbers: Mapping[str, Number]

    @property
    def setting(self) -> str:
        """'alpha = 0.1'."""
        pairs = ((k, f"{v:g}" if isinstance(v, int | float) else v) for k, v in self.values)
        return ", ".join(name if value is None else f"{name} = {value}" for name, value in pairs)

    @property
    def plain(self) -> bool:
        """Whether it is shown only: a size or a time."""
        return any(value is None for _, value in self.values)

    @property
    def dealt(self) -> bool:
        """Whether its clients are drawn; else they come with the data."""
        return any(name in ("alpha", "classes_per_client") for name, _ in self.values)


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper.

    number: what the numbers are;   quantity: the same in one term, see `comparison.quantity_of`
    runs: how many seeds are behind each mean, where the printed spread is a standard deviation (0: it tells nothing)
    settings, classroom: of all its runs, the second at classroom scale alone
    differs: "ROW.KNOB" ("*": of several rows) of the rules that are not the paper's at classroom scale
    own: the row that the paper argues for ("": none);   why: it is not run at classroom scale;   kind: or "Figure"
    core_hours: it can be run at classroom scale, but is not stored, as ten seeds take so many hours on one core
    quoted: rows whose published numbers are another paper's, of another setting: no claims
    remedy: what runs the rows that the classroom's networks cannot run, and how long it takes
    not_given: options whose values the paper does not name, so that ours stand for them
    inferred: rows whose numbers may be another row's, since the text has lost what tells them apart: no claims
    elsewhere: rows whose published numbers another table has under another name: their claims are made there
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
    quantity: str = "accuracy"
    settings: Mapping[str, Any] = field(default_factory=dict)
    classroom: Mapping[str, Any] = field(default_factory=dict)
    differs: Sequence[str] = ()
    note: str = ""
    own: str = ""
    inferred: Sequence[str] = ()
    elsewhere: Sequence[str] = ()
    quoted: Sequence[str] = ()
    remedy: str = ""
    not_given: Sequence[str] = ()
    why: str = ""
    core_hours: float = 0
    kind: str = "Table"

    item = property(lambda self: f"{self.kind} {self.table}")

    @property
    def datasets(self) -> list[str]:
        """The data sets of its columns, in order."""
        return list(dict.fromkeys(column.dataset for column in self.columns))

    def measured(self, row: str) -> str:
        """What is read off a run of that row; see `measures`."""
        return self.rows[row].measure or self.measure

    def quantity_of(self, row: str) -> str:
        """What the paper's numbers of that row are."""
        return self.rows[row].quantity or self.quantity


def content_of(name: str) -> dict[str, Any]:
    """A table's file, with what it takes from the one that it is `like`."""
    own = dict(read_toml(f"{FOLDER}/{name.replace(':', '-')}.toml"))
    like = own.pop("like", "")
    return {**content_of(like), **own} if like else own


@functools.cache
def paper_table(name: str) -> PaperTable:
    """The table of that name, such as "fedlpa:1"; UsageError for another one."""
    content = content_of(choose("table of a paper", name, TABLES))
    rows = {own: Row(own, **about) for own, about in content.pop("rows").items()}
    columns = []
    for dataset, of in content.pop("published").items():
        for setting, line in of.items():
            numbers = dict(zip(rows, map(Number.of, line.split()), strict=True))
            pairs = (
                part.partition(" = ")
                for part in (setting.split(", ") if " = " in setting else [setting])
            )
            values = tuple(
                (key, parse_number(value) if sign else None) for key, sign, value in pairs
            )
            columns.append(
                Column(dataset, values, {k: n for k, n in numbers.items() if n is not None})
            )
    return PaperTable(name, rows=rows, columns=tuple(columns), **content)


# -------------------------------------------------------------------------------------------------- orderings
@dataclass(frozen=True, repr=False)
class Ordering:
    """One pair of methods in one column. `better`, `worse`: as published (of a tie: in the table's order). `runs`: the
    runs that both are compared by here, which may stand for other columns, too."""

    table: PaperTable
    column: Column
    better: str
    worse: str
    ours: Band | None = None
    why: str = ""  # it was not run
    runs: frozenset[Any] = frozenset()

    @property
    def gap(self) -> float:
        """How far `better` is ahead in the paper, in the table's unit; at least 0."""
        a, b = (self.column.numbers[name].mean for name in (self.better, self.worse))
        return round(abs(a - b), 4)

    @property
    def clear_there(self) -> bool | None:
        """Whether the paper's own spread makes the order clear; None where it prints none that could."""
        one, other = (self.column.numbers[name].spread for name in (self.better, self.worse))
        if self.table.runs < 2 or math.isnan(one + other):
            return None
        return self.gap > compute_welch_width(
            (one**2, other**2), (self.table.runs, self.table.runs)
        )

    @property
    def verdict(self) -> str:
        """One of VERDICTS."""
        if self.gap == 0:
            return "tie in the paper"
        if self.ours is None or self.ours.verdict == "one seed":
            return "not compared"
        if self.ours.verdict != "clear":
            return "within the noise"
        return "agrees" if self.ours.mean > 0 else "disagrees"

    def __repr__(self) -> str:
        return f"{self.better} over {self.worse} on {self.column.dataset}, {self.column.setting}: {self.verdict}"


def orderings(
    table: PaperTable,
    values: Values,
    why: Mapping[Place, str],
    runs: Mapping[Place, Any],
    against: Mapping[Place, str] | None = None,
) -> Iterator[Ordering]:
    """All orderings of a table, each once.

    values: what was run here;   why: the reason of what was not;   runs: what tells the runs of a place from others
    (none: the place does);   against: why what was run at a place is not the paper's comparison
    """
    against = against or {}
    for place, column in enumerate(table.columns):
        if column.plain:
            continue
        for one, other in itertools.combinations(column.numbers, 2):
            if table.quantity_of(one) != table.quantity_of(other):
                continue
            gap = column.numbers[one].mean - column.numbers[other].mean
            is_first_better = gap == 0 or (gap > 0) != table.less_is_better
            better, worse = (one, other) if is_first_better else (other, one)
            pair = Ordering(table, column, better, worse)
            reason = find_reason(pair, place, values, why, against)
            if reason:
                yield replace(pair, why=reason)
                continue
            mine, theirs = values[better, place], values[worse, place]
            ours = difference(theirs, mine) if table.less_is_better else difference(mine, theirs)
            both = frozenset(runs.get((name, place), (name, place)) for name in (better, worse))
            yield replace(pair, ours=ours, why="one seed" if ours.n < 2 else "", runs=both)


def find_reason(
    pair: Ordering,
    place: int,
    values: Values,
    why: Mapping[Place, str],
    against: Mapping[Place, str],
) -> str:
    """Why a pair is not compared at `place`; "" where it is."""
    both = [(name, place) for name in (pair.better, pair.worse)]
    if all(values.get(at) for at in both):
        reasons = [f"{at[0]}: {against[at]}" for at in both if at in against]
    else:
        reasons = [why[at] for at in both if at in why] or ["not run"]
    return "; ".join(dict.fromkeys(reasons))


def counts(of: Iterable[Ordering]) -> dict[str, int]:
    """How many there are of each verdict, all of VERDICTS in order."""
    seen = Counter(ordering.verdict for ordering in of)
    return {verdict: seen[verdict] for verdict in VERDICTS}


def pairs(of: Iterable[Ordering]) -> int:
    """How many pairs of runs are behind those that were tried: one pair may stand for several columns."""
    return len({one.runs for one in of if one.verdict in TRIED})


def tally(of: Iterable[Ordering]) -> str:
    """'agrees 5, disagrees 1, within the noise 2'."""
    return (
        ", ".join(f"{verdict} {count}" for verdict, count in counts(of).items() if count) or "none"
    )


# ------------------------------------------------------------------------------------------- what is not run here
def not_here(paper: str) -> list[str]:
    """'Tables 13, 14: the package ...' of all that is not run of a paper's tables and figures, by reason."""
    reasons: dict[str, list[str]] = {}
    for item, (_, why) in read_toml(f"{FOLDER}/others.toml").get(paper, {}).items():
        reasons.setdefault(why, []).append(item)
    for table in (paper_table(name) for name in TABLES if name.startswith(f"{paper}:")):
        absent = [
            f"no data set {name}"
            for name in table.datasets
            if not name.count(" ") and name not in DATASETS
        ]
        rows = [f"{row.name}: {row.why}" for row in table.rows.values() if row.why]
        for why in [table.why] if table.why else [*absent, *rows]:
            reasons.setdefault(why, []).append(table.item)
    return [f"{', '.join(items)}: {why}" for why, items in reasons.items()]
