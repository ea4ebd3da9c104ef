"""The papers' tables at classroom scale, as they came with the package: `classroom.json` beside this file.

`python -m fedlab_nb.study.papers [--workers 2]` computes what the file lacks, or what was made with other settings than
the present ones. A call that was stopped goes on where it was: its runs are remembered.

A line of the file is a cell, one method at one setting: by seed its accuracies, its bytes, and what else a table reads
off; `digest` says with which knobs, networks and recipe it was made (`cells.digest`).
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
from ..code_version import torch_version
from ..experiment import Event
from ..results import write
from .cells import Wanted, digest, wanted
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
    workers: int = 1,
    watch: Callable[[Event], None] = lambda event: None,
) -> dict[str, str]:
    """Fill the file; returns the reasons of cells that failed, by name.

    anew: methods that are computed in any case. Cells of other seeds than `seeds` are made again.
    """
    path, start = Path(path), time.perf_counter()
    old = read(path) if path.exists() else {"about": {}, "seeds": [], "cells": {}}
    kept = old["cells"] if old["seeds"] == list(seeds) else {}
    cells: dict[str, dict[str, Any]] = {}
    failed: dict[str, str] = {}
    for name in tables:
        runs, _ = runs_of(paper_table(name), seeds)
        for run in runs:
            cells.setdefault(run.name, dict(kept[run.name]) if holds(kept.get(run.name), run, anew) else {})
        missing = [run for run in runs if not {run.label, "failed"} & set(cells[run.name])]
        made = carry_out(missing, workers=workers, cache=True, progress=None, watch=watch)
        for run in runs:
            cell = cells[run.name]
            done = [made[run.name, seed] for seed in seeds if (run.name, seed) in made]
            outcomes = [outcome for _, outcome, _ in done if outcome is not None]
            if len(outcomes) < len(done):
                why = next(error for _, outcome, error in done if outcome is None)
                failed[run.name] = why
                cell |= {"failed": why, "method": run.cells[0].plan.name, "digest": digest(run.cells[0])}
            elif outcomes:
                s = run.cells[0].plan.settings
                cell |= {"method": run.cells[0].plan.name, "alpha": s.alpha, "clients": s.clients,
                         "digest": digest(run.cells[0]), "accuracy": [round(o.accuracy, 4) for o in outcomes],
                         "bytes": [o.bytes_up + o.bytes_down for o in outcomes]}  # fmt: skip
                cell[run.label] = [round(run.measure(o), 4) for o in outcomes]
        seconds = round(time.perf_counter() - start)
        _write(path, {"about": about(seconds), "seeds": list(seeds), "cells": kept | cells})
    if set(tables) == set(TABLES):
        _write(path, {"about": about(seconds), "seeds": list(seeds), "cells": cells})
    return failed


def holds(cell: Mapping[str, Any] | None, run: Wanted, anew: Sequence[str] = ()) -> bool:
    """Whether the file's cell was made with the present settings, and is not to be made anew."""
    return cell is not None and run.cells[0].plan.name not in anew and cell["digest"] == digest(run.cells[0])


def about(seconds: int) -> dict[str, Any]:
    """Where the file is from."""
    versions = {"version": __version__, "torch": torch_version(), "date": date.today().isoformat()}
    return {**versions, "command": COMMAND, "settings": SETTINGS, "seconds": seconds}


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
    values, said = {}, dict(why)
    for run in runs:
        cell = content["cells"].get(run.name, {})
        if run.label in cell:
            values[run.row, run.place] = dict(zip(content["seeds"], cell[run.label], strict=True))
        else:
            said[run.row, run.place] = cell.get("failed", "the stored results lack it")
    label = f"stored results of {content['about'].get('date')}, version {content['about'].get('version')}"
    return Reproduction(table, "classroom", "digits", tuple(content["seeds"]), values, said, (), label)
