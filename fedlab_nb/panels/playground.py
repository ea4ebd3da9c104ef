"""The playground: choose data, skew, clients and methods; run; see who holds what, accuracy, bytes, features, classes.

This file wires controls, worker, record, views and drawer together. It is thin: numbers come from `study`, pictures from `draw`.
"""

from __future__ import annotations

import functools
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from threading import RLock
from typing import Any

import ipywidgets as widgets

from .. import data as data_
from ..draw.words import data_size, plural
from ..errors import FedlabError, UsageError
from . import export, look, saved
from .controls import Controls
from .drawer import Drawer
from .estimate import model_bytes
from .record import Record
from .scene import Scene, python, words
from .views import Views
from .worker import Worker

WHAT_TO_DO = "Drag α or the clients, then press Run: the clients are trained and the ticked methods compared."
DEFAULT_METHODS = ("local", "fedavg", "ensemble", "fens", "fedlpa")
RESULTS = ("accuracy", "communication", "features", "classes")
REDRAW = 0.15  # seconds between two drawings while a job runs, at least; and drawing takes at most a third of the time


def guarded(method: Callable) -> Callable:
    """For callbacks, whose exceptions a notebook would swallow: hold the panel's lock, show every error in the panel."""

    @functools.wraps(method)
    def call(self: Playground, *arguments: Any) -> Any:
        with self._guard:
            try:
                return method(self, *arguments)
            except Exception as error:
                self._fail(error)

    return call


class Playground(widgets.VBox):
    """See `fedlab_nb.panels.playground`. Public: run, stop, wait, close, code, export, outcomes, status, error, sentence."""

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
        self.error = ""  # the traceback of the last error
        self._guard = RLock()
        self._job, self._extra = job, dict(extra)
        self._worker = Worker(self._guard, inline=inline, on_warning=self._warn)
        self._record, self._scene = Record(), Scene()
        self._federation: Any = None
        self._dirty: set[str] = set(RESULTS)
        self._drawn, self._cost, self._told = 0.0, 0.0, 0.0
        self.controls, self.views, self.drawer = Controls(), Views(), Drawer(self._pinned)
        style = widgets.HTML(f"<style>{look.STYLE}</style>")
        style.add_class("fl-style")
        body = widgets.Box([self.controls.layout(), self.views.box])
        body.add_class("fl-body")
        super().__init__([style, body, self.drawer.box])
        self.add_class("fl-root").add_class("fl-live").add_class("fl-playground")
        self._status = ""
        self._set_status("idle")
        self.controls.methods.value = methods
        for name, value in {**chosen, **fixed}.items():
            (self.controls.fix if name in fixed else self.controls.put)(name, value)
        self.controls.hide(list(hide))
        self._listen()
        self._phase("Ready.")
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
        self.views.on_choice(self._view_chosen)
        self.views.client.observe(lambda _: self._client_chosen(), "value")
        self.drawer.clear.on_click(lambda _: self._clear())
        self.drawer.export.on_click(lambda _: self._export_clicked())

    # ------------------------------------------------------------------------------------------------ what others use
    @property
    def status(self) -> str:
        """"idle", "running", "done", "stopped" or "error"; also a CSS class of the panel, `fl-status-…`."""
        return self._status

    @property
    def outcomes(self) -> Any:
        """Every outcome in the record of runs, oldest first."""
        from ..study import Outcomes

        return Outcomes(self._record.outcomes)

    @property
    def sentence(self) -> str:
        """What the visible view says."""
        picture = self.views[self.views.visible].picture
        return picture.sentence if picture else ""

    def run(self, wait: bool = False, timeout: float | None = None) -> None:
        """Press Run; with `wait`, return when everything is done (or after `timeout` seconds). Interrupting it is Stop."""
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
        if self._worker.stop() and self._status == "running":
            self._phase("Stopping …")

    def close(self) -> None:
        """Stop the work, wait for its thread, and remove the widget. The outcomes stay."""
        if hasattr(self, "_worker"):
            self._worker.abandon()
            self._worker.wait(20)
        super().close()

    def code(self) -> str:
        """The Python lines that do what is on the screen: the run that Run would start, and the pinned ones."""
        lines = ["import fedlab_nb as fl", "", f"outs = {python(self.controls.methods.value, self._settings())}"]
        pinned: dict[int, list[Any]] = {}
        for row in self._record.rows:
            if row.pinned:
                pinned.setdefault(row.run, []).append(row)
        for run, rows in pinned.items():
            lines.append(f"run_{run} = {python([row.method for row in rows], dict(rows[0].settings))}")
        return "\n".join([*lines, "outs.table()"])

    def export(self, folder: str | Path = "results/playground") -> Path:
        """Write runs.csv, runs.json, reproduce.py and a PNG of each picture; returns the folder (a fresh one, if it has files)."""
        with self._guard:
            pictures = {"partition": self._partition_picture(), "handout": self._handout()}
            if self._has_results():
                for _ in self._scene.embed(self._scene.missing(self._record)):
                    pass
                client = self.views.client.value
                pictures |= {name: self._scene.result(name, self._record, client) for name in RESULTS}
            return export.write(folder, self._record, pictures, self.code())

    def __repr__(self) -> str:
        return self._handout().sentence if self._federation is not None else "a playground without data"

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return saved.bundle(super()._repr_mimebundle_(**kwargs), self._handout())

    def _ipython_display_(self) -> None:
        saved.display(super()._repr_mimebundle_(), self._handout())

    # ------------------------------------------------------------------------------------------------ data and partition
    def _settings(self) -> dict[str, Any]:
        return {**self.controls.settings(), **self._extra}

    def _data_changed(self) -> None:
        """Load the chosen data set in the background."""
        with self._guard:
            self._clear_error()
            try:
                name = self.controls.data
            except UsageError as error:
                self.controls.path.layout.display = None
                self._without_data(error)
                return
            self._show_path()
            self._set_status("running")
            self._phase(f"Loading {name} …")
            self._worker.start(lambda: loading(name), lambda event: None, self._loaded)

    def _loaded(self, how: str, error: Exception | None) -> None:
        self._set_status("idle" if how == "done" else how)
        self._phase("Ready." if how == "done" else "")
        if error is not None:
            self._without_data(error)
        elif how == "done":
            self._use()

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
        """Adapt to the chosen data set, which is loaded."""
        self._federation = None
        self.controls.adapt(len(data_.load(self.controls.data).y_train))
        self._update_partition()

    def _without_data(self, error: Exception) -> None:
        self._federation = None
        self.controls.facts.value = ""
        self.views["partition"].say("No data to show.")
        self._fail(error)

    def _show_path(self) -> None:
        self.controls.path.layout.display = None if self.controls.dataset.value == "own file" else "none"

    @guarded
    def _partition_changed(self) -> None:
        if self._federation is not None:
            self._clear_error()
            self._update_partition()

    def _update_partition(self) -> None:
        settings = self._settings()
        keys = ("partition", "classes_per_client", "spurious", "tint")
        options = {k: settings[k] for k in ("alpha", "clients", "seed", *keys) if k in settings}
        if isinstance(options.get("spurious"), str):
            options["spurious"] = [int(k) for k in options["spurious"].split(",") if k]
        self._federation = data_.federate(settings["dataset"], **options)
        self.views.set_clients(self._federation.clients)
        self._facts(settings)
        self._choices(settings)
        self._dirty.add("partition")
        self._draw()

    def _facts(self, settings: Mapping[str, Any]) -> None:
        skew, dataset = self._federation.skew, self._federation.dataset
        size = model_bytes(settings.get("model", "auto"), dataset.input_shape, dataset.classes)
        self.controls.facts.value = look.paragraph(
            f"A client effectively sees {skew.effective_classes:.1f} of {dataset.classes} classes (skew "
            f"{skew.jensen_shannon:.2f}). Uploading its model once costs it {data_size(size)}, all "
            f"{plural(self._federation.clients, 'client')} {data_size(size * self._federation.clients)}."
        )

    def _partition_picture(self) -> Any:
        if self._federation is None:
            raise UsageError("There is no data to draw; choose a data set first.")
        return self._scene.partition(self._federation, self._now(), self.views.client.value)

    def _now(self) -> str:
        """The partition's setting in words: that of the first seed."""
        return words({**self._settings(), "seeds": 1})

    # ------------------------------------------------------------------------------------------------ other choices
    @guarded
    def _choice_changed(self) -> None:
        self._choices(self._settings())

    @guarded
    def _epochs_changed(self) -> None:
        samples = None if self._federation is None else len(self._federation.dataset.y_train)
        self.controls.note_epochs(samples)
        self._choices(self._settings())

    def _choices(self, settings: Mapping[str, Any]) -> None:
        self.drawer.code.value = f"<pre>{look.escape(self.code())}</pre>"
        for name in RESULTS:
            self.views[name].caption.value = look.paragraph(self._caption(settings))

    def _caption(self, settings: Mapping[str, Any]) -> str:
        """What a result view shows, and whether the controls have moved on since."""
        current = self._record.current
        if not current:
            return ""
        then = current[0].settings
        moved = {k: v for k, v in settings.items() if k != "device"} != {k: v for k, v in then.items() if k != "device"}
        return f"Run {self._record.run}: {words(dict(then))}" + (" (the controls have moved: press Run)" if moved else "")

    @guarded
    def _client_chosen(self) -> None:
        self._dirty |= {"partition", *RESULTS}
        self._draw()

    def _pinned(self) -> None:
        with self._guard:
            self._dirty |= set(RESULTS)
            self._choices(self._settings())
            self._draw()

    @guarded
    def _clear(self) -> None:
        self._worker.abandon()
        self._record.clear()
        self._dirty |= set(RESULTS)
        self.drawer.show(self._record)
        self._choices(self._settings())
        self._draw()

    @guarded
    def _export_clicked(self) -> None:
        self._clear_error()
        self.drawer.written.value = ""
        place = self.export(self.drawer.folder.value.strip() or "results/playground")
        self.drawer.written.value = look.paragraph(f"Written: {', '.join(sorted(p.name for p in place.iterdir()))} in {place}.")

    # ------------------------------------------------------------------------------------------------ a run
    @guarded
    def _start(self) -> None:
        self._clear_error()
        methods = self.controls.methods.value
        if not methods:
            raise UsageError("No method is ticked; tick at least one.")
        settings = self._settings()
        if self._federation is None:
            data_.load(settings["dataset"])  # tells again what is wrong with it
            self._use()
        steps = self._job(list(methods), **settings)
        self._record.tidy()
        classes = self._federation.dataset.class_names
        self._record.begin(methods, settings, self.controls.epochs.value, classes)
        self._units, self._finished = len(methods) * settings["seeds"], 0
        self.controls.progress.value = 0
        self._set_status("running")
        self._phase("Starting …")
        self._dirty |= set(RESULTS)
        self.drawer.show(self._record)
        self._choices(settings)
        if self.drawer.tabs.value == "methods":
            self.drawer.tabs.value = "runs"
        if self.views.visible == "partition":
            self.views.choose("accuracy")
        else:
            self._draw()
        self._worker.start(lambda: steps, self._on_event, self._on_end)

    def _on_event(self, event: Any) -> None:
        row = self._record.find(event.method)
        if row is None:
            return
        if event.curve is not None:
            row.live.setdefault(event.seed, []).append(event.curve)
        if event.outcome is not None:
            row.outcomes[event.seed] = event.outcome
            row.live.pop(event.seed, None)
        if event.error is not None:
            row.error = message(event.error)
            row.live.pop(event.seed, None)
            self._fail(event.error, f"{row.title}: ", also=True)
        ended = event.outcome is not None or event.error is not None
        self._finished += ended
        now = time.monotonic()
        if ended or now - self._told > 0.1:
            self._told = now
            share = 0 if ended else event.done / max(event.total, 1)
            self.controls.progress.value = min(1.0, (self._finished + share) / self._units)
            steps = "" if event.total <= 1 else f" {event.done}/{event.total}"
            self._phase(f"{row.title}, {event.phase}{steps}, seed {event.seed} ({self._finished} of {self._units} results)")
        if event.curve is not None or ended:
            self._dirty |= set(RESULTS)
            if now - self._drawn > max(REDRAW, 2 * self._cost):
                self.drawer.show(self._record)
                self._draw()

    def _on_end(self, how: str, error: Exception | None) -> None:
        failed = any(row.error for row in self._record.current)
        self._set_status("error" if how == "error" or (failed and not self._has_results()) else how)
        if error is not None:
            self._fail(error)
        found = sum(len(row.outcomes) for row in self._record.current)
        self.controls.progress.value = 1.0 if how == "done" else self.controls.progress.value
        self._phase(f"{'Done' if how == 'done' else 'Stopped' if how == 'stopped' else 'Ended'}: {plural(found, 'result')} in run {self._record.run}.")
        for row in self._record.current:
            row.live.clear()
        self._dirty |= set(RESULTS)
        self.drawer.show(self._record)
        self._redraw()

    # ------------------------------------------------------------------------------------------------ drawing
    @guarded
    def _view_chosen(self) -> None:
        self._draw()

    @guarded
    def _redraw(self) -> None:
        self._draw()

    def _draw(self) -> None:
        """Draw the visible view if it is out of date; the others wait until they are looked at."""
        name = self.views.visible
        if name == "partition" and self._federation is None:
            return
        if name in self._dirty:
            start = time.monotonic()
            if name == "partition":
                caption = f"{self._now()}. Smaller α is more skewed."
                self.views[name].show(self._partition_picture(), caption)
            elif self._has_results() or any(row.live for row in self._record.current):
                caption = self._caption(self._settings())
                self.views[name].show(self._scene.result(name, self._record, self.views.client.value), caption)
            else:
                self.views[name].say("Training …" if self._status == "running" else WHAT_TO_DO, self._caption(self._settings()))
            self._dirty.discard(name)
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
                self._fail(error)
            else:
                self._dirty.add("features")
                if self.views.visible == "features":
                    self._redraw()

        self._worker.start(lambda: self._scene.embed(missing), lambda event: None, ended)

    def _handout(self) -> Any:
        with self._guard:
            if self._federation is None:
                return saved.without_data(self.controls.error.value)
            return self._scene.handout(self._federation, self._record, self._now(), WHAT_TO_DO)

    # ------------------------------------------------------------------------------------------------ telling
    def _set_status(self, status: str) -> None:
        self.remove_class(f"fl-status-{self._status}")
        self.add_class(f"fl-status-{status}")
        self._status = status
        self.controls.busy(status == "running")

    def _phase(self, text: str) -> None:
        self.controls.phase.value = look.paragraph(text, "status")

    def _fail(self, error: Exception, start: str = "", also: bool = False) -> None:
        """One readable line in the panel, the traceback in `error`; with `also`, below the lines that are there."""
        self.error = "".join(traceback.format_exception(error))
        line = look.paragraph(start + message(error), "alert")
        before = self.controls.error.value if also else ""
        self.controls.error.value = before if line in before else before + line

    def _warn(self, text: str) -> None:
        with self._guard:
            line = look.paragraph(f"Note: {text}", "status")
            if line not in self.controls.error.value:
                self.controls.error.value += line

    def _clear_error(self) -> None:
        self.controls.error.value = ""


def message(error: Exception) -> str:
    """One line: the package's own errors speak for themselves, any other is named with the way to its traceback."""
    if isinstance(error, FedlabError):
        return str(error)
    first = (str(error).strip().splitlines() or [""])[0]
    return f"Unexpected {type(error).__name__}: {first} (the traceback is in panel.error)"


def loading(name: str) -> Generator[None, None, None]:
    """Load a data set as a job of the worker."""
    data_.load(name)
    yield
