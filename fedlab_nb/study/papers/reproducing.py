"""`reproduce`: a table of a paper is run, or its stored results are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ...errors import RunError, parsed, whole
from ..engine import row_of, writable
from ..experiment import Event
from ..grid import seeds_of
from .cells import checked, scale_of, wanted
from .published import paper_table
from .reproduction import Reproduction
from .runs import SEEDS, carry_out, numbers
from .stored import reproduction


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
