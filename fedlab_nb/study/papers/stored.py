"""The papers' tables at classroom scale, as they came with the package: `classroom.json` beside this file.

`python -m fedlab_nb.study.papers [--workers 2]` computes what the file lacks, or what was made with other settings than
the present ones. Plain cells come from the stored table of results (`study/stored`), if that has the present settings.
A call that was stopped goes on where it was: its runs are remembered.

A line of the file is a cell, one method at one setting, which its name tells: by seed its accuracies, its bytes, and
what else a table reads off. The head has the recipe and the methods' classroom knobs with which they were made.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

from ... import __version__
from ...errors import FedlabError
from ...methods import METHODS
from ..code_version import torch_version
from ..experiment import Event
from ..results import write
from ..settings import Settings, plans_for
from ..stored.make import options, recipe
from ..stored.table import FILE as TABLE
from ..stored.table import Stored
from ..stored.table import read as read_table
from .cells import Wanted, wanted
from .published import TABLES, PaperTable, paper_table
from .reproduction import Reproduction
from .runs import SEEDS, carry_out

FILE = Path(__file__).parent / "classroom.json"
COMMAND = "python -m fedlab_nb.study.papers"
SETTINGS: dict[str, Any] = {"device": "cpu"}


def runs_of(table: PaperTable, seeds: Sequence[int]) -> tuple[list[Wanted], dict[tuple[str, int], str]]:
    """What the file holds for a table, and why it holds no more; see `wanted`."""
    return wanted(table, "classroom", "", seeds, SETTINGS)


def make(
    path: str | Path = FILE,
    *,
    seeds: Sequence[int] = tuple(range(SEEDS)),
    tables: Sequence[str] = TABLES,
    anew: Sequence[str] = (),
    known: str | Path = TABLE,
    workers: int = 1,
    watch: Callable[[Event], None] = lambda event: None,
) -> dict[str, str]:
    """Fill the file; returns the reasons of cells that failed, by name.

    anew: methods that are computed in any case. Cells of other seeds than `seeds` are made again.
    known: the stored table whose rows are taken over
    """
    path, start = Path(path), time.perf_counter()
    old = read(path) if path.exists() else {"about": {}, "seeds": [], "cells": {}}
    current = old["seeds"] == list(seeds) and old["about"].get("recipe") == recipe()
    made_so = {name for name, then in old["about"].get("methods", {}).items() if is_now(name, then)} - set(anew)
    names = {run.name for table in TABLES for run in runs_of(paper_table(table), (0,))[0]}
    current_cells = {name: cell for name, cell in old["cells"].items() if current and cell["method"] in made_so}
    cells = {name: dict(cell) for name, cell in current_cells.items() if name in names}
    plain = read_table(known)
    failed: dict[str, str] = {}
    for name in tables:
        runs, _ = runs_of(paper_table(name), seeds)
        for run in runs:
            cells.setdefault(run.name, {})
            if run.label not in cells[run.name] and run.label == "accuracy" and run.cells[0].plan.name not in anew:
                cells[run.name] |= from_table(run, seeds, plain)
        missing = [run for run in runs if not {run.label, "failed"} & set(cells[run.name])]
        made = carry_out(missing, workers=workers, cache=True, progress=None, watch=watch) if missing else {}
        for run in runs:
            cell = cells[run.name]
            done = [made[run.name, seed] for seed in seeds if (run.name, seed) in made]
            outcomes = [outcome for _, outcome, _ in done if outcome is not None]
            if len(outcomes) < len(done):
                why = next(error for _, outcome, error in done if outcome is None)
                failed[run.name] = why
                cell |= {"method": run.cells[0].plan.name, "failed": why}
            elif outcomes:
                s = run.cells[0].plan.settings
                cell |= {"method": run.cells[0].plan.name, "alpha": s.alpha, "clients": s.clients,
                         "accuracy": [round(o.accuracy, 4) for o in outcomes],
                         "bytes": [o.bytes_up + o.bytes_down for o in outcomes]}  # fmt: skip
                cell[run.label] = [round(run.measure(o), 4) for o in outcomes]
        seconds = round(time.perf_counter() - start)
        _write(path, {"about": about(cells, seconds), "seeds": list(seeds), "cells": cells})
    return failed


def from_table(run: Wanted, seeds: Sequence[int], table: Stored) -> dict[str, Any]:
    """The run's cell from the stored table of results; {} where that lacks it, or has it with other settings."""
    plan, s = run.cells[0].plan, run.cells[0].plan.settings
    usual = plans_for(Settings.make(alpha=s.alpha, clients=s.clients, seed=s.seed, device="cpu"), [plan.name])[0]
    rows = [table.rows.get((plan.name, float(s.alpha), s.clients, seed)) for seed in seeds]
    then = table.about.get("methods", {}).get(plan.name, {}).get("options", {"": ""})
    same = is_now(plan.name, then) and table.about.get("recipe") == recipe()
    if not same or None in rows or usual.run_key() != run.cells[0].plan.run_key():
        return {}
    return {"method": plan.name, "alpha": s.alpha, "clients": s.clients,
            "accuracy": [row["accuracy"] for row in rows if row],
            "bytes": [row["bytes_up"] + row["bytes_down"] for row in rows if row]}  # fmt: skip


def is_now(method: str, then: Mapping[str, Any]) -> bool:
    """Whether the method's classroom knobs still have those values (a knob that came since changes nothing)."""
    now = options(method) if method in METHODS else {}
    return {name: now.get(name) for name in then} == then


def about(cells: Mapping[str, Mapping[str, Any]], seconds: int) -> dict[str, Any]:
    """Where the file is from, and with which settings."""
    methods = {name: options(name) for name in METHODS if any(cell.get("method") == name for cell in cells.values())}
    versions = {"version": __version__, "torch": torch_version(), "date": date.today().isoformat()}
    more = {"command": COMMAND, "settings": SETTINGS, "seconds": seconds}
    return {**versions, **more, "recipe": recipe(), "methods": methods}


def _write(path: Path, content: Mapping[str, Any]) -> None:
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(cell)}" for name, cell in content["cells"].items())
    head = json.dumps({key: value for key, value in content.items() if key != "cells"})
    write(path, f'{head[:-1]},\n"cells": {{\n{lines}\n}}}}\n')


def read(path: str | Path) -> dict[str, Any]:
    """The content of such a file; FedlabError if it is missing or is none."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        if not {"about", "seeds", "cells"} <= set(content):
            raise ValueError("it has no cells")
        return content
    except (OSError, ValueError, TypeError) as error:
        raise FedlabError(f"The stored tables in {Path(path).name} cannot be read: {error}.") from None


@lru_cache(maxsize=1)
def load() -> dict[str, Any]:
    """What came with the package."""
    return read(FILE)


def reproduction(table: PaperTable, content: Mapping[str, Any] | None = None) -> Reproduction:
    """A table beside the stored results."""
    content = content or load()
    runs, why = runs_of(table, (content["seeds"] or [0])[:1])
    values, reasons = {}, dict(why)
    for run in runs:
        cell = content["cells"].get(run.name, {})
        if run.label in cell:
            values[run.row, run.place] = dict(zip(content["seeds"], cell[run.label], strict=True))
        else:
            reasons[run.row, run.place] = cell.get("failed", "the stored results lack it")
    label = f"stored results of {content['about'].get('date')}, version {content['about'].get('version')}"
    return Reproduction(table, "classroom", "digits", tuple(content["seeds"]), values, reasons, (), label)
