"""Fed-ET's feedback loop, round by round: the large model between two overwritings of its head, and the small ones.

For one shot, the student on its way up to what its teachers say.
"""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

import ipywidgets as widgets
import numpy as np

from ...methods.fedet.model import FedETReport
from ...panels import LabView, PanelState, made, player
from ...plots import Picture, drawing, dress, legend, percent, told
from ...plots.axes import few_ticks, level_line, mean_line, percent_axis
from ...plots.style import ACCENT, QUIET, SECOND, SERIES, narrow
from ..runs import where
from .votes import options_of

Points = Sequence[Mapping[str, Any]]  # of a curve: dicts with phase, progress, accuracy, bytes
Curves = dict[str, dict[int, float]]  # {one of the labels below: {round from 1: share 0–1}}

# label -> (colour, marker, line); what stands before the round's distillation is hollow
BEFORE, AFTER = "large, head overwritten", "large, after distillation"
AVERAGED, COPIED = "small, averaged by kind", "small, server's head copied in"
CONSENSUS, CLIENTS, DISSENT = (
    "consensus of the clients",
    "clients after local steps",
    "votes against that",
)
KINDS = {
    AFTER: (ACCENT, "o", "-"), BEFORE: (SECOND, "v", ""), CONSENSUS: (QUIET, "", "--"), CLIENTS: (QUIET, "", "-"),
    AVERAGED: (SERIES[3], "s", ""), COPIED: (SERIES[2], "D", "-"), DISSENT: (SECOND, "", ":"),
}  # fmt: skip


class Rounds(LabView):
    """The large model between two overwritings of its head, the small ones, and dissent; for one shot the student."""

    name, title, ready = "rounds", "Rounds", "live"
    _of: Any = None

    def __init__(self) -> None:
        ends = {"value": 1, "min": 1, "max": 1}
        help = "The round that the sentence describes"
        self.round = made(widgets.IntSlider, label="Round", help=help, width=330, **ends)
        self.play = player(self.round, interval=600, tooltip="Replay the rounds", show_repeat=False)

    def adapt(self, state: PanelState) -> None:
        """While it runs the newest round is marked; a new outcome is seen from its end."""
        total = options_of(state)["rounds"]
        for widget in (self.round, self.play):
            widget.max = max(total, 1)
            widget.disabled = total == 1
        if state.outcome is None:
            self.round.value = len(state.report.chosen)
        elif state.outcome is not self._of:
            self._of = state.outcome
            self.round.value = total

    def draw(self, state: PanelState) -> Picture:
        total, steps = (options_of(state)[knob] for knob in ("rounds", "one_shot_steps"))
        row = state.runs.find("fedet")
        live = {} if row is None else row.live
        histories = {seed: o.history for seed, o in state.outcomes.items()} or dict(live) or {0: []}
        points = next(iter(histories.values()))
        if total > 1:
            curves, marked = loop_curves(state.report, points, total), min(self.round.value, total)
            return rounds(curves, where(state), marked, f"Round {marked} of {total}")
        student = {seed: student_points(points, steps) for seed, points in histories.items()}
        curves = one_shot(student, [o.report for o in state.outcomes.values()])
        return rounds(
            curves,
            state.setting,
            last := max(curves[AFTER]),
            f"After {last} steps of the server",
            "step",
        )


def loop_curves(report: FedETReport, points: Points, total: int) -> Curves:
    """As far as known: of the server before and after distillation, and what the report has of the others; `progress`
    of the points counts the run's steps."""
    curves = {
        BEFORE: {
            int(p["progress"] * total) + 1: p["accuracy"]
            for p in points
            if p["phase"] == "heads averaged"
        },
        AFTER: {
            round(p["progress"] * total): p["accuracy"] for p in points if p["phase"] == "rounds"
        },
    }
    if report.shown_rounds:
        measured = {CONSENSUS: report.consensus_accuracy, CLIENTS: report.clients_accuracy}
        measured |= {AVERAGED: report.small_before, COPIED: report.small_after}
        curves |= {
            name: dict(zip(report.shown_rounds, shares, strict=True))
            for name, shares in measured.items()
        }
    if report.dissent_by_round is not None:
        curves[DISSENT] = dict(enumerate(report.dissent_by_round.tolist(), 1))
    return curves


def student_points(points: Points, steps: int) -> list[tuple[int, float]]:
    """(server steps, accuracy) in one shot, whose first half is local training."""
    student = [p for p in points if p["phase"] == "distillation"]
    return [(round(steps * (2 * p["progress"] - 1)), p["accuracy"]) for p in student] or [(0, 0.0)]


def one_shot(
    student: Mapping[int, Sequence[tuple[int, float]]], reports: Sequence[FedETReport]
) -> Curves:
    """The student's mean accuracy by server steps, of {seed: [(server steps, accuracy)]}; flat, of the seeds that are
    done: its teachers' consensus, and the mean single client."""
    steps, middle = mean_line(student)
    curves = {AFTER: dict(zip(steps, middle, strict=True))}
    if reports:
        curves[CONSENSUS] = dict.fromkeys(steps, mean(r.consensus_accuracy[-1] for r in reports))
        curves[CLIENTS] = dict.fromkeys(steps, mean(r.clients_accuracy[-1] for r in reports))
    return curves


def rounds(curves: Curves, setting: str, marked: int, when: str, unit: str = "round") -> Picture:
    """`curves` over rounds or steps (the `unit`); what is not known yet may be missing. marked: one of them, `when` in
    words
    """
    known = sorted({t for of in curves.values() for t in of})
    with drawing() as (figure, ax):
        dress(ax, title="Accuracy on test samples", x=unit, grid="y")
        before, after = (curves.get(name, {}) for name in (BEFORE, AFTER))
        zigzag = sorted([*((t - 0.5, a) for t, a in before.items()), *after.items()])
        ax.plot(
            [t for t, _ in zigzag],
            [a for _, a in zigzag],
            color=ACCENT,
            lw=1.2,
            alpha=0.6,
            zorder=1,
        )
        for name, (colour, marker, line) in KINDS.items():
            t, accuracies = (
                zip(*sorted(curves.get(name, {}).items()), strict=True)
                if curves.get(name)
                else ((), ())
            )
            if t:
                shown = np.array(t) - 0.5 * (name == BEFORE)
                style = {
                    "marker": marker or None,
                    "ls": line or "none",
                    "mfc": colour if line else "white",
                }
                ax.plot(shown, accuracies, color=colour, label=name, **style)
        level_line(ax, marked, axis="x")
        few_ticks(ax, "x", 8, whole=True)
        percent_axis(ax, top=1.02)
        if known:
            legend(figure, loc="outside lower center", ncols=1 if narrow() else 3)
    table = [
        {unit: t, **{name: percent(of[t]) for name, of in curves.items() if t in of}} for t in known
    ]
    said = ", ".join(f"{name} {percent(of[marked])}" for name, of in curves.items() if marked in of)
    title = f"Accuracy of the large model and of the small ones by {unit}"
    return told(figure, title, setting, f"{when}: {said or 'not measured'}.", table)
