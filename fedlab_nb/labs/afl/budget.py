"""Accuracy against the privacy budget ε, for pixels and for random features."""

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping

import ipywidgets as widgets

from ...methods.afl import SENSITIVITY
from ...methods.parts.privacy import smallest_sigma
from ...panels import Asked, PanelState, made, words
from ...plots import Picture, mean_percent
from ...plots.study import against
from ...plots.style import SECOND, Look, look
from ..runs import Steps, all_of, choices
from ..tried import Tried, accuracies

BUDGETS = (0.3, 1.0, 3.0, 10.0, 30.0)
Budgets = Mapping[float | None, Mapping[int, float]]  # {ε: {seed: share}}, None: without noise


class Budget(Tried):
    name, title, work_label = "budget", "Privacy", "Try five budgets"

    def __init__(self) -> None:
        help, budgets = "The budget that the sentence explains", [(f"{e:g}", e) for e in BUDGETS]
        self.epsilon = made(
            widgets.SelectionSlider, label="ε", help=help, width=300, options=budgets, value=1.0
        )

    def asked(self, state: PanelState) -> Asked:
        kinds = {"pixels": {"afl.features": "pixels"}}
        kinds[f"{state.knobs['size']} random features"] = {
            "afl.features": "relu",
            "afl.size": state.knobs["size"],
        }
        each = itertools.product(kinds.items(), (*BUDGETS, 0.0))
        of = {f"{label}, ε = {e:g}": {"afl.epsilon": e, **change} for (label, change), e in each}
        return choices("afl", state.settings, of)

    def work(self, state: PanelState) -> Steps:
        """Run AFL with five ε and without noise, for pixels and for random features"""
        by_budget: dict[str, dict[float | None, dict[int, float]]] = defaultdict(dict)
        for name, of in (yield from all_of(self.asked(state))).items():
            label, _, e = name.rpartition(", ε = ")
            by_budget[label][float(e) or None] = accuracies(of)
        return by_budget, words(state.settings), state.knobs["delta"]

    def tried(self, state: PanelState) -> Picture:
        by_budget, setting, delta = state.worked
        return budgets(by_budget, self.epsilon.value, delta, setting=setting)


def budgets(
    by_kind: Mapping[str, Budgets], chosen: float, delta: float, *, setting: str
) -> Picture:
    """Lines of test accuracy against ε for each kind of features; the promise of the `chosen` ε in words."""
    lines: dict[str, Budgets] = {}
    looks: dict[str, Look] = {}
    for (label, of), hue in zip(by_kind.items(), (look("afl").colour, SECOND), strict=False):
        lines[label] = {e: runs for e, runs in of.items() if e is not None}
        lines[f"{label}, no noise"] = dict.fromkeys(lines[label], of[None])
        looks |= {label: Look(hue, "o", "-"), f"{label}, no noise": Look(hue, "", ":")}
    sigma = smallest_sigma(chosen, delta, sensitivity=SENSITIVITY)
    each = ", ".join(
        f"{label} {mean_percent(of[chosen])} ({mean_percent(of[None])} without)"
        for label, of in by_kind.items()
    )
    text = (
        f"ε = {chosen:g} is noise σ = {sigma:.2g}: {each}. One sample more or less changes the odds of a result at "
        f"most e^ε = {math.exp(chosen):.2g} times, except with probability {delta:g}. Not covered: what many samples "
        "share; a server that sees sums before the noise."
    )
    about = f"{setting}, δ = {delta:g}"
    return against(
        lines, "ε", "ε (smaller: more private)", setting=about, methods=looks, sentence=text
    )
