"""The picture of a whole panel for a saved notebook: who holds what, accuracy, accuracy against bytes."""

import textwrap
from collections.abc import Sequence

import numpy as np

from ..data import Federation
from .accuracy import table, verdict
from .communication import against_bytes
from .kit import Bars
from .partition import Artists, alt_text, upper_and_lower
from .series import Series, finished
from .style import LOCK, QUIET, Picture, heading, new_figure
from .words import percent


def handout(
    federation: Federation, series: Sequence[Series], *, setting: str, chance: float | None = None, what_to_do: str = ""
) -> Picture:
    """One picture of a panel's present state; its sentence is what a saved notebook keeps as text.

    setting: of the federation, in words;   what_to_do: what is said where there is no result yet
    """
    counts, names, skew = np.asarray(federation.label_counts), federation.dataset.class_names, federation.skew
    done = finished(series)
    with LOCK:
        figure = new_figure((12.6 if done else 6.6, 4.1), dpi=110)
        seeds = f"; results of {done[0].seeds}" if done and not setting.endswith(done[0].seeds) else ""
        figure.suptitle(setting + seeds, x=0.01, ha="left", fontsize=12, color=QUIET)
        columns = {"width_ratios": [1.15, 1.35, 1.1]} if done else {}
        grid = figure.add_gridspec(2, len(columns.get("width_ratios", [1])), height_ratios=[1, 4], **columns)
        wide = 3.4 if done else 5.4
        held = Artists(*upper_and_lower(figure, grid), *counts.shape, names, inches=(wide, 2.7 if done else 2.4))
        held.update(counts, setting=setting)
        heading(held.upper, "Who holds what", 6)
        if done:
            Bars(figure.add_subplot(grid[:, 1]), done, chance).update(done)
            against_bytes(figure.add_subplot(grid[:, 2]), done)
        else:
            text = textwrap.fill(what_to_do or "Nothing has been run yet.", 80)
            figure.supxlabel(text, x=0.01, ha="left", fontsize=10.5, color=QUIET, linespacing=1.4)
    about = (
        f"{setting} (skew {skew.jensen_shannon:.2f}, {skew.effective_classes:.1f} of {len(names)} classes per client)"
    )
    text = f"{about}: nothing has been run yet."
    if done:
        values = ", ".join(f"{s.name} {percent(s.mean)}" for s in done)
        settings = dict.fromkeys(s.setting for s in done if not s.detail)
        text = f"{about}. Accuracy on {'; '.join(settings)}, {done[0].seeds}: {values}. {verdict(done)}"
    return Picture(figure, alt=f"{alt_text(federation, setting)} {text}", sentence=text, table=table(done))
