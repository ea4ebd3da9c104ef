"""Solving the server's linear systems: each layer's distance from its solution step by step, and in words what that is
worth.
"""

from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from ipywidgets import Dropdown

from ...errors import RunError
from ...methods.fedlpa import FedLPA
from ...panels import LabView, PanelState, made
from ...plots import Picture, capital, drawing, dress, legend, percent, plural, told
from ...plots.axes import log_axis
from ...plots.style import SERIES
from ..runs import Steps, where
from .replay import offered, power, replay, ten

STEPS = "How many steps gradient descent makes. Conjugate gradients stop by themselves"
# solver -> words, colour, line
SOLVERS = {
    "cg": ("conjugate gradients", SERIES[2], "-"),
    "gd": ("gradient descent", SERIES[1], "--"),
    "ea": ("shortcut EA", SERIES[0], ""),
}
LEAST = 1e-16  # of a residual on the axis
DOUBLED = [0, *(2**e for e in range(20))]

Path = Sequence[tuple[int, float]]  # steps, accuracy 0-1


class Solver(LabView):
    """The run's residuals, while it runs too; and all three solvers from the same uploads."""

    name, title, ready = "solver", "Solver", "live"
    work_label = "Solve in three ways"

    def __init__(self) -> None:
        self.damping = made(
            Dropdown,
            label="λ_damp",
            help="The damping of all three solvers",
            width=140,
            **offered(),
        )
        many = {"options": [100, 1000, 10000], "value": 1000}
        self.steps = made(Dropdown, label="Gradient steps", help=STEPS, width=196, **many)

    def work(self, state: PanelState) -> Steps:
        """Conjugate gradients, gradient descent and the shortcut on the run's uploads, with the chosen λ_damp"""
        if state.outcome is None:
            raise RunError("There is no finished run yet; press Run first.")
        return (yield from solutions(state.outcome, self.damping.value, self.steps.value))

    def draw(self, state: PanelState) -> Picture:
        outcome, report = state.outcome, state.report
        if outcome is None:
            asked = state.runs.find("fedlpa").settings  # the knob may have been moved since
            name = asked.get("fedlpa.solver", FedLPA.solver)
            return solver(Solutions({name: report.curves}, {}, state.setting), running=True)
        return solver(state.worked or own_solution(outcome))


# ------------------------------------------------------------------------------------------------ numbers
class Solutions(NamedTuple):
    """How solvers went, from the same uploads.

    curves:  solver -> layer -> relative residual after 0, 1, 2, … steps;   points: solver -> (steps, accuracy 0-1)
    setting: in words
    """

    curves: Mapping[str, Mapping[str, Sequence[float]]]
    points: Mapping[str, Path]
    setting: str


def solutions(
    outcome: Any, damping: float, steps: int
) -> Generator[tuple[int, int, str], None, Solutions]:
    """The three solvers of the paper's question on the run's uploads; `steps` of gradient descent."""
    server = replay(outcome)
    received = server.uploads(damping, outcome.options["pi"])
    curves, points = {}, {}
    for name in SOLVERS:
        accuracies = {}
        for now, accuracy in server.solver_path(name, steps, received, outcome.options["step"]):
            if accuracy is not None:
                accuracies[now.iteration] = accuracy
            if now.iteration % 10 == 0:
                yield min(now.iteration, steps), steps, f"{name}, step {now.iteration}"
        curves[name] = {
            layer: torch.stack(curve).tolist() for layer, curve in now.residuals.items()
        }
        points[name] = list(accuracies.items())
    return Solutions(curves, points, where(outcome, f"λ_damp = {damping:g}"))


def own_solution(outcome: Any) -> Solutions:
    """The run's own solver: its curve has a point after 0, 1, 2, 4, … steps; then the end."""
    options, report = outcome.options, outcome.report
    accuracies = [p["accuracy"] for p in outcome.history if p["phase"] == "solve"]
    points = dict(zip(DOUBLED, accuracies, strict=False))
    if not options["rounds"]:
        points[max(report.iterations.values())] = outcome.accuracy
    name, setting = options["solver"], where(outcome, f"λ_damp = {options['damping']:g}")
    return Solutions({name: report.curves}, {name: sorted(points.items())}, setting)


# ------------------------------------------------------------------------------------------------ picture
def solver(solutions: Solutions, *, running: bool = False) -> Picture:
    """Every solver's residuals, a line a layer; in words how far it came; `running`: so far."""
    longest = max(
        9,
        *(len(curve) - 1 for by_layer in solutions.curves.values() for curve in by_layer.values()),
    )
    with drawing() as (figure, ax):
        dress(
            ax,
            title="How far from solved",
            x="steps of the solver",
            y="relative residual, a line a layer",
            grid="y",
        )
        for name, by_layer in solutions.curves.items():
            words, colour, line = SOLVERS[name]
            for i, curve in enumerate(by_layer.values()):
                marked = [at for at in DOUBLED if at < len(curve)]
                style = {
                    "ls": line,
                    "marker": "o",
                    "ms": 4,
                    "markevery": marked,
                    "label": "" if i else words,
                }
                ax.plot(np.maximum(curve, LEAST), color=colour, lw=1.6, **style)
        log_axis(ax, "y", most=7, form=ten)
        ax.set_xscale("symlog", linthresh=1, linscale=0.4)  # step 0, then powers of ten
        ax.set_xlim(-0.25, longest * 1.6)
        ax.set_xticks(ticks := [0, *(10**e for e in range(6) if 10**e <= longest)], ticks)
        ax.set_xticks([], minor=True)
        legend(ax, loc="best")
    by_solver = [rows(solutions, name) for name in solutions.curves]
    shown = []
    for *_, end in by_solver:
        accuracy = f", accuracy {end['accuracy']}" if "accuracy" in end else ""
        shown.append(
            f"{end['solver']} after {plural(end['steps'], 'step')}: residual {end['residual']}{accuracy}"
        )
    title, text = (
        "Relative residual of each layer against the solver's steps",
        f"{capital('; '.join(shown))}.",
    )
    setting, table = (
        solutions.setting + ", so far" * running,
        [row for of in by_solver for row in of],
    )
    return told(figure, title, setting, "Solving. " * running + text, table)


def rows(solutions: Solutions, name: str) -> list[dict]:
    """Largest residual and accuracy of a solver after 0, 1, 2, 4, … steps and at its end: what is no longer above
    rounding is LEAST, and an accuracy is that of the last point before.
    """
    curves, path, table = solutions.curves[name].values(), solutions.points.get(name, ()), []
    last = max(map(len, curves)) - 1
    for step in sorted({last, *(step for step in DOUBLED if step < last)}):
        worst = max(LEAST, *(curve[min(step, len(curve) - 1)] for curve in curves))
        row = {"solver": SOLVERS[name][0], "steps": step, "residual": power(worst)}
        table.append(
            row | {"accuracy": percent([share for at, share in path if at <= step][-1])}
            if path
            else row
        )
    return table
