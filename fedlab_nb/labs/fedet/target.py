"""How λ_div shapes Fed-ET's soft label: the target of one public sample; a sentence says how large
the dissenters' share is over all samples.
"""

from collections.abc import Sequence

import ipywidgets as widgets
import numpy as np
import torch
from matplotlib.axes import Axes

from ...panels import LabView, PanelState, make_widget
from ...plots import (
    Picture,
    build_table,
    describe_picture,
    drawing,
    dress,
    format_count_and_noun,
    format_percent,
)
from ...plots.array_types import SampleLabels
from ...plots.kit import draw_stacked_bars_and_get_ends
from ...plots.style import (
    FIFTHS,
    INK,
    SECOND,
    highlight_row_or_column,
    set_class_ticks,
    set_percent_axis,
)
from ...plots.vector import DARK_ON_BOTH
from ...plots.words import SettingCaption
from ..array_types import ClassScores, SharePerClass
from ..runs import describe_setting
from .votes import (
    compute_consensus_of_logits,
    get_method_options_of_run,
    get_weighting_and_temperature,
)

NARROWEST_NAMED = 0.15  # share of the bar from which on a part has room for its name
COLOURS = {"consensus": "#9aa4ae", "dissenters": SECOND}


class SoftTargetView(LabView):
    """The soft label that λ_div makes of one public sample."""

    name, title, ready = "target", "The student's target", "live"
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

        self._run = 0  # the number of the run that was drawn last

    def adapt(self, state: PanelState) -> None:
        """Offer all public samples, and take over the λ_div of a new run."""
        self.at.max = state.report.logits.shape[1] - 1
        if state.number != self._run:
            self._run = state.number
            self.strength.value = get_method_options_of_run(state)["diversity"]

    def draw(self, state: PanelState) -> Picture:
        options = get_method_options_of_run(state)
        vote = compute_consensus_of_logits(
            state.report.logits, *get_weighting_and_temperature(options)
        )
        dissenter_outputs = (vote.dissent * vote.weights)[..., None] * vote.outputs
        if options["normalise"] != "all":
            total_weight = torch.where(vote.mass > 0, vote.mass, 1)
            dissenter_outputs = dissenter_outputs / total_weight[:, None]
        return draw_soft_target(
            vote.labels.numpy(),
            dissenter_outputs.sum(0).numpy(),
            state.class_names,
            diversity_strength=self.strength.value,
            sample_index=self.at.value,
            setting=describe_setting(state, f"λ_div of the run {options['diversity']:g}"),
            selected_class=state.class_index,
        )


def draw_soft_target(
    consensus_labels: SampleLabels,
    dissenter_scores: ClassScores,
    class_names: Sequence[str],
    *,
    diversity_strength: float,
    sample_index: int,
    setting: SettingCaption | str,
    selected_class: int | None = None,
) -> Picture:
    """Draw the target q* = (e_y + λ_div s_div) / (1 + λ_div Σ s_div) of one public sample.

    consensus_labels:   `[B]`, y_s of each public sample
    dissenter_scores:   `[B, C]`, s_div, the weighted outputs of the dissenters
    diversity_strength: λ_div
    sample_index:       which of the B is drawn
    """
    classes = dissenter_scores.shape[1]
    mass = diversity_strength * dissenter_scores.sum(1)
    consensus_part = np.eye(classes)[consensus_labels] / (1 + mass)[:, None]
    dissenters_part = diversity_strength * dissenter_scores / (1 + mass)[:, None]
    target = consensus_part + dissenters_part
    dissenters_share = mass / (1 + mass)
    label = int(consensus_labels[sample_index])
    class_name = class_names[label]
    # Each part has axes with a scale of its own: a few per cent of the target would be invisible
    # beside the share of the consensus.
    with drawing(2, 1, height_ratios=[1, 3]) as (figure, (upper, lower)):
        draw_consensus_and_dissenters_bar(upper, f"“{class_name}”", dissenters_share[sample_index])
        dress(upper, title=f"Target of sample {sample_index}")
        draw_dissenter_shares_by_class(
            lower, dissenters_part[sample_index], class_names, selected_class
        )
    overruled_samples = int((target.argmax(1) != consensus_labels).sum())
    sentence = (
        f"λ_div = {diversity_strength:.3g}: on sample {sample_index} (“{class_name}”) the "
        f"dissenters get {format_percent(dissenters_share[sample_index])} of the target."
    )
    detail = (
        f"Over {format_count_and_noun(len(dissenter_scores), 'sample')}: "
        f"{format_percent(dissenters_share.mean())} on average, "
        f"{format_percent(dissenters_share.max())} at most; they overrule the consensus on "
        f"{overruled_samples}."
    )
    rows = [(class_names[c], format_percent(target[sample_index, c])) for c in range(classes)]
    table = build_table("class | target", rows)
    return describe_picture(
        figure,
        f"Soft target of public sample {sample_index}",
        setting,
        sentence,
        table,
        detail=detail,
    )


def draw_consensus_and_dissenters_bar(ax: Axes, bar_label: str, dissenters_share: float) -> None:
    """Draw one bar: how much of the target the consensus gets, and how much the dissenters."""
    parts = {"consensus": 1 - dissenters_share, "dissenters": dissenters_share}
    draw_stacked_bars_and_get_ends(ax, {bar_label: parts}, COLOURS)
    for bars in ax.containers:
        text_style = {"label_type": "center", "color": DARK_ON_BOTH, "fontsize": 9}
        has_room = parts[bars.get_label()] > NARROWEST_NAMED
        ax.bar_label(bars, [bars.get_label() if has_room else ""], **text_style)
    ax.set_ylim(0.6, -0.6)
    set_percent_axis(ax, "x", ticks=FIFTHS)


def draw_dissenter_shares_by_class(
    ax: Axes,
    dissenters_share_by_class: SharePerClass,
    class_names: Sequence[str],
    selected_class: int | None,
) -> None:
    """Draw a bar for each class: the share of the target that the dissenters give it."""
    bars = ax.bar(
        range(len(dissenters_share_by_class)), dissenters_share_by_class, 0.6, color=SECOND
    )
    labels = [
        format_percent(share) if share >= 0.005 else "" for share in dissenters_share_by_class
    ]
    ax.bar_label(bars, labels, padding=2, fontsize=9, color=INK)
    dress(ax, title="What the dissenters get, by class", x="class", grid="y")
    set_class_ticks(ax, class_names, max_letters=6)
    highlight_row_or_column(ax, selected_class, len(dissenters_share_by_class))
    set_percent_axis(ax, highest_share=1.2 * max(0.05, dissenters_share_by_class.max()))
