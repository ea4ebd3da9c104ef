"""λ_div and the target that it makes: Fed-ET's soft label of one public sample, and in words the
dissenters' share over all samples.
"""

from collections.abc import Sequence

import ipywidgets as widgets
import numpy as np
import torch
from matplotlib.axes import Axes

from ...panels import LabView, PanelState, make_widget
from ...plots import Picture, build_table, describe_picture, drawing, dress, percent, plural
from ...plots.kit import draw_stacked_bars
from ...plots.style import FIFTHS, INK, SECOND, mark_place, set_class_ticks, set_percent_axis
from ...plots.words import Setting
from ..runs import describe_setting
from .votes import get_current_options, get_voting_rule, vote_on_logits

NARROWEST_NAMED = 0.15  # share of the bar in which a name has room
COLOURS = {"consensus": "#9aa4ae", "dissenters": SECOND}


class Target(LabView):
    """The soft label that λ_div makes of one public sample."""

    name, title, ready = "target", "λ_div and the target", "live"
    summary = "Then this shows the soft label that λ_div makes of one public sample."

    def __init__(self) -> None:
        self.at = make_widget(
            widgets.IntSlider,
            label="Public sample",
            help="Go from one public sample to the next",
            width=250,
            max=0,
        )
        self.strength = make_widget(
            widgets.FloatSlider,
            label="λ_div",
            help="Weight of the dissenters' target",
            width=210,
            value=0.5,
            min=0,
            max=4,
            step=0.05,
        )

        self._run = 0  # of the last drawing

    def adapt(self, state: PanelState) -> None:
        """A new run is shown with its own weight."""
        self.at.max = state.report.logits.shape[1] - 1
        if state.number != self._run:
            self._run = state.number
            self.strength.value = get_current_options(state)["diversity"]

    def draw(self, state: PanelState) -> Picture:
        options = get_current_options(state)
        vote = vote_on_logits(state.report.logits, *get_voting_rule(options))
        voices = (vote.dissent * vote.weights)[..., None] * vote.outputs
        if options["normalise"] != "all":
            dissent = torch.where(vote.mass > 0, vote.mass, 1)
            voices = voices / dissent[:, None]
        return draw_target(
            vote.labels.numpy(),
            voices.sum(0).numpy(),
            state.class_names,
            strength=self.strength.value,
            sample=self.at.value,
            setting=describe_setting(state, f"λ_div of the run {options['diversity']:g}"),
            class_index=state.class_index,
        )


def draw_target(
    labels: np.ndarray,
    voices: np.ndarray,
    names: Sequence[str],
    *,
    strength: float,
    sample: int,
    setting: Setting | str,
    class_index: int | None = None,
) -> Picture:
    """q* = (e_y + λ_div s_div) / (1 + λ_div Σ s_div) of one public sample.

    labels: `[B]`, y_s of each public sample;   voices: `[B, C]`, s_div, what the dissenters say
    strength: λ_div;   sample: which of the B is drawn;   class_index: marked
    """
    classes = voices.shape[1]
    mass = strength * voices.sum(1)
    consensus_part = np.eye(classes)[labels] / (1 + mass)[:, None]
    dissenters_part = strength * voices / (1 + mass)[:, None]
    target = consensus_part + dissenters_part
    dissenters_share = mass / (1 + mass)
    label = int(labels[sample])
    name = names[label]
    # Two axes with their own scales: where dissenters get a few per cent of the target, both would
    # be slivers beside the consensus.
    with drawing(2, 1, height_ratios=[1, 3]) as (figure, (upper, lower)):
        draw_shares(upper, f"“{name}”", dissenters_share[sample])
        dress(upper, title=f"Target of sample {sample}")
        draw_dissenters(lower, dissenters_part[sample], names, class_index)
    overruled = int((target.argmax(1) != labels).sum())
    sentence = (
        f"λ_div = {strength:.3g}: on sample {sample} (“{name}”) the dissenters get "
        f"{percent(dissenters_share[sample])} of the target."
    )
    detail = (
        f"Over {plural(len(voices), 'sample')}: {percent(dissenters_share.mean())} on average, "
        f"{percent(dissenters_share.max())} at most; they overrule the consensus on {overruled}."
    )
    rows = [(names[c], percent(target[sample, c])) for c in range(classes)]
    table = build_table("class | target", rows)
    return describe_picture(
        figure, f"Soft target of public sample {sample}", setting, sentence, table, detail=detail
    )


def draw_shares(ax: Axes, label: str, dissenters_share: float) -> None:
    """One bar: how much of the target the consensus gets, and how much the dissenters."""
    parts = {"consensus": 1 - dissenters_share, "dissenters": dissenters_share}
    draw_stacked_bars(ax, {label: parts}, COLOURS)
    for bars in ax.containers:
        text = {"label_type": "center", "color": "white", "fontsize": 9}
        has_room = parts[bars.get_label()] > NARROWEST_NAMED
        ax.bar_label(bars, [bars.get_label() if has_room else ""], **text)
    ax.set_ylim(0.6, -0.6)
    set_percent_axis(ax, "x", ticks=FIFTHS)


def draw_dissenters(
    ax: Axes, shares: np.ndarray, names: Sequence[str], class_index: int | None
) -> None:
    """What the dissenters get of the target, by class `[C]`."""
    bars = ax.bar(range(len(shares)), shares, 0.6, color=SECOND)
    labels = [percent(share) if share >= 0.005 else "" for share in shares]
    ax.bar_label(bars, labels, padding=2, fontsize=9, color=INK)
    dress(ax, title="What the dissenters get, by class", x="class", grid="y")
    set_class_ticks(ax, names, length=6)
    mark_place(ax, class_index, len(shares))
    set_percent_axis(ax, top=1.2 * max(0.05, shares.max()))
