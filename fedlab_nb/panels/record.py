"""The learner's record: one row for each method of each run, with its outcomes over seeds; rows can be pinned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from ..draw import Series
from ..draw.words import name_of, setting_of
from ..methods import METHODS

BOUNDS = ("local", "centralized")  # references, not competitors


@dataclass(eq=False)
class Row:
    """One method in one run. `settings`: what `study.job` was called with, `seeds` included; `live`: curves still
    growing, by seed.
    """

    run: int
    method: str
    settings: Mapping[str, Any]
    colour: int
    epochs: int
    classes: tuple[str, ...] = ()
    outcomes: dict[int, Any] = field(default_factory=dict)
    live: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    error: str = ""
    pinned: bool = False
    guess: float | None = None

    @property
    def title(self) -> str:
        return METHODS[self.method].info.title if self.method in METHODS else self.method

    @property
    def setting(self) -> str:
        """The setting in words, without method and seed."""
        extra = {
            k: v
            for k, v in self.settings.items()
            if k not in ("dataset", "alpha", "clients", "seed", "seeds", "epochs")
        }
        words = [setting_of(self.settings), f"{self.epochs} local epochs"]
        words += [f"{k} = {v}" for k, v in extra.items() if k not in ("device", "partition")]
        return ", ".join(words)


class Record:
    """All rows of a panel, oldest first."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.run = 0
        self._colours: dict[str, int] = {}

    def begin(
        self, methods: Sequence[str], settings: Mapping[str, Any], epochs: int, classes: Sequence[str]
    ) -> list[Row]:
        """Rows of a new run, still without results. `classes`: their names."""
        self.tidy()
        self.run += 1
        for method in methods:
            self._colours.setdefault(method, len(self._colours))
        fresh = [Row(self.run, m, dict(settings), self._colours[m], epochs, tuple(classes)) for m in methods]
        self.rows += fresh
        return fresh

    def find(self, method: str) -> Row | None:
        """The present run's row of `method`."""
        return next((row for row in self.current if row.method == method), None)

    @property
    def current(self) -> list[Row]:
        return [row for row in self.rows if row.run == self.run]

    @property
    def shown(self) -> list[Row]:
        """What pictures show: the present run, and beside it the pinned rows of earlier ones."""
        return self.current + [row for row in self.rows if row.pinned and row.run != self.run]

    @property
    def outcomes(self) -> list[Any]:
        return [outcome for row in self.rows for outcome in row.outcomes.values()]

    def tidy(self) -> None:
        """Drop the rows that came to nothing."""
        self.rows = [row for row in self.rows if row.outcomes or row.error]

    def clear(self, keep_current: bool = False) -> None:
        """Drop every row that is not pinned; with `keep_current`, only those of earlier runs."""
        self.rows = [row for row in self.rows if row.pinned or (keep_current and row.run == self.run)]

    def series(self, same_classes: bool = False) -> list[Series]:
        """The shown rows as the pictures' plain data; with `same_classes` only those on the present run's classes."""
        current = self.current
        rows = [row for row in self.shown if not same_classes or not current or row.classes == current[0].classes]
        return [series(row, "" if row in current else f"run {row.run}{difference(row, current)}") for row in rows]


def difference(row: Row, current: Iterable[Row]) -> str:
    """In what an earlier row's settings differ from the present ones: ', α = 1, 20 clients'."""
    now = next(iter(current), None)
    if now is None:
        return ""
    words = []
    for key, text in (("dataset", "{}"), ("alpha", "α = {:g}"), ("clients", "{} clients"), ("seed", "seed {}")):
        if row.settings.get(key) != now.settings.get(key) and row.settings.get(key) is not None:
            value = row.settings[key]
            words.append(text.format(name_of(value) if key == "dataset" else value))
    if row.epochs != now.epochs:
        words.append(f"{row.epochs} epochs")
    return "".join(f", {word}" for word in words)


def series(row: Row, detail: str = "") -> Series:
    """A row as plain data for `draw`: means over seeds, the first seed's features."""
    done = [row.outcomes[seed] for seed in sorted(row.outcomes)]
    phases: dict[str, tuple[float, float]] = {}
    for outcome in done:
        for phase, (up, down) in outcome.ledger.by_phase().items():
            before = phases.get(phase, (0.0, 0.0))
            phases[phase] = (before[0] + up / len(done), before[1] + down / len(done))
    running = [points for seed, points in sorted(row.live.items()) if seed not in row.outcomes]
    return Series(
        label=row.title,
        detail=detail,
        setting=row.setting,
        accuracies={seed: outcome.accuracy for seed, outcome in sorted(row.outcomes.items())},
        up=mean(o.bytes_up for o in done) if done else 0.0,
        down=mean(o.bytes_down for o in done) if done else 0.0,
        phases=phases,
        curves=[*(o.history for o in done), *running],
        per_class={seed: o.per_class for seed, o in row.outcomes.items()},
        per_client={seed: row.outcomes[seed].per_client for seed in sorted(row.outcomes)[:1]},
        features=done[0].test_features if done else None,
        labels=done[0].test_labels if done else None,
        colour=row.colour,
        pinned=bool(detail),
        bound=row.method in BOUNDS,
    )
