"""The picture of a whole panel for a saved notebook: who holds what, accuracy, accuracy against bytes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np

from .accuracy import bars, table, verdict
from .communication import against_bytes
from .partition import Artists
from .partition import alt_text as who_holds_what
from .series import Series, finished
from .style import INK, LOCK, QUIET, Picture, new_figure
from .words import percent


def handout(
    counts: np.ndarray, class_names: Sequence[str], series: Sequence[Series], *,
    setting: str, jensen_shannon: float, effective_classes: float, chance: float | None = None,
    what_to_do: str = "",
) -> Picture:  # fmt: skip
    """One picture of a panel's present state; its sentence is what a saved notebook keeps as text.

    setting: of the partition, in words
    """
    counts = np.asarray(counts)
    done = finished(series)
    with LOCK:
        figure = new_figure((12.6, 4.1), dpi=110)
        figure.suptitle(setting, x=0.01, ha="left", fontsize=12, color=QUIET)
        grid = figure.add_gridspec(2, 3, width_ratios=[1.15, 1.35, 1.1], height_ratios=[1, 4])
        upper = figure.add_subplot(grid[0, 0])
        lower = figure.add_subplot(grid[1, 0], sharex=upper)
        Artists(upper, lower, *counts.shape, tuple(class_names), inches=(3.4, 2.7)).update(counts)
        upper.set_title("Who holds what", loc="left", fontsize=11, fontweight="bold", color=INK)
        if done:
            bars(figure.add_subplot(grid[:, 1]), done, chance)
            against_bytes(figure.add_subplot(grid[:, 2]), done)
        else:
            ax = figure.add_subplot(grid[:, 1:])
            ax.set_axis_off()
            text = textwrap.fill(what_to_do or "Nothing has been run yet.", 46)
            ax.text(0.5, 0.5, text, ha="center", va="center", fontsize=14, color=QUIET, linespacing=1.6)
    skew = f"skew {jensen_shannon:.2f}, {effective_classes:.1f} of {len(class_names)} classes a client"
    text = f"{setting} ({skew}): "
    if done:
        values = ", ".join(f"{s.name} {percent(s.mean)}" for s in done)
        told = dict.fromkeys(s.setting for s in done if not s.detail)
        text = f"{setting} ({skew}). Accuracy on {'; '.join(told)}, {done[0].seeds}: {values}. {verdict(done)}"
    else:
        text += "nothing has been run yet."
    return Picture(
        figure, alt=f"{who_holds_what(counts, setting, jensen_shannon, None)} {text}", sentence=text, table=table(done)
    )
