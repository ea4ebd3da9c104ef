"""The runs of a table carried out, each once, and the numbers that are read off them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...data import load
from ..engine import bar, carried_out
from ..experiment import Event
from ..grid import Cell
from ..tasks import Done
from .cells import Wanted, cell_name

SEEDS = 10  # at classroom scale
Made = dict[tuple[str, int], Done]  # {(cell's name, seed): cell, outcome, error}


def carry_out(
    runs: Sequence[Wanted], *, workers: int, cache: bool, progress: bool | None, watch: Callable[[Event], None]
) -> Made:
    """Every run once, also where several numbers are read off it, federation by federation. RunError, before any, where
    a data set cannot be had."""
    for dataset in dict.fromkeys(run.dataset for run in runs):
        load(dataset)
    federations: dict[str, dict[str, tuple[Cell, ...]]] = {}
    for run in runs:
        federations.setdefault(run.federation, {})[run.name] = run.cells
    groups = [[list(row) for row in zip(*of.values(), strict=True)] for of in federations.values()]
    made: Made = {}
    with bar(sum(len(row) for group in groups for row in group), progress) as shown:
        for cell, outcome, error in carried_out(groups, workers=workers, cache=cache, watch=watch):
            made[cell_name(cell), cell.seed] = cell, outcome, error
            shown.update()
    return made


def numbers(
    runs: Sequence[Wanted], made: Made
) -> tuple[dict[tuple[str, int], dict[int, float]], dict[tuple[str, int], str]]:
    """What is read off the runs, and why some gave nothing; both by (row, column's place)."""
    values: dict[tuple[str, int], dict[int, float]] = {}
    failed: dict[tuple[str, int], str] = {}
    for run in runs:
        for cell in run.cells:
            _, outcome, error = made[run.name, cell.seed]
            if outcome is None:
                failed[run.row, run.place] = error
            else:
                values.setdefault((run.row, run.place), {})[cell.seed] = run.measure(outcome)
    return values, failed
