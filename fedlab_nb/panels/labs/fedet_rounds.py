"""Fed-ET's lab: the feedback loop between the large model and the small ones, round by round, live and as a replay."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets

from ...draw import Picture
from ...draw.fedet_rounds import one_shot, rounds
from ..lab_view import LabView, Look
from .fedet_weights import WIDE, where

EMPTY = "Press Run: with several rounds, what the loop does to the large model and to the small ones."


class Rounds(LabView):
    """The large model between two overwritings of its head, the small ones, and dissent; for one shot the student."""

    name, title, ready = "rounds", "Rounds", "live"
    empty = EMPTY

    def __init__(self) -> None:
        super().__init__()
        self.round = widgets.IntSlider(
            1, 1, 1, description="Round", tooltip="The round that the sentence tells of", style=WIDE,
            layout={"width": "330px"},
        )  # fmt: skip
        self.play = widgets.Play(value=1, min=1, max=1, interval=600, tooltip="Replay the rounds", show_repeat=False)
        widgets.jslink((self.play, "value"), (self.round, "value"))
        # In a box of its own Play is no control of the view: the slider that it moves redraws.
        self.controls = [widgets.HBox([self.play]), self.round]
        self._of: Any = None

    @staticmethod
    def _options(look: Look) -> tuple[int, int]:
        """Rounds and server steps in one shot of what is shown."""
        options = look.knobs if look.outcome is None else look.outcome.setting["options"]
        return options["rounds"], options["one_shot_steps"]

    def adapt(self, look: Look) -> None:
        """While it runs the newest round is marked; a new outcome is seen from its end."""
        total, _ = self._options(look)
        for widget in (self.round, self.play):
            widget.max = max(total, 1)
            widget.disabled = total == 1
        if look.outcome is None:
            known = [int(m["round"]) for m in look.metrics if "dissent" in m]
            self.round.value = max(known, default=1)
        elif look.outcome is not self._of:
            self._of = look.outcome
            self.round.value = total

    def draw(self, look: Look) -> Picture:
        total, steps = self._options(look)
        if total == 1:
            return self._one_shot(look, steps)
        curves = curves_of(history(look), total)
        if look.outcome is None:
            curves["dissent"] = {int(m["round"]): m["dissent"] for m in look.metrics if "dissent" in m}
        else:
            extras = look.outcome.extras
            for name, key in {"consensus": "consensus_accuracy", "clients": "clients_accuracy"}.items():
                curves[name] = dict(zip(extras["shown_rounds"], extras[key], strict=True))
            for name in ("small_before", "small_after"):
                curves[name] = dict(zip(extras["shown_rounds"], extras[name], strict=True))
            curves["dissent"] = dict(enumerate(look.outcome.artefacts["dissent"].tolist(), 1))
        return rounds(curves, setting=where(look), marked=min(self.round.value, total), total=total)

    @staticmethod
    def _one_shot(look: Look, steps: int) -> Picture:
        runs = {seed: outcome.history for seed, outcome in look.outcomes.items()} or {0: history(look)}
        found = {seed: student_points(points, steps) for seed, points in runs.items()}
        at = [s for s, _ in next(iter(found.values()))]
        measured = {seed: outcome.extras for seed, outcome in look.outcomes.items()}
        return one_shot(
            at,
            {seed: [a for _, a in points] for seed, points in found.items()},
            {seed: extras["consensus_accuracy"][-1] for seed, extras in measured.items()},
            {seed: extras["clients_accuracy"][-1] for seed, extras in measured.items()},
            setting=where(look, every_seed=True),
        )


def history(look: Look) -> list[dict[str, Any]]:
    """Points of the curve: of the outcome, or of the run so far."""
    if look.outcome is not None:
        return look.outcome.history
    row = look.record.find("fedet")
    return next(iter(row.live.values()), []) if row is not None else []


def curves_of(points: list[dict[str, Any]], total: int) -> dict[str, dict[int, float]]:
    """The server's accuracy by round, before and after distillation; `progress` counts the run's steps."""
    return {
        "server_before": {
            int(p["progress"] * total) + 1: p["accuracy"] for p in points if p["phase"] == "heads averaged"
        },
        "server_after": {round(p["progress"] * total): p["accuracy"] for p in points if p["phase"] == "rounds"},
    }


def student_points(points: list[dict[str, Any]], steps: int) -> list[tuple[int, float]]:
    """(server steps, accuracy) in one shot. Local training, where the run starts with it, is the curve's first half."""
    half = any(p["phase"] == "local training" for p in points)
    share = [
        (2 * p["progress"] - 1 if half else p["progress"], p["accuracy"])
        for p in points
        if p["phase"] == "distillation"
    ]
    return [(round(steps * s), a) for s, a in share] or [(0, 0.0)]
