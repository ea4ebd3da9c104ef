"""The course of one run: events into the record, progress and failures into words."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ..draw.words import plural
from .controls import Controls
from .record import Record
from .telling import Telling, message

ENDS = {"done": "Done", "stopped": "Stopped", "error": "Ended"}


class Course:
    """`event` and `end` are the worker's callbacks. `changed(at_end)` is called when there is something new to draw."""

    def __init__(self, record: Record, telling: Telling, controls: Controls, changed: Callable[[bool], None]) -> None:
        self._record, self._telling, self._controls, self._changed = record, telling, controls, changed
        self._units, self._finished, self._told = 1, 0, 0.0

    def begin(self, units: int) -> None:
        """A run that will give `units` results."""
        self._units, self._finished = units, 0
        self._controls.progress.value = 0
        self._telling.set("running")
        self._telling.phase("Starting …")

    def event(self, event: Any) -> None:
        row = self._record.find(event.method)
        if row is None:
            return
        if event.curve is not None:
            row.live.setdefault(event.seed, []).append(event.curve)
        if event.outcome is not None:
            row.outcomes[event.seed] = event.outcome
        if event.error is not None:
            row.error = message(event.error)
            self._telling.fail(event.error, f"{row.title}: ", also=True)
        ended = event.outcome is not None or event.error is not None
        if ended:
            row.live.pop(event.seed, None)
            self._finished += 1
        now = time.monotonic()
        if ended or now - self._told > 0.1:
            self._told = now
            share = 0 if ended else event.done / max(event.total, 1)
            self._controls.progress.value = min(1.0, (self._finished + share) / self._units)
            steps = "" if event.total <= 1 else f" {event.done}/{event.total}"
            results = f"{self._finished} of {self._units} results"
            self._telling.phase(f"{row.title}, {event.phase}{steps}, seed {event.seed} ({results})")
        if event.curve is not None or ended:
            self._changed(False)

    def end(self, how: str, error: Exception | None) -> None:
        rows = self._record.current
        found = sum(len(row.outcomes) for row in rows)
        failed = any(row.error for row in rows) and not found
        self._telling.set("error" if how == "error" or failed else how)
        if error is not None:
            self._telling.fail(error)
        if how == "done":
            self._controls.progress.value = 1.0
        self._telling.phase(f"{ENDS[how]}: {plural(found, 'result')} in run {self._record.run}.")
        for row in rows:
            row.live.clear()
        self._record.tidy()
        self._changed(True)
