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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from ..data import to_plain_settings
from ..declared import parse
from ..errors import UsageError, choose, demand, parsed, several, whole
from ..files import expand_path
from ..methods import METHODS
from .outcome import Outcome
from .settings import FEATURES, RECIPE_FIELDS, Plan, Settings, plans_for, setting_names

SHARED = setting_names() - {"seed"} | set(RECIPE_FIELDS)
MOST = 1_000_000  # cells


@dataclass(frozen=True)
class Cell:
    """One run of a study. `values`: what its axes are set to, by name; `plan`: the run itself."""

    plan: Plan
    values: Mapping[str, Any]

    @property
    def seed(self) -> int:
        return self.plan.settings.seed


Done = tuple[Cell, Outcome | None, str]  # a cell, and its outcome or why it failed


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
        names = several("methods", methods)
        names = list(METHODS) if names == ["all"] else names
        demand(names, "A study needs at least one method; fedlab-nb list names them.")
        settings = to_plain_settings(settings)
        for name in names:
            choose("method", name, METHODS)
        first = whole("seed", parsed(settings.pop("seed", 0)), 0)
        fields = {
            name: {FEATURES, *(knob.name for knob in METHODS[name].fields())} for name in names
        }
        shared: dict[str, tuple[Any, ...]] = {}
        own: dict[str, dict[str, tuple[Any, ...]]] = {name: {} for name in names}
        for name, value in settings.items():
            values = axis(name, value)
            method, dot, field = name.partition(".")
            if name in SHARED:
                shared[name] = values
            elif dot and field in fields.get(method, ()):
                own[method][field] = values
            elif owners := [method for method in names if name in fields[method]]:
                for method in owners:
                    own[method][name] = values
            else:
                known = [
                    f"{method}.{field}" for method in names for field in sorted(fields[method])
                ]
                choose("setting of a study", name, sorted([*SHARED, "seed", "seeds", *known]))
        study = cls(tuple(names), seeds_of(seeds, int(first)), shared, own)
        cells = len(study)
        demand(
            cells <= MOST,
            f"The study has {cells:,} cells, and at most {MOST:,} are allowed; shorten an axis.",
        )
        return study

    @classmethod
    def load(cls, path: str | Path) -> Study:
        """The study that a TOML file declares; UsageError where it cannot be read."""
        try:
            content = parse(expand_path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not text in UTF-8"
            raise UsageError(
                f"The study {path} cannot be read: {why}; give the path of a TOML file."
            ) from None
        except ValueError as error:
            raise UsageError(f"The study {path} is not valid TOML: {error}.") from None
        advice = 'add a line such as methods = ["fedavg", "fens"]'
        demand("methods" in content, f"The study {path} names no methods; {advice}.")
        settings: dict[str, Any] = {}
        for name, value in content.items():
            if isinstance(value, Mapping):
                settings |= {
                    field if name == "settings" else f"{name}.{field}": v
                    for field, v in value.items()
                }
            else:
                settings[name] = value
        return cls.declare(settings.pop("methods"), **settings)

    def variants(self, method: str) -> list[dict[str, Any]]:
        """The method's own fields, at each point of their axes, by qualified name."""
        own = self.own[method]
        return [
            {f"{method}.{name}": value for name, value in zip(own, values, strict=True)}
            for values in itertools.product(*own.values())
        ]

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of what takes more than one value, the method and the seed left out."""
        own = [
            f"{method}.{name}"
            for method, of in self.own.items()
            for name, values in of.items()
            if len(values) > 1
        ]
        return (*(name for name, values in self.shared.items() if len(values) > 1), *own)

    def __len__(self) -> int:
        variants = sum(prod(map(len, axes.values())) for axes in self.own.values())
        return prod(map(len, self.shared.values())) * variants * len(self.seeds)

    def cells(self) -> list[Cell]:
        """All runs; those of one seed, which share their clients, are neighbours. UsageError if a value is refused."""
        cells = []
        for values in itertools.product(*self.shared.values()):
            point = dict(zip(self.shared, values, strict=True))
            base = Settings.make(**point)
            own = [
                (method, variant) for method in self.methods for variant in self.variants(method)
            ]
            for seed, (method, variant) in itertools.product(self.seeds, own):
                overrides = tuple(sorted({**dict(base.overrides), **variant}.items()))
                settings = dataclasses.replace(base, seed=seed, overrides=overrides)
                cells.append(Cell(plans_for(settings, [method])[0], {**point, **variant}))
        return cells


def axis(name: str, value: Any) -> tuple[Any, ...]:
    """The values of an axis: those of a list, or the one that is given; UsageError if there is none."""
    given = value if isinstance(value, list | tuple | range) else (value,)
    values = tuple(parsed(v) if isinstance(v, str) else v for v in given)
    demand(
        values,
        f"The axis {name} of the study is empty; give it at least one value, or leave it out.",
    )
    alike = len({json.dumps(v, default=str) for v in values}) < len(values)
    demand(
        not alike,
        f"The axis {name} of the study has a value twice: {', '.join(map(str, values))}; leave one out.",
    )
    return values


def seeds_of(seeds: int | Sequence[int], first: int) -> tuple[int, ...]:
    if isinstance(seeds, list | tuple | range):
        return tuple(whole("seed", parsed(s), 0) for s in axis("seeds", seeds))
    count = whole("seeds", parsed(seeds), 1, 1000)
    return tuple(range(first, first + count))
