"""FedLPA's lab: the residuals of a run, while it runs too, and all three solvers on the same uploads."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import ipywidgets as widgets
import numpy as np

from ...draw import Picture
from ...draw.fedlpa_solver import solver
from ...errors import RunError
from ..lab_view import LabView, Look
from .fedlpa_again import again, layer_names, where
from .fedlpa_damping import DECADES, labelled

SOLVERS = ("cg", "gd", "ea")
LAST = -1


class Solver(LabView):
    """The run's residuals, while it runs too; and all three solvers from the same uploads."""

    name, title, ready = "solver", "Solver", "live"
    empty = "Press Run: how far each layer is from its solution, step by step."
    work_label = "Solve in three ways"

    def __init__(self) -> None:
        super().__init__()
        self.damping = widgets.Dropdown(
            options=labelled(DECADES), value=DECADES[3], description="λ", layout={"width": "105px"},
            tooltip="Damping for the three solvers", style={"description_width": "16px"},
        )  # fmt: skip
        self.steps = widgets.Dropdown(
            options=[100, 1000, 10_000], value=1000, description="Gradient steps", layout={"width": "196px"},
            tooltip="How many steps of gradient descent; conjugate gradients stop by themselves",
            style={"description_width": "108px"},
        )  # fmt: skip
        self.step = widgets.SelectionSlider(
            options=[*((f"{s}", s) for s in [0, *(2**e for e in range(14))]), ("last", LAST)], value=LAST,
            description="Step", tooltip="Mark the state after that many steps", layout={"width": "215px"},
            style={"description_width": "34px"},
        )  # fmt: skip
        self.controls = [self.damping, self.steps, self.step]

    def work(self, look: Look) -> Generator[tuple[int, int, str], None, dict]:
        """Conjugate gradients, gradient descent and the shortcut on the run's uploads, with the λ that is chosen"""
        if look.outcome is None:
            raise RunError("There is no finished run yet; press Run first.")
        server, _ = again(look.outcome)
        received = server.uploads(self.damping.value, look.outcome.setting["options"]["pi"])
        limit, chosen = self.steps.value, self.damping.value
        curves: dict[str, dict] = {}
        points: dict[str, dict[int, float]] = {name: {} for name in SOLVERS}
        for name in SOLVERS:
            for step, (so_far, point) in enumerate(server.path(name, limit, received)):
                found = so_far
                if point is not None:
                    points[name][point.iteration] = point.accuracy
                if step % 10 == 0:
                    yield min(step, limit), limit, f"{name}, step {step}"
            curves[name] = {layer: [r.item() for r in curve] for layer, curve in found.items()}
        return {"outcome": look.outcome, "damping": chosen, "curves": curves, "points": listed(points)}

    def draw(self, look: Look) -> Picture:
        outcome, worked = look.outcome, look.worked
        step = None if self.step.value == LAST else self.step.value
        if outcome is not None and worked is not None and worked["outcome"] is outcome:
            setting = f"{where(outcome)}, λ = {worked['damping']:.1g}"
            return solver(worked["curves"], worked["points"], layers=layer_names(outcome), setting=setting, step=step)
        if outcome is None:
            row = look.record.find("fedlpa") if look.record is not None else None
            settings = look.knobs if row is None else {**look.knobs, **plain(row.settings)}
            curves = {str(settings.get("solver", "cg")): residuals(look.live)}
            names = [f"layer {i + 1}" for i in range(len(residuals(look.live)))]
            return solver(curves, {}, layers=names, setting=look.setting, step=step, running=True)
        options = outcome.setting["options"]
        curves = {options["solver"]: residuals(outcome.artefacts)}
        return solver(
            curves, {options["solver"]: on_the_way(outcome)}, layers=layer_names(outcome), step=step,
            setting=f"{where(outcome)}, λ = {options['damping']:.1g}",
        )  # fmt: skip


def plain(settings: Any) -> dict[str, Any]:
    """Settings of a run with the names of FedLPA's own unqualified."""
    return {name.removeprefix("fedlpa."): value for name, value in dict(settings).items()}


def residuals(arrays: Any) -> dict[str, np.ndarray]:
    """Layer -> relative residuals, from a run's artefacts or from what is live."""
    return {name.removeprefix("residual."): curve for name, curve in arrays.items() if name.startswith("residual.")}


def listed(points: dict[str, dict[int, float]]) -> dict[str, list[tuple[int, float]]]:
    return {name: sorted(found.items()) for name, found in points.items()}


def on_the_way(outcome: Any) -> list[tuple[int, float]]:
    """(steps, accuracy) of a run's own solver: its curve has a point after 0, 1, 2, 4, … steps; then the end."""
    path = [p["accuracy"] for p in outcome.history if p["phase"] == "solve"]
    found = dict(zip([0, *(2**e for e in range(20))], path, strict=False))
    if not outcome.setting["options"]["rounds"]:
        found[max(len(curve) - 1 for curve in residuals(outcome.artefacts).values())] = outcome.accuracy
    return sorted(found.items())
