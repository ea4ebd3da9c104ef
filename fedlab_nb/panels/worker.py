"""The worker of a panel: it runs one job at a time, in a thread or inline, and can stop it between two
steps.

The events of a job are ignored after a newer job has replaced it. Errors and warnings are passed on to
the panel, never printed.

`Status` shows a panel's status, phase, progress and errors, by setting traits of widgets.
"""

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
from contextlib import closing
from queue import SimpleQueue
from typing import Any, Literal, TextIO
from weakref import WeakSet

import ipywidgets as widgets

from ..plots.words import format_count_and_noun, format_rough_duration
from ..studies.experiment import Event
from .controls import Controls
from .memory import return_freed_memory_to_system
from .record import RunRecord, describe_error_in_one_line
from .theme import make_paragraph_html

SWITCH = 0.001  # seconds; how long a control waits at most until a computing thread lets it run
QUICK = 0.1  # the least seconds between two messages on progress
# Before so many seconds or such a share of a run, the remaining time is not estimated.
EARLY_SECONDS = 2.0
EARLY_SHARE = 0.03
_local = threading.local()
_idle: list[SimpleQueue] = []  # of each idle thread, the queue from which it takes its next call
_lock = threading.Lock()
_previous: Callable[..., Any] = warnings.showwarning


Job = Callable[[], Any]  # returns a result, or a generator of events that returns one
OnJobEvent = Callable[[Any], None]  # called with each event of the generator
JobEnd = Literal["done", "stopped", "error"]
JobStatus = Literal["", "idle", "running", "done", "stopped", "error"]
OnJobEnd = Callable[[JobEnd, Exception | None, Any], None]  # how it ended, its error, its result


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

    def start_in_place_of_present_job(
        self,
        job: Job,
        on_event: OnJobEvent,
        on_end: OnJobEnd,
        between_events: Callable[[], None] | None = None,
    ) -> None:
        """Start a job. An older one is told to stop, and its events are ignored from now on.

        job: a function, or one that gives a generator of events
        on_event: called with each event of the generator, holding the lock
        on_end: called once, holding the lock, with how the job ended and what it returned
        between_events: called after each event without the lock. What takes long belongs there, as Stop
            waits for the lock
        """
        stopped = threading.Event()
        if between_events is None:
            between_events = do_nothing
        with self.lock:
            self.abandon_present_job()
            self._stopped = stopped
            self._on_end = on_end
        run = functools.partial(
            self._run_job_until_it_ends_or_is_stopped,
            stopped,
            job,
            on_event,
            on_end,
            between_events,
        )
        if self.inline:
            run()
            return
        with self.lock:
            self._jobs.add(run_on_idle_or_new_thread(run))

    def stop_present_job(self) -> None:
        """Stop the present job. `on_end("stopped", None, None)` is called at once; what the job does
        until its next step is ignored.
        """
        with self.lock:
            if self.is_busy:
                self.abandon_present_job()
                self._on_end("stopped", None, None)

    def abandon_present_job(self) -> None:
        """Ignore the present job, which ends at its next step. Its `on_end` is not called."""
        with self.lock:
            if self._stopped is not None:
                self._stopped.set()
            self._stopped = None

    def wait_until_all_jobs_end(self, timeout_seconds: float | None = None) -> bool:
        """Wait until nothing runs any more. Returns False if that took longer than `timeout_seconds` seconds.

        The job that calls this does not count: it would wait for itself.
        """
        end = math.inf if timeout_seconds is None else time.monotonic() + timeout_seconds
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
            wait(jobs, None if timeout_seconds is None else end - now, FIRST_COMPLETED)

    def _run_job_until_it_ends_or_is_stopped(
        self,
        stopped: threading.Event,
        job: Job,
        on_event: OnJobEvent,
        on_end: OnJobEnd,
        between_events: Callable[[], None],
    ) -> None:
        """Run a job to its end, or until `stopped` is set, which stands for it."""
        _route_warnings_to_panels()
        warned: list[str] = []
        _local.sink = warned.append
        job_end: JobEnd = "stopped"  # what an interrupted cell ends with, where the work is inline
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
                        self._report_and_clear_warnings(warned)
                        if self._stopped is stopped:
                            on_event(event)
                    if stopped.is_set():
                        break
                    between_events()
            job_end = "done"
        except Exception as caught:
            job_end = "error"
            error = caught
        finally:
            _local.sink = None
            with self.lock:
                self._report_and_clear_warnings(warned)
                if self._stopped is stopped:
                    self._stopped = None
                    on_end(job_end, error, result)
            return_freed_memory_to_system()

    def _report_and_clear_warnings(self, warning_texts: list[str]) -> None:
        """Report the warnings that a job has collected, and forget them."""
        for text in warning_texts:
            self.on_warning(text)
        warning_texts.clear()


def do_nothing() -> None:
    pass


def run_on_idle_or_new_thread(function: Callable[[], None]) -> Future[None]:
    """Call `function` on an idle thread, or on a new one.

    A new thread for each job would cost memory: the C library keeps what each thread has ever used (60 MB after 20
    runs).
    """
    future: Future[None] = Future()
    with _lock:
        if _idle:
            calls = _idle.pop()
        else:
            calls = SimpleQueue()
            threading.Thread(
                target=_run_calls_of_queue_forever,
                args=(calls,),
                name="fedlab_nb panel",
                daemon=True,
            ).start()
    calls.put((future, function))
    return future


def _run_calls_of_queue_forever(calls: SimpleQueue) -> None:
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


def _route_warnings_to_panels() -> None:
    """Route warnings that are raised in a worker's thread to its panel; all others go where they went before."""
    global _previous
    if warnings.showwarning is not _send_warning_to_panel:
        _previous = warnings.showwarning
        warnings.showwarning = _send_warning_to_panel


def _send_warning_to_panel(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    sink = getattr(_local, "sink", None)
    if sink is None:
        _previous(message, category, filename, lineno, file, line)
    else:
        sink(str(message))


def show_errors_in_status(callback: Callable[..., None]) -> Callable[..., None]:
    """Decorate a callback, whose exceptions a notebook would swallow: it holds its owner's lock
    `_guard`, and its owner's `_status` shows each error.
    """

    @functools.wraps(callback)
    def call(self: Any, *arguments: Any) -> None:
        with self._guard:
            try:
                callback(self, *arguments)
            except Exception as error:
                self._status.show_error(error)

    return call


class Status:
    """Shows a panel's status, phase, progress and errors.

    status: "idle", "running", "done", "stopped" or "error"
    traceback: of the last error
    panel: has the status as its CSS class `fl-status-…`, so that a browser can wait for it
    """

    def __init__(self, controls: Controls, panel: widgets.Widget) -> None:
        self._controls = controls
        self._panel = panel
        self.status: JobStatus = ""
        self.traceback = ""
        self._results = 1  # the number of results of the present run
        self._finished = 0  # how many of them are there
        self._start = 0.0  # seconds: when the present run began
        self._last_message = 0.0  # seconds: when progress was last shown
        self.set_status("idle")

    def set_status(self, status: JobStatus) -> None:
        self._panel.remove_class(f"fl-status-{self.status}").add_class(f"fl-status-{status}")
        self.status = status
        self._controls.enable_stop_if_running_else_run(self.is_running)

    @property
    def is_running(self) -> bool:
        return self.status == "running"

    def show_phase(self, text: str) -> None:
        self._controls.phase.value = make_paragraph_html(text, "status")

    def show_progress(self, finished_share: float) -> None:
        self._controls.progress.value = min(1.0, finished_share)

    def show_job_start(self, phase_text: str = "Starting …") -> None:
        """Show that a job begins."""
        self.show_progress(0)
        self.set_status("running")
        self.show_phase(phase_text)

    def show_job_end(self, job_end: JobEnd, error: Exception | None, phase_text: str = "") -> None:
        """Show that a job is over, and its error if it had one."""
        self.set_status(job_end)
        if error is not None:
            self.show_error(error)
        if job_end == "done":
            self.show_progress(1)
        self.show_phase(phase_text)

    def show_error(
        self, error: Exception, text_before: str = "", is_appended: bool = False
    ) -> None:
        """Show an error as one readable line, and keep its traceback.

        text_before: what the line begins with
        is_appended: the line stands below those that are there already, not in their place
        """
        self.traceback = "".join(traceback.format_exception(error))
        self._show_error_line(
            make_paragraph_html(text_before + describe_error_in_one_line(error), "alert"),
            is_appended,
        )

    def show_warning(self, text: str) -> None:
        self._show_error_line(make_paragraph_html(f"Note: {text}", "status"), is_appended=True)

    def empty_error_and_note_lines(self) -> None:
        self._controls.error.value = ""

    def _show_error_line(self, line_html: str, is_appended: bool) -> None:
        lines = self._controls.error.value if is_appended else ""
        if line_html not in lines:
            lines += line_html
        self._controls.error.value = lines

    def show_run_start(self, expected_result_count: int) -> None:
        """Show that a run begins which will give so many results; `show_run_event_and_check_end` and `show_run_end`
        follow it."""
        self._results = expected_result_count
        self._finished = 0
        self._start = time.monotonic()
        self.show_job_start()

    def show_run_event_and_check_end(self, event: Event, method_title: str) -> bool:
        """Show an event of the method `method_title`. Returns whether it ends that method on that seed."""
        has_ended = event.outcome is not None or event.error is not None
        if has_ended:
            self._finished += 1
        if event.error is not None:
            self.show_error(event.error, f"{method_title}: ", is_appended=True)
        now = time.monotonic()
        if has_ended or now - self._last_message > QUICK:
            self._last_message = now
            self._show_run_progress(event, method_title, has_ended, now - self._start)
        return has_ended

    def _show_run_progress(
        self, event: Event, method_title: str, has_ended: bool, elapsed_seconds: float
    ) -> None:
        """Show how far a run has come in so many seconds."""
        started = 0 if has_ended else event.done / max(event.total, 1)
        share = (self._finished + started) / self._results
        self.show_progress(share)
        steps = f" {event.done}/{event.total}" if event.total > 1 else ""
        text = f"{method_title}, {event.phase}{steps}, seed {event.seed}"
        results = f"{self._finished} of {self._results} results"
        self.show_phase(f"{text} ({results}{describe_time_left_or_empty(elapsed_seconds, share)})")

    def show_run_end(self, job_end: JobEnd, error: Exception | None, runs: RunRecord) -> None:
        """Show that a run is over, and how many results it has; "error" where all seeds failed."""
        results = sum(len(row.outcomes) for row in runs.current_rows)
        if not results and any(row.error for row in runs.current_rows):
            job_end = "error"
        self.show_job_end(job_end, error, describe_run_end(job_end, runs.number, results))


def describe_run_end(job_end: JobEnd, run_number: int, result_count: int) -> str:
    """Say how run `run_number` ended, and how many results it has.

    >>> describe_run_end("done", 2, 6), describe_run_end("stopped", 3, 1)
    ('Run 2 is done: 6 results.', 'Run 3 was stopped: 1 result so far.')
    >>> describe_run_end("stopped", 3, 0), describe_run_end("error", 4, 0)
    ('Run 3 was stopped before its first result.', 'Run 4 failed before its first result.')
    """
    results = format_count_and_noun(result_count, "result")
    if job_end == "done":
        return f"Run {run_number} is done: {results}."
    verb = "was stopped" if job_end == "stopped" else "failed"
    if result_count == 0:
        return f"Run {run_number} {verb} before its first result."
    return f"Run {run_number} {verb}: {results} so far."


def describe_time_left_or_empty(elapsed_seconds: float, finished_share: float) -> str:
    """Say what is left of a run of which `finished_share` took `elapsed_seconds`: ", about 40 s left"; "" as
    long as nobody can tell.

    >>> describe_time_left_or_empty(30, 0.6), describe_time_left_or_empty(600, 0.5)
    (', about 20 s left', ', about 10 min left')
    >>> describe_time_left_or_empty(0.5, 0.5), describe_time_left_or_empty(10, 0.001)
    ('', '')
    >>> describe_time_left_or_empty(10, 1.0)
    ''
    """
    if elapsed_seconds < EARLY_SECONDS or not EARLY_SHARE < finished_share < 1:
        return ""
    left = elapsed_seconds * (1 - finished_share) / finished_share
    return f", {format_rough_duration(left)} left"
