"""The map of methods: all methods are in it, with what they send and need, and no texts overlap."""

from itertools import combinations

import pytest

from fedlab_nb.methods import METHODS
from fedlab_nb.methods.base import Method, register, shorten_method_title
from fedlab_nb.plots.method_map import draw_method_map
from fedlab_nb.plots.style import use_figure_size


def draw_and_read_texts(*methods, width=6.7):
    """Draw the map and read its texts, each in one line; asserts that none is cut off and none overlaps another."""
    with use_figure_size((width, 4)):
        figure = draw_method_map(methods).figure
    figure.canvas.draw()
    texts = [
        text
        for ax in figure.axes
        for text in (*ax.texts, ax._left_title)
        if text.get_text().strip()
    ]
    boxes = [text.get_window_extent().padded(-1) for text in texts]
    assert all(
        box.x1 <= text.axes.bbox.x1 and box.y0 >= 0 for text, box in zip(texts, boxes, strict=True)
    )
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    return " | ".join(" ".join(text.get_text().split()) for text in texts)


@pytest.mark.slow
@pytest.mark.parametrize("width", [4.5, 6.7, 7.8, 12])
def test_every_method_is_in_the_map_exactly_once(width):
    texts = draw_and_read_texts(*METHODS, width=width)
    assert texts.count("Server") == len(draw_method_map(METHODS).table)
    assert "DeepAFL (2 L + 1 times)" in texts  # how it differs from the others in its drawing
    names = "; ".join(row["methods"] for row in draw_method_map(METHODS).table).split("; ")
    assert sorted(name.split(" (")[0] for name in names) == sorted(
        shorten_method_title(c.info.title) for c in METHODS.values()
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_a_drawing_shows_what_travels_both_ways_and_what_the_method_needs(name):
    info = METHODS[name].info
    texts = draw_and_read_texts(name)
    assert info.sends in texts and info.back in texts and shorten_method_title(info.title) in texts
    assert ("needs public images" in texts) == ("public" in info.needs)
    assert ("data leave" in texts) == (name == "centralized")
    assert ("gets nothing" in texts) == (name == "local")


def test_a_method_of_ones_own_has_its_drawing():
    register("own", title="Own", paper="none", sends="a coin")(
        type("Own", (Method,), {"__doc__": "Its own."})
    )
    try:
        assert "a coin, once" in draw_and_read_texts("own")
    finally:
        del METHODS["own"]
