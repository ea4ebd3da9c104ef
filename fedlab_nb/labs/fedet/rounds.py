"""Fed-ET round by round: the accuracy of the large model before and after distillation, and of the
small models. In one shot: the student's accuracy during distillation, beside that of its teachers.
"""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any, Literal, NamedTuple

import ipywidgets as widgets
import numpy as np
from matplotlib.axes import Axes

from ...methods.fedet.model import FedETReport
from ...panels import LabView, PanelState, make_slider_player, make_widget
from ...plots import Picture, add_legend, describe_picture, drawing, dress, format_percent
from ...plots.style import (
    ACCENT,
    QUIET,
    SECOND,
    SERIES,
    average_seed_lines_over_common_range,
    draw_level_line,
    is_frame_narrow,
    limit_tick_count,
    set_percent_axis,
)
from ...plots.words import SettingCaption
from ..runs import describe_setting
from .votes import get_method_options_of_run

# A run's history: dicts with phase, progress 0–1, accuracy 0–1 and bytes.
HistoryPoints = Sequence[Mapping[str, Any]]
# {one of the labels below: {round from 1: accuracy or share of the votes, 0–1}}
AccuracyByCurveAndRound = dict[str, dict[int, float]]
StepAndAccuracy = tuple[int, float]  # the server's steps so far, and the student's accuracy 0–1

BEFORE = "large, head overwritten"
AFTER = "large, after distillation"
AVERAGED = "small, averaged by kind"
COPIED = "small, server's head copied in"
CONSENSUS = "consensus of the clients"
CLIENTS = "clients after local steps"
DISSENT = "votes against that"


class CurveStyle(NamedTuple):
    """How a curve is drawn. Markers without a line are hollow: they show models before the round's
    distillation.
    """

    colour: str
    marker: str
    line: str


STYLES = {
    AFTER: CurveStyle(ACCENT, "o", "-"),
    BEFORE: CurveStyle(SECOND, "v", ""),
    CONSENSUS: CurveStyle(QUIET, "", "--"),
    CLIENTS: CurveStyle(QUIET, "", "-"),
    AVERAGED: CurveStyle(SERIES[3], "s", ""),
    COPIED: CurveStyle(SERIES[2], "D", "-"),
    DISSENT: CurveStyle(SECOND, "", ":"),
}


class DistillationRoundsView(LabView):
    """Accuracy of the large and the small models and the dissent, round by round; in one shot the
    accuracy of the student.
    """

    name, title, ready = "rounds", "Rounds", "live"
    summary = "Then this shows the large model and the small ones, round by round."
    _outcome: Any = None  # the outcome that was drawn last

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
        self.play = make_slider_player(
            self.round, interval=600, tooltip="Replay the rounds", show_repeat=False
        )

    def adapt(self, state: PanelState) -> None:
        """Mark the newest round while the method runs, and the last round of a new outcome."""
        total = get_method_options_of_run(state)["rounds"]
        for widget in (self.round, self.play):
            widget.max = max(total, 1)
            widget.disabled = total == 1
        if state.outcome is None:
            self.round.value = len(state.report.chosen)
        elif state.outcome is not self._outcome:
            self._outcome = state.outcome
            self.round.value = total

    def draw(self, state: PanelState) -> Picture:
        options = get_method_options_of_run(state)
        total = options["rounds"]
        histories = get_histories_of_finished_or_running_seeds(state)
        if total == 1:
            return draw_accuracy_of_one_shot_student(state, histories, options["one_shot_steps"])
        first_history = next(iter(histories.values()))
        curves = make_curves_of_rounds(state.report, first_history, total)
        marked_round = min(self.round.value, total)
        return draw_accuracy_curves_over_rounds(
            curves, describe_setting(state), marked_round, f"Round {marked_round} of {total}"
        )


def get_histories_of_finished_or_running_seeds(state: PanelState) -> dict[int, HistoryPoints]:
    """Return {seed: points} of the finished seeds; before one has finished, of the running ones."""
    if state.outcomes:
        return {seed: outcome.history for seed, outcome in state.outcomes.items()}
    row = state.runs.find_current_row("fedet")
    if row is not None and row.live:
        return dict(row.live)
    return {0: []}


def draw_accuracy_of_one_shot_student(
    state: PanelState, history_by_seed: Mapping[int, HistoryPoints], server_step_count: int
) -> Picture:
    """Draw the student's accuracy over the server's steps. The sentence describes the last step
    that all seeds have.
    """
    student = {
        seed: list_steps_and_student_accuracies(points, server_step_count)
        for seed, points in history_by_seed.items()
    }
    reports = [outcome.report for outcome in state.outcomes.values()]
    curves = make_one_shot_curves(student, reports)
    last_step = max(curves[AFTER])
    return draw_accuracy_curves_over_rounds(
        curves, state.setting, last_step, f"After {last_step} steps of the server", "step"
    )


# ------------------------------------------------------------------------------------------ numbers
def make_curves_of_rounds(
    report: FedETReport, history_points: HistoryPoints, total_rounds: int
) -> AccuracyByCurveAndRound:
    """Make the curves of a run of `total_rounds` rounds, as far as they are known.

    Those of the server before and after distillation come from `history_points`, the others from the
    report.
    """
    before = {}
    after = {}
    for point in history_points:
        rounds_done = point["progress"] * total_rounds
        if point["phase"] == "heads averaged":
            before[int(rounds_done) + 1] = point["accuracy"]
        elif point["phase"] == "rounds":
            after[round(rounds_done)] = point["accuracy"]
    curves = {BEFORE: before, AFTER: after}
    if report.shown_rounds:
        report_curves = {
            CONSENSUS: report.consensus_accuracy,
            CLIENTS: report.clients_accuracy,
            AVERAGED: report.small_before,
            COPIED: report.small_after,
        }
        for label, shares in report_curves.items():
            curves[label] = dict(zip(report.shown_rounds, shares, strict=True))
    if report.dissent_by_round is not None:
        curves[DISSENT] = dict(enumerate(report.dissent_by_round.tolist(), 1))
    return curves


def list_steps_and_student_accuracies(
    history_points: HistoryPoints, server_step_count: int
) -> list[StepAndAccuracy]:
    """List (server steps, accuracy) of a one-shot run. The first half of its progress is local
    training.
    """
    student = []
    for point in history_points:
        if point["phase"] == "distillation":
            share_of_steps = 2 * point["progress"] - 1
            student.append((round(server_step_count * share_of_steps), point["accuracy"]))
    return student or [(0, 0.0)]


def make_one_shot_curves(
    student_points_by_seed: Mapping[int, Sequence[StepAndAccuracy]],
    reports: Sequence[FedETReport],
) -> AccuracyByCurveAndRound:
    """Make the curves of a one-shot run, as means over the seeds.

    The student has a curve. Flat lines show, for the finished seeds, the consensus of its teachers
    and the mean client.

    student_points_by_seed: {seed: [(server steps, accuracy)]}
    """
    steps, accuracies = average_seed_lines_over_common_range(student_points_by_seed)
    curves = {AFTER: dict(zip(steps, accuracies, strict=True))}
    if reports:
        consensus = mean(report.consensus_accuracy[-1] for report in reports)
        clients = mean(report.clients_accuracy[-1] for report in reports)
        curves[CONSENSUS] = dict.fromkeys(steps, consensus)
        curves[CLIENTS] = dict.fromkeys(steps, clients)
    return curves


# ------------------------------------------------------------------------------------------ picture
def draw_accuracy_curves_over_rounds(
    curves: AccuracyByCurveAndRound,
    setting: SettingCaption | str,
    described_round: int,
    described_round_in_words: str,
    x_unit: Literal["round", "step"] = "round",
) -> Picture:
    """Draw `curves` over rounds or steps (the `x_unit`). Curves may lack points that are not known
    yet.

    described_round: the round that the sentence describes
    described_round_in_words: this round in words
    """
    numbers: set[int] = set()
    for curve in curves.values():
        numbers.update(curve)
    rounds = sorted(numbers)
    with drawing() as (figure, ax):
        dress(ax, title="Accuracy on test samples", x=x_unit, grid="y")
        draw_line_through_large_model_accuracies(ax, curves)
        for label, style in STYLES.items():
            if curves.get(label):
                draw_curve(ax, label, curves[label], style)
        draw_level_line(ax, described_round, axis="x")
        limit_tick_count(ax, "x", 8, only_whole_numbers=True)
        set_percent_axis(ax, highest_share=1.02)
        if rounds:
            add_legend(figure, loc="outside lower center", ncols=1 if is_frame_narrow() else 3)
    table = []
    for number in rounds:
        row: dict[str, Any] = {x_unit: number}
        for label, curve in curves.items():
            if number in curve:
                row[label] = format_percent(curve[number])
        table.append(row)
    descriptions = []
    for label, curve in curves.items():
        if described_round in curve:
            descriptions.append(f"{label} {format_percent(curve[described_round])}")
    return describe_picture(
        figure,
        f"Accuracy of the large model and of the small ones by {x_unit}",
        setting,
        f"{described_round_in_words}: {', '.join(descriptions) or 'not measured'}.",
        table,
    )


def draw_line_through_large_model_accuracies(ax: Axes, curves: AccuracyByCurveAndRound) -> None:
    """Draw a thin line through the accuracies of the large model before and after each
    distillation.
    """
    points = [(number - 0.5, share) for number, share in curves.get(BEFORE, {}).items()]
    points += curves.get(AFTER, {}).items()
    points.sort()
    x = [number for number, _ in points]
    y = [share for _, share in points]
    ax.plot(x, y, color=ACCENT, lw=1.2, alpha=0.6, zorder=1)


def draw_curve(ax: Axes, label: str, curve: Mapping[int, float], style: CurveStyle) -> None:
    """Draw one curve. The points of BEFORE stand half a round to the left."""
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
