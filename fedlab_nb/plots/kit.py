"""The building blocks of pictures: functions that take numbers and labels, and draw them into axes.

AccuracyBars(ax, rows).update(rows)                                      one bar per `MethodResults`
draw_lines_with_bands_and_make_labels(ax, {label: {x: {seed: share}}})   means over a number, with 95 % bands
draw_accuracy_against_bytes_points(ax, rows)                             a named point for each `MethodResults`
draw_stacked_bars_and_get_ends(ax, {label: {part: size}}, …)             bars of parts, such as bytes
draw_heat_map(ax, values)                                                a table in colours
draw_client_class_heat_map(ax, values, …)                                the same for a table of clients and classes
draw_image_rows(ax, [(label, images), …])                                rows of small images
describe_picture(figure, title, setting, sentence, table)                the `Picture`, with its alt text
make_blank_picture(text, setting=…)                                      a picture whose text says what to do to get one
"""

import itertools
import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke

from ..studies.statistics import Band, compute_band
from ..value_types import Accuracy0To1
from .array_types import (
    ClientClassValues,
    ColourPixels,
    HeatMapValues,
    PixelArray,
    Recording,
    SampleArray,
)
from .identity import ColourMarkerLine, choose_distinct_looks, shorten_method_title
from .marks import attach_hover_text
from .series import MethodResults
from .style import (
    ACCENT,
    FAINT,
    HALVES,
    INK,
    LOCK,
    QUIET,
    SECOND,
    EndLabel,
    Picture,
    choose_font_size_points_for_rows,
    compute_layout_now,
    darken_colour_until_readable,
    draw_colour_bar,
    draw_level_line,
    dress,
    highlight_row_or_column,
    is_frame_narrow,
    list_class_colours,
    make_figure,
    set_class_ticks,
    set_client_x_ticks_and_label,
    set_log_bytes_x_axis,
    set_percent_axis,
    set_y_axis_of_named_rows,
    write_axes_title,
)
from .vector import DARK_ON_BOTH
from .words import (
    SettingCaption,
    capitalize_first_letter,
    format_client_for_title,
    format_percent,
    make_sentence_of_client_names,
)

DOTS = "dots: seeds"
BARS = f"{DOTS}; line: 95 % band of the mean"  # if there are enough seeds for a band
MAX_WRITTEN_COUNT = 12  # with more clients or classes, no numbers are written into a table's cells
MAX_ANSWERING_CELLS = 400  # a larger table of clients and classes has no hover texts in its cells
MAX_CELLS_READ_ALOUD = 60  # a larger table is not read out in an alt text
STRIP_HEIGHT = 0.2  # height of the strip of seeds under a bar, in heights of a row
MIN_TILE_PIXELS = 24  # the least width of a small image, in drawn pixels
TILE_GAP = 2  # drawn pixels between two small images
WORD_HEIGHT = 0.3  # height of a word under a tile, in tiles
GHOST = "#c3cbd2"  # the colour of stored results, as on the stage
# Red, green, blue and opacity of a place without an image.
EMPTY_TILE_COLOUR = (0.5, 0.5, 0.5, 0.14)
# A row has room for at least this many tiles, so that a few tiles do not become too large.
FEW_TILES = 3
# A row of images; None for an empty place.
LabelAndImages = tuple[str, Sequence[SampleArray | None]]
RowAndColumn = tuple[int, int]  # of a tile or a cell, from 0
WordAndColour = tuple[str, str]


# ---------------------------------------------------------------------------------------------------------- in words
def describe_picture(
    figure: Figure | None,
    title: str,
    setting: SettingCaption | str,
    sentence: str,
    table: Sequence[Mapping[str, Any]] = (),
    *,
    detail: str = "",
) -> Picture:
    """Make the `Picture` of a figure.

    Its alt text consists of the title, the setting with the names of clients, the sentence, the
    detail, and the table: row by row if it is short, else its size.

    title:    what is drawn
    sentence: what the picture shows
    detail:   the exact numbers behind the sentence
    """
    rows = [dict(row) for row in table]
    about = f"{title} ({setting})." if setting else f"{title}."
    about += make_sentence_of_client_names(setting)
    parts = [about, sentence, detail, format_table_as_sentence(rows)]
    alt = " ".join(part for part in parts if part)
    return Picture(figure, alt, sentence, rows, detail=detail)


def format_table_as_sentence(table: Sequence[Mapping[str, Any]]) -> str:
    """Format a table for an alt text: 'method FENS, accuracy 87 %.'; of a long table only its size."""
    if not table:
        return ""
    if sum(len(row) for row in table) > MAX_CELLS_READ_ALOUD:
        return f"The table has {len(table)} rows."
    rows = []
    for row in table:
        rows.append(", ".join(f"{name} {value}" for name, value in row.items() if value != ""))
    return "; ".join(rows) + "."


def make_blank_picture(text: str, *, setting: SettingCaption | str) -> Picture:
    """Make a picture with a text in the middle of an empty figure; the text is its sentence, too."""
    with LOCK:
        figure = make_figure()
        style = {"fontsize": 13, "color": QUIET, "linespacing": 1.6}
        figure.text(0.5, 0.5, textwrap.fill(text, 46), ha="center", va="center", **style)
    return replace(describe_picture(figure, "No picture yet", setting, text), waits=True)


# -------------------------------------------------------------------------------------------------------------- bars
class AccuracyBars:
    """One horizontal bar per series: the mean with its 95 % band, below it a strip with a dot for
    each seed, and the numbers at the right edge.

    A series without a result has an empty row, so that nothing moves when the result comes. If it
    has stored results, their band is drawn in grey behind the bar.

    chance_accuracy: the accuracy of guessing, where a dotted line is drawn
    seed:   the seed whose accuracy the bars show instead of the mean
    """

    def __init__(
        self,
        ax: Axes,
        rows: Sequence[MethodResults],
        chance_accuracy: Accuracy0To1 | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        self.ax = ax
        self.seed = seed
        dress(ax, x=self._describe_marks(rows), grid="x", size=9)
        size = choose_font_size_points_for_rows(len(rows))
        self.parts = []
        for place, s in enumerate(rows):
            if s.stored is not None:
                self._draw_stored_band(place, s.stored)
            style: dict[str, Any] = {"alpha": 0.8}
            if s.pinned:
                style = {"alpha": 0.45, "hatch": "////", "edgecolor": "white", "linewidth": 0}
            bar = ax.barh(place - STRIP_HEIGHT / 2, 0, height=0.5, color=s.look.colour, **style)[0]
            span = ax.plot([], [], "|-", color=INK, lw=2, ms=9, mew=1.6, solid_capstyle="butt")[0]
            style = {"color": INK, "ms": 3.6, "mew": 0, "alpha": 0.55, "zorder": 3}
            dots = ax.plot([], [], "o", ls="", clip_on=False, **style)[0]
            style = {"va": "center", "fontsize": size, "color": INK, "clip_on": False}
            text = ax.text(1.02, place, "88.8 ± 0.8", gid="outside", **style)
            self.parts.append((bar, span, dots, text))
        if chance_accuracy:
            draw_level_line(ax, chance_accuracy, axis="x")
        set_y_axis_of_named_rows(ax, [s.two_line_label for s in rows], min_rows=3)
        set_percent_axis(ax, "x", ticks=HALVES)

    def update(self, rows: Sequence[MethodResults], title: str = "Test accuracy") -> None:
        """Show the numbers of these rows. Their number must be the same as before."""
        write_axes_title(self.ax, title)
        self.ax.xaxis.label.set_text(self._describe_marks(rows))
        for place, (s, parts) in enumerate(zip(rows, self.parts, strict=True)):
            bar, span, dots, text = parts
            number = s.accuracy_text if s.accuracies else "…"
            accuracy = s.mean if s.accuracies else 0
            if self.seed is not None:
                accuracy = s.accuracies.get(self.seed, accuracy)
            bar.set_width(accuracy)
            span.set_data(s.band_ends, [place - STRIP_HEIGHT / 2] * len(s.band_ends))
            values = list(s.accuracies.values())
            dots.set_data(values, [place + 0.25 + STRIP_HEIGHT / 2] * len(values))
            attach_hover_text(bar, s.hover_text, method=s.highlight_key)
            if self.seed is not None:
                number = f"{format_percent(accuracy)}  ({number})"
            text.set_text(number)

    def _draw_stored_band(self, row_position: float, stored_band: Band) -> None:
        """Draw the band of stored results behind a bar, a little taller than the bar."""
        low = max(0.0, stored_band.low)
        high = min(1.0, stored_band.high)
        width = max(high - low, 0.008)  # at least so wide that it is visible
        style = {"height": 0.72, "color": GHOST, "lw": 0, "zorder": 0.6}
        self.ax.barh(row_position - STRIP_HEIGHT / 2, width, left=low, **style)

    def _describe_marks(self, rows: Sequence[MethodResults]) -> str:
        """Describe the dots, lines and grey bands; also the bars, unless they are means."""
        text = BARS if any(s.band_ends for s in rows) else DOTS
        stored = [s.stored_about for s in rows if s.stored is not None]
        if stored:
            text += f"; grey: {stored[0]}"
        return text if self.seed is None else f"bar: seed {self.seed}; {text}"


def draw_stacked_bars_and_get_ends(
    ax: Axes,
    sizes_by_row_and_part: Mapping[str, Mapping[str, float]],
    colours_by_part: Mapping[str, str],
    bar_height: float = 0.6,
) -> list[float]:
    """Draw one horizontal bar per row, with its parts one after the other in the order of `colours_by_part`.
    Returns the right end of each bar, in the unit of the sizes.

    sizes_by_row_and_part: {name on the left: {part: size}}, the first row at the top
    """
    ends = [0.0] * len(sizes_by_row_and_part)
    for part, colour in colours_by_part.items():
        sizes = [parts.get(part, 0.0) for parts in sizes_by_row_and_part.values()]
        if any(sizes):
            ax.barh(
                range(len(sizes_by_row_and_part)),
                sizes,
                bar_height,
                left=ends,
                color=colour,
                label=part,
            )
            ends = [end + size for end, size in zip(ends, sizes, strict=True)]
    set_y_axis_of_named_rows(ax, list(sizes_by_row_and_part), min_rows=3)
    return ends


# ------------------------------------------------------------------------------------------------------ lines, points
def draw_lines_with_bands_and_make_labels(
    ax: Axes,
    values_by_label_x_and_seed: Mapping[str, Mapping[float, Mapping[int, float] | Band]],
    looks_by_label: Mapping[str, ColourMarkerLine] | None = None,
    highest_value_or_none: float | None = 1,
) -> list[EndLabel]:
    """Draw means as lines with their 95 % bands, if there are enough seeds for a band. Returns the
    labels of the lines' right ends, for `draw_end_labels`.

    values_by_label_x_and_seed: {label: {x: {seed: share}}}, or a `Band` instead of {seed: share}
    looks_by_label: looks of labels that are not names of methods
    highest_value_or_none: the largest possible value, at which bands end; None if there is none
    """
    ends = []
    looks = {**choose_distinct_looks(values_by_label_x_and_seed), **(looks_by_label or {})}
    for label, (colour, marker, dashes) in looks.items():
        x = sorted(values_by_label_x_and_seed[label])
        values = [values_by_label_x_and_seed[label][place] for place in x]
        bands = [value if isinstance(value, Band) else compute_band(value) for value in values]
        mean = np.array([b.mean for b in bands])
        half_width = np.array([b.half_width if b.is_shown else 0.0 for b in bands])
        low = (mean - half_width).clip(0)
        high = np.minimum(
            mean + half_width, np.inf if highest_value_or_none is None else highest_value_or_none
        )
        ax.fill_between(x, low, high, color=colour, alpha=0.17, lw=0)
        style = {"color": colour, "marker": marker, "ls": dashes, "lw": 1.9, "ms": 5.5}
        ax.plot(x, mean, label=label, **style)
        ends.append(EndLabel(float(mean[-1]), label, colour))
    return ends


def draw_accuracy_against_bytes_points(
    ax: Axes,
    rows: Sequence[MethodResults],
    accuracy_axis_start: Accuracy0To1 = 0.0,
    extra_axis_bytes: Sequence[float] = (),
) -> None:
    """Draw accuracy against `MethodResults.total_bytes` bytes on a log axis: one point per row with band
    and name.

    Pinned rows are hollow. A row without any bytes is at the left edge.

    accuracy_axis_start: accuracy 0–1 at which the axis begins
    extra_axis_bytes:    further bytes that the axis must include
    """
    sorted_rows = sorted(rows, key=lambda s: (s.total_bytes, s.mean))
    size = 9 if len(sorted_rows) <= 10 else 7
    row_looks = choose_distinct_looks({s.highlight_key for s in sorted_rows})
    for s in sorted_rows:
        colour, marker, _ = row_looks[s.highlight_key]
        x = max(s.total_bytes, 1.0)
        ax.plot([x] * len(s.band_ends), s.band_ends, color=colour, lw=1.6, alpha=0.6, zorder=1)
        style = {"ms": size, "color": colour, "mfc": "white" if s.pinned else colour, "mew": 1.6}
        point = ax.plot([x], [s.mean], marker, zorder=3, **style)[0]
        attach_hover_text(point, s.hover_text, method=s.highlight_key)
    axis_bytes = [*(s.total_bytes for s in rows if s.total_bytes), *extra_axis_bytes]
    set_log_bytes_x_axis(ax, axis_bytes or [1e3, 1e6], range_factor=2.5)
    set_percent_axis(ax, "y", 1.03, lowest_share=accuracy_axis_start)
    colours = {key: look.colour for key, look in row_looks.items()}
    write_names_beside_points(ax, sorted_rows, accuracy_axis_start, size, colours)


def write_names_beside_points(
    ax: Axes,
    rows: Sequence[MethodResults],
    accuracy_axis_start: Accuracy0To1,
    font_size_points: float,
    colours_by_method: Mapping[str, str],
) -> None:
    """Write each row's name beside its point, in its colour, where it covers no point, band or
    other name.

    accuracy_axis_start: accuracy 0–1 at which the axis begins
    """
    if is_frame_narrow():
        # In a narrow frame the axis labels take much room, so the layout is needed for the size of the axes.
        compute_layout_now(ax.figure)
    left, right = ax.get_xlim()
    points_of_axes = 72 * ax.get_position().size * ax.figure.get_size_inches()
    # Width of a letter and height of a line. From here on, all lengths are shares of the axes.
    letter, line = font_size_points * np.array([0.62, 1.15]) / points_of_axes
    scale = 1.03 - accuracy_axis_start
    point_positions = []
    occupied_boxes = []
    for s in rows:
        x = math.log(max(s.total_bytes, left) / left) / math.log(right / left)
        y = (s.mean - accuracy_axis_start) / scale
        point_positions.append((x, y))
        occupied_boxes.append(BoxInAxesShares(x - letter, x + letter, y - line / 2, y + line / 2))
    for s, (x, _) in zip(rows, point_positions, strict=True):
        heights = [(end - accuracy_axis_start) / scale for end in s.band_ends]
        if heights:
            occupied_boxes.append(
                BoxInAxesShares(x - letter / 4, x + letter / 4, min(heights), max(heights))
            )
    halo = [withStroke(linewidth=2.5, foreground="white")]  # keeps a name readable over a band
    for s, (x, y) in zip(rows, point_positions, strict=True):
        text = shorten_or_wrap_label(s.name, int(max(x, 1 - x) / letter) - 3)
        lines = text.split("\n")
        name_width = letter * (1 + max(len(words) for words in lines))
        side, middle = place_label_beside_point_and_add_its_box(
            occupied_boxes, x, y, name_width, line * len(lines), 1.4 * letter
        )
        ax.text(
            x + 1.6 * side * letter,
            middle,
            text,
            fontsize=font_size_points,
            color=darken_colour_until_readable(colours_by_method[s.highlight_key]),
            va="center",
            ha="left" if side > 0 else "right",
            linespacing=0.95,
            transform=ax.transAxes,
            path_effects=halo,
            zorder=2,
        )


class BoxInAxesShares(NamedTuple):
    """A rectangle on axes, in shares of their width and height."""

    left: float
    right: float
    low: float
    high: float


class LabelPlace(NamedTuple):
    """The place of a name beside its mark.

    side:   1 for the right, -1 for the left
    middle: the height of the middle of the name
    """

    side: int
    middle: float


def place_label_beside_point_and_add_its_box(
    taken_boxes: list[BoxInAxesShares],
    x: float,
    y: float,
    width: float,
    height: float,
    distance: float,
) -> LabelPlace:
    """Find a place for a name beside the mark at (x, y), where it overlaps none of `taken_boxes`,
    and add its box to them. All numbers are shares of the axes.

    width, height: of the name
    distance: from the mark to the name
    """
    first_side = 1 if x <= 0.5 else -1
    sides = (first_side, -first_side)
    for middle, side in itertools.product(list_candidate_heights(y, height / 4), sides):
        ends = (x + side * distance, x + side * (distance + width))
        box = BoxInAxesShares(min(ends), max(ends), middle - height / 2, middle + height / 2)
        is_inside = box.low >= 0 and box.high <= 1
        if side != first_side:
            is_inside = is_inside and box.left >= 0 and box.right <= 1
        if is_inside and not any(has_overlap(box, other) for other in taken_boxes):
            break
    taken_boxes.append(box)
    return LabelPlace(side, middle)


def list_candidate_heights(preferred_height: float, step: float) -> list[float]:
    """List heights to try, the nearest to `preferred_height` first."""
    heights = []
    for number in range(80):
        heights += [preferred_height + number * step, preferred_height - number * step]
    return heights


def has_overlap(first_box: BoxInAxesShares, second_box: BoxInAxesShares) -> bool:
    """Whether two boxes have a point in common."""
    is_beside = first_box.right <= second_box.left or second_box.right <= first_box.left
    is_above_or_below = first_box.high <= second_box.low or second_box.high <= first_box.low
    return not is_beside and not is_above_or_below


def shorten_or_wrap_label(name: str, max_letters: int) -> str:
    """Shorten a name that is longer than `max_letters`: 'FedAvg' for 'FedAvg, one round'. If it is
    still too long, wrap it to several lines.
    """
    if len(name) <= max_letters:
        return name
    return textwrap.fill(shorten_method_title(name), max(max_letters, 8))


# ------------------------------------------------------------------------------------------------------------- tables
def draw_heat_map(
    ax: Axes,
    values: HeatMapValues,
    *,
    largest_value: float = 1.0,
    is_symmetric_around_zero: bool = False,
    format_cell: Callable[[float], str] | None = None,
    written_values: HeatMapValues | None = None,
    font_size: float = 8.5,
) -> AxesImage:
    """Draw a table `[rows, columns]` in colours from 0 to `largest_value`; return the image, for a
    colour bar.

    Zero is white in every table, and larger values are bluer, so that two tables can be compared.
    nan is grey.

    is_symmetric_around_zero: whether the colours begin at minus `largest_value`, and are orange below zero
    format_cell: formats the number that is written into a cell; None writes no numbers
    written_values: numbers to write in place of the values
    """
    steps = [SECOND, "white", ACCENT] if is_symmetric_around_zero else ["white", ACCENT]
    colours = LinearSegmentedColormap.from_list("table", steps).with_extremes(bad=FAINT)
    image = ax.imshow(
        values,
        cmap=colours,
        vmin=-largest_value if is_symmetric_around_zero else 0,
        vmax=largest_value,
        aspect="auto",
        interpolation="nearest",
    )
    if format_cell is not None:
        numbers = values if written_values is None else written_values
        for i, j in np.argwhere(np.isfinite(values)):
            colour = choose_letter_colour(abs(values[i, j]) / largest_value)
            style = {"ha": "center", "va": "center", "fontsize": font_size, "color": colour}
            ax.text(j, i, format_cell(numbers[i, j]), **style)
    ax.tick_params(length=0, labelsize=9, labelcolor=INK)
    ax.spines[:].set_visible(False)
    return image


def choose_letter_colour(strength: float) -> str:
    """Choose the colour of letters on a cell of a heat map. strength: of the cell's colour, 0 (the page's) to 1

    On a dark page strong colours are light, so letters on middling ones must be dark on both pages.
    """
    if strength < 0.56:
        return INK
    if strength < 0.9:
        return DARK_ON_BOTH
    return "white"


def attach_hover_texts_to_heat_map_cells(
    ax: Axes, says_and_keys_by_cell: Mapping[RowAndColumn, Mapping[str, Any]]
) -> None:
    """Give cells of a heat map hover texts.

    says_and_keys_by_cell: {(row, column): {"says": hover text, and the mark keys of `attach_hover_text`}}
    """
    boxes = [Rectangle((column - 0.5, row - 0.5), 1, 1) for row, column in says_and_keys_by_cell]
    shapes = PatchCollection(boxes, facecolor=(1, 1, 1, 0), edgecolor="none", zorder=4)
    ax.add_collection(shapes, autolim=False)
    texts = [cell.get("says") for cell in says_and_keys_by_cell.values()]
    names = set[str]()
    for cell in says_and_keys_by_cell.values():
        names.update(cell)
    names.discard("says")
    keys = {}
    for name in sorted(names):
        keys[name] = [cell.get(name) for cell in says_and_keys_by_cell.values()]
    attach_hover_text(shapes, texts, **keys)


def make_number_format_without_zero(number_format: str) -> Callable[[float], str]:
    """Make a number format for narrow tables that omits a zero, and the zero before a decimal
    point.
    """

    def write_number(value: float) -> str:
        label = re.sub(r"^(-?)0\.", r"\1.", number_format.format(value))
        return label if label.strip("+-0.") else ""

    return write_number


def draw_client_class_heat_map(
    ax: Axes,
    values: ClientClassValues,
    class_names: Sequence[str],
    title: str,
    largest_value: float,
    *,
    number_format: str = "{:.0f}",
    is_symmetric_around_zero: bool = False,
    has_ring_at_class_maximum: bool = False,
    selected_client: int | None = None,
    selected_class_index: int | None = None,
    setting: SettingCaption | str = "",
    has_class_names: bool = True,
) -> AxesImage:
    """Draw a heat map of a table `[M, C]` with one column per client; return the image. nan is
    grey.

    largest_value, is_symmetric_around_zero: as for `draw_heat_map`
    number_format: format of the numbers in the cells; a table with many cells has a colour bar instead
    has_ring_at_class_maximum: whether a ring marks the largest value of each class
    selected_client, selected_class_index: their column and row get a frame
    setting: the setting that names the clients
    has_class_names: whether the classes are named; of two tables side by side only the left one names them
    """
    clients, classes = values.shape
    has_numbers = max(values.shape) <= MAX_WRITTEN_COUNT
    form = make_number_format_without_zero(number_format) if has_numbers else None
    image = draw_heat_map(
        ax,
        values.T,
        largest_value=largest_value,
        is_symmetric_around_zero=is_symmetric_around_zero,
        format_cell=form,
        font_size=8,
    )
    write_axes_title(ax, title, 6)
    if has_class_names and not has_numbers:
        draw_colour_bar(image, ax)
    set_client_x_ticks_and_label(ax, clients, setting, max_single_ticks=12)
    set_class_ticks(
        ax,
        class_names if has_class_names else [""] * classes,
        "y",
        max_letters=9,
        max_single_ticks=26,
    )
    ax.set_ylabel("class" if has_class_names else "", fontsize=10, color=QUIET)
    ax.tick_params(labelsize=9.5 if classes <= 12 else 8)
    if has_ring_at_class_maximum:
        draw_rings_round_class_maxima(ax, values)
    if values.size <= MAX_ANSWERING_CELLS:
        attach_hover_texts_with_clients_in_columns(ax, values, class_names, number_format, setting)
    highlight_row_or_column(ax, selected_client, clients, has_frame=True, colour=SECOND)
    highlight_row_or_column(ax, selected_class_index, classes, "y", has_frame=True, colour=SECOND)
    return image


def attach_hover_texts_with_clients_in_columns(
    ax: Axes,
    values: ClientClassValues,
    class_names: Sequence[str],
    number_template_with_braces: str,
    setting: SettingCaption | str,
) -> None:
    """Give the cells of a table `[M, C]`, drawn with one column per client, hover texts."""
    cells = {}
    for k, row in enumerate(values):
        client_title = capitalize_first_letter(format_client_for_title(k, setting))
        for c, value in enumerate(row):
            hover_text = f"{client_title}, class {class_names[c]}\n{number_template_with_braces.format(value)}"
            if np.isnan(value):
                hover_text = f"{client_title}, class {class_names[c]}\nnothing is known"
            cells[c, k] = {"says": hover_text, "client": k, "class_index": c}
    attach_hover_texts_to_heat_map_cells(ax, cells)


def draw_rings_round_class_maxima(ax: Axes, values: ClientClassValues) -> None:
    """Draw a ring round the largest value of each class in a table `[M, C]`, unless all are equal."""
    for c, column in enumerate(values.T):
        known_values = column[np.isfinite(column)]
        if len(known_values) and np.ptp(known_values) > 1e-9:
            corner = (int(np.nanargmax(column)) - 0.46, c - 0.44)
            ax.add_patch(Rectangle(corner, 0.92, 0.88, fill=False, edgecolor=INK, lw=1.5))


# ------------------------------------------------------------------------------------------------------------- images
def draw_image_rows(
    ax: Axes,
    rows: Sequence[LabelAndImages],
    *,
    column_names: Sequence[str] = (),
    words_under_tiles: Mapping[RowAndColumn, WordAndColour] | None = None,
    selected_column: int | None = None,
) -> None:
    """Draw rows of small images, each row with its label at the left.

    An image is `[C, H, W]` in [0, 1]; recordings `[C, T]` are drawn as lines, features `[D]` as a
    strip, and None leaves the place empty. In upright axes a long row is broken into two or three
    bands, one below the other, so that the tiles become larger.

    column_names:      a name under each column
    words_under_tiles: {(row, column): (word, colour)}
    selected_column:   the column that gets a frame
    """
    words_under_tiles = words_under_tiles or {}
    grid = TileGrid(ax, rows, column_names, words_under_tiles)
    for row, (_, images) in enumerate(rows):
        for start in grid.band_starts:
            draw_band_of_tiles(ax, images[start : start + grid.band_columns], grid, row, start)
    has_recordings = any(image.ndim == 2 for image in list_images_of_rows(rows))
    if not has_recordings:
        keep_image_colours_on_dark_page(ax)
    for (row, column), (word, colour) in words_under_tiles.items():
        left, top = grid.find_left_and_top_in_tiles(row, column)
        middle = top + grid.height + WORD_HEIGHT / 2
        style = {"ha": "center", "va": "center", "fontsize": 9, "color": colour}
        ax.text(left + grid.half_width, middle, word, **style)
    for column, name in enumerate(column_names):
        left, top = grid.find_left_and_top_in_tiles(0, column)
        style = {"ha": "center", "va": "top", "fontsize": 10, "color": INK}
        ax.text(left + grid.half_width, top + grid.rows_height + 0.04, name, **style)
    middles = []
    for start in grid.band_starts:
        for row in range(len(rows)):
            middles.append(grid.find_left_and_top_in_tiles(row, start)[1] + grid.height / 2)
    labels = [label for label, _ in rows]
    labels += [""] * (len(middles) - len(labels))  # further bands have the same rows
    ax.set_yticks(middles, labels)
    ax.set(
        xticks=[],
        xlim=(-0.08, max(grid.band_columns, grid.least_columns)),
        ylim=(len(grid.band_starts) * grid.band_height, -0.08),
        aspect="equal",
        anchor="W",
    )
    ax.tick_params(length=0, labelsize=10, labelcolor=INK)
    ax.spines[:].set_visible(False)
    if selected_column is not None and selected_column < grid.columns:
        left, top = grid.find_left_and_top_in_tiles(0, selected_column)
        size = (2 * grid.half_width + 0.08, grid.rows_height + 0.08)
        style = {"fill": False, "ec": ACCENT, "lw": 2.5, "zorder": 3}
        ax.add_patch(Rectangle((left - 0.04, top - 0.04), *size, **style))


def list_images_of_rows(rows: Sequence[LabelAndImages]) -> list[SampleArray]:
    """List the images of all rows, without the empty places."""
    all_images = []
    for _, images in rows:
        all_images += [image for image in images if image is not None]
    return all_images


class TileGrid:
    """The positions of the tiles of `draw_image_rows`. The unit is the width of a tile with its
    gap; y points down.

    Rows are drawn in one to three bands, one below the other.

    columns:      number of columns of all images
    band_columns: number of columns in a band
    band_starts:  the first column of each band
    height:       of a tile
    half_width:   half the width of a tile
    rows_height:  height of all rows of a band
    band_height:  height of a band, with the names below it
    shape:        drawn pixels of a tile: height, width and channels
    pitch:        drawn pixels from one tile to the next
    """

    def __init__(
        self,
        ax: Axes,
        rows: Sequence[LabelAndImages],
        column_names: Sequence[str],
        words_under_tiles: Mapping[RowAndColumn, WordAndColour],
    ) -> None:
        self.shape: tuple[int, ...] = (MIN_TILE_PIXELS, MIN_TILE_PIXELS, 1)
        images = list_images_of_rows(rows)
        if images:
            self.shape = render_tile_pixels(images[0]).shape
        self.columns = max(1, *(len(row) for _, row in rows))
        gap = round(TILE_GAP * self.shape[1] / MIN_TILE_PIXELS)
        self.pitch = self.shape[1] + gap
        self.height = self.shape[0] / self.pitch
        self.half_width = 0.5 * self.shape[1] / self.pitch
        self._row_step = self.height + (WORD_HEIGHT if words_under_tiles else gap / self.pitch)
        self.rows_height = (len(rows) - 1) * self._row_step + self.height
        has_words_under_last_row = any(row == len(rows) - 1 for row, _ in words_under_tiles)
        if has_words_under_last_row:
            self.rows_height += WORD_HEIGHT
        lines = max((name.count("\n") + 1.5 for name in column_names), default=0.5)
        self.band_height = self.rows_height + WORD_HEIGHT * lines
        self.least_columns = FEW_TILES - is_frame_narrow()
        self.band_columns = self._choose_band_columns(ax)
        self.band_starts = range(0, self.columns, self.band_columns)

    def _choose_band_columns(self, ax: Axes) -> int:
        """Choose the number of columns in a band, so that one, two or three bands make the tiles
        largest.

        More bands are chosen only if they make the tiles clearly larger: each one counts as a loss
        of 15 %.
        """
        width, height = ax.figure.get_size_inches() * ax.get_position().size
        best_columns = self.columns
        best_size = 0.0
        for bands in (1, 2, 3):
            columns = math.ceil(self.columns / bands)
            tile = min(
                width / max(self.least_columns, columns), height / (bands * self.band_height)
            )
            size = 0.85**bands * tile
            if size > best_size:
                best_columns = columns
                best_size = size
        return best_columns

    def find_left_and_top_in_tiles(self, row: int, column: int) -> tuple[int, float]:
        """Find the left and the upper end of a tile."""
        band, place = divmod(column, self.band_columns)
        return place, band * self.band_height + row * self._row_step


def draw_band_of_tiles(
    ax: Axes, images: Sequence[SampleArray | None], grid: TileGrid, row: int, first_column: int
) -> None:
    """Draw the tiles of a row in one band, from column `first_column` on, as one image that is
    transparent between tiles.
    """
    page = np.zeros((grid.shape[0], grid.band_columns * grid.pitch, 4))
    for place, image in enumerate(images):
        left = place * grid.pitch
        tile = page[:, left : left + grid.shape[1]]
        if image is None or np.isnan(image).any():
            tile[:] = EMPTY_TILE_COLOUR
        else:
            tile[..., :3] = render_tile_pixels(image)
            tile[..., 3] = 1
    top = grid.find_left_and_top_in_tiles(row, first_column)[1]
    extent = (0, grid.band_columns, top + grid.height, top)
    ax.imshow(page, extent=extent, interpolation="nearest")


def keep_image_colours_on_dark_page(ax: Axes) -> None:
    """Keep the colours of these axes' images on a dark page; those of a heat map are made dark."""
    ax.set_gid(f"photos-{ax.figure.axes.index(ax)}")


def render_tile_pixels(image: SampleArray) -> PixelArray:
    """Render an image of `draw_image_rows` as drawn pixels `[h, w, 1 or 3]`. Small images are
    enlarged.

    Features become a strip in which large values are light. A recording becomes a line for each
    channel.
    """
    if image.ndim == 1:
        low = float(image.min())
        span = float(np.ptp(image)) or 1.0
        return np.repeat(((image - low) / span)[:, None, None], len(image), 1)
    if image.ndim == 2:
        return render_recording_pixels(image)
    channels = image if len(image) in (1, 3) else image[:1]
    dots = np.moveaxis(np.clip(channels, 0, 1), 0, -1)
    times = max(1, math.ceil(MIN_TILE_PIXELS / dots.shape[1]))
    return dots.repeat(times, 0).repeat(times, 1)


def render_recording_pixels(
    recording: Recording, height_pixels: int = 4 * MIN_TILE_PIXELS
) -> ColourPixels:
    """Render a recording `[C, T]` as pixels `[height, T, 3]`: one line and colour per channel, all
    on one scale.
    """
    dots = np.ones((height_pixels, recording.shape[1], 3))
    low = float(recording.min())
    span = float(np.ptp(recording)) or 1.0
    rows = np.rint((1 - (recording - low) / span) * (height_pixels - 1)).astype(int)  # [C, T]
    # At each step a line reaches from the height one step ago to the present one, so that it has no gaps.
    previous_rows = np.concatenate([rows[:, :1], rows[:, :-1]], axis=1)
    places = np.arange(height_pixels)[:, None]
    for c, colour in enumerate(list_class_colours(len(recording))):
        top = np.minimum(rows[c], previous_rows[c])
        bottom = np.maximum(rows[c], previous_rows[c])
        dots[(top <= places) & (places <= bottom)] = to_rgb(colour)
    return dots
