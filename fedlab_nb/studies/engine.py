"""Run a study: cell by cell, clients trained once for all methods of a federation, everything finished kept.

A study that was stopped, by Ctrl-C or by force, goes on where it was: a finished cell is in the store. A cell that
fails is a row with its reason, and the rest goes on.
"""

import dataclasses
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from .. import __version__
from ..errors import UsageError, demand, parsed, reason, whole
from ..files import check_replaceable, expand_path
from .code_version import torch_version
from .experiment import Event, events
from .grid import Cell, Done, Study
from .outcome import QUALITY, Outcome
from .results import COLUMNS, FILES, OTHER, Results

MEASURED = (
    "accuracy",
    "bytes_up",
    "bytes_down",
    "seconds_total",
    "accuracy_validation",
    "validation_on",
    "parameters",
)
SAVE = 5.0  # seconds between two writings of the results' files, at least


def study(
    methods: str | Sequence[str] | Study | Path,
    *,
    seeds: int | Sequence[int] = 1,
    out: str | Path | None = None,
    force: bool = False,
    cache: bool = True,
    progress: bool | None = None,
    watch: Callable[[Event], None] = lambda event: None,
    workers: int = 1,
    scheduler: str | None = None,
    client: Any = None,
    columns: Sequence[str] = (),
    **settings: Any,
) -> Results:
    """Run every cell of a grid, and return the `Results`.

    methods:  names, a declared `Study`, or the path of a TOML file that declares one
    seeds:    how many, or which
    settings: any setting, recipe or method field. A list makes an axis (`alpha=[0.05, 0.1]`, `rounds=[10, 50]`)
    out:      folder for results.csv, .json and .parquet, which grow as cells are finished
    force:    replace files in `out` that the package did not write
    progress: whether a bar on standard error shows the time left; by default only on a terminal
    columns:  the columns of results.csv; by default all
    workers, scheduler, client: processes on this machine, or a Dask cluster; see `cluster`

    Everything is checked before anything is computed. UsageError for a wrong study or a folder that cannot be written.
    Ctrl-C raises KeyboardInterrupt after the finished cells are written. The same call then goes on from there.
    """
    plan = declared(methods, seeds, settings)
    cells = plan.cells()
    if out is not None:
        check_folder(out, FILES, force=force)
    ways = {
        "workers": whole("workers", parsed(workers), 1, 1024),
        "scheduler": scheduler,
        "client": client,
    }
    rows: dict[int, dict[str, Any]] = {}  # by cell

    def results() -> Results:
        return Results([rows[id(cell)] for cell in cells if id(cell) in rows], plan.axes)

    saved = time.monotonic()
    try:
        for cell, outcome, error in carried_out(
            cells, cache=cache, progress=progress, watch=watch, together=True, **ways
        ):
            rows[id(cell)] = row_of(cell, outcome, error)
            if out is not None and time.monotonic() - saved > SAVE:
                results().save(out, parquet=False, columns=columns, force=force)
                saved = time.monotonic()
    finally:
        if (
            out is not None and rows
        ):  # a study that could not begin leaves earlier results as they are
            results().save(out, columns=columns, force=force)
    return results()


def sweep(
    methods: Sequence[str],
    alphas: Sequence[float] | None = None,
    clients: Sequence[int] | None = None,
    **settings: Any,
) -> Results:
    """Run every method at every (alpha, clients, seed). This is the short form of a study, with its other arguments.

    You may leave out `alphas` and `clients`. They are then as in a run, and data that name their own clients keep these
    clients. The file `results.csv` in the folder `out` has the columns COLUMNS and one row for each cell.
    """
    named = {"alpha": alphas, "clients": clients}
    axes: dict[str, Any] = {name: list(axis) for name, axis in named.items() if axis is not None}
    return study(methods, columns=COLUMNS, **settings, **axes)


def declared(methods: Any, seeds: int | Sequence[int], settings: Mapping[str, Any]) -> Study:
    """The study that `study` was called with."""
    if isinstance(methods, Study):
        return methods
    if isinstance(methods, Path) or (isinstance(methods, str) and methods.endswith(".toml")):
        demand(
            not settings,
            f"A study from a file takes no settings beside it, but {', '.join(settings)} was given.",
        )
        return Study.load(methods)
    return Study.declare(methods, seeds=seeds, **settings)


def carried_out(
    cells: Sequence[Cell],
    *,
    cache: bool = True,
    progress: bool | None = False,
    watch: Callable[[Event], None] = lambda event: None,
    workers: int = 1,
    together: bool = False,
    **ways: Any,
) -> Iterator[Done]:
    """All cells, one after the other in this process, or on workers as `study` says (nothing is watched then).
    `together`: see `events`; runs that are to be made again to the digit go without.
    """
    if workers > 1 or any(way is not None for way in ways.values()):
        from .cluster import distributed

        done = distributed(cells, workers=workers, cache=cache, **ways)
    else:
        done = here(cells, cache, watch, together)
    hidden = not (sys.stderr.isatty() if progress is None else progress)
    yield from tqdm(done, total=len(cells), unit="cell", disable=hidden, leave=False)


def here(
    cells: Sequence[Cell], cache: bool, watch: Callable[[Event], None], together: bool
) -> Iterator[Done]:
    """All cells in this process."""
    waiting = iter(cells)
    for event in events([cell.plan for cell in cells], cache, together):
        watch(event)
        if event.outcome is not None or event.error is not None:
            yield next(waiting), event.outcome, reason(event.error)


def row_of(cell: Cell, outcome: Outcome | None, error: str) -> dict[str, Any]:
    """The tidy row of a cell: what came out, its axes, its whole setting, and what it was made with."""
    setting = {k: v for k, v in vars(cell.plan.settings).items() if k != "overrides"}
    blank = dict.fromkeys(COLUMNS)
    row = {**blank, **{k: v for k, v in setting.items() if k in blank}, "method": cell.plan.name}
    if outcome is not None:
        row |= {name: getattr(outcome, name) for name in (*MEASURED, *QUALITY)}
        row |= {"seconds_total": round(outcome.seconds_total, 4)}
        row |= {f"{OTHER}{words}": share for words, share in outcome.report.others().items()}
        row |= {"accuracy_unseen": outcome.accuracy_unseen} if outcome.unseen else {}
    row |= {**setting, **cell.values, "model": cell.plan.model}
    row["recipe"] = json.dumps(dataclasses.asdict(cell.plan.recipe), sort_keys=True)
    row["options"] = json.dumps(dataclasses.asdict(cell.plan.method), sort_keys=True)  # type: ignore[call-overload]
    return row | {"version": __version__, "torch": torch_version(), "error": error}


def check_folder(folder: str | Path, names: Sequence[str] = (), *, force: bool = False) -> None:
    """UsageError if nothing can be written into `folder`, which is made, or if it has files of somebody else's with
    these `names` (unless `force`)."""
    folder = expand_path(folder)
    check_replaceable([folder / name for name in names], force=force)
    probe = folder / f".probe-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UsageError(
            f"The folder {folder} cannot be written to: {error.strerror}; choose another one."
        ) from None
