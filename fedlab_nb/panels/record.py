"""The learner's record: one row for each method of each run, with its outcomes over seeds; rows can be pinned.

`Runs` is immutable: a new run, an event, a pin give another `Runs`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean
from typing import Any

from ..errors import FedlabError
from ..methods import label_of
from ..plots import Series
from ..plots.words import Setting, dataset_name, make_setting, plain_client_name

BOUNDS = ("local", "centralized")  # references, not competitors
# Settings that `make_setting` names, or that a row says elsewhere.
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


@dataclass(frozen=True, eq=False)
class Row:
    """One method in one run. `settings`: what `study.job` was called with, `seeds` included; `outcomes`: {seed:
    Outcome}; `live`: {seed: points of the curve that still grows}; `follows_hand`: of one seed, trained when a
    control was let go. The next such run takes its place, unless it is pinned.
    """

    run: int
    method: str
    settings: Mapping[str, Any]
    epochs: int
    classes: tuple[str, ...] = ()
    outcomes: Mapping[int, Any] = field(default_factory=dict)
    live: Mapping[int, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    error: str = ""
    pinned: bool = False
    follows_hand: bool = False

    @property
    def key(self) -> tuple[int, str]:
        """Run and method: no other row has the same."""
        return self.run, self.method

    @property
    def title(self) -> str:
        return label_of(self.method, self.settings)

    @property
    def setting(self) -> str:
        """The setting in words, without method and seed."""
        settings = {k: v for k, v in self.settings.items() if k not in NAMED_SETTINGS}
        others = [f"{name} = {value}" for name, value in settings.items()]
        return make_setting(self.settings, f"{self.epochs} local epochs", *others)

    def mean(self, number: str) -> float:
        """The mean over seeds of a number of the outcomes, such as "bytes_up"."""
        return mean(getattr(outcome, number) for outcome in self.outcomes.values())

    def without_models(self) -> Row:
        """The row; the models of its outcomes, and the features that no picture shows, are computed again when somebody
        asks for them.
        """
        first_seed = next(iter(self.outcomes), None)
        outcomes = {}
        for seed, outcome in self.outcomes.items():
            outcomes[seed] = outcome.without_model(seed == first_seed)
        return replace(self, outcomes=outcomes)

    def with_event(self, event: Any) -> Row:
        """The row after an event of the running job."""
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
            error = describe_error(event.error)
        return replace(self, live=live, outcomes=dict(sorted(outcomes.items())), error=error)


@dataclass(frozen=True, eq=False)
class Runs:
    """All rows of a panel, oldest first. `number`: of the present run, 0 before the first."""

    rows: tuple[Row, ...] = ()
    number: int = 0

    def begin(self, state: Any, follows_hand: bool = False) -> Runs:
        """With the rows of the run that a `PanelState` asks for, still without results. Models of earlier runs go: they
        would take megabytes a run, and are computed again if somebody asks for one."""
        number = self.number + 1
        rows = [row.without_models() for row in self._with_results]
        for method in state.methods:
            row = Row(
                number,
                method,
                settings=dict(state.settings),
                epochs=state.epochs,
                classes=tuple(state.federation.dataset.class_names),
                follows_hand=follows_hand,
            )
            rows.append(row)
        return Runs(tuple(rows), number)

    def with_row(self, old: Row, new: Row) -> Runs:
        """With `new` in the place of `old`."""
        rows = [new if row is old else row for row in self.rows]
        return replace(self, rows=tuple(rows))

    def with_pin(self, key: tuple[int, str], pinned: bool) -> Runs:
        """With the row of this key pinned, or not."""
        rows = [replace(row, pinned=pinned) if row.key == key else row for row in self.rows]
        return replace(self, rows=tuple(rows))

    def with_end(self) -> Runs:
        """The present run is over: without the rows that came to nothing. If all of them did, the run before it is the
        present one again.
        """
        last = max((row.run for row in self._with_results), default=self.number)
        rows = []
        for row in self._with_results:
            is_replaced = row.follows_hand and row.run < last and not row.pinned
            if not is_replaced:
                rows.append(replace(row, live={}) if row.live else row)
        return Runs(tuple(rows), last)

    def without_unpinned(self, keep_current: bool) -> Runs:
        """Without the rows that are not pinned; with `keep_current`, without those of earlier runs only."""
        rows = []
        for row in self.rows:
            is_current = row.run == self.number
            if row.pinned or (keep_current and is_current):
                rows.append(row)
        return replace(self, rows=tuple(rows))

    @property
    def _with_results(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.outcomes or row.error)

    def find(self, method: str) -> Row | None:
        """The present run's row of `method`."""
        return next((row for row in self.current if row.method == method), None)

    @property
    def current(self) -> list[Row]:
        return [row for row in self.rows if row.run == self.number]

    @property
    def shown(self) -> list[Row]:
        """What pictures show: the present run, and beside it the pinned rows of earlier ones."""
        return self.current + [row for row in self.rows if row.pinned and row.run != self.number]

    @property
    def outcomes(self) -> list[Any]:
        return [outcome for row in self.rows for outcome in row.outcomes.values()]

    @property
    def has_results(self) -> bool:
        """Whether the present run has a result."""
        return any(row.outcomes for row in self.current)

    def series(self, same_classes: bool = False, others: bool = False) -> list[Series]:
        """The shown rows as the pictures' plain data; with `same_classes` only those on the present run's classes.

        `others`: after a row one more for each other rule of its runs (`Report.others`), of accuracies alone.
        """
        current = self.current
        found = []
        for row in self.shown:
            if same_classes and current and row.classes != current[0].classes:
                continue
            detail = ""
            if row not in current:
                detail = f"run {row.run}{describe_changed_settings(row, current)}"
            found.append(make_series(row, detail))
            if others:
                found += make_other_series(row, detail)
        return found


def describe_error(error: Exception) -> str:
    """One line: the package's own errors speak for themselves, any other is named with the way to its traceback."""
    if isinstance(error, FedlabError):
        return str(error)
    lines = str(error).strip().splitlines()
    first = lines[0] if lines else ""
    return f"Unexpected {type(error).__name__}: {first} (the traceback is in panel.error)"


def describe_changed_settings(row: Row, current: Sequence[Row]) -> str:
    """In what an earlier row's settings differ from the present ones: ', α = 1, clients = 20'."""
    present = current[0] if current else row
    old = list_compared_settings(row)
    new = list_compared_settings(present)
    text = ""
    for name in COMPARED_SETTINGS:
        if old.get(name) != new.get(name):
            label = "α" if name == "alpha" else name
            text += f", {label} = {old[name]}"
    return text


def list_compared_settings(row: Row) -> dict[str, Any]:
    """The settings of a row, with its epochs and without the folder of its data."""
    dataset = dataset_name(row.settings["dataset"])
    return {**row.settings, "epochs": row.epochs, "dataset": dataset}


def make_other_series(row: Row, detail: str = "") -> list[Series]:
    """The accuracies of a row's runs under their other rules."""
    by_rule: dict[str, dict[int, float]] = {}
    for seed, outcome in row.outcomes.items():
        for words, share in outcome.report.others().items():
            by_rule.setdefault(words, {})[seed] = share
    found = []
    for words, shares in by_rule.items():
        rule = Series(words, detail, row.setting, accuracies=shares, pinned=bool(detail))
        found.append(rule)
    return found


def make_series(row: Row, detail: str = "") -> Series:
    """A row as plain data for `plots`: means over seeds, the first seed's features."""
    outcomes = row.outcomes
    first = next(iter(outcomes.values()), None)
    first_seed = next(iter(outcomes), None)
    per_client = {} if first is None else {first_seed: first.per_client}
    return Series(
        row.title,
        detail,
        row.setting,
        accuracies={seed: outcome.accuracy for seed, outcome in outcomes.items()},
        up=row.mean("bytes_up") if outcomes else 0.0,
        down=row.mean("bytes_down") if outcomes else 0.0,
        phases=average_phases(list(outcomes.values())),
        curves=[*(outcome.history for outcome in outcomes.values()), *row.live.values()],
        per_class={seed: outcome.per_class for seed, outcome in outcomes.items()},
        per_client=per_client,
        calibration={seed: outcome.calibration for seed, outcome in outcomes.items()},
        features=None if first is None else first.test_features,
        labels=None if first is None else first.test_labels,
        answers=None if first is None else getattr(first, "test_predictions", None),
        features_of=describe_features_owner(first, row.setting),
        method=label_of(row.method, row.settings, row.method),
        pinned=bool(detail),
        bound=row.method in BOUNDS,
    )


def describe_features_owner(outcome: Any, setting: Setting) -> str:
    """Whose features an outcome has, where each client has a model of its own: 'client G'; else ''."""
    best = getattr(getattr(outcome, "report", None), "best_client", None)
    return "" if best is None else f"client {plain_client_name(best, setting)}"


def average_phases(outcomes: Sequence[Any]) -> dict[str, tuple[float, float]]:
    """{phase: (bytes up, bytes down)}, means over the outcomes."""
    phases: dict[str, tuple[float, float]] = {}
    for outcome in outcomes:
        for phase, (up, down) in outcome.ledger.by_phase().items():
            before_up, before_down = phases.get(phase, (0.0, 0.0))
            phases[phase] = (before_up + up / len(outcomes), before_down + down / len(outcomes))
    return phases
