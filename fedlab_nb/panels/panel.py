"""A panel: choose data, skew, clients and methods; run; see who holds what, accuracy, bytes, features, classes.

The playground is one, and so is each lab, with its method's knobs and views of its own (`LabSpec`). This file wires
controls, worker, record, views and drawer together. It is thin: numbers come from `study`, pictures from `draw`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from threading import RLock
from typing import Any

import ipywidgets as widgets

from .. import data as data_
from ..errors import UsageError, choose
from . import export, look, saved
from .controls import Controls
from .drawer import Drawer
from .easel import RESULTS, WHAT_TO_DO, Easel
from .ground import PARTITION_SETTINGS, Ground, loading
from .lab_view import LabSpec
from .own_views import OwnViews
from .progress import Course
from .record import Record
from .scene import Scene, python
from .telling import Telling
from .views import Views
from .worker import Worker

DEFAULT_METHODS = ("local", "fedavg", "ensemble", "fens", "fedlpa")


def guarded(method: Callable) -> Callable:
    """For callbacks, whose exceptions a notebook would swallow: hold the panel's lock, show each error in the panel."""

    @functools.wraps(method)
    def call(self: Panel, *arguments: Any) -> Any:
        with self._guard:
            try:
                return method(self, *arguments)
            except Exception as error:
                self._telling.fail(error)

    return call


class Panel(widgets.VBox):
    """See `fedlab_nb.panels`. Public: run, stop, wait, close, code, export, outcomes, status, error, sentence."""

    def __init__(
        self,
        *,
        inline: bool,
        spec: LabSpec,
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
        self.spec, self.record, self._scene = spec, Record(), Scene()
        self.controls, self.own = Controls(spec), OwnViews(self)
        self.views = Views(
            {name: (view.title, self.own.tools(name)) for name, view in self.own.views.items()}, spec.last
        )
        self.drawer = Drawer(self._pinned, spec.name)
        self.ground = Ground(self.controls, self._scene, dict(extra))
        self._easel = Easel(self, self._worker, self._scene)
        style = widgets.HTML(f"<style>{look.STYLE}</style>")
        style.add_class("fl-style")
        body = widgets.Box([self.controls.layout(), self.views.box])
        body.add_class("fl-body")
        super().__init__([style, body, self.drawer.box])
        self.add_class("fl-root").add_class("fl-live").add_class(f"fl-{spec.name}")
        self._telling = Telling(self, self.controls)
        self._course = Course(self.record, self._telling, self.controls, self._changed)
        self.controls.methods.value = [name for name in methods if name != spec.method]
        for name, value in {**chosen, **fixed}.items():
            (self.controls.fix if name in fixed else self.controls.put)(name, value)
        self.controls.methods.ticked_first()
        self._easel.show_stored = "stored" not in hide
        self.controls.hide([name for name in hide if name != "stored"])
        self._listen()
        self._telling.phase("Ready.")
        self._load_now()
        if spec.first != "partition":
            self.views.choose(spec.first)

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
        c.guess.method.observe(lambda _: self._choice_changed(), "value")
        if c.knobs:
            c.knobs.observe(lambda _: self._knob_changed())
        for name, widget in c.extras.items():
            widget.observe(lambda _, name=name: self._extra_changed(name), "value")
        for name, view in self.own.views.items():
            for widget in view.controls:
                widget.observe(lambda _, name=name: self._own_changed(name), "value")
        for name, button in self.own.buttons.items():
            button.on_click(lambda _, name=name: self._work_clicked(name))
        c.run.on_click(lambda _: self._start())
        c.stop.on_click(lambda _: self.stop())
        self.views.on_choice(self.redraw)
        for widget in (self.views.client, self.views.klass):
            widget.observe(lambda _: self._looked_at(), "value")
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

        return Outcomes(self.record.outcomes)

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

    def show(self, view: str) -> Any:
        """Turn to a view by its name, wait until it is drawn, and return its Picture (None: there is none yet)."""
        self.views.choose(choose("view", view, self.views.views))
        self.wait()
        return self.views[view].picture

    def work(self, view: str) -> Any:
        """Press the button of a lab's view, wait for the end, and return the view's Picture."""
        self.views.choose(choose("view with a button", view, self.own.buttons))
        self._work_clicked(view)
        self.wait()
        return self.views[view].picture

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

    @property
    def methods(self) -> tuple[str, ...]:
        """What Run runs: the lab's method first, then those that are ticked."""
        own = (self.spec.method,) if self.spec.method else ()
        return (*own, *self.controls.methods.value)

    def code(self) -> str:
        """The Python lines that do what is on the screen: the run that Run would start, and the pinned ones."""
        lines = ["import fedlab_nb as fl", "", f"outs = {python(self.methods, self.ground.settings())}"]
        pinned: dict[int, list[Any]] = {}
        for row in self.record.rows:
            if row.pinned:
                pinned.setdefault(row.run, []).append(row)
        for run, rows in pinned.items():
            lines.append(f"run_{run} = {python([row.method for row in rows], dict(rows[0].settings))}")
        return "\n".join([*lines, "outs.table()"])

    def export(self, folder: str | Path | None = None) -> Path:
        """Write runs.csv, runs.json, reproduce.py, each picture as PNG and SVG; returns the folder (a fresh one, if
        this one has files).
        """
        with self._guard:
            client, klass = self.views.chosen, self.views.chosen_class
            pictures = {"partition": self.ground.picture(client, klass), "handout": self._handout()}
            if self._easel.has_results:
                for _ in self._scene.embed(self._scene.missing(self.record)):
                    pass
                pictures |= {name: self._scene.result(name, self.record, client, klass) for name in RESULTS}
            for name in self.own.views:
                if (picture := self.views[name].picture) is not None:
                    pictures[name] = picture
            return export.write(folder or f"results/{self.spec.name}", self.record, pictures, self.code())

    def __repr__(self) -> str:
        return self._handout().sentence if self.ground.federation is not None else "a panel without data"

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
            self.ground.federation = None  # until the new data are there, sliders have nothing to deal out
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
        self.ground.adapt()
        self._partition_is_new()

    def _without_data(self, error: Exception) -> None:
        self.ground.federation = None
        self.controls.facts.value = ""
        self.views["partition"].say("No data to show.")
        self._telling.fail(error)

    def _show_path(self) -> None:
        self.controls.path.layout.display = None if self.controls.dataset.value == "own file" else "none"

    @guarded
    def _partition_changed(self) -> None:
        if self.ground.federation is not None:
            self._telling.clear()
            self.ground.deal()
            self._partition_is_new()

    def _partition_is_new(self) -> None:
        self.views.set_clients(self.ground.federation.clients)
        self.views.set_classes(self.ground.class_names)
        self.controls.facts.value = look.paragraph(self.ground.facts())
        self._choices()
        self._easel.mark("partition", *self.own.views, *(("accuracy",) if self._easel.tells_stored else ()))
        self._easel.draw()

    # ------------------------------------------------------------------------------------------------ other choices
    @guarded
    def _choice_changed(self) -> None:
        self._choices()
        self._easel.mark(*(name for name, view in self.own.views.items() if view.ready == "always"))
        if self._easel.tells_stored:
            self._easel.mark("partition", "accuracy")
        self._easel.draw()

    @guarded
    def _epochs_changed(self) -> None:
        self.controls.note_epochs(self.ground.samples)
        self._choices()

    @guarded
    def _knob_changed(self) -> None:
        self._telling.clear()
        self._choices()
        self._easel.mark(*self.own.views)
        self._easel.draw()

    @guarded
    def _extra_changed(self, name: str) -> None:
        if name in PARTITION_SETTINGS:
            self._partition_changed()
        else:
            self._choice_changed()

    @guarded
    def _own_changed(self, name: str) -> None:
        if self._easel.adapting != name:
            self._easel.mark(name)
            self._easel.draw()

    def _choices(self) -> None:
        """Bring up to date what depends on the choices alone: the Python lines, the captions of the result views."""
        self.controls.guess.offer(self.methods)
        self.drawer.code.value = f"<pre>{look.escape(self.code())}</pre>"
        for name in self._easel.results:
            self.views[name].caption.value = look.paragraph(self._easel.caption)

    @guarded
    def _looked_at(self) -> None:
        self._easel.mark("partition", *self._easel.results)
        self._easel.draw()

    def _pinned(self) -> None:
        with self._guard:
            self._easel.mark(*self._easel.results)
            self._choices()
            self._easel.draw()

    @guarded
    def _clear(self) -> None:
        self.record.clear(keep_current=self.status == "running")
        self._easel.mark(*self._easel.results)
        self.drawer.show(self.record)
        self._choices()
        self._easel.draw()

    @guarded
    def _export_clicked(self) -> None:
        self._telling.clear()
        self.drawer.written.value = ""
        place = self.export(self.drawer.folder.value.strip() or None)
        self.drawer.written.value = look.paragraph(
            f"Written: {', '.join(sorted(p.name for p in place.iterdir()))} in {place}."
        )

    # ------------------------------------------------------------------------------------------------ a run
    @guarded
    def _start(self) -> None:
        self._telling.clear()
        methods = self.methods
        if not methods:
            raise UsageError("No method is ticked; tick at least one.")
        settings = self.ground.settings()
        if self.ground.federation is None:
            self.ground.adapt()  # tells again what is wrong with the data, or finds them there at last
            self._partition_is_new()
        steps = self._job(list(methods), **settings)
        classes = self.ground.federation.dataset.class_names
        self.record.begin(methods, settings, self.controls.epochs.value, classes)
        if (guess := self.controls.guess.committed) is not None and (row := self.record.find(guess[0])) is not None:
            row.guess = guess[1]
        self.own.begin()
        self._course.begin(len(methods) * settings["seeds"])
        self._easel.mark(*self._easel.results)
        self.drawer.show(self.record)
        self._choices()
        if self.drawer.tabs.value == "methods":
            self.drawer.tabs.value = "runs"
        self._work(lambda: steps, self._heard, self._course.end)
        if self.views.visible == "partition":
            self.views.choose(next((n for n, v in self.own.views.items() if v.ready == "live"), "accuracy"))
        else:
            self._easel.draw()

    def _heard(self, event: Any) -> None:
        self.own.hear(event)
        self._course.event(event)

    @guarded
    def _work_clicked(self, name: str) -> None:
        """A view's own button: its work in the worker, then its picture."""
        view = self.own.views[name]
        found = self.own.look(name)
        self._telling.clear()
        if not self.own.is_ready(name, found):
            raise UsageError(f"{view.work_label} needs a result; press Run first.")
        self._telling.set("running")
        self._telling.phase("Starting …")
        self.controls.progress.value = 0

        def heard(step: Any) -> None:
            done, total, words = step
            self.controls.progress.value = min(1.0, done / max(total, 1))
            self._telling.phase(f"{view.title}: {words}")

        def ended(how: str, error: Exception | None) -> None:
            self._telling.set(how)
            if error is not None:
                self._telling.fail(error)
            if how == "done":
                self.controls.progress.value = 1.0
            self._telling.phase({"done": "Done.", "stopped": "Stopped."}.get(how, ""))
            self._easel.mark(name)
            self.redraw()

        self._work(lambda: self.own.working(name), heard, ended)

    def _work(self, make: Callable, on_event: Callable, on_end: Callable) -> None:
        """Give the worker a job; maps in the making are given up."""
        self.remove_class("fl-mapping")
        self._worker.start(make, on_event, on_end)

    def _changed(self, at_end: bool) -> None:
        """There are new results: draw them, at the end surely, before that not too often."""
        self._easel.mark(*self._easel.results)
        if at_end or self._easel.rested:
            self.drawer.show(self.record)
            self.redraw()

    # ------------------------------------------------------------------------------------------------ drawing
    @guarded
    def redraw(self) -> None:
        """Draw the visible view if it is out of date."""
        self._easel.draw()

    def tell_error(self, error: Exception) -> None:
        """One readable line in the panel; the traceback is kept in `error`."""
        self._telling.fail(error)

    def _warn(self, text: str) -> None:
        with self._guard:
            self._telling.warn(text)

    def _handout(self) -> Any:
        with self._guard:
            if self.ground.federation is None:
                return saved.without_data(self.controls.error.value)
            return self._scene.handout(self.ground.federation, self.record, self.ground.words(), WHAT_TO_DO)
