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
(`comparison.py`), where a target was not reached, or where the published number of a row is quoted
from another paper.
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
from ..errors import choose, parse_if_number
from ..studies.statistics import Band, compute_welch_half_width, difference
from .durations import (
    describe_duration,
    get_duration_in_seconds_or_nan,
    insert_durations_into_text,
)

FOLDER = "papers/tables"
PAPERS = {
    "fens": "FENS",
    "fedet": "Fed-ET",
    "coboosting": "Co-Boosting",
    "fusefl": "FuseFL",
    "fedlpa": "FedLPA",
}


def make_sort_key_of_table_name(name: str) -> tuple[int, bool, int]:
    """Sort the names of tables ("fedlpa:11") and figures ("fens:f7"): by paper, tables before
    figures, by number."""
    paper, _, item = name.partition(":")
    return list(PAPERS).index(paper), item.startswith("f"), int(item.lstrip("f"))


def list_table_names() -> tuple[str, ...]:
    """List the names of all tables that have a file here."""
    folder = Path(__file__).parent / "tables"
    names = [path.stem.replace("-", ":") for path in folder.glob("*-*.toml")]
    return tuple(sorted(names, key=make_sort_key_of_table_name))


TABLES = list_table_names()
VERDICTS = ("agrees", "disagrees", "within the noise", "tie in the paper", "not compared")
TRIED = VERDICTS[:3]
OrderingVerdict = str  # one of VERDICTS
TableFields = dict[str, Any]  # of a table's TOML file
NamedValues = tuple[tuple[str, Any], ...]  # (name of a setting, its value)
TableCell = tuple[str, int]  # of a number: its row, and the place of its column
SeedValuesByCell = Mapping[TableCell, Mapping[int, float]]  # {...: {seed: value}}
# As many as MNIST, CIFAR-10 and most other data sets of the papers have.
TEST_IMAGES = 10_000
QUOTED = "its published number is another paper's, of another setting"


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
class TableRow:
    """A method of a table. `method`: its name here, "" where the package has none, and then `why`; `settings`: what the
    row sets at every scale; `classroom`: at classroom scale beside it; `measure`: what is read off a run; `quantity`:
    what the paper's number is, where it is not that of the table; `compared_as`: the quantity of the rows that the
    paper compares it with, where that is another one; `why_small`: it is not run at classroom scale."""

    name: str
    method: str = ""
    why: str = ""
    measure: str = ""
    quantity: str = ""
    compared_as: str = ""
    why_small: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    classroom: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TableColumn:
    """A column of a table: the data set, what is set for it (`alpha`, `classes_per_client`, `clients`, `target`, ...;
    None: nothing, its name says what it is), the published number of each row that has one, and the rows whose number
    is `quoted` from another paper, which has it for another setting."""

    dataset: str
    values: tuple[tuple[str, Any], ...]
    numbers: Mapping[str, Number]
    quoted: frozenset[str] = frozenset()

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

    number: what the numbers are;   quantity: the same in one term, see `comparison.name_measured_quantity`
    runs: how many seeds are behind each mean, where the printed spread is a standard deviation (0: it tells nothing)
    settings, classroom: of all its runs, the second at classroom scale alone
    differs: "ROW.KNOB" ("*": of several rows) of the rules that are not the paper's at classroom scale
    own: the row that the paper argues for ("": none);   why: it is not run at classroom scale;   kind: or "Figure"
    too_long: it can be run at classroom scale, but is not stored, as ten seeds take hours
    too_long_on: the same of the columns of these data sets
    longer: {name: what is set for them} of the runs that are not stored, whose times `durations.py` has; "all" and the
        names of data sets are those of the two lines above
    quoted: rows whose published numbers are another paper's, of another setting: no claims; a file has `quoted_in`
        where only some columns have such numbers
    remedy: what runs the rows that the classroom's networks cannot run, and how long it takes
    not_given: options whose values the paper does not name, so that ours stand for them: "rounds" of all rows, or
        "FedAvg.rounds"
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
    rows: Mapping[str, TableRow]
    columns: tuple[TableColumn, ...]
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
    too_long: bool = False
    too_long_on: Sequence[str] = ()
    longer: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    kind: str = "Table"

    @property
    def item(self) -> str:
        """'Table 1'."""
        return f"{self.kind} {self.table}"

    @property
    def datasets(self) -> list[str]:
        """The data sets of its columns, in order."""
        return list(dict.fromkeys(column.dataset for column in self.columns))

    def get_measure_name(self, row_name: str) -> str:
        """Return the measure that is read off a run of that row; see `cells.MEASURES`."""
        return self.rows[row_name].measure or self.measure

    def get_quantity_name(self, row_name: str) -> str:
        """Return the quantity of the paper's numbers in that row, see `comparison.name_measured_quantity`."""
        return self.rows[row_name].quantity or self.quantity

    def get_compared_quantity_name(self, row_name: str) -> str:
        """Return the quantity of the rows that the paper compares that row with."""
        return self.rows[row_name].compared_as or self.get_quantity_name(row_name)

    def list_options_not_given(self, row_name: str) -> list[str]:
        """List the options of a row whose values the paper does not name."""
        options = []
        for name in self.not_given:
            of_row, _, option = name.rpartition(".")
            if of_row in ("", row_name):
                options.append(option)
        return options

    @property
    def is_in_percent(self) -> bool:
        """Whether the numbers are shares in per cent."""
        return "%" in self.number


def read_table_file(table_name: str) -> TableFields:
    """Read a table's file, with what it takes from the one that it is `like`."""
    content = dict(read_toml(f"{FOLDER}/{table_name.replace(':', '-')}.toml"))
    like = content.pop("like", "")
    if not like:
        return content
    return {**read_table_file(like), **content}


@functools.cache
def load_paper_table(name: str) -> PaperTable:
    """Load the table of that name, such as "fedlpa:1"; UsageError for another one."""
    content = read_table_file(choose("table of a paper", name, TABLES))
    for text in ("note", "remedy"):
        if text in content:
            content[text] = insert_durations_into_text(content[text], name).replace("{table}", name)
    rows = {}
    for row_name, fields in content.pop("rows").items():
        rows[row_name] = TableRow(row_name, **fields)
    quoted_in = content.pop("quoted_in", {})
    columns = []
    for dataset, lines in content.pop("published").items():
        for setting, line in lines.items():
            numbers = parse_column_numbers(list(rows), line)
            quoted = {*content.get("quoted", ()), *quoted_in.get(dataset, {}).get(setting, ())}
            columns.append(
                TableColumn(dataset, parse_column_settings(setting), numbers, frozenset(quoted))
            )
    return PaperTable(name, rows=rows, columns=tuple(columns), **content)


def parse_column_numbers(row_names: Sequence[str], printed_numbers: str) -> dict[str, Number]:
    """Read a column's line, '17.38±0.22 48.40±9.01 -': {row: its number}, without rows that have
    none."""
    numbers = {}
    for row, text in zip(row_names, printed_numbers.split(), strict=True):
        number = Number.parse(text)
        if number is not None:
            numbers[row] = number
    return numbers


def parse_column_settings(setting: str) -> NamedValues:
    """Read 'alpha = 0.1, clients = 20' as pairs of name and value; a setting without " = ", such
    as 'minutes', is one name with the value None."""
    if " = " not in setting:
        return ((setting, None),)
    pairs = []
    for part in setting.split(", "):
        name, sign, value = part.partition(" = ")
        pairs.append((name, parse_if_number(value) if sign else None))
    return tuple(pairs)


# -------------------------------------------------------------------------------------------------- orderings
@dataclass(frozen=True, repr=False)
class Ordering:
    """One pair of methods in one column. `better`, `worse`: as published (of a tie: in the table's order). `runs`: the
    runs that both are compared by here, which may stand for other columns, too."""

    table: PaperTable
    column: TableColumn
    better: str
    worse: str
    ours: Band | None = None
    why: str = ""  # it was not run
    runs: frozenset[Any] = frozenset()

    @property
    def published_gap_in_table_unit(self) -> float:
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
        return self.published_gap_in_table_unit > compute_welch_half_width(
            (better_spread**2, worse_spread**2), (runs, runs)
        )

    @property
    def is_claimed(self) -> bool:
        """Whether the paper's own numbers say which of the two is ahead: the intervals that it prints, mean ± spread,
        do not overlap.

        Where no standard deviation over seeds is printed, the gap also has to be larger than what other test images
        would change. This is milder than `is_clear_in_paper`: with three seeds a gap has to be large to be clear.
        """
        numbers = (self.column.numbers[self.better], self.column.numbers[self.worse])
        spread = sum(number.spread for number in numbers if not math.isnan(number.spread))
        least = spread
        if self.is_clear_in_paper is None:
            least = max(spread, self._compute_sampling_error_of_test_images())
        return self.published_gap_in_table_unit > least

    def _compute_sampling_error_of_test_images(self) -> float:
        """Half the width of the 95 % interval of a difference of two shares of TEST_IMAGES, in points; 0 where the
        numbers are no shares."""
        if not self.table.is_in_percent:
            return 0.0
        first = self.column.numbers[self.better].mean / 100
        second = self.column.numbers[self.worse].mean / 100
        variances = (first * (1 - first), second * (1 - second))
        return 100 * compute_welch_half_width(variances, (TEST_IMAGES, TEST_IMAGES))

    @property
    def verdict(self) -> OrderingVerdict:
        """One of VERDICTS."""
        if self.published_gap_in_table_unit == 0:
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
    seed_values_by_cell: SeedValuesByCell,
    reasons_not_run: Mapping[TableCell, str],
    run_key_by_cell: Mapping[TableCell, Any],
    difference_by_cell: Mapping[TableCell, str] | None = None,
) -> Iterator[Ordering]:
    """List all orderings of a table, each once.

    seed_values_by_cell: what was run here
    reasons_not_run: why the others were not
    run_key_by_cell: what tells the runs of a place from others (none: the place does)
    difference_by_cell: why what was run at a place is not the paper's comparison
    """
    difference_by_cell = difference_by_cell or {}
    for place, column in enumerate(table.columns):
        if column.is_shown_only:
            continue
        for one, other in itertools.combinations(column.numbers, 2):
            if table.get_compared_quantity_name(one) != table.get_compared_quantity_name(other):
                continue
            gap = column.numbers[one].mean - column.numbers[other].mean
            is_first_better = gap == 0 or (gap > 0) != table.less_is_better
            better, worse = (one, other) if is_first_better else (other, one)
            pair = Ordering(table, column, better, worse)
            reason = explain_missing_comparison(
                pair, place, seed_values_by_cell, reasons_not_run, difference_by_cell
            )
            both = frozenset(
                run_key_by_cell.get((name, place), (name, place)) for name in (better, worse)
            )
            if not reason and len(both) == 1:
                reason = "both rows are the same run here"
            if reason:
                yield replace(pair, why=reason)
                continue
            better_values = seed_values_by_cell[better, place]
            worse_values = seed_values_by_cell[worse, place]
            if table.less_is_better:
                ours = difference(worse_values, better_values)
            else:
                ours = difference(better_values, worse_values)
            yield replace(pair, ours=ours, why="one seed" if ours.n < 2 else "", runs=both)


def explain_missing_comparison(
    ordering: Ordering,
    column_index: int,
    seed_values_by_cell: SeedValuesByCell,
    reasons_not_run: Mapping[TableCell, str],
    difference_by_cell: Mapping[TableCell, str],
) -> str:
    """Say why a pair is not compared in the column at `column_index`; "" where it is."""
    places = [(ordering.better, column_index), (ordering.worse, column_index)]
    quoted = [row for row, _ in places if row in ordering.column.quoted]
    if quoted:
        return f"{' and '.join(quoted)}: {QUOTED}"
    reasons = []
    if all(seed_values_by_cell.get(at) for at in places):
        for at in places:
            if at in difference_by_cell:
                reasons.append(f"{at[0]}: {difference_by_cell[at]}")
    else:
        for at in places:
            if at in reasons_not_run:
                reasons.append(reasons_not_run[at])
        if not reasons:
            reasons.append("not run")
    return "; ".join(dict.fromkeys(reasons))


def count_verdicts(orderings: Iterable[Ordering]) -> dict[OrderingVerdict, int]:
    """Count the orderings of each verdict, all of VERDICTS in order."""
    counts = Counter(ordering.verdict for ordering in orderings)
    return {verdict: counts[verdict] for verdict in VERDICTS}


def count_distinct_pairs_of_tried_runs(orderings: Iterable[Ordering]) -> int:
    """Count the pairs of runs behind the orderings that were tried: one pair may stand for several
    columns."""
    return len({ordering.runs for ordering in orderings if ordering.verdict in TRIED})


def describe_verdicts(orderings: Iterable[Ordering]) -> str:
    """'agrees 5, disagrees 1, within the noise 2'; 'none' without orderings."""
    counts = count_verdicts(orderings)
    texts = [f"{verdict} {count}" for verdict, count in counts.items() if count]
    return ", ".join(texts) or "none"


# ------------------------------------------------------------------------------ what is not run here
def list_table_items_not_run(paper: str) -> list[str]:
    """List what is not run of a paper's tables and figures, a line for each reason:
    'Tables 13, 14: the package ...'."""
    items_of: dict[str, list[str]] = {}  # by reason
    for item, (_, why) in read_toml(f"{FOLDER}/others.toml").get(paper, {}).items():
        items_of.setdefault(why, []).append(item)
    for name in TABLES:
        if name.startswith(f"{paper}:"):
            table = load_paper_table(name)
            for reason in list_reasons_for_parts_not_run(table):
                items_of.setdefault(reason, []).append(table.item)
    return [f"{', '.join(items)}: {reason}" for reason, items in items_of.items()]


def list_reasons_for_parts_not_run(table: PaperTable) -> list[str]:
    """List why a table, some of its data sets or some of its rows are not run here as in the paper."""
    if table.why:
        return [table.why]
    reasons = []
    for column in table.columns:
        is_sentence = " " in column.dataset
        if is_sentence or column.dataset in DATASETS or column.is_shown_only:
            continue
        if column.has_drawn_clients:
            reason = (
                f"{column.dataset} cannot be had offline; "
                f"fl.reproduce('{table.name}') runs the rows on the digits in its place"
            )
            seconds = get_duration_in_seconds_or_nan(table.name, "all")
            if not math.isnan(seconds):
                reason += f", ten seeds in {describe_duration(seconds)} on one core"
        else:
            reason = f"{column.dataset} comes with clients of its own, which no other data set has"
        if reason not in reasons:
            reasons.append(reason)
    for row in table.rows.values():
        if row.why:
            reasons.append(f"{row.name}: {row.why}")
    return reasons
