"""A panel: choose data, skew, clients and methods; run; see who holds what, accuracy, bytes, features, classes.

The playground is a panel, and so is each lab, with its method's knobs and views of its own (`LabSpec`). Data go in one
direction: a control, a result or a selection changes, which makes one new `PanelState`; from this state everything is
drawn that depends on the change. The other files of this folder do not use the panel. Numbers come from `study`,
pictures from `plots`.
"""

import html
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

import ipywidgets as widgets

from .. import studies as study
from ..data import Federation, PartitionEdits, load, replace_objects_by_names_in_settings
from ..errors import UsageError, check_allowed_name
from ..plots import Picture
from ..plots.kit import make_blank_picture
from ..plots.words import format_client_for_sentence, make_setting_caption
from ..studies.experiment import Event
from . import export, saved, theme
from .controls import Controls, RunToEstimate, check_and_set_widget_value
from .facts import (
    Debouncer,
    describe_client_origin_and_upload_bytes,
    describe_skew_in_numbers_or_empty,
)
from .figures import COMMON, draw_partition_and_results
from .lab_view import (
    READY,
    FederationArguments,
    LabSpec,
    LabView,
    PanelState,
    PanelStateChanges,
    derive_next_state,
    get_state_changes_of_event,
    make_caption_of_settings_and_seeds,
)
from .link import make_link as write_link
from .partition_editor import PartitionEditor
from .record import RunAndMethod
from .runs_panel import RunsPanel
from .views import Chores, TabbedViews, TabOptions
from .worker import (
    Job,
    JobEnd,
    JobStatus,
    OnJobEnd,
    OnJobEvent,
    Status,
    Worker,
    show_errors_in_status,
)

RunEventsThenResult = Generator[Event, None, Any]


class PanelTexts(NamedTuple):
    """Texts of a panel that are updated a moment after the controls.

    federation:   describes the federation
    skew_numbers: its exact skew, for a tooltip
    code:         the Python lines of the present run
    """

    federation: str
    skew_numbers: str
    code: str


class Panel(saved.SavedPanel):
    """The panel of `spec`; the other arguments are those of `fedlab_nb.panels.playground`.

    Public are its methods and properties without an underscore, and its attributes controls, views, lab_views and
    runs_panel.
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
        job: Callable[..., RunEventsThenResult] | None = None,
        **settings: Any,
    ) -> None:
        self._guard = RLock()
        self._handler_pause = theme.HandlerPause()
        self._job = job or study.job
        if inline is None:
            inline = "google.colab" in sys.modules
        self._worker = Worker(
            self._guard, inline=inline, on_warning=lambda text: self._status.show_warning(text)
        )
        self.spec = spec
        self._is_open = False
        self._state = PanelState(method=spec.method)
        debouncer = Debouncer(
            self._guard,
            lambda error: self._status.show_error(error),
            lambda: inline or not self._state.frame[0],
        )
        self.controls = Controls(spec, debouncer)
        lab_views = [kind() for kind in spec.views]
        common_views = [kind() for kind in COMMON]
        check_names_and_readiness_of_views(spec.name, lab_views)
        self.lab_views = {view.name: view for view in lab_views}
        self.views = TabbedViews(
            self._list_views_in_tab_order(lab_views, common_views),
            self._guard,
            self._handler_pause,
            self._prepare_view_in_background_if_idle,
            **self._make_tab_options(),
        )
        self.views.allows_stored = "stored" not in hide
        self.views.projector.value = str(projector).lower() in ("true", "1", "yes", "on")
        self.runs_panel = RunsPanel(self._pin_or_unpin_row, spec.name)
        style = theme.make_widget(widgets.HTML, "fl-style", value=f"<style>{theme.STYLE}</style>")
        parts = [
            style,
            *self._make_layout_widgets(),
            self.runs_panel.box,
            theme.make_widget(Chores, "fl-style"),
        ]
        super().__init__(parts)
        self.add_class("fl-root").add_class("fl-live").add_class(f"fl-{spec.name}")
        self._status = Status(self.controls, self)
        self.editor = self._make_partition_editor_or_none()
        self.controls.set_initial_values(
            methods,
            {**spec.settings, **replace_objects_by_names_in_settings(settings)},
            replace_objects_by_names_in_settings(fixed or {}),
        )
        self.controls.hide_controls([name for name in hide if name != "stored"])
        self._connect_callbacks()
        self._load_chosen_dataset_in_background()
        self._worker.wait_until_all_jobs_end()  # so that the first view is complete
        self.views.select_view(spec.first)
        self._is_open = True  # from here on, a person selects what is visible
        saved.register_panel_and_stop_earlier_ones_of_cell(self)

    def _make_layout_widgets(self) -> list[widgets.Widget]:
        """Make the widgets between the style sheet and the record of runs."""
        columns = [self.controls.make_column_of_controls(), self.views.box]
        return [theme.make_widget(widgets.Box, "fl-body", children=columns)]

    def _list_views_in_tab_order(
        self, lab_views: Sequence[LabView], common_views: Sequence[LabView]
    ) -> list[LabView]:
        """The views, in the order of their tabs."""
        if self.spec.last:
            return [*common_views, *lab_views]
        return [*lab_views, *common_views]

    def _make_tab_options(self) -> TabOptions:
        """Make further arguments of `TabbedViews`."""
        return {"groups_tabs": bool(self.spec.method) or self.spec.last}

    def _make_partition_editor_or_none(self) -> PartitionEditor | None:
        """Make the buttons that change the partition by hand."""
        return PartitionEditor(
            self.controls,
            self.views,
            self._handler_pause,
            self._apply_control_values,
            self._status.show_warning,
        )

    def _update_stage_if_any(self) -> None:
        """Called after each change of the state, before anything is drawn."""

    def _remember_run_setting_and_start(self) -> None:
        """Called before a run of all seeds."""

    def _pass_events_then_predict_test_samples(
        self, run_events: RunEventsThenResult
    ) -> RunEventsThenResult:
        """Return the generator that the worker iterates over, made from that of a run."""
        return run_events

    def _connect_callbacks(self) -> None:
        controls = self.controls
        call_when_a_value_changes(
            (controls.dataset, controls.path), self._load_chosen_dataset_in_background
        )
        call_when_a_value_changes(controls.observed_widgets, self._apply_control_values)
        controls.card.on_choice = self._reread_file_with_column_choice
        call_when_a_value_changes(
            (self.views.projector, self.views.reveal), self._apply_projector_mode
        )
        self._apply_projector_mode()
        call_when_a_value_changes((self.views.enlarge,), self._enlarge_or_shrink_picture)
        self.views.call_when_display_options_change(self._apply_display_options)
        for name, view in self.views.views.items():
            call_when_a_value_changes(
                view.lab_view.controls, partial(self._redraw_view_when_visible, name)
            )
            if view.button is not None:
                view.button.on_click(lambda _, name=name: self._start_button_job(name))
        controls.run.on_click(lambda _: self._start_run(True))
        controls.stop.on_click(lambda _: self.stop())
        self.runs_panel.clear.on_click(lambda _: self._drop_unpinned_runs())
        self.runs_panel.export.on_click(lambda _: self._export_files())

    @property
    def status(self) -> JobStatus:
        """ "idle", "running", "done", "stopped" or "error"; also a CSS class of the panel, `fl-status-…`."""
        return self._status.status

    @property
    def error(self) -> str:
        """The traceback of the last error, or ""."""
        return self._status.traceback

    @property
    def outcomes(self) -> study.Outcomes:
        """Every outcome in the record of runs, oldest first."""
        return study.Outcomes(self._state.runs.outcomes)

    @property
    def sentence(self) -> str:
        """The sentence of the visible view."""
        return getattr(self.views[self.views.visible_view_name].picture, "sentence", "")

    def run(self, wait: bool = False, timeout: float | None = None) -> None:
        """Press Run; with `wait`, return when all is done, or after `timeout` seconds. An interrupt presses Stop."""
        self._start_run()
        if wait:
            self.wait(timeout)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for whatever runs; False if that took longer than `timeout` seconds."""
        try:
            return self._worker.wait_until_all_jobs_end(timeout)
        except KeyboardInterrupt:
            self.stop()
            raise

    def show(self, view: str) -> Picture | None:
        """Turn to a view by its name, wait until it is drawn, and return its Picture (None: there is none yet)."""
        self.views.select_view(check_allowed_name("view", view, self.views.views))
        self.wait()
        return self.views[view].picture

    def set(self, view: str, **controls: Any) -> Picture | None:
        """Turn to a view, give its own controls these values (`panel.set("steps", step=5)`), and return its Picture.

        The names are those of the view's attributes; UsageError for another name, or a value that the control has not.
        """
        self.show(view)
        parts = vars(self.views[view].lab_view)
        names = []
        for name, part in parts.items():
            if isinstance(part, widgets.Widget) and hasattr(part, "value"):
                names.append(name)
        for name, value in controls.items():
            check_and_set_widget_value(
                parts[check_allowed_name(f"control of {view}", name, names)], name, value
            )
        return self.show(view)

    def state(self, view: str) -> PanelState:
        """Return the state from which a view is drawn."""
        return self._state.make_state_for_view(check_allowed_name("view", view, self.views.views))

    def work(self, view: str) -> Picture | None:
        """Press the button of a lab's view, wait for the end, and return the view's Picture."""
        buttons = [name for name, each in self.views.views.items() if each.button is not None]
        self.views.select_view(check_allowed_name("view with a button", view, buttons))
        self._start_button_job(view)
        return self.show(view)

    def stop(self) -> None:
        """Press Stop: the work ends, and finished results stay. Does nothing if nothing runs."""
        self._worker.stop_present_job()

    def close(self) -> None:
        """Stop the work, wait for its thread, and close the widget with all widgets within it. The outcomes stay."""
        if hasattr(self, "_worker"):
            self.controls.debouncer.cancel_all_updates()
            self._worker.abandon_present_job()
            self._worker.wait_until_all_jobs_end(20)
        # Some controls are not in the layout.
        controls = [
            part for part in vars(self.controls).values() if isinstance(part, widgets.Widget)
        ]
        parts = theme.list_nested_widgets([self, *controls])
        super().close()
        for part in parts:
            if part is not self:
                part.close()

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that Run runs: the lab's method first, then the chosen ones."""
        return self.controls.chosen_methods

    def code(self) -> str:
        """Return the Python lines that do the same as the panel: the run that Run would start, and the pinned runs."""
        return export.make_code_of_next_run_and_pinned_runs(
            self._state.methods, self._state.settings, self._state.runs
        )

    def link(self, page: str = "playground.html") -> str:
        """Make a link to the page of `fedlab-nb page` that shows this data set, α, M, seed and these methods."""
        return write_link(self._state.settings, self.methods, page)

    def export(self, folder: str | Path | None = None) -> Path:
        """Write runs.csv, runs.json, reproduce.py, pictures (PNG, SVG); returns the folder, a new one if need be."""
        with self._guard:
            if self._state.federation is None:
                raise UsageError("There is no data to draw; choose a data set first.")
            pictures = {**self.views.draw_pictures_by_view(), "handout": self.still()}
            folder = folder or f"results/{self.spec.name}"
            return export.export_runs_to_free_folder(
                folder, self._state.runs, pictures, self.code()
            )

    def __repr__(self) -> str:
        if self._state.federation is None:
            return "a panel without data"
        return self.still().sentence

    def still(self) -> Picture:
        """Draw one picture of the data and of all results, without controls."""
        with self._guard:
            if not self._state.federation:
                return make_blank_picture("No data to show.", setting="")
            return draw_partition_and_results(self._state)

    def _change_state(self, should_draw: bool = True, **changes: Any) -> None:
        """Make the new state from changes of the present one, and with `should_draw` update the screen."""
        state = self._state = derive_next_state(
            self._state, running=self._status.is_running, **changes
        )
        self.views.take_over_state_without_drawing(state)
        self._update_stage_if_any()
        if not should_draw:
            return
        self._draw_visible_view_if_out_of_date()  # first, since a person who moves a slider waits for it
        if self.editor is not None:
            self.editor.update_buttons_and_samples(state)
        self.runs_panel.show_runs(state.runs)
        # The texts can be a moment later.
        self.controls.debouncer.schedule_update(
            "words",
            lambda: PanelTexts(
                describe_client_origin_and_upload_bytes(state),
                describe_skew_in_numbers_or_empty(state),
                self.code(),
            ),
            self._show_texts,
        )
        if not self._worker.is_busy:
            methods = state.methods if state.federation else ()
            self.controls.schedule_cost_estimate_if_changed(
                RunToEstimate(methods, state.settings, state.number)
            )

    def _show_texts(self, texts: PanelTexts) -> None:
        """Show the texts beside the controls, the tooltip of the skew, and the Python lines."""
        facts, skew, code = texts
        self.controls.facts.value = theme.make_paragraph_html(facts)
        for part in (self.controls.facts, self.controls.ends):
            part.tooltip = skew
        self.runs_panel.code.value = f"<pre>{html.escape(code)}</pre>"
        if self._state.partition is not None:
            self.controls.show_partition_previews_if_changed(self._state.partition)

    @show_errors_in_status
    def _draw_visible_view_if_out_of_date(self) -> None:
        self.views.draw_visible_view_if_out_of_date()

    def _read_controls_and_selection(self, is_new_dataset: bool = False) -> PanelStateChanges:
        """Read the controls, and what is visible and selected, as changes of the state."""
        changes = self.controls.read_changes_and_make_federation(self._state, is_new_dataset)
        federation = changes["federation"]
        moves = changes["settings"].get("moves", "")
        is_dealt_anew = federation is not self._state.federation
        has_other_moves = moves != self._state.settings.get("moves", "")
        if federation is not None and (is_dealt_anew or has_other_moves):
            with self._handler_pause:
                names = list_client_names(federation, changes["partition"], moves)
                self.views.set_client_and_class_options(names, federation.dataset.class_names)
        return {**changes, **self.views.display_options}

    @show_errors_in_status
    def _apply_control_values(self) -> None:
        """A control changed."""
        if self._handler_pause.is_on:
            return
        changes = self._read_controls_and_selection()
        if (changes["partition"], changes["knobs"]) != (self._state.partition, self._state.knobs):
            self._status.empty_error_and_note_lines()
        self._change_state(**changes)

    @show_errors_in_status
    def _apply_display_options(self) -> None:
        """Another view, client or class was selected."""
        if not self._handler_pause.is_on:
            is_other_view = self.views.visible_view_name != self._state.view
            self._change_state(**self.views.display_options)
            can_start_job = is_other_view and self._is_open and not self._worker.is_busy
            if can_start_job and self.views.has_quick_button_job_to_do():
                self._start_button_job(self.views.visible_view_name)

    def _apply_projector_mode(self) -> None:
        """Toggle projector mode, by CSS classes of this widget: a rule with `:has` would slow down each change."""
        is_on = self.views.projector.value
        theme.toggle_class(self, "fl-projector", is_on)
        theme.toggle_class(self, "fl-covering", is_on and not self.views.reveal.value)

    def _enlarge_or_shrink_picture(self) -> None:
        """Give the picture the place of the controls, or give it back, as the button says."""
        theme.toggle_class(self, "fl-enlarged", self.views.enlarge.value)

    @show_errors_in_status
    def _redraw_view_when_visible(self, view_name: str) -> None:
        """A view's own control changed."""
        if not self._handler_pause.is_on:
            self.views.dirty.add(view_name)
            self.views.draw_visible_view_if_out_of_date()

    @show_errors_in_status
    def _load_chosen_dataset_in_background(self) -> None:
        """Load the chosen data set, in the background."""
        controls = self.controls
        self._status.empty_error_and_note_lines()
        controls.show_file_field_if_own_file_chosen()
        try:
            name = controls.dataset_name_or_path
        except UsageError as error:
            return self._drop_federation_and_show_error(error)
        # Until the data are loaded, the sliders have nothing to divide among clients.
        self._change_state(should_draw=False, federation=None, partition=None)
        self._status.show_job_start(f"Loading {name} …")
        self._start_job(lambda: load(name), lambda _: None, self._show_loaded_dataset_or_error)

    @show_errors_in_status
    def _reread_file_with_column_choice(self, column_name: str, kind_or_role: str) -> None:
        """A person chose what a column of the file is: read the file again with this choice."""
        self._status.empty_error_and_note_lines()
        self.controls.path.value = self.controls.card.make_path_with_choice_or_reset_menu(
            column_name, kind_or_role
        )

    @show_errors_in_status
    def _show_loaded_dataset_or_error(
        self, job_end: JobEnd, error: Exception | None, result: Any
    ) -> None:
        self._status.set_status("idle" if job_end == "done" else job_end)
        self._status.show_phase("Ready." if job_end == "done" else "")
        if job_end == "done":
            self._update_from_controls(is_new_dataset=True)
        else:
            self._drop_federation_and_show_error(
                error or UsageError("Loading was stopped; choose the data set again.")
            )

    def _update_from_controls(self, is_new_dataset: bool) -> None:
        """Take over the values of the controls. is_new_dataset: whether a data set has just been loaded"""
        if is_new_dataset:
            with self._handler_pause:
                self.controls.load_dataset_and_fit_controls()
        self._change_state(**self._read_controls_and_selection(is_new_dataset))

    def _drop_federation_and_show_error(self, error: Exception) -> None:
        self._change_state(federation=None, partition=None)
        self._status.show_error(error)

    @show_errors_in_status
    def _pin_or_unpin_row(self, row_key: RunAndMethod, is_pinned: bool) -> None:
        self._change_state(runs=self._state.runs.copy_with_row_pinned(row_key, is_pinned))

    @show_errors_in_status
    def _drop_unpinned_runs(self) -> None:
        self._change_state(
            runs=self._state.runs.copy_without_unpinned_rows(
                keeps_present_run=self._status.is_running
            )
        )

    @show_errors_in_status
    def _export_files(self) -> None:
        self._status.empty_error_and_note_lines()
        self.runs_panel.written.value = ""
        place = self.export(self.runs_panel.folder.value.strip() or None)
        names = ", ".join(sorted(p.name for p in place.iterdir()))
        self.runs_panel.written.value = theme.make_paragraph_html(f"Written: {names} in {place}.")

    @show_errors_in_status
    def _start_run(self, is_started_by_person: bool = False) -> None:
        if is_started_by_person and self._status.is_running:  # the second half of a double click
            return
        self._status.empty_error_and_note_lines()
        if not self.methods:
            raise UsageError("No method is chosen; open “+ method” and tick at least one.")
        # Without a federation, this loads the data, or shows once more what is wrong with them.
        self._update_from_controls(is_new_dataset=self._state.federation is None)
        state = self._state
        if is_started_by_person and self.controls.ask_to_confirm_if_run_is_long():
            return
        steps = self._job(list(state.methods), **state.settings)
        self._remember_run_setting_and_start()
        self._status.show_run_start(len(state.methods) * state.settings["seeds"])
        self.views.reveal.value = False
        self._change_state(
            should_draw=False,
            runs=state.runs.copy_with_rows_of_new_run(state),
            report=None,
            metrics=(),
        )
        if self.runs_panel.tabs.value == "methods":
            self.runs_panel.tabs.value = "runs"
        self._start_job(
            lambda: self._pass_events_then_predict_test_samples(steps),
            self._apply_run_event,
            lambda *end: self._finish_run(is_started_by_person, *end),
            self.views.draw_visible_view_if_run_has_news,
        )
        if self.views.visible_view_name == "partition":
            live = [name for name, view in self.lab_views.items() if view.ready == "live"]
            self.views.select_view(live[0] if live else "accuracy")
        else:
            self._change_state()

    def _apply_run_event(self, event: Event) -> None:
        """Show an event of the run, and update the state; pictures are drawn not too often."""
        row = self._state.runs.find_current_row(event.method)
        if row is None:
            return
        has_ended = self._status.show_run_event_and_check_end(event, row.title)
        changes = get_state_changes_of_event(self._state, row, event)
        if not changes:
            return
        self._change_state(should_draw=False, **changes)
        self.views.has_news |= has_ended or event.curve is not None
        if has_ended:
            self.runs_panel.show_runs(self._state.runs)

    def _finish_run(
        self, is_started_by_person: bool, job_end: JobEnd, error: Exception | None, run_result: Any
    ) -> None:
        self._status.show_run_end(job_end, error, self._state.runs)
        self._change_state(runs=self._state.runs.copy_tidied_after_run())
        if is_started_by_person:
            # Not after a run that a cell has started: it may change its own output alone.
            self._update_displayed_stills()
        if is_started_by_person and job_end == "done" and self.views.has_quick_button_job_to_do():
            self._start_button_job(self.views.visible_view_name)
        self.views.start_drawing_hidden_views(self._worker)

    @show_errors_in_status
    def _start_button_job(self, view_name: str) -> None:
        """Start the work of a view's own button in the worker; then its picture is drawn."""
        view = self.views[view_name].lab_view
        state = self._state.make_state_for_view(view_name)
        self._status.empty_error_and_note_lines()
        if not view.is_ready(state):
            raise UsageError(f"{view.work_label} needs a result; press Run first.")
        planned = view.planned_runs(state)
        self._status.show_job_start()
        self._change_state()

        def show_step(step: tuple[int, int, str]) -> None:
            done, total, words = step
            self._status.show_progress(done / max(total, 1))
            self._status.show_phase(f"{view.title}: {words}")

        def finish(job_end: JobEnd, error: Exception | None, worked: Any) -> None:
            words = {"done": "Done.", "stopped": "Stopped."}
            self._status.show_job_end(job_end, error, words.get(job_end, ""))
            changes = {}
            if worked is not None:
                changes = {
                    "worked": worked,
                    "run": None if view.ready == "data" else state.number,
                    "worked_runs": planned,
                    "worked_setting": make_caption_of_settings_and_seeds(state.settings),
                }
            self._change_state(
                view_states=self._state.make_changed_view_states(view_name, **changes)
            )

        self._start_job(lambda: view.work(state), show_step, finish)

    def _start_job(
        self,
        job: Job,
        on_event: OnJobEvent,
        on_end: OnJobEnd,
        between_events: Callable[[], None] | None = None,
    ) -> None:
        """Give the worker a job. A picture that is being prepared is abandoned."""
        theme.toggle_class(self, "fl-mapping", False)
        self._worker.start_in_place_of_present_job(job, on_event, on_end, between_events)

    def _prepare_view_in_background_if_idle(self, view: LabView, state: PanelState) -> None:
        """Do a view's slow work in the background, once nothing else runs."""
        if self._worker.is_busy or state.running:
            return

        def finish(job_end: JobEnd, error: Exception | None, prepared: Any) -> None:
            theme.toggle_class(self, "fl-mapping", False)
            if error is not None:
                self.views.dirty.discard(view.name)
                if not view.preview:
                    text = "This picture could not be made."
                    self.views[view.name].show_text_in_place_of_picture(text, view.caption(state))
                self._status.show_error(error)
            elif job_end == "done":
                changes = {"preparation_source": state.preparation_source, "prepared": prepared}
                self._change_state(
                    view_states=self._state.make_changed_view_states(view.name, **changes)
                )

        theme.toggle_class(self, "fl-mapping", True)
        start_drawing_hidden_views = self.views.draw_one_hidden_view_if_any
        self._worker.start_in_place_of_present_job(
            lambda: view.prepare(state), lambda _: None, finish, start_drawing_hidden_views
        )


def call_when_a_value_changes(
    observed_widgets: Iterable[widgets.Widget], callback: Callable[[], None]
) -> None:
    """Call `callback()` when the value of one of these widgets changes."""
    for widget in observed_widgets:
        widget.observe(lambda _: callback(), "value")


def check_names_and_readiness_of_views(lab_name: str, views: Sequence[LabView]) -> None:
    """Raise ValueError if two views of a lab have the same name, or one has an unknown value of `ready`."""
    names = {view.name for view in views}
    if len(names) < len(views) or any(view.ready not in READY for view in views):
        raise ValueError(
            f"A view of {lab_name!r} is named twice, or its `ready` is not one of {READY}."
        )


def list_client_names(
    federation: Federation, federation_arguments: FederationArguments, edits_in_letters: str
) -> list[str]:
    """List the clients' names, given by their file, by hand, or by the course."""
    whole_federation = federation.whole or federation
    doubled_clients = PartitionEdits.parse(edits_in_letters).doubled_clients
    client_count = whole_federation.clients - len(doubled_clients)
    setting = make_setting_caption(
        {**federation_arguments, "clients": client_count, "moves": edits_in_letters}
    )
    return [format_client_for_sentence(k, setting) for k in range(federation.clients)]
