"""A study's declaration: a grid over methods, any setting, any method field and seeds.

    Study.declare(["fedavg", "fens"], alpha=[0.05, 0.1], seeds=10, **{"fens.rounds": [10, 50]})
    Study.load("mine.toml")

A setting or field that is given as a list is an axis. A method's field is an axis of that method alone. The TOML file
says the same: `methods`, `seeds` and settings at the top, a table for each method's fields.

    methods = ["fedavg", "fens"]
    seeds = 10                      # or a list of seeds
    alpha = [0.05, 0.1]
    [fens]
    rounds = [10, 50]

Everything is checked before anything is computed: unknown names, empty axes, values that a knob refuses.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from ..data import to_plain_settings
from ..declared import parse_toml
from ..errors import UsageError, check_names, check_whole_number, choose, parse_number
from ..files import expand_path
from ..methods import METHODS
from .outcome import Outcome
from .settings import FEATURES, RECIPE_FIELDS, Plan, Settings, list_setting_names, make_plans

SHARED = (list_setting_names() - {"seed"}) | set(RECIPE_FIELDS)
MOST_CELLS = 1_000_000


@dataclass(frozen=True)
class Cell:
    """One run of a study. `values`: what its axes are set to, by name; `plan`: the run itself."""

    plan: Plan
    values: Mapping[str, Any]

    @property
    def seed(self) -> int:
        return self.plan.settings.seed


CellResult = tuple[Cell, Outcome | None, str]  # a cell, and its outcome or why it failed


@dataclass(frozen=True)
class Study:
    """A grid of experiments. `shared` has the axes of all methods, as {name: values}. `own` has the axes of single
    methods' fields, as {method: {name: values}}."""

    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    shared: Mapping[str, tuple[Any, ...]]
    own: Mapping[str, Mapping[str, tuple[Any, ...]]]

    @classmethod
    def declare(
        cls, methods: str | Sequence[str], *, seeds: int | Sequence[int] = 1, **settings: Any
    ) -> Study:
        """`seeds`: how many, counted from `seed`, or a list of them. UsageError for a name that nothing knows, for an
        empty axis, and for a grid of more than a million cells."""
        names = check_names("methods", methods)
        if names == ["all"]:
            names = list(METHODS)
        if not names:
            raise UsageError("A study needs at least one method; fedlab-nb list names them.")
        settings = to_plain_settings(settings)
        for name in names:
            choose("method", name, METHODS)
        first_seed = check_whole_number("seed", parse_number(settings.pop("seed", 0)), 0)
        fields = {}
        for name in names:
            fields[name] = {FEATURES, *(knob.name for knob in METHODS[name].fields())}
        shared: dict[str, tuple[Any, ...]] = {}
        fields_of_method: dict[str, dict[str, tuple[Any, ...]]] = {name: {} for name in names}
        for name, value in settings.items():
            values = parse_axis(name, value)
            method, dot, field = name.partition(".")
            if name in SHARED:
                shared[name] = values
            elif dot and field in fields.get(method, ()):
                fields_of_method[method][field] = values
            else:
                for owner in find_owners(name, fields):
                    fields_of_method[owner][name] = values
        study = cls(tuple(names), parse_seeds(seeds, int(first_seed)), shared, fields_of_method)
        if len(study) > MOST_CELLS:
            raise UsageError(
                f"The study has {len(study):,} cells, and at most {MOST_CELLS:,} are allowed; shorten an axis."
            )
        return study

    @classmethod
    def load(cls, path: str | Path) -> Study:
        """The study that a TOML file declares; UsageError where it cannot be read."""
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
                f"The study {path} names no methods; add a line such as "
                'methods = ["fedavg", "fens"].'
            )
        settings: dict[str, Any] = {}
        for name, value in content.items():
            if not isinstance(value, Mapping):
                settings[name] = value
                continue
            prefix = "" if name == "settings" else f"{name}."
            for field, field_value in value.items():
                settings[f"{prefix}{field}"] = field_value
        return cls.declare(settings.pop("methods"), **settings)

    def list_variants(self, method: str) -> list[dict[str, Any]]:
        """The method's own fields, at each point of their axes, by qualified name."""
        names = [f"{method}.{field}" for field in self.own[method]]
        points = itertools.product(*self.own[method].values())
        return [dict(zip(names, values, strict=True)) for values in points]

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of what takes more than one value, the method and the seed left out."""
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

    def cells(self) -> list[Cell]:
        """All runs; those of one seed, which share their clients, are neighbours. UsageError if a value is refused."""
        cells = []
        for values in itertools.product(*self.shared.values()):
            point = dict(zip(self.shared, values, strict=True))
            base = Settings.make(**point)
            for seed in self.seeds:
                for method in self.methods:
                    for variant in self.list_variants(method):
                        cells.append(make_cell(base, seed, method, point, variant))
        return cells


def make_cell(
    base: Settings, seed: int, method: str, point: Mapping[str, Any], variant: Mapping[str, Any]
) -> Cell:
    """One run. `point`: the values of the shared axes, which are in `base`; `variant`: those of the method's own."""
    overrides = {**dict(base.overrides), **variant}
    settings = dataclasses.replace(base, seed=seed, overrides=tuple(sorted(overrides.items())))
    (plan,) = make_plans(settings, [method])
    return Cell(plan, {**point, **variant})


def find_owners(name: str, fields: Mapping[str, Iterable[str]]) -> list[str]:
    """The methods that have a field of this name; UsageError where none has. `fields`: those of each method."""
    owners = [method for method, own_fields in fields.items() if name in own_fields]
    if not owners:
        shared_names = [*SHARED, "seed", "seeds"]
        for method, own_fields in fields.items():
            shared_names += [f"{method}.{field}" for field in own_fields]
        choose("setting of a study", name, sorted(shared_names))
    return owners


def parse_axis(name: str, value: Any) -> tuple[Any, ...]:
    """The values of an axis: those of a list, or the one that is given; UsageError if there is none."""
    given_values = value if isinstance(value, list | tuple | range) else (value,)
    values = tuple(parse_number(v) if isinstance(v, str) else v for v in given_values)
    if not values:
        raise UsageError(
            f"The axis {name} of the study is empty; give it at least one value, or leave it out."
        )
    distinct = {json.dumps(value, default=str) for value in values}
    if len(distinct) < len(values):
        texts = ", ".join(str(value) for value in values)
        raise UsageError(f"The axis {name} of the study has a value twice: {texts}; leave one out.")
    return values


def parse_seeds(seeds: int | Sequence[int], first: int) -> tuple[int, ...]:
    """The seeds of a list, or so many, counted from `first`."""
    if isinstance(seeds, list | tuple | range):
        return tuple(
            check_whole_number("seed", parse_number(seed), 0) for seed in parse_axis("seeds", seeds)
        )
    count = check_whole_number("seeds", parse_number(seeds), 1, 1000)
    return tuple(range(first, first + count))
