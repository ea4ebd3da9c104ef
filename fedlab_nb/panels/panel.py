"""A panel: choose data, skew, clients and methods; run; see who holds what, accuracy, bytes, features, classes.

The playground is one, and so is each lab, with its method's knobs and views of its own (`LabSpec`). It runs in one
direction: a control, a result or a look at something else gives one new `PanelState`, once; what depends on the change
is drawn from it. Nothing below this file knows the panel. Numbers come from `study`, pictures from `plots`.
"""

import html
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from threading import RLock
from typing import Any

import ipywidgets as widgets

from .. import studies as study
from ..data import Edits, Federation, load, to_plain_settings
from ..errors import UsageError, choose, demand
from ..plots import Picture
from ..plots.kit import make_blank_picture
from ..plots.words import make_setting, plain_client_name
from . import export, saved, theme
from .controls import Controls, put
from .facts import Debouncer, describe_federation
from .figures import COMMON, summary
from .lab_view import READY, LabSpec, LabView, PanelState, apply_event, next_state
from .link import write as write_link
from .partition_editor import PartitionEditor
from .runs_panel import RunsPanel
from .views import Chores, Views
from .worker import Status, Worker, guarded


class Panel(saved.Saved):
    """The panel of `spec`; the other arguments are those of `fedlab_nb.panels.playground`. Public are its methods and
    properties without an underscore, and its parts controls, views, lab_views, runs_panel.
    """

    def __init__(
        self,
        spec: LabSpec,
        *,
        methods: Iterable[str] | None = None,
        hide: Iterable[str] = (),
        fixed: Mapping[str, Any] | None = None,
        inline: bool | None = None,
        projector: bool = False,
        job: Callable[..., Generator] | None = None,
        **settings: Any,
    ) -> None:
        self._guard, self._fitting, self._job = RLock(), theme.Fitting(), job or study.job
        inline = "google.colab" in sys.modules if inline is None else inline
        self._worker = Worker(
            self._guard, inline=inline, on_warning=lambda text: self._status.warn(text)
        )
        self.spec, self._opened = spec, False
        self._state = PanelState(method=spec.method)
        debouncer = Debouncer(
            self._guard,
            lambda error: self._status.fail(error),
            lambda: inline or not self._state.frame[0],
        )
        self.controls = Controls(spec, debouncer)
        own, common = [kind() for kind in spec.views], [kind() for kind in COMMON]
        self.lab_views = {view.name: view for view in own}
        if len(self.lab_views) < len(own) or any(view.ready not in READY for view in own):
            raise ValueError(
                f"A view of {spec.name!r} is named twice, or its `ready` is not one of {READY}."
            )
        self.views = Views(
            self._choose_tabs(own, common),
            self._guard,
            self._fitting,
            self._prepare,
            **self._tab_options(),
        )
        self.views.allows_stored = "stored" not in hide
        self.views.larger.value = str(projector).lower() in ("true", "1", "yes", "on")
        self.runs_panel = RunsPanel(self._pinned, spec.name)
        style = theme.make_widget(widgets.HTML, "fl-style", value=f"<style>{theme.STYLE}</style>")
        parts = [
            style,
            *self._lay_out(),
            self.runs_panel.box,
            theme.make_widget(Chores, "fl-style"),
        ]
        super().__init__(parts)
        self.add_class("fl-root").add_class("fl-live").add_class(f"fl-{spec.name}")
        self._status = Status(self.controls, self)
        self.editor = self._make_editor()
        self.controls.begin(
            methods,
            {**spec.settings, **to_plain_settings(settings)},
            to_plain_settings(fixed or {}),
        )
        self.controls.hide([name for name in hide if name != "stored"])
        self._listen()
        self._data_changed()
        self._worker.wait()  # so that the first view is complete
        self.views.choose(spec.first)
        self._opened = True  # from here on what is looked at is a person's choice
        saved.stop_earlier(self)

    def _lay_out(self) -> list[widgets.Widget]:
        """What stands between the style and the record of runs."""
        columns = [self.controls.layout(), self.views.box]
        return [theme.make_widget(widgets.Box, "fl-body", children=columns)]

    def _choose_tabs(self, own: list[LabView], common: list[LabView]) -> list[LabView]:
        """The views, in the order of their tabs."""
        return [*common, *own] if self.spec.last else [*own, *common]

    def _tab_options(self) -> dict[str, Any]:
        """Further arguments of `Views`."""
        return {}

    def _make_editor(self) -> PartitionEditor | None:
        """The buttons that change the partition by hand."""
        return PartitionEditor(
            self.controls, self.views, self._fitting, self._changed, self._status.warn
        )

    def _show_state(self) -> None:
        """Called after each change of the state, before anything is drawn."""

    def _prepare_run(self) -> None:
        """Called before a run of all seeds."""

    def _wrap_job(self, steps: Generator) -> Generator:
        """The generator that the worker goes through, given that of the run."""
        return steps

    def _listen(self) -> None:
        c = self.controls

        def on(parts: Iterable[widgets.Widget], call: Callable, *arguments: Any) -> None:
            for widget in parts:
                widget.observe(lambda _: call(*arguments), "value")

        on((c.dataset, c.path), self._data_changed)
        on(c.choices, self._changed)
        c.card.on_choice = self._column_chosen
        on((self.views.larger, self.views.reveal), self._projected)
        self._projected()
        self.views.on_look(self._looked)
        for name, view in self.views.views.items():
            on(view.kind.controls, self._moved, name)
            if (button := view.button) is not None:
                button.on_click(lambda _, name=name: self._work_clicked(name))
        c.run.on_click(lambda _: self._start(True))
        c.stop.on_click(lambda _: self.stop())
        self.runs_panel.clear.on_click(lambda _: self._clear())
        self.runs_panel.export.on_click(lambda _: self._export_clicked())

    @property
    def status(self) -> str:
        """ "idle", "running", "done", "stopped" or "error"; also a CSS class of the panel, `fl-status-…`."""
        return self._status.status

    @property
    def error(self) -> str:
        """The traceback of the last error, or nothing."""
        return self._status.traceback

    @property
    def outcomes(self) -> Any:
        """Every outcome in the record of runs, oldest first."""
        return study.Outcomes(self._state.runs.outcomes)

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

    def show(self, view: str) -> Picture | None:
        """Turn to a view by its name, wait until it is drawn, and return its Picture (None: there is none yet)."""
        self.views.choose(choose("view", view, self.views.views))
        self.wait()
        return self.views[view].picture

    def set(self, view: str, **controls: Any) -> Picture | None:
        """Turn to a view, give its own controls these values (`panel.set("steps", step=5)`), and return its Picture.

        The names are those of the view's attributes; UsageError for another name, or a value that the control has not.
        """
        self.show(view)
        parts = vars(self.views[view].kind)
        names = [
            name
            for name, part in parts.items()
            if isinstance(part, widgets.Widget) and hasattr(part, "value")
        ]
        for name, value in controls.items():
            put(parts[choose(f"control of {view}", name, names)], name, value)
        return self.show(view)

    def state(self, view: str) -> PanelState:
        """What the view is drawn from now; of a view that all panels have, too."""
        return self._state.for_view(choose("view", view, self.views.views))

    def work(self, view: str) -> Picture | None:
        """Press the button of a lab's view, wait for the end, and return the view's Picture."""
        buttons = [name for name, each in self.views.views.items() if each.button is not None]
        self.views.choose(choose("view with a button", view, buttons))
        self._work_clicked(view)
        return self.show(view)

    def stop(self) -> None:
        """Press Stop: the work ends, finished results stay. Without work nothing happens."""
        self._worker.stop()

    def close(self) -> None:
        """Stop the work, wait for its thread, and remove the widget. The outcomes stay."""
        if hasattr(self, "_worker"):
            self.controls.debouncer.cancel()
            self._worker.abandon()
            self._worker.wait(20)
        super().close()

    @property
    def methods(self) -> tuple[str, ...]:
        """What Run runs: the lab's method first, then those that are ticked."""
        return self.controls.chosen

    def code(self) -> str:
        """The Python lines that do what is on the screen: the run that Run would start, and the pinned ones."""
        return export.code(self._state.methods, self._state.settings, self._state.runs)

    def link(self, page: str = "playground.html") -> str:
        """The link to the `page` of `fedlab-nb page` that shows this data, α, M, seed and these methods."""
        return write_link(self._state.settings, self.methods, page)

    def export(self, folder: str | Path | None = None) -> Path:
        """Write runs.csv, runs.json, reproduce.py, pictures (PNG, SVG); returns the folder, a new one if need be."""
        with self._guard:
            demand(
                self._state.federation is not None,
                "There is no data to draw; choose a data set first.",
            )
            pictures = {**self.views.pictures(), "handout": self.still()}
            return export.write(
                folder or f"results/{self.spec.name}", self._state.runs, pictures, self.code()
            )

    def __repr__(self) -> str:
        return (
            self.still().sentence if self._state.federation is not None else "a panel without data"
        )

    def still(self) -> Picture:
        """One picture of the data and of all results, without controls."""
        with self._guard:
            return (
                summary(self._state)
                if self._state.federation
                else make_blank_picture("No data to show.", setting="")
            )

    def _go(self, draw: bool = True, **changes: Any) -> None:
        """Something changed: the new state, and with `draw` what follows from it on the screen."""
        state = self._state = next_state(self._state, running=self._status.running, **changes)
        self.views.update(state)
        self._show_state()
        if not draw:
            return
        self._draw()  # first, as a hand on a slider waits for it
        if self.editor is not None:
            self.editor.show(state)
        self.runs_panel.show(state.runs)
        self.controls.debouncer.request(
            "words", lambda: (describe_federation(state), self.code()), self._say
        )  # a hand does not wait for it
        if not self._worker.busy:
            self.controls.tell(
                (state.methods if state.federation else (), state.settings, state.number)
            )

    def _say(self, words: tuple[str, str]) -> None:
        self.controls.facts.value = theme.paragraph(words[0])
        self.runs_panel.code.value = f"<pre>{html.escape(words[1])}</pre>"
        if self._state.partition is not None:
            self.controls.preview(self._state.partition)

    @guarded
    def _draw(self) -> None:
        self.views.draw()

    def _read(self, fresh: bool = False) -> dict[str, Any]:
        """What the controls say and what is looked at, as changes of the state; `fresh`: data are dealt out anew."""
        changes = self.controls.changes(self._state, fresh)
        federation, moves = changes["federation"], changes["settings"].get("moves", "")
        old = self._state.federation, self._state.settings.get("moves", "")
        if federation is not None and (federation is not old[0] or moves != old[1]):
            with self._fitting:
                names = list_client_names(federation, changes["partition"], moves)
                self.views.offer(names, federation.dataset.class_names)
        return {**changes, **self.views.look}

    @guarded
    def _changed(self) -> None:
        """A control says something else."""
        if self._fitting.is_on:
            return
        changes = self._read()
        if (changes["partition"], changes["knobs"]) != (self._state.partition, self._state.knobs):
            self._status.clear()
        self._go(**changes)

    @guarded
    def _looked(self) -> None:
        """Another view, client or class is looked at."""
        if not self._fitting.is_on:
            turned = self.views.visible != self._state.view
            self._go(**self.views.look)
            if turned and self._opened and not self._worker.busy and self.views.is_work_quick():
                self._work_clicked(self.views.visible)

    def _projected(self) -> None:
        """A class looks on, or no more: as classes of this widget, since a page asks each change for what it `:has`."""
        theme.toggle_class(self, "fl-projector", large := self.views.larger.value)
        theme.toggle_class(self, "fl-covering", large and not self.views.reveal.value)

    @guarded
    def _moved(self, view: str) -> None:
        """A person moved a view's own control."""
        if not self._fitting.is_on:
            self.views.dirty.add(view)
            self.views.draw()

    @guarded
    def _data_changed(self) -> None:
        """Load the chosen data set, in the background."""
        c = self.controls
        self._status.clear()
        c.show_file_field()
        try:
            name = c.data
        except UsageError as error:
            return self._without_data(error)
        self._go(
            draw=False, federation=None, partition=None
        )  # until they are there, sliders have nothing to deal out
        self._status.start(f"Loading {name} …")
        self._work(lambda: load(name), lambda _: None, self._loaded)

    @guarded
    def _column_chosen(self, column: str, choice: str) -> None:
        """A person said what a column of the file is: read it again so."""
        self._status.clear()
        self.controls.path.value = self.controls.card.choose(column, choice)

    @guarded
    def _loaded(self, how: str, error: Exception | None, _: Any) -> None:
        self._status.set("idle" if how == "done" else how)
        self._status.phase("Ready." if how == "done" else "")
        if how == "done":
            self._use(fresh=True)
        else:
            self._without_data(
                error or UsageError("Loading was stopped; choose the data set again.")
            )

    def _use(self, fresh: bool) -> None:
        """Go over to what the controls say; `fresh`: to a data set that has just been loaded."""
        if fresh:
            with self._fitting:
                self.controls.adapt()
        self._go(**self._read(fresh))

    def _without_data(self, error: Exception) -> None:
        self._go(federation=None, partition=None)
        self._status.fail(error)

    @guarded
    def _pinned(self, row: tuple[int, str], pin: bool) -> None:
        self._go(runs=self._state.runs.with_pin(row, pin))

    @guarded
    def _clear(self) -> None:
        self._go(runs=self._state.runs.without_unpinned(keep_current=self._status.running))

    @guarded
    def _export_clicked(self) -> None:
        self._status.clear()
        self.runs_panel.written.value = ""
        place = self.export(self.runs_panel.folder.value.strip() or None)
        names = ", ".join(sorted(p.name for p in place.iterdir()))
        self.runs_panel.written.value = theme.paragraph(f"Written: {names} in {place}.")

    @guarded
    def _start(self, by_hand: bool = False) -> None:
        self._status.clear()
        demand(self.methods, "No method is chosen; open “+ method” and tick at least one.")
        self._use(
            fresh=self._state.federation is None
        )  # tells again what is wrong with the data, or finds them there
        state = self._state
        if by_hand and self.controls.doubts():
            return
        steps = self._job(list(state.methods), **state.settings)
        self._prepare_run()
        self._status.run_started(len(state.methods) * state.settings["seeds"])
        self.views.reveal.value = False
        self._go(draw=False, runs=state.runs.begin(state), report=None, metrics=())
        self.runs_panel.tabs.value = (
            "runs" if self.runs_panel.tabs.value == "methods" else self.runs_panel.tabs.value
        )
        self._work(
            lambda: self._wrap_job(steps),
            self._take_event,
            lambda *end: self._ended(by_hand, *end),
            self.views.follow,
        )
        if self.views.visible == "partition":
            self.views.choose(
                next((n for n, v in self.lab_views.items() if v.ready == "live"), "accuracy")
            )
        else:
            self._go()

    def _take_event(self, event: Any) -> None:
        """An event of the run: tell it, and draw, but not too often."""
        row = self._state.runs.find(event.method)
        if row is not None:
            ended = self._status.run_event(event, row.title)
            if changes := apply_event(self._state, row, event):
                self._go(draw=False, **changes)
                self.views.has_news |= ended or event.curve is not None
                if ended:
                    self.runs_panel.show(self._state.runs)

    def _ended(self, by_hand: bool, how: str, error: Exception | None, _: Any) -> None:
        self._status.run_ended(how, error, self._state.runs)
        self._go(runs=self._state.runs.with_end())
        if by_hand:
            self._renew()  # what a cell starts changes no output but its own
        if by_hand and how == "done" and self.views.is_work_quick():
            self._work_clicked(self.views.visible)
        self.views.draw_ahead(self._worker)

    @guarded
    def _work_clicked(self, name: str) -> None:
        """A view's own button: its work in the worker, then its picture."""
        view, state = self.views[name].kind, self._state.for_view(name)
        self._status.clear()
        demand(view.is_ready(state), f"{view.work_label} needs a result; press Run first.")
        self._status.start()
        self._go()

        def stepped(step: tuple[int, int, str]) -> None:
            self._status.progress(step[0] / max(step[1], 1))
            self._status.phase(f"{view.title}: {step[2]}")

        def ended(how: str, error: Exception | None, worked: Any) -> None:
            self._status.end(how, error, {"done": "Done.", "stopped": "Stopped."}.get(how, ""))
            run = None if view.ready == "data" else state.number
            done = {} if worked is None else {"worked": worked, "run": run}
            self._go(view_states=self._state.with_view_state(name, **done))

        self._work(lambda: view.work(state), stepped, ended)

    def _work(
        self, job: Callable, on_event: Callable, on_end: Callable, between: Callable | None = None
    ) -> None:
        """Give the worker a job; pictures that are being prepared are given up."""
        theme.toggle_class(self, "fl-mapping", False)
        self._worker.start(job, on_event, on_end, between)

    def _prepare(self, view: LabView, state: PanelState) -> None:
        """Do a view's slow work in the background, once nothing else runs."""
        if self._worker.busy or state.running:
            return

        def ended(how: str, error: Exception | None, made: Any) -> None:
            theme.toggle_class(self, "fl-mapping", False)
            if error is not None:
                self.views.dirty.discard(view.name)
                if not view.preview:
                    self.views[view.name].show_message(
                        "This picture could not be made.", view.caption(state)
                    )
                self._status.fail(error)
            elif how == "done":
                self._go(
                    view_states=self._state.with_view_state(
                        view.name, anchor=state.anchor, prepared=made
                    )
                )

        theme.toggle_class(self, "fl-mapping", True)
        self._worker.start(
            lambda: view.prepare(state), lambda _: None, ended, self.views.draw_one_ahead
        )


def list_client_names(
    federation: Federation, partition: Mapping[str, Any], moves: str
) -> list[str]:
    """What the clients are called: by their file, by hand, or by the course."""
    everybody = federation.whole or federation
    dealt = everybody.clients - len(Edits.parse(moves).doubles)
    setting = make_setting({**partition, "clients": dealt, "moves": moves})
    return [plain_client_name(k, setting) for k in range(federation.clients)]
