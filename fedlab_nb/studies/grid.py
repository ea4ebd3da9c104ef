"""A study's declaration: a grid over methods, any setting, any method field and seeds.

    Study.declare(["fedavg", "fens"], alpha=[0.05, 0.1], seeds=10, **{"fens.rounds": [10, 50]})
    Study.load("mine.toml")

A setting or field that is given as a list is an axis. A method's field is an axis of that method alone. A TOML file
can declare the same: `methods`, `seeds` and settings at the top, then a table for the fields of each method.

    methods = ["fedavg", "fens"]
    seeds = 10                      # or a list of seeds
    alpha = [0.05, 0.1]
    [fens]
    rounds = [10, 50]

Everything is checked before anything is computed: unknown names, empty axes, and values that a knob does not allow.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import NamedTuple

from ..data import replace_objects_by_names_in_settings
from ..declared import parse_toml
from ..errors import (
    UsageError,
    check_allowed_name,
    check_and_list_unique_names,
    check_whole_number,
    parse_if_number,
)
from ..files import expand_path
from ..methods import METHODS
from ..value_types import SettingsByName, SettingValue
from .outcome import Outcome
from .settings import (
    FEATURES,
    RECIPE_FIELDS,
    MethodRunPlan,
    Settings,
    list_setting_names,
    make_plans,
)

SHARED = (list_setting_names() - {"seed"}) | set(RECIPE_FIELDS)
MOST_CELLS = 1_000_000


@dataclass(frozen=True)
class StudyCell:
    """One run of a study: the plan of the run, and the values of the study's axes by name."""

    plan: MethodRunPlan
    values: Mapping[str, SettingValue]

    @property
    def seed(self) -> int:
        return self.plan.settings.seed


class StudyCellResult(NamedTuple):
    """A cell that was run, with its outcome, or with a sentence that says why it failed."""

    cell: StudyCell
    outcome: Outcome | None
    error: str


@dataclass(frozen=True)
class Study:
    """A grid of experiments. `shared` has the axes of all methods, as {name: values}. `own` has the
    axes of single methods' fields, as {method: {name: values}}.
    """

    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    shared: Mapping[str, tuple[SettingValue, ...]]
    own: Mapping[str, Mapping[str, tuple[SettingValue, ...]]]

    @classmethod
    def declare(
        cls,
        methods: str | Sequence[str],
        *,
        seeds: int | Sequence[int] = 1,
        **settings: SettingValue,
    ) -> Study:
        """Declare a study.

        seeds: the number of seeds, counted from `seed`, or a list of them
        Raises UsageError for an unknown name, an empty axis, and a grid of more than a million cells.
        """
        names = check_and_list_unique_names("methods", methods)
        if names == ["all"]:
            names = list(METHODS)
        if not names:
            raise UsageError("A study needs at least one method; fedlab-nb list names them.")
        settings = replace_objects_by_names_in_settings(settings)
        for name in names:
            check_allowed_name("method", name, METHODS)
        first_seed = check_whole_number("seed", parse_if_number(settings.pop("seed", 0)), 0)
        fields = {}
        for name in names:
            fields[name] = {FEATURES, *(knob.name for knob in METHODS[name].fields())}
        shared: dict[str, tuple[SettingValue, ...]] = {}
        fields_of_method: dict[str, dict[str, tuple[SettingValue, ...]]] = {
            name: {} for name in names
        }
        for name, value in settings.items():
            values = parse_axis_value_list(name, value)
            method, dot, field = name.partition(".")
            if name in SHARED:
                shared[name] = values
            elif dot and field in fields.get(method, ()):
                fields_of_method[method][field] = values
            else:
                for owner in find_methods_with_knob(name, fields):
                    fields_of_method[owner][name] = values
        study = cls(tuple(names), parse_seeds(seeds, int(first_seed)), shared, fields_of_method)
        if len(study) > MOST_CELLS:
            raise UsageError(
                f"The study has {len(study):,} cells, and at most {MOST_CELLS:,} are allowed; "
                "shorten an axis."
            )
        return study

    @classmethod
    def load(cls, path: str | Path) -> Study:
        """Load the study that a TOML file declares. UsageError if the file cannot be read."""
        try:
            content = parse_toml(expand_path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not text in UTF-8"
            raise UsageError(
                f"The study {path} cannot be read: {why}; give the path of a TOML file."
            ) from None
        except ValueError as error:
            raise UsageError(f"The study {path} is not valid TOML: {error}.") from None
        if "methods" not in content:
            raise UsageError(
                f'The study {path} names no methods; add a line such as methods = ["fedavg", "fens"].'
            )
        settings: SettingsByName = {}
        for name, value in content.items():
            if not isinstance(value, Mapping):
                settings[name] = value
                continue
            prefix = "" if name == "settings" else f"{name}."
            for field, field_value in value.items():
                settings[f"{prefix}{field}"] = field_value
        return cls.declare(settings.pop("methods"), **settings)

    def list_knob_values_of_variants(self, method: str) -> list[SettingsByName]:
        """List the method's own fields by qualified name, for each point of their axes."""
        names = [f"{method}.{field}" for field in self.own[method]]
        points = itertools.product(*self.own[method].values())
        return [dict(zip(names, values, strict=True)) for values in points]

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of all settings with more than one value, without method and seed."""
        axes = [name for name, values in self.shared.items() if len(values) > 1]
        for method, fields in self.own.items():
            for field, values in fields.items():
                if len(values) > 1:
                    axes.append(f"{method}.{field}")
        return tuple(axes)

    def __len__(self) -> int:
        points = prod(len(values) for values in self.shared.values())
        variants = 0
        for fields in self.own.values():
            variants += prod(len(values) for values in fields.values())
        return points * variants * len(self.seeds)

    def cells(self) -> list[StudyCell]:
        """List all runs. Runs of the same seed are neighbours, since they share their clients.
        UsageError for a value that is not allowed.
        """
        cells = []
        for values in itertools.product(*self.shared.values()):
            point = dict(zip(self.shared, values, strict=True))
            base = Settings.make(**point)
            for seed in self.seeds:
                for method in self.methods:
                    for variant in self.list_knob_values_of_variants(method):
                        cells.append(make_cell(base, seed, method, point, variant))
        return cells


def make_cell(
    base_settings: Settings,
    seed: int,
    method: str,
    shared_axis_values: Mapping[str, SettingValue],
    method_axis_values: Mapping[str, SettingValue],
) -> StudyCell:
    """Make one run of a study.

    base_settings: the settings, with the values of the shared axes
    shared_axis_values, method_axis_values: the values of the shared axes, and of the method's own,
        by name
    """
    overrides = {**dict(base_settings.overrides), **method_axis_values}
    settings = dataclasses.replace(
        base_settings, seed=seed, overrides=tuple(sorted(overrides.items()))
    )
    (plan,) = make_plans(settings, [method])
    return StudyCell(plan, {**shared_axis_values, **method_axis_values})


def find_methods_with_knob(
    knob_name: str, knobs_by_method: Mapping[str, Iterable[str]]
) -> list[str]:
    """Find the methods that have a field of this name. UsageError if none has.

    knobs_by_method: the knobs of each method
    """
    owners = [method for method, own_fields in knobs_by_method.items() if knob_name in own_fields]
    if not owners:
        shared_names = [*SHARED, "seed", "seeds"]
        for method, own_fields in knobs_by_method.items():
            shared_names += [f"{method}.{field}" for field in own_fields]
        check_allowed_name("setting of a study", knob_name, sorted(shared_names))
    return owners


def parse_axis_value_list(
    axis_name: str, value_or_values: SettingValue | Sequence[SettingValue]
) -> tuple[SettingValue, ...]:
    """Parse the values of an axis, a list or a single value. UsageError for an empty list."""
    given_values = (
        value_or_values if isinstance(value_or_values, list | tuple | range) else (value_or_values,)
    )
    values = tuple(parse_if_number(v) if isinstance(v, str) else v for v in given_values)
    if not values:
        raise UsageError(
            f"The axis {axis_name} of the study is empty; give it at least one value, or leave it "
            "out."
        )
    distinct = {json.dumps(value_or_values, default=str) for value_or_values in values}
    if len(distinct) < len(values):
        texts = ", ".join(str(value_or_values) for value_or_values in values)
        raise UsageError(
            f"The axis {axis_name} of the study has a value twice: {texts}; leave one out."
        )
    return values


def parse_seeds(seed_count_or_list: int | Sequence[int], first_seed: int) -> tuple[int, ...]:
    """Return the seeds of a list; for a number as many seeds, counted from `first_seed`."""
    if isinstance(seed_count_or_list, list | tuple | range):
        return tuple(
            check_whole_number("seed", parse_if_number(seed), 0)
            for seed in parse_axis_value_list("seeds", seed_count_or_list)
        )
    count = check_whole_number("seeds", parse_if_number(seed_count_or_list), 1, 1000)
    return tuple(range(first_seed, first_seed + count))
