"""What is run for the numbers of a table, at a scale, and which number is read off a run.

classroom   the table's numbers of clients and skews, with the classroom's networks, recipe and knobs. MNIST's columns
            are run on 5,000 of its images, and the digits stand for the data sets that cannot be had offline; or one
            data set, if it is asked for, stands for all of the table's, or for its own columns
paper       the paper's set-up on the paper's data sets; a number between 0 and 1: the same, on that share of the
            training samples
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..data import DATASETS
from ..errors import UsageError, check_number, choose, parse_number
from ..methods import METHODS
from ..studies.grid import SHARED
from ..studies.outcome import Outcome
from ..studies.settings import Settings, list_setting_names, make_plans
from ..studies.setups import SETUPS, drop_sources, format_value
from .points import COLUMNS, Point
from .published import TABLES, Column, PaperTable, Place, paper_table

SCALES = ("classroom", "paper")
STANDARD = "digits"  # what stands for the papers' data sets at classroom scale
SMALLER = {"mnist": "mnist:5k"}  # but for these
SEEDS = 10  # at classroom scale
OUTSIDE = {"seed", "device", "backend"}  # of a setting, what a point's name leaves out
CLIENTS = 6  # that a table shows one by one, at most
TARGET = "target"  # of a column, what is no setting
PRINTED_BESIDE = "a size, a time or an accuracy on clients' own samples, which the paper prints beside its results"
SHARED_OUT = (
    "heads averaged"  # Fed-ET's phase between two models of the server, which no table counts
)


# -------------------------------------------------------------------------------------------------- what is read off
def curve(outcome: Outcome) -> list[Mapping[str, Any]]:
    """The points of the curve that a table counts."""
    return [point for point in outcome.history if point["phase"] != SHARED_OUT]


def numbers_to_target(outcome: Outcome, target: float) -> float | None:
    """Numbers (4 bytes each) that were sent until the curve first reached the column's target, in per cent; None where
    it never did: what the run sent until it ended says nothing of what the target would have taken."""
    reached = [point["bytes"] for point in curve(outcome) if point["accuracy"] >= target / 100]
    return min(reached) / 4 if reached else None


MEASURES: Mapping[str, Callable[..., float | None]] = {
    "accuracy": lambda outcome, target: (
        outcome.accuracy
    ),  # of the model at the end, on the test images
    # As Fed-ET reports it: the round is chosen on test images, so it flatters all methods.
    "best": lambda outcome, target: max(point["accuracy"] for point in curve(outcome)),
    # Of Co-Boosting's weighted ensemble, at the end.
    "ensemble": lambda outcome, target: outcome.report.ensemble_curve[-1],  # type: ignore[attr-defined]
    "numbers to target": numbers_to_target,
    "AUC": lambda outcome, target: outcome.auc,
    "balanced accuracy": lambda outcome, target: outcome.balanced_accuracy,
    # Of one client's own model, on all test images.
    **{
        f"client {k}": partial(lambda outcome, target, k: outcome.report.each_client[k], k=k)
        for k in range(CLIENTS)
    },
}


# -------------------------------------------------------------------------------------------------- what is run
@dataclass(frozen=True)
class Wanted:
    """A number of a table that can be run. `place`: of its column;   `label`: of what is read off a run of `point`."""

    row: str
    place: int
    label: str
    point: Point

    @property
    def dataset(self) -> str:
        return self.point.settings.dataset


def scale_of(scale: object) -> str | float:
    """A scale: one of SCALES, or a share of the paper's samples; UsageError for another."""
    scale = parse_number(scale)
    if isinstance(scale, int | float):
        return (
            "paper"
            if scale == 1
            else check_number("scale", scale, 0, 1, open_low=True, hint="1 is the paper's own")
        )
    return choose("scale", scale, SCALES)


def wanted(
    table: PaperTable,
    scale: str | float,
    dataset: str,
    seeds: Sequence[int],
    overrides: Mapping[str, Any],
) -> tuple[list[Wanted], dict[Place, str]]:
    """The numbers that can be run, and of the others why not.

    dataset: one of the table's own, which stands for its columns; another one, which stands for all; "": each column's
             own, or what stands for it at classroom scale. Data that name their clients are run as such
    overrides: settings, recipe or method fields for all runs. UsageError for a wrong one
    """
    runs, why = [], {}
    small = scale == "classroom"
    for place, column in enumerate(table.columns):
        values = dict(column.values)
        own = dealt_by(column)
        on = column.dataset if dataset in ("", *table.datasets) or not column.dealt else dataset
        offline = column.dealt and small and not dataset
        reason = table.why if small else ""
        if reason or column.plain:
            reason = reason or PRINTED_BESIDE
        elif on not in (dataset, *DATASETS) and not offline:
            own_clients = f"{on} comes with clients of its own, which no other data set has"
            reason = f"the package has no data set {on}" if column.dealt else own_clients
        elif on != (dataset or on):
            reason = f"{dataset} alone was asked for"
        on = SMALLER.get(on, STANDARD if offline else on) if small else on
        for row in map(table.rows.__getitem__, column.numbers):
            own_reason = row.why_small if small and row.method else row.why
            if own_reason or reason:
                why[row.name, place] = own_reason or reason
                continue
            paper = {"preset": table.preset, **({} if scale == "paper" else {"share": scale})}
            at_scale = {**table.classroom, **row.classroom} if scale == "classroom" else paper
            settings = {
                **row.settings,
                **table.settings,
                **at_scale,
                **own,
                "dataset": on,
                **overrides,
            }
            label = measure = table.measured(row.name)
            label += f" {values[TARGET]:g}" if TARGET in values else ""
            read = {**COLUMNS, label: partial(MEASURES[measure], target=values.get(TARGET, 0))}
            runs.append(Wanted(row.name, place, label, point(row.method, settings, seeds, read)))
    return runs, why


def paper_point(table: PaperTable, run: Wanted, column: Column) -> Point:
    """The same number's run in the paper's own set-up. Data sets that the package does not have are replaced by the one
    that stands for them, as only settings are read from it."""
    row = table.rows[run.row]
    dataset = column.dataset if column.dataset in DATASETS else run.dataset
    settings = {
        **row.settings,
        **table.settings,
        "preset": table.preset,
        **dealt_by(column),
        "dataset": dataset,
    }
    return point(row.method, settings, run.point.seeds, {})


def dealt_by(column: Column) -> dict[str, Any]:
    """What a column sets for its runs; nothing where the clients come with the data."""
    if not column.dealt:
        return {}
    own = {name: value for name, value in column.values if name != TARGET}
    if "classes_per_client" in own:
        own["partition"] = "classes"
    return own


def point(
    method: str, settings: Mapping[str, Any], seeds: Sequence[int], columns: Mapping[str, Any]
) -> Point:
    """A run a seed. A value "recipe" stands for the epochs of local training. The point is named by all that was set
    for it, seed and device left out, so that it is the same for the same runs of two tables."""
    fields = {knob.name for knob in METHODS[method].fields()}
    own = {
        k: value
        for k, value in settings.items()
        if k in SHARED or k.removeprefix(f"{method}.") in fields
    }
    for name in [name for name, value in own.items() if value == "recipe"]:
        plain = Settings.make(**{key: value for key, value in own.items() if value != "recipe"})
        own[name] = make_plans(plain, [method])[0].recipe.epochs
    asked, usual = Settings.make(**own), Settings()
    changed = (
        name
        for name in sorted(list_setting_names() - OUTSIDE)
        if getattr(asked, name) != getattr(usual, name)
    )
    at = {name: getattr(asked, name) for name in ("dataset", "alpha", "clients", *changed)}
    return Point("tables", method, {**at, **dict(asked.overrides)}, asked, seeds, columns)


def checked(table: PaperTable, overrides: Mapping[str, Any]) -> None:
    """UsageError for an override that is nobody's, and for what a table's columns set."""
    fixed = {
        "seed",
        "seeds",
        "preset",
        "partition",
        *(key for column in table.columns if column.dealt for key, _ in column.values),
    }
    for name in overrides:
        if name in fixed:
            raise UsageError(
                f"{table.name} sets {name} itself, so it cannot be set here; leave it out."
            )
    make_plans(
        Settings.make(**overrides), [row.method for row in table.rows.values() if row.method]
    )


# ------------------------------------------------------------------------------------------- what is not the paper's
NUMBERS = {"rounds": "T", "temperature": "τ"}  # that a line under a table names, beside the rules


def departures(table: PaperTable, runs: Iterable[Wanted]) -> dict[str, dict[str, str]]:
    """{row: {knob: what it is here and in the paper's set-up}} of all rules, and of NUMBERS, that are others here. A
    rule is a knob that chooses among ways of doing something, and is no number, nor what the row is about."""
    rows: dict[str, dict[str, str]] = {}
    for run in {(run.row, run.dataset): run for run in runs}.values():
        method, setup = run.point.plan(run.point.seeds[0]).method, SETUPS[table.preset]
        rules = [
            k.name
            for k in method.fields()
            if k.options or isinstance(k.default, bool) or k.name in NUMBERS
        ]
        about = {name.split(".")[-1]: value for name, value in table.rows[run.row].settings.items()}
        there = setup.apply_rows(run.dataset, run.point.settings.alpha, ()).select_lines(
            rules, method.info.name
        )
        for name, value in drop_sources(there).items():
            if getattr(method, name) not in (value, about.get(name, value)):
                here = format_value(getattr(method, name))
                in_paper = format_value(value)
                text = f"{NUMBERS.get(name, name)} = {here} (paper: {in_paper})"
                rows.setdefault(run.row, {})[name] = text
    return rows


# -------------------------------------------------------------------------------------------------- what is stored
def stored_runs(
    table: PaperTable, seeds: Sequence[int] = range(SEEDS), device: str = "cpu"
) -> tuple[list[Wanted], dict[Place, str]]:
    """What is stored for a table, and why no more is; see `wanted`."""
    runs, why = wanted(table, "classroom", "", seeds, {"device": device})
    if table.core_hours:
        why |= {(run.row, run.place): describe_hours(table) for run in runs}
        runs = []
    return runs, why


def describe_hours(table: PaperTable) -> str:
    """Why the runs of a table that takes many hours are not stored, and the command that makes them."""
    return (
        f"ten seeds of its runs take about {table.core_hours:g} hours on one core, which was not spent; "
        f"fl.reproduce({table.name!r}) makes them, and goes on where it was stopped"
    )


def stored_points(rows: object = (), large: bool = False) -> list[Point]:
    """All points that are stored: of the small data sets, or of the `large` ones, on a card if there is one."""
    device = "auto" if large else "cpu"
    runs = (
        run for table in map(paper_table, TABLES) for run in stored_runs(table, device=device)[0]
    )
    return points_of(run for run in runs if (run.dataset in SMALLER.values()) == large)


def points_of(runs: Iterable[Wanted]) -> list[Point]:
    """Each point of `runs` once, with all that is read off it."""
    points: dict[str, Point] = {}
    for run in runs:
        known = points.get(run.point.key, run.point)
        points[known.key] = dataclasses.replace(
            known, columns={**known.columns, **run.point.columns}
        )
    return list(points.values())
