"""λ_div and the target it makes: Fed-ET's soft label of one public sample, the dissenters' share over all samples."""

from collections.abc import Sequence
from typing import Any

import ipywidgets as widgets
import numpy as np
import torch
from matplotlib.axes import Axes

from ...panels import LabView, PanelState, made
from ...plots import Picture, dress, legend, percent, plural, tabled, told
from ...plots.axes import class_ticks, level_line, mark, percent_axis, two_axes
from ...plots.characters import client_name
from ...plots.style import ACCENT, INK, QUIET, SECOND, class_colours
from ..runs import where
from .votes import leaf_to, options_of, rule_of, votes

MOST = 6  # dissenters that get a colour of their own; the others are one more part of the bar


class Target(LabView):
    """The soft label that λ_div makes of one public sample, and the dissenters' share over all of them."""

    name, title, ready = "target", "λ_div and the target", "live"
    empty = "Press Run. The picture then shows what the server's model should learn from each public sample."
    _of: Any = None
    _asked: tuple[Any, ...] = ()

    def __init__(self) -> None:
        help = "Go from one public sample to the next"
        self.at = made(widgets.IntSlider, label="Public sample", help=help, width=250, max=0)
        help, ends = "Weight of the dissenters' target", {"value": 0.5, "min": 0, "max": 4, "step": 0.05}
        self.strength = made(widgets.FloatSlider, label="λ_div", help=help, width=210, **ends)
        self.over = made(
            widgets.Dropdown, label="Normalised over", width=210, options=["all", "dissenters"],
            help="Which weights sum to 1 in the dissenters' target: those of all clients (paper), or only the "
            "dissenters' own",
        )  # fmt: skip
        self.controls = [self.at, self.strength, self.over]

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
            setting=where(state), members=state.report.members, client=state.client, klass=state.klass,
        )  # fmt: skip


def target(
    labels: np.ndarray, voices: np.ndarray, names: Sequence[str], *, strength: float, sample: int, setting: str,
    members: Sequence[int], client: int | None = None, klass: int | None = None,
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
    with two_axes((1.5, 1), between=0.22) as (figure, left, ax):
        left.bar([y], [1 - share[sample]], color="#9aa4ae", width=0.72, label="consensus")
        floor = np.eye(classes)[y] * (1 - share[sample])
        colours = [c for c in class_colours(10) if c != "#94a4a2"]  # a grey, as the consensus
        loud = [i for i in np.argsort(-parts.sum(1), kind="stable") if parts[i].any()]
        for i, colour in zip(loud[:MOST], colours, strict=False):
            mine = {"ec": INK, "lw": 1.6} if members[i] == client else {"ec": "white", "lw": 0.4}
            add(left, parts[i], floor, color=colour, label=client_name(int(members[i]), setting), **mine)
            floor = floor + parts[i]
        if loud[MOST:]:
            add(left, parts[loud[MOST:]].sum(0), floor, color=QUIET, hatch="....", ec="white", lw=0.4, label="others")
        dress(left, title=f"Target of sample {sample}", x="class", grid="y")
        class_ticks(left, names, length=6)
        mark(left, klass, classes)
        left.set_xlim(-0.6, classes - 0.4)
        percent_axis(left, top=1.05)
        legend(left, loc="upper right" if y < classes / 2 else "upper left")
        dissenters(ax, mass, share, sample, strength)
    overruled = int((q.argmax(1) != labels).sum())
    sentence = (
        f"λ_div = {strength:.3g}: on sample {sample} (“{names[y]}”) the dissenters get {percent(share[sample])} of the "
        f"target. Over {plural(count, 'sample')}: {percent(share.mean())} on average, {percent(share.max())} at most; "
        f"they overrule the consensus on {overruled}."
    )
    table = tabled("class | target", zip(names, map(percent, q[sample]), strict=True))
    title = f"Soft target of public sample {sample}, and the dissenters' share over all samples"
    return told(figure, title, setting, sentence, table)


def add(ax: Axes, part: np.ndarray, floor: np.ndarray, **style: Any) -> None:
    """What one voice adds to the target, `part [C]`, on the `floor [C]`."""
    seen = part > 0.002
    ax.bar(np.flatnonzero(seen), part[seen], bottom=floor[seen], width=0.72, **style)


def dissenters(ax: Axes, mass: np.ndarray, share: np.ndarray, sample: int, strength: float) -> None:
    """λ_div ω_div / (1 + λ_div ω_div) against ω_div, a dot a sample, under the most that λ_div allows."""
    grid = np.linspace(0, max(1.0, float(mass.max())), 60)
    ax.plot(grid, strength * grid / (1 + strength * grid), color=QUIET, lw=1.2)
    ax.scatter(mass, share, s=16, color=ACCENT, alpha=0.35, lw=0)
    ax.plot([mass[sample]], [share[sample]], "D", ms=8, color=SECOND, mec="white", clip_on=False)
    most = strength / (1 + strength)
    level_line(ax, most, f"at most {percent(most)}", left=True, lift=0.01 * most, size=9)
    dress(ax, title="Dissenters' share", x="dissent mass ω_div", grid="both")
    ax.set_xlim(0, grid[-1] * 1.02)
    percent_axis(ax, top=max(0.06, most * 1.25))
