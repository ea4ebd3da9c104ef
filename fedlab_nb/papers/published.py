"""The papers' tables as data, and which of their orderings agree with runs of this package.

Each TOML file in `tables/` holds a table: its rows, and its numbers as they are printed.

    like = "fens:1"        another table, which has the fields that this one leaves out
    [rows.NAME]            a method of the paper: how this package runs it, or `why` it does not
    [published.DATASET]    the numbers of each column, in the order of the rows:
                           "alpha = 0.1" = "17.38±0.22 48.40±9.01 ..."
                           A column without " = ", such as "minutes", is shown, and neither run nor ordered.

`others.toml` has the figures and tables without numbers. `all_tables.paper_tables` shows both.

An ordering is a pair of methods within a column whose numbers are of the same quantity. In the paper
the better method's mean is ahead by `published_gap`. This gap is clear if Welch's 95 % interval from
the printed standard deviations does not contain zero (`is_clear_in_paper`; None if the paper prints
no standard deviation). Here both methods ran on the same seeds. So `ours` is the paired difference,
the paper's better method minus the other one, with its band of Student's t. The ordering agrees if
the band is above zero, disagrees if it is below zero, and else is within the noise.

An ordering is not compared

- if one of the two methods was not run,
- if our runs have another setting or budget than the paper's (`comparison.py`),
- if a target was not reached,
- if the published number of a row is quoted from another paper.
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
from ..errors import check_allowed_name, parse_if_number
from ..studies.statistics import Band, compute_welch_half_width, difference
from .durations import (
    describe_duration_in_words,
    get_seconds_of_ten_seeds_or_nan,
    replace_duration_placeholders_in_text,
)

FOLDER = "papers/tables"
PAPERS = {
    "fens": "FENS",
    "fedet": "Fed-ET",
    "coboosting": "Co-Boosting",
    "fusefl": "FuseFL",
    "fedlpa": "FedLPA",
}


def make_sort_key_of_table_name(table_name: str) -> tuple[int, bool, int]:
    """Make the key by which names of tables ("fedlpa:11") and figures ("fens:f7") are sorted: by paper,
    tables before figures, by number."""
    paper, _, item = table_name.partition(":")
    return list(PAPERS).index(paper), item.startswith("f"), int(item.lstrip("f"))


def list_table_names() -> tuple[str, ...]:
    """List the names of all tables that have a file here."""
    folder = Path(__file__).parent / "tables"
    names = [path.stem.replace("-", ":") for path in folder.glob("*-*.toml")]
    return tuple(sorted(names, key=make_sort_key_of_table_name))


TABLES = list_table_names()
VERDICTS = ("agrees", "disagrees", "within the noise", "tie in the paper", "not compared")
TRIED = VERDICTS[:3]  # the verdicts on orderings that were compared here
OrderingVerdict = str  # one of VERDICTS
FieldsOfTableToml = dict[str, Any]  # the fields of a table's TOML file
NameAndValuePairs = tuple[tuple[str, Any], ...]  # (name of a setting, its value)
TableCell = tuple[
    str, int
]  # where a number stands: the name of its row, and the index of its column
ValueBySeedByCell = Mapping[TableCell, Mapping[int, float]]  # {cell: {seed: value}}
TEST_IMAGES = 10_000  # of MNIST, CIFAR-10 and most other data sets of the papers
QUOTED = "its published number is another paper's, of another setting"


@dataclass(frozen=True)
class PublishedNumber:
    """A published number: its mean, its printed spread (nan if there is none), and its text as printed."""

    mean: float
    spread: float
    printed: str

    @classmethod
    def parse(cls, printed_text: str) -> PublishedNumber | None:
        """Parse '17.38±0.22' or '17.38'; None for '-', which means that the paper has no number."""
        if printed_text == "-":
            return None
        mean, _, spread = printed_text.partition("±")
        return cls(float(mean), float(spread or "nan"), printed_text.replace("±", " ± "))


@dataclass(frozen=True)
class TableRow:
    """A row of a table: a method, or a method with some settings.

    name:        as the paper has it
    method:      its name in this package, "" if the package does not have it
    why:         the reason why the package does not have it
    measure:     what is read off a run, "" for the table's measure
    quantity:    what the paper's number is, "" for the table's quantity
    compared_as: the quantity of the rows with which the paper compares it, "" if it is the same one
    why_small:   the reason why it is not run at classroom scale
    settings:    of its runs, at every scale
    classroom:   of its runs, at classroom scale in addition
    """

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
    """A column of a table.

    dataset: its data set
    values:  its settings, such as `alpha`, `classes_per_client`, `clients` or `target`; a column that is only shown has
             one name with the value None, such as "minutes"
    numbers: {row: published number}, without the rows that have none
    quoted:  rows whose number is quoted from another paper, which has it for another setting
    """

    dataset: str
    values: tuple[tuple[str, Any], ...]
    numbers: Mapping[str, PublishedNumber]
    quoted: frozenset[str] = frozenset()

    @property
    def setting(self) -> str:
        """Its settings in words: 'alpha = 0.1'."""
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
        """Whether it is only shown, and neither run nor ordered: a size or a time."""
        return any(value is None for _, value in self.values)

    @property
    def is_divided_at_random(self) -> bool:
        """Whether its samples are divided among clients at random; otherwise the data set names the clients."""
        return any(name in ("alpha", "classes_per_client") for name, _ in self.values)


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper, or a figure with numbers.

    name: such as "fens:1", or "fens:f7" for a figure
    kind: "Table" or "Figure"
    table: its number in the paper
    number: what its numbers are, in words
    quantity: the same as a term, see `comparison.name_quantity_read_by_measure`
    measure: what is read off a run, see `cells.MEASURES`
    runs: how many seeds are behind each mean, if the printed spread is a standard deviation; 0 if it is something else
    preset: the set-up of its paper
    settings: of all its runs, at every scale
    classroom: of all its runs, at classroom scale in addition
    differs: "ROW.KNOB" (or "*.KNOB", for several rows) of the rules that are not the paper's at classroom scale
    own: the row of the method that the paper proposes, "" for none

    What is not run, or not stored:

    why: the reason why the table is not run at classroom scale, "" if it is
    too_long: whether its results are not stored, as ten seeds take hours
    too_long_on: data sets for whose columns the same is true
    longer: {name: settings} of the runs that are not stored, whose times `durations.py` has. The name is "all" for
        those of `too_long`, and the data set's for those of `too_long_on`
    remedy: how to run the rows that the classroom's networks cannot run, and how long that takes

    Rows about which no claims are made, and options:

    quoted: rows whose published numbers are quoted from another paper, which has them for another setting. If this is
        so in some columns alone, the file has `quoted_in`
    inferred: rows whose numbers may be another row's, since the paper's text does not tell them apart
    elsewhere: rows whose numbers are in another table, too, under another name; the claims are made there
    not_given: options whose values the paper does not give, so that ours are used: "rounds" for all rows, or
        "FedAvg.rounds"
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
    def name_in_paper(self) -> str:
        """What it is called in the paper: 'Table 1'."""
        return f"{self.kind} {self.table}"

    @property
    def datasets(self) -> list[str]:
        """The data sets of its columns, in order."""
        return list(dict.fromkeys(column.dataset for column in self.columns))

    def get_measure_name(self, row_name: str) -> str:
        """Return the measure that is read off a run of a row; see `cells.MEASURES`."""
        return self.rows[row_name].measure or self.measure

    def get_quantity_name(self, row_name: str) -> str:
        """Return the quantity of the paper's numbers in a row, see `comparison.name_quantity_read_by_measure`."""
        return self.rows[row_name].quantity or self.quantity

    def get_compared_quantity_name(self, row_name: str) -> str:
        """Return the quantity of the rows with which the paper compares a row."""
        return self.rows[row_name].compared_as or self.get_quantity_name(row_name)

    def list_options_not_given_in_paper(self, row_name: str) -> list[str]:
        """List the options of a row whose values the paper does not give."""
        options = []
        for name in self.not_given:
            row, _, option = name.rpartition(".")
            if row in ("", row_name):  # "" for all rows
                options.append(option)
        return options

    @property
    def is_in_percent(self) -> bool:
        """Whether the numbers are shares in per cent."""
        return "%" in self.number


def read_table_toml_with_inherited_fields(table_name: str) -> FieldsOfTableToml:
    """Read a table's file; the fields that it leaves out are those of the table that it is `like`."""
    content = dict(read_toml(f"{FOLDER}/{table_name.replace(':', '-')}.toml"))
    like = content.pop("like", "")
    if not like:
        return content
    return {**read_table_toml_with_inherited_fields(like), **content}


@functools.cache
def load_paper_table(table_name: str) -> PaperTable:
    """Load a table by its name, such as "fedlpa:1"; UsageError for an unknown one."""
    content = read_table_toml_with_inherited_fields(
        check_allowed_name("table of a paper", table_name, TABLES)
    )
    for field_name in ("note", "remedy"):
        if field_name in content:
            text = replace_duration_placeholders_in_text(content[field_name], table_name)
            content[field_name] = text.replace("{table}", table_name)
    rows = {}
    for row_name, fields in content.pop("rows").items():
        rows[row_name] = TableRow(row_name, **fields)
    quoted_in_all_columns = content.get("quoted", ())
    quoted_in = content.pop("quoted_in", {})
    columns = []
    for dataset, lines in content.pop("published").items():
        for setting, line in lines.items():
            values = parse_column_settings(setting)
            numbers = parse_column_numbers(list(rows), line)
            quoted_here = quoted_in.get(dataset, {}).get(setting, ())
            quoted = frozenset([*quoted_in_all_columns, *quoted_here])
            columns.append(TableColumn(dataset, values, numbers, quoted))
    return PaperTable(table_name, rows=rows, columns=tuple(columns), **content)


def parse_column_numbers(
    row_names: Sequence[str], numbers_joined_by_spaces: str
) -> dict[str, PublishedNumber]:
    """Parse a column's line, '17.38±0.22 48.40±9.01 -': {row: its number}, without rows that have
    none."""
    numbers = {}
    for row, text in zip(row_names, numbers_joined_by_spaces.split(), strict=True):
        number = PublishedNumber.parse(text)
        if number is not None:
            numbers[row] = number
    return numbers


def parse_column_settings(settings_joined_by_commas: str) -> NameAndValuePairs:
    """Parse 'alpha = 0.1, clients = 20' as pairs of name and value; a setting without " = ", such as
    'minutes', is one name with the value None."""
    if " = " not in settings_joined_by_commas:
        return ((settings_joined_by_commas, None),)
    pairs = []
    for part in settings_joined_by_commas.split(", "):
        name, sign, value = part.partition(" = ")
        pairs.append((name, parse_if_number(value) if sign else None))
    return tuple(pairs)


# -------------------------------------------------------------------------------------------------- orderings
@dataclass(frozen=True, repr=False)
class Ordering:
    """A pair of methods in one column.

    better, worse: the rows as published; of a tie, in the order of the table
    ours: our paired difference, `better` minus `worse`; None if they were not compared
    why: the reason why they were not compared, "" if they were
    runs: keys of the two runs that were compared here; the same runs may stand for other columns, too
    """

    table: PaperTable
    column: TableColumn
    better: str
    worse: str
    ours: Band | None = None
    why: str = ""
    runs: frozenset[Any] = frozenset()

    @property
    def published_gap_in_table_unit(self) -> float:
        """How far `better` is ahead in the paper, in the table's unit; at least 0."""
        numbers = self.column.numbers
        return round(abs(numbers[self.better].mean - numbers[self.worse].mean), 4)

    @property
    def is_clear_in_paper(self) -> bool | None:
        """Whether the order is clear by the paper's own spread; None if the paper prints no standard deviation."""
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
        """Whether the paper's own numbers say which of the two is ahead: its intervals, mean ± spread, do not overlap.

        If no standard deviation over seeds is printed, the gap also has to be larger than the sampling error of the
        test images. This is milder than `is_clear_in_paper`: with three seeds only a large gap is clear.
        """
        numbers = (self.column.numbers[self.better], self.column.numbers[self.worse])
        smallest_gap = sum(number.spread for number in numbers if not math.isnan(number.spread))
        if self.is_clear_in_paper is None:
            smallest_gap = max(smallest_gap, self._compute_sampling_error_in_points_or_0())
        return self.published_gap_in_table_unit > smallest_gap

    def _compute_sampling_error_in_points_or_0(self) -> float:
        """Compute half the width of the 95 % interval of the difference of two accuracies on TEST_IMAGES, in points.

        0 if the numbers are not in per cent.
        """
        if not self.table.is_in_percent:
            return 0.0
        better_share = self.column.numbers[self.better].mean / 100
        worse_share = self.column.numbers[self.worse].mean / 100
        variances = (better_share * (1 - better_share), worse_share * (1 - worse_share))
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


def list_pairwise_orderings_in_columns(
    table: PaperTable,
    value_by_seed_by_cell: ValueBySeedByCell,
    reason_not_run_by_cell: Mapping[TableCell, str],
    run_key_by_cell: Mapping[TableCell, Any],
    difference_from_paper_by_cell: Mapping[TableCell, str] | None = None,
) -> Iterator[Ordering]:
    """List all orderings of a table, each once.

    value_by_seed_by_cell: the values of our runs, by cell and seed
    reason_not_run_by_cell: {cell that was not run: the reason}
    run_key_by_cell: {cell: the key of its runs, which is the same for two cells with the same runs}; a cell without a
        key has runs of its own
    difference_from_paper_by_cell: {cell: in what its runs differ from the paper's, so that they are not comparable}
    """
    difference_from_paper_by_cell = difference_from_paper_by_cell or {}
    for column_index, column in enumerate(table.columns):
        if column.is_shown_only:
            continue
        for first, second in itertools.combinations(column.numbers, 2):
            quantity = table.get_compared_quantity_name(first)
            if quantity != table.get_compared_quantity_name(second):
                continue
            gap = column.numbers[first].mean - column.numbers[second].mean
            if table.less_is_better:
                gap = -gap
            better, worse = first, second
            if gap < 0:
                better, worse = second, first
            pair = Ordering(table, column, better, worse)
            better_cell = (better, column_index)
            worse_cell = (worse, column_index)
            reason = explain_missing_comparison_or_empty(
                pair,
                column_index,
                value_by_seed_by_cell,
                reason_not_run_by_cell,
                difference_from_paper_by_cell,
            )
            better_key = run_key_by_cell.get(better_cell, better_cell)
            worse_key = run_key_by_cell.get(worse_cell, worse_cell)
            if not reason and better_key == worse_key:
                reason = "both rows are the same run here"
            if reason:
                yield replace(pair, why=reason)
                continue
            better_values = value_by_seed_by_cell[better_cell]
            worse_values = value_by_seed_by_cell[worse_cell]
            if table.less_is_better:
                ours = difference(worse_values, better_values)
            else:
                ours = difference(better_values, worse_values)
            why = "one seed" if ours.n < 2 else ""
            yield replace(pair, ours=ours, why=why, runs=frozenset([better_key, worse_key]))


def explain_missing_comparison_or_empty(
    ordering: Ordering,
    column_index: int,
    value_by_seed_by_cell: ValueBySeedByCell,
    reason_not_run_by_cell: Mapping[TableCell, str],
    difference_from_paper_by_cell: Mapping[TableCell, str],
) -> str:
    """Explain why a pair is not compared in the column at `column_index`; "" if it is."""
    cells = [(ordering.better, column_index), (ordering.worse, column_index)]
    quoted = [row for row, _ in cells if row in ordering.column.quoted]
    if quoted:
        return f"{' and '.join(quoted)}: {QUOTED}"
    reasons = []
    were_both_run = all(value_by_seed_by_cell.get(cell) for cell in cells)
    if were_both_run:
        for cell in cells:
            if cell in difference_from_paper_by_cell:
                row, _ = cell
                reasons.append(f"{row}: {difference_from_paper_by_cell[cell]}")
    else:
        for cell in cells:
            if cell in reason_not_run_by_cell:
                reasons.append(reason_not_run_by_cell[cell])
        if not reasons:
            reasons.append("not run")
    return "; ".join(dict.fromkeys(reasons))


def count_orderings_by_verdict(orderings: Iterable[Ordering]) -> dict[OrderingVerdict, int]:
    """Count the orderings of each verdict, all of VERDICTS in order."""
    counts = Counter(ordering.verdict for ordering in orderings)
    return {verdict: counts[verdict] for verdict in VERDICTS}


def count_distinct_pairs_of_tried_runs(orderings: Iterable[Ordering]) -> int:
    """Count the distinct pairs of runs behind the orderings that were compared here.

    One pair of runs may stand for several columns.
    """
    return len({ordering.runs for ordering in orderings if ordering.verdict in TRIED})


def describe_verdict_counts(orderings: Iterable[Ordering]) -> str:
    """Describe the verdicts: 'agrees 5, disagrees 1, within the noise 2'; 'none' without orderings."""
    counts = count_orderings_by_verdict(orderings)
    texts = [f"{verdict} {count}" for verdict, count in counts.items() if count]
    return ", ".join(texts) or "none"


# ------------------------------------------------------------------------------ what is not run here
def describe_tables_and_figures_not_run(paper_key: str) -> list[str]:
    """List what is not run of a paper's tables and figures, a line for each reason:
    'Tables 13, 14: the package ...'."""
    items_by_reason: dict[str, list[str]] = {}
    for item, (_, why) in read_toml(f"{FOLDER}/others.toml").get(paper_key, {}).items():
        items_by_reason.setdefault(why, []).append(item)
    for name in TABLES:
        if name.startswith(f"{paper_key}:"):
            table = load_paper_table(name)
            for reason in list_reasons_why_parts_of_table_not_run(table):
                items_by_reason.setdefault(reason, []).append(table.name_in_paper)
    return [f"{', '.join(items)}: {reason}" for reason, items in items_by_reason.items()]


def list_reasons_why_parts_of_table_not_run(table: PaperTable) -> list[str]:
    """List the reasons why a table, some of its data sets or some of its rows are not run here as in the paper."""
    if table.why:
        return [table.why]
    reasons = []
    for column in table.columns:
        is_description = " " in column.dataset  # in the place of a data set's name
        if is_description or column.dataset in DATASETS or column.is_shown_only:
            continue
        if column.is_divided_at_random:
            reason = (
                f"{column.dataset} cannot be had offline; "
                f"fl.reproduce('{table.name}') runs the rows on the digits in its place"
            )
            seconds = get_seconds_of_ten_seeds_or_nan(table.name, "all")
            if not math.isnan(seconds):
                reason += f", ten seeds in {describe_duration_in_words(seconds)} on one core"
        else:
            reason = f"{column.dataset} comes with clients of its own, which no other data set has"
        if reason not in reasons:
            reasons.append(reason)
    for row in table.rows.values():
        if row.why:
            reasons.append(f"{row.name}: {row.why}")
    return reasons
