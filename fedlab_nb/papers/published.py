"""The papers' tables as data. A TOML file beside this one holds a table: its rows, and its numbers as
they are printed.

like = "fens:1"        the table that has what this one does not say itself
[rows.NAME]            a method of the paper: how this package runs it, or `why` it does not
[published.DATASET]    "alpha = 0.1" = "17.38±0.22 48.40±9.01 ...": the numbers of a column, in the order of the rows;
                       a column without " = ", such as "minutes", is shown, and neither run nor put into an order

`others.toml` has the figures and tables without numbers. `all_tables.paper_tables` shows both.

And which of its orderings agree: every pair of methods within a column whose numbers are of the
same quantity is one, and gets one verdict. In the paper the better method's mean is ahead by
`gap`. That is clear if Welch's 95 % interval from the printed standard deviations leaves out zero
(`is_clear_in_paper`; None where the paper prints none). Here both methods ran on the same seeds,
so `ours` is their paired difference with its band of Student's t, the paper's better one minus the
other: beyond zero it agrees, below it disagrees, else it is within the noise. It is not compared
where nothing was run, where our runs are of another setting or budget than the paper's
(`comparison.py`), or where a target was not reached.
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


def make_table_sort_key(name: str) -> tuple[int, bool, int]:
    """Sort the names of tables ("fedlpa:11") and figures ("fens:f7"): by paper, tables before
    figures, by number."""
    paper, _, item = name.partition(":")
    return list(PAPERS).index(paper), item.startswith("f"), int(item.lstrip("f"))


def list_tables() -> tuple[str, ...]:
    """The names of all tables that have a file here."""
    folder = Path(__file__).parent / "tables"
    names = [path.stem.replace("-", ":") for path in folder.glob("*-*.toml")]
    return tuple(sorted(names, key=make_table_sort_key))


TABLES = list_tables()
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
    def parse(cls, text: str) -> Number | None:
        """Read '17.38±0.22' or '17.38'; None for '-', where the paper has no number."""
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
        texts = []
        for name, value in self.values:
            if value is None:
                texts.append(name)
            elif isinstance(value, int | float):
                texts.append(f"{name} = {value:g}")
            else:
                texts.append(f"{name} = {value}")
        return ", ".join(texts)

    @property
    def is_shown_only(self) -> bool:
        """Whether it is shown only: a size or a time."""
        return any(value is None for _, value in self.values)

    @property
    def has_drawn_clients(self) -> bool:
        """Whether its clients are drawn; else they come with the data."""
        return any(name in ("alpha", "classes_per_client") for name, _ in self.values)


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper.

    number: what the numbers are;   quantity: the same in one term, see `comparison.name_quantity`
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

    @property
    def item(self) -> str:
        """'Table 1'."""
        return f"{self.kind} {self.table}"

    @property
    def datasets(self) -> list[str]:
        """The data sets of its columns, in order."""
        return list(dict.fromkeys(column.dataset for column in self.columns))

    def find_measure(self, row: str) -> str:
        """The measure that is read off a run of that row; see `cells.MEASURES`."""
        return self.rows[row].measure or self.measure

    def find_quantity(self, row: str) -> str:
        """The quantity of the paper's numbers in that row, see `comparison.name_quantity`."""
        return self.rows[row].quantity or self.quantity


def read_table_file(name: str) -> dict[str, Any]:
    """Read a table's file, with what it takes from the one that it is `like`."""
    content = dict(read_toml(f"{FOLDER}/{name.replace(':', '-')}.toml"))
    like = content.pop("like", "")
    if not like:
        return content
    return {**read_table_file(like), **content}


@functools.cache
def load_paper_table(name: str) -> PaperTable:
    """Load the table of that name, such as "fedlpa:1"; UsageError for another one."""
    content = read_table_file(choose("table of a paper", name, TABLES))
    rows = {}
    for row_name, fields in content.pop("rows").items():
        rows[row_name] = Row(row_name, **fields)
    columns = []
    for dataset, lines in content.pop("published").items():
        for setting, line in lines.items():
            numbers = parse_numbers(list(rows), line)
            columns.append(Column(dataset, parse_column_setting(setting), numbers))
    return PaperTable(name, rows=rows, columns=tuple(columns), **content)


def parse_numbers(rows: Sequence[str], line: str) -> dict[str, Number]:
    """Read a column's line, '17.38±0.22 48.40±9.01 -': {row: its number}, without rows that have
    none."""
    numbers = {}
    for row, text in zip(rows, line.split(), strict=True):
        number = Number.parse(text)
        if number is not None:
            numbers[row] = number
    return numbers


def parse_column_setting(setting: str) -> tuple[tuple[str, Any], ...]:
    """Read 'alpha = 0.1, clients = 20' as pairs of name and value; a setting without " = ", such
    as 'minutes', is one name with the value None."""
    if " = " not in setting:
        return ((setting, None),)
    pairs = []
    for part in setting.split(", "):
        name, sign, value = part.partition(" = ")
        pairs.append((name, parse_number(value) if sign else None))
    return tuple(pairs)


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
        numbers = self.column.numbers
        return round(abs(numbers[self.better].mean - numbers[self.worse].mean), 4)

    @property
    def is_clear_in_paper(self) -> bool | None:
        """Whether the paper's own spread makes the order clear; None where it prints none that could."""
        runs = self.table.runs
        better_spread = self.column.numbers[self.better].spread
        worse_spread = self.column.numbers[self.worse].spread
        if runs < 2 or math.isnan(better_spread) or math.isnan(worse_spread):
            return None
        return self.gap > compute_welch_width((better_spread**2, worse_spread**2), (runs, runs))

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


def list_orderings(
    table: PaperTable,
    values: Values,
    reasons_not_run: Mapping[Place, str],
    runs: Mapping[Place, Any],
    differences: Mapping[Place, str] | None = None,
) -> Iterator[Ordering]:
    """List all orderings of a table, each once.

    values: what was run here
    reasons_not_run: why the others were not
    runs: what tells the runs of a place from others (none: the place does)
    differences: why what was run at a place is not the paper's comparison
    """
    differences = differences or {}
    for place, column in enumerate(table.columns):
        if column.is_shown_only:
            continue
        for one, other in itertools.combinations(column.numbers, 2):
            if table.find_quantity(one) != table.find_quantity(other):
                continue
            gap = column.numbers[one].mean - column.numbers[other].mean
            is_first_better = gap == 0 or (gap > 0) != table.less_is_better
            better, worse = (one, other) if is_first_better else (other, one)
            pair = Ordering(table, column, better, worse)
            reason = explain_missing_comparison(pair, place, values, reasons_not_run, differences)
            if reason:
                yield replace(pair, why=reason)
                continue
            better_values = values[better, place]
            worse_values = values[worse, place]
            if table.less_is_better:
                ours = difference(worse_values, better_values)
            else:
                ours = difference(better_values, worse_values)
            both = frozenset(runs.get((name, place), (name, place)) for name in (better, worse))
            yield replace(pair, ours=ours, why="one seed" if ours.n < 2 else "", runs=both)


def explain_missing_comparison(
    pair: Ordering,
    place: int,
    values: Values,
    reasons_not_run: Mapping[Place, str],
    differences: Mapping[Place, str],
) -> str:
    """Say why a pair is not compared in the column at `place`; "" where it is."""
    places = [(pair.better, place), (pair.worse, place)]
    reasons = []
    if all(values.get(at) for at in places):
        for at in places:
            if at in differences:
                reasons.append(f"{at[0]}: {differences[at]}")
    else:
        for at in places:
            if at in reasons_not_run:
                reasons.append(reasons_not_run[at])
        if not reasons:
            reasons.append("not run")
    return "; ".join(dict.fromkeys(reasons))


def count_verdicts(orderings: Iterable[Ordering]) -> dict[str, int]:
    """Count the orderings of each verdict, all of VERDICTS in order."""
    counts = Counter(ordering.verdict for ordering in orderings)
    return {verdict: counts[verdict] for verdict in VERDICTS}


def count_run_pairs(orderings: Iterable[Ordering]) -> int:
    """Count the pairs of runs behind the orderings that were tried: one pair may stand for several
    columns."""
    return len({ordering.runs for ordering in orderings if ordering.verdict in TRIED})


def describe_verdicts(orderings: Iterable[Ordering]) -> str:
    """'agrees 5, disagrees 1, within the noise 2'; 'none' without orderings."""
    counts = count_verdicts(orderings)
    texts = [f"{verdict} {count}" for verdict, count in counts.items() if count]
    return ", ".join(texts) or "none"


# ------------------------------------------------------------------------------ what is not run here
def list_missing_items(paper: str) -> list[str]:
    """List what is not run of a paper's tables and figures, a line for each reason:
    'Tables 13, 14: the package ...'."""
    items_of: dict[str, list[str]] = {}  # by reason
    for item, (_, why) in read_toml(f"{FOLDER}/others.toml").get(paper, {}).items():
        items_of.setdefault(why, []).append(item)
    for name in TABLES:
        if name.startswith(f"{paper}:"):
            table = load_paper_table(name)
            for reason in list_missing_parts(table):
                items_of.setdefault(reason, []).append(table.item)
    return [f"{', '.join(items)}: {reason}" for reason, items in items_of.items()]


def list_missing_parts(table: PaperTable) -> list[str]:
    """List why a table, some of its data sets or some of its rows are not run here."""
    if table.why:
        return [table.why]
    reasons = []
    for dataset in table.datasets:
        is_sentence = " " in dataset
        if not is_sentence and dataset not in DATASETS:
            reasons.append(f"no data set {dataset}")
    for row in table.rows.values():
        if row.why:
            reasons.append(f"{row.name}: {row.why}")
    return reasons
