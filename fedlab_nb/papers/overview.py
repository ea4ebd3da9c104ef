"""Shows the settings of an experiment before it is run: the federation, the architecture and the
recipe that all methods share, then each method's own settings, every line with its source.

    >>> print(plan("fedlpa", ["fedavg", "fedlpa"], dataset="digits"))  # doctest: +SKIP
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple

from ..data import DatasetDescription
from ..errors import check_allowed_name
from ..methods import METHODS
from ..models import MODELS
from ..studies.cost import estimate_seconds_of_runs
from ..studies.grid import Study
from ..studies.settings import (
    RECIPE_FIELDS,
    MethodRunPlan,
    Settings,
    make_plans,
    make_shared_recipe,
)
from ..studies.setups import CLASSROOM, SETUPS, Setup, ValueAndSource, format_setting_value
from ..studies.store import Store, list_entries_least_recently_used_first
from ..studies.text_tables import Paragraph, Printable, TextTable
from ..training.recipe import OFF
from .published import describe_tables_and_figures_not_run

GIVEN = "given here"
ALWAYS = ("dataset", "partition", "alpha", "clients", "holdout", "init")
NEVER = ("preset", "model", "seed", "device", "backend", "overrides")
TYPICAL_BYTES = 60_000  # in the store, of a run on the bundled digits


class SettingValueAndSource(NamedTuple):
    """A setting, its value in words, and where the value comes from."""

    setting: str
    value: str
    source: str


@dataclass(frozen=True, repr=False)
class Overview(Printable):
    """An experiment as it is planned.

    shared: {setting: value and source} of the data, the clients' models and their recipe, the same
        for all methods
    methods: {method: its own settings}
    notes: what differs from the paper, or is missing
    """

    preset: str
    title: str
    shared: Mapping[str, ValueAndSource]
    methods: Mapping[str, Mapping[str, ValueAndSource]]
    notes: tuple[str, ...]
    plans: tuple[MethodRunPlan, ...]

    def list_rows(self) -> list[SettingValueAndSource]:
        """List all settings, the shared ones first, then each method's under its name."""
        lines = dict(self.shared)
        for method, method_lines in self.methods.items():
            for name, line in method_lines.items():
                lines[f"{method}.{name}" if name else method] = line
        rows = []
        for name, line in lines.items():
            rows.append(SettingValueAndSource(name, format_setting_value(line.value), line.source))
        return rows

    def make_paragraphs_and_tables(self) -> list[Paragraph | TextTable]:
        grid = [["setting", "value", "source"]]
        grid += [list(row) for row in self.list_rows()]
        parts: list[Paragraph | TextTable] = [f"{self.preset}: {self.title}", grid]
        if self.notes:
            parts.append(f"Missing or different here: {'; '.join(self.notes)}.")
        return parts


def plan(
    preset: str = CLASSROOM, methods: str | Sequence[str] | None = None, **settings: Any
) -> Overview:
    """Show what `fl.run(method, preset=preset, **settings)` would do, with the source of each
    value. Nothing is loaded or computed.

    methods: None for those of the set-up's paper; for the classroom, for all methods
    Raises UsageError for everything that `fl.run` refuses.
    """
    setup = SETUPS[check_allowed_name("preset", preset, SETUPS)]
    if isinstance(methods, str):
        names = [methods]
    else:
        names = list(methods or setup.methods or METHODS)
    run_settings = Settings.make(preset=preset, **settings)
    plans = make_plans(run_settings, names)
    data_info = run_settings.describe_dataset()
    given_settings = dict(settings)
    if given_settings.get("model") == "auto":
        del given_settings["model"]
    applied_setup = setup.copy_with_values_for_dataset_and_alpha(
        run_settings.dataset, run_settings.alpha, data_info.input_shape
    )
    shared = {
        **list_federation_values_and_sources(
            run_settings, applied_setup, given_settings, data_info
        ),
        **list_model_values_and_sources(plans, applied_setup, given_settings),
        **list_recipe_values_and_sources(plans, applied_setup, given_settings, data_info),
    }
    method_lines = {
        plan.method_name: list_method_values_and_sources(plan, applied_setup, given_settings)
        for plan in plans
    }
    notes = [*setup.missing, *describe_tables_and_figures_not_run(preset)]
    if setup.datasets and run_settings.dataset not in setup.datasets:
        paper_dataset = setup.block.shared["dataset"].value
        note = (
            f"{run_settings.dataset} is not in this paper: the values are those for "
            f"{paper_dataset}, unless a line says something else"
        )
        notes.insert(0, note)
    return Overview(preset, setup.title, shared, method_lines, tuple(notes), tuple(plans))


ValueAndSourceBySetting = dict[
    str, ValueAndSource
]  # {name of a setting: its value and where this comes from}


def list_federation_values_and_sources(
    settings: Settings,
    setup: Setup,
    given_settings: Mapping[str, Any],
    data_info: DatasetDescription,
) -> ValueAndSourceBySetting:
    """Make the lines of data and partition: the settings of ALWAYS, those that a person or the
    set-up has set, and those that differ from their default.

    given_settings: what a person set
    """
    lines: dict[str, ValueAndSource] = {}
    for field in dataclasses.fields(Settings):
        name = field.name
        value = getattr(settings, name)
        is_named = name in given_settings or name in setup.block.shared or name in ALWAYS
        if name not in NEVER and (is_named or value != field.default):
            lines[name] = ValueAndSource(
                value, describe_source_of_value(name, setup, given_settings)
            )
    if settings.partition == "natural":  # the clients come with the data, whatever the paper has
        for name in ("partition", "clients"):
            lines[name] = ValueAndSource(getattr(settings, name), "the data's own clients")
        lines.pop("alpha")
    sizes = (
        f"{data_info.n_train:,} training, {data_info.n_test:,} test, "
        f"{data_info.n_public:,} public samples"
    )
    return {
        "dataset": lines.pop("dataset"),
        "samples": ValueAndSource(sizes, "after what `public` takes"),
        **lines,
    }


def describe_source_of_value(
    setting_name: str,
    setup: Setup,
    given_settings: Mapping[str, Any],
    method_or_empty: str = "",
    source_word_of_classroom: str = "",
) -> str:
    """Say where the value of a setting comes from.

    source_word_of_classroom: the word under which the classroom's file has the source; "" for the setting's name
    """
    if setting_name in given_settings:
        return GIVEN
    line = setup.select_declared_values([setting_name], method_or_empty).get(setting_name)
    if line is not None:
        return line.source
    if setup.name == CLASSROOM:
        return setup.words.get(source_word_of_classroom or setting_name, "classroom")
    return "not given: classroom"


def list_model_values_and_sources(
    plans: Sequence[MethodRunPlan], setup: Setup, given_settings: Mapping[str, Any]
) -> ValueAndSourceBySetting:
    """Make the lines of the clients' networks: one line, or two if the methods that need a single
    architecture have another one than the others.
    """
    lines: dict[str, ValueAndSource] = {}
    for plan in plans:
        needs_one = "one architecture" in plan.method.info.needs
        name = "model"
        if needs_one and "one_model" in setup.block.shared and "model" not in given_settings:
            name = "one_model"
        has_feature_rows = len(plan.architectures[0][1]) != 3
        if "model" in given_settings:
            source = GIVEN
        elif has_feature_rows and setup.name != CLASSROOM:
            source = "the paper has no feature rows: classroom"
        else:
            source = describe_source_of_value(name, setup, given_settings)
        lines.setdefault(name, ValueAndSource(describe_client_architectures(plan), source))
    return {name: lines[name] for name in ("model", "one_model") if name in lines}


def describe_client_architectures(plan: MethodRunPlan) -> str:
    """Describe the clients' networks: 'mlp', or '2, dealt in turn: mlp, cnn:16' for several
    architectures.
    """
    names = []
    for name, *_, width in plan.architectures:
        text = f"{name}:{width}" if width else name
        if text not in names:
            names.append(text)
    if len(names) == 1:
        return names[0]
    return f"{len(names)}, dealt in turn: {', '.join(names)}"


def list_recipe_values_and_sources(
    plans: Sequence[MethodRunPlan],
    setup: Setup,
    given_settings: Mapping[str, Any],
    data_info: DatasetDescription,
) -> ValueAndSourceBySetting:
    """Make the lines of the recipe that the clients of all methods share."""
    has_convolutions = any(MODELS[name].required_sample_kind for name, *_ in plans[0].architectures)
    recipe = make_shared_recipe(plans[0].settings, setup, data_info, has_convolutions)
    unused = {**OFF, "augmentation": recipe.augmentation}  # the line of `transform` has it
    if recipe.schedule == "constant":
        unused["lr_min"] = recipe.lr_min
    lines = {}
    for name in RECIPE_FIELDS:
        value = getattr(recipe, name)
        is_named = name in given_settings or name in setup.block.shared
        if is_named or unused.get(name) != value:
            lines[name] = ValueAndSource(
                value,
                describe_source_of_value(
                    name, setup, given_settings, source_word_of_classroom="recipe"
                ),
            )
    return lines


def list_method_values_and_sources(
    plan: MethodRunPlan, setup: Setup, given_settings: Mapping[str, Any]
) -> ValueAndSourceBySetting:
    """Make the lines of a method: first its paper, then what the set-up changes in the recipe for
    this method alone, then its knobs.
    """
    name = plan.method_name
    knobs = [knob.name for knob in plan.method.fields()]
    source = setup.block.sources.get(name)
    if not source and setup.name == CLASSROOM:
        source = plan.method.info.paper
    elif not source:
        source = "not in this paper: the same clients"
    lines = {"": ValueAndSource(plan.method_label, source)}
    recipe_names = [field for field in RECIPE_FIELDS if field not in knobs]
    # The parts of the recipe that the set-up changes for this method alone.
    recipe_lines_of_method = setup.select_declared_values(recipe_names, name)
    for field, line in recipe_lines_of_method.items():
        field_source = GIVEN if field in given_settings else line.source
        lines[field] = ValueAndSource(getattr(plan.recipe, field), field_source)
    for knob in knobs:
        is_of_recipe = knob in RECIPE_FIELDS
        if f"{name}.{knob}" in given_settings or (knob in given_settings and not is_of_recipe):
            knob_source = GIVEN
        else:
            knob_source = describe_source_of_value(
                knob, setup, {}, name, source_word_of_classroom="method"
            )
        lines[knob] = ValueAndSource(getattr(plan.method, knob), knob_source)
    return lines


# ----------------------------------------------------------------------------------------------- how long a study takes
@dataclass(frozen=True)
class StudyCostEstimate:
    """How long a study would take, and how much room in the store.

    remembered: number of cells that are stored already
    seconds:    of the other cells, see `cost.py`; None if it does not know one of the methods
    bytes:      of the other cells in the store, if they have the mean size of the entries there
    """

    cells: int
    remembered: int
    seconds: float | None
    bytes: float

    def __str__(self) -> str:
        missing = self.cells - self.remembered
        text = f"{self.cells} cells, {self.remembered} remembered, {missing} to compute"
        if missing:
            if self.seconds is None:
                text += ": how long is not known yet"
            else:
                text += f": about {self.seconds / 60:.1f} minutes on one core"
            text += f", {self.bytes / 1e6:.1f} MB of disk"
        return text + "."


def count_and_estimate_cells_of_study(study: Study) -> StudyCostEstimate:
    """Count the cells of a study and those that are stored, and estimate time and size of the
    others.
    """
    store = Store("runs")
    plans = [cell.plan for cell in study.cells()]
    missing = [plan for plan in plans if not store.has(plan.hash_settings_of_run())]
    sizes = [
        entry.bytes for entry in list_entries_least_recently_used_first() if entry.kind == "runs"
    ]
    mean_size = fmean(sizes or [TYPICAL_BYTES])
    return StudyCostEstimate(
        cells=len(plans),
        remembered=len(plans) - len(missing),
        seconds=estimate_seconds_of_runs(missing),
        bytes=mean_size * len(missing),
    )
