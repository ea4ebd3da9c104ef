"""A grid of experiments that can be interrupted: every finished cell is in the store, so the next call goes on where
it stopped."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..errors import FedlabError, UsageError
from .experiment import Event, Outcomes, job

COLUMNS = (
    "method", "dataset", "alpha", "clients", "seed", "preset", "accuracy", "bytes_up", "bytes_down", "seconds_total",
)  # fmt: skip


def sweep(
    methods: Sequence[str],
    alphas: Sequence[float],
    clients: Sequence[int],
    *,
    seeds: int = 1,
    out: str | Path | None = None,
    cache: bool = True,
    watch: Callable[[Event], None] = lambda event: None,
    **settings: Any,
) -> Outcomes:
    """Every method at every (alpha, clients, seed); clients are trained once a cell.

    With `out`, `results.csv` and `results.json` in that folder grow as cells are finished. A cell that fails is left
    out and the first such error is raised at the end, when everything else is done. `watch` is called with each Event.
    """
    if not alphas or not clients:
        raise UsageError("A sweep needs at least one alpha and one number of clients.")
    cells = list(itertools.product(clients, alphas))
    for m, alpha in cells:  # every setting is checked before the first is computed
        job(methods, seeds=seeds, alpha=alpha, clients=m, **settings).close()
    outcomes, failed = Outcomes(), None
    for m, alpha in cells:
        for event in job(methods, seeds=seeds, cache=cache, alpha=alpha, clients=m, **settings):
            watch(event)
            failed = failed or event.error
            if event.outcome is not None:
                outcomes.append(event.outcome)
                if out is not None:
                    write(outcomes, Path(out))
    if failed is not None:
        raise failed
    return outcomes


def write(outcomes: Outcomes, folder: Path) -> None:
    """`results.csv` (COLUMNS, one row a cell) and `results.json` (everything the command line prints) in `folder`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        rows = outcomes.table()
        with open(folder / "results.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)
        (folder / "results.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    except OSError as error:
        raise FedlabError(
            f"The results could not be written to {folder}: {error}; what was computed is in the store."
        ) from None
