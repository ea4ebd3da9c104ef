"""A table of a paper beside the same runs made here: `reproduce` runs it, or shows its stored results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ...data import load
from ...errors import RunError, parsed, whole
from ..engine import bar, row_of, writable
from ..experiment import Event
from ..grid import Cell, seeds_of
from ..outcome import Outcome
from ..results import Results, aligned, html_table, write
from ..rows import Row, computed, key_of, read
from ..statistics import Band, band
from . import words
from .cells import SEEDS, STANDARD, Wanted, checked, points_of, scale_of, stored_runs, wanted
from .published import TABLES, TRIED, VERDICTS, Ordering, PaperTable, Place, Values, counts, orderings, paper_table

FILE = Path(__file__).parents[1] / "declared" / "tables.json"
COUNTS = ("numbers to target",)  # measures that are no shares


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
    values: Values
    why: Mapping[Place, str]
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
        return words.listing(self)

    def plot(self) -> Any:
        """The picture of all orderings: how far ahead there and here."""
        import fedlab_nb

        return fedlab_nb.plot_orderings(self)

    def __repr__(self) -> str:
        return words.text(self)

    def _repr_html_(self) -> str:
        return words.html(self)


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
    """Run a table of a paper, and show its published numbers beside ours.

    name:    "fens:1", "fedet:2", "fedet:3", "coboosting:1", "coboosting:2", "fusefl:2" or "fedlpa:1"
    dataset: one of the table's data sets, for its own columns. Any other name or file is used for all columns. At
             classroom scale the default is the digits, for all columns
    scale:   "classroom"; "paper" takes the paper's set-up and data sets (this needs a GPU and days); a number below 1
             takes that set-up on this share of the training samples
    seeds:   how many, or which. The default is ten at classroom scale, else as many as in the paper (3)
    stored:  show the results that came with the package; nothing is run
    workers: processes on this machine;   out: a folder for `results.csv`, `results.json` and `table.txt`
    overrides: settings, recipe and method fields for all runs, such as `model="cnn"` or `epochs=20`

    Finished runs are stored, so a call that was stopped goes on later. Raises UsageError for wrong input, and
    RunError for a data set that cannot be loaded.
    """
    table = paper_table(name)
    if stored:
        about, made = read(FILE)
        label = f"stored results of {about['date']}, version {about['version']}"
        seeds = tuple(made[0]["seeds"])
        return beside(table, *stored_runs(table), made, scale="classroom", dataset=STANDARD, seeds=seeds, label=label)
    scale, dataset, count = scale_of(scale), str(dataset), whole("workers", parsed(workers), 1, 1024)
    checked(table, overrides)
    usual = SEEDS if scale == "classroom" else max(table.runs, 1)
    chosen = seeds_of(usual if seeds is None else seeds, 0)
    runs, why = wanted(table, scale, dataset, chosen, overrides)
    if out is not None:
        writable(Path(out))
    datasets = list(dict.fromkeys(run.dataset for run in runs))
    for own in datasets:
        load(own)
    points = points_of(runs)
    rows: list[dict[str, Any]] = []
    with bar(len(points) * len(chosen), progress) as shown:

        def finished(cell: Cell, outcome: Outcome | None, error: str) -> None:
            rows.append(row_of(cell, outcome, error))
            shown.update()

        made = [row for _, row in computed(points, workers=count, cache=cache, watch=watch, finished=finished)]
    on = datasets[0] if len(datasets) == 1 else ""
    result = beside(table, runs, why, made, scale=scale, dataset=on, seeds=chosen, rows=rows)
    errors = [row["error"] for row in rows if row["error"]]
    if not result.values and errors:
        raise RunError(errors[0])
    if out is not None:
        result.save(out)
    return result


def beside(
    table: PaperTable, runs: Sequence[Wanted], why: Mapping[Place, str], made: Iterable[Row], **about: Any
) -> Reproduction:
    """The table beside the rows that were `made` of its runs. `why`: what else was not run; `about`: more fields."""
    rows = {key_of(row): row for row in made}
    values: dict[Place, dict[int, float]] = {}
    reasons = dict(why)
    for run in runs:
        at, row = (run.row, run.place), rows.get(run.point.key, {})
        if run.label in row:
            of = {seed: v for seed, v in zip(row["seeds"], row[run.label], strict=True) if v is not None}
            values |= {at: of} if of else {}
        if at not in values or "failed" in row:
            reasons[at] = row.get("failed", "the stored results lack it")
    return Reproduction(table, values=values, why=reasons, **about)


@dataclass(frozen=True)
class PaperTables:
    """The stored reproductions of all tables."""

    tables: Sequence[Reproduction]

    @property
    def grid(self) -> list[list[str]]:
        """A row a table: how many orderings it has, and how many of each verdict; of the clear ones the same."""
        rows = [["table", "paper", "orderings", *VERDICTS, "clear in the paper", "of these agree", "disagree"]]
        for r in self.tables:
            clear = [o.verdict for o in r.orderings if o.clear_there and o.verdict in TRIED]
            own = ["not known", "", ""]
            if any(o.clear_there is not None for o in r.orderings):
                own = [str(len(clear)), str(clear.count("agrees")), str(clear.count("disagrees"))]
            title = f"{r.table.paper}, Table {r.table.table}"
            rows.append([r.table.name, title, *map(str, [len(r.orderings), *r.counts.values()]), *own])
        return rows

    @property
    def sentence(self) -> str:
        tried = [o for r in self.tables for o in r.orderings if o.verdict in TRIED]
        clear = [o for o in tried if o.clear_there]
        every = sum(len(r.orderings) for r in self.tables)
        return (
            f"The {len(self.tables)} tables have {every} orderings. {len(tried)} were tried: {words.tally(tried)}. "
            f"{len(clear)} of these are clear by the paper's own spread: {words.tally(clear)}."
        )

    def __repr__(self) -> str:
        return f"{aligned(self.grid)}\n\n{self.sentence}"

    def _repr_html_(self) -> str:
        return f"{html_table(self.grid)}<p>{self.sentence}</p>"


def paper_tables() -> PaperTables:
    """Show all tables with the results that came with the package. Nothing is run."""
    return PaperTables([reproduce(name, stored=True) for name in TABLES])
