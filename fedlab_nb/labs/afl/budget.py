"""Accuracy against the privacy budget ε, for pixels and for random features."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import ipywidgets as widgets

from ...methods.afl import SENSITIVITY
from ...methods.parts.privacy import find_smallest_noise_sigma
from ...panels import (
    MethodAndArgumentsByName,
    PanelState,
    ProgressThenResult,
    make_caption_of_settings_and_seeds,
    make_widget,
)
from ...plots import Picture, format_mean_percent
from ...plots.study import draw_accuracy_lines_with_bands
from ...plots.style import ACCENT, ColourMarkerLine, get_method_look
from ...plots.words import SettingCaption, join_with_and
from ...value_types import SettingsByName
from ..button_view import AccuracyBySeed, ButtonView, get_accuracies_by_seed
from ..runs import plan_runs, run_planned_runs

BUDGETS = (0.3, 1.0, 3.0, 10.0, 30.0)
NO_NOISE = 0.0  # value of the knob `epsilon`
# {ε: {seed: accuracy}}; the ε of runs without noise is None.
SeedAccuraciesByEpsilonOrNone = Mapping[float | None, AccuracyBySeed]


class PrivacyBudgetResults(NamedTuple):
    """What is drawn: accuracies for each kind of features and each ε, the setting in words, and δ."""

    accuracies_by_feature_kind: Mapping[str, SeedAccuraciesByEpsilonOrNone]
    setting: SettingCaption | str
    delta: float


class PrivacyBudgetView(ButtonView):
    """Test accuracy against ε for two kinds of features, and a sentence on what an ε promises."""

    name, title = "budget", "Privacy"
    work_label = "Try five budgets"
    work_help = "Run AFL with five ε and without noise, for pixels and for random features."

    def __init__(self) -> None:
        self.epsilon = make_widget(
            widgets.SelectionSlider,
            label="ε",
            help="The budget that the sentence explains",
            width=300,
            options=[(f"{epsilon:g}", epsilon) for epsilon in BUDGETS],
            value=1.0,
        )

    def planned_runs(self, state: PanelState) -> MethodAndArgumentsByName:
        changes = {}
        for label, options in make_settings_by_feature_label(state).items():
            for epsilon in (*BUDGETS, NO_NOISE):
                changes[format_run_name(label, epsilon)] = {"afl.epsilon": epsilon, **options}
        return plan_runs("afl", state.settings, changes)

    def work(self, state: PanelState) -> ProgressThenResult[PrivacyBudgetResults]:
        """Run AFL with each ε and without noise, for both kinds of features."""
        runs = yield from run_planned_runs(self.planned_runs(state))
        by_features: dict[str, dict[float | None, AccuracyBySeed]] = {}
        for label in make_settings_by_feature_label(state):
            by_features[label] = {}
            for epsilon in BUDGETS:
                outcomes = runs[format_run_name(label, epsilon)]
                by_features[label][epsilon] = get_accuracies_by_seed(outcomes)
            by_features[label][None] = get_accuracies_by_seed(
                runs[format_run_name(label, NO_NOISE)]
            )
        setting = make_caption_of_settings_and_seeds(state.settings)
        return PrivacyBudgetResults(by_features, setting, state.knobs["delta"])

    def draw_result(self, state: PanelState) -> Picture:
        by_features, setting, delta = state.worked
        return draw_accuracy_against_budget(by_features, self.epsilon.value, delta, setting=setting)


def make_settings_by_feature_label(state: PanelState) -> dict[str, SettingsByName]:
    """Return {label: options} for the two kinds of features that are compared."""
    size = state.knobs["size"]
    return {
        "pixels": {"afl.features": "pixels"},
        f"{size} random features": {"afl.features": "relu", "afl.size": size},
    }


def format_run_name(feature_label: str, epsilon: float) -> str:
    """Format the name of a run, such as "pixels, ε = 1"."""
    return f"{feature_label}, ε = {epsilon:g}"


def draw_accuracy_against_budget(
    accuracies_by_feature_label: Mapping[str, SeedAccuraciesByEpsilonOrNone],
    described_epsilon: float,
    delta: float,
    *,
    setting: SettingCaption | str,
) -> Picture:
    """Draw lines of test accuracy against ε for each kind of features.

    described_epsilon: the ε that the sentence and the detail describe, one of BUDGETS
    """
    lines: dict[str, SeedAccuraciesByEpsilonOrNone] = {}
    looks: dict[str, ColourMarkerLine] = {}
    colours = (get_method_look("afl").colour, ACCENT)
    markers = ("o", "s")
    for (label, by_budget), colour, marker in zip(
        accuracies_by_feature_label.items(), colours, markers, strict=False
    ):
        label_without_noise = f"{label}, no noise"
        with_noise = {budget: runs for budget, runs in by_budget.items() if budget is not None}
        lines[label] = with_noise
        lines[label_without_noise] = dict.fromkeys(with_noise, by_budget[None])
        looks[label] = ColourMarkerLine(colour, marker, "-")
        looks[label_without_noise] = ColourMarkerLine(colour, "", ":")
    return draw_accuracy_lines_with_bands(
        lines,
        "ε",
        "ε (smaller: more private)",
        setting=f"{setting}, δ = {delta:g}",
        method_or_look_by_line=looks,
        sentence=describe_accuracy_cost_of_budget(accuracies_by_feature_label, described_epsilon),
        detail=describe_privacy_guarantee(described_epsilon, delta),
    )


def describe_accuracy_cost_of_budget(
    accuracies_by_feature_label: Mapping[str, SeedAccuraciesByEpsilonOrNone],
    described_epsilon: float,
) -> str:
    """Say what a budget costs in accuracy."""
    accuracies = []
    for label, by_budget in accuracies_by_feature_label.items():
        without_noise = format_mean_percent(by_budget[None])
        accuracies.append(
            f"{label} {format_mean_percent(by_budget[described_epsilon])} in place of {without_noise}"
        )
    return f"With a privacy budget of ε = {described_epsilon:g} the noise leaves {join_with_and(accuracies)}."


def describe_privacy_guarantee(epsilon: float, delta: float) -> str:
    """Say what a budget promises, and what it does not cover."""
    sigma = find_smallest_noise_sigma(epsilon, delta, sensitivity=SENSITIVITY)
    return (
        f"ε = {epsilon:g} is noise σ = {sigma:.2g}. One sample more or less changes the odds "
        f"of a result at most e^ε = {math.exp(epsilon):.2g} times, except with probability "
        f"{delta:g}. Not covered: what many samples share; a server that sees sums before the "
        "noise."
    )
