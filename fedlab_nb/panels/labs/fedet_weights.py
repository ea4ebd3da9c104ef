"""Fed-ET's lab, on the logits that a run keeps, so that all of it follows the hand: the temperature of the weights,
dissent as a warning light, and λ with the target that it makes.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import ipywidgets as widgets
import numpy as np
import torch

from ...draw import Picture
from ...draw.fedet_dissent import dissent
from ...draw.fedet_target import target
from ...draw.fedet_temperature import temperature
from ...methods.parts.consensus import Consensus, consensus
from ..lab_view import LabView, Look
from ..scene import words

WIDE = {"description_width": "initial"}
RULES = (
    ("softmax (paper)", "softmax"),
    ("raw logits", "logit-variance"),
    ("raw logits, summed", "logits"),
    ("equal", "uniform"),
)
OTHERS = {"equal weights": "uniform", "variance of raw logits": "logit-variance", "raw logits summed": "logits"}
Curves = tuple[list[float], list[float], dict[str, float]]
HEATS = tuple(float(t) for t in np.geomspace(0.1, 100, 19))
KEPT = ("dataset", "alpha", "clients", "seed", "partition")


def where(look: Look, every_seed: bool = False) -> str:
    """The setting that is shown: that of one outcome, or of all seeds of the run."""
    if look.outcome is None or every_seed:
        return look.setting
    return words({**look.settings, **{key: look.outcome.setting[key] for key in KEPT}, "seeds": 1})


def said(logits: np.ndarray, weighting: str, heat: float, normalise: str = "all") -> Consensus:
    """What the server makes of logits `[m, B, N]`."""
    return consensus(torch.as_tensor(logits), weighting, heat, normalise)


def softmax(z: np.ndarray) -> np.ndarray:
    return torch.as_tensor(z).softmax(-1).numpy()


def rule_of(outcome: Any) -> tuple[str, float]:
    """Weighting and temperature of a run."""
    options = outcome.setting["options"]
    return options["weighting"], options["temperature"]


class Temperature(LabView):
    """How right the consensus is and how many clients count, against the temperature of the weights."""

    name, title, ready = "temperature", "Temperature", "run"
    empty = "Press Run: the consensus at every temperature of the weights, from the clients' logits."

    def __init__(self) -> None:
        super().__init__()
        self.heat = widgets.FloatLogSlider(
            1.0, min=-1, max=2, step=0.05, description="Temperature T", readout_format=".2g", style=WIDE,
            tooltip="Divides the logits before the variance; the labels of public samples follow",
            layout={"width": "340px"},
        )  # fmt: skip
        self.controls = [self.heat]

    def prepare(self, look: Look) -> Generator[None, None, dict[int, Curves]]:
        found = {}
        for seed, outcome in look.outcomes.items():
            found[seed] = curves_of(outcome)
            yield
        return found

    def draw(self, look: Look) -> Picture:
        found = look.prepared
        return temperature(
            HEATS,
            {seed: accuracy for seed, (accuracy, _, _) in found.items()},
            {seed: effective for seed, (_, effective, _) in found.items()},
            {name: {seed: others[name] for seed, (_, _, others) in found.items()} for name in OTHERS},
            setting=where(look, every_seed=True),
            clients=len(look.outcome.artefacts["members"]),
            chosen=self.heat.value,
        )


def curves_of(outcome: Any) -> Curves:
    """At each of HEATS, accuracy of the consensus on test samples and effective clients; accuracy of the OTHERS."""
    z, truth = outcome.artefacts["test_logits"], torch.as_tensor(outcome.artefacts["test_truth"])

    def right(c: Consensus) -> float:
        return float((c.labels == truth).double().mean())

    hot = [said(z, "softmax", heat) for heat in HEATS]
    effective = [float(c.effective_clients.mean()) for c in hot]
    return [right(c) for c in hot], effective, {name: right(said(z, rule, 1.0)) for name, rule in OTHERS.items()}


class Dissent(LabView):
    """Does disagreement predict error? By thirds of the dissent mass, and with a threshold."""

    name, title, ready = "dissent", "Dissent", "run"
    empty = "Press Run: how often the consensus is right where few or many clients disagree with it."

    def __init__(self) -> None:
        super().__init__()
        self.limit = widgets.FloatSlider(
            0.6, min=0, max=1, step=0.02, description="Answer only if ρ ≤", style=WIDE, layout={"width": "340px"},
            tooltip="Where more of the weight disagrees, no answer is given",
        )  # fmt: skip
        self.controls = [self.limit]

    def draw(self, look: Look) -> Picture:
        mass, right, student = {}, {}, {}
        for seed, outcome in look.outcomes.items():
            kept = outcome.artefacts
            c, truth = said(kept["test_logits"], *rule_of(outcome)), kept["test_truth"]
            rows = np.ones(len(truth), dtype=bool)
            if look.klass is not None and (truth == look.klass).any():
                rows = truth == look.klass
            mass[seed] = c.mass.numpy()[rows]
            right[seed] = (c.labels.numpy() == truth)[rows]
            student[seed] = (kept["test_student"].argmax(1) == truth)[rows]
        who = "all test samples" if look.klass is None else f"test samples of class {look.class_names[look.klass]}"
        return dissent(mass, right, student, setting=where(look, every_seed=True), threshold=self.limit.value, who=who)


class Target(LabView):
    """The soft label that λ makes of one public sample, and the dissenters' share over all of them."""

    name, title, ready = "target", "λ and the target", "live"
    empty = "Press Run: what the server is told to learn from each public sample."

    def __init__(self) -> None:
        super().__init__()
        self.at = widgets.IntSlider(
            0, 0, 0, description="Public sample", tooltip="Leaf through the public samples", style=WIDE,
            layout={"width": "250px"},
        )  # fmt: skip
        self.strength = widgets.FloatSlider(
            0.5, min=0, max=4, step=0.05, description="λ", tooltip="Weight of the dissenters' target", style=WIDE,
            layout={"width": "210px"},
        )  # fmt: skip
        self.over = widgets.Dropdown(
            options=("all", "dissenters"), description="Normalised over", style=WIDE, layout={"width": "210px"},
            tooltip="Whose weights sum to 1 in the dissenters' target: all clients' (paper) or their own",
        )  # fmt: skip
        self.controls = [self.at, self.strength, self.over]

    def adapt(self, look: Look) -> None:
        kept = look.live if look.outcome is None else look.outcome.artefacts
        most = kept["logits"].shape[1] - 1
        self.at.value = min(self.at.value, most)
        self.at.max = most

    def draw(self, look: Look) -> Picture:
        if look.outcome is None:
            kept, rule = look.live, (look.knobs["weighting"], look.knobs["temperature"])
        else:
            kept, rule = look.outcome.artefacts, rule_of(look.outcome)
        c = said(kept["logits"], *rule)
        voices = (c.dissent * c.weights)[..., None] * c.outputs
        if self.over.value == "dissenters":
            voices = voices / torch.where(c.mass > 0, c.mass, 1)[:, None]
        return target(
            c.labels.numpy(), voices.numpy(), look.class_names, strength=self.strength.value, sample=self.at.value,
            setting=where(look), members=kept["members"], client=look.client, klass=look.klass,
        )  # fmt: skip
