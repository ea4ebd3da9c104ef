"""Fed-ET's feedback loop, round by round: the large model between two overwritings of its head, and the small ones.

For one shot, the student on its way up to what its teachers say.
"""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

import ipywidgets as widgets

from ...methods.fedet.model import FedETReport
from ...panels import LabView, PanelState, made, player
from ...plots import Picture, drawing, dress, legend, percent, told
from ...plots.axes import few_ticks, level_line, percent_axis, seed_lines, two_axes
from ...plots.style import ACCENT, QUIET, SECOND, SERIES, look
from ...plots.words import seeds_of
from ..runs import where
from .votes import options_of

Points = Sequence[Mapping[str, Any]]  # of a curve: dicts with phase, progress, accuracy, bytes
Curves = dict[str, dict[int, float]]  # {one of the labels below: {round from 1: share 0–1}}

# label -> (colour, marker, line); what stands before the round's distillation is hollow
BEFORE, AFTER = "head overwritten", "after distillation"
CONSENSUS, AVERAGED, DISSENT = "consensus of the clients", "averaged by kind", "votes against the consensus"
CLIENTS, COPIED = "clients after local steps", "server's head copied in"
SERVER = {CONSENSUS: (QUIET, "", "--"), BEFORE: (SECOND, "v", ""), AFTER: (ACCENT, "o", "-")}
SMALL = {
    CLIENTS: (QUIET, "", "-"), AVERAGED: (SERIES[3], "s", ""), COPIED: (SERIES[2], "D", "-"), DISSENT: (SECOND, "", ":")
}  # fmt: skip


class Rounds(LabView):
    """The large model between two overwritings of its head, the small ones, and dissent; for one shot the student."""

    name, title, ready = "rounds", "Rounds", "live"
    empty = "Press Run. With several rounds, the picture then shows the large model and the small ones after each step."
    _of: Any = None

    def __init__(self) -> None:
        ends = {"value": 1, "min": 1, "max": 1}
        help = "The round that the sentence describes"
        self.round = made(widgets.IntSlider, label="Round", help=help, width=330, **ends)
        self.play = player(self.round, interval=600, tooltip="Replay the rounds", show_repeat=False)
        self.controls = [widgets.HBox([self.play]), self.round]

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
        if total > 1:
            curves = loop_curves(state.report, next(iter(histories.values())), total)
            return rounds(curves, where(state), min(self.round.value, total), total)
        student = {seed: student_points(points, steps) for seed, points in histories.items()}
        return one_shot(student, [o.report for o in state.outcomes.values()], state.setting)


def loop_curves(report: FedETReport, points: Points, total: int) -> Curves:
    """As far as known: of the server before and after distillation, and what the report has of the others; `progress`
    of the points counts the run's steps."""
    curves = {
        BEFORE: {int(p["progress"] * total) + 1: p["accuracy"] for p in points if p["phase"] == "heads averaged"},
        AFTER: {round(p["progress"] * total): p["accuracy"] for p in points if p["phase"] == "rounds"},
    }
    if report.shown_rounds:
        measured = {CONSENSUS: report.consensus_accuracy, CLIENTS: report.clients_accuracy}
        measured |= {AVERAGED: report.small_before, COPIED: report.small_after}
        curves |= {name: dict(zip(report.shown_rounds, shares, strict=True)) for name, shares in measured.items()}
    if report.dissent_by_round is not None:
        curves[DISSENT] = dict(enumerate(report.dissent_by_round.tolist(), 1))
    return curves


def student_points(points: Points, steps: int) -> list[tuple[int, float]]:
    """(server steps, accuracy) in one shot, whose first half is local training."""
    student = [p for p in points if p["phase"] == "distillation"]
    return [(round(steps * (2 * p["progress"] - 1)), p["accuracy"]) for p in student] or [(0, 0.0)]


def rounds(curves: Curves, setting: str, marked: int, total: int) -> Picture:
    """`curves` over so many rounds; what is not known yet may be missing."""
    with two_axes(left=0.115, bottom=0.37, between=0.06, sharey=True) as (figure, left, right):
        dress(left, title="The large model", x="round", y="accuracy on test samples", grid="y")
        dress(right, title="The small models", x="round", grid="y")
        before, after = (curves.get(name, {}) for name in (BEFORE, AFTER))
        zigzag = sorted([*((t - 0.5, a) for t, a in before.items()), *after.items()])
        left.plot([t for t, _ in zigzag], [a for _, a in zigzag], color=ACCENT, lw=1.2, alpha=0.6, zorder=1)
        for ax, kinds in ((left, SERVER), (right, SMALL)):
            for name, (colour, marker, line) in kinds.items():
                of = dict(sorted(curves.get(name, {}).items()))
                if of:
                    t = [k - 0.5 * (name == BEFORE) for k in of]
                    style = {"marker": marker or None, "ls": line or "none", "mfc": colour if line else "white"}
                    ax.plot(t, list(of.values()), color=colour, lw=1.8, ms=5.5, label=name, **style)
            level_line(ax, marked, axis="x")
            ax.set_xlim(0.3, total + 0.4)
            few_ticks(ax, "x", 8, whole=True)
            percent_axis(ax, top=1.02)
            if ax.get_legend_handles_labels()[0]:
                legend(ax, loc="upper center", bbox_to_anchor=(0.5, -0.19), ncol=1, borderaxespad=0)
    known = sorted({t for of in curves.values() for t in of})
    table = [{"round": t, **{name: percent(of[t]) for name, of in curves.items() if t in of}} for t in known]
    said = ", ".join(f"{name} {percent(of[marked])}" for name, of in curves.items() if marked in of)
    sentence = f"Round {marked} of {total}: {said or 'not measured'}."
    return told(figure, "Accuracy of the large model and of the small ones over the rounds", setting, sentence, table)


def one_shot(
    student: Mapping[int, Sequence[tuple[int, float]]], reports: Sequence[FedETReport], setting: str
) -> Picture:
    """The student's accuracy, {seed: [(server steps, accuracy)]}; its teachers' consensus and the mean single client
    are in the `reports` of the seeds that are done."""
    with drawing() as (figure, ax):
        x = "steps of the server on public samples"
        dress(ax, title="One shot: the student and its teachers", x=x, y="accuracy on test samples", grid="y")
        steps, middle = seed_lines(ax, student, look("fedet").colour, "o", label="large model at the server", ms=5)
        sentence = f"After {steps[-1]} steps the student is right for {percent(middle[-1])} ({seeds_of(student)})"
        if reports:
            top, low = mean(r.consensus_accuracy[-1] for r in reports), mean(r.clients_accuracy[-1] for r in reports)
            ax.axhline(top, color=SECOND, lw=1.6, ls="--", label=CONSENSUS)
            ax.axhline(low, color=QUIET, lw=1.6, ls="-.", label="one client alone, mean")
            sentence += f"; its teachers' consensus for {percent(top)}, one client alone for {percent(low)}"
        percent_axis(ax, top=1.02)
        ax.set_xlim(0, max(steps) * 1.02)
        legend(ax, loc="best")
    table = [{"server steps": int(s), "student": percent(a)} for s, a in zip(steps, middle, strict=True)]
    return told(figure, "Accuracy of the student against server steps", setting, f"{sentence}.", table)
