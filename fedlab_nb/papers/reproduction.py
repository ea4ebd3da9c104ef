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
from ..studies.grid import StudyCell, parse_seeds
from ..studies.outcome import Outcome
from ..studies.results import FILES as RESULT_FILES
from ..studies.results import Results
from ..studies.statistics import LEVEL, Band, compute_band
from ..studies.stored_results import load as load_stored
from ..studies.stored_rows import FOLDER, StoredRow, make_json_key_of_row, read_stored_rows
from ..studies.text_tables import Paragraph, Printable, TextTable, format_text_table
from .cells import (
    SEEDS,
    SMALLER,
    ScaleNameOrShare,
    TableNumberRuns,
    TablePlan,
    describe_knobs_changed_from_paper_setup,
    merge_runs_into_distinct_points,
    parse_scale,
    plan_stored_runs,
    plan_table_runs,
    raise_unless_overrides_fit_table,
)
from .claims import (
    TWO_WAYS,
    UNCLEAR,
    Claim,
    drop_orderings_with_contradicting_leaders,
    find_claims_of_papers_own_method,
)
from .comparison import (
    PaperConditionsAndOurs,
    describe_conditions_of_rows,
    describe_differences_from_paper,
    describe_quantities_of_rows,
    get_plan_of_seed_zero,
    read_conditions_of_paper_and_ours,
)
from .points import MethodSettingPoint, compute_point_rows
from .published import (
    PAPERS,
    TRIED,
    Ordering,
    OrderingVerdict,
    PaperTable,
    TableCell,
    TableColumn,
    ValueBySeedByCell,
    count_distinct_pairs_of_tried_runs,
    count_orderings_by_verdict,
    describe_verdict_counts,
    list_pairwise_orderings_in_columns,
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
# A cache of tables with their stored results, by the table's name and the times at which the stored files were
# written. Comparing all runs of a table with the paper's takes a second.
_loaded: dict[tuple[Any, ...], Reproduction] = {}


@dataclass(frozen=True, repr=False)
class Reproduction(Printable):
    """A paper's table, and the results of the same runs here.

    A cell is (name of the row, index of the column).

    scale: "classroom", "paper" or a share of the paper's samples
    values: {cell: {seed: value}}; the value is a share for an accuracy, else a count
    why: {cell: the reason why it was not run}
    table_runs: the runs behind the values
    rows: the runs as rows of a study; none for stored results
    label: where the results are from, in words
    unreached: {cell: the seeds on which the target was not reached}
    """

    table: PaperTable
    scale: ScaleNameOrShare
    seeds: tuple[int, ...]
    values: ValueBySeedByCell
    why: Mapping[TableCell, str]
    table_runs: Sequence[TableNumberRuns] = ()
    rows: Sequence[Mapping[str, Any]] = ()
    label: str = "run here"
    unreached: Mapping[TableCell, Sequence[int]] = field(default_factory=dict)

    @cached_property
    def orderings(self) -> tuple[Ordering, ...]:
        """Every pair of methods within a column, with its verdict."""
        run_keys = {}
        for run in self.table_runs:
            run_keys[run.row, run.place] = (compute_key_of_runs(run.point), run.label)
        orderings = list_pairwise_orderings_in_columns(
            self.table, self.values, self.why, run_keys, self.difference_from_paper_by_cell
        )
        return tuple(orderings)

    @cached_property
    def difference_from_paper_by_cell(self) -> dict[TableCell, str]:
        """{cell: in what its runs differ from the paper's, so that they are not comparable}."""
        reasons: dict[TableCell, str] = {}
        for run in self.table_runs:
            cell = (run.row, run.place)
            if cell in self.unreached:
                reasons[cell] = self.describe_missed_target_or_empty(cell)
            elif cell in self.values:
                differences = describe_differences_from_paper(self.table, run)
                if differences:
                    reasons[cell] = ", ".join(differences)
        return reasons

    def describe_missed_target_or_empty(self, cell: TableCell) -> str:
        """Describe on how many seeds a target was missed: 'target not reached, 8 of 10 seeds'; "" for none."""
        missed = len(self.unreached.get(cell, ()))
        if not missed:
            return ""
        seeds = missed + len(self.values.get(cell, ()))
        return f"target not reached, {missed} of {seeds} seeds"

    @property
    def ordering_count_by_verdict(self) -> dict[OrderingVerdict, int]:
        """How many orderings agree, disagree, and so on."""
        return count_orderings_by_verdict(self.orderings)

    @cached_property
    def claims(self) -> list[Claim]:
        """The claims that the paper's own method is ahead of another one, and whether they hold here."""
        return find_claims_of_papers_own_method(self.table, self.orderings, self.values)

    def describe_claim(self, claim: Claim) -> str:
        """Describe a claim in two sentences: what the paper compares, and what was compared here, or why
        nothing was."""
        rows = [claim.better, claim.worse]
        orderings = []
        for ordering in self.orderings:
            is_quoted = bool(set(rows) & ordering.column.quoted)
            if {ordering.better, ordering.worse} == set(rows) and not is_quoted:
                orderings.append(ordering)
        columns = [ordering.column for ordering in claim.orderings or orderings]
        conditions = self._read_conditions_by_column_and_row(rows, columns)
        paper = PAPERS[self.table.name.partition(":")[0]]
        text = f"{paper}, {self.table.name_in_paper}: the paper compares {describe_both_rows_of_claim(claim)} by "
        if conditions:
            of_paper = []
            for column in conditions:
                of_paper.append({row: both.paper for row, both in column.items()})
            not_given = {row: self.table.list_options_not_given_in_paper(row) for row in rows}
            text += describe_conditions_of_rows(rows, of_paper, not_given)
        else:
            settings = dict.fromkeys(f"{column.dataset} ({column.setting})" for column in columns)
            quantities = {row: self.table.get_quantity_name(row) for row in rows}
            text += f"{describe_quantities_of_rows(quantities)} on {', '.join(settings)}"
        if not claim.is_claimed:
            return f"{text}. That is no claim: {claim.why}."
        if claim.ours is None:
            return f"{text}. We do not: {claim.why.rstrip('.')}."
        ours = []
        for column in conditions:
            ours.append({row: both.ours for row, both in column.items()})
        our_conditions = describe_conditions_of_rows(rows, ours)
        text += f". We compare them by {our_conditions}; {claim.ours.n} seeds."
        return text + describe_columns_not_counted_for_claim(claim, orderings)

    def _read_conditions_by_column_and_row(
        self, row_names: Sequence[str], columns: Sequence[TableColumn]
    ) -> list[dict[str, PaperConditionsAndOurs]]:
        """Read {row: its conditions in the paper and here} for each column in which all `row_names` can be run."""
        runs = {(run.row, run.place): run for run in self.table_runs}
        conditions = []
        for column in columns:
            column_index = self.table.columns.index(column)
            if not all((row, column_index) in runs for row in row_names):
                continue
            conditions_by_row = {}
            for row in row_names:
                conditions_by_row[row] = read_conditions_of_paper_and_ours(
                    self.table, runs[row, column_index]
                )
            conditions.append(conditions_by_row)
        return conditions

    @cached_property
    def dataset_by_column_index(self) -> dict[int, str]:
        """{index of a column: the data set that was run for it}."""
        return {run.place: run.dataset for run in self.table_runs}

    def compute_band_of_cell_or_none(self, row_name: str, column_index: int) -> Band | None:
        """Compute the mean of a cell's values, with its band; None if the cell was not run."""
        values = self.values.get((row_name, column_index))
        return compute_band(values) if values else None

    @property
    def is_measured_in_counts(self) -> bool:
        """Whether the values are counts; otherwise they are shares."""
        return self.table.measure in COUNTS

    @property
    def results(self) -> Results:
        """The runs as the results of a study, with one row for each run."""
        return Results(self.rows)

    def save(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write `results.csv` and `results.json` of the runs, and `table.txt` with the printed text.

        Returns the folder. UsageError if it has files with these names that the package did not
        write, unless `force`.
        """
        check_replaceable([Path(folder) / name for name in WRITTEN], force=force)
        written = self.results.save(folder, parquet=False, force=force)
        write_file(written / TABLE, f"{self}\n\n{self.listing()}\n", force=force)
        return written

    def listing(self) -> str:
        """List every ordering with its verdict, one on a line, and then every claim with its description."""
        claims = [f"{c.outcome}: {self.describe_claim(c)}" for c in self.claims]
        return "\n\n".join(["\n".join(self.format_orderings_as_lines()), *claims])

    def format_orderings_as_lines(self) -> list[str]:
        """Format every ordering with its verdict, one on a line, after a header."""
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
        """Draw all orderings: how far the better method is ahead in the paper, and here."""
        from .pictures import plot_orderings

        return plot_orderings(self)

    def make_paragraphs_and_tables(self) -> list[Paragraph | TextTable]:
        return [
            describe_table_and_runs(self),
            *make_grid_of_each_column_setting(self),
            *describe_reasons_of_missing_runs(self),
            *describe_rows_changed_from_paper(self),
            describe_verdicts_of_all_and_clear_orderings(self.orderings),
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
    workers: processes on this machine
    out:     a folder for `results.csv`, `results.json` and `table.txt`
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
    raise_unless_overrides_fit_table(table, overrides)
    default_seeds = SEEDS if scale == "classroom" else max(table.runs, 1)
    chosen_seeds = parse_seeds(default_seeds if seeds is None else seeds, 0)
    plan = plan_table_runs(table, scale, str(dataset), chosen_seeds, overrides)
    if out is not None:
        make_and_check_results_folder(out, WRITTEN, force=force)
    for run_dataset in dict.fromkeys(run.dataset for run in plan.runs):
        load(run_dataset)
    result_rows: list[dict[str, Any]] = []

    def keep_row(cell: StudyCell, outcome: Outcome | None, error: str) -> None:
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
    """Load the results of a table that came with the package. They are cached."""
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
    """Make the reproduction of a table from the rows of its runs.

    stored_rows: rows of the points of `plan.runs`; other rows are ignored
    fields: the other fields of the reproduction
    """
    rows = {make_json_key_of_row(row): row for row in stored_rows}
    values: dict[TableCell, dict[int, float]] = {}
    unreached: dict[TableCell, list[int]] = {}
    reasons = dict(plan.reasons_not_run)
    missing_row_reason = explain_missing_stored_rows(table, plan.runs, rows)
    for run in plan.runs:
        cell = (run.row, run.place)
        row = rows.get(run.point.key, {})
        has_failed = "failed" in row
        if run.label in row:
            value_by_seed, seeds_without_value = split_values_from_seeds_without_value(
                row["seeds"], row[run.label]
            )
            if value_by_seed:
                values[cell] = value_by_seed
            if seeds_without_value and not has_failed:
                unreached[cell] = seeds_without_value
        if cell in unreached and cell not in values:
            reasons[cell] = f"the target was not reached on any of {len(unreached[cell])} seeds"
        elif has_failed:
            reasons[cell] = f"{row['failed']} {table.remedy}".strip()
        elif cell not in values:
            reasons[cell] = missing_row_reason
    return Reproduction(
        table, values=values, why=reasons, table_runs=plan.runs, unreached=unreached, **fields
    )


class ValuesAndSeedsWithoutValue(NamedTuple):
    """The values of a row's column by seed, and the seeds that have no value."""

    value_by_seed: dict[int, float]
    seeds_without_value: list[int]


def split_values_from_seeds_without_value(
    seeds: Sequence[int], column_values: Sequence[float | None]
) -> ValuesAndSeedsWithoutValue:
    """Split a row's column into {seed: value}, and the seeds whose value is None."""
    by_seed = {}
    without_value = []
    for seed, value in zip(seeds, column_values, strict=True):
        if value is None:
            without_value.append(seed)
        else:
            by_seed[seed] = value
    return ValuesAndSeedsWithoutValue(by_seed, without_value)


def explain_missing_stored_rows(
    table: PaperTable, runs: Sequence[TableNumberRuns], stored_row_by_key: Mapping[str, StoredRow]
) -> str:
    """Explain that results are not stored: how to make them, and how long all missing ones of the table
    would take.

    stored_row_by_key: the stored rows, by the keys of their points
    """
    missing = {}
    for run in runs:
        if run.point.key not in stored_row_by_key:
            missing[run.point.key] = run.point
    seconds_by_method = load_stored().compute_mean_seconds_by_method() if missing else {}
    seconds = 0.0
    for point in missing.values():
        seconds += len(point.seeds) * seconds_by_method.get(point.method, 0)
    minutes = max(math.ceil(seconds / 60), 1)
    return (
        f"its results are not stored (fl.reproduce({table.name!r}) makes them, in about "
        f"{minutes} min on a free core)"
    )


_run_keys: dict[str, str] = {}  # a cache of `compute_key_of_runs`, by the point's key


def compute_key_of_runs(point: MethodSettingPoint) -> str:
    """Compute a key of a point's runs, whatever their seeds. It is equal for two points that are the same
    runs under two names."""
    if point.key not in _run_keys:
        _run_keys[point.key] = get_plan_of_seed_zero(point).hash_settings_of_run()
    return _run_keys[point.key]


# --------------------------------------------------------------------------------------- in words
def describe_both_rows_of_claim(claim: Claim) -> str:
    """Describe the two rows of a claim: 'FENS (ahead) and FedAvg'."""
    if not claim.is_claimed:
        return f"{claim.better} and {claim.worse}"
    return f"{claim.better} (ahead) and {claim.worse}"


def describe_columns_not_counted_for_claim(
    claim: Claim, orderings_of_both_rows: Sequence[Ordering]
) -> str:
    """Describe in a sentence for each reason the columns that were compared and do not count for a claim.

    orderings_of_both_rows: of the claim's two rows, in all columns
    """
    compared = [ordering for ordering in orderings_of_both_rows if ordering.ours is not None]
    claimed = [ordering for ordering in compared if ordering.is_claimed]
    unclear_count = len(compared) - len(claimed)
    counted = drop_orderings_with_contradicting_leaders(claimed)
    contradicting_count = len(claimed) - len(counted)
    other_leader_count = sum(ordering.better != claim.better for ordering in counted)
    reasons = (
        (unclear_count, UNCLEAR),
        (contradicting_count, TWO_WAYS),
        (other_leader_count, f"the paper has {claim.worse} ahead there, which is another claim"),
    )
    text = ""
    for count, reason in reasons:
        if count:
            text += f" Not counted, {count} of {len(compared)} columns: {reason}."
    return text


def describe_table_and_runs(reproduction: Reproduction) -> str:
    """Write the sentences above the grids: the table, its numbers, and what was run here."""
    table = reproduction.table
    texts = [f"{table.paper}, {table.name_in_paper}: {table.title}. The numbers: {table.number}."]
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


def make_grid_of_each_column_setting(reproduction: Reproduction) -> Iterator[TextTable]:
    """Make a grid for each setting of the table. It has a row for each method, a column of published
    numbers for each data set, and a column of our results for each data set that was run."""
    table = reproduction.table
    for setting in dict.fromkeys(column.setting for column in table.columns):
        indices = []  # of the table's columns with this setting
        for index, column in enumerate(table.columns):
            if column.setting == setting:
                indices.append(index)
        indices_by_our_dataset: dict[str, list[int]] = {}
        if not table.columns[indices[0]].is_shown_only:
            for index in indices:
                published_dataset = table.columns[index].dataset
                dataset = reproduction.dataset_by_column_index.get(index) or published_dataset
                indices_by_our_dataset.setdefault(dataset, []).append(index)
        head = [setting]
        head += [table.columns[index].dataset for index in indices]
        head += [f"here: {dataset}" for dataset in indices_by_our_dataset]
        grid = [head]
        for row in table.rows:
            cells = [row]
            for index in indices:
                number = table.columns[index].numbers.get(row)
                cells.append("-" if number is None else number.printed)
            for indices_of_same_dataset in indices_by_our_dataset.values():
                cells.append(
                    format_our_first_result_in_columns(reproduction, row, indices_of_same_dataset)
                )
            grid.append(cells)
        yield grid


def format_our_first_result_in_columns(
    reproduction: Reproduction, row_name: str, column_indices: Sequence[int]
) -> str:
    """Format our result for a row in the first of these columns that has one: its mean and band, or on
    how many seeds a target was not reached."""
    for index in column_indices:
        missed = reproduction.describe_missed_target_or_empty((row_name, index))
        if missed:
            return missed
        ours = reproduction.compute_band_of_cell_or_none(row_name, index)
        if ours is not None:
            return format_band_in_table_unit(reproduction, ours)
    return format_band_in_table_unit(reproduction, None)


def format_band_in_table_unit(
    reproduction: Reproduction,
    band_or_none_if_not_run: Band | None,
    sign_of_positive_mean: Literal["", "+"] = "",
) -> str:
    """Format a band: '83.4 ± 2.1' for accuracies, in points; '1.23 ± 0.10 million' for counts; 'not run' for None.

    sign_of_positive_mean: "+" to give a positive mean a sign
    """
    if band_or_none_if_not_run is None:
        return "not run"
    if reproduction.is_measured_in_counts:
        scale = 1e-6
        decimals = 2
        unit = " million"
    else:
        scale = 100
        decimals = 1
        unit = ""
    text = f"{scale * band_or_none_if_not_run.mean + 0.0:{sign_of_positive_mean}.{decimals}f}"
    if not math.isnan(band_or_none_if_not_run.half_width):
        text += f" ± {scale * band_or_none_if_not_run.half_width:.{decimals}f}"
    return text + unit


def describe_rows_changed_from_paper(reproduction: Reproduction) -> list[str]:
    """Describe in a line which rows run another method than the paper's; no line if nothing was run."""
    if not reproduction.table_runs:
        return []
    changes_by_row = describe_knobs_changed_from_paper_setup(
        reproduction.table, reproduction.table_runs
    )
    rows_by_changes: dict[str, list[str]] = {}
    for row, changes in changes_by_row.items():
        rows_by_changes.setdefault(", ".join(changes.values()), []).append(row)
    texts = [f"{', '.join(rows)}: {changes}" for changes, rows in rows_by_changes.items()]
    return [
        f"Rows that differ from the paper's method here: {'; '.join(texts) or 'none'}. "
        "Sizes, rates and steps are those of the scale."
    ]


def describe_reasons_of_missing_runs(reproduction: Reproduction) -> list[str]:
    """Write a line for each reason why something was not run, with the rows and data sets to which it applies."""
    table = reproduction.table
    lines = []
    for reason in dict.fromkeys(reproduction.why.values()):
        cells = [cell for cell in reproduction.why if reproduction.why[cell] == reason]
        missing_rows = {row for row, _ in cells}
        rows = [row for row in table.rows if row in missing_rows]
        rows_text = ", ".join(rows) if len(rows) < len(table.rows) else "all rows"
        columns = [format_dataset_of_column(table.columns[index]) for _, index in cells]
        columns_text = ", ".join(dict.fromkeys(columns))
        lines.append(f"Not run: {rows_text} on {columns_text}, because {reason.rstrip('.')}.")
    return lines


def format_dataset_of_column(column: TableColumn) -> str:
    """Format the data set of a column; "cifar10 (minutes)" if the column is only shown."""
    if column.is_shown_only:
        return f"{column.dataset} ({column.setting})"
    return column.dataset


def describe_verdicts_of_all_and_clear_orderings(orderings: Sequence[Ordering]) -> str:
    """Describe how many orderings there are of each verdict, of all and of those that are clear in the
    paper."""
    tried = [ordering for ordering in orderings if ordering.verdict in TRIED]
    run_pairs = count_distinct_pairs_of_tried_runs(orderings)
    if any(ordering.is_clear_in_paper is not None for ordering in tried):
        clear = describe_verdict_counts(
            ordering for ordering in tried if ordering.is_clear_in_paper
        )
    else:
        clear = "not known, since it prints none"
    text = (
        f"{len(orderings)} orderings (pairs of methods within a column): "
        f"{describe_verdict_counts(orderings)}. They rest on {run_pairs} pairs of runs. Clear by "
        f"the paper's own spread: {clear}."
    )
    if any(ordering.why == "one seed" for ordering in orderings):
        text += " One seed is not enough; take two."
    if len(tried) >= MANY:
        by_chance = (1 - LEVEL) * run_pairs
        text += f" By chance alone about {by_chance:.0f} of these {run_pairs} (5 %) would be clear."
    return text
