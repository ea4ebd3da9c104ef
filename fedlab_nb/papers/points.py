"""Points and their rows: which runs a declared study includes, whether their stored rows are current,
and computing those that are not.

A point is one method at one setting; its stored row has the values of all its seeds. A row is current
as long as its data sets are the same and the options that it has keep their values. An option that was
added later does not matter: it had its default when the row was made. A row also says on which
processor, and with which versions of PyTorch and NumPy it was made (`on`), since the same runs differ
by rounding elsewhere. `DeclaredStudy` is a study: its points, its stored rows, and the function that
computes what is missing.
"""

from __future__ import annotations

import json
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

from .. import __version__
from ..data import DATASETS, describe
from ..files import write_file
from ..studies.code_version import read_torch_version
from ..studies.engine import run_cells
from ..studies.grid import StudyCell
from ..studies.outcome import Outcome
from ..studies.settings import MethodRunPlan, Settings, make_plans
from ..studies.stored_rows import StoredRow, make_json_key_of_row, read_stored_rows

COMMAND = "python -m fedlab_nb.papers.declared"
ValueByRowColumn = dict[str, Any]  # {column of a row: its value}
ErrorTextByPointKey = dict[str, str]  # {key of a point: why it failed}
# {column of a row: function that reads its value from an outcome}
ReaderByColumn = Mapping[str, Callable[[Outcome], Any]]
RunFinishedCallback = Callable[[StudyCell, Outcome | None, str], None]
COLUMNS: ReaderByColumn = {
    "accuracy": lambda outcome: outcome.accuracy,
    "bytes": lambda outcome: outcome.bytes_up + outcome.bytes_down,
}


@dataclass(frozen=True)
class MethodSettingPoint:
    """The runs of a row, which differ in their seed alone.

    runs, at: the name and the settings by which its study identifies it
    settings: those of one of the runs
    columns: the row's columns, and how each is read from a run
    watched: the options that decide whether the row is current; None: all of them
    """

    runs: str
    method: str
    at: Mapping[str, Any]
    settings: Settings
    seeds: Sequence[int]
    columns: ReaderByColumn = field(default_factory=dict)
    watched: Mapping[str, Any] | None = None

    def make_plan_of_seed(self, seed: int) -> MethodRunPlan:
        """Make the plan of the run of one seed."""
        (plan,) = make_plans(replace(self.settings, seed=seed), [self.method])
        return plan

    @cached_property
    def cells(self) -> list[StudyCell]:
        """The runs, one for each seed."""
        return [StudyCell(self.make_plan_of_seed(seed), self.at) for seed in self.seeds]

    @cached_property
    def key(self) -> str:
        """A key that no other row of its study has."""
        return make_json_key_of_row({"runs": self.runs, "method": self.method, "at": self.at})

    @cached_property
    def current_option_values(self) -> Mapping[str, Any]:
        """The options that a row of this point is made with today: model and recipe of the clients, and the
        method's knobs."""
        if self.watched is not None:
            return self.watched
        plan = self.make_plan_of_seed(self.seeds[0])
        options: dict[str, Any] = {"model": plan.client_model}
        for name, value in asdict(plan.recipe).items():
            options[f"recipe.{name}"] = value
        for name, value in asdict(plan.method).items():  # type: ignore[call-overload]
            options[f"{plan.method_name}.{name}"] = value
        return json.loads(json.dumps(options))  # tuples become lists, as in a stored row

    @cached_property
    def digest_of_datasets(self) -> str:
        """Digests of the data sets that the runs read, joined by "+"; without those whose files are not here."""
        digests = [self.settings.describe_dataset().digest]
        for _, value in self.settings.overrides:
            if value in DATASETS:  # such as Fed-ET's public images
                digests.append(describe(value).digest)
        return "+".join(digest for digest in digests if digest)

    def is_current_row(self, row: StoredRow | None) -> bool:
        """Whether a stored row is complete, and was made with the present data and the present values of
        the options that it has."""
        if row is None or row["seeds"] != list(self.seeds):
            return False
        if row.get("data", self.digest_of_datasets) != self.digest_of_datasets:
            return False
        is_whole = "failed" in row or self.columns.keys() <= row.keys()
        return is_whole and row["made"].items() <= self.current_option_values.items()


def compute_point_rows(
    points_with_distinct_keys: Sequence[MethodSettingPoint],
    decimals_or_none: int | None = None,
    on_run_finished: RunFinishedCallback | None = None,
    **run_options: Any,
) -> Iterator[tuple[MethodSettingPoint, StoredRow]]:
    """Compute the runs of points; yields each point with its row as soon as all its runs have ended.

    A run that failed has None in each column, and the row has the error.

    decimals_or_none: to which numbers that are not whole are rounded; None: not at all
    on_run_finished: called with each run's cell, its outcome (None if it failed) and its error ("" if not)
    run_options: workers, cache and so on, as `run_cells` takes them
    """
    point_by_cell_id: dict[int, MethodSettingPoint] = {}
    errors: dict[str, list[str]] = {}
    values: dict[str, dict[int, ValueByRowColumn]] = {}
    for point in points_with_distinct_keys:
        errors[point.key] = []
        values[point.key] = {}
        for cell in point.cells:
            point_by_cell_id[id(cell)] = point
    cells = list_cells_grouped_by_trained_clients(points_with_distinct_keys)
    for cell, outcome, error in run_cells(cells, **run_options):
        if on_run_finished is not None:
            on_run_finished(cell, outcome, error)
        point = point_by_cell_id[id(cell)]
        if error:
            errors[point.key].append(error)
        values[point.key][cell.seed] = read_row_columns_of_run(point, outcome, decimals_or_none)
        if len(values[point.key]) == len(point.seeds):
            yield point, make_stored_row(point, values[point.key], errors[point.key])


def read_row_columns_of_run(
    point: MethodSettingPoint,
    outcome_or_none_if_failed: Outcome | None,
    decimals_or_none: int | None,
) -> ValueByRowColumn:
    """Read the columns of a row from one run; None in each if it failed."""
    if outcome_or_none_if_failed is None:
        return dict.fromkeys(point.columns)
    values = {}
    for name, read in point.columns.items():
        values[name] = round_number_unless_whole(read(outcome_or_none_if_failed), decimals_or_none)
    return values


def make_stored_row(
    point: MethodSettingPoint,
    values_by_seed_and_column: Mapping[int, Mapping[str, Any]],
    error_messages: Sequence[str],
) -> StoredRow:
    """Make the row of a point.

    error_messages: of its runs, in the order in which they ended
    """
    row: StoredRow = {
        "runs": point.runs,
        "method": point.method,
        "at": dict(point.at),
        "seeds": [*point.seeds],
        "made": dict(point.current_option_values),
        "data": point.digest_of_datasets,
        "on": describe_processor_and_library_versions(),
    }
    for name in point.columns:
        row[name] = [values_by_seed_and_column[seed][name] for seed in point.seeds]
    if error_messages:
        row["failed"] = error_messages[0]
    return row


def list_cells_grouped_by_trained_clients(points: Iterable[MethodSettingPoint]) -> list[StudyCell]:
    """List the runs of all points; runs that begin with the same trained clients come one after another."""
    groups: dict[str, list[StudyCell]] = {}
    for point in points:
        for cell in point.cells:
            key = cell.plan.hash_settings_of_local_training()
            groups.setdefault(key, []).append(cell)
    cells = []
    for group in groups.values():
        cells += group
    return cells


def get_processor_or_gpu_name(device: str) -> str:
    """Name a device: "cpu", or the card's own name."""
    if device == "cpu":
        return device
    import torch

    return torch.cuda.get_device_name(device)


@cache
def describe_processor_and_library_versions() -> str:
    """Name the processor and the libraries on which the rounding of a run depends: "AMD EPYC; torch 2.14.1, numpy
    2.4.6"."""
    numpy_version = metadata.version("numpy")
    return f"{read_processor_name()}; torch {read_torch_version()}, numpy {numpy_version}"


def count_rows_by_machine_description(rows: Iterable[StoredRow]) -> dict[str, int]:
    """Count the rows that each machine has made: {`describe_processor_and_library_versions` there: number of rows}."""
    return dict(Counter(row.get("on", "not recorded") for row in rows))


def read_processor_name() -> str:
    """Find the processor's name, or its kind on a system that does not tell the name."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()


def round_number_unless_whole(value: float | None, decimals_or_none: int | None) -> float | None:
    """Round a number as it is stored; whole numbers and None stay as they are."""
    if value is None or decimals_or_none is None or isinstance(value, int):
        return value
    return round(float(value), decimals_or_none)


def write_stored_rows_file(
    path: Path, file_description: Mapping[str, Any], rows: Iterable[StoredRow]
) -> None:
    """Write a file of rows, whole or not at all.

    Many rows have the same options (`made`). So the file has a list `made` of all different options, and a row has its
    position in this list.
    """
    position_by_options: dict[str, int] = {}
    lines = []
    for row in rows:
        options = json.dumps(row["made"], sort_keys=True)
        position = position_by_options.setdefault(options, len(position_by_options))
        lines.append(json.dumps({**row, "made": position}, separators=(",", ":")))
    made_text = ",\n".join(position_by_options)
    rows_text = ",\n".join(lines)
    content = (
        f'{{"about": {json.dumps(file_description)},\n"made": [\n{made_text}\n],\n"rows": '
        f"[\n{rows_text}\n]\n}}\n"
    )
    write_file(path, content, force=True)


@dataclass(frozen=True)
class DeclaredStudy:
    """A study with a name.

    path: the file of its results
    note: what this file says about its rows
    decimals: to which numbers in rows are rounded
    wanted: lists the points of the study, given the rows that are stored already; so the next points of a study may
        depend on earlier results
    """

    name: str
    path: Path
    note: str = ""
    decimals: int = 4
    wanted: Callable[[Sequence[StoredRow]], Iterable[MethodSettingPoint]] = lambda rows: ()

    def list_points(self, stored_rows: Sequence[StoredRow] = ()) -> Iterable[MethodSettingPoint]:
        """List the points of the study.

        stored_rows: those that are stored already
        """
        return self.wanted(stored_rows)

    def load_stored_rows(self) -> list[StoredRow]:
        """Load the stored rows; none if nothing was stored yet."""
        if not self.path.exists():
            return []
        _, rows = read_stored_rows(self.path)
        return rows

    def list_missing_and_stale_points(
        self, stored_rows: Sequence[StoredRow], recomputed_methods: Sequence[str] = ()
    ) -> list[MethodSettingPoint]:
        """List the points that have no row, or a row that was made with other settings.

        recomputed_methods: methods whose points are listed in any case
        """
        stored = {make_json_key_of_row(row): row for row in stored_rows}
        points = []
        for point in self.list_points(stored_rows):
            is_current = point.is_current_row(stored.get(point.key))
            if point.method in recomputed_methods or not is_current:
                points.append(point)
        return points

    def describe_methods_with_missing_or_stale_rows(self) -> list[str]:
        """Write a sentence for each method whose rows are missing or have other settings."""
        names = []
        for point in self.list_missing_and_stale_points(self.load_stored_rows()):
            names.append(f"{self.name}/{point.runs}/{point.method}")
        sentence = f"rows are missing or have other settings; run {COMMAND} {self.name}"
        return [f"{name}: {sentence}" for name in dict.fromkeys(names)]

    def compute_and_store_missing_rows(
        self, *, recomputed_methods: Sequence[str] = (), **run_options: Any
    ) -> ErrorTextByPointKey:
        """Compute missing rows until none is missing.

        A call that is stopped keeps the rows that it has computed, and the next call continues there.
        Returns {key of a point: why it failed}.

        recomputed_methods: methods that are computed in any case
        """
        rows = {make_json_key_of_row(row): row for row in self.load_stored_rows()}
        computed = set[str]()
        device = "cpu"
        start = time.monotonic()
        try:
            while True:
                points = self._list_remaining_points(
                    list(rows.values()), recomputed_methods, computed
                )
                if not points:
                    break
                for point, row in compute_point_rows(points, self.decimals, **run_options):
                    rows[point.key] = row
                    computed.add(point.key)
                    device = point.cells[0].plan.settings.device
        finally:
            if computed:
                self._write_rows_and_description(rows, device, time.monotonic() - start)
        return {key: rows[key]["failed"] for key in computed if "failed" in rows[key]}

    def _list_remaining_points(
        self,
        stored_rows: Sequence[StoredRow],
        recomputed_methods: Sequence[str],
        computed_keys: Iterable[str],
    ) -> list[MethodSettingPoint]:
        """List the missing points that this call has not computed yet."""
        return [
            point
            for point in self.list_missing_and_stale_points(stored_rows, recomputed_methods)
            if point.key not in computed_keys
        ]

    def _write_rows_and_description(
        self, row_by_key: Mapping[str, StoredRow], device: str, seconds: float
    ) -> None:
        """Write the rows of the study's points, and a description of how they were made."""
        earlier_minutes = 0
        if self.path.exists():
            about, _ = read_stored_rows(self.path)
            earlier_minutes = about.get("minutes", 0)
        wanted = []
        for point in self.list_points(list(row_by_key.values())):
            if point.key in row_by_key:
                wanted.append(row_by_key[point.key])
        about = {
            "version": __version__,
            "torch": read_torch_version(),
            "date": date.today().isoformat(),
            "on": count_rows_by_machine_description(wanted),
            "device": get_processor_or_gpu_name(device),
            "minutes": earlier_minutes + round(seconds / 60),
            "command": f"{COMMAND} {self.name}",
            "note": self.note,
        }
        write_stored_rows_file(self.path, about, wanted)
