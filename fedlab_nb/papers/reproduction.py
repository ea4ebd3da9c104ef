"""A table of a paper beside the same runs made here: `reproduce` runs it, or shows its stored results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..data import load
from ..errors import RunError, check_whole_number, parse_if_number
from ..files import check_replaceable, write_file
from ..studies.engine import make_and_check_results_folder, make_results_row_of_cell
from ..studies.experiment import Event
from ..studies.grid import Cell, parse_seeds
from ..studies.outcome import Outcome
from ..studies.results import FILES as RESULT_FILES
from ..studies.results import Results
from ..studies.statistics import LEVEL, Band, compute_band
from ..studies.stored_results import load as load_stored
from ..studies.stored_rows import FOLDER, StoredRow, make_unique_row_key, read_stored_rows
from ..studies.text_tables import Grid, Paragraph, Printable, format_text_table
from .cells import (
    SEEDS,
    SMALLER,
    Scale,
    TablePlan,
    TableRun,
    check_overrides,
    describe_knobs_changed_from_paper,
    merge_runs_into_distinct_points,
    parse_scale,
    plan_stored_runs,
    plan_table_runs,
)
from .claims import TWO_WAYS, UNCLEAR, Claim, drop_orderings_with_contradicting_leaders, find_claims
from .comparison import (
    BothConditions,
    describe_conditions_of_rows,
    describe_differences_from_paper,
    describe_quantities,
    make_plan,
    read_both_conditions,
)
from .points import Point, compute_point_rows
from .published import (
    PAPERS,
    TRIED,
    Ordering,
    OrderingVerdict,
    PaperTable,
    SeedValuesByCell,
    TableCell,
    TableColumn,
    count_distinct_pairs_of_tried_runs,
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
    values: SeedValuesByCell
    why: Mapping[TableCell, str]
    table_runs: Sequence[TableRun] = ()
    rows: Sequence[Mapping[str, Any]] = ()
    label: str = "run here"
    unreached: Mapping[TableCell, Sequence[int]] = field(default_factory=dict)

    @cached_property
    def orderings(self) -> tuple[Ordering, ...]:
        """Every pair of methods within a column, with its verdict."""
        runs = {}
        for run in self.table_runs:
            runs[run.row, run.place] = (compute_run_key(run.point), run.label)
        return tuple(
            list_orderings(
                self.table, self.values, self.why, runs, self.difference_from_paper_by_cell
            )
        )

    @cached_property
    def difference_from_paper_by_cell(self) -> dict[TableCell, str]:
        """`{(row, column's place): why what was run is not the paper's comparison}`."""
        reasons: dict[TableCell, str] = {}
        for run in self.table_runs:
            at = (run.row, run.place)
            if at in self.unreached:
                reasons[at] = self.describe_missed_target(at)
            elif at in self.values:
                differences = describe_differences_from_paper(self.table, run)
                if differences:
                    reasons[at] = ", ".join(differences)
        return reasons

    def describe_missed_target(self, cell: TableCell) -> str:
        """'target not reached, 8 of 10 seeds'; "" where it was reached on all of them."""
        missed = len(self.unreached.get(cell, ()))
        if not missed:
            return ""
        seeds = missed + len(self.values.get(cell, ()))
        return f"target not reached, {missed} of {seeds} seeds"

    @property
    def verdict_counts(self) -> dict[OrderingVerdict, int]:
        """How many orderings agree, disagree, and so on."""
        return count_verdicts(self.orderings)

    @cached_property
    def claims(self) -> list[Claim]:
        """The paper's own method beside each other one: whether the order is the same here."""
        return find_claims(self.table, self.orderings, self.values)

    def describe_claim(self, claim: Claim) -> str:
        """Two sentences: what the paper compares, at what; and what was compared here, or why
        nothing was."""
        rows = [claim.better, claim.worse]
        orderings = []
        for ordering in self.orderings:
            is_quoted = bool(set(rows) & ordering.column.quoted)
            if {ordering.better, ordering.worse} == set(rows) and not is_quoted:
                orderings.append(ordering)
        columns = [ordering.column for ordering in claim.orderings or orderings]
        conditions = self._read_conditions(rows, columns)
        paper = PAPERS[self.table.name.partition(":")[0]]
        text = (
            f"{paper}, {self.table.item}: the paper compares {describe_leader_of_claim(claim)} by "
        )
        if conditions:
            of_paper = [{row: both.paper for row, both in column.items()} for column in conditions]
            not_given = {row: self.table.list_options_not_given(row) for row in rows}
            text += describe_conditions_of_rows(rows, of_paper, not_given)
        else:
            settings = dict.fromkeys(f"{column.dataset} ({column.setting})" for column in columns)
            quantities = {row: self.table.get_quantity_name(row) for row in rows}
            text += f"{describe_quantities(quantities)} on {', '.join(settings)}"
        if not claim.is_claimed:
            return f"{text}. That is no claim: {claim.why}."
        if claim.ours is None:
            return f"{text}. We do not: {claim.why.rstrip('.')}."
        ours = [{row: both.ours for row, both in column.items()} for column in conditions]
        text += (
            f". We compare them by {describe_conditions_of_rows(rows, ours)}; {claim.ours.n} seeds."
        )
        return text + describe_left_out_columns(claim, orderings)

    def _read_conditions(
        self, row_names: Sequence[str], columns: Sequence[TableColumn]
    ) -> list[dict[str, BothConditions]]:
        """For each column in which all `row_names` can be run: {row: its conditions}."""
        runs = {(run.row, run.place): run for run in self.table_runs}
        conditions = []
        for column in columns:
            place = self.table.columns.index(column)
            if all((row, place) in runs for row in row_names):
                conditions.append(
                    {row: read_both_conditions(self.table, runs[row, place]) for row in row_names}
                )
        return conditions

    @cached_property
    def dataset_by_column_index(self) -> dict[int, str]:
        """{column's place: the data set that was run for it}."""
        return {run.place: run.dataset for run in self.table_runs}

    def compute_band(self, row_name: str, column_index: int) -> Band | None:
        """Compute the mean and band of what was run for a row in the column at `column_index`; None if nothing was."""
        values = self.values.get((row_name, column_index))
        return compute_band(values) if values else None

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
        """Format every ordering with its verdict, a line each, after a line of heads."""
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
                    f"{ordering.published_gap_in_table_unit:g}",
                    clear_texts[ordering.is_clear_in_paper],
                    format_band_in_table_unit(self, ours, "+"),
                    ordering.verdict,
                ]
            )
        return format_text_table(rows).splitlines()

    def plot(self) -> Picture:
        """Draw the picture of all orderings: how far ahead there and here."""
        from .pictures import plot_orderings

        return plot_orderings(self)

    def make_paragraphs_and_grids(self) -> list[Paragraph | Grid]:
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
    worker_count = check_whole_number("workers", parse_if_number(workers), 1, 1024)
    check_overrides(table, overrides)
    default_seeds = SEEDS if scale == "classroom" else max(table.runs, 1)
    chosen_seeds = parse_seeds(default_seeds if seeds is None else seeds, 0)
    plan = plan_table_runs(table, scale, str(dataset), chosen_seeds, overrides)
    if out is not None:
        make_and_check_results_folder(out, WRITTEN, force=force)
    for run_dataset in dict.fromkeys(run.dataset for run in plan.runs):
        load(run_dataset)
    result_rows: list[dict[str, Any]] = []

    def keep_row(cell: Cell, outcome: Outcome | None, error: str) -> None:
        result_rows.append(make_results_row_of_cell(cell, outcome, error))

    computed = compute_point_rows(
        merge_runs_into_distinct_points(plan.runs),
        on_run_finished=keep_row,
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
    table: PaperTable, plan: TablePlan, stored_rows: Iterable[StoredRow], **fields: Any
) -> Reproduction:
    """Put a table beside the rows that were made of its runs.

    stored_rows: of the points of `plan.runs`; the others are ignored
    fields: the other fields of the reproduction
    """
    rows = {make_unique_row_key(row): row for row in stored_rows}
    values: dict[TableCell, dict[int, float]] = {}
    unreached: dict[TableCell, list[int]] = {}
    reasons = dict(plan.reasons_not_run)
    missing_row_reason = explain_missing_stored_rows(table, plan.runs, rows)
    for run in plan.runs:
        at = (run.row, run.place)
        row = rows.get(run.point.key, {})
        has_failed = "failed" in row
        if run.label in row:
            reached, missed = split_values_from_failed_seeds(row["seeds"], row[run.label])
            if reached:
                values[at] = reached
            if missed and not has_failed:
                unreached[at] = missed
        if at in unreached and at not in values:
            reasons[at] = f"the target was not reached on any of {len(unreached[at])} seeds"
        elif has_failed:
            reasons[at] = f"{row['failed']} {table.remedy}".strip()
        elif at not in values:
            reasons[at] = missing_row_reason
    return Reproduction(
        table, values=values, why=reasons, table_runs=plan.runs, unreached=unreached, **fields
    )


class ValuesAndFailedSeeds(NamedTuple):
    """The values of a row's column by seed, and the seeds without one."""

    value_by_seed: dict[int, float]
    failed_seeds: list[int]


def split_values_from_failed_seeds(
    seeds: Sequence[int], column_values: Sequence[float | None]
) -> ValuesAndFailedSeeds:
    """Split a row's column: ({seed: value}, the seeds that have none)."""
    by_seed = {}
    without_value = []
    for seed, value in zip(seeds, column_values, strict=True):
        if value is None:
            without_value.append(seed)
        else:
            by_seed[seed] = value
    return ValuesAndFailedSeeds(by_seed, without_value)


def explain_missing_stored_rows(
    table: PaperTable, runs: Sequence[TableRun], stored_row_by_key: Mapping[str, StoredRow]
) -> str:
    """Say that results are not stored, how to make them, and how long all those of the table that
    are missing would take.

    stored_row_by_key: the stored ones, by their points' keys
    """
    missing = {}
    for run in runs:
        if run.point.key not in stored_row_by_key:
            missing[run.point.key] = run.point
    seconds_of = load_stored().compute_mean_seconds_by_method() if missing else {}
    seconds = 0.0
    for point in missing.values():
        seconds += len(point.seeds) * seconds_of.get(point.method, 0)
    minutes = max(math.ceil(seconds / 60), 1)
    return (
        f"its results are not stored (fl.reproduce({table.name!r}) makes them, in about "
        f"{minutes} min on a free core)"
    )


_run_keys: dict[str, str] = {}  # by the point's key


def compute_run_key(point: Point) -> str:
    """Compute the key of a point's runs, seeds aside: equal for two points that are the same runs under
    two names."""
    if point.key not in _run_keys:
        _run_keys[point.key] = make_plan(point).hash_settings_of_run()
    return _run_keys[point.key]


# --------------------------------------------------------------------------------------- in words
def describe_leader_of_claim(claim: Claim) -> str:
    """'FENS (ahead) and FedAvg'."""
    if not claim.is_claimed:
        return f"{claim.better} and {claim.worse}"
    return f"{claim.better} (ahead) and {claim.worse}"


def describe_left_out_columns(claim: Claim, orderings: Sequence[Ordering]) -> str:
    """A sentence on the columns of both rows that were compared and do not count for the claim; "" without any."""
    compared = [ordering for ordering in orderings if ordering.ours is not None]
    claimed = [ordering for ordering in compared if ordering.is_claimed]
    unclear = len(compared) - len(claimed)
    counted = drop_orderings_with_contradicting_leaders(claimed)
    with_two_signs = len(claimed) - len(counted)
    other_leader = sum(ordering.better != claim.better for ordering in counted)
    reasons = (
        (unclear, UNCLEAR),
        (with_two_signs, TWO_WAYS),
        (other_leader, f"the paper has {claim.worse} ahead there, which is another claim"),
    )
    text = ""
    for count, reason in reasons:
        if count:
            text += f" Not counted, {count} of {len(compared)} columns: {reason}."
    return text


def describe_reproduction(reproduction: Reproduction) -> str:
    """Write the sentences above the grids: the table, its numbers, and what was run here."""
    table = reproduction.table
    texts = [f"{table.paper}, {table.item}: {table.title}. The numbers: {table.number}."]
    if reproduction.dataset_by_column_index:
        datasets = ", ".join(dict.fromkeys(reproduction.dataset_by_column_index.values()))
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
                dataset = reproduction.dataset_by_column_index.get(place) or published_dataset
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
                cells.append(format_our_result(reproduction, row, same_dataset))
            grid.append(cells)
        yield grid


def format_our_result(
    reproduction: Reproduction, row_name: str, column_indices: Sequence[int]
) -> str:
    """Of what was run for a row in the first of the `column_indices` (by place) that has a result: mean
    and band, or on how many seeds a target was not reached."""
    for place in column_indices:
        missed = reproduction.describe_missed_target((row_name, place))
        if missed:
            return missed
        ours = reproduction.compute_band(row_name, place)
        if ours is not None:
            return format_band_in_table_unit(reproduction, ours)
    return format_band_in_table_unit(reproduction, None)


def format_band_in_table_unit(
    reproduction: Reproduction, result: Band | None, sign: Literal["", "+"] = ""
) -> str:
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
    for row, changes in describe_knobs_changed_from_paper(
        reproduction.table, reproduction.table_runs
    ).items():
        rows_of.setdefault(", ".join(changes.values()), []).append(row)
    texts = [f"{', '.join(rows)}: {changes}" for changes, rows in rows_of.items()]
    return [
        f"Rows that differ from the paper's method here: {'; '.join(texts) or 'none'}. "
        "Sizes, rates and steps are those of the scale."
    ]


def describe_missing_runs(reproduction: Reproduction) -> list[str]:
    """Write a line for each reason, with the rows and data sets that it holds for."""
    table = reproduction.table
    lines = []
    for reason in dict.fromkeys(reproduction.why.values()):
        places = [at for at in reproduction.why if reproduction.why[at] == reason]
        missing_rows = {row for row, _ in places}
        rows = [row for row in table.rows if row in missing_rows]
        rows_text = ", ".join(rows) if len(rows) < len(table.rows) else "all rows"
        datasets = ", ".join(
            dict.fromkeys(format_column_name(table.columns[place]) for _, place in places)
        )
        lines.append(f"Not run: {rows_text} on {datasets}, because {reason.rstrip('.')}.")
    return lines


def format_column_name(column: TableColumn) -> str:
    """Format the data set of a column; "cifar10 (minutes)" where it is shown only."""
    if column.is_shown_only:
        return f"{column.dataset} ({column.setting})"
    return column.dataset


def describe_orderings(orderings: Sequence[Ordering]) -> str:
    """One line: how many orderings there are of each verdict, also of those that are clear in the
    paper."""
    tried = [ordering for ordering in orderings if ordering.verdict in TRIED]
    run_pairs = count_distinct_pairs_of_tried_runs(orderings)
    if any(ordering.is_clear_in_paper is not None for ordering in tried):
        clear = describe_verdicts(ordering for ordering in tried if ordering.is_clear_in_paper)
    else:
        clear = "not known, since it prints none"
    text = (
        f"{len(orderings)} orderings (pairs of methods within a column): "
        f"{describe_verdicts(orderings)}. They rest on {run_pairs} pairs of runs. Clear by "
        f"the paper's own spread: {clear}."
    )
    if any(ordering.why == "one seed" for ordering in orderings):
        text += " One seed is not enough; take two."
    if len(tried) >= MANY:
        by_chance = (1 - LEVEL) * run_pairs
        text += f" By chance alone about {by_chance:.0f} of these {run_pairs} (5 %) would be clear."
    return text
