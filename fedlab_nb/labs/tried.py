"""Views whose button runs methods with several values: what they show before it, and what they read off the runs."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from statistics import mean
from typing import Any, ClassVar

from ..panels import LabView, PanelState
from ..plots import Picture, Series, blank
from ..plots.words import setting_of
from ..studies.outcome import Outcome
from ..studies.rows import FOLDER, Row, read


class Tried(LabView):
    """A view of what its button made; until then of the same from stored runs, where it has any.

    before: what the button will do;   `made_of`: what it made for what the view's controls say, None: nothing yet
    `kept`: the same of stored runs, their setting in words first;   `tried`: the picture of either, in `state.worked`
    """

    ready, needs = "data", (*LabView.needs, "shows_stored")
    before: ClassVar[str]

    def draw(self, state: PanelState) -> Picture:
        worked = self.made_of(state) or self.stored(state)
        if worked is None:
            return blank(f"Press “{self.work_label}”: {self.before}", setting=state.setting)
        return self.tried(replace(state, worked=worked))

    def caption(self, state: PanelState) -> str:
        stored = None if self.made_of(state.of(self.name)) else self.stored(state)
        return super().caption(state) if stored is None else f"{stored[0]}. Press “{self.work_label}” for your own."

    def stored(self, state: PanelState) -> Any:
        return self.kept(state) if state.shows_stored else None

    def made_of(self, state: PanelState) -> Any:
        return state.worked

    def kept(self, state: PanelState) -> Any:
        return None

    def tried(self, state: PanelState) -> Picture:
        raise NotImplementedError


@cache
def stored_runs(runs: str) -> tuple[str, list[Row]]:
    """Runs of `studies/declared/labs.toml`: what they are, in words, and their rows."""
    about, rows = read(FOLDER / "labs.json")
    rows = [row for row in rows if row["runs"] == runs]
    seeds = f"seeds {rows[0]['seeds'][0]}–{rows[0]['seeds'][-1]}"
    return f"Stored results of {about['date']}: {setting_of(rows[0]['at'], seeds)}", rows


def by_seed(row: Row, column: str = "accuracy") -> dict[int, float]:
    return dict(zip(row["seeds"], row[column], strict=True))


def accuracies(outcomes: Mapping[int, Outcome]) -> dict[int, float]:
    """{seed: test accuracy} of {seed: Outcome}."""
    return {seed: o.accuracy for seed, o in outcomes.items()}


def series(name: str, outcomes: Mapping[int, Outcome], method: str = "") -> Series:
    """A row of a picture: test accuracies, and as `up` the mean of the bytes that one client sends."""
    up = mean(o.bytes_up / len(o.label_counts) for o in outcomes.values())
    return Series(name, method=method, accuracies=accuracies(outcomes), up=up)
