"""The chores of axes: what stands on an axis after each, and names of lines that do not cover one another."""

from __future__ import annotations

import numpy as np
import pytest

from fedlab_nb.plots import axes
from fedlab_nb.plots.style import class_colours, drawing, dress, new_figure, png


@pytest.fixture
def ax():
    return new_figure().subplots()


def texts(axis):
    axis.figure.canvas.draw()
    return [label.get_text() for label in axis.get_ticklabels()]


def test_percent_axis(ax):
    axes.percent_axis(ax, "y", 1.07, ticks=axes.FIFTHS)
    assert ax.get_ylim() == (0, 1.07) and texts(ax.yaxis) == ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]
    ax.set_xlim(0.2, 0.4)
    axes.percent_axis(ax, "x", None)
    assert ax.get_xlim() == (0.2, 0.4) and texts(ax.xaxis)[0] == "20 %"


def test_few_ticks_stand_at_whole_numbers_or_say_sizes(ax):
    ax.set_xlim(0, 3)
    axes.few_ticks(ax, "x", 8, whole=True)
    assert texts(ax.xaxis) == ["0", "1", "2", "3"]
    ax.set_ylim(0, 4000)
    axes.few_ticks(ax, "y", 4, form=axes.SIZES)
    assert {"0", "1 kB", "4 kB"} <= set(texts(ax.yaxis)) and len(texts(ax.yaxis)) <= 5
    axes.few_ticks(ax, "y", 4, form=lambda v: f"<{v:.0f}>")
    assert "<1000>" in texts(ax.yaxis)


def test_a_log_axis_has_the_ticks_it_is_given_and_no_small_ones(ax):
    ax.set_xlim(0.03, 20)
    axes.log_axis(ax, ticks=(0.05, 0.1, 10))
    assert texts(ax.xaxis) == ["0.05", "0.1", "10"] and not len(ax.xaxis.get_minorticklocs())
    ax.set_ylim(1e-6, 1e6)
    axes.log_axis(ax, "y", most=4)
    assert ax.get_yscale() == "log" and 2 <= len(texts(ax.yaxis)) <= 6


def test_rows_stand_from_the_top_down(ax):
    axes.rows_axis(ax, ["first", "second"], least=3)
    assert texts(ax.yaxis) == ["first", "second"] and ax.get_ylim() == (2.5, -0.5)
    assert not ax.spines["left"].get_visible() and ax.spines["bottom"].get_visible()
    axes.no_spines(ax)
    assert not any(spine.get_visible() for spine in ax.spines.values())


@pytest.mark.parametrize(("clients", "number"), [(3, 3), (16, 16), (100, 11)])
def test_clients_have_ticks_while_they_are_few(ax, clients, number):
    ax.set_xlim(-0.5, clients - 0.5)
    axes.client_ticks(ax, clients)
    inside = [t for t in ax.get_xticks() if 0 <= t <= clients]
    assert len(inside) <= number + 1 and all(t == int(t) for t in inside) and len(inside) >= min(number, 5)


def test_class_names_are_cut_and_thinned(ax):
    axes.class_ticks(ax, ["ship", "automobile"], length=6)
    assert texts(ax.xaxis) == ["ship", "autom…"]
    ax.set_ylim(-0.5, 99.5)
    axes.class_ticks(ax, [f"c{i}" for i in range(100)], "y")
    shown = [text for text in texts(ax.yaxis) if text]
    assert 4 <= len(shown) <= 12 and set(shown) <= {f"c{i}" for i in range(100)}


def test_marks_only_what_is_there(ax):
    axes.mark(ax, None, 5)
    axes.mark(ax, 5, 5)
    assert not ax.patches
    axes.mark(ax, 2, 5)
    axes.mark(ax, 3, 5, "y", frame=True)
    column, row = ax.patches
    assert (column.get_x(), column.get_width()) == (1.5, 1) and (row.get_y(), row.get_height()) == (2.5, 1)
    assert row.get_fill() is False and column.get_fill() is True


def test_seeds_are_faint_and_their_mean_is_returned(ax):
    runs = {0: [(1, 0.2), (2, 0.4), (3, 0.9)], 1: [(1, 0.4), (2, 0.8)]}
    x, y = axes.seed_lines(ax, runs, "#123456", "o", label="mean")
    assert x == [1, 2] and y == pytest.approx([0.3, 0.6])
    assert len(ax.lines) == 3 and [line.get_alpha() for line in ax.lines] == [0.35, 0.35, None]
    assert ax.lines[-1].get_label() == "mean" and ax.lines[-1].get_marker() == "o"
    axes.seed_lines(ax, {0: runs[0]}, "black", lw=1)
    assert len(ax.lines) == 4 and ax.lines[-1].get_linewidth() == 1 and axes.mean_line({}) == ([], [])


def test_names_at_line_ends_keep_their_order_and_distance(ax):
    ax.set_ylim(0, 1)
    axes.end_labels(ax, [(0.5, "a", "red"), (0.51, "b", "blue"), (0.0, "c", "green"), (0.01, "d", "black")], gap=0.1)
    at = {text.get_text(): text.get_position()[1] for text in ax.texts}
    order = sorted(at, key=at.get)
    assert order == ["c", "d", "a", "b"] and min(np.diff(sorted(at.values()))) > 0.0999 and min(at.values()) >= 0
    assert axes.spread([], 1) == [] and axes.spread([3.0], 1, top=2, low=0) == [2]


def test_a_level_has_its_words_over_it(ax):
    axes.level_line(ax, 0.1, "guessing")
    assert ax.lines[0].get_ydata()[0] == 0.1 and ax.texts[0].get_position() == (0.99, pytest.approx(0.115))
    axes.level_line(ax, 3, axis="x")
    assert ax.lines[1].get_xdata()[0] == 3 and len(ax.texts) == 1


def test_two_axes_stand_still_and_a_legend_above_takes_no_room():
    with axes.two_axes((1, 2), left=0.1, between=0.3) as (figure, left, right):
        left.plot([0, 1], label="a line")
        axes.legend_above(left, 2)
    before = left.get_position().bounds, right.get_position().bounds
    png(figure)
    assert (left.get_position().bounds, right.get_position().bounds) == before
    assert right.get_position().width == pytest.approx(2 * left.get_position().width)


def test_every_class_has_a_colour_of_its_own():
    assert class_colours(3) == ["#3f90da", "#ffa90e", "#bd1f01"]
    assert len(set(class_colours(10))) == 10 and len(set(class_colours(30))) == 30


def test_a_drawing_has_its_axes_or_none_where_they_are_put_by_hand():
    with drawing(1, 2, size=(4, 2), width_ratios=[3, 1]) as (figure, (left, right)):
        dress(left, x="bytes", size=9)
    assert figure.axes == [left, right] and figure.get_size_inches().tolist() == [4, 2]
    assert left.xaxis.label.get_fontsize() == 9 and figure.get_layout_engine() is not None
    with drawing(fixed=True) as (figure, axes):
        assert axes is None and not figure.axes and figure.get_layout_engine() is None
