"""Accuracy against α: AFL and Gaussian heads beside the ensemble and FedAvg."""

from typing import Any

from ...methods import label_of
from ...panels import Asked, PanelState, words
from ...panels.stored import results_of
from ...plots import Picture, plural
from ...plots.study import against
from ...studies.stored import DIGITS, load, sets
from ..runs import Steps, all_of, taken
from ..tried import Tried, accuracies

ALPHAS = (0.05, 0.1, 0.3, 1.0, 10.0)
BESIDE = ("afl", "gauss", "ensemble", "fedavg")


class Skew(Tried):
    name, title, work_label = "skew", "Skew", "Try five α"

    def asked(self, state: PanelState) -> Asked:
        each = {
            (m, a): {**state.settings, "alpha": a, "partition": "dirichlet"}
            for m in BESIDE
            for a in ALPHAS
        }
        return {
            f"{m}, α = {alpha:g}": (m, taken(m, settings)) for (m, alpha), settings in each.items()
        }

    def work(self, state: PanelState) -> Steps:
        """Run AFL, Gaussian heads, the ensemble and FedAvg with five α. Nothing else changes"""
        runs = iter((yield from all_of(self.asked(state))).values())
        each = {
            label_of(m, state.settings): {alpha: accuracies(next(runs)) for alpha in ALPHAS}
            for m in BESIDE
        }
        return words(state.settings), each, 1 / len(state.class_names)

    def kept(self, state: PanelState) -> Any:
        table = load(name if (name := state.settings["dataset"]) in sets() else DIGITS)
        clients = table.nearest_clients(state.settings["clients"])
        about = f"Stored {table.about['date']}: {table.dataset}, {plural(clients, 'client')}, seeds 0–{table.seeds[-1]}"
        return about, results_of(table, BESIDE, clients), 0.1

    def tried(self, state: PanelState) -> Picture:
        setting, by_method, chance = state.worked
        return against(by_method, "α", setting=setting, chance=chance)
