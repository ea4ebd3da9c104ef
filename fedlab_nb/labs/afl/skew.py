"""Accuracy against α: AFL and Gaussian heads beside the ensemble and FedAvg."""

from ...methods import label_of
from ...panels import PanelState, words
from ...plots import Picture
from ...plots.study import against
from ..runs import Steps, tries
from ..tried import Tried, accuracies

ALPHAS = (0.05, 0.1, 0.3, 1.0, 10.0)
BESIDE = ("afl", "gauss", "ensemble", "fedavg")


class Skew(Tried):
    name, title, work_label = "skew", "Skew", "Try five α"
    before = "four methods are run with five α, from strong skew to nearly none."

    def work(self, state: PanelState) -> Steps:
        """Run AFL, Gaussian heads, the ensemble and FedAvg with five α. Nothing else changes"""
        by_method: dict[str, dict[float, dict[int, float]]] = {}
        for name in BESIDE:
            choices = {f"{name}, α = {alpha:g}": {"alpha": alpha, "partition": "dirichlet"} for alpha in ALPHAS}
            runs = yield from tries(name, state.settings, choices)
            by_alpha = dict(zip(ALPHAS, map(accuracies, runs.values()), strict=True))
            by_method[label_of(name, state.settings)] = by_alpha
        return by_method, words(state.settings)

    def tried(self, state: PanelState) -> Picture:
        by_method, setting = state.worked
        return against(by_method, "α", setting=setting, chance=1 / len(state.class_names))
