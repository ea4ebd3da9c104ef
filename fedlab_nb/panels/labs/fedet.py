"""Fed-ET's lab. Here: one sample and its experts. `fedet_weights`: temperature, dissent, λ, all on remembered logits.
`fedet_rounds`: the feedback loop. `fedet_runs`: public data and traffic, which need runs of their own.
"""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets
import numpy as np

from ...data import load
from ...draw import Picture
from ...draw.fedet_expert import expert
from ...methods.parts.consensus import Consensus
from ..lab_view import Extra, LabSpec, LabView, Look
from .fedet_rounds import Rounds
from .fedet_runs import Public, Traffic
from .fedet_weights import RULES, WIDE, Dissent, Target, Temperature, said, softmax, where

SIZES = "mlp:16,mlp:32,mlp:64"
SPREADS = {"logit-variance": "variance of the raw logits", "logits": "variance of the raw logits", "uniform": "equal"}


class Expert(LabView):
    """One sample: every client's output, its weight, who dissents, the consensus, and what the server says."""

    name, title, ready = "expert", "Who is the expert?", "live"
    empty = "Press Run: every client's answer to one sample, and how much each of them counts."
    KINDS = (
        ("test, all", "all"), ("test, wrong", "wrong"), ("test, agreed", "agreed"), ("test, disputed", "disputed"),
        ("public", "public"),
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.kind = widgets.Dropdown(
            options=self.KINDS, description="Samples", style=WIDE, layout={"width": "180px"},
            tooltip="Which to leaf through: all, consensus wrong, least dissent first, most dissent first, public",
        )  # fmt: skip
        self.at = widgets.IntSlider(
            0, 0, 0, description="Sample", tooltip="Leaf through the samples", readout=False, style=WIDE,
            layout={"width": "150px"},
        )  # fmt: skip
        self.rule = widgets.Dropdown(
            options=RULES, description="Weights", tooltip="What the weights are made from", style=WIDE,
            layout={"width": "175px"},
        )  # fmt: skip
        self.heat = widgets.FloatLogSlider(
            1.0, min=-1, max=2, step=0.05, description="T", tooltip="Temperature of the weights; of softmax alone",
            readout_format=".2g", style=WIDE, layout={"width": "150px"},
        )  # fmt: skip
        self.controls = [self.kind, self.at, self.rule, self.heat]
        self._of: Any = None
        self._said: Any = None

    def _arrays(self, look: Look) -> dict[str, Any]:
        """Logits and what belongs to them: of the outcome, or of the running method (public samples alone)."""
        kept = look.live if look.outcome is None else look.outcome.artefacts
        if look.outcome is None or self.kind.value == "public":
            return {**{n: kept[n] for n in ("logits", "student", "members")}, "images": kept["samples"], "truth": None}
        return {
            "logits": kept["test_logits"], "student": kept["test_student"], "members": kept["members"],
            "images": None, "truth": kept["test_truth"],
        }  # fmt: skip

    def _consensus(self, logits: np.ndarray) -> Consensus:
        """Remembered until the logits or the rule change: leafing through samples asks for it again and again."""
        key = (self.rule.value, self.heat.value)
        if self._said is None or self._said[0] is not logits or self._said[1] != key:
            self._said = logits, key, said(logits, *key)
        return self._said[2]

    def _rows(self, look: Look, arrays: dict[str, Any], c: Consensus) -> np.ndarray:
        """Which samples are leafed through, by dissent where that is the question; all, where there are none."""
        mass, labels = c.mass.numpy(), c.labels.numpy()
        keep, order = np.ones(len(mass), dtype=bool), np.arange(len(mass))
        if arrays["truth"] is not None:
            if self.kind.value == "wrong":
                keep = labels != arrays["truth"]
            elif self.kind.value in ("agreed", "disputed"):
                order = np.argsort(mass if self.kind.value == "agreed" else -mass, kind="stable")
        if look.klass is not None:
            mine = keep & ((labels if arrays["truth"] is None else arrays["truth"]) == look.klass)
            keep = mine if mine.any() else keep
        return order[keep[order]] if keep.any() else order

    def adapt(self, look: Look) -> None:
        """A new outcome brings its own rule and temperature, and its own samples."""
        if look.outcome is not None and look.outcome is not self._of:
            self._of, options = look.outcome, look.outcome.setting["options"]
            self.rule.value = options["weighting"]
            self.heat.value = min(max(options["temperature"], 0.1), 100)
        self.heat.disabled = self.rule.value != "softmax"
        arrays = self._arrays(look)
        most = len(self._rows(look, arrays, self._consensus(arrays["logits"]))) - 1
        self.at.value = min(self.at.value, most)
        self.at.max = most

    def draw(self, look: Look) -> Picture:
        arrays = self._arrays(look)
        c = self._consensus(arrays["logits"])
        rows = self._rows(look, arrays, c)
        i = int(rows[min(self.at.value, len(rows) - 1)])
        z, members, rule = arrays["logits"][:, i], arrays["members"], self.rule.value
        values = softmax(z / self.heat.value) if rule == "softmax" else z
        held = None if look.outcome is None else look.outcome.label_counts[members, int(c.labels[i])]
        number = i if arrays["truth"] is None else int(look.outcome.artefacts["test_rows"][i])
        image = self._image(look, arrays, i, number)
        heat = f" at T = {self.heat.value:.3g}" if rule == "softmax" and self.heat.value != 1 else ""
        return expert(
            c.outputs[:, i].numpy(), c.weights[:, i].numpy(), values.var(-1), c.distribution[i].numpy(),
            look.class_names, setting=where(look), members=members, student=softmax(arrays["student"][i]),
            sample=f"{'public' if arrays['truth'] is None else 'test'} sample {number}", image=image,
            truth=None if arrays["truth"] is None else int(arrays["truth"][i]), held=held,
            spread_of=SPREADS.get(rule, "variance of the softmax") + heat, client=look.client, klass=look.klass,
        )  # fmt: skip

    @staticmethod
    def _image(look: Look, arrays: dict[str, Any], i: int, number: int) -> np.ndarray | None:
        if arrays["images"] is not None:
            return as_image(arrays["images"][i])
        return as_image(load(look.outcome.setting["dataset"]).x_test[number].numpy())


def as_image(x: np.ndarray) -> np.ndarray | None:
    """`[H, W]` or `[H, W, 3]` of one sample `[C, H, W]`; None of a feature row."""
    if x.ndim != 3:
        return None
    return x.transpose(1, 2, 0) if len(x) == 3 else x[0]


LAB = LabSpec(
    method="fedet",
    companions=("local", "ensemble"),
    knobs=("rounds", "weighting", "temperature", "diversity", "public", "transfer"),
    extras=(
        Extra(
            "model",
            "Small models",
            (
                ("one size", "auto"),
                ("three sizes (MLP)", SIZES),
                ("MLP and CNN", "mlp:16,cnn:8,mlp:64"),
            ),
            "Which networks the clients hold, dealt out in turn; the server's is larger than each",
        ),
    ),
    settings={"alpha": 0.1, "seeds": 1, "model": SIZES},
    views=(Expert, Temperature, Dissent, Target, Rounds, Public, Traffic),
    name="fedet",
)
