"""The playground: choose data, skew, clients and methods; run; see who holds what, accuracy, bytes, features, classes.

This file wires controls, worker, record, views and drawer together. It is thin: numbers come from `study`, pictures
from `draw`.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from threading import RLock
from typing import Any

import ipywidgets as widgets

from .. import data as data_
from ..errors import UsageError
from . import export, look, saved
from .controls import Controls
from .drawer import Drawer
from .ground import Ground, loading
from .progress import Course
from .record import Record
from .scene import Scene, caption, python
from .telling import Telling
from .views import Views
from .worker import Worker

WHAT_TO_DO = "Drag α or the clients, then press Run: the clients are trained and the ticked methods compared."
DEFAULT_METHODS = ("local", "fedavg", "ensemble", "fens", "fedlpa")
RESULTS = ("accuracy", "communication", "features", "classes")
REDRAW = 0.15  # seconds between two drawings while a job runs, at least; and drawing takes at most a third of the time


def guarded(method: Callable) -> Callable:
    """For callbacks, whose exceptions a notebook would swallow: hold the panel's lock, show each error in the panel."""

    @functools.wraps(method)
    def call(self: Playground, *arguments: Any) -> Any:
        with self._guard:
            try:
                return method(self, *arguments)
            except Exception as error:
                self._telling.fail(error)

    return call


class Playground(widgets.VBox):
    """See `fedlab_nb.panels.playground`. Public: run, stop, wait, close, code, export, outcomes, status, error,
    sentence.
    """

    def __init__(
        self,
        *,
        inline: bool,
        job: Callable[..., Generator],
        hide: Iterable[str],
        fixed: Mapping[str, Any],
        methods: Iterable[str],
        chosen: Mapping[str, Any],
        extra: Mapping[str, Any],
    ) -> None:
        self._guard = RLock()
        self._job = job
        self._worker = Worker(self._guard, inline=inline, on_warning=self._warn)
        self._record, self._scene = Record(), Scene()
        self._dirty: set[str] = set(RESULTS)
        self._drawn, self._cost = 0.0, 0.0
        self.controls, self.views, self.drawer = Controls(), Views(), Drawer(self._pinned)
        self._ground = Ground(self.controls, self._scene, dict(extra))
        style = widgets.HTML(f"<style>{look.STYLE}</style>")
        style.add_class("fl-style")
        body = widgets.Box([self.controls.layout(), self.views.box])
        body.add_class("fl-body")
        super().__init__([style, body, self.drawer.box])
        self.add_class("fl-root").add_class("fl-live").add_class("fl-playground")
        self._telling = Telling(self, self.controls)
        self._course = Course(self._record, self._telling, self.controls, self._changed)
        self.controls.methods.value = methods
        for name, value in {**chosen, **fixed}.items():
            (self.controls.fix if name in fixed else self.controls.put)(name, value)
        self.controls.methods.ticked_first()
        self.controls.hide(list(hide))
        self._listen()
        self._telling.phase("Ready.")
        self._load_now()

    def _listen(self) -> None:
        c = self.controls
        for widget in (c.dataset, c.path):
            widget.observe(lambda _: self._data_changed(), "value")
        for widget in (c.alpha, c.clients, c.seed):
            widget.observe(lambda _: self._partition_changed(), "value")
        for widget in (c.seeds, c.device):
            widget.observe(lambda _: self._choice_changed(), "value")
        c.epochs.observe(lambda _: self._epochs_changed(), "value")
        c.methods.observe(lambda _: self._choice_changed())
        c.run.on_click(lambda _: self._start())
        c.stop.on_click(lambda _: self.stop())
        self.views.on_choice(self._redraw)
        self.views.client.observe(lambda _: self._client_chosen(), "value")
        self.drawer.clear.on_click(lambda _: self._clear())
        self.drawer.export.on_click(lambda _: self._export_clicked())

    # ------------------------------------------------------------------------------------------------ what others use
    @property
    def status(self) -> str:
        """ "idle", "running", "done", "stopped" or "error"; also a CSS class of the panel, `fl-status-…`."""
        return self._telling.status

    @property
    def error(self) -> str:
        """The traceback of the last error, or nothing."""
        return self._telling.traceback

    @property
    def outcomes(self) -> Any:
        """Every outcome in the record of runs, oldest first."""
        from ..study import Outcomes

        return Outcomes(self._record.outcomes)

    @property
    def sentence(self) -> str:
        """What the visible view says."""
        return getattr(self.views[self.views.visible].picture, "sentence", "")

    def run(self, wait: bool = False, timeout: float | None = None) -> None:
        """Press Run; with `wait`, return when all is done, or after `timeout` seconds. Interrupting it is Stop."""
        self._start()
        if wait:
            self.wait(timeout)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for whatever runs; False if that took longer than `timeout` seconds."""
        try:
            return self._worker.wait(timeout)
        except KeyboardInterrupt:
            self.stop()
            raise

    def stop(self) -> None:
        """Press Stop: the work ends at its next step, finished results stay. Without work nothing happens."""
        if self._worker.stop() and self.status == "running":
            self._telling.phase("Stopping …")

    def close(self) -> None:
        """Stop the work, wait for its thread, and remove the widget. The outcomes stay."""
        if hasattr(self, "_worker"):
            self._worker.abandon()
            self._worker.wait(20)
        super().close()

    def code(self) -> str:
        """The Python lines that do what is on the screen: the run that Run would start, and the pinned ones."""
        lines = ["import fedlab_nb as fl", "", f"outs = {python(self.controls.methods.value, self._ground.settings())}"]
        pinned: dict[int, list[Any]] = {}
        for row in self._record.rows:
            if row.pinned:
                pinned.setdefault(row.run, []).append(row)
        for run, rows in pinned.items():
            lines.append(f"run_{run} = {python([row.method for row in rows], dict(rows[0].settings))}")
        return "\n".join([*lines, "outs.table()"])

    def export(self, folder: str | Path = "results/playground") -> Path:
        """Write runs.csv, runs.json, reproduce.py and a PNG of each picture; returns the folder (a fresh one, if it has
        files).
        """
        with self._guard:
            pictures = {"partition": self._ground.picture(self.views.chosen), "handout": self._handout()}
            if self._has_results():
                for _ in self._scene.embed(self._scene.missing(self._record)):
                    pass
                client = self.views.chosen
                pictures |= {name: self._scene.result(name, self._record, client) for name in RESULTS}
            return export.write(folder, self._record, pictures, self.code())

    def __repr__(self) -> str:
        return self._handout().sentence if self._ground.federation is not None else "a playground without data"

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return saved.bundle(super()._repr_mimebundle_(**kwargs), self._handout())

    def _ipython_display_(self) -> None:
        saved.display(super()._repr_mimebundle_(), self._handout())

    # ------------------------------------------------------------------------------------------------ data and
    # partition
    def _data_changed(self) -> None:
        """Load the chosen data set in the background."""
        with self._guard:
            self._telling.clear()
            try:
                name = self.controls.data
            except UsageError as error:
                self.controls.path.layout.display = None
                self._without_data(error)
                return
            self._show_path()
            self._ground.federation = None  # until the new data are there, sliders have nothing to deal out
            self._telling.set("running")
            self._telling.phase(f"Loading {name} …")
            self._work(lambda: loading(name), lambda event: None, self._loaded)

    def _loaded(self, how: str, error: Exception | None) -> None:
        self._telling.set("idle" if how == "done" else how)
        self._telling.phase("Ready." if how == "done" else "")
        if how == "done":
            self._use()
        else:
            self._without_data(error or UsageError("Loading was stopped; choose the data set again."))

    def _load_now(self) -> None:
        """The first data set, at once: the first view is complete."""
        with self._guard:
            self._show_path()
            try:
                data_.load(self.controls.data)
            except Exception as error:
                self._without_data(error)
            else:
                self._use()

    @guarded
    def _use(self) -> None:
        """Go over to the chosen data set, which is loaded."""
        self._ground.adapt()
        self._partition_is_new()

    def _without_data(self, error: Exception) -> None:
        self._ground.federation = None
        self.controls.facts.value = ""
        self.views["partition"].say("No data to show.")
        self._telling.fail(error)

    def _show_path(self) -> None:
        self.controls.path.layout.display = None if self.controls.dataset.value == "own file" else "none"

    @guarded
    def _partition_changed(self) -> None:
        if self._ground.federation is not None:
            self._telling.clear()
            self._ground.deal()
            self._partition_is_new()

    def _partition_is_new(self) -> None:
        self.views.set_clients(self._ground.federation.clients)
        self.controls.facts.value = look.paragraph(self._ground.facts())
        self._choices()
        self._dirty.add("partition")
        self._draw()

    # ------------------------------------------------------------------------------------------------ other choices
    @guarded
    def _choice_changed(self) -> None:
        self._choices()

    @guarded
    def _epochs_changed(self) -> None:
        self.controls.note_epochs(self._ground.samples)
        self._choices()

    def _choices(self) -> None:
        """Bring up to date what depends on the choices alone: the Python lines, the captions of the result views."""
        self.drawer.code.value = f"<pre>{look.escape(self.code())}</pre>"
        for name in RESULTS:
            self.views[name].caption.value = look.paragraph(self._caption())

    def _caption(self) -> str:
        return caption(self._record, self._ground.settings())

    @guarded
    def _client_chosen(self) -> None:
        self._dirty |= {"partition", *RESULTS}
        self._draw()

    def _pinned(self) -> None:
        with self._guard:
            self._dirty |= set(RESULTS)
            self._choices()
            self._draw()

    @guarded
    def _clear(self) -> None:
        self._record.clear(keep_current=self.status == "running")
        self._dirty |= set(RESULTS)
        self.drawer.show(self._record)
        self._choices()
        self._draw()

    @guarded
    def _export_clicked(self) -> None:
        self._telling.clear()
        self.drawer.written.value = ""
        place = self.export(self.drawer.folder.value.strip() or "results/playground")
        self.drawer.written.value = look.paragraph(
            f"Written: {', '.join(sorted(p.name for p in place.iterdir()))} in {place}."
        )

    # ------------------------------------------------------------------------------------------------ a run
    @guarded
    def _start(self) -> None:
        self._telling.clear()
        methods = self.controls.methods.value
        if not methods:
            raise UsageError("No method is ticked; tick at least one.")
        settings = self._ground.settings()
        if self._ground.federation is None:
            self._ground.adapt()  # tells again what is wrong with the data, or finds them there at last
            self._partition_is_new()
        steps = self._job(list(methods), **settings)
        classes = self._ground.federation.dataset.class_names
        self._record.begin(methods, settings, self.controls.epochs.value, classes)
        self._course.begin(len(methods) * settings["seeds"])
        self._dirty |= set(RESULTS)
        self.drawer.show(self._record)
        self._choices()
        if self.drawer.tabs.value == "methods":
            self.drawer.tabs.value = "runs"
        if self.views.visible == "partition":
            self.views.choose("accuracy")
        else:
            self._draw()
        self._work(lambda: steps, self._course.event, self._course.end)

    def _work(self, make: Callable, on_event: Callable, on_end: Callable) -> None:
        """Give the worker a job; maps in the making are given up."""
        self.remove_class("fl-mapping")
        self._worker.start(make, on_event, on_end)

    def _changed(self, at_end: bool) -> None:
        """There are new results: draw them, at the end surely, before that not too often."""
        self._dirty |= set(RESULTS)
        if at_end or time.monotonic() - self._drawn > max(REDRAW, 2 * self._cost):
            self.drawer.show(self._record)
            self._redraw()

    # ------------------------------------------------------------------------------------------------ drawing
    @guarded
    def _redraw(self) -> None:
        self._draw()

    def _draw(self) -> None:
        """Draw the visible view if it is out of date; the others wait until they are looked at."""
        name = self.views.visible
        if name == "partition" and self._ground.federation is None:
            return
        if name in self._dirty:
            start = time.monotonic()
            if name == "partition":
                title = f"{self._ground.words()}. Smaller α is more skewed."
                self.views[name].show(self._ground.picture(self.views.chosen), title)
            elif self._has_results() or any(row.live for row in self._record.current):
                self.views[name].show(self._scene.result(name, self._record, self.views.chosen), self._caption())
            else:
                self.views[name].say("Training …" if self.status == "running" else WHAT_TO_DO, self._caption())
            self._dirty.discard(name)
            self.views.show_table()
            self._drawn = time.monotonic()
            self._cost = self._drawn - start
        if name == "features":
            self._map_features()

    def _has_results(self) -> bool:
        return any(row.outcomes for row in self._record.current)

    def _map_features(self) -> None:
        """Replace the PCA preview by t-SNE in the background, once nothing else runs."""
        if self._worker.busy or not self._has_results():
            return
        missing = self._scene.missing(self._record)
        if not missing:
            return
        self.add_class("fl-mapping")

        def ended(how: str, error: Exception | None) -> None:
            self.remove_class("fl-mapping")
            if error is not None:
                self._telling.fail(error)
            else:
                self._dirty.add("features")
                if self.views.visible == "features":
                    self._redraw()

        self._worker.start(lambda: self._scene.embed(missing), lambda event: None, ended)

    def _warn(self, text: str) -> None:
        with self._guard:
            self._telling.warn(text)

    def _handout(self) -> Any:
        with self._guard:
            if self._ground.federation is None:
                return saved.without_data(self.controls.error.value)
            return self._scene.handout(self._ground.federation, self._record, self._ground.words(), WHAT_TO_DO)
