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
from ..plots.words import name_of, setting_of

BOUNDS = ("local", "centralized")  # references, not competitors


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
        """What tells this row from all others."""
        return self.run, self.method

    @property
    def title(self) -> str:
        return label_of(self.method, self.settings)

    @property
    def setting(self) -> str:
        """The setting in words, without method and seed."""
        in_words = (
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
        more = (f"{k} = {v}" for k, v in self.settings.items() if k not in in_words)
        return setting_of(self.settings, f"{self.epochs} local epochs", *more)

    def mean(self, number: str) -> float:
        """The mean over seeds of a number of the outcomes, such as "bytes_up"."""
        return mean(getattr(outcome, number) for outcome in self.outcomes.values())

    def without_models(self) -> Row:
        """The row; the models of its outcomes, and the features that no picture shows, are computed again when somebody
        asks for them.
        """
        shown = next(iter(self.outcomes), None)
        return replace(
            self,
            outcomes={seed: o.without_model(seed == shown) for seed, o in self.outcomes.items()},
        )

    def heard(self, event: Any) -> Row:
        """The row after an event of the running job."""
        live = dict(self.live)
        if event.curve is not None:
            live[event.seed] = (*live.get(event.seed, ()), event.curve)
        if event.outcome is not None or event.error is not None:
            live.pop(event.seed, None)
        outcomes = (
            self.outcomes if event.outcome is None else {**self.outcomes, event.seed: event.outcome}
        )
        error = self.error if event.error is None else message(event.error)
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
        names = tuple(state.federation.dataset.class_names)
        same = {"settings": dict(state.settings), "epochs": state.epochs, "classes": names}
        fresh = [Row(number, m, follows_hand=follows_hand, **same) for m in state.methods]
        return Runs((*(row.without_models() for row in self._with_results), *fresh), number)

    def changed(self, row: Row, new: Row) -> Runs:
        """With `new` in the place of `row`."""
        return replace(self, rows=tuple(new if each is row else each for each in self.rows))

    def pinned(self, key: tuple[int, str], pin: bool) -> Runs:
        return replace(
            self, rows=tuple(replace(r, pinned=pin) if r.key == key else r for r in self.rows)
        )

    def ended(self) -> Runs:
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

    def cleared(self, keep_current: bool) -> Runs:
        """Without the rows that are not pinned; with `keep_current`, without those of earlier runs only."""
        return replace(
            self,
            rows=tuple(r for r in self.rows if r.pinned or (keep_current and r.run == self.number)),
        )

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
        current, made = self.current, []
        for row in self.shown:
            if not same_classes or not current or row.classes == current[0].classes:
                detail = "" if row in current else f"run {row.run}{difference(row, current)}"
                made += [series(row, detail), *(other_series(row, detail) if others else ())]
        return made


def message(error: Exception) -> str:
    """One line: the package's own errors speak for themselves, any other is named with the way to its traceback."""
    if isinstance(error, FedlabError):
        return str(error)
    first = (str(error).strip().splitlines() or [""])[0]
    return f"Unexpected {type(error).__name__}: {first} (the traceback is in panel.error)"


def difference(row: Row, current: Sequence[Row]) -> str:
    """In what an earlier row's settings differ from the present ones: ', α = 1, clients = 20'."""
    now = current[0] if current else row
    old, new = (
        {**r.settings, "epochs": r.epochs, "dataset": name_of(r.settings["dataset"])}
        for r in (row, now)
    )
    return "".join(
        f", {'α' if key == 'alpha' else key} = {old[key]}"
        for key in ("dataset", "alpha", "clients", "seed", "epochs")
        if old.get(key) != new.get(key)
    )


def other_series(row: Row, detail: str = "") -> list[Series]:
    """The accuracies of a row's runs under their other rules."""
    by_rule: dict[str, dict[int, float]] = {}
    for seed, outcome in row.outcomes.items():
        for words, share in outcome.report.others().items():
            by_rule.setdefault(words, {})[seed] = share
    same: dict[str, Any] = {"setting": row.setting, "detail": detail, "pinned": bool(detail)}
    return [Series(words, accuracies=shares, **same) for words, shares in by_rule.items()]


def series(row: Row, detail: str = "") -> Series:
    """A row as plain data for `plots`: means over seeds, the first seed's features."""
    done = list(row.outcomes.values())
    phases: dict[str, tuple[float, float]] = {}
    for outcome in done:
        for phase, (up, down) in outcome.ledger.by_phase().items():
            before = phases.get(phase, (0.0, 0.0))
            phases[phase] = (before[0] + up / len(done), before[1] + down / len(done))
    return Series(
        row.title, detail, row.setting, up=row.mean("bytes_up") if done else 0.0, phases=phases,
        down=row.mean("bytes_down") if done else 0.0, curves=[*(o.history for o in done), *row.live.values()],
        accuracies={seed: outcome.accuracy for seed, outcome in row.outcomes.items()},
        per_class={seed: o.per_class for seed, o in row.outcomes.items()},
        per_client={seed: o.per_client for seed, o in list(row.outcomes.items())[:1]},
        calibration={seed: o.calibration for seed, o in row.outcomes.items()},
        features=done[0].test_features if done else None, labels=done[0].test_labels if done else None,
        method=label_of(row.method, row.settings, row.method), pinned=bool(detail), bound=row.method in BOUNDS,
    )  # fmt: skip
