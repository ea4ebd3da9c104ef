"""Maps of features: the same test points as each method's last layer sees them, a small square map
for each method.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .array_types import MapPoints, SampleIndices, SampleLabels
from .identity import shorten_method_title
from .kit import describe_picture
from .marks import attach_hover_text
from .style import (
    MARKERS,
    QUIET,
    RULE,
    Picture,
    add_legend,
    drawing,
    get_default_figure_size_inches,
    list_class_colours,
    write_axes_title,
)
from .vector import ThumbnailSheet, attach_thumbnail_sheet
from .words import (
    SettingCaption,
    TableRows,
    build_table,
    capitalize_first_letter,
    format_count_and_noun,
    format_percent,
    shorten_labels,
)

MAPS = 8  # maps in one picture, at most
MAX_NAMED_CLASSES = 20  # in the legend
LETTERS_AN_INCH = 9.5  # letters of a map's title that fit into an inch
MIN_LETTERS = 8
LEGEND_WIDTH = 0.9  # inches
WORDS_HEIGHT = 0.62  # inches, for the words over and under a map
CAUTION = "Distances between islands mean little."


@dataclass(frozen=True)
class FeatureMap:
    """One method's points in the plane.

    label:      the method's title, perhaps on two lines
    points:     `[N, 2]`
    labels:     `[N]`, the samples' classes
    score:      neighbour accuracy in the original features, 0–1
    kind:       how the features were projected
    answers:    `[N]`, the classes that the method predicts; None if they are not known
    thumbnails: `[N]`, index of each sample in the picture's sheet of images; None without images
    """

    label: str
    points: MapPoints
    labels: SampleLabels
    score: float
    kind: Literal["PCA", "t-SNE"] = "t-SNE"
    answers: SampleLabels | None = None
    thumbnails: SampleIndices | None = None

    @property
    def name(self) -> str:
        return self.label.replace("\n", ", ")


def draw_feature_maps(
    maps: Sequence[FeatureMap],
    class_names: Sequence[str],
    *,
    setting: SettingCaption | str,
    is_class_bright: Sequence[bool] | None = None,
    bright_class_words: str = "",
    first_map_index: int = 0,
    thumbnail_sheet: ThumbnailSheet | None = None,
) -> Picture:
    """Draw small multiples of at most MAPS maps, from `first_map_index` on.

    is_class_bright:    for each class whether it stays bright, None for all
    bright_class_words: the bright classes in words
    thumbnail_sheet:    the images of the samples, as `vector.attach_thumbnail_sheet` takes them; a point that is
        pointed at shows its image
    """
    shown_maps = list(maps[first_map_index : first_map_index + MAPS])
    columns, side = choose_map_arrangement(len(shown_maps))
    rows = max(1, math.ceil(len(shown_maps) / columns))
    with drawing(rows, columns, squeeze=False) as (figure, axes):
        for ax in axes.ravel()[len(shown_maps) :]:
            ax.set_axis_off()
        for ax, one_map in zip(axes.ravel(), shown_maps, strict=False):
            draw_feature_map(
                ax, one_map, class_names, is_class_bright, is_alone=len(shown_maps) <= 3
            )
            write_map_title_and_neighbour_accuracy(ax, one_map, columns, side)
        if len(class_names) <= MAX_NAMED_CLASSES:
            draw_class_marker_legend(figure, class_names)
        figure.supxlabel(CAUTION, fontsize=8.5, color=QUIET, x=0.02, ha="left")
        if thumbnail_sheet is not None:
            attach_thumbnail_sheet(figure, thumbnail_sheet)
    kinds = " and ".join(dict.fromkeys(one_map.kind for one_map in shown_maps)) or "t-SNE"
    title = f"{kinds} maps of the features of the same test points, coloured and shaped by class"
    text = describe_best_and_worst_map(shown_maps, len(maps) - len(shown_maps), bright_class_words)
    return describe_picture(figure, title, setting, text, make_map_table(maps))


class MapArrangement(NamedTuple):
    """How maps are arranged.

    columns: number of columns
    side:    approximate side of each map in inches
    """

    columns: int
    side: float


def choose_map_arrangement(map_count: int) -> MapArrangement:
    """Choose the number of columns for this many square maps, so that they are as large as the
    frame allows.
    """
    width, height = get_default_figure_size_inches()
    best = MapArrangement(1, 0.0)
    for columns in range(1, map_count + 1):
        rows = math.ceil(map_count / columns)
        side = min((width - LEGEND_WIDTH) / columns, height / rows - WORDS_HEIGHT)
        if side > 1.02 * best.side:
            best = MapArrangement(columns, side)
    return best


def draw_feature_map(
    ax: Axes,
    feature_map: FeatureMap,
    class_names: Sequence[str],
    is_class_bright: Sequence[bool] | None,
    *,
    is_alone: bool,
) -> None:
    """Draw the points of one map with hover texts. Points of classes that are not bright are faint,
    and lie behind the others.
    """
    colours = list_class_colours(len(class_names))
    for c in np.unique(feature_map.labels).tolist():
        is_bright = is_class_bright is None or is_class_bright[c]
        rows = np.flatnonzero(feature_map.labels == c)
        points = ax.scatter(
            *feature_map.points[rows].T,
            s=17 if is_alone else 12,
            color=colours[c],
            marker=MARKERS[c % len(MARKERS)],
            linewidths=0,
            alpha=0.9 if is_bright else 0.15,
            zorder=2 if is_bright else 1,
        )
        texts = [
            describe_class_and_prediction_at_point(feature_map, row, class_names)
            for row in rows.tolist()
        ]
        thumbnails = None
        if feature_map.thumbnails is not None:
            thumbnails = feature_map.thumbnails[rows].tolist()
        attach_hover_text(points, texts, class_index=[c] * len(rows), thumbnail=thumbnails)
    ax.set(xticks=[], yticks=[], box_aspect=1, anchor="NW")
    ax.margins(0.06)
    ax.spines[:].set_color(RULE)


def describe_class_and_prediction_at_point(
    feature_map: FeatureMap, point_index: int, class_names: Sequence[str]
) -> str:
    """Describe a point of a map: the map's name, the point's class, and the class that the method
    predicts for it."""
    truth = class_names[feature_map.labels[point_index]]
    text = f"{feature_map.name}\nclass {truth}"
    if feature_map.answers is None:
        return text
    answer = class_names[feature_map.answers[point_index]]
    return f"{text}, read rightly" if answer == truth else f"{text}, read as {answer}"


def write_map_title_and_neighbour_accuracy(
    ax: Axes, feature_map: FeatureMap, map_columns: int, side_inches: float
) -> None:
    """Write the method above a map, and below it how well neighbours agree, shortened to fit."""
    is_wide = map_columns < 4
    letters = max(MIN_LETTERS, int(side_inches * LETTERS_AN_INCH))
    lines = []
    for line in feature_map.label.split("\n"):
        lines.append(line if len(line) <= letters else shorten_method_title(line))
    write_axes_title(ax, "\n".join(shorten_labels(lines, letters)), 4, 10.5 if is_wide else 9.5)
    kind = "PCA, t-SNE follows" if feature_map.kind == "PCA" else feature_map.kind
    text = f"{kind} · neighbours {format_percent(feature_map.score)}"
    if len(text) > 1.2 * letters:
        text = f"{feature_map.kind} · {format_percent(feature_map.score)}"
    ax.set_xlabel(text, fontsize=9 if is_wide else 8.5, color=QUIET)


def draw_class_marker_legend(figure: Figure, class_names: Sequence[str]) -> None:
    """Draw a marker for each class, at the right."""
    handles = []
    for name, colour, marker in zip(
        class_names, list_class_colours(len(class_names)), cycle(MARKERS), strict=False
    ):
        handles.append(Line2D([], [], ls="", marker=marker, color=colour, ms=6, label=name[:12]))
    add_legend(
        figure, handles=handles, loc="outside right center", title="class", handletextpad=0.1
    )


def describe_best_and_worst_map(
    maps: Sequence[FeatureMap], hidden_map_count: int, bright_class_words: str = ""
) -> str:
    """Describe the best and the worst map.

    hidden_map_count:   maps that are not shown
    bright_class_words: the bright classes in words
    """
    if not maps:
        return "No features yet."
    best = max(maps, key=lambda one_map: one_map.score)
    worst = min(maps, key=lambda one_map: one_map.score)
    highest_score = format_percent(best.score)
    lowest_score = format_percent(worst.score)
    if len(maps) == 1:
        text = (
            f"{capitalize_first_letter(best.name)}: {highest_score} of the points lie among their "
            "own class."
        )
    elif highest_score == lowest_score:
        text = f"In all maps {highest_score} of the points lie among their own class."
    else:
        text = (
            f"{capitalize_first_letter(best.name)} keeps the classes apart best: {highest_score} "
            f"of its points lie among their own class; least does {worst.name}, with "
            f"{lowest_score}."
        )
    if bright_class_words:
        text += f" Bright: {bright_class_words}."
    if hidden_map_count > 0:
        text += f" {format_count_and_noun(hidden_map_count, 'more method')} in the table."
    return text


def make_map_table(maps: Sequence[FeatureMap]) -> TableRows:
    """Make the table with one row per map."""
    rows = []
    for one_map in maps:
        score = format_percent(one_map.score)
        rows.append((one_map.name, score, len(one_map.points), one_map.kind))
    return build_table("method | neighbour accuracy | points | map", rows)
