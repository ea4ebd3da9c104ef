"""Accuracy against α: AFL and Gaussian heads beside the ensemble and FedAvg."""

from ...methods import label_of
from ...panels import LabView, PanelState, words
from ...plots import Picture, blank
from ...plots.study import against_alpha
from ..runs import Steps, tries

ALPHAS = (0.05, 0.1, 0.3, 1.0, 10.0)
BESIDE = ("afl", "gauss", "ensemble", "fedavg")


class Skew(LabView):
    name, title, ready, work_label = "skew", "Skew", "data", "Try five α"

    def work(self, state: PanelState) -> Steps:
        """Run AFL, Gaussian heads, the ensemble and FedAvg with five α. Nothing else changes"""
        by_method: dict[str, dict[float, dict[int, float]]] = {}
        for name in BESIDE:
            choices = {f"{name}, α = {alpha:g}": {"alpha": alpha, "partition": "dirichlet"} for alpha in ALPHAS}
            runs = yield from tries(name, state.settings, choices)
            accuracies = [{s: o.accuracy for s, o in of.items()} for of in runs.values()]
            by_method[label_of(name, state.settings)] = dict(zip(ALPHAS, accuracies, strict=True))
        return by_method, dict(state.settings)

    def draw(self, state: PanelState) -> Picture:
        if state.worked is None:
            text = f"Press “{self.work_label}”: four methods are run with five α, from strong skew to nearly none."
            return blank(text, setting=state.setting)
        by_method, then = state.worked
        return against_alpha(by_method, setting=words(then), chance=1 / len(state.class_names))
