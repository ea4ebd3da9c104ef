"""Every picture: image, texts and table, for usual data and extreme cases, whatever a person's own settings are."""

from __future__ import annotations

import functools
import io
import math
import re
from concurrent.futures import ThreadPoolExecutor
from html import escape
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
from matplotlib.collections import Collection
from matplotlib.colors import same_color, to_hex, to_rgb
from matplotlib.lines import Line2D
from matplotlib.markers import MarkerStyle
from matplotlib.patches import Patch
from matplotlib.text import Text

from fedlab_nb import plots
from fedlab_nb.plots import FeatureMap, MethodResults, PartitionPicture
from fedlab_nb.plots.accuracy import draw_accuracy_bars_of_seed
from fedlab_nb.plots.method_map import draw_method_map
from fedlab_nb.plots.style import (
    READABLE,
    compute_contrast_with_white,
    draw_light_dark_svg_element,
    list_class_colours,
)
from fedlab_nb.plots.vector import GREY, convert_hex_to_oklch

PNG = b"\x89PNG\r\n\x1a\n"
DIGITS = tuple("0123456789")


def make_method_results(label="FENS", accuracies=None, **more):
    accuracies = {0: 0.8, 1: 0.84, 2: 0.88} if accuracies is None else accuracies
    curve = [
        {"phase": "local training", "progress": 0.25, "accuracy": 0.2, "bytes": 1},
        {"phase": "local training", "progress": 0.5, "accuracy": 0.3, "bytes": 1},
        {"phase": "end", "progress": 1.0, "accuracy": 0.8, "bytes": 9},
    ]
    rng = np.random.default_rng(1)
    values = {
        "setting": "digits, α = 0.1, 4 clients", "up": 2e5, "down": 3e5, "curves": [curve],
        "phases": {"initial model": (0.0, 1e5), "local models": (2e5, 0.0), "ensemble": (0.0, 2e5)},
        "per_class": {s: rng.uniform(0, 1, 10).tolist() for s in accuracies},
        "per_client": {s: rng.uniform(0, 1, 4).tolist() for s in accuracies},
        **more,
    }  # fmt: skip
    return MethodResults(label, accuracies=accuracies, **values)


def draw_counts(clients=4, classes=10, seed=0):
    return np.random.default_rng(seed).integers(0, 30, (clients, classes))


def make_federation(table, names):
    """Make what the pictures read of a `Federation`."""
    skew = SimpleNamespace(jensen_shannon=0.5, effective_classes=3.2)
    dataset = SimpleNamespace(name="digits", class_names=tuple(names), input_shape=(1, 8, 8))
    return SimpleNamespace(label_counts=table, dataset=dataset, skew=skew, note="", whole=None)


def draw_who_holds_what(table=None, names=DIGITS, picture=None, **more):
    federation = make_federation(draw_counts() if table is None else table, names)
    return (picture or PartitionPicture()).show(federation, setting="digits, α = 0.1", **more)


def draw_every_picture():
    rows = [
        make_method_results("FedAvg", {0: 0.3, 1: 0.35}),
        make_method_results(),
        make_method_results("Local", {0: 0.2}, bound=True),
    ]
    rng = np.random.default_rng(0)
    maps = [
        FeatureMap(
            f"m{i}", rng.normal(size=(30, 2)), rng.integers(0, 10, 30), 0.5 + i / 10, "t-SNE"
        )
        for i in range(3)
    ]
    return {
        "partition": draw_who_holds_what(selected_client=2),
        "accuracy": plots.draw_accuracy_bars_and_curves(rows, chance_accuracy=0.1),
        "beside": draw_who_holds_what(stored_bars_beside_it=(rows, "Test accuracy")),
        "communication": plots.draw_bytes_by_phase_and_accuracy(rows),
        "classes": plots.draw_class_and_client_accuracies(rows, DIGITS, marked_client_index=1, marked_class_index=3),
        "one": draw_accuracy_bars_of_seed(rows[:2], 0),
        "features": plots.draw_feature_maps(maps, DIGITS, setting="digits, α = 0.1"),
    }  # fmt: skip


@pytest.mark.slow
def test_every_picture_has_alt_text_with_its_setting_a_sentence_and_a_table():
    for name, picture in draw_every_picture().items():
        assert plots.render_picture_png(picture).startswith(PNG), name
        assert "digits, α = 0.1" in picture.alt and len(picture.alt) > 60, name
        assert picture.sentence.endswith(".") and picture.sentence in repr(picture), name
        assert picture.table and all(isinstance(row, dict) for row in picture.table), name
        data, metadata = picture._repr_mimebundle_()
        assert data["text/plain"] == picture.sentence
        assert metadata["image/png"]["alt"] == picture.alt
        assert data["text/html"].startswith(f'<img alt="{escape(picture.alt)}"'), name


# What a person may have set for pictures of their own; usetex stops where there is no LaTeX.
STYLES = [
    {"text.usetex": True},
    {"font.size": 30, "font.family": "monospace", "text.color": "red", "mathtext.fontset": "stix"},
    {"axes.grid": True, "axes.facecolor": "black", "lines.linewidth": 9, "axes.spines.top": False},
    {"savefig.dpi": 20, "figure.dpi": 20, "savefig.facecolor": "red", "svg.fonttype": "path"},
    {
        "xtick.direction": "in",
        "ytick.labelsize": 30,
        "legend.frameon": True,
        "figure.autolayout": True,
    },
    {"axes.formatter.use_locale": True, "path.sketch": (1, 100, 2), "axes.xmargin": 0.4},
]


def write_every_picture():
    """Write all pictures as files, as PNG and as SVG, and one as a panel shows it."""
    pictures = draw_every_picture()
    files = []
    for picture in pictures.values():
        files += [
            remove_dates(plots.render_picture_png(picture)),
            remove_dates(plots.render_picture_svg(picture)),
        ]
    return files, draw_light_dark_svg_element(pictures["accuracy"].figure)


@functools.cache
def write_usual_pictures():
    """Write all pictures once for all styles, as it takes a second."""
    return write_every_picture()


@pytest.mark.slow
@pytest.mark.parametrize("style", STYLES, ids=lambda style: next(iter(style)))
def test_a_person_s_own_matplotlib_settings_change_no_picture(style):
    """Slow because fourteen files are drawn in each style."""
    usual = write_usual_pictures()
    with matplotlib.rc_context(style):
        before = dict(matplotlib.rcParams)
        assert write_every_picture() == usual
        assert dict(matplotlib.rcParams) == before


def remove_dates(file):
    """Return a picture's bytes, without the date and the random ids of an SVG."""
    text = re.sub(rb"<dc:date>.*?</dc:date>", b"", file)
    return re.sub(rb"[0-9a-f]{10,}", b"", text) if text.startswith(b"<?xml") else text


def render_pixels(picture):
    """Render what a person sees: colours `[H, W, 3]`, each from 0 to 1."""
    return matplotlib.image.imread(io.BytesIO(plots.render_picture_png(picture)))[:, :, :3]


def describe_artist(artist):
    """Describe where an artist is, in the numbers of its axes, and its colours or words."""
    if isinstance(artist, Patch):
        corners = artist.get_patch_transform().transform(artist.get_path().vertices)
        return corners.tolist(), artist.get_facecolor(), artist.get_edgecolor()
    if isinstance(artist, Collection):
        sizes = artist.get_sizes().tolist() if hasattr(artist, "get_sizes") else []
        return artist.get_offsets().tolist(), sizes, artist.get_facecolors().tolist()
    if isinstance(artist, Line2D):
        return artist.get_xydata().tolist(), artist.get_color()
    return artist.get_text(), artist.get_position(), artist.get_color()


def describe_drawing(picture):
    """Describe all that is visible in the axes of a picture, in the order in which it is drawn."""
    shown = []
    for axes in picture.figure.axes:
        labels = [label.get_text() for label in (*axes.get_xticklabels(), *axes.get_yticklabels())]
        shown.append((axes.get_title(), axes.get_xlabel(), axes.get_ylabel(), labels))
        shown.append((axes.get_xlim(), axes.get_ylim()))
        for artist in (*axes.patches, *axes.collections, *axes.lines, *axes.texts):
            if artist.get_visible():
                shown.append((type(artist).__name__, describe_artist(artist)))
    return shown


@pytest.mark.slow
def test_redrawing_in_place_gives_the_picture_of_a_fresh_one():
    """The artists have the same numbers, and the pixels are nearly the same.

    Some versions of matplotlib move a letter that is drawn again by a part of a pixel. Another federation changes ten
    times as much.
    """
    redrawn = PartitionPicture()
    plots.render_picture_png(draw_who_holds_what(draw_counts(seed=0), picture=redrawn))
    other_pixels = render_pixels(draw_who_holds_what(draw_counts(seed=0)))
    for seed, client in ((1, None), (2, 3), (3, 2), (1, None)):
        redrawn_picture = draw_who_holds_what(
            draw_counts(seed=seed), picture=redrawn, selected_client=client
        )
        fresh = draw_who_holds_what(draw_counts(seed=seed), selected_client=client)
        assert describe_drawing(redrawn_picture) == describe_drawing(fresh)
        fresh_pixels = render_pixels(fresh)
        difference = np.abs(render_pixels(redrawn_picture) - fresh_pixels).mean()
        assert difference < 0.1 * np.abs(other_pixels - fresh_pixels).mean()


@pytest.mark.slow
def test_threads_do_not_disturb_each_other():
    def draw_both(i):
        partition = draw_who_holds_what(draw_counts(seed=i % 3))
        accuracy = plots.draw_accuracy_bars_and_curves([make_method_results(f"m{i % 3}")])
        return plots.render_picture_png(partition), plots.render_picture_png(accuracy)

    expected = [draw_both(i) for i in range(3)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(draw_both, range(6))) == expected * 2


@pytest.mark.parametrize(("clients", "classes"), [(1, 1), (50, 2), (50, 100), (3, 27)])
def test_partitions_of_any_shape(clients, classes):
    picture = draw_who_holds_what(draw_counts(clients, classes), [str(c) for c in range(classes)])
    assert plots.render_picture_png(picture).startswith(PNG) and len(picture.table) == clients
    assert picture.table[0]["samples"] == draw_counts(clients, classes)[0].sum()


@pytest.mark.slow
def test_dots_stay_within_their_cells():
    for clients in (1, 5, 10, 50):
        picture = PartitionPicture()
        draw_who_holds_what(np.full((clients, 10), 7), picture=picture)
        plots.render_picture_png(picture.figure)
        axes = picture._artists.lower
        dots = picture._artists.dots
        # In points, of which an inch has 72.
        cell = (
            min(np.ptp(axes.transData.transform([(0, 0), (1, 1)]), axis=0))
            / picture.figure.dpi
            * 72
        )
        diameter = 2 * math.sqrt(dots.get_sizes().max() / math.pi)
        assert 0.5 * min(cell, 38) < diameter <= 1.02 * cell


@pytest.mark.slow
@pytest.mark.parametrize(
    "draw",
    [
        plots.draw_accuracy_bars_and_curves,
        plots.draw_bytes_by_phase_and_accuracy,
        lambda s: plots.draw_class_and_client_accuracies(s, DIGITS),
    ],
)
@pytest.mark.parametrize("rows", [0, 30])
def test_result_pictures_of_any_number_of_rows(draw, rows):
    picture = draw(
        [
            make_method_results(f"Method {i}", pinned=i % 2 == 1, detail="run 1" * (i % 2))
            for i in range(rows)
        ]
    )
    assert plots.render_picture_png(picture).startswith(PNG) and picture.sentence


def test_rows_without_a_result_have_no_number():
    waiting = make_method_results("FedLPA", {}, phases={}, per_class={}, per_client={})
    free = make_method_results("Local", up=0.0, down=0.0, phases={})
    for picture in (
        plots.draw_accuracy_bars_and_curves([make_method_results(), waiting]),
        plots.draw_bytes_by_phase_and_accuracy([make_method_results(), waiting, free]),
    ):
        assert "FedLPA" not in picture.sentence
        assert plots.render_picture_png(picture).startswith(PNG)


def test_the_points_of_a_class_have_the_colour_and_the_mark_that_the_legend_says():
    maps = [FeatureMap("m", np.arange(8.0).reshape(4, 2), np.array([7, 2, 7, 2]), 0.5)]
    figure = plots.draw_feature_maps(maps, DIGITS, setting="").figure
    handles = figure.legends[0].legend_handles
    for c, points in zip((2, 7), figure.axes[0].collections, strict=True):
        assert same_color(points.get_facecolor()[0, :3], handles[c].get_color())
        assert same_color(handles[c].get_color(), list_class_colours(10)[c])
        assert len(points.get_paths()[0]) == len(MarkerStyle(handles[c].get_marker()).get_path())
        assert points.get_offsets().tolist() == maps[0].points[maps[0].labels == c].tolist()


def test_classes_without_a_test_sample_are_empty_and_not_0():
    row = make_method_results(per_class={0: [None] + [0.5] * 9, 1: [None] + [0.7] * 9})
    picture = plots.draw_class_and_client_accuracies([row], DIGITS)
    assert picture.table[0]["class 0"] == "" and picture.table[0]["class 1"] == "60 %"
    assert picture.table[0]["balanced accuracy"] == "60 %" and "AUC" not in picture.table[0]
    assert plots.render_picture_png(picture).startswith(PNG)


def list_coloured_letters(picture):
    """List {text: colour} of a picture's letters that have a hue; those on squares are black or white."""
    colours = {}
    for text in picture.figure.findobj(Text):
        colour = to_hex(text.get_color())
        if text.get_text().strip() and convert_hex_to_oklch(colour)[1] > GREY:
            colours[text.get_text()] = colour
    return colours


def test_letters_that_have_a_hue_can_be_read_on_white():
    pictures = {**draw_every_picture(), "map": draw_method_map(["fens", "fedavg"])}
    coloured = {name: list_coloured_letters(picture) for name, picture in pictures.items()}
    for name in ("accuracy", "communication", "map"):
        assert coloured[name], name
    for name, letters in coloured.items():
        for text, colour in letters.items():
            contrast = compute_contrast_with_white(*to_rgb(colour))
            assert contrast >= READABLE, (name, text, colour, contrast)
