"""What a panel tells beside its pictures: status, phase, progress, errors. Only traits are set; nothing is printed."""

import functools
import time
import traceback
from collections.abc import Callable
from threading import RLock
from typing import Any

from ..plots.words import plural
from .controls import Controls
from .record import Runs, message
from .theme import paragraph

ENDS = {"done": "Done", "stopped": "Stopped", "error": "Ended"}
QUICK = 0.1  # seconds between two words on progress, at least
EARLY = 2.0, 0.03  # seconds and share of a run before which nobody can tell how long it takes


def guarded(method: Callable) -> Callable:
    """For callbacks, whose exceptions a notebook would swallow: hold the owner's lock `_guard`, tell each error by its
    `_status`.
    """

    @functools.wraps(method)
    def call(self: Any, *arguments: Any) -> None:
        with self._guard:
            try:
                method(self, *arguments)
            except Exception as error:
                self._status.fail(error)

    return call


class Status:
    """`status` is "idle", "running", "done", "stopped" or "error"; `traceback` that of the last error.

    turn(before, now): called when the status changes
    """

    def __init__(self, controls: Controls, turn: Callable[[str, str], None]) -> None:
        self._controls, self._turn = controls, turn
        self.status, self.traceback = "", ""
        self._results, self._finished, self._said, self._began = 1, 0, 0.0, 0.0
        self.set("idle")

    def set(self, status: str) -> None:
        self._turn(self.status, status)
        self.status = status
        self._controls.busy(self.running)

    @property
    def running(self) -> bool:
        return self.status == "running"

    def phase(self, text: str) -> None:
        self._controls.phase.value = paragraph(text, "status")

    def progress(self, share: float) -> None:
        self._controls.progress.value = min(1.0, share)

    def start(self, words: str = "Starting …") -> None:
        """A job begins."""
        self.progress(0)
        self.set("running")
        self.phase(words)

    def stopping(self, lock: RLock) -> None:
        """Stop was pressed. Who has the lock is drawing, and gives that up: then the end itself follows at once."""
        if lock.acquire(blocking=False):
            try:
                if self.running:
                    self.phase("Stopping …")
            finally:
                lock.release()

    def end(self, how: str, error: Exception | None, words: str = "") -> None:
        """A job is over: `how` is "done", "stopped" or "error"."""
        self.set(how)
        if error is not None:
            self.fail(error)
        if how == "done":
            self.progress(1)
        self.phase(words)

    def fail(self, error: Exception, start: str = "", also: bool = False) -> None:
        """One readable line in the panel, the traceback kept; with `also`, below the lines that are there already."""
        self.traceback = "".join(traceback.format_exception(error))
        self._say(paragraph(start + message(error), "alert"), also)

    def warn(self, text: str) -> None:
        self._say(paragraph(f"Note: {text}", "status"), also=True)

    def clear(self) -> None:
        self._controls.error.value = ""

    def _say(self, line: str, also: bool) -> None:
        before = self._controls.error.value if also else ""
        self._controls.error.value = before if line in before else before + line

    def run_started(self, results: int) -> None:
        """A run begins that will give so many results; `run_event` and `run_ended` follow its job."""
        self._results, self._finished, self._began = results, 0, time.monotonic()
        self.start()

    def run_event(self, event: Any, title: str) -> bool:
        """Tell of an event of the method `title`; whether it ends that method on that seed."""
        ended = event.outcome is not None or event.error is not None
        self._finished += ended
        if event.error is not None:
            self.fail(event.error, f"{title}: ", also=True)
        now = time.monotonic()
        if ended or now - self._said > QUICK:
            self._said = now
            share = (self._finished + (0 if ended else event.done / max(event.total, 1))) / self._results
            self.progress(share)
            steps = "" if event.total <= 1 else f" {event.done}/{event.total}"
            told = f"{self._finished} of {self._results} results{time_left(now - self._began, share)}"
            self.phase(f"{title}, {event.phase}{steps}, seed {event.seed} ({told})")
        return ended

    def run_ended(self, how: str, error: Exception | None, runs: Runs) -> None:
        results = sum(len(row.outcomes) for row in runs.current)
        failed = any(row.error for row in runs.current) and not results
        self.end("error" if failed else how, error, f"{ENDS[how]}: {plural(results, 'result')} in run {runs.number}.")


def time_left(seconds: float, share: float) -> str:
    """What is left of a run of which `share` took so many seconds: ", about 40 s left"; nothing as long as nobody can
    tell.

    >>> time_left(30, 0.6), time_left(600, 0.5), time_left(0.5, 0.5)
    (', about 20 s left', ', about 10 min left', '')
    """
    if seconds < EARLY[0] or not EARLY[1] < share < 1:
        return ""
    left = seconds * (1 - share) / share
    if left >= 90:
        return f", about {left / 60:.0f} min left"
    return f", about {max(1, round(left, -1) if left > 20 else round(left)):.0f} s left"
