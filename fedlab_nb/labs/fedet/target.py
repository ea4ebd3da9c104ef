"""λ_div and the target it makes: Fed-ET's soft label of one public sample, in words the dissenters' share over all."""

from collections.abc import Sequence

import ipywidgets as widgets
import numpy as np
import torch

from ...panels import LabView, PanelState, made
from ...plots import Picture, drawing, dress, percent, plural, tabled, told
from ...plots.axes import FIFTHS, class_ticks, mark, percent_axis
from ...plots.kit import stacked
from ...plots.style import INK, SECOND
from ..runs import where
from .votes import options_of, rule_of, votes

COLOURS = {"consensus": "#9aa4ae", "dissenters": SECOND}


class Target(LabView):
    """The soft label that λ_div makes of one public sample."""

    name, title, ready = "target", "λ_div and the target", "live"

    def __init__(self) -> None:
        help = "Go from one public sample to the next"
        self.at = made(widgets.IntSlider, label="Public sample", help=help, width=250, max=0)
        help, ends = (
            "Weight of the dissenters' target",
            {"value": 0.5, "min": 0, "max": 4, "step": 0.05},
        )
        self.strength = made(widgets.FloatSlider, label="λ_div", help=help, width=210, **ends)

    def adapt(self, state: PanelState) -> None:
        self.at.max = state.report.logits.shape[1] - 1

    def draw(self, state: PanelState) -> Picture:
        options = options_of(state)
        vote = votes(state.report.logits, *rule_of(options))
        voices = (vote.dissent * vote.weights)[..., None] * vote.outputs
        if options["normalise"] != "all":
            voices = voices / torch.where(vote.mass > 0, vote.mass, 1)[:, None]
        return target(
            vote.labels.numpy(), voices.sum(0).numpy(), state.class_names, strength=self.strength.value,
            sample=self.at.value, setting=where(state, f"λ_div of the run {options['diversity']:g}"), klass=state.klass,
        )  # fmt: skip


def target(
    labels: np.ndarray, voices: np.ndarray, names: Sequence[str], *, strength: float, sample: int, setting: str,
    klass: int | None = None,
) -> Picture:  # fmt: skip
    """q* = (e_y + λ_div s_div) / (1 + λ_div Σ s_div).

    labels [B]: y_s of each public sample;   voices [B, C]: s_div, what the dissenters say together
    strength:   λ_div;   sample: which of the B is drawn
    """
    count, classes = voices.shape
    mass = strength * voices.sum(1)
    said = {"consensus": np.eye(classes)[labels] / (1 + mass)[:, None]}
    said["dissenters"] = strength * voices / (1 + mass)[:, None]
    y, q, share = int(labels[sample]), sum(said.values()), mass / (1 + mass)
    # On two scales: where dissenters get a few per cent of the target, both would be slivers beside the consensus.
    with drawing(2, 1, height_ratios=[1, 3]) as (figure, (above, ax)):
        parts = {f"“{names[y]}”": {"consensus": 1 - share[sample], "dissenters": share[sample]}}
        stacked(above, parts, COLOURS)
        for bar in above.containers:
            above.bar_label(bar, [bar.get_label()], label_type="center", color="white", fontsize=9)
        dress(above, title=f"Target of sample {sample}")
        above.set_ylim(0.6, -0.6)
        percent_axis(above, "x", ticks=FIFTHS)
        own = said["dissenters"][sample]
        bars = ax.bar(range(classes), own, 0.6, color=SECOND)
        ax.bar_label(
            bars, [percent(v) if v >= 0.005 else "" for v in own], padding=2, fontsize=9, color=INK
        )
        dress(ax, title="What the dissenters get, by class", x="class", grid="y")
        class_ticks(ax, names, length=6)
        mark(ax, klass, classes)
        percent_axis(ax, top=1.2 * max(0.05, own.max()))
    overruled = int((q.argmax(1) != labels).sum())
    sentence = (
        f"λ_div = {strength:.3g}: on sample {sample} (“{names[y]}”) the dissenters get {percent(share[sample])} of the "
        f"target. Over {plural(count, 'sample')}: {percent(share.mean())} on average, {percent(share.max())} at most; "
        f"they overrule the consensus on {overruled}."
    )
    table = tabled("class | target", zip(names, map(percent, q[sample]), strict=True))
    return told(figure, f"Soft target of public sample {sample}", setting, sentence, table)
