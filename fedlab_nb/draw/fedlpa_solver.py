"""Solving the server's linear systems: each layer's distance from its solution step by step, and what that is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from .fedlpa_damping import POWER
from .fedlpa_factors import power
from .style import ACCENT, INK, LOCK, QUIET, SERIES, Picture, dress, legend, new_figure
from .words import percent, plural

PLACES = {"left": 0.095, "right": 0.975, "top": 0.925, "bottom": 0.125, "wspace": 0.3}
SOLVERS = {
    "cg": ("conjugate gradients", SERIES[2], "-"),
    "gd": ("gradient descent", SERIES[1], "--"),
    "ea": ("shortcut EA", SERIES[0], ""),
}
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

Curves = Mapping[str, Mapping[str, Sequence[float]]]
Points = Mapping[str, Sequence[tuple[int, float]]]


def solver(
    curves: Curves,
    points: Points,
    *,
    layers: Sequence[str],
    setting: str,
    step: int | None = None,
    running: bool = False,
) -> Picture:
    """`curves`: solver -> layer -> relative residual after 0, 1, 2, … steps; `points`: solver -> (steps, accuracy 0-1).

    layers: the layers' names in words, in the order of the curves; step: marked, where given.
    """
    with LOCK:
        figure = new_figure()
        figure.set_layout_engine("none")
        left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": [1.15, 1], **PLACES})
        longest = max((len(c) - 1 for of in curves.values() for c in of.values()), default=1)
        residuals(left, curves, layers, step, longest)
        accuracies(right, points, step, longest)
    return Picture(
        figure,
        alt=alt_text(curves, points, layers, setting, running),
        sentence=sentence(curves, points, step, running),
        table=table(curves, points, layers),
    )


def residuals(ax: Axes, curves: Curves, layers: Sequence[str], step: int | None, longest: int) -> None:
    dress(ax, title="How far from solved", x="steps of the solver", y="relative residual", grid="y")
    many = len(layers) > len(MARKERS)
    for name, of in curves.items():
        _, colour, line = SOLVERS[name]
        for i, curve in enumerate(of.values()):
            steps = np.arange(len(curve))
            doubled = steps[(steps & (steps - 1)) == 0]
            few = len(curve) <= 40
            shown = steps if few else np.union1d(doubled, np.geomspace(1, len(curve), 60).astype(int) - 1)
            values = np.maximum(np.asarray(curve, dtype=float), 1e-16)
            marker = "" if many else MARKERS[i]
            every = steps if len(curve) <= 12 else doubled
            ax.plot(shown, values[shown], ls=line or "none", color=colour, lw=1.6, alpha=0.6 if many else 1, zorder=3)
            ax.plot(every, values[every], marker or ".", ls="none", color=colour, ms=5, zorder=4)
    if not many:
        for i, layer in enumerate(layers):
            ax.plot([], [], MARKERS[i], color=QUIET, ms=5, label=layer)
        legend(ax, loc="lower left", handletextpad=0.2, borderaxespad=0.1, labelspacing=0.25)
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(10, numticks=7))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(POWER)
    low, high = ax.get_ylim()
    ax.set_ylim(min(low, 1e-4), max(high * 2, 2))
    steps_axis(ax, step, longest)


def accuracies(ax: Axes, points: Points, step: int | None, longest: int) -> None:
    dress(ax, title="Test accuracy on the way", x="steps of the solver", grid="y")
    for name, path in points.items():
        words, colour, line = SOLVERS[name]
        x, y = [p[0] for p in path], [p[1] for p in path]
        ax.plot(x, y, ls=line or "none", color=colour, lw=2, marker="o" if line else "X", ms=5, label=words, zorder=3)
        ax.annotate(
            percent(y[-1]), (x[-1], y[-1]), (0, 7), textcoords="offset points", fontsize=9.5, color=INK,
            ha="center" if x[-1] else "left",
        )  # fmt: skip
    if points:
        legend(ax, loc="upper left", borderaxespad=0.1, labelspacing=0.25)
    else:
        ax.text(
            0.5, 0.5, "not computed yet", transform=ax.transAxes, ha="center", fontsize=10, color=QUIET, va="center"
        )
    ax.set_ylim(0, 1.3)
    ax.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1])
    ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:.0f} %"))
    steps_axis(ax, step, longest)


def steps_axis(ax: Axes, step: int | None, longest: int) -> None:
    """0, then powers of ten; the chosen step is marked."""
    ax.set_xscale("symlog", linthresh=1, linscale=0.4)
    ax.set_xlim(-0.25, max(longest, 9) * 1.6)
    ticks = [0] + [10**e for e in range(6) if 10**e <= max(longest, 9) * 1.6]
    ax.set_xticks(ticks, [f"{t:,}".replace(",", " ") for t in ticks])
    ax.xaxis.set_minor_locator(NullLocator())
    if step is not None:
        ax.axvline(step, color=ACCENT, lw=7, alpha=0.16, zorder=0)


def worst(of: Mapping[str, Sequence[float]], step: int) -> float:
    """Largest residual of a layer after `step` steps, or after its last."""
    return max(float(curve[min(step, len(curve) - 1)]) for curve in of.values())


def at(path: Sequence[tuple[int, float]], step: int) -> float:
    """Accuracy at the last point that is not beyond `step`."""
    return [accuracy for steps, accuracy in path if steps <= step][-1]


def sentence(curves: Curves, points: Points, step: int | None, running: bool) -> str:
    told = []
    for name, of in curves.items():
        last = max(len(curve) for curve in of.values()) - 1
        here = last if step is None else min(step, last)
        text = f"{SOLVERS[name][0]} after {plural(here, 'step')}: residual {power(max(worst(of, here), 1e-16))}"
        if points.get(name):
            text += f", accuracy {percent(at(points[name], here))}"
        told.append(text)
    joined = "; ".join(told)
    return ("Solving. " if running else "") + joined[:1].upper() + joined[1:] + "."


def alt_text(curves: Curves, points: Points, layers: Sequence[str], setting: str, running: bool) -> str:
    told = []
    for name, of in curves.items():
        last = max(len(curve) for curve in of.values()) - 1
        told.append(
            f"{SOLVERS[name][0]} from {power(worst(of, 0))} to {power(max(worst(of, last), 1e-16))} "
            f"in {plural(last, 'step')}"
        )
    state = ", so far" if running else ""
    return (
        f"Lines of the relative residual against the solver's steps, one for each of {plural(len(layers), 'layer')} "
        f"({setting}{state}), the worst layer: {'; '.join(told)}. Beside them the test accuracy on the way"
        + (f" of {plural(len(points), 'solver')}." if points else ", which is not computed yet.")
    )


def table(curves: Curves, points: Points, layers: Sequence[str]) -> list[dict]:
    """Residuals and accuracy after 0, 1, 2, 4, … steps."""
    rows = []
    for name, of in curves.items():
        length = max(len(curve) for curve in of.values())
        for step in [0] + [2**e for e in range(20) if 2**e < length]:
            row = {"solver": SOLVERS[name][0], "steps": step}
            row |= {
                layer: power(max(float(curve[min(step, len(curve) - 1)]), 1e-16))
                for layer, curve in zip(layers, of.values(), strict=True)
            }
            if points.get(name):
                row["accuracy"] = percent(at(points[name], step))
            rows.append(row)
    return rows
