"""Views whose button runs a method with several values, and what they read off the outcomes."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from statistics import mean
from typing import Any, ClassVar

from ..panels import LabView, PanelState
from ..plots import Picture, Series, make_blank_picture
from ..plots.words import make_setting
from ..studies.outcome import Outcome
from ..studies.stored_rows import FOLDER, Row, read_stored_rows


class ButtonView(LabView):
    """A view of the runs that its button makes. Until then it shows stored runs, if there are any.

    `work` returns a tuple. If there are stored runs, the setting in words comes first.
    choice: name of the control that says what is run. Its value comes last in the tuple
    """

    ready = "data"
    needs = (*LabView.needs, "shows_stored")
    choice: ClassVar[str] = ""

    def stored_result(self, state: PanelState) -> Any:
        """What `work` would return, made from stored runs. None: there are none."""
        return None

    def draw_result(self, state: PanelState) -> Picture:
        """The picture of `state.worked`."""
        raise NotImplementedError

    def current_result(self, state: PanelState) -> tuple[Any, bool]:
        """What is drawn (None: nothing), and whether it comes from stored runs."""
        result = state.worked
        if result is not None and self._fits_choice(result):
            return result, False
        if state.shows_stored:
            return self.stored_result(state), True
        return None, True

    def _fits_choice(self, result: Any) -> bool:
        """Whether the button made this result with the present value of the control."""
        if not self.choice:
            return True
        return result[-1] == getattr(self, self.choice).value

    def draw(self, state: PanelState) -> Picture:
        result, _ = self.current_result(state)
        if result is None:
            return make_blank_picture(
                f"Press “{self.work_label}”. {self.work_help}", setting=state.setting
            )
        return self.draw_result(replace(state, worked=result))

    def caption(self, state: PanelState) -> str:
        result, is_stored = self.current_result(state.for_view(self.name))
        if result and is_stored:
            return f"{result[0]}."
        return super().caption(state)


@cache
def read_stored_runs(name: str) -> tuple[str, list[Row]]:
    """The stored runs of that name (papers/declared/labs.toml): what they are, and their rows."""
    about, rows = read_stored_rows(FOLDER / "labs.json")
    rows = [row for row in rows if row["runs"] == name]
    first = rows[0]
    seeds = f"seeds {first['seeds'][0]}–{first['seeds'][-1]}"
    return f"Stored {about['date']}: {make_setting(first['at'], seeds)}", rows


def group_values_by_seed(row: Row, column: str = "accuracy") -> dict[int, float]:
    """{seed: value} of one column of a stored row."""
    return dict(zip(row["seeds"], row[column], strict=True))


def group_accuracies_by_seed(outcomes: Mapping[int, Outcome]) -> dict[int, float]:
    """{seed: test accuracy} of {seed: Outcome}."""
    return {seed: outcome.accuracy for seed, outcome in outcomes.items()}


def make_series(name: str, outcomes: Mapping[int, Outcome], method: str = "") -> Series:
    """A row of a picture: test accuracies, and as `up` the mean bytes that one client sends."""
    bytes_up = mean(outcome.bytes_up / len(outcome.label_counts) for outcome in outcomes.values())
    return Series(name, method=method, accuracies=group_accuracies_by_seed(outcomes), up=bytes_up)
