"""How the server's linear systems are solved: each layer's residual step by step; a sentence says
how accurate the model is then.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from ipywidgets import Dropdown

from ...errors import RunError
from ...methods.fedlpa import FedLPA
from ...panels import LabView, PanelState, ProgressThenResult, make_widget
from ...plots import (
    Picture,
    add_legend,
    capitalize_first_letter,
    describe_picture,
    drawing,
    dress,
    format_count_and_noun,
    format_percent,
)
from ...plots.style import SERIES, set_log_axis
from ...plots.words import SettingCaption, TableRows
from ...studies import Outcome
from ..runs import describe_setting
from .replay import (
    format_positive_number_briefly,
    format_power_of_ten,
    make_options_and_value_of_damping_menu,
    make_server_replay,
)


class SolverStyle(NamedTuple):
    """How one solver is drawn."""

    label: str
    colour: str
    line: str


SOLVERS = {
    "cg": SolverStyle("conjugate gradients", SERIES[2], "-"),
    "gd": SolverStyle("gradient descent", SERIES[1], "--"),
    "ea": SolverStyle("shortcut EA", SERIES[0], ""),
}
MIN_RESIDUAL = 1e-16  # end of the axis; smaller residuals are rounding errors
SOLVED = 1e-3  # residual below which a system counts as solved
MARKED_STEPS = [0, *(2**exponent for exponent in range(20))]  # 0, 1, 2, 4, …
YIELD_EVERY = 10  # steps between two reports of progress

AccuracyPath = Sequence[tuple[int, float]]  # (steps, accuracy 0–1)


class SolverView(LabView):
    """The residuals of the run's own solver, also while it runs; and of all three solvers on the
    same uploads.
    """

    name, title, ready = "solver", "How it is solved", "live"
    summary = "Then this shows how the server comes nearer to its answer, step by step."
    work_label = "Solve in three ways"
    work_help = (
        "Conjugate gradients, gradient descent and the shortcut on the run's uploads, with the "
        "chosen λ_damp."
    )

    def __init__(self) -> None:
        self.damping = make_widget(
            Dropdown,
            label="λ_damp",
            help="The damping of all three solvers",
            width=140,
            **make_options_and_value_of_damping_menu(),
        )
        self.steps = make_widget(
            Dropdown,
            label="Gradient steps",
            help="How many steps gradient descent makes. Conjugate gradients stop by themselves",
            width=196,
            options=[100, 1000, 10000],
            value=1000,
        )

    def work(self, state: PanelState) -> ProgressThenResult["SolverCurves"]:
        """Solve the systems of the run's uploads with all three solvers."""
        if state.outcome is None:
            raise RunError("There is no finished run yet; press Run first.")
        return (
            yield from solve_with_three_solvers(state.outcome, self.damping.value, self.steps.value)
        )

    def draw(self, state: PanelState) -> Picture:
        if state.outcome is None:
            # The settings of the run, as the knob may have been moved since it began.
            settings = state.runs.find_current_row("fedlpa").settings
            name = settings.get("fedlpa.solver", FedLPA.solver)
            solutions = SolverCurves({name: state.report.curves}, {}, state.setting)
            return draw_residuals_of_solvers(solutions, is_running=True)
        return draw_residuals_of_solvers(state.worked or read_solver_curves_of_run(state.outcome))


# ------------------------------------------------------------------------------------------ numbers
class SolverCurves(NamedTuple):
    """How one or more solvers did on the same uploads.

    curves:  {solver: {layer: relative residual after 0, 1, 2, … steps}}
    points:  {solver: (steps, accuracy 0–1) pairs}
    setting: in words
    """

    curves: Mapping[str, Mapping[str, Sequence[float]]]
    points: Mapping[str, AccuracyPath]
    setting: SettingCaption | str

    def count_steps_of_longest_curve(self) -> int:
        """Return the number of steps of the longest curve."""
        lengths = []
        for by_layer in self.curves.values():
            lengths += [len(curve) - 1 for curve in by_layer.values()]
        return max(lengths)


def solve_with_three_solvers(
    fedlpa_outcome: Outcome, damping: float, gradient_steps: int
) -> ProgressThenResult[SolverCurves]:
    """Solve the systems of the run's uploads with all three solvers; gradient descent makes
    `gradient_steps`.
    """
    server = make_server_replay(fedlpa_outcome)
    uploads = server.make_uploads(damping, fedlpa_outcome.options["pi"])
    curves = {}
    points = {}
    for name in SOLVERS:
        accuracies: dict[int, float] = {}
        residuals: Mapping[str, list[torch.Tensor]] = {}
        for iterate, accuracy in server.iterate_solver_with_accuracies(
            name, gradient_steps, uploads, fedlpa_outcome.options["step"]
        ):
            step = iterate.iteration
            residuals = iterate.residuals
            if accuracy is not None:
                accuracies[step] = accuracy
            if step % YIELD_EVERY == 0:
                yield min(step, gradient_steps), gradient_steps, f"{name}, step {step}"
        curves[name] = {layer: torch.stack(curve).tolist() for layer, curve in residuals.items()}
        points[name] = list(accuracies.items())
    return SolverCurves(curves, points, describe_setting(fedlpa_outcome, f"λ_damp = {damping:g}"))


def read_solver_curves_of_run(fedlpa_outcome: Outcome) -> SolverCurves:
    """Read how the run's own solver did; its accuracy is known at MARKED_STEPS and at the end."""
    options = fedlpa_outcome.options
    report = fedlpa_outcome.report
    accuracies = [
        point["accuracy"] for point in fedlpa_outcome.history if point["phase"] == "solve"
    ]
    points = dict(zip(MARKED_STEPS, accuracies, strict=False))
    if not options["rounds"]:
        points[max(report.iterations.values())] = fedlpa_outcome.accuracy
    name = options["solver"]
    setting = describe_setting(fedlpa_outcome, f"λ_damp = {options['damping']:g}")
    return SolverCurves({name: report.curves}, {name: sorted(points.items())}, setting)


# ------------------------------------------------------------------------------------------ picture
def draw_residuals_of_solvers(solver_curves: SolverCurves, *, is_running: bool = False) -> Picture:
    """Draw the residuals of every solver, a line for each layer, and say how far it came."""
    longest_steps = max(9, solver_curves.count_steps_of_longest_curve())
    with drawing() as (figure, ax):
        dress(
            ax,
            title="How much of the error is left",
            x="steps",
            y="share of the error, a line a layer",
            grid="y",
        )
        for name, by_layer in solver_curves.curves.items():
            look = SOLVERS[name]
            for i, curve in enumerate(by_layer.values()):
                ax.plot(
                    np.maximum(curve, MIN_RESIDUAL),
                    color=look.colour,
                    lw=1.6,
                    ls=look.line,
                    marker="o",
                    ms=4,
                    markevery=[step for step in MARKED_STEPS if step < len(curve)],
                    label=look.label if i == 0 else "",
                )
        set_log_axis(ax, "y", max_ticks=7, format_value=format_power_of_ten)
        ax.set_xscale("symlog", linthresh=1, linscale=0.4)  # step 0, then powers of ten
        ax.set_xlim(-0.25, longest_steps * 1.6)
        leading_digits = (1,) if longest_steps > 100 else (1, 2, 5)
        ticks = [0]
        for exponent in range(6):
            for digit in leading_digits:
                if digit * 10**exponent <= longest_steps:
                    ticks.append(digit * 10**exponent)
        ax.set_xticks(ticks, ticks)
        ax.set_xticks([], minor=True)
        add_legend(ax, loc="best")

    table = []
    descriptions = []
    for name in solver_curves.curves:
        rows = make_solver_table_rows(solver_curves, name)
        table += rows
        descriptions.append(describe_final_error_of_solver(solver_curves, name, rows[-1]))
    sentence = f"{capitalize_first_letter('; '.join(descriptions))}."
    setting = solver_curves.setting
    if is_running:
        sentence = f"Solving. {sentence}"
        setting = f"{setting}, so far"
    title = "Relative residual of each layer against the solver's steps"
    return describe_picture(figure, title, setting, sentence, table)


def make_solver_table_rows(solver_curves: SolverCurves, solver_name: str) -> TableRows:
    """Make the table's rows for one solver, after 0, 1, 2, 4, … steps and at its end: the largest
    residual of all layers, and the latest accuracy known at that step.
    """
    curves = list(solver_curves.curves[solver_name].values())
    points = solver_curves.points.get(solver_name, ())
    last_step = max(len(curve) for curve in curves) - 1
    steps = [step for step in MARKED_STEPS if step < last_step] + [last_step]
    rows = []
    for step in steps:
        residuals = [curve[min(step, len(curve) - 1)] for curve in curves]
        largest = max(MIN_RESIDUAL, *residuals)
        row = {
            "solver": SOLVERS[solver_name].label,
            "steps": step,
            "residual": format_positive_number_briefly(largest),
        }
        if points:
            known_accuracies = [accuracy for point, accuracy in points if point <= step]
            row["accuracy"] = format_percent(known_accuracies[-1])
        rows.append(row)
    return rows


def describe_final_error_of_solver(
    solver_curves: SolverCurves, solver_name: str, last_table_row: Mapping[str, Any]
) -> str:
    """Say how far a solver came, and how accurate the model is then.

    last_table_row: the last one that `make_solver_table_rows` made for it
    """
    remaining_error = max(curve[-1] for curve in solver_curves.curves[solver_name].values())
    steps = format_count_and_noun(last_table_row["steps"], "step")
    text = f"{SOLVERS[solver_name].label}: {format_percent(remaining_error)} of the error left after {steps}"
    if remaining_error < SOLVED:
        text = f"{SOLVERS[solver_name].label}: solved after {steps}"
    if "accuracy" in last_table_row:
        text += f" ({last_table_row['accuracy']} right)"
    return text
