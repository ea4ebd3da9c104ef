"""Fed-ET's lab, on the logits that a run leaves behind, so that all of it follows the hand: the temperature of the
weights, dissent as a warning light, and λ_div with the target that it makes.
"""

from collections.abc import Generator, Mapping
from typing import Any

import ipywidgets as widgets
import torch

from ...panels.state import PanelState
from ...plots import Picture
from ..runs import where
from ..views import View
from . import numbers
from .plots.dissent import dissent
from .plots.target import target
from .plots.temperature import temperature


def leaf_to(slider: widgets.IntSlider, last: int) -> None:
    """The slider's end, for samples 0 … `last`."""
    slider.value = min(slider.value, last)
    slider.max = last


def options_of(state: PanelState) -> Mapping[str, Any]:
    """The method's knobs in the finished run, or in the one that goes on."""
    return state.knobs if state.outcome is None else state.outcome.options


class Temperature(View, name="temperature"):
    """How right the consensus is and how many clients count, against the temperature of the weights."""

    def prepare(self, state: PanelState) -> Generator[None, None, dict[int, tuple]]:
        curves = {}
        for seed, outcome in state.outcomes.items():
            curves[seed] = numbers.temperature_curves(outcome)
            yield
        return curves

    def draw(self, state: PanelState) -> Picture:
        m = len(state.report.members)
        return temperature(state.prepared, setting=state.setting, clients=m, chosen=self.heat.value)


class Dissent(View, name="dissent"):
    """Does disagreement predict error? By thirds of the dissent mass, and with a threshold."""

    def draw(self, state: PanelState) -> Picture:
        samples = {seed: numbers.by_dissent(outcome, state.klass) for seed, outcome in state.outcomes.items()}
        who = "all test samples" if state.klass is None else f"test samples of class {state.class_names[state.klass]}"
        return dissent(samples, setting=state.setting, threshold=self.limit.value, who=who)


class Target(View, name="target"):
    """The soft label that λ_div makes of one public sample, and the dissenters' share over all of them."""

    _of: Any = None
    _asked: tuple[Any, ...] = ()

    def adapt(self, state: PanelState) -> None:
        """A new run brings its own λ_div and way to normalise, and its own samples."""
        options = options_of(state)
        asked = options["diversity"], options["normalise"]
        if state.outcome is not self._of or asked != self._asked:
            self._of, self._asked = state.outcome, asked
            self.strength.max = max(self.strength.max, asked[0])
            self.strength.value, self.over.value = asked[0], "all" if asked[1] == "all" else "dissenters"
        leaf_to(self.at, state.report.logits.shape[1] - 1)

    def draw(self, state: PanelState) -> Picture:
        options = options_of(state)
        vote = numbers.votes(state.report.logits, *numbers.rule_of(options))
        voices = (vote.dissent * vote.weights)[..., None] * vote.outputs
        if self.over.value == "dissenters":
            voices = voices / torch.where(vote.mass > 0, vote.mass, 1)[:, None]
        return target(
            vote.labels.numpy(), voices.numpy(), state.class_names, strength=self.strength.value, sample=self.at.value,
            setting=where(state), members=state.report.members, client=state.client, klass=state.klass,
        )  # fmt: skip
