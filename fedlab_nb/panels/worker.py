"""One worker for a panel: runs a job's generator step by step, in a thread or inline; it can be stopped between steps.
A job that was replaced by a newer one drops what it still yields. Errors and warnings are handed on, never printed.

`Status` is what a panel tells beside its pictures: status, phase, progress, errors. Only traits are set.
"""

import ctypes
import functools
import inspect
import math
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing, suppress
from queue import SimpleQueue
from typing import Any
from weakref import WeakSet

import ipywidgets as widgets

from ..plots.words import duration, plural
from .controls import Controls
from .record import Runs, describe_error
from .theme import paragraph

ENDS = {"done": "Done", "stopped": "Stopped", "error": "Ended"}
SWITCH = 0.001  # seconds that a hand waits for Python while a thread computes, at most
QUICK = 0.1  # seconds between two words on progress, at least
EARLY = 2.0, 0.03  # seconds and share of a run before which nobody can tell how long it takes
_local = threading.local()
_idle: list[SimpleQueue] = []  # the calls that each idle thread waits for
_lock = threading.Lock()
_previous: Callable[..., Any] = warnings.showwarning


class Worker:
    """Runs one job at a time. `lock` is held while a job's callbacks run, so they and the panel's own never interleave.

    A job is a function; if it gives a generator, on_event(event) is called for each of its events. on_end(how, error,
    result) is called once, with how = "done", "stopped" or "error" and what was returned; on_warning(text) for each
    warning that the job raises, at its next step: whoever warns may hold a lock of his own. between() is called after
    each event, without the lock: what takes long belongs there, as Stop waits for the lock.
    """

    def __init__(
        self, lock: threading.RLock, *, inline: bool, on_warning: Callable[[str], None]
    ) -> None:
        self.lock, self.inline, self.on_warning = lock, inline, on_warning
        self._stopped: threading.Event | None = None  # of the present job, which it stands for
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH))
        self._jobs: WeakSet[Future] = WeakSet()

    @property
    def busy(self) -> bool:
        return self._stopped is not None

    def start(
        self, job: Callable, on_event: Callable, on_end: Callable, between: Callable | None = None
    ) -> None:
        """Begin a new job; an older one is told to stop and no longer heard."""
        call = (threading.Event(), job, on_event, on_end, between or (lambda: None))
        with self.lock:
            self.abandon()
            self._stopped, self._on_end = call[0], on_end
        if self.inline:
            self._run(*call)
            return
        with self.lock:
            self._jobs.add(on_thread(functools.partial(self._run, *call)))

    def stop(self) -> None:
        """End the present job: `on_end("stopped", None, None)` is called at once, and what the job does until its next
        step is not heard.
        """
        with self.lock:
            if self.busy:
                self.abandon()
                self._on_end("stopped", None, None)

    def abandon(self) -> None:
        """Hear no more of the present job, which ends at its next step."""
        with self.lock:
            if self._stopped is not None:
                self._stopped.set()
            self._stopped = None

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing runs any more; False if that took longer than `timeout` seconds."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            with self.lock:
                jobs = [
                    job
                    for job in self._jobs
                    if not job.done() and job is not getattr(_local, "job", None)
                ]
            if not jobs or time.monotonic() >= end:
                return not jobs
            wait(
                jobs, None if timeout is None else max(0.0, end - time.monotonic()), FIRST_COMPLETED
            )

    def _run(
        self,
        stopped: threading.Event,
        job: Callable,
        on_event: Callable,
        on_end: Callable,
        between: Callable,
    ) -> None:
        _catch_warnings()
        warned: list[str] = []
        _local.sink = warned.append
        how, error, result = (
            "stopped",
            None,
            None,
        )  # what an interrupted cell ends with, where the work is inline

        def events() -> Generator:
            nonlocal result
            made = job()
            result = (yield from made) if inspect.isgenerator(made) else made

        try:
            with closing(events()) as steps:
                for event in steps:
                    with self.lock:
                        self._pass_on(warned)
                        if self._stopped is stopped:
                            on_event(event)
                    if stopped.is_set():
                        break
                    between()
            how = "done"
        except Exception as caught:
            how, error = "error", caught
        finally:
            _local.sink = None
            with self.lock:
                self._pass_on(warned)
                if self._stopped is stopped:
                    self._stopped = None
                    on_end(how, error, result)
            _give_back()

    def _pass_on(self, warned: list[str]) -> None:
        for text in warned:
            self.on_warning(text)
        warned.clear()


def on_thread(work: Callable[[], Any]) -> Future:
    """Do `work` on a thread that is free, or on a new one. A new thread for each would cost memory: the C library gives
    it room of its own and keeps for that the most that it ever held (60 MB after 20 runs).
    """
    future: Future = Future()
    with _lock:
        if _idle:
            calls = _idle.pop()
        else:
            calls = SimpleQueue()
            threading.Thread(
                target=_serve, args=(calls,), name="fedlab_nb panel", daemon=True
            ).start()
    calls.put((future, work))
    return future


def _serve(calls: SimpleQueue) -> None:
    while True:
        future, work = calls.get()
        _local.job = future
        try:
            work()
            with _lock:
                _idle.append(calls)
        finally:  # after an error the thread ends, and Python tells it
            future.set_result(None)
        del future, work, _local.job


def _give_back() -> None:
    """Give the memory that a job has freed back to the system, where the C library (glibc) can be told to."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _catch_warnings() -> None:
    """Route warnings that are raised in a worker's thread to its panel; all others go where they went before."""
    global _previous
    if warnings.showwarning is not _show:
        _previous = warnings.showwarning
        warnings.showwarning = _show


def _show(
    message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    sink = getattr(_local, "sink", None)
    if sink is None:
        _previous(message, category, filename, lineno, file, line)
    else:
        sink(str(message))


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

    panel: its CSS class `fl-status-…` is the status, so that a browser can wait for it
    """

    def __init__(self, controls: Controls, panel: widgets.Widget) -> None:
        self._controls, self._panel = controls, panel
        self.status, self.traceback = "", ""
        self._results, self._finished, self._said, self._began = 1, 0, 0.0, 0.0
        self.set("idle")

    def set(self, status: str) -> None:
        self._panel.remove_class(f"fl-status-{self.status}").add_class(f"fl-status-{status}")
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
        self._say(paragraph(start + describe_error(error), "alert"), also)

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
            share = (
                self._finished + (0 if ended else event.done / max(event.total, 1))
            ) / self._results
            self.progress(share)
            steps = "" if event.total <= 1 else f" {event.done}/{event.total}"
            told = (
                f"{self._finished} of {self._results} results{time_left(now - self._began, share)}"
            )
            self.phase(f"{title}, {event.phase}{steps}, seed {event.seed} ({told})")
        return ended

    def run_ended(self, how: str, error: Exception | None, runs: Runs) -> None:
        results = sum(len(row.outcomes) for row in runs.current)
        failed = any(row.error for row in runs.current) and not results
        self.end(
            "error" if failed else how,
            error,
            f"{ENDS[how]}: {plural(results, 'result')} in run {runs.number}.",
        )


def time_left(seconds: float, share: float) -> str:
    """What is left of a run of which `share` took so many seconds: ", about 40 s left"; nothing as long as nobody can
    tell.

    >>> time_left(30, 0.6), time_left(600, 0.5), time_left(0.5, 0.5), time_left(10, 0.001), time_left(10, 1.0)
    (', about 20 s left', ', about 10 min left', '', '', '')
    """
    if seconds < EARLY[0] or not EARLY[1] < share < 1:
        return ""
    left = seconds * (1 - share) / share
    return f", {duration(left)} left"
