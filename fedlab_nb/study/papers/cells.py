"""What is run for the numbers of a table, at a scale.

classroom   the table's numbers of clients and skews, with the classroom's networks, recipe and knobs, on one data set
            that stands for all of the table's, or for its own columns
paper       the paper's set-up on the paper's data sets; a number between 0 and 1: the same, on that share of the
            training samples
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import choose, demand, number, parsed
from ...methods import METHODS
from ..grid import SHARED, Cell
from ..outcome import Outcome
from ..settings import Settings, plans_for, setting_names
from .measures import MEASURES
from .published import Column, PaperTable, here

SCALES = ("classroom", "paper")
STANDARD = "digits"  # what stands for the papers' data sets at classroom scale
OUTSIDE = ("seed", "device", "backend")  # of a setting, what a cell's name leaves out
FREE = ("target",)  # of a column, what is no setting


@dataclass(frozen=True)
class Wanted:
    """A number of a table that can be run: one cell a seed."""

    row: str
    place: int  # of the column
    cells: tuple[Cell, ...]
    reading: str  # one of MEASURES
    column: Column

    @property
    def name(self) -> str:
        return cell_name(self.cells[0])

    @property
    def dataset(self) -> str:
        return self.cells[0].plan.settings.dataset

    @property
    def federation(self) -> str:
        """The same for runs whose clients hold the same samples at every seed."""
        settings = self.cells[0].plan.settings
        return repr((settings.dataset, settings.preset, {**settings.federation_options(), "seed": 0}))

    @property
    def label(self) -> str:
        """Of what is read off a run: the measure, with the column's target if it has one."""
        return " ".join([self.reading, *(f"{value:g}" for name, value in self.column.values if name in FREE)])

    def measure(self, outcome: Outcome) -> float:
        return MEASURES[self.reading](outcome, dict(self.column.values))


def scale_of(scale: object) -> str | float:
    """A scale: one of SCALES, or a share of the paper's samples; UsageError for another."""
    scale = parsed(scale)
    if isinstance(scale, int | float):
        return "paper" if scale == 1 else number("scale", scale, 0, 1, open_low=True, hint="1 is the paper's own")
    return choose("scale", scale, SCALES)


def standing(table: PaperTable, dataset: str, scale: str | float) -> dict[int, str]:
    """Which data set each column of the table is run on, by the column's place; a column that is not there is not run.

    dataset: one of the table's own, which stands for its columns; another one, which stands for all; "": at classroom
    scale the digits, which stand for all, else each column's own.
    """
    dataset = dataset or (STANDARD if scale == "classroom" else "")
    if not dataset:
        return {place: column.dataset for place, column in enumerate(table.columns) if here(column.dataset)}
    own = dataset in table.datasets
    return {place: dataset for place, column in enumerate(table.columns) if not own or column.dataset == dataset}


def wanted(
    table: PaperTable, scale: str | float, dataset: str, seeds: Sequence[int], overrides: Mapping[str, Any]
) -> tuple[list[Wanted], dict[tuple[str, int], str]]:
    """The numbers that can be run, and of the others why not, `{(row, column's place): reason}`.

    overrides: settings, recipe or method fields for all runs. UsageError for a wrong one.
    """
    runs, why, stands = [], {}, standing(table, dataset, scale)
    for place, column in enumerate(table.columns):
        for name in column.numbers:
            row = table.rows[name]
            if not row.method:
                why[name, place] = row.why
            elif place not in stands:
                why[name, place] = missing(column, dataset)
            elif reason := misfit(column, scale):
                why[name, place] = reason
            else:
                made = dict(row.settings)
                made |= {**table.classroom, **row.classroom} if scale == "classroom" else paper(table, scale)
                made |= {**table.settings, **column_settings(column), "dataset": stands[place], **overrides}
                made_by = tuple(cells(row.method, made, seeds))
                runs.append(Wanted(name, place, made_by, table.measured(name), column))
    return runs, why


def missing(column: Column, dataset: str) -> str:
    """Why a column has no data set to run on."""
    if not here(column.dataset):
        return f"the package has no data set {column.dataset}"
    return f"{dataset} alone was asked for"


def misfit(column: Column, scale: str | float) -> str:
    """Why another data set cannot stand for the column's; "" where it can."""
    natural = not any(name in ("alpha", "classes_per_client") for name, _ in column.values)
    return f"{column.dataset} comes with clients of its own, which no other data set has" if natural else ""


def paper(table: PaperTable, scale: str | float) -> dict[str, Any]:
    """What the paper's set-up sets, on its share of the samples."""
    return {"preset": table.preset, **({} if scale == "paper" else {"share": scale})}


def column_settings(column: Column) -> dict[str, Any]:
    """The settings that a column stands for."""
    values = {name: value for name, value in column.values if name not in FREE}
    return values | ({"partition": "classes"} if "classes_per_client" in values else {})


def cells(method: str, made: Mapping[str, Any], seeds: Sequence[int]) -> list[Cell]:
    """A cell a seed. A value "recipe" stands for the epochs of local training."""
    own = {name: value for name, value in made.items() if fits(method, name)}
    for name in [name for name, value in own.items() if value == "recipe"]:
        plain = Settings.make(**{key: value for key, value in own.items() if value != "recipe"})
        own[name] = plans_for(plain, [method])[0].recipe.epochs
    settings = Settings.make(**own)
    return [Cell(plans_for(dataclasses.replace(settings, seed=seed), [method])[0], own) for seed in seeds]


def fits(method: str, name: str) -> bool:
    """Whether a setting is the method's, or every method's."""
    return name in SHARED or name.removeprefix(f"{method}.") in {knob.name for knob in METHODS[method].fields()}


def checked(table: PaperTable, overrides: Mapping[str, Any]) -> None:
    """UsageError for an override that is nobody's, and for what a table's columns set."""
    methods = [row.method for row in table.rows.values() if row.method]
    fixed = {"seed", "seeds", "preset", "partition", *(key for column in table.columns for key, _ in column.values)}
    known = [f"{method}.{knob.name}" for method in dict.fromkeys(methods) for knob in METHODS[method].fields()]
    for name in overrides:
        demand(name not in fixed, f"{table.name} sets {name} itself, so it cannot be set here; leave it out.")
        if not any(fits(method, name) for method in methods):
            choose("setting of this table", name, sorted([*(SHARED - fixed), *known]))


def cell_name(cell: Cell) -> str:
    """The method and all that was set for it, seed and device left out; the same for the same cell of two tables."""
    settings = cell.plan.settings
    usual = Settings()
    names = sorted(setting_names() - set(OUTSIDE))
    set_here = {name: getattr(settings, name) for name in names if getattr(settings, name) != getattr(usual, name)}
    set_here = {"dataset": settings.dataset, "alpha": settings.alpha, "clients": settings.clients} | set_here
    words = [f"{name}={value}" for name, value in [*set_here.items(), *settings.overrides]]
    return " ".join([cell.plan.name, *words])
