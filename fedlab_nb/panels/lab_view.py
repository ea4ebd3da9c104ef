"""What a panel is made of. `LabSpec` lists its method, knobs and views. `LabView` is one of its views. It is drawn from
a `PanelState`, an immutable value with everything on which pictures depend.

When a control, a result or a selection changes, a new state is made (`derive_next_state`). The views
that depend on the parts that have changed (`LabView.needs`) are drawn again.

    class Trust(LabView):
        name, title, ready = "trust", "Who is trusted", "run"
        def draw(self, state):
            return draw_trust(state.report.weights, client=state.client, setting=state.setting)
"""

from __future__ import annotations

import functools
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, TypeVar

import ipywidgets as widgets

from ..data import Federation
from ..errors import SAMPLES
from ..plots import Picture
from ..plots.words import (
    SettingCaption,
    format_rough_duration,
    make_setting_caption,
    replace_image_by_word_for_samples,
)
from ..studies.cost import EstimatedCost, estimate_cost
from ..studies.experiment import Event
from ..studies.outcome import Outcome
from ..value_types import SettingsByName, SettingValue
from .nearest_results import NearestStoredResults, find_nearest_stored_results
from .record import MethodRun, RunRecord

READY = ("always", "data", "live", "run")
T = TypeVar("T")
FederationArguments = Mapping[str, SettingValue]  # arguments of `data.federate`
PanelStateChanges = dict[str, Any]  # new values of fields of `PanelState`, by name
JobProgress = tuple[int, int, str]  # steps done, of how many, and in words what is done
ProgressThenResult = Generator[JobProgress, None, T]  # yields the progress, returns T
PausesThenResult = Generator[None, None, T]  # a yield only lets Stop act
# {name: (method, arguments of `study.job`)}
MethodAndArgumentsByName = Mapping[Any, tuple[str, Mapping[str, Any]]]
# Parts of the state with arrays or many objects: they have changed if they are other objects. The other parts are
# compared by value.
BY_IDENTITY = ("federation", "runs", "outcome", "report", "metrics", "prepared", "worked")


@dataclass(frozen=True, eq=False)
class ViewState:
    """The part of the state that belongs to one view.

    prepared: what its `prepare` returned
    preparation_source: the outcome or federation for which it was prepared
    worked: what its `work` returned
    run: the number of the run for which `work` was done; None: it does not depend on a run
    worked_runs: the runs that `work` had planned
    worked_setting: the setting of `work`, in words
    """

    prepared: Any = None
    preparation_source: Any = None
    worked: Any = None
    run: int | None = None
    worked_runs: MethodAndArgumentsByName | None = None
    worked_setting: SettingCaption | str = ""


@dataclass(frozen=True, eq=False)
class PanelState:
    """The state that a view is drawn from.

    Data and settings:

    federation:  the present one, of the first seed; None as long as there are no data
    partition:   the arguments with which it was made
    settings:    keyword arguments of `study.job`, as the controls have them
    knobs:       values of the knobs of the lab's method
    setting:     the setting in words: that of the present run, or without one that of the controls
    class_names: of the present run, or without one of the federation
    methods:     that Run would run

    Results:

    runs:        the record of runs
    number:      of the present run
    outcome:     of the lab's method in the present run, for the first seed that has ended; None before
    outcomes:    {seed: Outcome} of the lab's method
    others:      {method: {seed: Outcome}} of the other methods
    report:      of the finished run, or of the running method so far; None before
    metrics:     dicts(phase, done, …) of the running method so far
    running:     whether a job runs
    stored:      the stored results nearest to the settings; None if there are none that fit
    placeholder: the same, as long as nothing was run in this panel

    What is visible:

    frame:       width and height of the frames in pixels, (0, 0) before they were visible
    view:        the name of the visible view
    client, class_index: selected ones, which every view marks; None for none

    Of the view for which the state was made (`make_state_for_view`):

    prepared, worked: what its `prepare` and `work` returned; None before, and after another run
    worked_runs:      the runs that `work` had planned; None for no runs
    worked_setting:   the setting of `work`, in words
    """

    federation: Federation | None = None
    settings: SettingsByName = field(default_factory=dict)
    knobs: Mapping[str, Any] = field(default_factory=dict)
    setting: SettingCaption | str = ""
    class_names: Sequence[str] = ()
    runs: RunRecord = RunRecord()
    number: int = 0
    methods: Sequence[str] = ()
    outcome: Any = None
    outcomes: Mapping[int, Any] = field(default_factory=dict)
    others: Mapping[str, Mapping[int, Any]] = field(default_factory=dict)
    client: int | None = None
    class_index: int | None = None
    report: Any = None
    metrics: Sequence[Mapping[str, Any]] = ()
    prepared: Any = None
    worked: Any = None
    worked_runs: MethodAndArgumentsByName | None = None
    worked_setting: SettingCaption | str = ""
    method: str = ""
    view: str = "partition"
    frame: tuple[int, int] = (0, 0)
    partition: FederationArguments | None = None
    epochs: int = 0
    running: bool = False
    shows_stored: bool = True
    stored: NearestStoredResults | None = None
    placeholder: NearestStoredResults | None = None
    view_states: Mapping[str, ViewState] = field(default_factory=dict)

    @property
    def preparation_source(self) -> Outcome | Federation | None:
        """What a view's `prepare` depends on: the outcome, or before there is one the federation."""
        return self.federation if self.outcome is None else self.outcome

    def make_state_for_view(self, view_name: str) -> PanelState:
        """Make the state for drawing a view, with the part that belongs to this view."""
        state = self.view_states.get(view_name, ViewState())
        prepared = None
        if state.preparation_source is self.preparation_source:
            prepared = state.prepared
        worked = None
        if state.run in (None, self.number):
            worked = state.worked
        return replace(
            self,
            view=view_name,
            prepared=prepared,
            worked=worked,
            worked_runs=state.worked_runs,
            worked_setting=state.worked_setting,
        )

    def make_changed_view_states(self, view_name: str, **changes: Any) -> Mapping[str, ViewState]:
        """Return a copy of `view_states` with changes of one view; this state stays as it is."""
        return {
            **self.view_states,
            view_name: replace(self.view_states.get(view_name, ViewState()), **changes),
        }

    def find_names_of_changed_fields(self, old_state: PanelState) -> set[str]:
        """Find the names of the fields in which this state differs from `old_state`."""
        changed = set()
        for part in fields(self):
            new_value = getattr(self, part.name)
            old_value = getattr(old_state, part.name)
            if new_value is old_value:
                continue
            if part.name in BY_IDENTITY or new_value != old_value:
                changed.add(part.name)
        return changed


def derive_next_state(state: PanelState, **changes: Any) -> PanelState:
    """Make the state after `changes`, with all fields that follow from them."""
    new = replace(state, **changes)
    current = new.runs.current_rows
    row = new.runs.find_current_row(new.method) if new.method else None
    outcomes = {} if row is None else row.outcomes
    outcome = next(iter(outcomes.values()), None)
    report = new.report
    if outcome is not None:
        report = outcome.report
    elif state.outcome is not None and "report" not in changes:
        report = None  # the outcome was removed, and its report with it
    settings = new.settings if row is None or outcome is None else row.settings
    class_names: tuple[str, ...] = ()
    if current:
        class_names = current[0].classes
    elif new.federation is not None:
        class_names = tuple(new.federation.dataset.class_names)
    stored = None
    if new.shows_stored and new.federation is not None:
        stored = find_nearest_stored_results(new.methods, new.settings)
    return replace(
        new,
        number=new.runs.number,
        outcome=outcome,
        outcomes=outcomes,
        report=report,
        setting=make_caption_of_settings_and_seeds(settings) if new.settings else "",
        class_names=class_names,
        others={other.method: other.outcomes for other in current if other is not row},
        stored=stored,
        placeholder=None if new.runs.number else stored,
    )


def get_state_changes_of_event(
    state: PanelState, row: MethodRun, progress_event: Event
) -> PanelStateChanges:
    """Return the changes of the state that an event of a run makes.

    row: of the event's method in the present run
    """
    changes: PanelStateChanges = {}
    has_ended = progress_event.outcome is not None or progress_event.error is not None
    if has_ended or progress_event.curve is not None:
        changes["runs"] = state.runs.copy_with_row_replaced(
            row, row.copy_after_event(progress_event)
        )
    if progress_event.method == state.method:
        if progress_event.report is not None:
            changes["report"] = progress_event.report
        if progress_event.metrics:
            point = {
                "phase": progress_event.phase,
                "done": progress_event.done,
                "seed": progress_event.seed,
                **progress_event.metrics,
            }
            changes["metrics"] = (*state.metrics, point)
    return changes


def make_caption_of_settings_and_seeds(settings: SettingsByName) -> SettingCaption:
    """Make the caption of settings with their seeds: 'digits, α = 0.1, 10 clients, seeds 0–2'."""
    first = settings["seed"]
    last = first + settings["seeds"] - 1
    seeds = f"seed {first}" if first == last else f"seeds {first}–{last}"
    return make_setting_caption(settings, seeds)


def has_settings_changed_since_run(state: PanelState) -> bool:
    """Whether the controls have other settings than the present run. The device does not count, nor does the number of
    seeds after a quick run of one seed."""
    if not state.runs.current_rows:
        return False
    row = state.runs.current_rows[0]
    run_settings = {"device": None, **row.settings}
    present_settings = {**state.settings, "device": run_settings["device"]}
    if row.is_quick_run:
        present_settings["seeds"] = run_settings["seeds"]
    return present_settings != run_settings


def describe_shown_run_or_empty(state: PanelState) -> str:
    """Make the caption of the views of results: which run they show, and whether the settings have changed since."""
    if not state.runs.current_rows:
        return ""
    text = f"Run {state.number}: {make_caption_of_settings_and_seeds(state.runs.current_rows[0].settings)}"
    if not has_settings_changed_since_run(state):
        return text
    if state.running:  # Run cannot be pressed twice
        return f"{text} (the controls have moved since)"
    return f"{text} (the controls have moved: press Run)"


class LabView:
    """One picture under its own tab. Subclasses set the names below and give `draw`.

    name: of the view, also in its CSS class `fl-view-NAME`
    title: of the tab
    ready: what has to be there before it can be drawn: "always" (nothing but the knobs), "data" (a federation), "live"
        (a running or finished run of the lab's method), "run" (a finished run)
    waiting: the text while a job runs; "": the old picture stays
    preview: whether there is a picture before `prepare` has ended
    has_scene: whether its pictures have a scene, which the browser draws
    is_drawn_ahead: whether it is drawn before it becomes visible, while nothing else runs
    summary: what the picture will show, for the text after "Press Run."
    work_label, work_help: label and tooltip of the button that starts `work`
    needs: fields of the state on which the picture depends. It also depends on the view's own part (`ViewState`)
    controls: widgets above the picture; each change redraws it at once. By default all that `__init__` has made
    """

    name: ClassVar[str]
    title: ClassVar[str]
    ready: ClassVar[str] = "run"
    waiting: ClassVar[str] = "Running …"
    preview: ClassVar[bool] = False
    has_scene: ClassVar[bool] = False
    is_drawn_ahead: ClassVar[bool] = True
    summary: ClassVar[str] = ""
    work_label: ClassVar[str] = ""
    work_help: ClassVar[str] = ""
    needs: ClassVar[Sequence[str]] = (
        "settings",
        "knobs",
        "methods",
        "federation",
        "runs",
        "report",
        "metrics",
        "client",
        "class_index",
        "frame",
    )

    @property
    def empty(self) -> str:
        """The text in place of the picture until there is one."""
        return f"Press Run. {self.summary}".rstrip()

    @functools.cached_property
    def controls(self) -> Sequence[widgets.Widget]:
        """The view's own widgets, in the order in which they were made.

        A `Play` is in a box, so that it is not observed: the slider that it moves redraws the picture.
        """
        widgets_made = []
        for part in vars(self).values():
            if isinstance(part, widgets.Play):
                part = widgets.HBox([part])
            if isinstance(part, widgets.Widget):
                widgets_made.append(part)
        return widgets_made

    def adapt(self, state: PanelState) -> None:
        """Adapt the view's own controls to `state` before it is drawn."""

    def prepare(self, state: PanelState) -> Any:
        """Do slow work on an outcome, once, in the worker. A generator can be stopped between two steps."""

    def work(self, state: PanelState) -> ProgressThenResult[Any]:
        """Do what the view's button starts: yields (done, total, words), and returns what `draw` gets as
        `state.worked`."""
        raise NotImplementedError
        yield

    def planned_runs(self, state: PanelState) -> MethodAndArgumentsByName | None:
        """Plan the runs that the button makes; None if they are not known beforehand. If they take very little time,
        opening the view presses the button."""

    def adopt_values_set_in_browser_scene(self, scene_values: Mapping[str, Any]) -> None:
        """Put what a person has set in the scene, which the browser draws, into the view's own controls."""

    def draw(self, state: PanelState) -> Picture:
        raise NotImplementedError

    @property
    def shows_run(self) -> bool:
        """Whether it is drawn from a run; otherwise it is drawn from the present controls."""
        return self.ready in ("live", "run")

    def caption(self, state: PanelState) -> str:
        """Return the line above the picture."""
        return describe_shown_run_or_empty(state) if self.shows_run else ""

    def is_older(self, state: PanelState) -> bool:
        """Whether the picture is of another setting than that of the controls; then it is dimmed."""
        return self.shows_run and has_settings_changed_since_run(state)

    def is_ready(self, state: PanelState) -> bool:
        """Whether everything is there that the view needs to be drawn; see `ready`."""
        if self.ready == "always":
            return True
        if state.federation is None:
            return False
        if self.ready == "data":
            return True
        if self.ready == "live" and state.report is not None:
            return True
        if state.method:
            return state.outcome is not None
        return state.runs.has_results

    def needs_preparing(self, state: PanelState) -> bool:
        """Whether the view's slow work is still to be done; what is live is drawn without it."""
        has_slow_work = type(self).prepare is not LabView.prepare
        is_drawn_live = self.ready == "live" and state.outcome is None
        if is_drawn_live or not has_slow_work:
            return False
        view_state = state.view_states.get(self.name)
        return view_state is None or view_state.preparation_source is not state.preparation_source


def draw_view_with_words_for_its_samples(view: LabView, state: PanelState) -> Picture:
    """Draw the picture of a view. In its texts "image" is replaced by the word for the samples that are shown."""
    picture = view.draw(state)
    dimensions = 3 if state.federation is None else len(state.federation.dataset.input_shape)
    samples = SAMPLES[dimensions]
    sentence = replace_image_by_word_for_samples(picture.sentence, samples)
    if picture.waits and state.running:
        sentence = LabView.waiting
    elif picture.waits:
        cost = estimate_button_job_cost(view, state)
        if cost is not None and cost.seconds is not None:
            sentence += f" It takes {format_rough_duration(cost.seconds)}."
    alt = replace_image_by_word_for_samples(picture.alt, samples)
    detail = replace_image_by_word_for_samples(picture.detail, samples)
    return replace(picture, alt=alt, sentence=sentence, detail=detail)


def estimate_button_job_cost(view: LabView, state: PanelState) -> EstimatedCost | None:
    """Estimate the cost of a view's button; None if it has no button, or the cost is not known."""
    if not view.work_label or not view.is_ready(state):
        return None
    runs = view.planned_runs(state)
    if runs is None:
        return None
    return estimate_cost(*runs.values())


@dataclass(frozen=True)
class Extra:
    """A setting of the whole run as a menu. options: (text, value) pairs, the first one the default"""

    name: str
    label: str
    options: tuple[tuple[str, Any], ...]
    help: str


@dataclass(frozen=True)
class LabSpec:
    """A panel's contents.

    method:     whose knobs are shown; "" for a panel of many methods
    companions: methods that run with it, chosen at the start
    knobs:      names of the knobs that are shown at once; the others are under "More"
    extras:     further settings of the run, as menus
    settings:   starting values of settings
    views:      the lab's own views, in the order of their tabs
    first:      name of the view that is visible at first. If it is "partition", Run changes to the first own view that
                is drawn live, or to the accuracy
    name:       of the panel
    last:       whether the lab's own views come after the common ones
    """

    method: str = ""
    companions: tuple[str, ...] = ()
    knobs: tuple[str, ...] = ()
    extras: tuple[Extra, ...] = ()
    settings: SettingsByName = field(default_factory=dict)
    views: tuple[type[LabView], ...] = ()
    first: str = "partition"
    name: str = "playground"
    last: bool = False
