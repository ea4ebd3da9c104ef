"""Accuracy against the privacy budget ε, for pixels and for random features."""

import math
from collections.abc import Mapping

import ipywidgets as widgets

from ...methods.afl import SENSITIVITY
from ...methods.parts.privacy import find_smallest_sigma
from ...panels import PanelState, PlannedRuns, describe_settings, make_widget
from ...plots import Picture, mean_percent
from ...plots.study import draw_accuracy_lines
from ...plots.style import SECOND, Look, look
from ...plots.words import Setting, join_words
from ..button_view import ButtonView, group_accuracies_by_seed
from ..runs import Steps, plan_runs, run_all

BUDGETS = (0.3, 1.0, 3.0, 10.0, 30.0)
NO_NOISE = 0.0  # value of the knob `epsilon`
AccuraciesByBudget = Mapping[
    float | None, Mapping[int, float]
]  # {ε: {seed: share}}; None: no noise


class Budget(ButtonView):
    """Test accuracy against ε for two kinds of features, and in words what an ε promises."""

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

    def planned_runs(self, state: PanelState) -> PlannedRuns:
        changes = {}
        for label, options in list_feature_kinds(state).items():
            for epsilon in (*BUDGETS, NO_NOISE):
                changes[name_run(label, epsilon)] = {"afl.epsilon": epsilon, **options}
        return plan_runs("afl", state.settings, changes)

    def work(self, state: PanelState) -> Steps:
        """{features: accuracies by budget}, the setting in words, and δ."""
        runs = yield from run_all(self.planned_runs(state))
        by_features: dict[str, dict[float | None, dict[int, float]]] = {}
        for label in list_feature_kinds(state):
            by_features[label] = {}
            for epsilon in BUDGETS:
                outcomes = runs[name_run(label, epsilon)]
                by_features[label][epsilon] = group_accuracies_by_seed(outcomes)
            by_features[label][None] = group_accuracies_by_seed(runs[name_run(label, NO_NOISE)])
        return by_features, describe_settings(state.settings), state.knobs["delta"]

    def draw_result(self, state: PanelState) -> Picture:
        by_features, setting, delta = state.worked
        return draw_budgets(by_features, self.epsilon.value, delta, setting=setting)


def list_feature_kinds(state: PanelState) -> dict[str, dict[str, object]]:
    """{label: options} of the two kinds of features that are compared."""
    size = state.knobs["size"]
    return {
        "pixels": {"afl.features": "pixels"},
        f"{size} random features": {"afl.features": "relu", "afl.size": size},
    }


def name_run(label: str, epsilon: float) -> str:
    """The name of a run with this kind of features and this ε."""
    return f"{label}, ε = {epsilon:g}"


def draw_budgets(
    by_features: Mapping[str, AccuraciesByBudget],
    epsilon: float,
    delta: float,
    *,
    setting: Setting | str,
) -> Picture:
    """Lines of test accuracy against ε for each kind of features; what `epsilon` promises in
    words.
    """
    lines: dict[str, AccuraciesByBudget] = {}
    looks: dict[str, Look] = {}
    colours = (look("afl").colour, SECOND)
    for (label, by_budget), colour in zip(by_features.items(), colours, strict=False):
        label_without_noise = f"{label}, no noise"
        with_noise = {budget: runs for budget, runs in by_budget.items() if budget is not None}
        lines[label] = with_noise
        lines[label_without_noise] = dict.fromkeys(with_noise, by_budget[None])
        looks[label] = Look(colour, "o", "-")
        looks[label_without_noise] = Look(colour, "", ":")
    return draw_accuracy_lines(
        lines,
        "ε",
        "ε (smaller: more private)",
        setting=f"{setting}, δ = {delta:g}",
        methods=looks,
        sentence=describe_budget(by_features, epsilon),
        detail=describe_promise(epsilon, delta),
    )


def describe_budget(by_features: Mapping[str, AccuraciesByBudget], epsilon: float) -> str:
    """What a budget costs in accuracy."""
    accuracies = []
    for label, by_budget in by_features.items():
        without_noise = mean_percent(by_budget[None])
        accuracies.append(f"{label} {mean_percent(by_budget[epsilon])} in place of {without_noise}")
    return f"With a privacy budget of ε = {epsilon:g} the noise leaves {join_words(accuracies)}."


def describe_promise(epsilon: float, delta: float) -> str:
    """What a budget promises, and what it does not cover."""
    sigma = find_smallest_sigma(epsilon, delta, sensitivity=SENSITIVITY)
    return (
        f"ε = {epsilon:g} is noise σ = {sigma:.2g}. One sample more or less changes the odds of a "
        f"result at most e^ε = {math.exp(epsilon):.2g} times, except with probability {delta:g}. Not "
        "covered: what many samples share; a server that sees sums before the noise."
    )
