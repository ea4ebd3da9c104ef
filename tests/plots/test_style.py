"""What every picture has in common."""

import pytest

from fedlab_nb.plots import style


@pytest.mark.parametrize("fixed", [False, True])
def test_words_stay_within_the_figure_and_titles_off_each_other(fixed):
    def sizes(size):
        with style.sized(size), style.drawing(1, 2, width_ratios=[2, 1]) as (figure, (left, right)):
            if fixed:
                figure.set_layout_engine("none")
            first = style.heading(left, "Right answers, by thirds of the dissent")
            last = style.heading(right, "Bytes spent")
            right.set_xlabel("bytes, both ways, of all clients together", fontsize=10)
        style.settle(figure)
        ends = [text.get_window_extent().x1 for text in (first, last, right.xaxis.label)]
        assert ends[0] < last.get_window_extent().x0 and max(ends) <= figure.bbox.x1 + 1
        return [text.get_fontsize() for text in (first, last, right.xaxis.label)]

    assert sizes((10, 4)) == [style.TITLE, style.TITLE, 10]
    first, _, name = sizes((6, 4))
    assert style.LEAST < first < style.TITLE and style.LEAST < name < 10
