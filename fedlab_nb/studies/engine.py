"""Runs a study cell by cell. Clients are trained once for all methods of a federation, and every
finished cell is stored.

A study that was stopped continues where it was, since finished cells are in the store. A cell that
fails becomes a row with the reason, and the others go on.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from .. import __version__
from ..errors import UsageError, check_whole_number, format_error_on_one_line, parse_if_number
from ..files import check_replaceable, expand_path
from ..value_types import SettingsByName, SettingValue
from .code_version import read_torch_version
from .experiment import Event, iterate_events_of_plans
from .grid import Study, StudyCell, StudyCellResult
from .outcome import QUALITY, Outcome
from .results import COLUMNS, FILES, OTHER, Results, ResultsRow

if TYPE_CHECKING:
    from dask.distributed import Client

MEASURED = (
    "accuracy",
    "bytes_up",
    "bytes_down",
    "seconds_total",
    "accuracy_validation",
    "validation_on",
    "parameters",
)
SAVE_INTERVAL = 5.0  # seconds between two writings of the results' files, at least


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
    client: Client | None = None,
    columns: Sequence[str] = (),
    **settings: SettingValue,
) -> Results:
    """Run every cell of a grid, and return the `Results`.

    methods:  names, a declared `Study`, or the path of a TOML file that declares one
    seeds:    a number of seeds, or a list of them
    settings: any setting, recipe or method field. A list makes an axis (`alpha=[0.05, 0.1]`, `rounds=[10, 50]`)
    out:      folder for results.csv, .json and .parquet, which grow as cells are finished
    force:    replace files in `out` that the package did not write
    progress: whether a bar on standard error shows the time left; by default only on a terminal
    columns:  the columns of results.csv; by default all
    workers, scheduler, client: processes on this machine, or a Dask cluster; see `cluster`

    Everything is checked before anything is computed. UsageError for a wrong study or a folder that
    cannot be written. Ctrl-C raises KeyboardInterrupt after the finished cells are written. The
    same call then goes on from there.
    """
    grid = make_study(methods, seeds, settings)
    cells = grid.cells()
    if out is not None:
        make_and_check_results_folder(out, FILES, force=force)
    workers = check_whole_number("workers", parse_if_number(workers), 1, 1024)
    rows: dict[int, ResultsRow] = {}  # by the id of their cell

    def make_results() -> Results:
        return Results([rows[id(cell)] for cell in cells if id(cell) in rows], grid.axes)

    last_saved = time.monotonic()
    try:
        for cell, outcome, error in run_cells(
            cells,
            cache=cache,
            progress=progress,
            watch=watch,
            should_train_together=True,
            workers=workers,
            scheduler=scheduler,
            client=client,
        ):
            rows[id(cell)] = make_results_row_of_cell(cell, outcome, error)
            if out is not None and time.monotonic() - last_saved > SAVE_INTERVAL:
                make_results().save(out, parquet=False, columns=columns, force=force)
                last_saved = time.monotonic()
    finally:
        # A study that could not begin leaves earlier results as they are.
        if out is not None and rows:
            make_results().save(out, columns=columns, force=force)
    return make_results()


def sweep(
    methods: Sequence[str],
    alphas: Sequence[float] | None = None,
    clients: Sequence[int] | None = None,
    **settings: SettingValue,
) -> Results:
    """Run every method at every (alpha, clients, seed). This is the short form of a study, with its
    other arguments.

    You may leave out `alphas` and `clients`. They are then as in a run, and data that name their
    own clients keep these clients. The file `results.csv` in the folder `out` has the columns
    COLUMNS and one row for each cell.
    """
    axes: SettingsByName = {}
    if alphas is not None:
        axes["alpha"] = list(alphas)
    if clients is not None:
        axes["clients"] = list(clients)
    return study(methods, columns=COLUMNS, **settings, **axes)


def make_study(
    methods: str | Sequence[str] | Study | Path,
    seeds: int | Sequence[int],
    settings: Mapping[str, SettingValue],
) -> Study:
    """Make the declared study for the arguments of `study`."""
    if isinstance(methods, Study):
        return methods
    if isinstance(methods, Path) or (isinstance(methods, str) and methods.endswith(".toml")):
        if settings:
            raise UsageError(
                f"A study from a file takes no settings beside it, but {', '.join(settings)} was "
                "given."
            )
        return Study.load(methods)
    return Study.declare(methods, seeds=seeds, **settings)


def run_cells(
    cells: Sequence[StudyCell],
    *,
    cache: bool = True,
    progress: bool | None = False,
    watch: Callable[[Event], None] = lambda event: None,
    should_train_together: bool = False,
    workers: int = 1,
    scheduler: str | None = None,
    client: Client | None = None,
) -> Iterator[StudyCellResult]:
    """Run all cells, one after the other in this process, or on workers; yields each result.

    watch: is called with every event; never called if there are workers
    should_train_together: see `iterate_events_of_plans`; leave it out if a run must give the same digits again
    workers, scheduler, client: as in `study`
    """
    if workers > 1 or scheduler is not None or client is not None:
        from .cluster import start_or_connect_workers_and_run_cells

        results = start_or_connect_workers_and_run_cells(
            cells, worker_count=workers, use_store=cache, scheduler_address=scheduler, client=client
        )
    else:
        results = run_cells_in_this_process(cells, cache, watch, should_train_together)
    if progress is None:
        progress = sys.stderr.isatty()
    yield from tqdm(results, total=len(cells), unit="cell", disable=not progress, leave=False)


def run_cells_in_this_process(
    cells: Sequence[StudyCell],
    use_store: bool,
    watch: Callable[[Event], None],
    should_train_together: bool,
) -> Iterator[StudyCellResult]:
    """Run all cells, one after the other, in this process."""
    remaining = iter(cells)
    for event in iterate_events_of_plans(
        [cell.plan for cell in cells], use_store, should_train_together
    ):
        watch(event)
        if event.outcome is not None or event.error is not None:
            yield StudyCellResult(
                next(remaining), event.outcome, format_error_on_one_line(event.error)
            )


def make_results_row_of_cell(cell: StudyCell, outcome: Outcome | None, error: str) -> ResultsRow:
    """Make the tidy row of a cell: its results, its axes, all settings, and the versions it was
    made with.
    """
    plan = cell.plan
    settings = {name: v for name, v in vars(plan.settings).items() if name != "overrides"}
    # COLUMNS come first, in their order.
    row: ResultsRow = dict.fromkeys(COLUMNS)
    for name in COLUMNS:
        if name in settings:
            row[name] = settings[name]
    row["method"] = plan.method_name
    if outcome is not None:
        for name in (*MEASURED, *QUALITY):
            row[name] = getattr(outcome, name)
        row["seconds_total"] = round(outcome.seconds_total, 4)
        for rule, accuracy in outcome.report.get_accuracies_under_other_rules().items():
            row[f"{OTHER}{rule}"] = accuracy
        if outcome.unseen:
            row["accuracy_unseen"] = outcome.accuracy_unseen
    row |= settings
    row |= cell.values
    row["model"] = plan.client_model
    row["recipe"] = json.dumps(dataclasses.asdict(plan.recipe), sort_keys=True)
    options = dataclasses.asdict(plan.method)  # type: ignore[call-overload]
    row["options"] = json.dumps(options, sort_keys=True)
    row["version"] = __version__
    row["torch"] = read_torch_version()
    row["error"] = error
    return row


def make_and_check_results_folder(
    folder: str | Path, protected_file_names: Sequence[str] = (), *, force: bool = False
) -> None:
    """Make `folder`. UsageError if nothing can be written into it.

    UsageError also if it has files of somebody else's with these names, unless `force`.
    """
    folder = expand_path(folder)
    check_replaceable([folder / name for name in protected_file_names], force=force)
    probe = folder / f".probe-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UsageError(
            f"The folder {folder} cannot be written to: {error.strerror}; choose another one."
        ) from None
