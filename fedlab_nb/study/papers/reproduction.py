"""A table of a paper beside the same runs made here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..results import Results, write
from ..statistics import Band, band
from .measures import COUNTS
from .orderings import Ordering, counts, orderings
from .published import PaperTable


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
