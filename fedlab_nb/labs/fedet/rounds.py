"""Fed-ET's feedback loop, round by round: the large model before and after distillation, and the
small ones. In one shot: the student on its way up to what its teachers say.
"""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any, NamedTuple

import ipywidgets as widgets
import numpy as np
from matplotlib.axes import Axes

from ...methods.fedet.model import FedETReport
from ...panels import LabView, PanelState, make_player, make_widget
from ...plots import Picture, describe_picture, drawing, dress, legend, percent
from ...plots.style import (
    ACCENT,
    QUIET,
    SECOND,
    SERIES,
    average_lines,
    draw_level_line,
    is_narrow,
    limit_ticks,
    set_percent_axis,
)
from ...plots.words import Setting
from ..runs import describe_setting
from .votes import get_current_options

Points = Sequence[Mapping[str, Any]]  # of a run: dicts with phase, progress, accuracy, bytes
Curves = dict[str, dict[int, float]]  # {one of the labels below: {round from 1: share 0–1}}

BEFORE = "large, head overwritten"
AFTER = "large, after distillation"
AVERAGED = "small, averaged by kind"
COPIED = "small, server's head copied in"
CONSENSUS = "consensus of the clients"
CLIENTS = "clients after local steps"
DISSENT = "votes against that"


class Style(NamedTuple):
    """How a curve is drawn. Markers without a line are hollow: this is before the round's
    distillation.
    """

    colour: str
    marker: str
    line: str


STYLES = {
    AFTER: Style(ACCENT, "o", "-"),
    BEFORE: Style(SECOND, "v", ""),
    CONSENSUS: Style(QUIET, "", "--"),
    CLIENTS: Style(QUIET, "", "-"),
    AVERAGED: Style(SERIES[3], "s", ""),
    COPIED: Style(SERIES[2], "D", "-"),
    DISSENT: Style(SECOND, "", ":"),
}


class Rounds(LabView):
    """The large model before and after distillation, the small ones, and dissent; in one shot the
    student.
    """

    name, title, ready = "rounds", "Rounds", "live"
    summary = "Then this shows the large model and the small ones, round by round."
    _outcome: Any = None  # of the last drawing

    def __init__(self) -> None:
        self.round = make_widget(
            widgets.IntSlider,
            label="Round",
            help="The round that the sentence describes",
            width=330,
            value=1,
            min=1,
            max=1,
        )
        self.play = make_player(
            self.round, interval=600, tooltip="Replay the rounds", show_repeat=False
        )

    def adapt(self, state: PanelState) -> None:
        """While it runs the newest round is marked; a new outcome is shown at its end."""
        total = get_current_options(state)["rounds"]
        for widget in (self.round, self.play):
            widget.max = max(total, 1)
            widget.disabled = total == 1
        if state.outcome is None:
            self.round.value = len(state.report.chosen)
        elif state.outcome is not self._outcome:
            self._outcome = state.outcome
            self.round.value = total

    def draw(self, state: PanelState) -> Picture:
        options = get_current_options(state)
        total = options["rounds"]
        histories = read_histories(state)
        if total == 1:
            return draw_one_shot(state, histories, options["one_shot_steps"])
        first_history = next(iter(histories.values()))
        curves = make_loop_curves(state.report, first_history, total)
        marked = min(self.round.value, total)
        return draw_rounds(curves, describe_setting(state), marked, f"Round {marked} of {total}")


def read_histories(state: PanelState) -> dict[int, Points]:
    """{seed: points} of the finished seeds; before one is finished, of those that run."""
    if state.outcomes:
        return {seed: outcome.history for seed, outcome in state.outcomes.items()}
    row = state.runs.find_row("fedet")
    if row is not None and row.live:
        return dict(row.live)
    return {0: []}


def draw_one_shot(state: PanelState, histories: Mapping[int, Points], steps: int) -> Picture:
    """The student by steps of the server, at the last of them that all seeds have."""
    student = {seed: list_student_points(points, steps) for seed, points in histories.items()}
    reports = [outcome.report for outcome in state.outcomes.values()]
    curves = make_one_shot_curves(student, reports)
    last = max(curves[AFTER])
    return draw_rounds(curves, state.setting, last, f"After {last} steps of the server", "step")


# ------------------------------------------------------------------------------------------ numbers
def make_loop_curves(report: FedETReport, points: Points, total: int) -> Curves:
    """What is known of a run of `total` rounds: the server before and after distillation from its
    points, and the rest from the report.
    """
    before = {}
    after = {}
    for point in points:
        rounds_done = point["progress"] * total
        if point["phase"] == "heads averaged":
            before[int(rounds_done) + 1] = point["accuracy"]
        elif point["phase"] == "rounds":
            after[round(rounds_done)] = point["accuracy"]
    curves = {BEFORE: before, AFTER: after}
    if report.shown_rounds:
        measured = {
            CONSENSUS: report.consensus_accuracy,
            CLIENTS: report.clients_accuracy,
            AVERAGED: report.small_before,
            COPIED: report.small_after,
        }
        for label, shares in measured.items():
            curves[label] = dict(zip(report.shown_rounds, shares, strict=True))
    if report.dissent_by_round is not None:
        curves[DISSENT] = dict(enumerate(report.dissent_by_round.tolist(), 1))
    return curves


def list_student_points(points: Points, steps: int) -> list[tuple[int, float]]:
    """(server steps, accuracy) in one shot. The first half of its progress is local training."""
    student = []
    for point in points:
        if point["phase"] == "distillation":
            share_of_steps = 2 * point["progress"] - 1
            student.append((round(steps * share_of_steps), point["accuracy"]))
    return student or [(0, 0.0)]


def make_one_shot_curves(
    student: Mapping[int, Sequence[tuple[int, float]]], reports: Sequence[FedETReport]
) -> Curves:
    """The student's accuracy, mean over the seeds. Flat, for the seeds that are done: its teachers'
    consensus, and the mean single client.

    student: {seed: [(server steps, accuracy)]}
    """
    steps, accuracies = average_lines(student)
    curves = {AFTER: dict(zip(steps, accuracies, strict=True))}
    if reports:
        consensus = mean(report.consensus_accuracy[-1] for report in reports)
        clients = mean(report.clients_accuracy[-1] for report in reports)
        curves[CONSENSUS] = dict.fromkeys(steps, consensus)
        curves[CLIENTS] = dict.fromkeys(steps, clients)
    return curves


# ------------------------------------------------------------------------------------------ picture
def draw_rounds(
    curves: Curves, setting: Setting | str, marked: int, when: str, unit: str = "round"
) -> Picture:
    """`curves` over rounds or steps (the `unit`). What is not known yet may be missing.

    marked: the round that the sentence describes;   when: this round in words
    """
    numbers: set[int] = set()
    for curve in curves.values():
        numbers.update(curve)
    rounds = sorted(numbers)
    with drawing() as (figure, ax):
        dress(ax, title="Accuracy on test samples", x=unit, grid="y")
        draw_zigzag(ax, curves)
        for label, style in STYLES.items():
            if curves.get(label):
                draw_curve(ax, label, curves[label], style)
        draw_level_line(ax, marked, axis="x")
        limit_ticks(ax, "x", 8, whole=True)
        set_percent_axis(ax, top=1.02)
        if rounds:
            legend(figure, loc="outside lower center", ncols=1 if is_narrow() else 3)
    table = []
    for number in rounds:
        row: dict[str, Any] = {unit: number}
        for label, curve in curves.items():
            if number in curve:
                row[label] = percent(curve[number])
        table.append(row)
    descriptions = []
    for label, curve in curves.items():
        if marked in curve:
            descriptions.append(f"{label} {percent(curve[marked])}")
    return describe_picture(
        figure,
        f"Accuracy of the large model and of the small ones by {unit}",
        setting,
        f"{when}: {', '.join(descriptions) or 'not measured'}.",
        table,
    )


def draw_zigzag(ax: Axes, curves: Curves) -> None:
    """A thin line through the large model before and after each distillation."""
    points = [(number - 0.5, share) for number, share in curves.get(BEFORE, {}).items()]
    points += curves.get(AFTER, {}).items()
    points.sort()
    x = [number for number, _ in points]
    y = [share for _, share in points]
    ax.plot(x, y, color=ACCENT, lw=1.2, alpha=0.6, zorder=1)


def draw_curve(ax: Axes, label: str, curve: Mapping[int, float], style: Style) -> None:
    """One curve; BEFORE stands half a round to the left."""
    numbers = sorted(curve)
    shift = 0.5 if label == BEFORE else 0.0
    ax.plot(
        np.array(numbers) - shift,
        [curve[number] for number in numbers],
        color=style.colour,
        label=label,
        marker=style.marker or None,
        ls=style.line or "none",
        mfc=style.colour if style.line else "white",
    )
