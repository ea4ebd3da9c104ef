"""What an experiment will be, before it is run: one federation, one architecture and one recipe for all methods, then
each method's own settings, every line with its source.

    >>> print(plan("fedlpa", ["fedavg", "fedlpa"], dataset="digits"))  # doctest: +SKIP
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ..errors import choose
from ..methods import METHODS
from ..models import MODELS
from ..studies.cost import estimate_seconds
from ..studies.grid import Study
from ..studies.settings import RECIPE_FIELDS, Plan, Settings, make_plans, make_shared_recipe
from ..studies.setups import CLASSROOM, SETUPS, Line, Setup, format_value
from ..studies.store import Store, list_entries
from ..studies.text_tables import Grid, Printable
from ..training.recipe import OFF
from .published import not_here

GIVEN = "given here"
ALWAYS = ("dataset", "partition", "alpha", "clients", "holdout", "init")
NEVER = ("preset", "model", "seed", "device", "backend", "overrides")
TYPICAL_BYTES = 60_000  # of a run on the bundled digits


@dataclass(frozen=True, repr=False)
class Overview(Printable):
    """An experiment as it is planned. `shared`: {setting: value and source} of the data, the clients' models and their
    recipe, the same for all methods; `methods`: {method: the same}; `notes`: what the plan does not have of the paper.
    """

    preset: str
    title: str
    shared: Mapping[str, Line]
    methods: Mapping[str, Mapping[str, Line]]
    notes: tuple[str, ...]
    plans: tuple[Plan, ...]

    def rows(self) -> list[tuple[str, str, str]]:
        """(setting, value, source), the shared ones first, then each method's under its name."""
        rows = [(name, format_value(line.value), line.source) for name, line in self.shared.items()]
        for method, lines in self.methods.items():
            own = {f"{method}.{name}" if name else method: line for name, line in lines.items()}
            rows += [(name, format_value(line.value), line.source) for name, line in own.items()]
        return rows

    def parts(self) -> list[str | Grid]:
        missing = f"Missing or different here: {'; '.join(self.notes)}."
        grid = [["setting", "value", "source"], *map(list, self.rows())]
        return [f"{self.preset}: {self.title}", grid, *[missing] * bool(self.notes)]


def plan(
    preset: str = CLASSROOM, methods: str | Sequence[str] | None = None, **settings: Any
) -> Overview:
    """Show what `fl.run(method, preset=preset, **settings)` would do, with the source of each value. Nothing is loaded
    or computed.

    methods: None means those of the set-up's paper, and all methods for the classroom
    Raises UsageError for everything that `fl.run` refuses.
    """
    setup = SETUPS[choose("preset", preset, SETUPS)]
    names = [methods] if isinstance(methods, str) else list(methods or setup.methods or METHODS)
    asked = Settings.make(preset=preset, **settings)
    works = make_plans(asked, names)
    about = asked.describe()
    settings = {
        name: value for name, value in settings.items() if (name, value) != ("model", "auto")
    }
    there = setup.apply_rows(asked.dataset, asked.alpha, about.input_shape)
    shared = {
        **federation_lines(asked, there, settings, about),
        **model_lines(works, there, settings),
        **recipe_lines(works, there, settings, about),
    }
    own = {work.name: method_lines(work, there, settings) for work in works}
    notes = [*setup.missing, *not_here(preset)]
    if setup.datasets and asked.dataset not in setup.datasets:
        first = f"the values are those for {setup.block.shared['dataset'].value}, unless a line says something else"
        notes.insert(0, f"{asked.dataset} is not in this paper: {first}")
    return Overview(preset, setup.title, shared, own, tuple(notes), tuple(works))


def federation_lines(
    asked: Settings, there: Setup, given: Mapping[str, Any], about: Any
) -> dict[str, Line]:
    """Data and partition. Settings that nobody set and that are as ever are left out, but for the main ones."""
    lines: dict[str, Line] = {}
    for field in dataclasses.fields(Settings):
        value, name = getattr(asked, field.name), field.name
        named = name in given or name in there.block.shared or name in ALWAYS
        if name not in NEVER and (named or value != field.default):
            lines[name] = Line(value, source_of(name, there, given))
    if asked.partition == "natural":  # whatever the paper has: the data name their clients
        lines |= {
            name: Line(getattr(asked, name), "the data's own clients")
            for name in ("partition", "clients")
        }
        lines.pop("alpha")
    sizes = f"{about.n_train:,} training, {about.n_test:,} test, {about.n_public:,} public samples"
    return {
        "dataset": lines.pop("dataset"),
        "samples": Line(sizes, "after what `public` takes"),
        **lines,
    }


def source_of(
    name: str, there: Setup, given: Mapping[str, Any], method: str = "", kind: str = ""
) -> str:
    """Where the value of a setting comes from. `kind`: where the classroom's file has its source."""
    if name in given:
        return GIVEN
    line = there.select_lines([name], method).get(name)
    if line is not None:
        return line.source
    return (
        there.words.get(kind or name, "classroom")
        if there.name == CLASSROOM
        else "not given: classroom"
    )


def model_lines(works: Sequence[Plan], there: Setup, given: Mapping[str, Any]) -> dict[str, Line]:
    """The clients' networks: one line, or two where methods that need one architecture have another."""
    lines: dict[str, Line] = {}
    for work in works:
        kinds = list(
            dict.fromkeys(
                f"{name}:{width}" if width else name for name, *_, width in work.architectures
            )
        )
        text = (
            ", dealt in turn: ".join([str(len(kinds)), ", ".join(kinds)])
            if len(kinds) > 1
            else kinds[0]
        )
        one = "one_model" in there.block.shared and "one architecture" in work.method.info.needs
        name = "one_model" if one and "model" not in given else "model"
        usual = len(work.architectures[0][1]) == 3 or there.name == CLASSROOM
        source = (
            source_of(name, there, given) if usual else "the paper has no feature rows: classroom"
        )
        lines.setdefault(name, Line(text, GIVEN if "model" in given else source))
    return {name: lines[name] for name in ("model", "one_model") if name in lines}


def recipe_lines(
    works: Sequence[Plan], there: Setup, given: Mapping[str, Any], about: Any
) -> dict[str, Line]:
    """The recipe that the clients of all methods share; what a method has of its own is among its own lines."""
    convolutions = any(MODELS[name].needs for name, *_ in works[0].architectures)
    recipe = make_shared_recipe(works[0].settings, there, about, convolutions)
    off = {**OFF, "augmentation": recipe.augmentation}  # that is said by `transform`
    if recipe.schedule == "constant":
        off["lr_min"] = recipe.lr_min
    named = {*given, *there.block.shared}
    names = [
        name for name in RECIPE_FIELDS if name in named or off.get(name) != getattr(recipe, name)
    ]
    return {
        name: Line(getattr(recipe, name), source_of(name, there, given, kind="recipe"))
        for name in names
    }


def method_lines(work: Plan, there: Setup, given: Mapping[str, Any]) -> dict[str, Line]:
    """A method's own settings: where the paper has it, what it or the person gives, and what the rest is."""
    name, knobs = work.name, [k.name for k in work.method.fields()]
    stands = there.block.sources.get(name)
    here = (
        work.method.info.paper if there.name == CLASSROOM else "not in this paper: the same clients"
    )
    lines = {"": Line(work.label, stands or here)}
    own = there.select_lines(
        [name for name in RECIPE_FIELDS if name not in knobs], name
    )  # what the set-up gives it alone
    for field, line in own.items():
        lines[field] = Line(getattr(work.recipe, field), GIVEN if field in given else line.source)
    for knob in knobs:
        plainly = f"{name}.{knob}" in given or (knob in given and knob not in RECIPE_FIELDS)
        source = GIVEN if plainly else source_of(knob, there, {}, name, kind="method")
        lines[knob] = Line(getattr(work.method, knob), source)
    return lines


# ----------------------------------------------------------------------------------------------- how long a study takes
@dataclass(frozen=True)
class Estimate:
    """What a study would take. `seconds` and `bytes`: of the cells that are not remembered. Seconds are those of
    `cost.py`, None with a method that it does not know; bytes are those of an entry in the store, on average."""

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


def estimate(study: Study) -> Estimate:
    """How many cells, how many of them remembered, and how long and how large the rest will be."""
    plans, store = [cell.plan for cell in study.cells()], Store("runs")
    missing = [plan for plan in plans if not store.has(plan.make_run_key())]
    size = fmean(
        [entry.bytes for entry in list_entries() if entry.kind == "runs"] or [TYPICAL_BYTES]
    )
    remembered = len(plans) - len(missing)
    return Estimate(len(plans), remembered, estimate_seconds(missing), size * len(missing))
