"""One worker for a panel: it runs a job step by step, in a thread or inline, and stops between steps.

What a job still yields after a newer one has replaced it is dropped. Errors and warnings are handed
on, never printed.

`Status` is what a panel says beside its pictures: status, phase, progress, errors. Only traits are
set.
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

from ..plots.words import format_duration, plural
from .controls import Controls
from .record import Runs, describe_error
from .theme import make_paragraph

ENDS = {"done": "Done", "stopped": "Stopped", "error": "Ended"}
SWITCH = 0.001  # seconds that a control waits for Python while a thread computes, at most
QUICK = 0.1  # seconds between two messages on progress, at least
EARLY_SECONDS = 2.0  # of a run, before which nobody can tell how long it takes
EARLY_SHARE = 0.03
_local = threading.local()
_idle: list[SimpleQueue] = []  # the calls that each idle thread waits for
_lock = threading.Lock()
_previous: Callable[..., Any] = warnings.showwarning


OnEnd = Callable[
    [str, Exception | None, Any], None
]  # ("done", "stopped" or "error", error, result)


class Worker:
    """Runs one job at a time.

    lock: is held while a job's callbacks run, so that they and the panel's own never interleave
    inline: jobs run where they are started, not on a thread
    on_warning: called with the text of each warning of a job at its next step, and not at once: the
        code that warns may hold a lock of its own
    """

    def __init__(
        self, lock: threading.RLock, *, inline: bool, on_warning: Callable[[str], None]
    ) -> None:
        self.lock = lock
        self.inline = inline
        self.on_warning = on_warning
        self._stopped: threading.Event | None = None  # of the present job, which it stands for
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH))
        self._jobs: WeakSet[Future] = WeakSet()

    @property
    def is_busy(self) -> bool:
        return self._stopped is not None

    def start(
        self,
        job: Callable[[], Any],
        on_event: Callable[[Any], None],
        on_end: OnEnd,
        between: Callable[[], None] | None = None,
    ) -> None:
        """Start a job. An older one is told to stop, and its events are ignored from now on.

        job: a function, or one that gives a generator of events
        on_event: called with each event of the generator, holding the lock
        on_end: called once, holding the lock, with how the job ended and what it returned
        between: called after each event without the lock. What takes long belongs there, as Stop
            waits for the lock
        """
        stopped = threading.Event()
        if between is None:
            between = do_nothing
        with self.lock:
            self.abandon()
            self._stopped = stopped
            self._on_end = on_end
        run = functools.partial(self._run, stopped, job, on_event, on_end, between)
        if self.inline:
            run()
            return
        with self.lock:
            self._jobs.add(run_on_thread(run))

    def stop(self) -> None:
        """Stop the present job. `on_end("stopped", None, None)` is called at once; what the job does
        until its next step is ignored.
        """
        with self.lock:
            if self.is_busy:
                self.abandon()
                self._on_end("stopped", None, None)

    def abandon(self) -> None:
        """Ignore the present job, which ends at its next step. Its `on_end` is not called."""
        with self.lock:
            if self._stopped is not None:
                self._stopped.set()
            self._stopped = None

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing runs any more. Returns False if that took longer than `timeout` seconds.

        The job that calls this does not count: it would wait for itself.
        """
        end = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            jobs = []
            with self.lock:
                own_job = getattr(_local, "job", None)
                for job in self._jobs:
                    if not job.done() and job is not own_job:
                        jobs.append(job)
            if not jobs:
                return True
            now = time.monotonic()
            if now >= end:
                return False
            wait(jobs, None if timeout is None else end - now, FIRST_COMPLETED)

    def _run(
        self,
        stopped: threading.Event,
        job: Callable[[], Any],
        on_event: Callable[[Any], None],
        on_end: OnEnd,
        between: Callable[[], None],
    ) -> None:
        """Run a job to its end, or until `stopped` is set, which stands for it."""
        _catch_warnings()
        warned: list[str] = []
        _local.sink = warned.append
        how = "stopped"  # what an interrupted cell ends with, where the work is inline
        error = None
        result = None

        def list_events() -> Generator:
            nonlocal result
            returned = job()
            if inspect.isgenerator(returned):
                result = yield from returned
            else:
                result = returned

        try:
            with closing(list_events()) as events:
                for event in events:
                    with self.lock:
                        self._pass_on(warned)
                        if self._stopped is stopped:
                            on_event(event)
                    if stopped.is_set():
                        break
                    between()
            how = "done"
        except Exception as caught:
            how = "error"
            error = caught
        finally:
            _local.sink = None
            with self.lock:
                self._pass_on(warned)
                if self._stopped is stopped:
                    self._stopped = None
                    on_end(how, error, result)
            _release_memory()

    def _pass_on(self, warned: list[str]) -> None:
        """Report the warnings that a job has collected, and forget them."""
        for text in warned:
            self.on_warning(text)
        warned.clear()


def do_nothing() -> None:
    pass


def run_on_thread(work: Callable[[], Any]) -> Future:
    """Do `work` on an idle thread, or on a new one. A new thread for each job would cost memory: the C
    library keeps for each thread as much as it ever held (60 MB after 20 runs).
    """
    future: Future = Future()
    with _lock:
        if _idle:
            calls = _idle.pop()
        else:
            calls = SimpleQueue()
            threading.Thread(
                target=_serve_calls, args=(calls,), name="fedlab_nb panel", daemon=True
            ).start()
    calls.put((future, work))
    return future


def _serve_calls(calls: SimpleQueue) -> None:
    """Do the work of a thread: one call after another, idle between them."""
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


def _release_memory() -> None:
    """Give the memory that a job has freed back to the system, where the C library is glibc."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _catch_warnings() -> None:
    """Route warnings that are raised in a worker's thread to its panel; all others go where they went before."""
    global _previous
    if warnings.showwarning is not _show_warning:
        _previous = warnings.showwarning
        warnings.showwarning = _show_warning


def _show_warning(
    message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    sink = getattr(_local, "sink", None)
    if sink is None:
        _previous(message, category, filename, lineno, file, line)
    else:
        sink(str(message))


def show_errors(method: Callable) -> Callable:
    """Decorate a callback, whose exceptions a notebook would swallow: it holds its owner's lock
    `_guard`, and its owner's `_status` shows each error.
    """

    @functools.wraps(method)
    def call(self: Any, *arguments: Any) -> None:
        with self._guard:
            try:
                method(self, *arguments)
            except Exception as error:
                self._status.show_error(error)

    return call


class Status:
    """What a panel says beside its pictures.

    status: "idle", "running", "done", "stopped" or "error"
    traceback: that of the last error
    panel: its CSS class `fl-status-…` is the status, so that a browser can wait for it
    """

    def __init__(self, controls: Controls, panel: widgets.Widget) -> None:
        self._controls = controls
        self._panel = panel
        self.status = ""
        self.traceback = ""
        self._results = 1  # that the present run will give
        self._finished = 0  # of them
        self._start = 0.0  # seconds: when the present run began
        self._last_message = 0.0  # seconds: when progress was last shown
        self.set_status("idle")

    def set_status(self, status: str) -> None:
        self._panel.remove_class(f"fl-status-{self.status}").add_class(f"fl-status-{status}")
        self.status = status
        self._controls.set_busy(self.is_running)

    @property
    def is_running(self) -> bool:
        return self.status == "running"

    def show_phase(self, text: str) -> None:
        self._controls.phase.value = make_paragraph(text, "status")

    def show_progress(self, share: float) -> None:
        self._controls.progress.value = min(1.0, share)

    def show_start(self, words: str = "Starting …") -> None:
        """Show that a job begins."""
        self.show_progress(0)
        self.set_status("running")
        self.show_phase(words)

    def show_end(self, how: str, error: Exception | None, words: str = "") -> None:
        """Show that a job is over.

        how: "done", "stopped" or "error"
        """
        self.set_status(how)
        if error is not None:
            self.show_error(error)
        if how == "done":
            self.show_progress(1)
        self.show_phase(words)

    def show_error(self, error: Exception, start: str = "", also: bool = False) -> None:
        """Show an error as one readable line, and keep its traceback.

        start: what the line begins with
        also: the line stands below those that are there already, not in their place
        """
        self.traceback = "".join(traceback.format_exception(error))
        self._show_line(make_paragraph(start + describe_error(error), "alert"), also)

    def show_warning(self, text: str) -> None:
        self._show_line(make_paragraph(f"Note: {text}", "status"), also=True)

    def clear_error(self) -> None:
        self._controls.error.value = ""

    def _show_line(self, line: str, also: bool) -> None:
        lines = self._controls.error.value if also else ""
        if line not in lines:
            lines += line
        self._controls.error.value = lines

    def show_run_start(self, results: int) -> None:
        """Show that a run begins which will give so many results; `show_run_event` and `show_run_end`
        follow it."""
        self._results = results
        self._finished = 0
        self._start = time.monotonic()
        self.show_start()

    def show_run_event(self, event: Any, title: str) -> bool:
        """Show an event of the method `title`. Returns whether it ends that method on that seed."""
        has_ended = event.outcome is not None or event.error is not None
        if has_ended:
            self._finished += 1
        if event.error is not None:
            self.show_error(event.error, f"{title}: ", also=True)
        now = time.monotonic()
        if has_ended or now - self._last_message > QUICK:
            self._last_message = now
            self._show_run_progress(event, title, has_ended, now - self._start)
        return has_ended

    def _show_run_progress(self, event: Any, title: str, has_ended: bool, seconds: float) -> None:
        """Show how far a run has come in so many seconds."""
        started = 0 if has_ended else event.done / max(event.total, 1)
        share = (self._finished + started) / self._results
        self.show_progress(share)
        steps = f" {event.done}/{event.total}" if event.total > 1 else ""
        text = f"{title}, {event.phase}{steps}, seed {event.seed}"
        results = f"{self._finished} of {self._results} results"
        self.show_phase(f"{text} ({results}{describe_time_left(seconds, share)})")

    def show_run_end(self, how: str, error: Exception | None, runs: Runs) -> None:
        """Show that a run is over, and how many results it has; "error" where all seeds failed."""
        results = sum(len(row.outcomes) for row in runs.current)
        text = f"{ENDS[how]}: {plural(results, 'result')} in run {runs.number}."
        if not results and any(row.error for row in runs.current):
            how = "error"
        self.show_end(how, error, text)


def describe_time_left(seconds: float, share: float) -> str:
    """What is left of a run of which `share` took so many seconds: ", about 40 s left"; "" as long as
    nobody can tell.

    >>> describe_time_left(30, 0.6), describe_time_left(600, 0.5)
    (', about 20 s left', ', about 10 min left')
    >>> describe_time_left(0.5, 0.5), describe_time_left(10, 0.001), describe_time_left(10, 1.0)
    ('', '', '')
    """
    if seconds < EARLY_SECONDS or not EARLY_SHARE < share < 1:
        return ""
    left = seconds * (1 - share) / share
    return f", {format_duration(left)} left"
