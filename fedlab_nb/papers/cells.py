"""Plans the runs behind the numbers of a paper's table at some scale, and which number is read off
each.

The scales:

classroom   The table's numbers of clients and skews, with the classroom's networks, recipe and knobs. Columns of
            MNIST are run on 5,000 of its images. The digits stand for data sets that cannot be had offline. A data
            set that a caller asks for stands for all of the table's, or, if it is one of them, for itself alone.
paper       The paper's set-up on the paper's data sets. A number between 0 and 1 is the same on that share of the
            training samples.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from ..data import DATASETS
from ..errors import UsageError, check_allowed_name, check_number, parse_if_number
from ..methods import METHODS
from ..methods.base import Knob
from ..models import parse_architecture
from ..studies.grid import SHARED
from ..studies.outcome import Outcome
from ..studies.settings import Settings, list_setting_names, make_plans
from ..studies.setups import SETUPS, format_setting_value, get_values_without_sources
from ..value_types import Accuracy0To1, SettingsByName
from .durations import describe_duration_in_words, get_seconds_of_ten_seeds_or_nan
from .points import COLUMNS, MethodSettingPoint, ReaderByColumn
from .published import TABLES, PaperTable, TableCell, TableColumn, TableRow, load_paper_table

SCALES = ("classroom", "paper")
STANDARD = "digits"  # the data set that stands for the papers' at classroom scale
SMALLER = {"mnist": "mnist:5k"}  # {data set: the smaller part of it that stands for it}
SEEDS = 10  # at classroom scale
OUTSIDE = {"seed", "device", "backend"}  # settings that do not identify a point
CLIENTS = 6  # the largest number of clients whose accuracies a table lists singly
TARGET = "target"  # a value of a column that is not a setting: the accuracy to reach, in per cent
# A measure: the accuracy of the first client whose model has the server's architecture.
LIKE_SERVER = "client like the server"
# A measure: how many numbers were sent until a run reached the target accuracy.
NUMBERS_TO_TARGET = "numbers to target"
AreaUnderCurve0To1 = float
HistoryPoint = Mapping[str, Any]  # phase, accuracy 0–1 and bytes so far at a moment of a run
ChangeTextByRowAndKnob = dict[str, dict[str, str]]  # {row: {knob: its value here and in the paper}}
PRINTED_BESIDE = (
    "it is a size, a time or an accuracy on clients' own samples, which the paper prints "
    "beside its results"
)
# Fed-ET's phase before the server's distillation: its accuracies are in no table.
SHARED_OUT = "heads averaged"


# ----------------------------------------------------------------------------- what is read off
def list_history_points_except_averaged_heads(outcome: Outcome) -> list[HistoryPoint]:
    """List the points of a run's history that a table counts."""
    return [point for point in outcome.history if point["phase"] != SHARED_OUT]


def count_four_byte_numbers_sent_until_accuracy(
    outcome: Outcome, target_accuracy_percent: float
) -> float | None:
    """Count the numbers of 4 bytes that were sent until the history first reached the target.

    None if it never did: what the run sent in all does not say how much the target would have
    taken.
    """
    bytes_at_target = []
    for point in list_history_points_except_averaged_heads(outcome):
        if point["accuracy"] >= target_accuracy_percent / 100:
            bytes_at_target.append(point["bytes"])
    if not bytes_at_target:
        return None
    return min(bytes_at_target) / 4


def read_test_accuracy(outcome: Outcome) -> Accuracy0To1:
    """Read the accuracy of the model at the end, on the test images."""
    return outcome.accuracy


def read_best_test_accuracy_of_all_rounds(outcome: Outcome) -> Accuracy0To1:
    """Read the best accuracy of all rounds, as Fed-ET reports it. The round is chosen on test
    images, so the number is too high for every method.
    """
    return max(point["accuracy"] for point in list_history_points_except_averaged_heads(outcome))


def read_final_coboosting_ensemble_accuracy(coboosting_outcome: Outcome) -> Accuracy0To1:
    """Read the accuracy of Co-Boosting's weighted ensemble, at the end."""
    return coboosting_outcome.report.ensemble_curve[-1]  # type: ignore[attr-defined]


def read_auc(outcome: Outcome) -> AreaUnderCurve0To1 | None:
    return outcome.auc


def read_balanced_accuracy(outcome: Outcome) -> Accuracy0To1 | None:
    return outcome.balanced_accuracy


def read_test_accuracy_of_client_model(outcome: Outcome, client_index: int) -> Accuracy0To1:
    """Read the accuracy of one client's own model, on all test images."""
    return outcome.report.each_client[client_index]  # type: ignore[attr-defined]


def read_test_accuracy_of_first_client_like_server(
    outcome: Outcome, server_model_knob: str
) -> Accuracy0To1:
    """Read the accuracy of the first client whose own model has the server's architecture, on all
    test images.

    server_model_knob: a name as the knob `server_model` takes it; "auto" is the first client's
    """
    architectures = outcome.plan.architectures
    server_architecture = architectures[0]
    if server_model_knob != "auto":
        server_architecture = parse_architecture(server_model_knob, *server_architecture[1:3])
    return outcome.report.each_client[architectures.index(server_architecture)]  # type: ignore[attr-defined]


MEASURES: dict[str, Callable[..., float | None]] = {
    "accuracy": read_test_accuracy,
    "best": read_best_test_accuracy_of_all_rounds,
    "ensemble": read_final_coboosting_ensemble_accuracy,
    NUMBERS_TO_TARGET: count_four_byte_numbers_sent_until_accuracy,
    "AUC": read_auc,
    "balanced accuracy": read_balanced_accuracy,
    LIKE_SERVER: read_test_accuracy_of_first_client_like_server,
}
for _client in range(CLIENTS):
    MEASURES[f"client {_client}"] = partial(
        read_test_accuracy_of_client_model, client_index=_client
    )


# -------------------------------------------------------------------------------------- what is run
@dataclass(frozen=True)
class TableNumberRuns:
    """A number of a table that can be run.

    row: the name of its row
    place: the position of its column
    label: the name under which a row of `point` keeps the number
    """

    row: str
    place: int
    label: str
    point: MethodSettingPoint

    @property
    def dataset(self) -> str:
        return self.point.settings.dataset


class TablePlan(NamedTuple):
    """The numbers of a table that can be run, and for each of the others the reason why not."""

    runs: list[TableNumberRuns]
    reasons_not_run: dict[TableCell, str]


class DatasetAndReasonNotRun(NamedTuple):
    """The data set that a column is run on, and why it cannot be run; empty if it can."""

    dataset: str
    reason_not_run: str


class RowLabelAndReader(NamedTuple):
    """The function that reads a number off a run, and the label under which a stored row keeps it."""

    label: str
    read: Callable[..., float | None]


ScaleNameOrShare = str | float  # "classroom", "paper", or a share of the paper's training samples


def parse_scale(scale_name_or_share: object) -> ScaleNameOrShare:
    """Parse a scale: one of SCALES, or a share of the paper's samples. UsageError for anything
    else.
    """
    scale_name_or_share = parse_if_number(scale_name_or_share)
    if not isinstance(scale_name_or_share, int | float):
        return check_allowed_name("scale", scale_name_or_share, SCALES)
    if scale_name_or_share == 1:
        return "paper"
    return check_number(
        "scale", scale_name_or_share, 0, 1, excludes_low=True, hint="1 is the paper's own"
    )


def plan_table_runs(
    table: PaperTable,
    scale: ScaleNameOrShare,
    requested_dataset_or_empty: str,
    seeds: Sequence[int],
    overrides: Mapping[str, Any],
) -> TablePlan:
    """Plan a run for each number of a table.

    requested_dataset_or_empty: one of the table's data sets, and only its columns are run; or another one, which
        stands for all of them; or "", and each column is run on its own data set or, at classroom
        scale, on what stands for it. A column whose clients come with the data is run on its own alone
    overrides: settings, recipe or method fields for all runs
    Raises UsageError for a wrong override.
    """
    plan = TablePlan([], {})
    is_small = scale == "classroom"
    for place, column in enumerate(table.columns):
        column_dataset, column_reason = choose_dataset_of_column(
            table, column, scale, requested_dataset_or_empty
        )
        for name in column.numbers:
            row = table.rows[name]
            row_reason = row.why
            if is_small and row.method:
                row_reason = row.why_small
            reason = row_reason or column_reason
            if reason:
                plan.reasons_not_run[name, place] = reason
                continue
            settings = collect_run_settings(table, row, column, scale)
            settings |= {"dataset": column_dataset, **overrides}
            label, read = choose_reader_of_table_number(table, row, column, settings)
            point = make_point_of_method_runs(row.method, settings, seeds, {**COLUMNS, label: read})
            plan.runs.append(TableNumberRuns(name, place, label, point))
    return plan


def choose_dataset_of_column(
    table: PaperTable, column: TableColumn, scale: ScaleNameOrShare, requested_dataset_or_empty: str
) -> DatasetAndReasonNotRun:
    """Choose the data set that a column is run on."""
    is_small = scale == "classroom"
    chosen = column.dataset
    if requested_dataset_or_empty not in ("", *table.datasets) and column.is_divided_at_random:
        chosen = requested_dataset_or_empty
    needs_stand_in = column.is_divided_at_random and is_small and not requested_dataset_or_empty
    reason = ""
    if is_small and table.why:
        reason = table.why
    elif column.is_shown_only:
        reason = PRINTED_BESIDE
    elif chosen not in (requested_dataset_or_empty, *DATASETS) and not needs_stand_in:
        if column.is_divided_at_random:
            reason = f"the package has no data set {chosen}"
        else:
            reason = f"{chosen} comes with clients of its own, which no other data set has"
    elif requested_dataset_or_empty and chosen != requested_dataset_or_empty:
        reason = f"{requested_dataset_or_empty} alone was asked for"
    if is_small:
        default = STANDARD if needs_stand_in else chosen
        chosen = SMALLER.get(chosen, default)
    return DatasetAndReasonNotRun(chosen, reason)


def collect_run_settings(
    table: PaperTable, row: TableRow, column: TableColumn, scale: ScaleNameOrShare
) -> SettingsByName:
    """Collect the settings of a run from row, table, scale and column. Later ones replace earlier
    ones.
    """
    settings = {**row.settings, **table.settings}
    if scale == "classroom":
        settings |= {**table.classroom, **row.classroom}
    else:
        settings["preset"] = table.preset
        if scale != "paper":
            settings["share"] = scale
    return settings | read_run_settings_of_column(column)


def choose_reader_of_table_number(
    table: PaperTable, row: TableRow, column: TableColumn, run_settings: Mapping[str, Any]
) -> RowLabelAndReader:
    """Choose what is read off a run for the number of a row in a column. settings: of the run"""
    measure = table.get_measure_name(row.name)
    values = dict(column.values)
    target = values.get(TARGET, 0)
    label = measure
    if TARGET in values:
        label = f"{measure} {target:g}"
    read = MEASURES[measure]
    if measure == NUMBERS_TO_TARGET:
        read = partial(read, target_accuracy_percent=target)
    if measure == LIKE_SERVER:
        server_model = run_settings.get("server_model", "auto")
        label = f"{measure} {server_model}"
        read = partial(read, server_model_knob=server_model)
    return RowLabelAndReader(label, read)


def make_point_in_papers_own_setup(
    table: PaperTable, run: TableNumberRuns, column: TableColumn
) -> MethodSettingPoint:
    """Make the point of the same number in the paper's own set-up.

    Only settings are read from it, so a data set that the package does not have is replaced by the
    one that stands for it.
    """
    row = table.rows[run.row]
    dataset = run.dataset
    if column.dataset in DATASETS:
        dataset = column.dataset
    settings = {
        **row.settings,
        **table.settings,
        "preset": table.preset,
        **read_run_settings_of_column(column),
        "dataset": dataset,
    }
    return make_point_of_method_runs(row.method, settings, run.point.seeds, {})


def read_run_settings_of_column(column: TableColumn) -> SettingsByName:
    """Read the settings that a column gives its runs; none if the clients come with the data."""
    if not column.is_divided_at_random:
        return {}
    settings = {name: value for name, value in column.values if name != TARGET}
    if "classes_per_client" in settings:
        settings["partition"] = "classes"
    return settings


def make_point_of_method_runs(
    method: str,
    settings_ignored_if_unknown: Mapping[str, Any],
    seeds: Sequence[int],
    readers_by_column: ReaderByColumn,
) -> MethodSettingPoint:
    """Make the point of a method's runs, one run for each seed.

    The point is identified by all its settings except seed and device, so that two tables with the
    same runs share it.

    settings_ignored_if_unknown: those that the method does not have are left out. The value "recipe" stands
        for the number of epochs of local training
    """
    knob_names = {knob.name for knob in METHODS[method].fields()}
    used_settings = {}
    for name, value in settings_ignored_if_unknown.items():
        if name in SHARED or name.removeprefix(f"{method}.") in knob_names:
            used_settings[name] = value
    names_set_to_recipe = [name for name, value in used_settings.items() if value == "recipe"]
    if names_set_to_recipe:
        other_settings = {
            name: used_settings[name] for name in used_settings if name not in names_set_to_recipe
        }
        (plan,) = make_plans(Settings.make(**other_settings), [method])
        for name in names_set_to_recipe:
            used_settings[name] = plan.recipe.epochs
    run_settings = Settings.make(**used_settings)
    default_settings = Settings()
    names = ["dataset", "alpha", "clients"]
    for name in sorted(list_setting_names() - OUTSIDE):
        if getattr(run_settings, name) != getattr(default_settings, name):
            names.append(name)
    values = {name: getattr(run_settings, name) for name in names}
    values |= dict(run_settings.overrides)
    return MethodSettingPoint("tables", method, values, run_settings, seeds, readers_by_column)


def raise_unless_overrides_fit_table(table: PaperTable, overrides: Mapping[str, Any]) -> None:
    """Raise UsageError for an override that is not a setting, or that a table's columns set."""
    settings_of_table = {"seed", "seeds", "preset", "partition"}
    for column in table.columns:
        if column.is_divided_at_random:
            settings_of_table.update(name for name, _ in column.values)
    for name in overrides:
        if name in settings_of_table:
            raise UsageError(
                f"{table.name} sets {name} itself, so it cannot be set here; leave it out."
            )
    methods = [row.method for row in table.rows.values() if row.method]
    make_plans(Settings.make(**overrides), methods)


# ------------------------------------------------------------------------ what is not the paper's
# The numbers among the knobs that the line under a table names, with their symbols.
NUMBERS = {"rounds": "T", "temperature": "τ"}


def describe_knobs_changed_from_paper_setup(
    table: PaperTable, runs: Iterable[TableNumberRuns]
) -> ChangeTextByRowAndKnob:
    """Describe the knobs whose values differ from the paper's set-up: {row: {knob: "T = 20 (paper:
    100)"}}.

    Only knobs that `is_knob_compared_with_paper` accepts count, and none that the row itself sets.
    """
    changes_by_row: ChangeTextByRowAndKnob = {}
    distinct_runs = {(run.row, run.dataset): run for run in runs}
    for run in distinct_runs.values():
        method = run.point.make_plan_of_seed(run.point.seeds[0]).method
        setup = SETUPS[table.preset].copy_with_values_for_dataset_and_alpha(
            run.dataset, run.point.settings.alpha, ()
        )
        rules = [knob.name for knob in method.fields() if is_knob_compared_with_paper(knob)]
        row_settings = {}
        for name, value in table.rows[run.row].settings.items():
            row_settings[name.split(".")[-1]] = value
        paper_values = get_values_without_sources(
            setup.select_declared_values(rules, method.info.name)
        )
        for name, paper_value in paper_values.items():
            our_value = getattr(method, name)
            is_set_by_row = name in row_settings and our_value == row_settings[name]
            if our_value == paper_value or is_set_by_row:
                continue
            text = f"{NUMBERS.get(name, name)} = {format_setting_value(our_value)}"
            text += f" (paper: {format_setting_value(paper_value)})"
            changes_by_row.setdefault(run.row, {})[name] = text
    return changes_by_row


def is_knob_compared_with_paper(knob: Knob) -> bool:
    """Whether a knob chooses between variants of a method, or is one of NUMBERS."""
    return bool(knob.options) or isinstance(knob.default, bool) or knob.name in NUMBERS


# ----------------------------------------------------------------------------------- what is stored
def plan_stored_runs(
    table: PaperTable, seeds: Sequence[int] = range(SEEDS), device: str = "cpu"
) -> TablePlan:
    """Plan the runs that are stored for a table; see `plan_table_runs`."""
    plan = plan_table_runs(table, "classroom", "", seeds, {"device": device})
    stored_runs = []
    reasons = dict(plan.reasons_not_run)
    for run in plan.runs:
        dataset = table.columns[run.place].dataset
        if table.too_long:
            seconds = get_seconds_of_ten_seeds_or_nan(table.name, "all")
            reasons[run.row, run.place] = explain_unstored_runs(seconds, repr(table.name))
        elif dataset in table.too_long_on:
            seconds = get_seconds_of_ten_seeds_or_nan(table.name, dataset)
            call = f"{table.name!r}, dataset={dataset!r}"
            reasons[run.row, run.place] = explain_unstored_runs(seconds, call)
        else:
            stored_runs.append(run)
    return TablePlan(stored_runs, reasons)


def explain_unstored_runs(duration_seconds: float, arguments_text_of_reproduce: str) -> str:
    """Say why runs that take many hours are not stored, and how to make them.

    duration_seconds: how long ten seeds take on one core
    arguments_text_of_reproduce: the arguments of `fl.reproduce` for them
    """
    return (
        f"ten seeds of its runs take {describe_duration_in_words(duration_seconds)} on one core, which "
        f"was not spent; fl.reproduce({arguments_text_of_reproduce}) makes them, and goes on where it "
        "was stopped"
    )


def list_points_of_stored_tables(
    ignored_stored_rows: Sequence[Mapping[str, Any]] = (), is_for_large_datasets: bool = False
) -> list[MethodSettingPoint]:
    """List the points of all tables whose rows are stored.

    ignored_stored_rows: the rows that are stored already; they make no difference here
    is_for_large_datasets: whether to list the points on the large data sets, which run on a GPU if there is
        one, or those on the small ones
    """
    device = "auto" if is_for_large_datasets else "cpu"
    runs = []
    for name in TABLES:
        for run in plan_stored_runs(load_paper_table(name), device=device).runs:
            is_large = run.dataset in SMALLER.values()
            if is_large == is_for_large_datasets:
                runs.append(run)
    return merge_runs_into_distinct_points(runs)


def merge_runs_into_distinct_points(runs: Iterable[TableNumberRuns]) -> list[MethodSettingPoint]:
    """List each point of `runs` once, with the columns of all runs that share it."""
    points: dict[str, MethodSettingPoint] = {}
    for run in runs:
        known = points.get(run.point.key, run.point)
        columns = {**known.columns, **run.point.columns}
        points[known.key] = dataclasses.replace(known, columns=columns)
    return list(points.values())
