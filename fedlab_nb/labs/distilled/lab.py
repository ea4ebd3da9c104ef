"""The lab of distilled data: what a client sends beside its own images, accuracy and bytes, which classes are told."""

from typing import Any

import numpy as np

from ...methods import METHODS
from ...panels.state import PanelState, words
from ...plots import Picture
from ...plots.kit import blank
from ..runs import Steps, tries, where
from ..views import View, spec
from . import numbers
from .plots.budget import budgets
from .plots.classes import classes
from .plots.neighbours import pairs

PER_CLASS = (1, 2, 3, 5, 10)
WAYS = {
    "random": "random samples", "kmeans": "centres of k-means", "kip": "kernel inducing points",
    "crops": "FedSD2C-like crops",
}  # fmt: skip


class Sent(View, name="sent"):
    """The images that a client sends, beside the nearest of its own: what an attacker would see."""

    def prepare(self, state: PanelState) -> list[numbers.Neighbours]:
        return numbers.attack(state.outcome)

    def draw(self, state: PanelState) -> Picture:
        prepared, at = state.prepared, state.client
        of = prepared[at if at is not None and at < len(prepared) else 0]
        way = WAYS[state.outcome.options["images"]]
        return pairs(of, state.class_names, setting=where(state), way=way, klass=state.klass)


class Bytes(View, name="budget"):
    """Accuracy against one client's bytes, for several numbers of images per class."""

    def __init__(self) -> None:
        super().__init__(per_class=PER_CLASS)

    def work(self, state: PanelState) -> Steps:
        """Run with 1, 2, 3, 5 and 10 images per class, on every seed of the panel. Nothing else changes"""
        choices = {f"m_c = {m}": {"distilled.per_class": m} for m in PER_CLASS}
        outcomes = yield from tries("distilled", state.settings, choices)
        points = [numbers.budget(m, runs) for m, runs in zip(PER_CLASS, outcomes.values(), strict=True)]
        return points, dict(state.settings), state.knobs["images"]

    def draw(self, state: PanelState) -> Picture:
        if state.worked is None:
            text = f"Press “{self.work_label}”. The method then runs with several numbers of images per class."
            return blank(text, setting=state.setting)
        points, then, way = state.worked
        others = {METHODS[name].info.title: point(runs) for name, runs in state.others.items() if runs}
        return budgets(points, self.per_class.value, setting=words(then), way=WAYS[way], others=others)


def point(outcomes: Any) -> tuple[float, float]:
    """Bytes up of a client and test accuracy, means over `{seed: Outcome}`."""
    up = np.mean([o.ledger.up / o.settings.clients for o in outcomes.values()])
    return float(up), float(np.mean([o.accuracy for o in outcomes.values()]))


class Classes(View, name="labels"):
    """Which classes each client sends images of, beside what it holds."""

    def draw(self, state: PanelState) -> Picture:
        held = np.stack([np.bincount(y, minlength=len(state.class_names)) for y in self.labels(state)])
        marks = {"client": state.client, "klass": state.klass}
        return classes(held, state.report.counts, state.class_names, setting=where(state), **marks)

    def labels(self, state: PanelState) -> list[np.ndarray]:
        """Of each client, the labels of the samples that it trained on."""
        federation = state.outcome.federation()
        parts = federation.split(state.outcome.plan.holdout)
        return [federation.dataset.y_train[rows].numpy() for rows, _ in parts]


LAB = spec(__name__, Sent, Bytes, Classes)
