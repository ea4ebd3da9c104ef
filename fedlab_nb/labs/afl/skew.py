"""Accuracy against α: AFL and Gaussian heads beside the ensemble and FedAvg."""

from ...methods import label_of
from ...panels import Asked, PanelState, words
from ...plots import Picture
from ...plots.study import against
from ..runs import Steps, all_of, taken
from ..tried import Tried, accuracies

ALPHAS = (0.05, 0.1, 0.3, 1.0, 10.0)
BESIDE = ("afl", "gauss", "ensemble", "fedavg")


class Skew(Tried):
    name, title, work_label = "skew", "Skew", "Try five α"
    before = "four methods are run with five α, from strong skew to nearly none."

    def asked(self, state: PanelState) -> Asked:
        dealt = {"partition": "dirichlet"}
        return {
            f"{name}, α = {alpha:g}": (name, taken(name, {**state.settings, "alpha": alpha, **dealt}))
            for name in BESIDE
            for alpha in ALPHAS
        }

    def work(self, state: PanelState) -> Steps:
        """Run AFL, Gaussian heads, the ensemble and FedAvg with five α. Nothing else changes"""
        runs = iter((yield from all_of(self.asked(state))).values())
        each = {label_of(m, state.settings): {alpha: accuracies(next(runs)) for alpha in ALPHAS} for m in BESIDE}
        return each, words(state.settings)

    def tried(self, state: PanelState) -> Picture:
        by_method, setting = state.worked
        return against(by_method, "α", setting=setting, chance=1 / len(state.class_names))
