"""Accuracy against α: AFL and Gaussian heads beside the ensemble and FedAvg."""

from typing import Any

from ...methods import label_of
from ...panels import PanelState, PlannedRuns, describe_settings
from ...panels.nearest_results import collect_accuracies
from ...plots import Picture, plural
from ...plots.study import draw_accuracy_lines
from ...studies.stored_results import DIGITS, list_stored_sets, load
from ..button_view import ButtonView, group_accuracies_by_seed
from ..runs import Steps, run_all, select_settings

ALPHAS = (0.05, 0.1, 0.3, 1.0, 10.0)
METHODS = ("afl", "gauss", "ensemble", "fedavg")
STORED_CHANCE = 0.1  # of the stored results, whose data sets have ten classes


class Skew(ButtonView):
    """Test accuracy against α, a line for each method."""

    name, title = "skew", "Skew"
    work_label = "Try five α"
    work_help = (
        "Run AFL, Gaussian heads, the ensemble and FedAvg with five α. Nothing else changes."
    )

    def planned_runs(self, state: PanelState) -> PlannedRuns:
        runs = {}
        for method in METHODS:
            for alpha in ALPHAS:
                settings = {**state.settings, "alpha": alpha, "partition": "dirichlet"}
                runs[name_run(method, alpha)] = (method, select_settings(method, settings))
        return runs

    def work(self, state: PanelState) -> Steps:
        """The setting in words, {method: {α: {seed: accuracy}}}, and the accuracy of guessing."""
        runs = yield from run_all(self.planned_runs(state))
        by_method = {}
        for method in METHODS:
            label = label_of(method, state.settings)
            by_method[label] = {
                alpha: group_accuracies_by_seed(runs[name_run(method, alpha)]) for alpha in ALPHAS
            }
        return describe_settings(state.settings), by_method, 1 / len(state.class_names)

    def stored_result(self, state: PanelState) -> Any:
        dataset = state.settings["dataset"]
        table = load(dataset if dataset in list_stored_sets() else DIGITS)
        clients = table.find_nearest_clients(state.settings["clients"])
        setting = (
            f"Stored {table.about['date']}: {table.dataset}, {plural(clients, 'client')}, "
            f"seeds 0–{table.seeds[-1]}"
        )
        return setting, collect_accuracies(table, METHODS, clients), STORED_CHANCE

    def draw_result(self, state: PanelState) -> Picture:
        setting, by_method, chance = state.worked
        return draw_accuracy_lines(by_method, "α", setting=setting, chance=chance)


def name_run(method: str, alpha: float) -> str:
    """The name of a run: "afl, α = 0.1"."""
    return f"{method}, α = {alpha:g}"
