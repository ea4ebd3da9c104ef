"""Making the stored table: one setting after the other, every method and seed on it, the file written after each.

`python -m fedlab_nb.study.stored` computes what the file lacks, so a call that was stopped goes on where it was;
`--only fens,fedlpa` computes these methods anew (after a change of theirs) and leaves the others' rows alone.
"""

import dataclasses
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import date
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from ... import __version__
from ...data import describe
from ...methods import METHODS
from ...training.recipe import OFF
from ..code_version import torch_version
from ..experiment import Event, job
from ..results import write
from ..settings import Settings, plans_for
from .table import COLUMNS, DIGITS, GRIDS, KEYS, file_of, read

COMMAND = "python -m fedlab_nb.study.stored"
NOTE = "seconds: wall time of one CPU thread while other work went on; accuracy: share of the {} test images"
SETTINGS: dict[str, Any] = {"dataset": DIGITS, "preset": "classroom", "device": "cpu"}


Part = tuple[str, int, float, int, int, tuple[str, ...]]  # data set, clients, alpha, first seed, seeds, methods


def make(
    path: str | Path | None = None,
    methods: Sequence[str] | None = None,
    *,
    dataset: str = DIGITS,
    anew: bool = False,
    grid: Sequence[tuple[int, float, int]] | None = None,
    watch: Callable[[Event], None] = lambda event: None,
    workers: int = 1,
) -> Exception | None:
    """Fill the table of `dataset` at `path` (None: the package's); returns the first failure of a method, if any (its
    rows stay missing).

    methods: default every one; `anew`: compute them even if the file has them; grid: (clients, alpha, seed), default
    all stored settings; workers: processes, each with its own federations (with several, nothing is watched).
    Remembered runs come from the store, so their seconds are those of the day they were made.
    """
    path, stored = Path(path or file_of(dataset)), GRIDS[dataset]
    names = list(methods or METHODS)
    rows: dict[tuple, Mapping[str, Any]] = dict(read(path).rows) if path.exists() else {}
    about = dict(read(path).about) if path.exists() else {}
    made = dict(about.get("methods", {}))
    failed = None
    cells = list(grid or itertools.product(stored.clients, stored.alphas, stored.seeds))
    wanted = [(m, a, s, tuple(n for n in names if anew or (n, float(a), m, s) not in rows)) for m, a, s in cells]
    for new, failure in _done(list(_parts(dataset, wanted)), watch, workers):
        failed = failed or failure
        rows |= {tuple(row[name] for name in KEYS): row for row in new}
        present = {row["method"]: options(row["method"], dataset) for row in new}
        made |= {name: {"date": date.today().isoformat(), "options": own} for name, own in present.items()}
        _write(path, dataset, rows, made)
    return failed


def _parts(dataset: str, wanted: Iterable[tuple[int, float, int, tuple[str, ...]]]) -> Iterator[Part]:
    """Neighbouring seeds that lack the same methods, together: their clients are trained as one stack."""
    for (clients, alpha, names, _), group in itertools.groupby(
        enumerate(wanted), lambda item: (*item[1][:2], item[1][3], item[1][2] - item[0])
    ):
        seeds = [cell[2] for _, cell in group]
        if names:
            yield dataset, clients, float(alpha), seeds[0], len(seeds), names


def _done(
    parts: Sequence[Part], watch: Callable[[Event], None], workers: int
) -> Iterator[tuple[list[dict[str, Any]], Exception | None]]:
    if workers == 1:
        yield from (_rows(part, watch) for part in parts)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(_rows, part) for part in parts]):
            yield future.result()


def _rows(
    part: Part, watch: Callable[[Event], None] = lambda event: None
) -> tuple[list[dict[str, Any]], Exception | None]:
    """The rows of one part, and the first failure in it."""
    dataset, clients, alpha, seed, seeds, names = part
    rows, failed = [], None
    fixed = {**SETTINGS, "dataset": dataset}
    for event in job(names, alpha=alpha, clients=clients, seed=seed, seeds=seeds, **fixed):
        watch(event)
        failed = failed or event.error
        if event.outcome is not None:
            values = {name: event.outcome.to_json()[name] for name in COLUMNS}
            rows.append({k: round(v, 4) if isinstance(v, float) else v for k, v in values.items()})
    return rows, failed


def options(method: str, dataset: str = DIGITS) -> dict[str, Any]:
    """The classroom values of the method's settings on that data set, as they are now."""
    return dataclasses.asdict(plans_for(Settings.make(**{**SETTINGS, "dataset": dataset}), [method])[0].method)


def recipe(dataset: str = DIGITS) -> dict[str, Any]:
    """Local training at the stored settings, without what is switched off."""
    values = dataclasses.asdict(plans_for(Settings.make(**{**SETTINGS, "dataset": dataset}), ["fedavg"])[0].recipe)
    return {name: value for name, value in values.items() if OFF.get(name) != value}


def _write(path: Path, dataset: str, rows: Mapping[tuple, Mapping[str, Any]], made: dict[str, Any]) -> None:
    """The file, whole or not at all; one row a line, in the order of METHODS, clients, alpha, seed."""
    order = {name: i for i, name in enumerate(METHODS)}
    current = {key: row for key, row in rows.items() if key[0] in order}
    of, fixed = GRIDS[dataset], {**SETTINGS, "dataset": dataset}
    head = {
        "version": __version__,
        "torch": torch_version(),
        "date": date.today().isoformat(),
        "command": COMMAND if dataset == DIGITS else f"{COMMAND} {dataset}",
        "note": NOTE.format(describe(dataset).n_test),
        "settings": {**fixed, "alpha": list(of.alphas), "clients": list(of.clients), "seed": list(of.seeds)},
        "recipe": recipe(dataset),
        "methods": {name: made[name] for name in order if name in made},
        "columns": list(COLUMNS),
    }
    lines = [
        json.dumps([current[key][name] for name in COLUMNS], separators=(",", ":"))
        for key in sorted(current, key=lambda k: (order[k[0]], k[2], k[1], k[3]))
    ]
    text = json.dumps(head, indent=1)[:-2] + ',\n "rows": [\n' + ",\n".join(lines) + "\n ]\n}\n"
    write(path, text)
