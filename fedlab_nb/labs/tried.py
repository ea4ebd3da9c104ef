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
    """A view of what its button made; until then of stored runs, where there are some.

    of: the control that says what is run, if there is one; `work` returns its value
    last, and the setting in words first;   `kept`: the same of stored runs;   `tried`: the picture of `state.worked`
    """

    ready, needs = "data", (*LabView.needs, "shows_stored")
    of: ClassVar[str] = ""

    def shown(self, state: PanelState) -> tuple[Any, bool]:
        """What is drawn (None: nothing), and whether it is stored."""
        made = state.worked
        if made is None or (self.of and made[-1] != getattr(self, self.of).value):
            return self.kept(state) if state.shows_stored else None, True
        return made, False

    def kept(self, state: PanelState) -> Any:
        return None

    def draw(self, state: PanelState) -> Picture:
        worked, _ = self.shown(state)
        if worked is None:
            return blank(
                f"Press “{self.work_label}”. {str(self.work.__doc__).rstrip('.')}.",
                setting=state.setting,
            )
        return self.tried(replace(state, worked=worked))

    def caption(self, state: PanelState) -> str:
        worked, stored = self.shown(state.of(self.name))
        return f"{worked[0]}." if worked and stored else super().caption(state)


@cache
def stored_runs(runs: str) -> tuple[str, list[Row]]:
    """Runs of `studies/declared/labs.toml`: what they are, in words, and their rows."""
    about, rows = read(FOLDER / "labs.json")
    rows = [row for row in rows if row["runs"] == runs]
    seeds = f"seeds {rows[0]['seeds'][0]}–{rows[0]['seeds'][-1]}"
    return f"Stored {about['date']}: {setting_of(rows[0]['at'], seeds)}", rows


def by_seed(row: Row, column: str = "accuracy") -> dict[int, float]:
    return dict(zip(row["seeds"], row[column], strict=True))


def accuracies(outcomes: Mapping[int, Outcome]) -> dict[int, float]:
    """{seed: test accuracy} of {seed: Outcome}."""
    return {seed: o.accuracy for seed, o in outcomes.items()}


def series(name: str, outcomes: Mapping[int, Outcome], method: str = "") -> Series:
    """A row of a picture: test accuracies, and as `up` the mean of the bytes that one client sends."""
    up = mean(o.bytes_up / len(o.label_counts) for o in outcomes.values())
    return Series(name, method=method, accuracies=accuracies(outcomes), up=up)
