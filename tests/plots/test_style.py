"""What all pictures share: the layout of texts, and memory that is freed."""

import gc
import io
import weakref

import numpy as np
import pytest
from PIL import Image

from fedlab_nb.plots import style
from fedlab_nb.plots.style import (
    Picture,
    draw_light_dark_svg_element,
    render_picture_png,
    render_png_for_notebook,
)


def test_texts_stay_within_the_figure_and_titles_do_not_overlap():
    def measure_font_sizes(width):
        with (
            style.use_figure_size((width, 4)),
            style.drawing(1, 2, width_ratios=[2, 1]) as (figure, (left, right)),
        ):
            figure.set_layout_engine("none")
            left_title = style.write_axes_title(left, "Right answers, by thirds of the dissent")
            right_title = style.write_axes_title(right, "Bytes spent")
            right.set_xlabel("bytes, both ways, of all clients together", fontsize=10)
        style.compute_layout_if_due(figure)
        right_edges = [
            text.get_window_extent().x1 for text in (left_title, right_title, right.xaxis.label)
        ]
        # Boxes end at whole pixels, hence the 2.
        assert right_edges[0] < right_title.get_window_extent().x0
        assert max(right_edges) < figure.bbox.x1 + 2
        return [text.get_fontsize() for text in (left_title, right_title, right.xaxis.label)]

    assert measure_font_sizes(10) == [style.TITLE, style.TITLE, 10]
    title, usual, name = measure_font_sizes(5.5)
    assert style.LEAST < title < style.TITLE == usual and style.LEAST < name < 10


def test_a_long_title_begins_further_left_and_keeps_its_place_when_it_is_drawn_again():
    with style.use_figure_size((3.8, 8)), style.drawing() as (figure, ax):
        ax.set_yticks([0], ["averaged and calibrated, not fused"])
        title = style.write_axes_title(ax, "Which half of FuseFL does the work")
    sizes_and_edges = []
    for _ in range(2):
        with style.use_figure_size((3.8, 8)):
            draw_light_dark_svg_element(figure)  # as an SVG, whose pixels are others
        style.compute_layout_if_due(figure)
        box = title.get_window_extent(figure.canvas.get_renderer())
        assert 0 < box.x0 < ax.bbox.x0 and box.x1 < figure.bbox.x1
        sizes_and_edges.append((title.get_fontsize(), box.x0))
    assert sizes_and_edges[0] == sizes_and_edges[1] and sizes_and_edges[0][0] == style.LEAST


@pytest.fixture
def no_collection():
    gc.disable()
    yield
    gc.enable()


def test_a_figure_that_was_written_frees_the_bitmap_of_its_layout(no_collection):
    with style.drawing() as (figure, axes):
        axes.set_title("accuracy")
    style.compute_layout_if_due(figure)
    # The bitmap has 4 bytes a pixel, and only a garbage collection would free the figure.
    bitmap = weakref.ref(figure.canvas.get_renderer())
    style.render_laid_out_figure_as_svg(figure, "white")
    assert bitmap() is None


def test_the_png_of_a_notebook_has_few_colours_and_all_its_pixels():
    ramp = np.linspace(0, 255, 30 * 20 * 3).reshape(20, 30, 3).astype(np.uint8)
    with style.drawing() as (figure, ax):
        ax.imshow(ramp)
    picture = Picture(figure=figure, alt="A ramp", sentence="All colours.")
    whole = Image.open(io.BytesIO(render_picture_png(picture)))
    small = Image.open(io.BytesIO(render_png_for_notebook(picture)))
    assert small.size == whole.size
    assert len(small.getcolors()) <= 256 < len(whole.getcolors(1_000_000))
    difference = np.asarray(small.convert("RGB"), float) - np.asarray(whole, float)
    assert np.abs(difference).mean() < 2
