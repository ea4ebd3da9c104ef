"""Does disagreement predict errors? Accuracy of Fed-ET's consensus by thirds of the dissent mass,
and on the samples whose dissent is below a threshold.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import ipywidgets as widgets
import numpy as np
import torch

from ...panels import LabView, PanelState, make_widget
from ...plots import (
    Picture,
    add_legend,
    build_table,
    describe_picture,
    describe_seeds,
    drawing,
    dress,
    format_percent,
)
from ...plots.array_types import BooleanPerSample
from ...plots.style import ACCENT, FIFTHS, INK, set_percent_axis
from ...plots.words import SettingCaption
from ...studies import Outcome
from ...value_types import Accuracy0To1
from ..array_types import DissentPerSample
from .votes import compute_consensus_on_test_samples, get_weighting_and_temperature

THIRDS = ("least dissent", "middle", "most dissent")
AccuracyPerDissentThird = list[Accuracy0To1]  # in the order of THIRDS
BARS = {"consensus": (-0.19, ACCENT), "server": (0.19, "#9aa4ae")}  # offset from the tick, colour


class DissentSamples(NamedTuple):
    """The B test samples of one run: the dissent mass of each `[B]`, and whether the consensus and
    the server are right about it `[B]`.
    """

    dissent: np.ndarray
    consensus_right: np.ndarray
    server_right: np.ndarray


class DissentView(LabView):
    """How often the consensus is right if few or many clients dissent."""

    name, title = "dissent", "Dissent"
    summary = "Then this shows how often the consensus is right if few or many clients dissent."

    def __init__(self) -> None:
        self.limit = make_widget(
            widgets.FloatSlider,
            label="Answer only if dissent ≤",
            help="If a larger part of the weight disagrees, no answer is given",
            width=340,
            value=0.6,
            max=1,
            step=0.02,
        )

    def draw(self, state: PanelState) -> Picture:
        runs = {
            seed: measure_dissent_on_test_samples(outcome, state.class_index)
            for seed, outcome in state.outcomes.items()
        }
        samples = "all test samples"
        if state.class_index is not None:
            samples = f"test samples of class {state.class_names[state.class_index]}"
        return draw_accuracy_by_dissent(runs, state.setting, self.limit.value, samples)


# ------------------------------------------------------------------------------------------ numbers
def measure_dissent_on_test_samples(
    fedet_outcome: Outcome, only_class_if_present: int | None = None
) -> DissentSamples:
    """Measure dissent and right answers on the test samples: on all, or on those of `only_class_if_present`
    if there are any.
    """
    vote, truth = compute_consensus_on_test_samples(
        fedet_outcome, *get_weighting_and_temperature(fedet_outcome.options)
    )
    is_selected = torch.ones_like(truth, dtype=torch.bool)
    if only_class_if_present is not None and (truth == only_class_if_present).any():
        is_selected = truth == only_class_if_present
    server_labels = torch.as_tensor(fedet_outcome.report.test_student).argmax(1)
    return DissentSamples(
        dissent=vote.mass[is_selected].numpy(),
        consensus_right=(vote.labels == truth)[is_selected].numpy(),
        server_right=(server_labels == truth)[is_selected].numpy(),
    )


def compute_accuracy_by_dissent_thirds(
    dissent: DissentPerSample, is_answer_right: BooleanPerSample
) -> AccuracyPerDissentThird:
    """Compute the share of right answers in the thirds with the least, middle and most dissent. An
    empty third gets the share of the one before it.
    """
    shares: list[float] = []
    order = np.argsort(dissent, kind="stable")
    for rows in np.array_split(order, len(THIRDS)):
        shares.append(float(is_answer_right[rows].mean()) if len(rows) else shares[-1])
    return shares


def compute_auc_of_dissent_predicting_errors(
    dissent: DissentPerSample, is_answer_right: BooleanPerSample
) -> float | None:
    """Compute the AUC of dissent as a predictor of errors: how often a wrong answer has more
    dissent than a right one, where a tie counts half. None if all answers are right, or all are
    wrong.
    """
    is_answer_right = is_answer_right.astype(bool)
    if is_answer_right.all() or not is_answer_right.any():
        return None
    differences = np.subtract.outer(dissent[~is_answer_right], dissent[is_answer_right])
    return float(np.heaviside(differences, 0.5).mean())


def average_accuracy_by_dissent_thirds_over_seeds(
    samples_by_seed: Mapping[int, DissentSamples],
    answer_field: Literal["consensus_right", "server_right"],
) -> AccuracyPerDissentThird:
    """Average the results of `compute_accuracy_by_dissent_thirds` over the runs of all seeds.

    answer_field: whether the answers of the consensus or of the server are counted
    """
    shares = [
        compute_accuracy_by_dissent_thirds(run.dissent, getattr(run, answer_field))
        for run in samples_by_seed.values()
    ]
    return np.mean(shares, 0).tolist()


# ------------------------------------------------------------------------------------------ picture
def draw_accuracy_by_dissent(
    samples_by_seed: Mapping[int, DissentSamples],
    setting: SettingCaption | str,
    largest_answered_dissent: float,
    samples_in_words: str = "all test samples",
) -> Picture:
    """Draw bars of right answers on test samples, whose labels no part of the method knows.

    samples_by_seed: {seed: the samples of its run}
    largest_answered_dissent: an answer is given only where the dissent is at most this
    samples_in_words: which test samples these are, in words
    """
    dissent = np.concatenate([run.dissent for run in samples_by_seed.values()])
    has_answer = dissent <= largest_answered_dissent
    shares = {}
    for name in BARS:
        column = f"{name}_right"
        is_right = np.concatenate([getattr(run, column) for run in samples_by_seed.values()])
        accuracy_if_answered = float(is_right[has_answer].mean()) if has_answer.any() else 0.0
        shares[name] = [
            *average_accuracy_by_dissent_thirds_over_seeds(samples_by_seed, column),
            accuracy_if_answered,
        ]
    columns = [*THIRDS, f"dissent ≤ {largest_answered_dissent:.2f}"]
    with drawing() as (figure, ax):
        dress(ax, title="Right answers, by thirds of the dissent", grid="y")
        places = np.arange(len(columns))
        for name, (shift, colour) in BARS.items():
            bars = ax.bar(places + shift, shares[name], 0.36, color=colour, label=name)
            labels = [f"{100 * share:.0f}" for share in shares[name]]
            ax.bar_label(bars, labels, padding=2, fontsize=9, color=INK)
        ax.set_xticks(places, [name.replace(" ", "\n", 1) for name in columns])
        set_percent_axis(ax, highest_share=1.2, ticks=FIFTHS)
        add_legend(ax, loc="upper right", ncols=2)

    areas = [
        compute_auc_of_dissent_predicting_errors(run.dissent, run.consensus_right)
        for run in samples_by_seed.values()
    ]
    known_areas = [area for area in areas if area is not None]
    area_text = f"; AUC {np.mean(known_areas):.2f}" if known_areas else ""
    lowest_third, _, highest_third, accuracy_if_answered = shares["consensus"]
    sentence = (
        f"Where clients agree the consensus is right more often: on {format_percent(lowest_third)} "
        f"of the third with the least dissent, on {format_percent(highest_third)} of the third "
        "with the most."
    )
    if lowest_third <= highest_third:
        sentence = (
            f"Dissent is no warning here: the consensus gets {format_percent(lowest_third)} right "
            f"of the third with the least, {format_percent(highest_third)} of the third with the "
            "most."
        )
    detail = (
        f"With answers only at a dissent ≤ {largest_answered_dissent:.2f}, {format_percent(has_answer.mean())} of "
        f"the samples get an answer, {format_percent(accuracy_if_answered)} of these a right one "
        f"({samples_in_words}, {len(dissent)} in {describe_seeds(samples_by_seed)}{area_text})."
    )
    rows = []
    for name, consensus, server in zip(columns, shares["consensus"], shares["server"], strict=True):
        rows.append((name, format_percent(consensus), format_percent(server)))
    return describe_picture(
        figure,
        "Bars of the accuracy by thirds of the dissent mass, and below a threshold of it",
        setting,
        sentence,
        build_table("samples | consensus right | server right", rows),
        detail=detail,
    )
