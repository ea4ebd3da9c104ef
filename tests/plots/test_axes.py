"""Helpers for axes: their tick labels, highlighted rows, lines of seeds, and labels at the ends of lines."""

from __future__ import annotations

import numpy as np
import pytest

from fedlab_nb.plots import style
from fedlab_nb.plots.style import make_figure


@pytest.fixture
def ax():
    return make_figure().subplots()


def read_tick_labels(axis):
    axis.figure.canvas.draw()
    return [label.get_text() for label in axis.get_ticklabels()]


NAMES = ("ship", "automobile")
FIFTHS = ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]


@pytest.mark.parametrize(("limits", "set_ticks", "shown"), [
    ((0, 1), lambda ax: style.set_percent_axis(ax, "x", ticks=style.FIFTHS), FIFTHS),
    ((0, 3), lambda ax: style.limit_tick_count(ax, "x", 8, only_whole_numbers=True), ["0", "1", "2", "3"]),
    (
        (0, 4000),
        lambda ax: style.limit_tick_count(ax, "x", 4, format_value=style.format_bytes_or_zero),
        ["0", "1 kB", "2 kB", "3 kB", "4 kB"],
    ),
    ((-0.5, 2.5), lambda ax: style.set_client_x_ticks(ax, 3), ["A", "B", "C"]),
    ((-0.5, 1.5), lambda ax: style.set_class_ticks(ax, NAMES, max_letters=6), ["ship", "autom…"]),
    ((0.03, 20), lambda ax: style.set_log_axis(ax, ticks=(0.05, 0.1, 10)), ["0.05", "0.1", "10"]),
])  # fmt: skip
def test_tick_labels(ax, limits, set_ticks, shown):
    ax.set_xlim(*limits)
    set_ticks(ax)
    assert read_tick_labels(ax.xaxis) == shown


def test_only_a_row_or_column_that_exists_is_highlighted(ax):
    style.highlight_row_or_column(ax, None, 5)
    style.highlight_row_or_column(ax, 5, 5)
    assert not ax.patches
    style.highlight_row_or_column(ax, 2, 5)
    style.highlight_row_or_column(ax, 3, 5, "y", has_frame=True)
    column, row = ax.patches
    assert (column.get_x(), column.get_width()) == (1.5, 1)
    assert (row.get_y(), row.get_height()) == (2.5, 1)
    assert row.get_fill() is False and column.get_fill() is True


def test_seeds_are_faint_and_their_mean_is_returned(ax):
    runs = {0: [(1, 0.2), (2, 0.4), (3, 0.9)], 1: [(1, 0.4), (2, 0.8)]}
    x, y = style.draw_seed_lines_and_get_mean(ax, runs, "#123456", "o", label="mean")
    assert x == [1, 2] and y == pytest.approx([0.3, 0.6])
    assert len(ax.lines) == 3 and [line.get_alpha() for line in ax.lines] == [0.35, 0.35, None]
    assert ax.lines[-1].get_label() == "mean" and ax.lines[-1].get_marker() == "o"
    style.draw_seed_lines_and_get_mean(ax, {0: runs[0]}, "black", lw=1)
    assert len(ax.lines) == 4
    assert ax.lines[-1].get_linewidth() == 1
    assert style.average_seed_lines_over_common_range({}) == ([], [])


def test_names_at_line_ends_keep_their_order_and_distance(ax):
    ax.set_ylim(0, 1)
    style.draw_end_labels(
        ax,
        [(0.5, "a", "red"), (0.51, "b", "blue"), (0.0, "c", "green"), (0.01, "d", "black")],
        min_gap_in_axes_heights=0.1,
    )
    heights = {text.get_text(): text.get_position()[1] for text in ax.texts}
    order = sorted(heights, key=heights.get)
    assert order == ["c", "d", "a", "b"]
    assert min(np.diff(sorted(heights.values()))) > 0.0999
    assert min(heights.values()) >= 0
    assert style.spread_label_positions([], 1) == []
    assert style.spread_label_positions([3.0], 1, highest=2, lowest=0) == [2]
