"""Accuracy against the bytes that a client sends, for every head: from the mean of a class alone to
its covariance.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ...methods.gauss import HEADS, TRAINED
from ...panels import PanelState, PlannedRuns, describe_settings
from ...plots import (
    Picture,
    Series,
    build_table,
    data_size,
    describe_picture,
    drawing,
    dress,
    percent,
)
from ...plots.kit import draw_points
from ...plots.words import Setting, describe_each_seed
from ..button_view import ButtonView, make_series
from ..runs import Steps, plan_runs, run_all

MIXTURES = {"none": "FedPFT, means", "diagonal": "FedPFT, diagonal", "full": "FedPFT, full"}
FEATURE_KNOBS = ("features", "size", "features_seed")  # both methods have them
OTHER_KNOBS = ("head", "shrinkage")  # what is compared, or what one of the methods has alone


class Heads(ButtonView):
    """Every head, and FedPFT with three kinds of covariance, on the federation that the controls
    describe.
    """

    name, title = "heads", "All heads"
    work_label = "Run all heads"
    work_help = (
        "Run every head, and FedPFT with three kinds of covariance, on the federation that the "
        "controls describe."
    )

    def planned_runs(self, state: PanelState) -> PlannedRuns:
        heads = {head: {"gauss.head": head} for head in (*HEADS, *TRAINED)}
        mixtures = {name: {"fedpft.covariance": kind} for kind, name in MIXTURES.items()}
        return {
            **plan_runs("gauss", keep_shared_settings(state.settings, "gauss"), heads),
            **plan_runs("fedpft", keep_shared_settings(state.settings, "fedpft"), mixtures),
        }

    def work(self, state: PanelState) -> Steps:
        """A Series for each head, and the setting in words."""
        planned = self.planned_runs(state)
        runs = yield from run_all(planned)
        series = []
        for name, outcomes in runs.items():
            method, _ = planned[name]
            series.append(make_series(name, outcomes, method))
        return series, describe_settings(state.settings)

    def draw_result(self, state: PanelState) -> Picture:
        series, setting = state.worked
        return draw_heads(series, setting)


def keep_shared_settings(settings: Mapping[str, Any], method: str) -> dict[str, Any]:
    """The settings of the panel for a run of `method`: without the knobs of Gaussian heads, but
    with the same features.
    """
    shared = {}
    for name, value in settings.items():
        knob = name.removeprefix("gauss.")
        if knob in FEATURE_KNOBS:
            shared[f"{method}.{knob}"] = value
        elif "." not in name and name not in OTHER_KNOBS:
            shared[name] = value
    return shared


def draw_heads(series: Sequence[Series], setting: Setting | str) -> Picture:
    """A point for each classifier; `up` of a series is the mean of a client's bytes."""
    lowest = min(min(row.accuracies.values()) for row in series)
    with drawing() as (figure, ax):
        dress(ax, x="bytes that a client sends", y="accuracy", grid="y")
        draw_points(ax, series, low=max(0.0, 0.9 * lowest))
    ranking = sorted(series, key=lambda row: row.mean)
    worst = ranking[0]
    best = ranking[-1]
    sentence = (
        f"{best.name} is the most accurate with {percent(best.mean)} for {data_size(best.up)} a "
        f"client, {worst.name} the least with {percent(worst.mean)} for {data_size(worst.up)} a "
        f"client ({series[0].seeds})."
    )
    rows = [(row.name, describe_each_seed(row.accuracies), data_size(row.up)) for row in series]
    return describe_picture(
        figure,
        "Accuracy against a client's bytes for classifiers on frozen features",
        setting,
        sentence,
        build_table("classifier | accuracy | bytes up of a client", rows),
    )
