"""λ_div and the target it makes: Fed-ET's soft label of one public sample, in words the dissenters' share over all."""

from collections.abc import Sequence
from typing import Any

import ipywidgets as widgets
import numpy as np
import torch

from ...panels import LabView, PanelState, made
from ...plots import Picture, drawing, dress, legend, percent, plural, tabled, told
from ...plots.axes import class_ticks, mark, percent_axis
from ...plots.characters import client_name
from ...plots.kit import stacked
from ...plots.style import QUIET, class_colours
from ..runs import where
from .votes import leaf_to, options_of, rule_of, votes

MOST = 6  # dissenters that get a colour of their own; the others are one more part of the bar


class Target(LabView):
    """The soft label that λ_div makes of one public sample."""

    name, title, ready = "target", "λ_div and the target", "live"
    empty = "Press Run. The picture then shows what the server's model should learn from each public sample."
    _of: Any = None
    _asked: tuple[Any, ...] = ()

    def __init__(self) -> None:
        help = "Go from one public sample to the next"
        self.at = made(widgets.IntSlider, label="Public sample", help=help, width=250, max=0)
        help, ends = "Weight of the dissenters' target", {"value": 0.5, "min": 0, "max": 4, "step": 0.05}
        self.strength = made(widgets.FloatSlider, label="λ_div", help=help, width=210, **ends)
        help = "Which weights sum to 1 in the dissenters' target: those of all clients (paper), or only their own"
        options = ["all", "dissenters"]
        self.over = made(widgets.Dropdown, label="Normalised over", help=help, width=210, options=options)

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
        vote = votes(state.report.logits, *rule_of(options_of(state)))
        voices = (vote.dissent * vote.weights)[..., None] * vote.outputs
        if self.over.value == "dissenters":
            voices = voices / torch.where(vote.mass > 0, vote.mass, 1)[:, None]
        return target(
            vote.labels.numpy(), voices.numpy(), state.class_names, strength=self.strength.value, sample=self.at.value,
            setting=where(state), members=state.report.members, klass=state.klass,
        )  # fmt: skip


def target(
    labels: np.ndarray, voices: np.ndarray, names: Sequence[str], *, strength: float, sample: int, setting: str,
    members: Sequence[int], klass: int | None = None,
) -> Picture:  # fmt: skip
    """q* = (e_y + λ_div s_div) / (1 + λ_div Σ s_div).

    labels [B]:     y_s of each public sample;   voices [m, B, C]: what each client adds to s_div, 0 if it follows
    strength:       λ_div;   sample: which of the B is drawn in full;   members [m]: the clients' ids
    """
    _, count, classes = voices.shape
    mass = voices.sum((0, 2))
    share = strength * mass / (1 + strength * mass)
    q = (np.eye(classes)[labels] + strength * voices.sum(0)) / (1 + strength * mass)[:, None]
    y, parts = int(labels[sample]), strength * voices[:, sample] / (1 + strength * mass[sample])
    loud = [i for i in np.argsort(-parts.sum(1), kind="stable") if parts[i].any()]
    voices_of = {client_name(int(members[i]), setting): parts[i] for i in loud[:MOST]}
    stack = {"consensus": np.eye(classes)[y] * (1 - share[sample]), **voices_of, "others": parts[loud[MOST:]].sum(0)}
    hues = ["#9aa4ae", *(c for c in class_colours(10) if c != "#94a4a2")]  # a grey, as the consensus
    colours = dict(zip(stack, [*hues[: len(stack) - 1], QUIET], strict=True))
    with drawing() as (figure, ax):
        stacked(ax, {c: {who: part[c] for who, part in stack.items()} for c in range(classes)}, colours, upright=True)
        dress(ax, title=f"Target of sample {sample}", x="class", grid="y")
        class_ticks(ax, names, length=6)
        mark(ax, klass, classes)
        percent_axis(ax, top=1.05)
        legend(ax, loc="upper right" if y < classes / 2 else "upper left")
    overruled = int((q.argmax(1) != labels).sum())
    sentence = (
        f"λ_div = {strength:.3g}: on sample {sample} (“{names[y]}”) the dissenters get {percent(share[sample])} of the "
        f"target. Over {plural(count, 'sample')}: {percent(share.mean())} on average, {percent(share.max())} at most; "
        f"they overrule the consensus on {overruled}."
    )
    table = tabled("class | target", zip(names, map(percent, q[sample]), strict=True))
    return told(figure, f"Soft target of public sample {sample}", setting, sentence, table)
