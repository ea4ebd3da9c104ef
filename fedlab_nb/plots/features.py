"""Features: the same test points as each method's last layer sees them, one small square map a method."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .identity import shorten_title
from .kit import describe_picture
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
)
from .vector import attach_thumbnails, mark
from .words import Setting, build_table, capitalize, percent, plural, shorten

MAPS = 8  # in one picture, at most
MOST_NAMED_CLASSES = 20  # in the legend
LETTERS_AN_INCH = 9.5  # of a map's title
MIN_LETTERS = 8
LEGEND_WIDTH = 0.9  # inches
WORDS_HEIGHT = 0.62  # inches of the words over and under a map
CAUTION = "Distances between islands mean little."


@dataclass(frozen=True)
class Map:
    """One method's points in the plane.

    label: its title, perhaps on two lines;   points `[N, 2]`, labels `[N]`
    score: neighbour accuracy in the original features, 0–1;   kind: "PCA" or "t-SNE"
    answers: `[N]`, what the method takes each sample for; None where nobody knows
    thumbnails: `[N]`, the place of each sample in the sheet of the picture; None without images
    """

    label: str
    points: np.ndarray
    labels: np.ndarray
    score: float
    kind: str = "t-SNE"
    answers: np.ndarray | None = None
    thumbnails: np.ndarray | None = None

    @property
    def name(self) -> str:
        return self.label.replace("\n", ", ")


def draw_feature_maps(
    maps: Sequence[Map],
    class_names: Sequence[str],
    *,
    setting: Setting | str,
    bright: Sequence[bool] | None = None,
    remark: str = "",
    first_map: int = 0,
    sheet: Mapping[str, Any] | None = None,
) -> Picture:
    """Small multiples of at most MAPS maps, from number `first` on.

    bright: for each class whether it stays bright, None for all;   remark: in words, which do
    sheet: the images of the samples, as `vector.attach_thumbnails` takes it; a point shows its own
    """
    shown = list(maps[first_map : first_map + MAPS])
    columns, side = arrange_maps(len(shown))
    rows = max(1, math.ceil(len(shown) / columns))
    with drawing(rows, columns, squeeze=False) as (figure, axes):
        for ax in axes.ravel()[len(shown) :]:
            ax.set_axis_off()
        for ax, one_map in zip(axes.ravel(), shown, strict=False):
            draw_map(ax, one_map, class_names, bright, is_alone=len(shown) <= 3)
            write_titles(ax, one_map, columns, side)
        if len(class_names) <= MOST_NAMED_CLASSES:
            draw_legend(figure, class_names)
        figure.supxlabel(CAUTION, fontsize=8.5, color=QUIET, x=0.02, ha="left")
        if sheet is not None:
            attach_thumbnails(figure, sheet)
    kinds = " and ".join(dict.fromkeys(one_map.kind for one_map in shown)) or "t-SNE"
    title = f"{kinds} maps of the features of the same test points, coloured and shaped by class"
    text = describe_maps(shown, len(maps) - len(shown), remark)
    return describe_picture(figure, title, setting, text, make_map_table(maps))


class Arrangement(NamedTuple):
    """columns: of the maps;   side: of each map in inches, about"""

    columns: int
    side: float


def arrange_maps(maps: int) -> Arrangement:
    """So many maps, as large as the frame allows: each is a square."""
    width, height = current_size()
    best = Arrangement(1, 0.0)
    for columns in range(1, maps + 1):
        rows = math.ceil(maps / columns)
        side = min((width - LEGEND_WIDTH) / columns, height / rows - WORDS_HEIGHT)
        if side > 1.02 * best.side:
            best = Arrangement(columns, side)
    return best


def draw_map(
    ax: Axes,
    one_map: Map,
    class_names: Sequence[str],
    bright: Sequence[bool] | None,
    *,
    is_alone: bool,
) -> None:
    """The points of one map, which say what they are; those of classes that are not bright are faint and lie behind."""
    colours = class_colours(len(class_names))
    for c in np.unique(one_map.labels).tolist():
        is_bright = bright is None or bright[c]
        rows = np.flatnonzero(one_map.labels == c)
        points = ax.scatter(
            *one_map.points[rows].T,
            s=17 if is_alone else 12,
            color=colours[c],
            marker=MARKERS[c % len(MARKERS)],
            linewidths=0,
            alpha=0.9 if is_bright else 0.15,
            zorder=2 if is_bright else 1,
        )
        texts = [describe_point(one_map, row, class_names) for row in rows.tolist()]
        thumbnails = None
        if one_map.thumbnails is not None:
            thumbnails = one_map.thumbnails[rows].tolist()
        mark(points, texts, class_index=[c] * len(rows), thumbnail=thumbnails)
    ax.set(xticks=[], yticks=[], box_aspect=1, anchor="NW")
    ax.margins(0.06)
    ax.spines[:].set_color(RULE)


def describe_point(one_map: Map, row: int, class_names: Sequence[str]) -> str:
    """What a point says: its class, and what the method takes it for."""
    truth = class_names[one_map.labels[row]]
    text = f"{one_map.name}\nclass {truth}"
    if one_map.answers is None:
        return text
    answer = class_names[one_map.answers[row]]
    return f"{text}, read rightly" if answer == truth else f"{text}, read as {answer}"


def write_titles(ax: Axes, one_map: Map, columns: int, side: float) -> None:
    """The method over a map, and under it how well neighbours agree, in the words that there is room for."""
    is_wide = columns < 4
    letters = max(MIN_LETTERS, int(side * LETTERS_AN_INCH))
    lines = []
    for line in one_map.label.split("\n"):
        lines.append(line if len(line) <= letters else shorten_title(line))
    heading(ax, "\n".join(shorten(lines, letters)), 4, 10.5 if is_wide else 9.5)
    kind = "PCA, t-SNE follows" if one_map.kind == "PCA" else one_map.kind
    text = f"{kind} · neighbours {percent(one_map.score)}"
    if len(text) > 1.2 * letters:
        text = f"{one_map.kind} · {percent(one_map.score)}"
    ax.set_xlabel(text, fontsize=9 if is_wide else 8.5, color=QUIET)


def draw_legend(figure: Figure, names: Sequence[str]) -> None:
    """A mark for each class, at the right."""
    handles = []
    for name, colour, marker in zip(names, class_colours(len(names)), cycle(MARKERS), strict=False):
        handles.append(Line2D([], [], ls="", marker=marker, color=colour, ms=6, label=name[:12]))
    legend(figure, handles=handles, loc="outside right center", title="class", handletextpad=0.1)


def describe_maps(maps: Sequence[Map], left_out: int, remark: str = "") -> str:
    """The best and the worst map. left_out: maps that are not shown;   remark: which classes are bright"""
    if not maps:
        return "No features yet."
    best = max(maps, key=lambda one_map: one_map.score)
    worst = min(maps, key=lambda one_map: one_map.score)
    high = percent(best.score)
    low = percent(worst.score)
    if len(maps) == 1:
        text = f"{capitalize(best.name)}: {high} of the points lie among their own class."
    elif high == low:
        text = f"In all maps {high} of the points lie among their own class."
    else:
        text = (
            f"{capitalize(best.name)} keeps the classes apart best: {high} of its points lie among "
            f"their own class; least does {worst.name}, with {low}."
        )
    if remark:
        text += f" Bright: {remark}."
    if left_out > 0:
        text += f" {plural(left_out, 'more method')} in the table."
    return text


def make_map_table(maps: Sequence[Map]) -> list[dict[str, Any]]:
    """A row a map."""
    rows = []
    for one_map in maps:
        score = percent(one_map.score)
        rows.append((one_map.name, score, len(one_map.points), one_map.kind))
    return build_table("method | neighbour accuracy | points | map", rows)
