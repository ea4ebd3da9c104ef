"""Accuracy against bytes: what is drawn of a few methods, and the same picture as a file for light and dark pages."""

import re
from xml.etree import ElementTree

import pytest

from fedlab_nb.errors import UsageError
from fedlab_nb.plots import Series
from fedlab_nb.plots.frontier import (
    Frontier,
    choose_percent_ticks,
    draw_frontiers,
    find_accuracy_axis_range,
)
from fedlab_nb.plots.style import ACCENT, SECOND
from fedlab_nb.plots.themed import make_themed_svg, write_themed_svg
from fedlab_nb.plots.vector import adapt_colour_to_dark_page

SEEDS = [0.90, 0.92, 0.91, 0.93, 0.89, 0.90, 0.92, 0.91, 0.93, 0.89]  # ten


def series(name: str, accuracies: list[float], size: float) -> Series:
    return Series(name, accuracies=dict(enumerate(accuracies)), up=size)


@pytest.fixture
def frontier() -> Frontier:
    rows = [
        series("cheap", [0.8] * 10, 1e3),
        series("best", SEEDS, 1e5),
        series("level", [0.90, 0.93, 0.90], 1e6),
        series("poor", [0.2, 0.3], 1e4),
    ]
    return Frontier("a federation", rows, ["cheap", "best"], ["best", "level"])


@pytest.fixture
def picture(frontier):
    return draw_frontiers([frontier], setting="ten seeds")


def lines_of(picture, **wanted):
    """The lines of the axes with these properties."""
    (ax, *_) = picture.figure.axes
    found = []
    for line in ax.lines:
        if all(getattr(line, f"get_{name}")() == value for name, value in wanted.items()):
            found.append(line)
    return found


def test_rings_mark_what_is_level_and_the_cheapest_of_these_is_bold(picture):
    ringed = {line.get_xdata()[0] for line in lines_of(picture, markeredgecolor=SECOND)}
    assert ringed == {1e5, 1e6}
    weights = {text.get_text(): text.get_fontweight() for text in picture.figure.axes[0].texts}
    assert weights["best"] == "bold" and weights["level"] == weights["cheap"] == "normal"


def test_only_ten_seeds_have_a_band_and_fewer_are_hollow(picture):
    upright = []
    for line in picture.figure.axes[0].lines:
        x = list(line.get_xdata())
        if len(x) == 2 and x[0] == x[1]:
            upright.append(x[0])
    assert upright == [1e3, 1e5]  # not 1e6, which is level with the best on three seeds
    (level,) = [
        line
        for line in lines_of(picture, marker="o", markerfacecolor="white")
        if line.get_xdata()[0] == 1e6
    ]
    assert level.get_markersize() < 6


def test_the_line_joins_what_is_not_beaten(picture):
    (joined,) = [
        line
        for line in lines_of(picture, color=ACCENT)
        if len(line.get_xdata()) == 2 and line.get_xdata()[0] == 1e3 and line.get_xdata()[1] == 1e5
    ]
    assert list(joined.get_ydata()) == [pytest.approx(0.8), pytest.approx(0.91)]


def test_what_lies_far_below_is_counted_at_the_lower_edge(frontier, picture):
    low, high = find_accuracy_axis_range(frontier)
    assert low == pytest.approx(0.75) and high == pytest.approx(0.95)
    assert "▾ 1 further below" in [text.get_text() for text in picture.figure.axes[0].texts]
    (mark,) = lines_of(picture, marker="v")
    assert low < mark.get_ydata()[0] < low + 0.01


def test_the_table_says_it_all(picture):
    places = {row["method"]: row["place"] for row in picture.table}
    assert places == {
        "cheap": "not beaten",
        "poor": "beaten",
        "best": "not beaten, level with the best, cheapest of these",
        "level": "level with the best",
    }
    assert [row["seeds"] for row in picture.table] == ["10 seeds", "2 seeds", "10 seeds", "3 seeds"]
    assert "best and level are level with the best, and best is the cheapest" in picture.sentence


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.843, 1.02, [0.85, 0.9, 0.95, 1.0]),
        (0.4, 0.9, [0.4, 0.5, 0.6, 0.7, 0.8, 0.9]),
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
    ],
)
def test_ticks_are_round_and_end_at_100_percent(low, high, ticks):
    assert choose_percent_ticks(low, high) == ticks


def test_many_federations_stand_in_columns(frontier):
    picture = draw_frontiers([frontier] * 5, setting="ten seeds", columns=2)
    assert [ax.axison for ax in picture.figure.axes] == [True] * 5 + [False]
    assert len(picture.table) == 5 * 4


def test_a_themed_file_has_both_colours_and_the_words(picture, tmp_path):
    text = make_themed_svg(picture)
    assert ElementTree.fromstring(text).tag.endswith("svg")  # noqa: S314
    assert "light-dark" not in text
    name = re.search(rf"(--c\d+):{ACCENT.lower()};", text)[1]
    night = text[text.index("prefers-color-scheme:dark") :]
    assert f"{name}:{adapt_colour_to_dark_page(ACCENT.lower())};" in night
    assert f"var({name})" in night
    assert picture.alt in text
    file = write_themed_svg(picture, tmp_path / "a.svg")
    file.write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError):
        write_themed_svg(picture, file)
