"""Pictures of accuracy against the bytes of one client, on one federation or on many side by side.

They show which methods are not beaten, which are level with the best, and the cheapest of these.

draw_frontiers([FederationFrontier("digits, α = 0.1", rows, unbeaten, ties)])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from ..value_types import Accuracy0To1
from .kit import BoxInAxesShares, describe_picture, place_label_beside_point_and_add_its_box
from .series import MethodResults
from .style import (
    ACCENT,
    FAINT,
    INK,
    QUIET,
    SECOND,
    Picture,
    add_legend,
    drawing,
    dress,
    set_log_axis,
    set_percent_axis,
    write_axes_title,
)
from .words import (
    build_table,
    format_count_and_noun,
    format_data_size,
    format_percent,
    join_with_and,
)

BAND_SEEDS = 10  # with fewer seeds no band is drawn
MIN_RANGE = 0.16  # of the accuracy axis
ONE = (7.6, 4.8)  # inches, the size of a picture of one federation
CELL = (4.5, 3.0)  # inches, the size for each of several federations
LETTER = 0.62  # width of a letter, as a multiple of the font size
LINE = 1.25  # height of a line, as a multiple of the font size
AxisRange = tuple[float, float]
POWERS = (1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9)  # bytes at ticks


@dataclass(frozen=True)
class FederationFrontier:
    """One federation.

    title:    of its axes
    rows:     one `MethodResults` per method with its options; `up` and `down` are the bytes of one client
    unbeaten: names of the rows that no other one beats in both accuracy and bytes, the cheapest first
    ties:     names of the rows that are level with the most accurate one, the cheapest first
    rehearsal_answer: the name of the row that a rehearsal recommends; empty in a study, which recommends the cheapest
        of `ties`
    """

    title: str
    rows: Sequence[MethodResults]
    unbeaten: Sequence[str]
    ties: Sequence[str]
    rehearsal_answer: str = ""

    @property
    def recommended_name(self) -> str:
        """The name of the row that is recommended; bold in the picture."""
        return self.rehearsal_answer or self.ties[0]

    @property
    def labelled_rows(self) -> list[MethodResults]:
        """The rows that get their name in the picture, the cheapest first."""
        names = {*self.unbeaten, *self.ties}
        rows = [row for row in self.rows if row.name in names]
        return sorted(rows, key=lambda row: (row.total_bytes, row.mean))


def draw_frontiers(
    frontiers: Sequence[FederationFrontier], *, setting: str, columns: int = 2
) -> Picture:
    """Draw a picture with one pair of axes per federation.

    Blue points on a line are not beaten. Ringed points are level with the best: the 95 % band of
    the paired differences contains zero. The name of the recommended method is bold. A vertical
    line is the 95 % band of a mean over ten seeds; hollow points have fewer seeds and no band.
    """
    columns = min(columns, len(frontiers))
    lines = math.ceil(len(frontiers) / columns)
    size = ONE
    if len(frontiers) > 1:
        size = (CELL[0] * columns, CELL[1] * lines + 0.7)
    all_rows = list_rows_of_frontiers(frontiers)
    totals = [row.total_bytes for row in all_rows if row.total_bytes > 0]
    limits = (min(totals) / 2, max(totals) * 2)
    with drawing(lines, columns, size=size, squeeze=False) as (figure, grid):
        for ax in grid.flat[len(frontiers) :]:
            ax.set_axis_off()
        for position, (ax, frontier) in enumerate(zip(grid.flat, frontiers, strict=False)):
            # Only the last federation of a column has the axis label.
            is_last = position + columns >= len(frontiers)
            x_label = "bytes of one client, both ways" if is_last else ""
            y_label = "test accuracy" if position % columns == 0 else ""
            dress(ax, x=x_label, y=y_label, grid="both", size=9)
            draw_frontier(ax, frontier, limits)
        handles = make_frontier_legend_handles(frontiers)
        add_legend(
            figure,
            handles=handles,
            loc="outside lower center",
            ncols=3,
            handletextpad=0.5,
            columnspacing=1.6,
        )
    rows = []
    for frontier in frontiers:
        rows += make_frontier_table_rows(frontier)
    return describe_picture(
        figure,
        "Accuracy against the bytes of one client",
        setting,
        " ".join(map(describe_frontier, frontiers)),
        build_table("federation | method | accuracy | bytes a client | seeds | place", rows),
    )


def list_rows_of_frontiers(frontiers: Sequence[FederationFrontier]) -> list[MethodResults]:
    """List the rows of all federations, one federation after the other."""
    rows: list[MethodResults] = []
    for frontier in frontiers:
        rows += frontier.rows
    return rows


def draw_frontier(ax: Axes, frontier: FederationFrontier, byte_range: AxisRange) -> None:
    """Draw one federation into its axes."""
    write_axes_title(ax, frontier.title)
    ax.set_xlim(*byte_range)
    ticks = [power for power in POWERS if byte_range[0] <= power <= byte_range[1]]
    set_log_axis(ax, ticks=ticks, format_value=format_data_size)
    low, high = find_accuracy_axis_range(frontier)
    set_percent_axis(ax, "y", high, lowest_share=low, ticks=choose_accuracy_ticks(low, high))
    unbeaten_rows = [row for row in frontier.labelled_rows if row.name in frontier.unbeaten]
    ax.plot(
        [row.total_bytes for row in unbeaten_rows],
        [row.mean for row in unbeaten_rows],
        color=ACCENT,
        lw=1.3,
        zorder=1,
    )
    rows_below_axis = 0
    for row in frontier.rows:
        if row.mean < low:
            rows_below_axis += 1
            ax.plot(row.total_bytes, low + 0.012 * (high - low), "v", color=QUIET, ms=3, alpha=0.6)
            continue
        draw_frontier_point(ax, row, frontier)
    if rows_below_axis:
        ax.text(
            0.99,
            0.03,
            f"▾ {rows_below_axis} further below",
            transform=ax.transAxes,
            ha="right",
            va="bottom",
            fontsize=8,
            color=QUIET,
            bbox={"fc": "white", "ec": "none", "pad": 0.3},
            zorder=5,
        )
    write_frontier_names(ax, frontier, byte_range, (low, high))


def draw_frontier_point(
    ax: Axes, method_results: MethodResults, frontier: FederationFrontier
) -> None:
    """Draw the point of a method, its band, and its ring."""
    is_unbeaten = method_results.name in frontier.unbeaten
    colour = ACCENT if is_unbeaten else QUIET
    has_band = len(method_results.accuracies) >= BAND_SEEDS
    if has_band and method_results.name in {*frontier.unbeaten, *frontier.ties}:
        ax.plot(
            [method_results.total_bytes] * 2,
            method_results.band_ends,
            color=colour,
            lw=2,
            alpha=0.55,
            zorder=1.5,
        )
    face = colour if has_band else "white"
    size = 6 if is_unbeaten else 3.6
    alpha = 1.0 if is_unbeaten else 0.7
    ax.plot(
        method_results.total_bytes,
        method_results.mean,
        "o",
        color=colour,
        mfc=face,
        mew=1.2,
        ms=size,
        alpha=alpha,
        zorder=2 + is_unbeaten,
    )
    if method_results.name in frontier.ties:
        ax.plot(
            method_results.total_bytes,
            method_results.mean,
            "o",
            mfc="none",
            mec=SECOND,
            mew=1.6,
            ms=11,
            zorder=4,
        )


def find_accuracy_axis_range(frontier: FederationFrontier) -> AxisRange:
    """Find the ends of the accuracy axis: all named methods lie between them."""
    means = [row.mean for row in frontier.labelled_rows]
    low = min(means) - 0.05
    high = max(means) + 0.04
    if high - low < MIN_RANGE:
        low = high - MIN_RANGE
    return max(0.0, low), min(1.02, high)


def choose_accuracy_ticks(lowest: Accuracy0To1, highest: Accuracy0To1) -> list[Accuracy0To1]:
    """Choose round accuracies between both ends, at most six, none above 100 %."""
    step = next(step for step in (0.02, 0.05, 0.1, 0.2) if (highest - lowest) / step <= 6)
    first_multiple = math.ceil(lowest / step)
    last_multiple = math.floor(min(highest, 1.0) / step + 1e-9)
    return [round(step * k, 2) for k in range(first_multiple, last_multiple + 1)]


def write_frontier_names(
    ax: Axes, frontier: FederationFrontier, byte_range: AxisRange, accuracy_range: AxisRange
) -> None:
    """Write the name of each labelled row beside its point, where it covers no other point or name."""
    size = 8.5
    figure: Any = ax.figure
    width, height = 72 * ax.get_position().size * figure.get_size_inches()
    # From here on, all lengths are shares of the axes.
    letter = LETTER * size / width
    line = LINE * size / height
    places = {}
    occupied_boxes = []
    for row in frontier.rows:
        if row.mean < accuracy_range[0]:
            continue
        x = math.log(row.total_bytes / byte_range[0]) / math.log(byte_range[1] / byte_range[0])
        y = (row.mean - accuracy_range[0]) / (accuracy_range[1] - accuracy_range[0])
        if row in frontier.labelled_rows:
            places[row.name] = (x, y)
            occupied_boxes.append(
                BoxInAxesShares(x - letter, x + letter, y - line / 2, y + line / 2)
            )
        else:
            occupied_boxes.append(
                BoxInAxesShares(x - letter / 2, x + letter / 2, y - line / 4, y + line / 4)
            )
    for row in frontier.labelled_rows:
        x, y = places[row.name]
        name_width = letter * (1 + len(row.name))
        side, middle = place_label_beside_point_and_add_its_box(
            occupied_boxes, x, y, name_width, line, 1.6 * letter
        )
        is_answer = row.name == frontier.recommended_name
        ax.text(
            x + 1.7 * side * letter,
            middle,
            row.name,
            transform=ax.transAxes,
            ha="left" if side > 0 else "right",
            va="center",
            fontsize=size,
            fontweight="bold" if is_answer else "normal",
            color=ACCENT if row.name in frontier.unbeaten else INK,
            bbox={"fc": "white", "ec": "none", "pad": 0.3},
            zorder=1.2,  # over the line, under the points
        )


def make_frontier_legend_handles(frontiers: Sequence[FederationFrontier]) -> list[Line2D]:
    """Make the legend's entries, for the signs that occur in the picture."""

    def make_sign(label: str, **look: Any) -> Line2D:
        return Line2D([], [], label=label, **{"ls": "", "marker": "o", "color": QUIET, **look})

    handles = [
        make_sign("not beaten", color=ACCENT, ls="-", lw=1.3, ms=6),
        make_sign("level with the best", mfc="none", mec=SECOND, mew=1.6, ms=10),
        make_sign("beaten", ms=4),
    ]
    rows = list_rows_of_frontiers(frontiers)
    if any(len(row.accuracies) >= BAND_SEEDS for row in rows):
        handles.append(make_sign("95 % band of ten seeds", marker="|", color=ACCENT, ms=11, mew=2))
    if any(len(row.accuracies) < BAND_SEEDS for row in rows):
        handles.append(make_sign("fewer seeds: no band", mfc="white", ms=6, mew=1.2))
    if any(frontier.rehearsal_answer for frontier in frontiers):
        meaning_of_bold = "bold: the answer"
    else:
        meaning_of_bold = "bold: the cheapest of the ringed"
    handles.append(make_sign(meaning_of_bold, marker="", color=FAINT))
    return handles


def describe_frontier(frontier: FederationFrontier) -> str:
    """Describe the unbeaten methods of a federation, those level with the best, and what is
    recommended.
    """
    by_name = {row.name: row for row in frontier.rows}
    parts = []
    for name in frontier.unbeaten:
        row = by_name[name]
        parts.append(f"{name} ({format_data_size(row.total_bytes)}, {format_percent(row.mean)})")
    verb = "is" if len(parts) == 1 else "are"
    text = f"{frontier.title}: not beaten {verb} {join_with_and(parts)}; "
    if frontier.rehearsal_answer:
        return f"{text}level with the best: {join_with_and(frontier.ties)}; the answer is {frontier.rehearsal_answer}."
    if len(frontier.ties) == 1:
        return (
            f"{text}{frontier.recommended_name} is the most accurate, and nothing is level with it."
        )
    return (
        f"{text}{join_with_and(frontier.ties)} are level with the best, and "
        f"{frontier.recommended_name} is the cheapest of these."
    )


def make_frontier_table_rows(frontier: FederationFrontier) -> list[tuple[str, ...]]:
    """Make the table rows of a federation, the cheapest method first."""
    rows = []
    for row in sorted(frontier.rows, key=lambda row: (row.total_bytes, -row.mean)):
        words = []
        if row.name in frontier.unbeaten:
            words.append("not beaten")
        if row.name in frontier.ties:
            words.append("level with the best")
        if row.name == frontier.recommended_name:
            words.append("the answer" if frontier.rehearsal_answer else "cheapest of these")
        seeds = format_count_and_noun(len(row.accuracies), "seed")
        accuracy = f"{row.accuracy_text} %"
        place = ", ".join(words) or "beaten"
        rows.append(
            (frontier.title, row.name, accuracy, format_data_size(row.total_bytes), seeds, place)
        )
    return rows
