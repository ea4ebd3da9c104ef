"""Features: the same test points as each method's last layer sees them, one small map a method."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np
from matplotlib.lines import Line2D

from .identity import shorten_title
from .kit import told
from .style import (
    MARKERS,
    QUIET,
    RULE,
    Picture,
    class_colours,
    current_size,
    drawing,
    heading,
    legend,
    narrow,
)
from .words import Setting, capital, percent, plural, shorten, tabled

MAPS = 8


@dataclass(frozen=True)
class Map:
    """One method's points in the plane.

    label: its title, perhaps on two lines;   points `[N, 2]`, labels `[N]`
    score: neighbour accuracy in the original features, 0–1;   how: "PCA" or "t-SNE"
    """

    label: str
    points: np.ndarray
    labels: np.ndarray
    score: float
    how: str = "t-SNE"

    @property
    def name(self) -> str:
        return self.label.replace("\n", ", ")


def features(
    maps: Sequence[Map],
    class_names: Sequence[str],
    *,
    setting: Setting | str,
    held: Sequence[bool] | None = None,
    who: str = "",
    first: int = 0,
) -> Picture:
    """Small multiples of at most MAPS maps, from number `first` on. `held`: classes that stay bright; `who`: which they
    are, in words.
    """
    shown = list(maps[first : first + MAPS])
    columns = max(1, len(shown) if len(shown) <= 3 else math.ceil(len(shown) / 2))
    columns = min(columns, 2) if narrow() else columns
    rows = max(1, math.ceil(len(shown) / columns))
    with drawing(rows, columns, squeeze=False) as (figure, axes):
        paint(figure, axes.ravel(), shown, class_names, held)
    each = ((m.name, percent(m.score), len(m.points), m.how) for m in maps)
    table = tabled("method | neighbour accuracy | points | map", each)
    how = " and ".join(dict.fromkeys(m.how for m in shown)) or "t-SNE"
    title = f"{how} maps of the features of the same test points, coloured and shaped by class"
    return told(figure, title, setting, sentence(shown, len(maps) - len(shown), who), table)


def paint(
    figure, axes, maps: Sequence[Map], names: Sequence[str], held: Sequence[bool] | None
) -> None:
    columns = axes[0].get_gridspec().ncols if len(axes) else 1
    colours, size = class_colours(len(names)), 17 if len(maps) <= 3 else 12
    for ax in axes[len(maps) :]:
        ax.set_axis_off()
    for ax, m in zip(axes, maps, strict=False):
        for c in np.unique(m.labels):
            bright = (
                {"alpha": 0.9, "zorder": 2}
                if held is None or held[c]
                else {"alpha": 0.15, "zorder": 1}
            )
            look = {
                "color": colours[c],
                "marker": MARKERS[c % len(MARKERS)],
                "linewidths": 0,
                **bright,
            }
            ax.scatter(*m.points[m.labels == c].T, s=size, **look)
        room = int(current_size()[0] / columns * 9.5)  # letters over one map
        titles = [
            line if len(line) <= room else shorten_title(line) for line in m.label.split("\n")
        ]
        heading(ax, "\n".join(shorten(titles, room)), 4, 10.5 if columns < 4 else 9.5)
        whole = f"{m.how} · neighbours {percent(m.score)}"
        words = (
            whole if columns < 4 and len(whole) <= 1.2 * room else f"{m.how} · {percent(m.score)}"
        )
        ax.set_xlabel(words, fontsize=9 if columns < 4 else 8.5, color=QUIET)
        ax.set(xticks=[], yticks=[])
        ax.margins(0.06)
        ax.spines[:].set_color(RULE)
    if len(names) <= 20:
        styles = zip(names, colours, cycle(MARKERS), strict=False)
        handles = [
            Line2D([], [], ls="", marker=m, color=hue, ms=6, label=name[:12])
            for name, hue, m in styles
        ]
        legend(
            figure, handles=handles, loc="outside right center", title="class", handletextpad=0.1
        )


def sentence(maps: Sequence[Map], left_out: int, who: str = "") -> str:
    if not maps:
        return "No features yet."
    best, worst = max(maps, key=lambda m: m.score), min(maps, key=lambda m: m.score)
    text = (
        f"{capital(best.name)}: {percent(best.score)} of the points have the class of most of their 10 nearest "
        f"neighbours in its features (least: {worst.name}, {percent(worst.score)}). "
        "Distances between islands mean little."
    )
    text += f" Bright: {who}." if who else ""
    text += f" {plural(left_out, 'more method')} in the table." if left_out > 0 else ""
    return text + (
        " PCA preview, t-SNE is on its way." if any(m.how == "PCA" for m in maps) else ""
    )
