"""One worker for a panel: runs a job's generator step by step, in a thread or inline; it can be stopped between steps.

A job that was replaced by a newer one drops what it still yields. Errors and warnings are handed on, never printed.
"""

import ctypes
import threading
import time
import warnings
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

_local = threading.local()
_previous: Callable[..., Any] = warnings.showwarning


@dataclass(eq=False)
class Job:
    """One start of the worker."""

    make: Callable[[], Generator]
    on_event: Callable
    on_end: Callable
    stopped: threading.Event = field(default_factory=threading.Event)


class Worker:
    """Runs one job at a time. `lock` is held while a job's callbacks run, so they and the panel's own never interleave.

    on_event(event) is called for each event; on_end(how, error) once, with how = "done", "stopped" or "error";
    on_warning(text) for each warning that the job raises, at its next step: whoever warns may hold a lock of his own.
    """

    def __init__(self, lock: threading.RLock, *, inline: bool, on_warning: Callable[[str], None]) -> None:
        self.lock, self.inline, self.on_warning = lock, inline, on_warning
        self._job: Job | None = None
        self._threads: WeakSet[threading.Thread] = WeakSet()

    @property
    def busy(self) -> bool:
        return self._job is not None

    def start(self, make: Callable[[], Generator], on_event: Callable, on_end: Callable) -> None:
        """Begin a new job; an older one is told to stop and no longer heard."""
        job = Job(make, on_event, on_end)
        with self.lock:
            self.abandon()
            self._job = job
        if self.inline:
            self._run(job)
            return
        thread = threading.Thread(target=self._run, args=(job,), name="fedlab_nb panel", daemon=True)
        with self.lock:
            self._threads.add(thread)
            thread.start()

    def stop(self) -> bool:
        """Ask the present job to stop at its next step; False if there is none. `on_end("stopped", None)` follows."""
        job = self._job  # without the lock: Stop does not wait for a drawing
        if job is None:
            return False
        job.stopped.set()
        return True

    def abandon(self) -> None:
        """Stop the present job and hear no more of it."""
        with self.lock:
            self.stop()
            self._job = None

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing runs any more; False if that took longer than `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            with self.lock:
                threads = [t for t in self._threads if t.is_alive() and t is not threading.current_thread()]
            if not threads:
                return True
            for thread in threads:
                thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
                if thread.is_alive():
                    return False

    def _run(self, job: Job) -> None:
        _catch_warnings()
        warned: list[str] = []
        _local.sink = warned.append
        how, error = "stopped", None  # what an interrupted cell ends with, where the work is inline
        try:
            with closing(job.make()) as steps:
                for event in steps:
                    stopping = job.stopped.is_set()
                    if not stopping or getattr(event, "outcome", None) is not None:  # a finished result is kept
                        with self.lock:
                            self._pass_on(warned)
                            if self._job is job:
                                job.on_event(event)
                    if stopping:
                        break
            how = "stopped" if job.stopped.is_set() else "done"
        except Exception as caught:
            how, error = "error", caught
        finally:
            _local.sink = None
            with self.lock:
                self._pass_on(warned)
                if self._job is job:
                    self._job = None
                    job.on_end(how, error)
            _give_back()

    def _pass_on(self, warned: list[str]) -> None:
        for text in warned:
            self.on_warning(text)
        warned.clear()


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


def _show(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
    sink = getattr(_local, "sink", None)
    if sink is None:
        _previous(message, category, filename, lineno, file, line)
    else:
        sink(str(message))
