"""Accuracy against the bytes that a client sends, for every kind of Gaussian head: from one that
needs the mean of a class alone to one that needs its covariance.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ...methods.gauss import HEADS, TRAINED
from ...panels import (
    MethodAndArgumentsByName,
    PanelState,
    ProgressThenResult,
    make_caption_of_settings_and_seeds,
)
from ...plots import (
    MethodResults,
    Picture,
    build_table,
    describe_picture,
    drawing,
    dress,
    format_data_size,
    format_percent,
)
from ...plots.kit import draw_accuracy_against_bytes_points
from ...plots.words import SettingCaption, format_percent_of_each_seed
from ...value_types import SettingsByName, SettingValue
from ..button_view import ButtonView, make_accuracy_and_upload_series
from ..runs import plan_runs, run_planned_runs

HEAD_NAMES = {
    "means": "Nearest mean",
    "nb": "Naive Bayes",
    "lda": "LDA",
    "fedcgs": "FedCGS",
    "qda": "QDA",
    "fishermix": "FisherMix",
    "protohyper": "ProtoHyper",
}
MIXTURES = {"none": "FedPFT, means", "diagonal": "FedPFT, diagonal", "full": "FedPFT, full"}
FEATURE_KNOBS = ("features", "size", "features_seed")  # knobs that both methods have
OTHER_KNOBS = ("head", "shrinkage")  # the knob that is varied, and one that FedPFT does not have


class HeadResults(NamedTuple):
    """What is drawn: a `MethodResults` for each head, and the setting in words."""

    series: list[MethodResults]
    setting: SettingCaption | str


class HeadsView(ButtonView):
    """Every head, and FedPFT with three kinds of covariance, on the federation that the controls
    describe.
    """

    name, title = "heads", "Compare all heads"
    work_label = "Run all heads"
    work_help = (
        "Run every head, and FedPFT with three kinds of covariance, on the federation that "
        "the controls describe."
    )

    def planned_runs(self, state: PanelState) -> MethodAndArgumentsByName:
        heads = {HEAD_NAMES[head]: {"gauss.head": head} for head in (*HEADS, *TRAINED)}
        mixtures = {name: {"fedpft.covariance": kind} for kind, name in MIXTURES.items()}
        return {
            **plan_runs(
                "gauss", copy_gauss_settings_without_head_knobs(state.settings, "gauss"), heads
            ),
            **plan_runs(
                "fedpft", copy_gauss_settings_without_head_knobs(state.settings, "fedpft"), mixtures
            ),
        }

    def work(self, state: PanelState) -> ProgressThenResult[HeadResults]:
        """Run every head, and FedPFT with every kind of covariance."""
        planned = self.planned_runs(state)
        runs = yield from run_planned_runs(planned)
        series = []
        for name, outcomes in runs.items():
            method, _ = planned[name]
            series.append(make_accuracy_and_upload_series(name, outcomes, method))
        return HeadResults(series, make_caption_of_settings_and_seeds(state.settings))

    def draw_result(self, state: PanelState) -> Picture:
        series, setting = state.worked
        return draw_accuracy_against_upload_of_heads(series, setting)


def copy_gauss_settings_without_head_knobs(
    gauss_settings: SettingsByName, method: str
) -> dict[str, SettingValue]:
    """Copy the settings of the lab of Gaussian heads for a run of `method`: without the knobs of
    Gaussian heads, but with the same features.
    """
    shared = {}
    for name, value in gauss_settings.items():
        knob = name.removeprefix("gauss.")
        if knob in FEATURE_KNOBS:
            shared[f"{method}.{knob}"] = value
        elif "." not in name and name not in OTHER_KNOBS:
            shared[name] = value
    return shared


def draw_accuracy_against_upload_of_heads(
    head_series: Sequence[MethodResults], setting: SettingCaption | str
) -> Picture:
    """Draw a point for each classifier. `up` of a series is the mean number of bytes that a client sends."""
    lowest = min(min(row.accuracies.values()) for row in head_series)
    with drawing() as (figure, ax):
        dress(ax, x="bytes that a client sends", y="accuracy", grid="y")
        draw_accuracy_against_bytes_points(
            ax, head_series, accuracy_axis_start=max(0.0, 0.9 * lowest)
        )
    ranking = sorted(head_series, key=lambda row: row.mean)
    worst = ranking[0]
    best = ranking[-1]
    sentence = (
        f"{best.name} is the most accurate with {format_percent(best.mean)} for "
        f"{format_data_size(best.up)} a client, {worst.name} the least with "
        f"{format_percent(worst.mean)} for {format_data_size(worst.up)} a client "
        f"({head_series[0].seeds_text})."
    )
    rows = [
        (row.name, format_percent_of_each_seed(row.accuracies), format_data_size(row.up))
        for row in head_series
    ]
    return describe_picture(
        figure,
        "Accuracy against a client's bytes for classifiers on frozen features",
        setting,
        sentence,
        build_table("classifier | accuracy | bytes up of a client", rows),
    )
