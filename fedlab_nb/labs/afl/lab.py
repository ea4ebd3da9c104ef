"""AFL's lab: accuracy against skew, forgetting a client, the image in a sum, noise for privacy, number of features."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import RunError
from ...methods import METHODS
from ...panels.state import PanelState, words
from ...plots import Picture
from ...plots.kit import blank
from ...plots.study import against_alpha
from ..controls import offer
from ..runs import Steps, tries, where
from ..views import View, spec
from . import numbers
from .plots.forget import forgotten
from .plots.image import class_means
from .plots.lines import budgets, sizes

ALPHAS = (0.05, 0.1, 0.3, 1.0, 10.0)
BUDGETS = (0.3, 1.0, 3.0, 10.0, 30.0)
SIZES = (16, 32, 64, 128, 256, 512, 1024)
BESIDE = ("afl", "gauss", "ensemble", "fedavg")


class Skew(View, name="skew"):
    """Accuracy against α: AFL and Gaussian heads beside the ensemble and FedAvg."""

    def work(self, state: PanelState) -> Steps:
        """Run AFL, Gaussian heads, the ensemble and FedAvg with five α. Nothing else changes"""
        by_method: dict[str, dict[float, dict[int, float]]] = {}
        for name in BESIDE:
            choices = {f"{name}, α = {alpha:g}": {"alpha": alpha, "partition": "dirichlet"} for alpha in ALPHAS}
            runs = yield from tries(name, state.settings, choices)
            accuracies = [{s: o.accuracy for s, o in of.items()} for of in runs.values()]
            by_method[METHODS[name].info.title] = dict(zip(ALPHAS, accuracies, strict=True))
        return by_method, dict(state.settings)

    def draw(self, state: PanelState) -> Picture:
        if state.worked is None:
            text = f"Press “{self.work_label}”: four methods are run with five α, from strong skew to nearly none."
            return blank(text, setting=state.setting)
        by_method, then = state.worked
        return against_alpha(by_method, setting=words(then), chance=1 / len(state.class_names))


class Forget(View, name="forget"):
    """One client's sums taken off the total: accuracy class by class, and the same fit from the others' samples."""

    def adapt(self, state: PanelState) -> None:
        clients = state.report.clients or 1
        offer(self.who, [(f"client {k}", k) for k in range(clients)], min(state.client or 0, clients - 1))

    def work(self, state: PanelState) -> Steps:
        """Take the client's sums off the total and solve again. Then fit the samples of the others for comparison"""
        if state.outcome is None:
            raise RunError("There is no finished run yet; press Run first.")
        yield 0, 2, "taking its sums off"
        forgotten_one = numbers.forget(state.outcome, self.who.value)
        yield 2, 2, "done"
        return forgotten_one

    def draw(self, state: PanelState) -> Picture:
        forgotten_one = state.worked
        if forgotten_one is None or forgotten_one.outcome is not state.outcome:
            text = f"Choose a client and press “{self.work_label}”: the server takes its sums off the total."
            return blank(text, setting=where(state))
        return forgotten(forgotten_one, state.class_names, setting=where(state), klass=state.klass)


class Image(View, name="image"):
    """The class sums of one client, each divided by its count, beside the client's own nearest images."""

    def draw(self, state: PanelState) -> Picture:
        features = state.outcome.options["features"]
        if state.report.classes is None:
            text = "The server has only the total, and not the class sums of one client. So there is nothing to show."
            return blank(text, setting=where(state))
        if features != "pixels":
            text = f"With {features} features a class sum is not an image. Set the features to pixels, and run again."
            return blank(text, setting=where(state))
        means = numbers.class_means(state.outcome)
        at = state.client if state.client is not None and state.client < len(means) else numbers.first_single(means)
        return class_means(means[at], state.class_names, setting=where(state), klass=state.klass)


class Budget(View, name="budget"):
    """Accuracy against the privacy budget, for pixels and for random features."""

    def work(self, state: PanelState) -> Steps:
        """Run AFL with five ε and without noise, for pixels and for random features"""
        by_budget = {}
        for label, change in lines(state.knobs).items():
            off = {"off": {"afl.epsilon": 0.0, **change}}
            choices = {f"{label}, ε = {e:g}": {"afl.epsilon": e, **change} for e in BUDGETS} | off
            runs = yield from tries("afl", state.settings, choices)
            accuracies = [{s: o.accuracy for s, o in of.items()} for of in runs.values()]
            by_budget[label] = dict(zip((*BUDGETS, None), accuracies, strict=True))
        return by_budget, dict(state.settings), state.knobs["delta"]

    def draw(self, state: PanelState) -> Picture:
        if state.worked is None:
            text = f"Press “{self.work_label}”: AFL is run with less and less noise, and without any."
            return blank(text, setting=state.setting)
        by_budget, then, delta = state.worked
        return budgets(by_budget, self.epsilon.value, delta, setting=words(then))


class Size(View, name="size"):
    """Accuracy and bytes against the number of random features."""

    def work(self, state: PanelState) -> Steps:
        """Run AFL with 16 to 1024 random features of both kinds"""
        by_kind = {}
        kinds = ("relu", "conv") if state.federation.dataset.x_train.dim() == 4 else ("relu",)
        for kind in kinds:
            choices = {f"{kind}, d = {d}": {"afl.features": kind, "afl.size": d} for d in SIZES}
            runs = yield from tries("afl", state.settings, choices)
            by_kind[kind] = numbers.by_size(SIZES, runs.values())
        pixels = yield from tries("afl", state.settings, {"pixels": {"afl.features": "pixels"}})
        return by_kind, numbers.by_size((0,), pixels.values())[0], dict(state.settings)

    def draw(self, state: PanelState) -> Picture:
        if state.worked is None:
            text = f"Press “{self.work_label}”: AFL is run with more and more random features."
            return blank(text, setting=state.setting)
        by_kind, pixels, then = state.worked
        return sizes(by_kind, pixels, setting=words(then))


def lines(knobs: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """The two lines of the privacy view: pixels, and as many random features as the panel says."""
    size = knobs["size"]
    random = {"afl.features": "relu", "afl.size": size}
    return {"pixels": {"afl.features": "pixels"}, f"{size} random features": random}


VIEWS: Sequence[type[View]] = (Skew, Forget, Image, Budget, Size)
LAB = spec(__name__, *VIEWS)
