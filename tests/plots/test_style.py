"""What every picture has in common."""

import gc
import weakref

import pytest

from fedlab_nb.plots import style
from fedlab_nb.plots.vector import draw_svg


def test_words_stay_within_the_figure_and_titles_off_each_other():
    def sizes(width):
        with (
            style.use_figure_size((width, 4)),
            style.drawing(1, 2, width_ratios=[2, 1]) as (figure, (left, right)),
        ):
            figure.set_layout_engine("none")
            first = style.write_axes_title(left, "Right answers, by thirds of the dissent")
            last = style.write_axes_title(right, "Bytes spent")
            right.set_xlabel("bytes, both ways, of all clients together", fontsize=10)
        style.compute_layout_once(figure)
        ends = [text.get_window_extent().x1 for text in (first, last, right.xaxis.label)]
        # Boxes end at whole pixels, hence the 2.
        assert ends[0] < last.get_window_extent().x0 and max(ends) < figure.bbox.x1 + 2
        return [text.get_fontsize() for text in (first, last, right.xaxis.label)]

    assert sizes(10) == [style.TITLE, style.TITLE, 10]
    title, usual, name = sizes(5.5)
    assert style.LEAST < title < style.TITLE == usual and style.LEAST < name < 10


def test_a_long_title_begins_further_left_and_keeps_its_place_when_it_is_drawn_again():
    with style.use_figure_size((3.8, 8)), style.drawing() as (figure, ax):
        ax.set_yticks([0], ["averaged and calibrated, not fused"])
        title = style.write_axes_title(ax, "Which half of FuseFL does the work")
    seen = []
    for _ in range(2):
        with style.use_figure_size((3.8, 8)):
            draw_svg(figure)  # as an SVG, whose pixels are others
        style.compute_layout_once(figure)
        box = title.get_window_extent(figure.canvas.get_renderer())
        assert 0 < box.x0 < ax.bbox.x0 and box.x1 < figure.bbox.x1
        seen.append((title.get_fontsize(), box.x0))
    assert seen[0] == seen[1] and seen[0][0] == style.LEAST


@pytest.fixture
def no_collection():
    gc.disable()
    yield
    gc.enable()


def test_a_written_figure_has_let_go_of_the_layouts_bitmap(no_collection):
    with style.drawing() as (figure, axes):
        axes.set_title("accuracy")
    style.compute_layout_once(figure)
    # The bitmap has 4 bytes a pixel, and only a garbage collection would free the figure.
    bitmap = weakref.ref(figure.canvas.get_renderer())
    style.render_svg(figure, "white")
    assert bitmap() is None
