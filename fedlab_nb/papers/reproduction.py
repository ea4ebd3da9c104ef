"""A table of a paper beside the same runs made here: `reproduce` runs it, or shows its stored results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data import load
from ..errors import RunError, check_whole_number, parse_number
from ..files import check_replaceable, write_file
from ..studies.engine import check_results_folder, make_row
from ..studies.experiment import Event
from ..studies.grid import Cell, parse_seeds
from ..studies.outcome import Outcome
from ..studies.results import FILES as RESULT_FILES
from ..studies.results import Results
from ..studies.statistics import LEVEL, Band, band
from ..studies.stored_results import load as load_stored
from ..studies.stored_rows import FOLDER, Row, make_row_key, read_stored_rows
from ..studies.text_tables import Grid, Printable, format_text
from .cells import (
    SEEDS,
    SMALLER,
    Scale,
    TablePlan,
    TableRun,
    check_overrides,
    find_changed_knobs,
    merge_points,
    parse_scale,
    plan_stored_runs,
    plan_table_runs,
)
from .claims import Claim, find_claims
from .comparison import (
    BothConditions,
    describe_conditions,
    find_differences,
    read_both_conditions,
)
from .points import compute_rows
from .published import (
    PAPERS,
    TRIED,
    Column,
    Ordering,
    PaperTable,
    Place,
    Values,
    count_run_pairs,
    count_verdicts,
    describe_verdicts,
    list_orderings,
    load_paper_table,
)

if TYPE_CHECKING:
    from ..plots.style import Picture

# The stored results of the small data sets, and those of the large ones.
FILES = (FOLDER / "tables.json", FOLDER / "tables-mnist5k.json")
TABLE = "table.txt"
WRITTEN = (*RESULT_FILES, TABLE)
MANY = 100  # verdicts: a sentence says how many would be clear by chance
COUNTS = ("numbers to target",)  # measures that are no shares
# Tables with their stored results, by name and by when the rows were written: to see whether each
# run is the paper's comparison takes a second, and many ask for the same table.
_loaded: dict[tuple[Any, ...], Reproduction] = {}


@dataclass(frozen=True, repr=False)
class Reproduction(Printable):
    """What was published, and what came out here.

    scale: "classroom", "paper" or a share of the paper's samples
    values: `{(row, column's place): {seed: value}}`, a share for an accuracy, else a count
    why: `{(row, column's place): why it was not run}`
    table_runs: the runs behind the values
    rows: the same as a study's rows (of stored results: none)
    label: where the results are from
    unreached: `{(row, column's place): the seeds on which the target was not reached}`
    """

    table: PaperTable
    scale: Scale
    seeds: tuple[int, ...]
    values: Values
    why: Mapping[Place, str]
    table_runs: Sequence[TableRun] = ()
    rows: Sequence[Mapping[str, Any]] = ()
    label: str = "run here"
    unreached: Mapping[Place, Sequence[int]] = field(default_factory=dict)

    @cached_property
    def orderings(self) -> tuple[Ordering, ...]:
        """Every pair of methods within a column, with its verdict."""
        runs = {(run.row, run.place): (run.point.key, run.label) for run in self.table_runs}
        return tuple(list_orderings(self.table, self.values, self.why, runs, self.differences))

    @cached_property
    def differences(self) -> dict[Place, str]:
        """`{(row, column's place): why what was run is not the paper's comparison}`."""
        reasons: dict[Place, str] = {}
        for run in self.table_runs:
            at = (run.row, run.place)
            if at in self.unreached:
                reasons[at] = self.describe_missed_target(at)
            elif at in self.values:
                differences = find_differences(self.table, run)
                if differences:
                    reasons[at] = ", ".join(differences)
        return reasons

    def describe_missed_target(self, place: Place) -> str:
        """'target not reached, 8 of 10 seeds'; "" where it was reached on all of them."""
        missed = len(self.unreached.get(place, ()))
        if not missed:
            return ""
        seeds = missed + len(self.values.get(place, ()))
        return f"target not reached, {missed} of {seeds} seeds"

    @property
    def verdict_counts(self) -> dict[str, int]:
        """How many orderings agree, disagree, and so on."""
        return count_verdicts(self.orderings)

    @cached_property
    def claims(self) -> list[Claim]:
        """The paper's own method beside each other one, in the mean over the columns."""
        return find_claims(self.table, self.orderings, self.values)

    def describe_claim(self, claim: Claim) -> str:
        """Two sentences: what the paper compares, at what; and what was compared here, or why
        nothing was."""
        rows = [claim.better, claim.worse]
        orderings = [one for one in self.orderings if {one.better, one.worse} == set(rows)]
        compared = [ordering for ordering in orderings if ordering.ours is not None]
        columns = [ordering.column for ordering in compared or orderings]
        conditions = self._read_conditions(rows, columns)
        paper = PAPERS[self.table.name.partition(":")[0]]
        text = f"{paper}, {self.table.item}: the paper compares"
        text += f" {claim.better} (ahead) and {claim.worse} by "
        quantity = self.table.find_quantity(claim.better)
        if conditions:
            of_paper = [{row: both.paper for row, both in column.items()} for column in conditions]
            text += describe_conditions(rows, of_paper, quantity, self.table.not_given)
        else:
            settings = dict.fromkeys(f"{column.dataset} ({column.setting})" for column in columns)
            text += f"{quantity} on {', '.join(settings)}"
        if not compared:
            return f"{text}. We do not: {claim.why.rstrip('.')}."
        ours = [{row: both.ours for row, both in column.items()} for column in conditions]
        our_quantities = {column[row].quantity for column in ours for row in rows}
        if len(our_quantities) == 1:
            quantity = our_quantities.pop()
        seeds = claim.ours.n if claim.ours else 0
        return f"{text}. We compare them by {describe_conditions(rows, ours, quantity)}; {seeds} seeds."

    def _read_conditions(
        self, rows: Sequence[str], columns: Sequence[Column]
    ) -> list[dict[str, BothConditions]]:
        """For each column in which all `rows` can be run: {row: its conditions}."""
        runs = {(run.row, run.place): run for run in self.table_runs}
        conditions = []
        for column in columns:
            place = self.table.columns.index(column)
            if all((row, place) in runs for row in rows):
                conditions.append(
                    {row: read_both_conditions(self.table, runs[row, place]) for row in rows}
                )
        return conditions

    @cached_property
    def datasets_run(self) -> dict[int, str]:
        """{column's place: the data set that was run for it}."""
        return {run.place: run.dataset for run in self.table_runs}

    def compute_band(self, row: str, place: int) -> Band | None:
        """Mean and band of what was run for a row in the column at `place`; None if nothing was."""
        values = self.values.get((row, place))
        return band(values) if values else None

    @property
    def is_count(self) -> bool:
        """Whether the values are counts, and no shares."""
        return self.table.measure in COUNTS

    @property
    def results(self) -> Results:
        """The runs as a study's results, with one row a run."""
        return Results(self.rows)

    def save(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write `results.csv` and `results.json` of the runs, and `table.txt`: what is printed.
        Returns the folder. UsageError where files of these names are there that the package did
        not write, unless `force`."""
        check_replaceable([Path(folder) / name for name in WRITTEN], force=force)
        written = self.results.save(folder, parquet=False, force=force)
        write_file(written / TABLE, f"{self}\n\n{self.listing()}\n", force=force)
        return written

    def listing(self) -> str:
        """Every ordering with its verdict, a line each, and every claim with what is compared there and here."""
        claims = [f"{c.outcome}: {self.describe_claim(c)}" for c in self.claims]
        return "\n\n".join(["\n".join(self.format_orderings()), *claims])

    def format_orderings(self) -> list[str]:
        """Every ordering with its verdict, a line each, after a line of heads."""
        head = [
            "data set",
            "setting",
            "published order",
            "ahead by",
            "clear there",
            "here",
            "verdict",
        ]
        rows = [head]
        clear_texts = {True: "yes", False: "no", None: "not known"}
        for ordering in self.orderings:
            ours = ordering.ours
            if ours is not None and self.table.less_is_better:
                ours = replace(ours, mean=-ours.mean)
            rows.append(
                [
                    ordering.column.dataset,
                    ordering.column.setting,
                    f"{ordering.better} over {ordering.worse}",
                    f"{ordering.gap:g}",
                    clear_texts[ordering.is_clear_in_paper],
                    format_band(self, ours, "+"),
                    ordering.verdict,
                ]
            )
        return format_text(rows).splitlines()

    def plot(self) -> Picture:
        """The picture of all orderings: how far ahead there and here."""
        from .pictures import plot_orderings

        return plot_orderings(self)

    def parts(self) -> list[str | Grid]:
        return [
            describe_reproduction(self),
            *make_grids(self),
            *describe_missing_runs(self),
            *describe_changed_rows(self),
            describe_orderings(self.orderings),
        ]


def reproduce(
    name: str,
    *,
    dataset: str | Path = "",
    scale: str | float = "classroom",
    seeds: int | Sequence[int] | None = None,
    stored: bool = False,
    workers: int = 1,
    out: str | Path | None = None,
    force: bool = False,
    cache: bool = True,
    progress: bool | None = None,
    watch: Callable[[Event], None] = lambda event: None,
    **overrides: Any,
) -> Reproduction:
    """Run a table of a paper, and show its published numbers beside ours.

    name:    a paper's set-up and the number of a table, such as "fens:1"; `paper_tables` lists them
    dataset: one of the table's data sets, for its own columns. Any other name or file is used for all columns. At
             classroom scale "mnist" means mnist:5k, and the digits stand for data sets that cannot be had offline
    scale:   "classroom"; "paper" takes the paper's set-up and data sets (this needs a GPU and days); a number below 1
             takes that set-up on this share of the training samples
    seeds:   how many, or which. The default is ten at classroom scale, else as many as in the paper (3)
    stored:  show the results that came with the package; nothing is run
    workers: processes on this machine;   out: a folder for `results.csv`, `results.json` and `table.txt`
    force:   replace files in `out` that the package did not write
    overrides: settings, recipe and method fields for all runs, such as `model="cnn"` or `epochs=20`

    Finished runs are stored, so a call that was stopped goes on later. Raises UsageError for wrong input, and
    RunError for a data set that cannot be loaded.
    """
    table = load_paper_table(name)
    if stored:
        return load_stored_reproduction(table)
    scale = parse_scale(scale)
    worker_count = check_whole_number("workers", parse_number(workers), 1, 1024)
    check_overrides(table, overrides)
    default_seeds = SEEDS if scale == "classroom" else max(table.runs, 1)
    chosen_seeds = parse_seeds(default_seeds if seeds is None else seeds, 0)
    plan = plan_table_runs(table, scale, str(dataset), chosen_seeds, overrides)
    if out is not None:
        check_results_folder(out, WRITTEN, force=force)
    for run_dataset in dict.fromkeys(run.dataset for run in plan.runs):
        load(run_dataset)
    result_rows: list[dict[str, Any]] = []

    def keep_row(cell: Cell, outcome: Outcome | None, error: str) -> None:
        result_rows.append(make_row(cell, outcome, error))

    computed = compute_rows(
        merge_points(plan.runs),
        on_finished=keep_row,
        workers=worker_count,
        cache=cache,
        watch=watch,
        progress=progress,
    )
    point_rows = [row for _, row in computed]
    result = make_reproduction(
        table, plan, point_rows, scale=scale, seeds=chosen_seeds, rows=result_rows
    )
    errors = [row["error"] for row in result_rows if row["error"]]
    if not result.values and errors:
        raise RunError(errors[0])
    if out is not None:
        result.save(out, force=force)
    return result


def load_stored_reproduction(table: PaperTable) -> Reproduction:
    """Load the results of a table that came with the package; they are remembered."""
    key = (table.name, *(path.stat().st_mtime_ns for path in FILES if path.exists()))
    if key in _loaded:
        return _loaded[key]
    plan = plan_stored_runs(table)
    small_info, small_rows = read_stored_rows(FILES[0])
    large_info, large_rows = read_stored_rows(FILES[1])
    label = f"stored results of {small_info['date']}, version {small_info['version']}"
    large_datasets = {run.dataset for run in plan.runs} & set(SMALLER.values())
    if large_datasets:
        label += f"; those of {min(large_datasets)} took {large_info['minutes']} minutes"
        label += f" on {large_info['device']}"
    _loaded[key] = make_reproduction(
        table,
        plan,
        small_rows + large_rows,
        scale="classroom",
        seeds=tuple(range(SEEDS)),
        label=label,
    )
    return _loaded[key]


def make_reproduction(
    table: PaperTable, plan: TablePlan, stored_rows: Iterable[Row], **fields: Any
) -> Reproduction:
    """Put a table beside the rows that were made of its runs.

    stored_rows: of the points of `plan.runs`; the others are ignored
    fields: the other fields of the reproduction
    """
    rows = {make_row_key(row): row for row in stored_rows}
    values: dict[Place, dict[int, float]] = {}
    unreached: dict[Place, list[int]] = {}
    reasons = dict(plan.reasons_not_run)
    missing_row_reason = explain_missing_rows(table, plan.runs, rows)
    for run in plan.runs:
        at = (run.row, run.place)
        row = rows.get(run.point.key, {})
        has_failed = "failed" in row
        if run.label in row:
            reached, missed = split_by_seed(row["seeds"], row[run.label])
            if reached:
                values[at] = reached
            if missed and not has_failed:
                unreached[at] = missed
        if at in unreached and at not in values:
            reasons[at] = f"the target was not reached on any of {len(unreached[at])} seeds"
        elif has_failed:
            remedy = table.remedy.replace("{table}", table.name)
            reasons[at] = f"{row['failed']} {remedy}".strip()
        elif at not in values:
            reasons[at] = missing_row_reason
    return Reproduction(
        table, values=values, why=reasons, table_runs=plan.runs, unreached=unreached, **fields
    )


def split_by_seed(
    seeds: Sequence[int], values: Sequence[float | None]
) -> tuple[dict[int, float], list[int]]:
    """Split a row's column: ({seed: value}, the seeds that have none)."""
    by_seed = {}
    without_value = []
    for seed, value in zip(seeds, values, strict=True):
        if value is None:
            without_value.append(seed)
        else:
            by_seed[seed] = value
    return by_seed, without_value


def explain_missing_rows(
    table: PaperTable, runs: Sequence[TableRun], rows: Mapping[str, Row]
) -> str:
    """Say that results are not stored, how to make them, and how long all those of the table that
    are missing would take.

    rows: the stored ones, by their points' keys
    """
    missing = {}
    for run in runs:
        if run.point.key not in rows:
            missing[run.point.key] = run.point
    seconds_of = load_stored().seconds() if missing else {}
    seconds = 0.0
    for point in missing.values():
        seconds += len(point.seeds) * seconds_of.get(point.method, 0)
    minutes = max(math.ceil(seconds / 60), 1)
    return (
        f"its results are not stored (fl.reproduce({table.name!r}) makes them, in about {minutes} "
        "min on a free core)"
    )


# --------------------------------------------------------------------------------------- in words
def describe_reproduction(reproduction: Reproduction) -> str:
    """The sentences above the grids: the table, its numbers, and what was run here."""
    table = reproduction.table
    texts = [f"{table.paper}, {table.item}: {table.title}. The numbers: {table.number}."]
    if reproduction.datasets_run:
        datasets = ", ".join(dict.fromkeys(reproduction.datasets_run.values()))
        if isinstance(reproduction.scale, str):
            scale = reproduction.scale
        else:
            scale = f"paper's, on {100 * reproduction.scale:g} % of the samples"
        if len(reproduction.seeds) == 1:
            seeds = f"seed {reproduction.seeds[0]}"
        else:
            seeds = f"{len(reproduction.seeds)} seeds"
        texts.append(
            f"Here: {datasets}, scale {scale}, {seeds}, mean ± 95 % band of Student's t "
            f"({reproduction.label})."
        )
    if table.note:
        texts.append(table.note)
    return " ".join(texts)


def make_grids(reproduction: Reproduction) -> Iterator[Grid]:
    """Make a grid for each setting of the table: a row a method, the published numbers by data set,
    and ours."""
    table = reproduction.table
    for setting in dict.fromkeys(column.setting for column in table.columns):
        places = []
        for place, column in enumerate(table.columns):
            if column.setting == setting:
                places.append(place)
        our_places: dict[str, list[int]] = {}  # by the data set that was run
        if not table.columns[places[0]].is_shown_only:
            for place in places:
                published_dataset = table.columns[place].dataset
                dataset = reproduction.datasets_run.get(place) or published_dataset
                our_places.setdefault(dataset, []).append(place)
        head = [setting]
        head += [table.columns[place].dataset for place in places]
        head += [f"here: {dataset}" for dataset in our_places]
        grid = [head]
        for row in table.rows:
            cells = [row]
            for place in places:
                number = table.columns[place].numbers.get(row)
                cells.append("-" if number is None else number.printed)
            for same_dataset in our_places.values():
                cells.append(describe_cell(reproduction, row, same_dataset))
            grid.append(cells)
        yield grid


def describe_cell(reproduction: Reproduction, row: str, columns: Sequence[int]) -> str:
    """Of what was run for a row in the first of the `columns` (by place) that has a result: mean
    and band, or on how many seeds a target was not reached."""
    for place in columns:
        missed = reproduction.describe_missed_target((row, place))
        if missed:
            return missed
        ours = reproduction.compute_band(row, place)
        if ours is not None:
            return format_band(reproduction, ours)
    return format_band(reproduction, None)


def format_band(reproduction: Reproduction, result: Band | None, sign: str = "") -> str:
    """'83.4 ± 2.1' of accuracies in points, '1.23 ± 0.10 million' of counts; 'not run' for None.

    sign: "+" where a positive mean is to have one
    """
    if result is None:
        return "not run"
    if reproduction.is_count:
        scale = 1e-6
        decimals = 2
        unit = " million"
    else:
        scale = 100
        decimals = 1
        unit = ""
    text = f"{scale * result.mean + 0.0:{sign}.{decimals}f}"
    if not math.isnan(result.half_width):
        text += f" ± {scale * result.half_width:.{decimals}f}"
    return text + unit


def describe_changed_rows(reproduction: Reproduction) -> list[str]:
    """One line on the rows that run another method than the paper's; none where nothing was run."""
    if not reproduction.table_runs:
        return []
    rows_of: dict[str, list[str]] = {}  # by what they have in common
    for row, changes in find_changed_knobs(reproduction.table, reproduction.table_runs).items():
        rows_of.setdefault(", ".join(changes.values()), []).append(row)
    texts = [f"{', '.join(rows)}: {changes}" for changes, rows in rows_of.items()]
    return [
        f"Rows that differ from the paper's method here: {'; '.join(texts) or 'none'}. "
        "Sizes, rates and steps are those of the scale."
    ]


def describe_missing_runs(reproduction: Reproduction) -> list[str]:
    """A line for each reason, with the rows and data sets that it holds for."""
    table = reproduction.table
    lines = []
    for reason in dict.fromkeys(reproduction.why.values()):
        places = [at for at in reproduction.why if reproduction.why[at] == reason]
        missing_rows = {row for row, _ in places}
        rows = [row for row in table.rows if row in missing_rows]
        rows_text = ", ".join(rows) if len(rows) < len(table.rows) else "all rows"
        datasets = ", ".join(dict.fromkeys(table.columns[place].dataset for _, place in places))
        lines.append(f"Not run: {rows_text} on {datasets}, because {reason.rstrip('.')}.")
    return lines


def describe_orderings(orderings: Sequence[Ordering]) -> str:
    """One line: how many orderings there are of each verdict, also of those that are clear in the
    paper."""
    tried = [ordering for ordering in orderings if ordering.verdict in TRIED]
    run_pairs = count_run_pairs(orderings)
    if any(ordering.is_clear_in_paper is not None for ordering in tried):
        clear = describe_verdicts(ordering for ordering in tried if ordering.is_clear_in_paper)
    else:
        clear = "not known, since it prints none"
    text = (
        f"{len(orderings)} orderings (pairs of methods within a column): "
        f"{describe_verdicts(orderings)}. They rest on {run_pairs} pairs of runs. "
        f"Clear by the paper's own spread: {clear}."
    )
    if any(ordering.why == "one seed" for ordering in orderings):
        text += " One seed is not enough; take two."
    if len(tried) >= MANY:
        by_chance = (1 - LEVEL) * run_pairs
        text += f" By chance alone about {by_chance:.0f} of these {run_pairs} (5 %) would be clear."
    return text
