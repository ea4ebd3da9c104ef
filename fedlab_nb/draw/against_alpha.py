"""Accuracy against α: one line a method, a band of two standard errors over the seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import mean

from matplotlib.ticker import FuncFormatter

from .style import INK, LOCK, MARKERS, QUIET, SERIES, Picture, dress, new_figure
from .words import half_width, percent


def against_alpha(
    accuracies: Mapping[str, Mapping[float, Mapping[int, float]]], *, setting: str, chance: float | None = None
) -> Picture:
    """`{method: {alpha: {seed: accuracy 0–1}}}` as lines over a logarithmic α axis; `chance`: accuracy of guessing."""
    alphas = sorted({alpha for points in accuracies.values() for alpha in points})
    with LOCK:
        figure = new_figure((7.6, 3.6))
        ax = dress(figure.subplots(), x="α (smaller: more skewed)", y="test accuracy", grid="y")
        for i, (label, points) in enumerate(accuracies.items()):
            x = sorted(points)
            y = [mean(points[a].values()) for a in x]
            band = [half_width(list(points[a].values())) for a in x]
            wide = [0.0 if math.isnan(b) else b for b in band]
            hue = SERIES[i % len(SERIES)]
            low, high = zip(*[(v - b, v + b) for v, b in zip(y, wide, strict=True)], strict=True)
            ax.fill_between(x, low, high, color=hue, alpha=0.18, lw=0)
            ax.plot(x, y, color=hue, marker=MARKERS[i % len(MARKERS)], lw=1.9, ms=6, label=label)
        ax.set_xscale("log")
        ax.set_xticks(alphas, [f"{a:g}" for a in alphas])
        ax.set_ylim(0, 1)
        ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:.0f} %"))
        if chance:
            ax.axhline(chance, color=QUIET, lw=1, ls=(0, (2, 2)))
            ax.text(alphas[-1], chance + 0.015, "guessing", ha="right", fontsize=8.5, color=QUIET)
        ax.legend(frameon=False, fontsize=9.5, labelcolor=INK)
    table = [
        {"method": label, **{f"α = {a:g}": percent(mean(points[a].values())) for a in alphas if a in points}}
        for label, points in accuracies.items()
    ]
    ends = "; ".join(
        f"{label} {percent(mean(points[alphas[0]].values()))} at α = {alphas[0]:g}, "
        f"{percent(mean(points[alphas[-1]].values()))} at α = {alphas[-1]:g}"
        for label, points in accuracies.items()
    )
    rows = "; ".join(
        f"{row['method']}: " + ", ".join(f"{value} at {name}" for name, value in row.items() if name != "method")
        for row in table
    )
    return Picture(figure, f"Lines of test accuracy against α ({setting}): {rows}.", f"{ends}.", table)
