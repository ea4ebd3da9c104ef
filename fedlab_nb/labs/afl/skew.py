"""Accuracy against α for AFL, Gaussian heads, the ensemble and FedAvg."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...methods import choose_method_label
from ...panels import (
    MethodAndArgumentsByName,
    PanelState,
    ProgressThenResult,
    make_caption_of_settings_and_seeds,
)
from ...panels.nearest_results import collect_stored_accuracies
from ...plots import Picture, format_count_and_noun
from ...plots.study import draw_accuracy_lines_with_bands
from ...plots.words import SettingCaption, describe_skew
from ...studies.stored_results import DIGITS, list_datasets_with_stored_results, load
from ...value_types import SettingsByName
from ..button_view import ButtonView, get_accuracies_by_seed
from ..runs import run_planned_runs, select_settings_of_method

ALPHAS = (0.05, 0.1, 0.3, 1.0, 10.0)
METHODS = ("afl", "gauss", "ensemble", "fedavg")
STORED_CHANCE = 0.1  # accuracy of guessing in stored results: their data sets have ten classes


class SkewResults(NamedTuple):
    """What is drawn: the setting in words, accuracies for each method and α, the accuracy of guessing."""

    setting: SettingCaption | str
    accuracies_by_method: Mapping[str, Mapping[float, Any]]
    chance: float


class SkewView(ButtonView):
    """Test accuracy against α, a line for each method."""

    name, title = "skew", "Skew"
    work_label = "Try five α"
    work_help = (
        "Run AFL, Gaussian heads, the ensemble and FedAvg with five α. Nothing else changes."
    )

    def planned_runs(self, state: PanelState) -> MethodAndArgumentsByName:
        runs = {}
        for method in METHODS:
            for alpha in ALPHAS:
                settings = {**state.settings, "alpha": alpha, "partition": "dirichlet"}
                runs[format_run_name(method, alpha)] = (
                    method,
                    select_settings_of_method(method, settings),
                )
        return runs

    def work(self, state: PanelState) -> ProgressThenResult[SkewResults]:
        """Run each method with each α."""
        runs = yield from run_planned_runs(self.planned_runs(state))
        by_method = {}
        for method in METHODS:
            label = choose_method_label(method, state.settings)
            by_method[label] = {
                alpha: get_accuracies_by_seed(runs[format_run_name(method, alpha)])
                for alpha in ALPHAS
            }
        setting = make_caption_with_alpha_range(state.settings)
        return SkewResults(setting, by_method, 1 / len(state.class_names))

    def describe_worked_setting(self, state: PanelState) -> SettingCaption | str:
        return state.worked.setting

    def make_stored_result(self, state: PanelState) -> SkewResults:
        dataset = state.settings["dataset"]
        table = load(dataset if dataset in list_datasets_with_stored_results() else DIGITS)
        clients = table.find_nearest_client_count(state.settings["clients"])
        setting = (
            f"Stored {table.about['date']}: {table.dataset}, "
            f"{format_count_and_noun(clients, 'client')}, seeds 0–{table.seeds[-1]}"
        )
        accuracies = collect_stored_accuracies(table, METHODS, clients)
        return SkewResults(setting, accuracies, STORED_CHANCE)

    def draw_result(self, state: PanelState) -> Picture:
        setting, by_method, chance = state.worked
        return draw_accuracy_lines_with_bands(
            by_method, "α", setting=setting, chance_accuracy=chance
        )


def format_run_name(method: str, alpha: float) -> str:
    """Format the name of a run, such as "afl, α = 0.1"."""
    return f"{method}, α = {alpha:g}"


def make_caption_with_alpha_range(settings: SettingsByName) -> SettingCaption:
    """Describe the setting, with the range of ALPHAS in place of the α that the controls have."""
    run_settings = {**settings, "partition": "dirichlet"}
    caption = make_caption_of_settings_and_seeds(run_settings)
    one_alpha = describe_skew("dirichlet", run_settings)
    words = caption.words.replace(one_alpha, f"α = {ALPHAS[0]:g} to {ALPHAS[-1]:g}")
    return SettingCaption(words, caption.values)
