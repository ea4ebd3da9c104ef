"""Views whose button runs methods with several values: what they say before it, and what they read off the runs."""

from collections.abc import Mapping
from statistics import mean
from typing import ClassVar

from ..panels import LabView, PanelState
from ..plots import Picture, Series, blank
from ..studies.outcome import Outcome


class Tried(LabView):
    """A view of what its button made. before: what the button will do;   `tried`: the picture, once that is done."""

    ready = "data"
    before: ClassVar[str]

    def draw(self, state: PanelState) -> Picture:
        if state.worked is None:
            return blank(f"Press “{self.work_label}”: {self.before}", setting=state.setting)
        return self.tried(state)

    def tried(self, state: PanelState) -> Picture:
        raise NotImplementedError


def accuracies(outcomes: Mapping[int, Outcome]) -> dict[int, float]:
    """{seed: test accuracy} of {seed: Outcome}."""
    return {seed: o.accuracy for seed, o in outcomes.items()}


def series(name: str, outcomes: Mapping[int, Outcome], method: str = "") -> Series:
    """A row of a picture: test accuracies, and as `up` the mean of the bytes that one client sends."""
    up = mean(o.bytes_up / len(o.label_counts) for o in outcomes.values())
    return Series(name, method=method, accuracies=accuracies(outcomes), up=up)
