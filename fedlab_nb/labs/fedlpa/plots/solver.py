"""Solving the server's linear systems: each layer's distance from its solution step by step, and what that is worth."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from ....plots.axes import FIFTHS, log_axis, percent_axis, two_axes
from ....plots.style import ACCENT, INK, MARKERS, QUIET, SERIES, Picture, dress, legend
from ....plots.words import capital, percent, plural
from ..numbers import Solutions
from .damping import POWER
from .factors import power

SOLVERS = {
    "cg": ("conjugate gradients", SERIES[2], "-"),
    "gd": ("gradient descent", SERIES[1], "--"),
    "ea": ("shortcut EA", SERIES[0], ""),
}
SHAPES = MARKERS[:7]  # more layers than these have none
LEAST = 1e-16  # of a residual on the axis

Path = Sequence[tuple[int, float]]  # steps, accuracy 0-1


def solver(solutions: Solutions, step: int | None = None) -> Picture:
    """Every solver's residuals, layer by layer, and its accuracy on the way; `step` is marked, where given."""
    curves, points, running = solutions.curves, solutions.points, solutions.outcome is None
    last = {name: max(map(len, by_layer.values())) - 1 for name, by_layer in curves.items()}
    with two_axes((1.15, 1), left=0.095, right=0.975, bottom=0.125, between=0.3) as (figure, left, right):
        residuals(left, solutions)
        accuracies(right, points)
        for ax in (left, right):
            steps_axis(ax, step, max(last.values(), default=1))
    shown, spans = [], []
    for name, by_layer in curves.items():
        words, end = SOLVERS[name][0], last[name]
        here = end if step is None else min(step, end)
        accuracy = f", accuracy {percent(at(points[name], here))}" if points.get(name) else ""
        shown.append(f"{words} after {plural(here, 'step')}: residual {worst(by_layer, here)}{accuracy}")
        spans.append(f"{words} from {worst(by_layer, 0)} to {worst(by_layer, end)} in {plural(end, 'step')}")
    sentence = capital("; ".join(shown)) + "."
    setting = solutions.setting + ", so far" * running
    beside = f" of {plural(len(points), 'solver')}." if points else ", which is not computed yet."
    return Picture(
        figure,
        alt="Lines of the relative residual against the solver's steps, one for each of "
        f"{plural(len(solutions.layers), 'layer')} ({setting}), the worst layer: {'; '.join(spans)}. "
        f"Beside them the test accuracy on the way{beside}",
        sentence=f"Solving. {sentence}" if running else sentence,
        table=[row for name in curves for row in rows(solutions, name)],
    )


def residuals(ax: Axes, solutions: Solutions) -> None:
    dress(ax, title="How far from solved", x="steps of the solver", y="relative residual", grid="y")
    many = len(solutions.layers) > len(SHAPES)
    for name, by_layer in solutions.curves.items():
        _, colour, line = SOLVERS[name]
        for i, curve in enumerate(by_layer.values()):
            steps = np.arange(len(curve))
            doubled = steps[(steps & (steps - 1)) == 0]
            few = len(curve) <= 40
            shown = steps if few else np.union1d(doubled, np.geomspace(1, len(curve), 60).astype(int) - 1)
            values = np.maximum(np.asarray(curve, dtype=float), LEAST)
            every = steps if len(curve) <= 12 else doubled
            ax.plot(shown, values[shown], ls=line or "none", color=colour, lw=1.6, alpha=0.6 if many else 1, zorder=3)
            ax.plot(every, values[every], "." if many else SHAPES[i], ls="none", color=colour, ms=5, zorder=4)
    if not many:
        for shape, layer in zip(SHAPES, solutions.layers, strict=False):
            ax.plot([], [], shape, color=QUIET, ms=5, label=layer)
        legend(ax, loc="lower left", handletextpad=0.2, borderaxespad=0.1, labelspacing=0.25)
    log_axis(ax, "y", most=7, form=POWER)
    low, high = ax.get_ylim()
    ax.set_ylim(min(low, 1e-4), max(high * 2, 2))


def accuracies(ax: Axes, points: Mapping[str, Path]) -> None:
    dress(ax, title="Test accuracy on the way", x="steps of the solver", grid="y")
    for name, path in points.items():
        words, colour, line = SOLVERS[name]
        x, y = zip(*path, strict=True)
        ax.plot(x, y, ls=line or "none", color=colour, lw=2, marker="o" if line else "X", ms=5, label=words, zorder=3)
        side, above = "center" if x[-1] else "left", {"xytext": (0, 7), "textcoords": "offset points"}
        ax.annotate(percent(y[-1]), (x[-1], y[-1]), fontsize=9.5, color=INK, ha=side, **above)
    if points:
        legend(ax, loc="upper left", borderaxespad=0.1, labelspacing=0.25)
    else:
        middle = {"transform": ax.transAxes, "ha": "center", "va": "center"}
        ax.text(0.5, 0.5, "not computed yet", fontsize=10, color=QUIET, **middle)
    percent_axis(ax, "y", 1.3, ticks=FIFTHS)


def steps_axis(ax: Axes, step: int | None, longest: int) -> None:
    """0, then powers of ten; the chosen step is marked."""
    right = max(longest, 9) * 1.6
    ax.set_xscale("symlog", linthresh=1, linscale=0.4)
    ax.set_xlim(-0.25, right)
    ticks = [0] + [10**e for e in range(6) if 10**e <= right]
    ax.set_xticks(ticks, [f"{t:,}".replace(",", " ") for t in ticks])
    ax.set_xticks([], minor=True)
    if step is not None:
        ax.axvline(step, color=ACCENT, lw=7, alpha=0.16, zorder=0)


def residual(curve: Sequence[float], step: int) -> float:
    """After `step` steps, or after the last; what is no longer above rounding is LEAST."""
    return max(float(curve[min(step, len(curve) - 1)]), LEAST)


def worst(by_layer: Mapping[str, Sequence[float]], step: int) -> str:
    """Largest residual of a layer."""
    return power(max(residual(curve, step) for curve in by_layer.values()))


def at(path: Path, step: int) -> float:
    """Accuracy at the last point that is not beyond `step`."""
    return [accuracy for steps, accuracy in path if steps <= step][-1]


def rows(solutions: Solutions, name: str) -> list[dict]:
    """Residuals and accuracy of a solver after 0, 1, 2, 4, … steps."""
    curves, path, table = list(solutions.curves[name].values()), solutions.points.get(name), []
    for step in [0] + [2**e for e in range(20) if 2**e < max(map(len, curves))]:
        row = {"solver": SOLVERS[name][0], "steps": step}
        row |= {layer: power(residual(curve, step)) for layer, curve in zip(solutions.layers, curves, strict=True)}
        table.append(row | ({"accuracy": percent(at(path, step))} if path else {}))
    return table
