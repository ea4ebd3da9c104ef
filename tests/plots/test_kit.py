"""The kit for pictures: what each part draws from a few numbers, and the texts that `describe_picture` makes."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

from fedlab_nb import plots
from fedlab_nb.plots import MethodResults, kit, render_picture_png
from fedlab_nb.plots.style import (
    PERCENT,
    draw_colour_bar,
    get_method_look,
    make_figure,
    use_figure_size,
)
from fedlab_nb.plots.words import make_setting_caption

ROWS = [
    MethodResults(
        "FENS",
        accuracies={0: 0.8, 1: 0.9, 2: 0.8, 3: 0.9, 4: 0.85},
        up=4000,
        down=1000,
        method="fens",
    ),
    MethodResults("FedAvg", accuracies={0: 0.5}, up=1000, down=1000, method="fedavg", pinned=True),
    MethodResults("DENSE"),
]


@pytest.fixture
def ax():
    return make_figure().subplots()


def read_texts(ax):
    return [text.get_text() for text in ax.texts if text.get_text()]


def test_alternative_text_has_title_setting_sentence_and_table():
    rows = [{"method": "FENS", "accuracy": "87 %"}, {"method": "FedAvg", "accuracy": ""}]
    picture = kit.describe_picture(None, "Bars of accuracy", "digits, α = 1", "FENS is best.", rows)
    assert (
        picture.alt
        == "Bars of accuracy (digits, α = 1). FENS is best. method FENS, accuracy 87 %; method FedAvg."
    )
    assert (picture.sentence, picture.table) == ("FENS is best.", rows)
    caption = make_setting_caption(
        {"dataset": "digits", "alpha": 0.1, "clients": 10, "seed": 0}, "seed 0"
    )
    assert kit.describe_picture(None, "Dots", caption, "So.").alt.startswith(
        f"Dots ({caption}). Marked with ✦: D "
    )
    assert (
        kit.make_blank_picture("Press Run.", setting="digits").alt
        == "No picture yet (digits). Press Run."
    )
    long_picture = kit.describe_picture(
        None, "Bars", "", "Many.", [{"client": k, "samples": 3} for k in range(40)]
    )
    assert long_picture.alt == "Bars. Many. The table has 40 rows."


def test_bars_have_a_dot_a_seed_a_band_and_a_number(ax):
    bars = kit.AccuracyBars(ax, ROWS, 0.1)
    bars.update(ROWS)
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([0.85, 0.5, 0])
    (_, span, dots, _), (_, span_of_one_seed, *_), _ = bars.parts
    assert dots.get_xdata() == [0.8, 0.9, 0.8, 0.9, 0.85]
    assert len(span.get_xdata()) == 2
    assert len(span_of_one_seed.get_xdata()) == 0
    assert read_texts(ax) == [ROWS[0].accuracy_text, "50", "…"]
    assert ROWS[0].accuracy_text.startswith("85 ± ")
    bars.update([*ROWS[:2], MethodResults("DENSE", accuracies={0: 0.7})], "Later")
    assert ax.patches[2].get_width() == 0.7 and ax.get_title("left") == "Later"
    assert ax.get_xlabel() == kit.BARS
    series_of_few_seeds = [
        MethodResults("FENS", accuracies={seed: 0.8 + 0.02 * seed for seed in range(4)})
    ]
    bars_of_few_seeds = kit.AccuracyBars(ax, series_of_few_seeds)
    bars_of_few_seeds.update(series_of_few_seeds)
    assert ax.get_xlabel() == kit.DOTS and read_texts(ax)[-1] == "83"  # no band before five seeds
    assert len(bars_of_few_seeds.parts[0][1].get_xdata()) == 0
    assert "±" not in series_of_few_seeds[0].hover_text
    bars_of_one_seed = kit.AccuracyBars(ax, ROWS[:1], seed=1)
    bars_of_one_seed.update(ROWS[:1])
    assert bars_of_one_seed.parts[0][0].get_width() == 0.9
    assert read_texts(ax)[-1].startswith("90 %  (85 ± ")


def test_parts_lie_one_after_the_other(ax):
    rows = {"a": {"up": 3.0, "down": 2.0}, "b": {"down": 4.0}}
    assert kit.draw_stacked_bars_and_get_ends(
        ax, rows, {"up": "red", "down": "blue", "none": "green"}
    ) == [5, 4]
    sizes = [bar.get_width() for bar in ax.patches]
    assert sizes == [3, 0, 2, 4] and [c.get_label() for c in ax.containers] == ["up", "down"]


def test_lines_are_means_with_bands(ax):
    accuracies = {"fens": {1.0: {0: 0.7, 1: 0.9}, 0.1: {0: 0.4}}, "fedavg": {1.0: {0: 0.3}}}
    assert kit.draw_lines_with_bands_and_make_labels(ax, accuracies) == [
        (0.8, "fens", get_method_look("fens").colour),
        (0.3, "fedavg", get_method_look("fedavg").colour),
    ]
    lines = {line.get_label(): line.get_xydata().tolist() for line in ax.lines}
    assert lines == {"fens": [[0.1, 0.4], [1.0, 0.8]], "fedavg": [[1.0, 0.3]]}
    assert len(ax.collections) == 2


def test_points_have_their_names_and_pinned_ones_are_hollow(ax):
    kit.draw_accuracy_against_bytes_points(ax, ROWS[:2], accuracy_axis_start=0.2)
    assert sorted(read_texts(ax)) == ["FENS", "FedAvg"]
    assert ax.get_xscale() == "log"
    assert ax.get_ylim()[0] == 0.2
    shown = [line for line in ax.lines if line.get_marker() != "None"]
    colours = {tuple(line.get_xydata()[0].round(3)): line.get_markerfacecolor() for line in shown}
    assert colours == {(5000, 0.85): get_method_look("fens").colour, (2000, 0.5): "white"}
    assert kit.shorten_or_wrap_label("FedAvg, one round", 10) == "FedAvg"
    assert kit.shorten_or_wrap_label("FENS", 4) == "FENS"


def test_a_heat_map_writes_and_colours_its_cells(ax):
    values = np.array([[0.0, 0.9], [np.nan, 0.2]])
    image = kit.draw_heat_map(
        ax,
        values,
        format_cell=kit.make_number_format_without_zero("{:.0f}"),
        written_values=100 * values,
    )
    assert sorted(read_texts(ax)) == ["20", "90"] and image.get_clim() == (0, 1)
    white = {text.get_text() for text in ax.texts if to_hex(text.get_color()) == "#ffffff"}
    assert white == {"90"}
    assert draw_colour_bar(image, ax, "accuracy", format=PERCENT).ax.get_ylabel() == "accuracy"
    assert kit.draw_heat_map(
        ax, -values, is_symmetric_around_zero=True, largest_value=2
    ).get_clim() == (-2, 2)


def test_a_table_of_clients_and_classes_rings_and_frames(ax):
    values = np.array([[1, 0], [0, 7], [np.nan, 2]])
    shown = kit.draw_client_class_heat_map(
        ax,
        values,
        ["a", "b"],
        "Counts",
        7,
        has_ring_at_class_maximum=True,
        selected_client=1,
        selected_class_index=5,
    ).get_array()
    assert np.array_equal(shown.filled(-1), np.nan_to_num(values.T, nan=-1))
    assert sorted(read_texts(ax)) == ["1", "2", "7"] and ax.get_title("left") == "Counts"
    centres = [
        (patch.get_x() + patch.get_width() / 2, patch.get_y() + patch.get_height() / 2)
        for patch in ax.patches
    ]
    # A ring for each class and the frame of client 1; there is no class 5 to frame.
    assert np.round(centres, 6).tolist() == [
        [0, 0],
        [1, 1],
        [1, 0.5],
    ]


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 5, 9), (7,)])
def test_tiles_stand_in_rows_with_gaps_for_missing_images(ax, shape):
    image = np.linspace(0, 1, int(np.prod(shape))).reshape(shape)
    kit.draw_image_rows(
        ax,
        [("up", [image, None]), ("down", [image, image])],
        column_names=["a", "b"],
        words_under_tiles={(0, 1): ("far", "red")},
    )
    assert [label.get_text() for label in ax.get_yticklabels()] == ["up", "down"]
    assert read_texts(ax) == ["far", "a", "b"]
    first_row, second_row = (row.get_array() for row in ax.images)
    tile_width = first_row.shape[1] // 2
    assert np.ptp(first_row[:, :tile_width]) > 0.5
    assert (first_row[0, tile_width : tile_width + 3] == kit.EMPTY_TILE_COLOUR).all()
    assert np.array_equal(second_row[:, :tile_width], second_row[:, tile_width:])
    assert render_picture_png(ax.figure).startswith(b"\x89PNG")
    # Gaps are transparent, so that they look the same on a dark page.
    assert ax.get_gid().startswith("photos") and first_row[0, tile_width - 1, 3] == 0


def test_tiles_continue_in_further_rows_where_the_figure_is_tall():
    image = np.zeros((1, 8, 8))
    layouts = []
    for size in ((6.7, 3.2), (3.7, 5.6)):
        ax = make_figure(size).add_subplot()
        kit.draw_image_rows(
            ax,
            [("up", [image] * 10), ("down", [image] * 10)],
            column_names="abcdefghij",
            selected_column=7,
        )
        positions = {text.get_text(): text.get_position() for text in ax.texts}
        (frame,) = ax.patches
        assert frame.get_x() < positions["h"][0] < frame.get_x() + frame.get_width()
        assert frame.get_y() < positions["h"][1]
        across = round(positions["a"][0] - positions["f"][0], 9)
        is_f_below_a = positions["a"][1] < positions["f"][1]
        layouts.append((len(ax.images), across, is_f_below_a))
        names = [label.get_text() for label in ax.get_yticklabels()]
        assert names == ["up", "down"] + [""] * (len(ax.images) - 2)  # each is said once
    assert layouts == [(2, -5, False), (4, 0, True)]


def test_names_of_points_stay_off_the_axis_of_a_narrow_picture():
    """On a telephone the axes are as narrow as the longest name of a phase leaves them."""
    phases = {"models and Fisher diagonals of all layers": (1000, 1000)}
    accuracies = {0: 0.4}
    rows = []
    for name, size in (("Fisher merging", 3e5), ("FedAvg", 2e4), ("RegMean", 1e6)):
        rows.append(MethodResults(name, accuracies=accuracies, up=size, down=size, phases=phases))
    with use_figure_size((4.2, 7.5)):
        figure = plots.draw_bytes_by_phase_and_accuracy(rows).figure
        plots.render_picture_png(figure)
    ax = figure.axes[1]
    for text in ax.texts:
        assert text.get_window_extent().x0 >= ax.bbox.x0 - 1, text.get_text()


def test_a_line_of_bytes_is_at_the_height_of_its_phase():
    """A phase with both directions has one line above its name and one as far below it."""
    phases = {"initial model": (0, 1000), "local models": (2000, 0), "aggregator": (500, 600)}
    row = MethodResults("FENS", accuracies={0: 0.4}, up=2500, down=1600, phases=phases)
    ax = plots.draw_bytes_by_phase_and_accuracy([row]).figure.axes[0]
    heights = {}
    for line in ax.lines:
        for end, height in zip(line.get_xdata(), line.get_ydata(), strict=True):
            heights[end] = height
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert heights[1000] == ax.get_yticks()[names.index("initial model")]
    assert heights[2000] == ax.get_yticks()[names.index("local models")]
    middle = ax.get_yticks()[names.index("aggregator")]
    assert heights[500] + heights[600] == pytest.approx(2 * middle) and heights[500] != heights[600]
