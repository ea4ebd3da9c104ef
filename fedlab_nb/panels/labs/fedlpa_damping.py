"""FedLPA's lab: the server's part again for every λ, from the same uploads."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import ipywidgets as widgets
import numpy as np

from ...draw import Picture
from ...draw.fedlpa_damping import USES, damping
from ..lab_view import LabView, Look
from .fedlpa_again import again, layer_names, where

HALVES = [10 ** (e / 2) for e in range(-12, 5)]  # λ from 1e-6 to 100
DECADES = HALVES[::2]
RULES = ("one", "trace")


class Damping(LabView):
    """Accuracy against λ for five uses of the uploads; mean diagonals beside what λ adds."""

    name, title, ready = "damping", "λ and π", "run"
    empty = "Press Run: the server's part is then done again for every λ, from the same uploads."

    def __init__(self) -> None:
        super().__init__()
        self.damping = widgets.SelectionSlider(
            options=labelled(HALVES), value=nearest(HALVES, 1e-3), description="λ", layout={"width": "330px"},
            tooltip="Damping: which λ is looked at", style={"description_width": "20px"},
        )  # fmt: skip
        self.pi = widgets.Dropdown(
            options=[("π = 1", "one"), ("π by the traces", "trace")], value="one", description="Split",
            tooltip="How the two factors share the damping", layout={"width": "210px"},
            style={"description_width": "40px"},
        )  # fmt: skip
        self.controls = [self.damping, self.pi]
        self._outcome: Any = None

    def adapt(self, look: Look) -> None:
        """Start at what the run had; offer the λ that were tried."""
        if look.prepared is not None and list(self.damping.options) != labelled(look.prepared["dampings"]):
            self.damping.options = labelled(look.prepared["dampings"])
        if look.outcome is not self._outcome:
            self._outcome = look.outcome
            options = look.outcome.setting["options"]
            self.damping.value = nearest([value for _, value in self.damping.options], options["damping"])
            self.pi.value = options["pi"]

    def prepare(self, look: Look) -> Generator[None, None, dict]:
        server, large = again(look.outcome)
        dampings = DECADES if large else HALVES
        accuracies = {rule: {use: [] for use in USES} for rule in RULES}
        for rule in RULES:
            for value in dampings:
                received = server.uploads(value, rule)
                for use in USES:
                    if use == "none" and accuracies[rule][use]:  # the average does not depend on λ
                        accuracies[rule][use].append(accuracies[rule][use][0])
                    else:
                        accuracies[rule][use].append(server.accuracy(server.use(use, received)))
                    yield
        layers = look.outcome.extras["layers"]
        diagonals = {
            f: np.array([[mean_diagonal(own.factors[n], f) for n in layers] for own in server.evidence]) for f in "AB"
        }
        ratios = {rule: np.array([own.ratios(rule) for own in server.evidence]) for rule in RULES}
        return {
            "dampings": dampings, "accuracies": accuracies, "measured": diagonals, "ratios": ratios,
        }  # fmt: skip

    def draw(self, look: Look) -> Picture:
        known, rule = look.prepared, self.pi.value
        chosen = min(self.damping.index or 0, len(known["dampings"]) - 1)
        root = known["dampings"][chosen] ** 0.5
        added = {"A": root * known["ratios"][rule], "B": root / known["ratios"][rule]}
        return damping(
            known["dampings"], known["accuracies"][rule], chosen, known["measured"], added,
            layers=layer_names(look.outcome), setting=where(look.outcome), pi=dict(one="1", trace="trace")[rule],
            client=look.client,
        )  # fmt: skip


def mean_diagonal(factors: Any, factor: str) -> float:
    return getattr(factors, factor.lower()).diagonal().mean().item()


def labelled(dampings: Sequence[float]) -> list[tuple[str, float]]:
    return [(f"{value:.1g}", value) for value in dampings]


def nearest(dampings: Sequence[float], damping: float) -> float:
    return min(dampings, key=lambda value: abs(np.log(value / damping)))
