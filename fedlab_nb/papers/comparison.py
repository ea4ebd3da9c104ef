"""Compares the conditions under which a published number and ours were measured.

A claim of a paper is tested only if both sides agree in three things: the quantity; the setting
(clients, the partition of the data, and what a row or a column of the table sets); and the budget
(rounds, clients per round, blocks, and local epochs if the table sets them).

What depends on the scale may differ: data set, network, number of local steps, rates. Local epochs that
a table sets therefore agree if their number is the same, or if it is the same share of the scale's
default: 2 of the digits' 40 agree with 10 of the paper's 200.

The paper's side is read from the table's file and the paper's set-up, ours from the plan of the
run. So a value that the classroom changes is found.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..methods import Method
from ..methods.fens import TRAINED, Fens
from ..methods.parts.rounds import Iterative
from ..studies.settings import MethodRunPlan, Settings, make_plans
from .cells import TARGET, TableNumberRuns, make_point_in_papers_own_setup
from .points import MethodSettingPoint
from .published import PaperTable

OptionValue = Any  # a number, a text or a truth value; None if there is no such option
PARTITION_OPTIONS = ("clients", "partition", "alpha", "classes_per_client", "size_sigma", "init")
BUDGET = ("rounds", "rounds_before", "rounds_after", "per_round", "blocks")
OF_THE_SCALE = ("model", "server_model", "local_epochs")  # options that may differ
# Values with which an option has no effect. Sentences leave them out.
UNUSED = {
    "size_sigma": 0,
    "init": "same",
    "rounds": 0,
    "per_round": 0,
    "rounds_before": 0,
    "rounds_after": 0,
}
IN_WORDS = {
    "best": "best accuracy over the rounds",
    "numbers to target": "numbers sent until the target is reached",
}
ENSEMBLE = "the ensemble"
SERVER = "the server's model"
CLIENT = "a client's model"
UNUSED_FIRST_MODELS = (
    "every client starts from the model that the server sends here, from its own in the paper"
)


@dataclass(frozen=True)
class MeasurementConditions:
    """The conditions under which a number was measured.

    shared: {option: value} of all rows of its column
    own:    {option: value} of its row alone
    """

    quantity: str
    dataset: str
    shared: Mapping[str, Any]
    own: Mapping[str, Any]

    @property
    def options(self) -> dict[str, Any]:
        """All options, the shared ones first."""
        return {**self.shared, **self.own}


ConditionsByRow = Mapping[str, MeasurementConditions]


class PaperConditionsAndOurs(NamedTuple):
    """The conditions of a published number, and of ours."""

    paper: MeasurementConditions
    ours: MeasurementConditions


class PaperPlanAndOurs(NamedTuple):
    """The plan of the paper's run, and that of ours."""

    paper: MethodRunPlan
    ours: MethodRunPlan


class ColumnAndRowOptionNames(NamedTuple):
    """Names of options: those of a whole column, and those of a row alone."""

    shared: list[str]
    own: list[str]


def name_quantity_read_by_measure(method: Method, measure_name: str) -> str:
    """Name what `measure_name` reads off a run of `method`: "accuracy of the ensemble"."""
    if measure_name == "accuracy":
        if method.info.name == "local":
            return f"accuracy of {CLIENT}"
        is_one_network = method.info.name == "fusefl" or getattr(method, "distil", False)
        if method.info.group == "Keep an ensemble" and not is_one_network:
            return f"accuracy of {ENSEMBLE}"
        return f"accuracy of {SERVER}"
    if measure_name == "ensemble":
        return f"accuracy of {ENSEMBLE}"
    if measure_name.startswith("client "):
        return f"accuracy of {CLIENT}"
    return measure_name


def is_same_quantity(published_quantity: str, our_quantity: str) -> bool:
    """Whether what was read off our run is what the paper reports. "accuracy" is that of any model."""
    return our_quantity == published_quantity or our_quantity.startswith(
        f"{published_quantity} of "
    )


def get_option_value_of_plan_or_none(plan: MethodRunPlan, option_name: str) -> OptionValue:
    """Return the value of an option, such as "fusefl.blocks" or "blocks", in a plan. None if its
    method has no such option.
    """
    plain = option_name.rpartition(".")[2]
    for part in (plan.method, plan.recipe, plan.settings):
        if hasattr(part, plain):
            return getattr(part, plain)
    return None


@functools.cache
def get_default_local_epoch_count(preset_name: str, dataset_name: str) -> int:
    """Return the default number of local epochs of a set-up on a data set."""
    (plan,) = make_plans(Settings.make(preset=preset_name, dataset=dataset_name), ["fedavg"])
    return plan.recipe.epochs


_plans: dict[
    str, MethodRunPlan
] = {}  # cache {key of a point: its plan}; a table needs each one many times


def get_plan_of_seed_zero(point: MethodSettingPoint) -> MethodRunPlan:
    """Make the plan of a point's runs. The seed makes no difference here."""
    if point.key not in _plans:
        _plans[point.key] = point.make_plan_of_seed(0)
    return _plans[point.key]


def make_plans_of_paper_and_ours(table: PaperTable, run: TableNumberRuns) -> PaperPlanAndOurs:
    """Make the plan of the paper's run, and that of ours."""
    paper_point = make_point_in_papers_own_setup(table, run, table.columns[run.place])
    return PaperPlanAndOurs(get_plan_of_seed_zero(paper_point), get_plan_of_seed_zero(run.point))


def list_options_that_determine_partition(partition_kind: str) -> list[str]:
    """List the options that determine how a partition of this kind is drawn."""
    if partition_kind == "natural":
        return ["clients"]
    unused = "alpha" if partition_kind == "classes" else "classes_per_client"
    return [name for name in PARTITION_OPTIONS if name != unused]


def list_option_names_that_must_agree(
    table: PaperTable, run: TableNumberRuns, plan: MethodRunPlan
) -> ColumnAndRowOptionNames:
    """List the options that must agree: those of the whole column, and those of the row alone."""
    column = dict(table.columns[run.place].values)
    partition_options = list_options_that_determine_partition(plan.settings.partition)
    column_options = dict.fromkeys([*column, *table.settings, *partition_options])
    row_options = dict.fromkeys([*table.rows[run.row].settings, *BUDGET])
    skipped = {*OF_THE_SCALE, "epochs", TARGET}
    if isinstance(plan.method, Fens) and plan.method.aggregator not in TRAINED:
        skipped.add("rounds")  # averages and votes are not trained
    shared_options = [name for name in column_options if name not in skipped]
    row_only_options = [
        name for name in row_options if name not in skipped and name not in column_options
    ]
    return ColumnAndRowOptionNames(shared_options, row_only_options)


def read_conditions_from_plan(
    table: PaperTable,
    run: TableNumberRuns,
    plan: MethodRunPlan,
    measured_quantity: str,
    dataset: str,
    local_epoch_count: int,
) -> MeasurementConditions:
    """Read the conditions of one side from its plan."""
    names = list_option_names_that_must_agree(table, run, plan)
    shared_values = {name: get_option_value_of_plan_or_none(plan, name) for name in names.shared}
    target = dict(table.columns[run.place].values).get(TARGET)
    if target is not None:
        shared_values[TARGET] = target
    if is_local_epoch_count_given_by_table(table, run):
        default = get_default_local_epoch_count(plan.settings.preset, plan.settings.dataset)
        shared_values["epochs"] = f"{local_epoch_count} (usual: {default})"
    own_values = {}
    for name in names.own:
        value = get_option_value_of_plan_or_none(plan, name)
        if value is not None and value != "":
            own_values[name.rpartition(".")[2]] = value
    return MeasurementConditions(measured_quantity, dataset, shared_values, own_values)


def is_local_epoch_count_given_by_table(table: PaperTable, run: TableNumberRuns) -> bool:
    """Whether the table sets the number of local epochs. Then it is a part of the budget."""
    column_values = dict(table.columns[run.place].values)
    row_settings = table.rows[run.row].settings
    return any("epochs" in settings for settings in (table.settings, row_settings, column_values))


def read_conditions_of_paper_and_ours(
    table: PaperTable, run: TableNumberRuns
) -> PaperConditionsAndOurs:
    """Read the conditions of the paper's number and of ours."""
    row = table.rows[run.row]
    plans = make_plans_of_paper_and_ours(table, run)
    paper_quantity = table.get_quantity_name(row.name)
    paper_dataset = table.columns[run.place].dataset
    paper = read_conditions_from_plan(
        table, run, plans.paper, paper_quantity, paper_dataset, plans.paper.recipe.epochs
    )
    our_quantity = name_quantity_read_by_measure(
        plans.ours.method, table.get_measure_name(row.name)
    )
    ours = read_conditions_from_plan(
        table, run, plans.ours, our_quantity, run.dataset, plans.ours.recipe.epochs
    )
    return PaperConditionsAndOurs(paper, ours)


def is_local_epoch_count_as_in_paper(table: PaperTable, run: TableNumberRuns) -> bool:
    """Whether our number of local epochs agrees with the paper's: it is the same, or the same share
    of the scale's default.
    """
    paper, ours = make_plans_of_paper_and_ours(table, run)
    paper_epochs = paper.recipe.epochs
    paper_default = get_default_local_epoch_count(paper.settings.preset, paper.settings.dataset)
    our_default = get_default_local_epoch_count(ours.settings.preset, ours.settings.dataset)
    scaled_epochs = max(1, round(paper_epochs / paper_default * our_default))
    return ours.recipe.epochs in (paper_epochs, scaled_epochs)


def describe_differences_from_paper(table: PaperTable, run: TableNumberRuns) -> list[str]:
    """Describe each difference between our conditions and the paper's, such as
    "rounds = 20 here, 100 in the paper".
    """
    paper, ours = read_conditions_of_paper_and_ours(table, run)
    differences = []
    if not is_same_quantity(paper.quantity, ours.quantity):
        differences.append(f"{ours.quantity} here, {paper.quantity} in the paper")
    paper_options = paper.options
    our_options = ours.options
    for name in {**paper_options, **our_options}:
        paper_value = paper_options.get(name)
        our_value = our_options.get(name)
        if name == "epochs":
            is_different = not is_local_epoch_count_as_in_paper(table, run)
        else:
            is_different = paper_value != our_value
        if is_different:
            our_text = format_option_value(our_value)
            paper_text = format_option_value(paper_value)
            differences.append(f"{name} = {our_text} here, {paper_text} in the paper")
    if is_first_model_of_each_client_discarded(get_plan_of_seed_zero(run.point)):
        differences.append(UNUSED_FIRST_MODELS)
    return differences


def is_first_model_of_each_client_discarded(plan: MethodRunPlan) -> bool:
    """Whether the setting gives each client an initial model of its own, but the method starts from
    the server's instead.
    """
    return plan.settings.init == "different" and isinstance(plan.method, Iterative)


# ------------------------------------------------------------------------------------------------------- in words
def format_option_value(value: Any) -> str:
    """Format a value as a person would type it; "none" if there is none."""
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


def format_options_as_assignments(
    value_by_option: Mapping[str, Any], options_not_given: Sequence[str] = ()
) -> str:
    """Format options as 'clients = 20, alpha = 0.1', without those that have no effect, and without
    the partition if α or the number of classes implies it.

    options_not_given: options that the paper does not name
    """
    implied_partition = "classes" if "classes_per_client" in value_by_option else "dirichlet"
    omitted_values = {**UNUSED, "partition": implied_partition}
    texts = []
    for name, value in value_by_option.items():
        if omitted_values.get(name, "") == value:
            continue
        text = f"{name} = {format_option_value(value)}"
        if name in options_not_given:
            text += " (not given)"
        texts.append(text)
    return ", ".join(texts)


def describe_conditions_of_rows(
    row_names: Sequence[str],
    conditions_of_columns: Sequence[ConditionsByRow],
    options_not_given_by_row: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Describe the conditions under which rows are compared: 'accuracy on cifar10 (alpha = 0.01;
    alpha = 0.1); with clients = 20; NN: rounds = 500; Linear: rounds = 500'.

    conditions_of_columns: for each column the conditions of all `row_names`
    options_not_given_by_row: for each row the options that the paper does not name
    """
    options_not_given_by_row = options_not_given_by_row or {}
    constant = find_shared_options_constant_over_columns(row_names, conditions_of_columns)
    quantities = {row: conditions_of_columns[0][row].quantity for row in row_names}
    datasets_text = describe_datasets_with_varied_options(
        row_names[0], conditions_of_columns, constant
    )
    texts = [f"{describe_quantities_of_rows(quantities)} on {datasets_text}"]
    constant_text = format_options_as_assignments(
        constant, options_not_given_by_row.get(row_names[0], ())
    )
    if constant_text:
        texts.append(f"with {constant_text}")
    for row in row_names:
        own_texts = []
        for column in conditions_of_columns:
            text = format_options_as_assignments(
                column[row].own, options_not_given_by_row.get(row, ())
            )
            if text and text not in own_texts:
                own_texts.append(text)
        if own_texts:
            texts.append(f"{row}: {' or '.join(own_texts)}")
    return "; ".join(texts)


def describe_quantities_of_rows(quantity_by_row: Mapping[str, str]) -> str:
    """Describe what the rows measure: 'accuracy' if all measure the same, or 'accuracy (FENS) and
    best accuracy over the rounds (FedAdam)'.
    """
    rows_by_quantity: dict[str, list[str]] = {}
    for row, quantity in quantity_by_row.items():
        words = IN_WORDS.get(quantity, quantity)
        rows_by_quantity.setdefault(words, []).append(row)
    if len(rows_by_quantity) == 1:
        return next(iter(rows_by_quantity))
    texts = []
    for words, rows in rows_by_quantity.items():
        texts.append(f"{words} ({', '.join(rows)})")
    return " and ".join(texts)


def find_shared_options_constant_over_columns(
    row_names: Sequence[str], conditions_of_columns: Sequence[ConditionsByRow]
) -> dict[str, Any]:
    """Find the shared options that have the same value in all columns."""
    constant = dict(conditions_of_columns[0][row_names[0]].shared)
    for column in conditions_of_columns:
        for row in row_names:
            shared = column[row].shared
            for name in list(constant):
                if name not in shared or shared[name] != constant[name]:
                    del constant[name]
    return constant


def describe_datasets_with_varied_options(
    row_name: str,
    conditions_of_columns: Sequence[ConditionsByRow],
    constant_options: Mapping[str, Any],
) -> str:
    """Describe each data set with what its columns vary: 'cifar10 (alpha = 0.01; alpha = 0.1),
    mnist'.
    """
    settings_by_dataset: dict[str, list[str]] = {}
    for column in conditions_of_columns:
        conditions = column[row_name]
        varied_options = {}
        for name, value in conditions.shared.items():
            if name not in constant_options:
                varied_options[name] = value
        text = format_options_as_assignments(varied_options)
        if "init" in varied_options:
            text = f"init = {varied_options['init']}"
        settings = settings_by_dataset.setdefault(conditions.dataset, [])
        if text and text not in settings:
            settings.append(text)
    texts = []
    for dataset, settings in settings_by_dataset.items():
        if settings:
            texts.append(f"{dataset} ({'; '.join(settings)})")
        else:
            texts.append(dataset)
    return ", ".join(texts)
