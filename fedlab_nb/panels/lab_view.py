"""What a panel is made of: `LabSpec` says which method, knobs and views; a `LabView` is one of its pictures, drawn from
a `PanelState`: everything that pictures are drawn from, as one immutable value.

A control, a result or a look at something else gives the next state (`derive_next_state`); what
depends on the parts that changed is drawn again (`LabView.needs`).

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
from ..plots.words import SettingCaption, format_duration, make_setting_caption, replace_image_words
from ..studies.cost import Cost, estimate_cost
from ..studies.experiment import Event
from ..studies.outcome import Outcome
from ..value_types import SettingsByName, SettingValue
from .nearest_results import NearestResults, find_nearest_results
from .record import Row, Runs

READY = ("always", "data", "live", "run")
T = TypeVar("T")
PartitionOptions = Mapping[str, SettingValue]  # arguments of `data.federate`
StateChanges = dict[str, Any]  # new values of fields of `PanelState`, by name
JobProgress = tuple[int, int, str]  # steps done, of how many, and in words what is done
JobSteps = Generator[JobProgress, None, T]  # yields the progress, returns T
SilentSteps = Generator[None, None, T]  # a yield only lets Stop act
# {name: (method, arguments of `study.job`)}
PlannedRuns = Mapping[Any, tuple[str, Mapping[str, Any]]]
# Parts that hold arrays, or many things: new objects where they differ. All others are compared by value.
BY_IDENTITY = ("federation", "runs", "outcome", "report", "metrics", "prepared", "worked")


@dataclass(frozen=True, eq=False)
class ViewState:
    """What a view has beside the state of all.

    prepared: what its `prepare` returned, for `preparation_source`
    worked:   what its `work` returned, for the run of number `run` (None: for none)
    worked_runs, worked_setting: the runs that were planned then, and the setting in words
    """

    prepared: Any = None
    preparation_source: Any = None
    worked: Any = None
    run: int | None = None
    worked_runs: PlannedRuns | None = None
    worked_setting: SettingCaption | str = ""


@dataclass(frozen=True, eq=False)
class PanelState:
    """The state that a view is drawn from.

    federation: the present one of the first seed, None while there is no data;   partition: how it was dealt out
    settings: keyword arguments of `study.job` as the controls say;   knobs: of the lab's method;   setting: in words
    runs:     the record of runs;   number: of the present one;   methods: that Run would run
    outcome:  of the lab's method in the present run, for the first seed that is done; None before
    outcomes: {seed: Outcome} of it;   others: {method: {seed: Outcome}} of the methods beside it
    report:   of the finished run, or what the running method has so far; None before
    metrics:  dicts(phase, done, …) of the running method so far
    frame:    width and height of the frames in pixels, (0, 0) before they were seen
    view, client, class_index: what is looked at; None for no client and no class in particular; every view marks them
    prepared, worked: what the view's `prepare` and `work` returned; None before, and after another run
    worked_runs, worked_setting: the runs that `work` had planned (None: no runs), and its setting in words
    running:  whether a job runs
    stored:   the stored results nearest to the settings; None: they say nothing of these
    placeholder: the same as long as nothing was run here
    """

    federation: Federation | None = None
    settings: SettingsByName = field(default_factory=dict)
    knobs: Mapping[str, Any] = field(default_factory=dict)
    setting: SettingCaption | str = ""
    class_names: Sequence[str] = ()
    runs: Runs = Runs()
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
    worked_runs: PlannedRuns | None = None
    worked_setting: SettingCaption | str = ""
    method: str = ""
    view: str = "partition"
    frame: tuple[int, int] = (0, 0)
    partition: PartitionOptions | None = None
    epochs: int = 0
    running: bool = False
    shows_stored: bool = True
    stored: NearestResults | None = None
    placeholder: NearestResults | None = None
    view_states: Mapping[str, ViewState] = field(default_factory=dict)

    @property
    def preparation_source(self) -> Outcome | Federation | None:
        """What a view prepares itself for: the outcome, or before there is one the federation."""
        return self.federation if self.outcome is None else self.outcome

    def make_state_for_view(self, view_name: str) -> PanelState:
        """The state as the view of this name is drawn from it, with what that view has of its own."""
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

    def change_view_state(self, view_name: str, **changes: Any) -> Mapping[str, ViewState]:
        """`view_states` with changes for one view."""
        return {
            **self.view_states,
            view_name: replace(self.view_states.get(view_name, ViewState()), **changes),
        }

    def find_changes(self, old_state: PanelState) -> set[str]:
        """Names of the parts in which this state differs from `old_state`."""
        changed = set()
        for part in fields(self):
            now = getattr(self, part.name)
            before = getattr(old_state, part.name)
            if now is before:
                continue
            if part.name in BY_IDENTITY or now != before:
                changed.add(part.name)
        return changed


def derive_next_state(state: PanelState, **changes: Any) -> PanelState:
    """The state after `changes`, with all that follows from them."""
    new = replace(state, **changes)
    current = new.runs.current_rows
    row = new.runs.find_row(new.method) if new.method else None
    outcomes = {} if row is None else row.outcomes
    outcome = next(iter(outcomes.values()), None)
    report = new.report
    if outcome is not None:
        report = outcome.report
    elif state.outcome is not None and "report" not in changes:  # it was cleared away
        report = None
    settings = new.settings if row is None or outcome is None else row.settings
    class_names: tuple[str, ...] = ()
    if current:
        class_names = current[0].classes
    elif new.federation is not None:
        class_names = tuple(new.federation.dataset.class_names)
    stored = None
    if new.shows_stored and new.federation is not None:
        stored = find_nearest_results(new.methods, new.settings)
    return replace(
        new,
        number=new.runs.number,
        outcome=outcome,
        outcomes=outcomes,
        report=report,
        setting=make_caption_with_seeds(settings) if new.settings else "",
        class_names=class_names,
        others={other.method: other.outcomes for other in current if other is not row},
        stored=stored,
        placeholder=None if new.runs.number else stored,
    )


def get_state_changes_of_event(state: PanelState, row: Row, progress_event: Event) -> StateChanges:
    """The changes that an event of the running job makes; `row`: its method's in the present run."""
    changes: StateChanges = {}
    has_ended = progress_event.outcome is not None or progress_event.error is not None
    if has_ended or progress_event.curve is not None:
        changes["runs"] = state.runs.replace_row(row, row.apply_event(progress_event))
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


def make_caption_with_seeds(settings: SettingsByName) -> SettingCaption:
    """Settings as a person reads them, seeds included: 'digits, α = 0.1, 10 clients, seeds 0–2'."""
    first = settings["seed"]
    last = first + settings["seeds"] - 1
    seeds = f"seed {first}" if first == last else f"seeds {first}–{last}"
    return make_setting_caption(settings, seeds)


def has_settings_changed_since_run(state: PanelState) -> bool:
    """Whether the controls say something else than the settings of the present run."""
    if not state.runs.current_rows:
        return False
    row = state.runs.current_rows[0]
    run_settings = {"device": None, **row.settings}
    now = {**state.settings, "device": run_settings["device"]}
    if row.follows_hand:
        now["seeds"] = run_settings["seeds"]
    return now != run_settings


def describe_shown_run(state: PanelState) -> str:
    """Make the caption of the result views: which run they show, and whether controls have moved since."""
    if not state.runs.current_rows:
        return ""
    text = f"Run {state.number}: {make_caption_with_seeds(state.runs.current_rows[0].settings)}"
    if not has_settings_changed_since_run(state):
        return text
    if state.running:  # Run cannot be pressed twice
        return f"{text} (the controls have moved since)"
    return f"{text} (the controls have moved: press Run)"


class LabView:
    """One picture under its own tab. Subclasses set the names below and give `draw`.

    name:   CSS class `fl-view-NAME`;   title: of the tab
    ready:  "always" (the knobs suffice), "data" (a federation), "live" (also while the method runs), "run"
    waiting: what it says while a job runs ("": the old picture stays)
    preview: whether there is a picture before `prepare` is done
    has_scene: whether its pictures have a scene, which the browser draws
    is_drawn_ahead: whether it is drawn before somebody looks at it, while nothing else is to be done
    summary: what the picture will show, said until there is one, after "Press Run."
    work_label, work_help: text and tooltip of the button that starts `work`
    needs:  parts of the state that it is drawn from; what it has of its own (`ViewState`) it always depends on
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
        """What stands in the place of the picture until there is one."""
        return f"Press Run. {self.summary}".rstrip()

    @functools.cached_property
    def controls(self) -> Sequence[widgets.Widget]:
        """In the order in which they were made; a `Play` stands in a box, as only the slider that it moves redraws."""
        widgets_made = []
        for part in vars(self).values():
            if isinstance(part, widgets.Play):
                part = widgets.HBox([part])
            if isinstance(part, widgets.Widget):
                widgets_made.append(part)
        return widgets_made

    def adapt(self, state: PanelState) -> None:
        """Fit the view's own controls to `state` before it is drawn."""

    def prepare(self, state: PanelState) -> Any:
        """Slow work on an outcome, done once in the worker; a generator lets Stop act. None: there is none."""

    def work(self, state: PanelState) -> JobSteps[Any]:
        """What the view's button does: yields (done, total, words), returns what `draw` finds in `state.worked`."""
        raise NotImplementedError
        yield

    def planned_runs(self, state: PanelState) -> PlannedRuns | None:
        """The runs that the button makes. If they take no time, opening the view presses it. None: nobody knows."""

    def take(self, scene_values: Mapping[str, Any]) -> None:
        """A hand has set something in the scene: put it into the view's own controls."""

    def draw(self, state: PanelState) -> Picture:
        raise NotImplementedError

    @property
    def shows_run(self) -> bool:
        """Whether it is drawn from a run; else from what the controls say now, or from its own controls alone."""
        return self.ready in ("live", "run")

    def caption(self, state: PanelState) -> str:
        """The line over the picture."""
        return describe_shown_run(state) if self.shows_run else ""

    def is_older(self, state: PanelState) -> bool:
        """Whether the picture is of another setting than the controls say; then it is dimmed."""
        return self.shows_run and has_settings_changed_since_run(state)

    def is_ready(self, state: PanelState) -> bool:
        """Whether there is what the view is drawn from."""
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


def draw_picture(view: LabView, state: PanelState) -> Picture:
    """The picture of a view, whose words fit the samples that are shown."""
    picture = view.draw(state)
    dimensions = 3 if state.federation is None else len(state.federation.dataset.input_shape)
    samples = SAMPLES[dimensions]
    sentence = replace_image_words(picture.sentence, samples)
    if picture.waits and state.running:
        sentence = LabView.waiting
    elif picture.waits:
        cost = estimate_button_job_cost(view, state)
        if cost is not None and cost.seconds is not None:
            sentence += f" It takes {format_duration(cost.seconds)}."
    alt = replace_image_words(picture.alt, samples)
    detail = replace_image_words(picture.detail, samples)
    return replace(picture, alt=alt, sentence=sentence, detail=detail)


def estimate_button_job_cost(view: LabView, state: PanelState) -> Cost | None:
    """What the button of a view will cost; None if there is none, or nobody knows."""
    if not view.work_label or not view.is_ready(state):
        return None
    runs = view.planned_runs(state)
    if runs is None:
        return None
    return estimate_cost(*runs.values())


@dataclass(frozen=True)
class Extra:
    """A setting of the whole run as a dropdown: `options` are (words, value) pairs, the first one the default."""

    name: str
    label: str
    options: tuple[tuple[str, Any], ...]
    help: str


@dataclass(frozen=True)
class LabSpec:
    """A panel's contents.

    method:     whose knobs are shown; empty for a panel of many methods
    companions: methods that run beside it, ticked at the start;   knobs: shown at once, the rest under "More"
    first:      the view that is seen first; Run turns to the first own one that is drawn live, or to the accuracy
    settings:   starting values;   last: own views stand after the common ones
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
