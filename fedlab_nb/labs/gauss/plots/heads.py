"""Accuracy against the bytes that a client sends, for every picture of a class: from the mean alone to a covariance."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ....plots.axes import SIZES, log_axis, percent_axis
from ....plots.identity import look
from ....plots.style import INK, QUIET, Picture, drawing, dress
from ....plots.words import data_size, listed, mean_percent, seed_words, seeds_of, tabled


@dataclass(frozen=True)
class Tried:
    """A classifier: its method, its words, {seed: test accuracy}, and the bytes up of a client (mean)."""

    method: str
    name: str
    accuracies: Mapping[int, float]
    up: float


def heads(tried: list[Tried], *, setting: str) -> Picture:
    """Picture of all that were tried; empty before."""
    with drawing() as (figure, ax):
        dress(ax, x="bytes that a client sends", y="accuracy", grid="y")
        low = math.floor(20 * lowest(tried) - 0.5) / 20 if tried else 0.0
        percent_axis(ax, low=max(0.0, low), ticks=list(np.arange(max(0.0, low), 1.01, 0.05 if low > 0.5 else 0.2)))
        log_axis(ax, form=SIZES)
        ax.set_xlim(*((1e3, 1e6) if not tried else (0.5 * min(t.up for t in tried), 3 * max(t.up for t in tried))))
        for one in tried:
            style, mean = look(one.method), sum(one.accuracies.values()) / len(one.accuracies)
            values = list(one.accuracies.values())
            ax.plot([one.up] * len(values), values, "_", color=style.colour, alpha=0.6)
            ax.plot([one.up], [mean], style.marker, color=style.colour, markersize=8)
            beside = (8, 3) if one.method == "gauss" else (-8, -17)  # two that are close stay apart
            ax.annotate(one.name, (one.up, mean), beside, textcoords="offset points", fontsize=9, color=INK)
    if not tried:
        ax.text(0.5, 0.5, "not run yet", transform=ax.transAxes, ha="center", color=QUIET)
        return Picture(
            figure,
            f"Empty axes: accuracy against bytes ({setting}).",
            "Nothing has been run yet; press “Run all heads”.",
            [],
        )
    order = sorted(tried, key=lambda one: sum(one.accuracies.values()))
    words = listed([f"{one.name} ({mean_percent(one.accuracies)}, {data_size(one.up)})" for one in order])
    rows = [(one.name, seed_words(one.accuracies), data_size(one.up)) for one in tried]
    return Picture(
        figure,
        f"Accuracy against a client's bytes for {len(tried)} classifiers on frozen features ({setting}).",
        f"From the least to the most accurate, {seeds_of(tried[0].accuracies)}: {words}.",
        tabled("classifier | accuracy | bytes up of a client", rows),
    )


def lowest(tried: list[Tried]) -> float:
    return min(min(one.accuracies.values()) for one in tried)
