"""Making the table: method after method, every try on every federation, the file written after each method.

What the file has already is not computed again, so a call that was stopped goes on where it was; naming methods
computes these anew (after a change of theirs). Finished runs are in the store.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ... import __version__
from ...methods import METHODS
from ..cluster import distributed
from ..code_version import torch_version
from ..engine import here
from ..grid import Cell
from ..outcome import Outcome
from ..results import write
from ..settings import Settings, plans_for
from ..store import store_folder
from .table import COLUMNS, GUARD, Key, Tried, file_of, read
from .tries import DIGITS, Knobs, Part, given, grid, parts, validation_set

COMMAND = "python -m fedlab_nb.study.tuning"
NOTE = "accuracy: share of the validation images, a fixed fifth of {}' training images; no test image was used"


def validation_file(dataset: str = DIGITS) -> Path:
    """`validation_set(dataset)` as an .npz file in the store's folder, so that every process can load it."""
    digits, path = validation_set(dataset), store_folder() / f"{file_of(dataset).stem}_validation.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    names = ("x_train", "y_train", "x_test", "y_test", "x_public")
    arrays = {name: array.numpy() for name in names if (array := getattr(digits, name)) is not None}
    if not path.exists():
        np.savez(path, **arrays)
    return path


def cells(
    part: Part,
    method: str,
    known: Tried | None,
    dataset: Path,
    *,
    numbers: Sequence[int] = (),
    alphas: Sequence[float] = (),
    given: Knobs = MappingProxyType({}),
) -> list[list[list[Cell]]]:
    """Runs of the tries `numbers` of `method` (none: of all), `[alpha][seed][try]`; `alphas`: others than its own;
    `given`: settings of all of them."""
    base = {"dataset": str(dataset), "device": "cpu", "clients": grid()["clients"], **given}
    more = chosen_before(part, method, known)
    groups = []
    for alpha in alphas or grid()["alphas"]:
        rows = []
        for seed in grid()["seeds"]:
            made = {
                n: Settings.make(**base, alpha=alpha, seed=seed, **part.overrides(method, {**more, **knobs}))
                for n, knobs in enumerate(part.tries[method])
                if not numbers or n in numbers
            }
            rows.append([Cell(plans_for(s, [method])[0], {"try": n, "alpha": alpha}) for n, s in made.items()])
        groups.append(rows)
    return groups


def chosen_before(part: Part, method: str, known: Tried | None) -> Knobs:
    """For equal work: the knobs that `methods` chose, but for the local epochs. Else nothing."""
    if part.name != "equal_work" or known is None:
        return {}
    tries = known.tries("methods", method)
    return {k: v for k, v in tries[known.chosen("methods", method)].items() if k != "local_epochs"}


def computed(groups: list[list[list[Cell]]], workers: int) -> dict[tuple[int, float, int], Outcome | None]:
    """{(try, alpha, seed): outcome}, None where training diverged."""
    cluster: dict[str, Any] = {"workers": workers, "scheduler": None, "client": None, "cache": True}
    done = here(groups, True, lambda event: None) if workers == 1 else distributed(groups, **cluster)
    return {(cell.values["try"], cell.values["alpha"], cell.seed): outcome for cell, outcome, _ in done}


def make(
    path: str | Path | None = None,
    only: Sequence[str] = (),
    *,
    dataset: str = DIGITS,
    names: Sequence[str] = (),
    workers: int = 1,
    watch: Callable[[str], None] = print,
) -> None:
    """Complete the table at `path` (None: the package's). `only`: compute these methods anew; `names`: only these parts
    of the study."""
    path, images, always = Path(path or file_of(dataset)), validation_file(dataset), given(dataset)
    rows: dict[Key, Mapping[str, Any]] = dict(read(path).rows) if path.exists() else {}
    for part in (p for name, p in parts(dataset).items() if not names or name in names):
        for method, tries in part.tries.items():
            wanted = {(part.name, method, n, alpha) for n in range(len(tries)) for alpha in grid()["alphas"]}
            if method not in only if only else all(key in rows for key in wanted):
                continue
            known = Tried(about(dataset), rows) if rows else None
            outcome_of = computed(cells(part, method, known, images, given=always), workers)
            rows |= rows_of(part.name, method, tries, outcome_of)
            better = Tried(about(dataset), rows).better(part.name, method)
            if part.name == "methods" and better:
                at = {"numbers": [0, *better], "alphas": grid()["guard"], "given": always}
                rows |= rows_of(GUARD, method, tries, computed(cells(part, method, known, images, **at), workers))
            save(path, rows, dataset)
            table = Tried(about(dataset), rows)
            means = " ".join(f"{100 * table.mean(part.name, method, n):.1f}" for n in range(len(tries)))
            watch(f"{part.name} {method}: {means}; {table.chosen(part.name, method)}")


def rows_of(
    part: str, method: str, tries: Sequence[Knobs], outcome_of: Mapping[tuple[int, float, int], Outcome | None]
) -> dict[Key, Mapping[str, Any]]:
    """The outcomes {(try, alpha, seed): outcome} as rows of the table."""
    rows: dict[Key, Mapping[str, Any]] = {}
    for number, alpha in sorted({at[:2] for at in outcome_of}):
        outcomes = [outcome_of[number, alpha, seed] for seed in grid()["seeds"]]
        values = [part, method, number, tries[number], alpha, [*map(accuracy, outcomes)], sent(outcomes)]
        rows[part, method, number, alpha] = dict(zip(COLUMNS, values, strict=True))
    return rows


def accuracy(outcome: Outcome | None) -> float:
    return 0.0 if outcome is None else round(outcome.accuracy, 4)


def sent(outcomes: Sequence[Outcome | None]) -> int:
    """Bytes of the first outcome, both ways."""
    return next((o.bytes_up + o.bytes_down for o in outcomes if o is not None), 0)


def about(dataset: str = DIGITS) -> dict[str, Any]:
    made = {"version": __version__, "torch": torch_version(), "date": date.today().isoformat()}
    command = COMMAND if dataset == DIGITS else f"{COMMAND} --dataset {dataset}"
    note = NOTE.format("the digits" if dataset == DIGITS else "the glyphs")
    return {**made, "command": command, "note": note, **grid()}


def save(path: Path, rows: Mapping[Key, Mapping[str, Any]], dataset: str = DIGITS) -> None:
    """The file, whole or not at all; one row a line, in the order of the study."""
    order = {(part.name, method): i for i, part in enumerate(parts(dataset).values()) for method in part.tries}
    order |= {(GUARD, method): len(order) for method in parts(dataset)["methods"].tries}
    keys = sorted((k for k in rows if k[:2] in order), key=lambda k: (order[k[:2]], list(METHODS).index(k[1]), k[2:]))
    lines = [json.dumps([rows[key][name] for name in COLUMNS]) for key in keys]
    head = json.dumps({**about(dataset), "columns": COLUMNS}, indent=1)
    write(path, head[:-2] + ',\n "rows": [\n' + ",\n".join(lines) + "\n ]\n}\n")
