"""The learner's record: one row for each method of each run, with its outcomes over seeds; rows can be pinned.

`RunRecord` is immutable: a new run, an event, a pin give another `RunRecord`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean
from typing import Any, NamedTuple, Protocol

from ..data import Federation
from ..errors import FedlabError
from ..methods import choose_method_label
from ..plots import MethodResults
from ..plots.words import (
    SettingCaption,
    format_client_for_sentence,
    format_dataset_name,
    make_setting_caption,
)
from ..studies.experiment import Event
from ..studies.outcome import Outcome
from ..value_types import SettingsByName, SettingValue

BOUNDS = ("local", "centralized")  # references, not competitors
# Settings that `make_setting_caption` names, or that a row says elsewhere.
NAMED_SETTINGS = (
    "dataset",
    "alpha",
    "clients",
    "seed",
    "seeds",
    "epochs",
    "device",
    "partition",
    "moves",
)
COMPARED_SETTINGS = ("dataset", "alpha", "clients", "seed", "epochs")


class RunPlan(Protocol):
    """What says what is run: a `PanelState`."""

    methods: Sequence[str]
    settings: SettingsByName
    epochs: int
    federation: Federation | None


class RunAndMethod(NamedTuple):
    """The number of a run, and the method: no two rows have the same."""

    run: int
    method: str


class MeanBytesUpAndDown(NamedTuple):
    """Bytes from clients to the server (`up`) and back (`down`), means over outcomes."""

    up: float
    down: float


@dataclass(frozen=True, eq=False)
class MethodRun:
    """One method in one run.

    run: the number of the run, from 1 on
    settings: what `study.job` was called with, `seeds` included
    epochs: local epochs of the run
    classes: names of the classes
    outcomes: {seed: Outcome} of the seeds that are finished
    live: {seed: points of its curve so far} of the seeds that still run
    error: why a seed failed; ""
    pinned: the row stays in the pictures when a new run begins
    is_quick_run: the run began by itself when a control was let go, with one seed. The next run
        replaces the row, unless it is pinned
    """

    run: int
    method: str
    settings: SettingsByName
    epochs: int
    classes: tuple[str, ...] = ()
    outcomes: Mapping[int, Outcome] = field(default_factory=dict)
    live: Mapping[int, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    error: str = ""
    pinned: bool = False
    is_quick_run: bool = False

    @property
    def key(self) -> RunAndMethod:
        """Run and method: no other row has the same."""
        return RunAndMethod(self.run, self.method)

    @property
    def title(self) -> str:
        return choose_method_label(self.method, self.settings)

    @property
    def setting(self) -> SettingCaption:
        """The setting in words, without method and seed."""
        settings = {k: v for k, v in self.settings.items() if k not in NAMED_SETTINGS}
        others = [f"{name} = {value}" for name, value in settings.items()]
        return make_setting_caption(self.settings, f"{self.epochs} local epochs", *others)

    def compute_mean_over_seeds(self, outcome_field_name: str) -> float:
        """Compute the mean over seeds of a number of the outcomes, such as "bytes_up"."""
        return mean(getattr(outcome, outcome_field_name) for outcome in self.outcomes.values())

    def copy_without_models(self) -> MethodRun:
        """Return the row without the models of its outcomes, and without features that no picture
        shows. They are computed again when somebody asks for them."""
        first_seed = next(iter(self.outcomes), None)
        outcomes = {}
        for seed, outcome in self.outcomes.items():
            outcomes[seed] = outcome.without_model(seed == first_seed)
        return replace(self, outcomes=outcomes)

    def copy_after_event(self, event: Event) -> MethodRun:
        """Return the row after an event of the running job."""
        live = dict(self.live)
        if event.curve is not None:
            live[event.seed] = (*live.get(event.seed, ()), event.curve)
        if event.outcome is not None or event.error is not None:
            live.pop(event.seed, None)
        outcomes = dict(self.outcomes)
        if event.outcome is not None:
            outcomes[event.seed] = event.outcome
        error = self.error
        if event.error is not None:
            error = describe_error_in_one_line(event.error)
        return replace(self, live=live, outcomes=dict(sorted(outcomes.items())), error=error)


@dataclass(frozen=True, eq=False)
class RunRecord:
    """All rows of a panel, oldest first. `number`: of the present run, 0 before the first."""

    rows: tuple[MethodRun, ...] = ()
    number: int = 0

    def copy_with_rows_of_new_run(self, run_plan: RunPlan, is_quick_run: bool = False) -> RunRecord:
        """Return a copy with the rows of a new run, which are empty until its results come.

        Earlier rows without a result are dropped. The others lose their models, which would take
        megabytes a run; a model is computed again if somebody asks for it.

        run_plan: the `PanelState` that says what is run
        is_quick_run: see `MethodRun`
        """
        number = self.number + 1
        rows = [row.copy_without_models() for row in self._rows_with_results]
        for method in run_plan.methods:
            row = MethodRun(
                number,
                method,
                settings=dict(run_plan.settings),
                epochs=run_plan.epochs,
                classes=tuple(run_plan.federation.dataset.class_names),
                is_quick_run=is_quick_run,
            )
            rows.append(row)
        return RunRecord(tuple(rows), number)

    def copy_with_row_replaced(self, old_row: MethodRun, new_row: MethodRun) -> RunRecord:
        """Return a copy with `new_row` in the place of `old_row`."""
        rows = [new_row if row is old_row else row for row in self.rows]
        return replace(self, rows=tuple(rows))

    def copy_with_row_pinned(self, key: RunAndMethod, is_pinned: bool) -> RunRecord:
        """Return a copy in which the row of this key is pinned, or not."""
        rows = [replace(row, pinned=is_pinned) if row.key == key else row for row in self.rows]
        return replace(self, rows=tuple(rows))

    def copy_tidied_after_run(self) -> RunRecord:
        """Return a tidied copy, after the present run has ended.

        Rows without a result or an error are dropped. If the run has no other rows, the run before
        it becomes the present one again. Earlier rows that followed the hand are dropped, unless
        they are pinned.
        """
        last = max((row.run for row in self._rows_with_results), default=self.number)
        rows = []
        for row in self._rows_with_results:
            is_replaced = row.is_quick_run and row.run < last and not row.pinned
            if not is_replaced:
                rows.append(replace(row, live={}) if row.live else row)
        return RunRecord(tuple(rows), last)

    def copy_without_unpinned_rows(self, keeps_present_run: bool) -> RunRecord:
        """Return a copy without the rows that are not pinned.

        keeps_present_run: the rows of the present run stay
        """
        rows = []
        for row in self.rows:
            is_current = row.run == self.number
            if row.pinned or (keeps_present_run and is_current):
                rows.append(row)
        return replace(self, rows=tuple(rows))

    @property
    def _rows_with_results(self) -> tuple[MethodRun, ...]:
        return tuple(row for row in self.rows if row.outcomes or row.error)

    def find_current_row(self, method_name: str) -> MethodRun | None:
        """Find the present run's row of `method_name`; None if it has none."""
        for row in self.current_rows:
            if row.method == method_name:
                return row
        return None

    @property
    def current_rows(self) -> list[MethodRun]:
        """The rows of the present run."""
        return [row for row in self.rows if row.run == self.number]

    @property
    def shown_rows(self) -> list[MethodRun]:
        """What pictures show: the present run, and beside it the pinned rows of earlier ones."""
        earlier_rows = [row for row in self.rows if row.pinned and row.run != self.number]
        return self.current_rows + earlier_rows

    @property
    def outcomes(self) -> list[Outcome]:
        return list_outcomes_of_rows(self.rows)

    def list_current_outcomes(self) -> list[Outcome]:
        """The outcomes of the present run."""
        return list_outcomes_of_rows(self.current_rows)

    @property
    def has_results(self) -> bool:
        """Whether the present run has a result."""
        return any(row.outcomes for row in self.current_rows)

    def list_results_of_shown_rows(
        self, skips_rows_with_other_classes: bool = False, adds_other_rules_of_methods: bool = False
    ) -> list[MethodResults]:
        """List the rows that pictures show, as plain data for `plots`.

        skips_rows_with_other_classes: leave out rows whose data have other classes than the present run's
        adds_other_rules_of_methods: add the other rules of a method (of its `Report`) after its row; of these only the
            accuracies are known
        """
        current = self.current_rows
        found = []
        for row in self.shown_rows:
            if skips_rows_with_other_classes and current and row.classes != current[0].classes:
                continue
            detail = ""
            if row not in current:
                detail = f"run {row.run}{describe_changed_settings_after_comma(row, current)}"
            found.append(make_results_of_row(row, detail))
            if adds_other_rules_of_methods:
                found += make_results_of_other_rules(row, detail)
        return found


def list_outcomes_of_rows(rows: Iterable[MethodRun]) -> list[Outcome]:
    """List the outcomes of all seeds of these rows, in their order."""
    found: list[Outcome] = []
    for row in rows:
        found += row.outcomes.values()
    return found


def describe_error_in_one_line(error: Exception) -> str:
    """Describe an error in one line: one of the package by its text, any other also by its type."""
    if isinstance(error, FedlabError):
        return str(error)
    lines = str(error).strip().splitlines()
    first = lines[0] if lines else ""
    return f"Unexpected {type(error).__name__}: {first} (the traceback is in panel.error)"


def describe_changed_settings_after_comma(row: MethodRun, current_rows: Sequence[MethodRun]) -> str:
    """Say in what an earlier row's settings differ from the present ones: ', α = 1, clients = 20', or ''."""
    present = current_rows[0] if current_rows else row
    old = get_settings_with_epochs_and_dataset_name(row)
    new = get_settings_with_epochs_and_dataset_name(present)
    text = ""
    for name in COMPARED_SETTINGS:
        if old.get(name) != new.get(name):
            label = "α" if name == "alpha" else name
            text += f", {label} = {old[name]}"
    return text


def get_settings_with_epochs_and_dataset_name(row: MethodRun) -> dict[str, SettingValue]:
    """Return the settings of a row, with its epochs and without the folder of its data."""
    dataset = format_dataset_name(row.settings["dataset"])
    return {**row.settings, "epochs": row.epochs, "dataset": dataset}


def make_results_of_other_rules(
    row: MethodRun, detail_of_pinned_row: str = ""
) -> list[MethodResults]:
    """Make a series for each other rule of a row's runs (of their `Report`), with accuracies alone."""
    by_rule: dict[str, dict[int, float]] = {}
    for seed, outcome in row.outcomes.items():
        for words, share in outcome.report.get_accuracies_under_other_rules().items():
            by_rule.setdefault(words, {})[seed] = share
    found = []
    for words, shares in by_rule.items():
        rule = MethodResults(
            words,
            detail_of_pinned_row,
            row.setting,
            accuracies=shares,
            pinned=bool(detail_of_pinned_row),
        )
        found.append(rule)
    return found


def make_results_of_row(row: MethodRun, detail_of_pinned_row: str = "") -> MethodResults:
    """Make a row plain data for `plots`: means over seeds, the first seed's features.

    detail_of_pinned_row: in what an earlier run differs; with it the row is drawn as a pinned one
    """
    outcomes = row.outcomes
    first = next(iter(outcomes.values()), None)
    first_seed = next(iter(outcomes), None)
    per_client = {} if first is None else {first_seed: first.per_client}
    return MethodResults(
        row.title,
        detail_of_pinned_row,
        row.setting,
        accuracies={seed: outcome.accuracy for seed, outcome in outcomes.items()},
        up=row.compute_mean_over_seeds("bytes_up") if outcomes else 0.0,
        down=row.compute_mean_over_seeds("bytes_down") if outcomes else 0.0,
        phases=average_bytes_by_phase(list(outcomes.values())),
        curves=[*(outcome.history for outcome in outcomes.values()), *row.live.values()],
        per_class={seed: outcome.per_class for seed, outcome in outcomes.items()},
        per_client=per_client,
        calibration={seed: outcome.calibration for seed, outcome in outcomes.items()},
        features=None if first is None else first.test_features,
        labels=None if first is None else first.test_labels,
        answers=None if first is None else getattr(first, "test_predictions", None),
        features_of=name_owner_of_features_or_empty(first, row.setting),
        method=choose_method_label(row.method, row.settings, row.method),
        pinned=bool(detail_of_pinned_row),
        bound=row.method in BOUNDS,
    )


def name_owner_of_features_or_empty(outcome: Outcome | None, setting: SettingCaption) -> str:
    """Say whose features an outcome has, where each client has a model of its own: 'client G'; else ''."""
    best = getattr(getattr(outcome, "report", None), "best_client", None)
    return "" if best is None else f"client {format_client_for_sentence(best, setting)}"


def average_bytes_by_phase(outcomes: Sequence[Outcome]) -> dict[str, MeanBytesUpAndDown]:
    """Return {phase: (bytes up, bytes down)}, means over the outcomes."""
    phases: dict[str, tuple[float, float]] = {}
    for outcome in outcomes:
        for phase, (up, down) in outcome.ledger.by_phase().items():
            before_up, before_down = phases.get(phase, (0.0, 0.0))
            phases[phase] = (before_up + up / len(outcomes), before_down + down / len(outcomes))
    return phases
