"""A table of a paper beside the same runs made here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ...data import load
from ...errors import RunError, parsed, whole
from ..engine import bar, carried_out, row_of, writable
from ..experiment import Event
from ..grid import Cell, seeds_of
from ..results import Results, write
from ..statistics import Band, band
from ..tasks import Done
from .cells import Wanted, cell_name, checked, scale_of, wanted
from .measures import COUNTS
from .orderings import Ordering, counts, orderings
from .published import PaperTable, paper_table

SEEDS = 10  # at classroom scale
Made = dict[tuple[str, int], Done]  # {(cell's name, seed): cell, outcome, error}


@dataclass(frozen=True)
class Reproduction:
    """What was published, and what came out here.

    scale: "classroom", "paper" or a share of the paper's samples;   dataset: what every run was on, "" where each
    column was run on its own;   values: `{(row, column's place): {seed: value}}`, a share for an accuracy, else a count
    why: `{(row, column's place): why it was not run}`;   rows: the runs as a study's rows (of stored results: none)
    label: where the runs are from
    """

    table: PaperTable
    scale: str | float
    dataset: str
    seeds: tuple[int, ...]
    values: Mapping[tuple[str, int], Mapping[int, float]]
    why: Mapping[tuple[str, int], str]
    rows: Sequence[Mapping[str, Any]] = ()
    label: str = "run here"

    @cached_property
    def orderings(self) -> tuple[Ordering, ...]:
        """Every pair of methods within a column, with its verdict."""
        return tuple(orderings(self.table, self.values, self.why))

    @property
    def counts(self) -> dict[str, int]:
        """How many orderings agree, disagree, and so on."""
        return counts(self.orderings)

    def ours(self, row: str, place: int) -> Band | None:
        """Mean and band of what was run for a row in the column at `place`; None if nothing was."""
        values = self.values.get((row, place))
        return band(values) if values else None

    @property
    def is_count(self) -> bool:
        """Whether the values are no shares."""
        return self.table.measure in COUNTS

    @property
    def results(self) -> Results:
        """The runs as a study's results, with one row a run."""
        return Results(self.rows)

    def save(self, folder: str | Path) -> Path:
        """`results.csv` and `results.json` of the runs, and `table.txt`: what is printed."""
        place = self.results.save(folder, parquet=False)
        write(place / "table.txt", f"{self}\n\n{self.listing()}\n")
        return place

    def listing(self) -> str:
        """Every ordering with its verdict, a line each."""
        from .words import listing

        return listing(self)

    def plot(self) -> Any:
        """The picture of all orderings: how far ahead there and here."""
        import fedlab_nb

        return fedlab_nb.plot_orderings(self)

    def __repr__(self) -> str:
        from .words import text

        return text(self)

    def _repr_html_(self) -> str:
        from .words import html

        return html(self)


def reproduce(
    name: str,
    *,
    dataset: str | Path = "",
    scale: str | float = "classroom",
    seeds: int | Sequence[int] | None = None,
    stored: bool = False,
    workers: int = 1,
    out: str | Path | None = None,
    cache: bool = True,
    progress: bool | None = None,
    watch: Callable[[Event], None] = lambda event: None,
    **overrides: Any,
) -> Reproduction:
    """Run a table of a paper, and show what came out beside what was published.

    name:    "fens:1", "fedet:2", "fedet:3", "coboosting:1", "coboosting:2", "fusefl:2" or "fedlpa:1"
    dataset: default the digits at classroom scale, which stand for all of the table's data sets; one of the table's own
             stands for its own columns; a file or another name stands for all
    scale:   "classroom"; "paper": the paper's set-up on its data sets, which takes a GPU and days; a number below 1:
             that set-up on this share of the training samples
    seeds:   how many, or which; default ten at classroom scale, else as many as the paper's (3)
    stored:  show the results that came with the package; nothing is run
    workers: processes on this machine;   out: a folder for `results.csv`, `results.json` and `table.txt`
    overrides: settings, recipe and method fields for all runs, such as `model="cnn"` or `epochs=20`

    What was run is remembered: a call that was stopped goes on. UsageError for wrong input; RunError where a data set
    cannot be had.
    """
    table = paper_table(name)
    if stored:
        from .stored import reproduction

        return reproduction(table)
    scale, dataset, count = scale_of(scale), str(dataset), whole("workers", parsed(workers), 1, 1024)
    checked(table, overrides)
    chosen = seed_list(seeds, SEEDS if scale == "classroom" else max(table.runs, 1))
    runs, why = wanted(table, scale, dataset, chosen, overrides)
    if out is not None:
        writable(Path(out))
    made = carry_out(runs, workers=count, cache=cache, progress=progress, watch=watch)
    on = list(dict.fromkeys(run.dataset for run in runs))
    values, failed = numbers(runs, made)
    if not values and failed:
        raise RunError(next(iter(failed.values())))
    rows = [row_of(*of) for of in made.values()]
    result = Reproduction(table, scale, on[0] if len(on) == 1 else "", chosen, values, {**why, **failed}, rows)
    if out is not None:
        result.save(out)
    return result


def seed_list(seeds: int | Sequence[int] | None, usual: int) -> tuple[int, ...]:
    """The seeds that are asked for, `usual` many from 0 on if none are."""
    return seeds_of(usual if seeds is None else seeds, 0)


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
