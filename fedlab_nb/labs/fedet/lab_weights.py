"""Fed-ET's lab, on the logits that a run leaves behind, so that all of it follows the hand: the temperature of the
weights, dissent as a warning light, and λ with the target that it makes.
"""

from collections.abc import Generator
from typing import Any

import ipywidgets as widgets
import torch

from ...panels.lab_view import LabView, PanelState
from ...plots import Picture
from .. import runs
from ..controls import dropdown
from . import numbers
from .plots.dissent import dissent
from .plots.target import target
from .plots.temperature import temperature


def control(kind: type, *value: Any, label: str, tooltip: str, width: int, **options: Any) -> Any:
    """A control of a view, its label in full, so many pixels wide; `value` and `options` as for the widget `kind`."""
    layout, style = {"width": f"{width}px"}, {"description_width": "initial"}
    return kind(*value, description=label, tooltip=tooltip, layout=layout, style=style, **options)


def leaf_to(slider: widgets.IntSlider, last: int) -> None:
    """The slider's end, for samples 0 … `last`."""
    slider.value = min(slider.value, last)
    slider.max = last


def where(state: PanelState) -> str:
    """The setting of what is shown, in words: that of the first seed's outcome, or of the run that is going on."""
    return state.setting if state.outcome is None else runs.where(state.outcome)


class Temperature(LabView):
    """How right the consensus is and how many clients count, against the temperature of the weights."""

    name, title, ready = "temperature", "Temperature", "run"
    empty = "Press Run: the consensus at every temperature of the weights, from the clients' logits."

    def __init__(self) -> None:
        self.heat = control(
            widgets.FloatLogSlider, 1.0, min=-1, max=2, step=0.05, label="Temperature T", readout_format=".2g",
            tooltip="Divides the logits before the variance; the labels of public samples follow", width=340,
        )  # fmt: skip
        self.controls = [self.heat]

    def prepare(self, state: PanelState) -> Generator[None, None, dict[int, tuple]]:
        curves = {}
        for seed, outcome in state.outcomes.items():
            curves[seed] = numbers.temperature_curves(outcome)
            yield
        return curves

    def draw(self, state: PanelState) -> Picture:
        m = len(state.report.members)
        return temperature(state.prepared, setting=state.setting, clients=m, chosen=self.heat.value)


class Dissent(LabView):
    """Does disagreement predict error? By thirds of the dissent mass, and with a threshold."""

    name, title, ready = "dissent", "Dissent", "run"
    empty = "Press Run: how often the consensus is right where few or many clients disagree with it."

    def __init__(self) -> None:
        self.limit = control(
            widgets.FloatSlider, 0.6, min=0, max=1, step=0.02, label="Answer only if ρ ≤",
            tooltip="Where more of the weight disagrees, no answer is given", width=340,
        )  # fmt: skip
        self.controls = [self.limit]

    def draw(self, state: PanelState) -> Picture:
        samples = {seed: numbers.by_dissent(outcome, state.klass) for seed, outcome in state.outcomes.items()}
        who = "all test samples" if state.klass is None else f"test samples of class {state.class_names[state.klass]}"
        return dissent(samples, setting=state.setting, threshold=self.limit.value, who=who)


class Target(LabView):
    """The soft label that λ makes of one public sample, and the dissenters' share over all of them."""

    name, title, ready = "target", "λ and the target", "live"
    empty = "Press Run: what the server is told to learn from each public sample."

    def __init__(self) -> None:
        self.at = control(
            widgets.IntSlider, 0, 0, 0, label="Public sample", tooltip="Leaf through the public samples", width=250
        )
        self.strength = control(
            widgets.FloatSlider, 0.5, min=0, max=4, step=0.05, label="λ", tooltip="Weight of the dissenters' target",
            width=210,
        )  # fmt: skip
        whose = "Whose weights sum to 1 in the dissenters' target: all clients' (paper) or their own"
        self.over = dropdown("Normalised over", ("all", "dissenters"), whose, 210)
        self.controls = [self.at, self.strength, self.over]

    def adapt(self, state: PanelState) -> None:
        leaf_to(self.at, state.report.logits.shape[1] - 1)

    def draw(self, state: PanelState) -> Picture:
        options = state.knobs if state.outcome is None else state.outcome.options
        said = numbers.votes(state.report.logits, *numbers.rule_of(options))
        voices = (said.dissent * said.weights)[..., None] * said.outputs
        if self.over.value == "dissenters":
            voices = voices / torch.where(said.mass > 0, said.mass, 1)[:, None]
        return target(
            said.labels.numpy(), voices.numpy(), state.class_names, strength=self.strength.value, sample=self.at.value,
            setting=where(state), members=state.report.members, client=state.client, klass=state.klass,
        )  # fmt: skip
