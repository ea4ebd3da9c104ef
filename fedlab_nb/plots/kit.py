"""The kit for pictures: each part takes numbers and labels, and draws them into the axes that it gets.

Bars(ax, rows).update(rows)                     a bar a `Series`: mean, 95 % band, a dot a seed
draw_lines(ax, {label: {x: {seed: share}}})     means over a number with 95 % bands
draw_points(ax, rows)                           accuracy against bytes: a named point a `Series`
draw_stacked_bars(ax, {label: {part: size}}, …) bars of parts, such as bytes
draw_heat_map(ax, values)                       a table in colours; `draw_clients_and_classes`: of those two
draw_image_rows(ax, [(label, images), …])       rows of small images
describe_picture(figure, title, setting, sentence, table)   the `Picture`, with an alt text made from these
make_blank_picture(text, setting=…)             a picture that says what to do so that there will be one
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

from ..studies.statistics import Band, band
from .identity import Look, looks, shorten_title
from .series import Series
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
    class_colours,
    draw_colour_bar,
    draw_level_line,
    dress,
    heading,
    is_narrow,
    mark_place,
    new_figure,
    row_font_size,
    set_bytes_axis,
    set_class_ticks,
    set_client_axis,
    set_percent_axis,
    set_row_axis,
    settle_layout,
)
from .vector import mark
from .words import Setting, describe_known_clients, percent

DOTS = "dots: seeds"
BARS = f"{DOTS}; line: 95 % band of the mean"  # where there are seeds enough for one
MOST_WRITTEN = 12  # clients or classes whose numbers are written into the cells of a table
MOST_READ_CELLS = 60  # of a table that an alt text reads out
STRIP = 0.2  # height of the strip of seeds under a bar, where the place of a row is 1
TILE = 24  # dots across a small image, at least
GAP = 2  # dots between two of them
WORD = 0.3  # height of a word under a tile, in tiles
EMPTY = (0.5, 0.5, 0.5, 0.14)  # colour of a place without an image
FEW_TILES = 3  # for which a row has room at least, so that few do not become large


# ---------------------------------------------------------------------------------------------------------- in words
def describe_picture(
    figure: Figure | None,
    title: str,
    setting: Setting | str,
    sentence: str,
    table: Sequence[Mapping[str, Any]] = (),
    *,
    detail: str = "",
) -> Picture:
    """The picture of a figure. Its alt text: the title (what is drawn), the setting and whom it knows by name, the
    sentence, its detail, and the table row by row, where that is short enough to be listened to.
    """
    rows = [dict(row) for row in table]
    about = f"{title} ({setting})." if setting else f"{title}."
    about += describe_known_clients(setting)
    parts = [about, sentence, detail, read_table_aloud(rows)]
    alt = " ".join(part for part in parts if part)
    return Picture(figure, alt, sentence, rows, detail=detail)


def read_table_aloud(table: Sequence[Mapping[str, Any]]) -> str:
    """[{"method": "FENS", "accuracy": "87 %"}] -> 'method FENS, accuracy 87 %.'; of a long table its size."""
    if not table:
        return ""
    if sum(len(row) for row in table) > MOST_READ_CELLS:
        return f"The table has {len(table)} rows."
    rows = []
    for row in table:
        rows.append(", ".join(f"{name} {value}" for name, value in row.items() if value != ""))
    return "; ".join(rows) + "."


def make_blank_picture(text: str, *, setting: Setting | str) -> Picture:
    """`text` in the middle of an empty figure; the same is its sentence."""
    with LOCK:
        figure = new_figure()
        style = {"fontsize": 13, "color": QUIET, "linespacing": 1.6}
        figure.text(0.5, 0.5, textwrap.fill(text, 46), ha="center", va="center", **style)
    return replace(describe_picture(figure, "No picture yet", setting, text), waits=True)


# -------------------------------------------------------------------------------------------------------------- bars
class Bars:
    """One horizontal bar a series: mean, on it the 95 % band of Student's t, below it a strip with a dot a seed; the
    numbers at the right edge.

    A series without a result yet has its place and no bar, so that nothing moves when the result comes. seed: whose
    accuracy the bars show in the place of the mean
    """

    def __init__(
        self,
        ax: Axes,
        rows: Sequence[Series],
        chance: float | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        self.ax = ax
        self.seed = seed
        dress(ax, x=self._describe_marks(rows), grid="x", size=9)
        size = row_font_size(len(rows))
        self.parts = []
        for place, s in enumerate(rows):
            style: dict[str, Any] = {"alpha": 0.8}
            if s.pinned:
                style = {"alpha": 0.45, "hatch": "////", "edgecolor": "white", "linewidth": 0}
            bar = ax.barh(place - STRIP / 2, 0, height=0.5, color=s.look.colour, **style)[0]
            span = ax.plot([], [], "|-", color=INK, lw=2, ms=9, mew=1.6, solid_capstyle="butt")[0]
            style = {"color": INK, "ms": 3.6, "mew": 0, "alpha": 0.55, "zorder": 3}
            dots = ax.plot([], [], "o", ls="", clip_on=False, **style)[0]
            style = {"va": "center", "fontsize": size, "color": INK, "clip_on": False}
            text = ax.text(1.02, place, "88.8 ± 0.8", gid="outside", **style)
            self.parts.append((bar, span, dots, text))
        if chance:
            draw_level_line(ax, chance, axis="x")
        set_row_axis(ax, [s.lines for s in rows], least=3)
        set_percent_axis(ax, "x", ticks=HALVES)

    def update(self, rows: Sequence[Series], title: str = "Test accuracy") -> None:
        """Show the numbers of these rows, which are as many as before."""
        heading(self.ax, title)
        self.ax.xaxis.label.set_text(self._describe_marks(rows))
        for place, (s, parts) in enumerate(zip(rows, self.parts, strict=True)):
            bar, span, dots, text = parts
            number = s.number if s.accuracies else "…"
            accuracy = s.mean if s.accuracies else 0
            if self.seed is not None:
                accuracy = s.accuracies.get(self.seed, accuracy)
            bar.set_width(accuracy)
            span.set_data(s.ends, [place - STRIP / 2] * len(s.ends))
            values = list(s.accuracies.values())
            dots.set_data(values, [place + 0.25 + STRIP / 2] * len(values))
            mark(bar, s.hover_text, method=s.highlight_key)
            text.set_text(number if self.seed is None else f"{percent(accuracy)}  ({number})")

    def _describe_marks(self, rows: Sequence[Series]) -> str:
        """What the dots and lines are, and the bar where it is none of the mean."""
        text = BARS if any(s.ends for s in rows) else DOTS
        return text if self.seed is None else f"bar: seed {self.seed}; {text}"


def draw_stacked_bars(
    ax: Axes,
    rows: Mapping[str, Mapping[str, float]],
    colours: Mapping[str, str],
    thick: float = 0.6,
) -> list[float]:
    """A bar for each of `rows` {part: size}, named at the left, the first on top; its parts lie one after the other in
    the order of `colours`. Returns the ends."""
    ends = [0.0] * len(rows)
    for part, colour in colours.items():
        sizes = [parts.get(part, 0.0) for parts in rows.values()]
        if any(sizes):
            ax.barh(range(len(rows)), sizes, thick, left=ends, color=colour, label=part)
            ends = [end + size for end, size in zip(ends, sizes, strict=True)]
    set_row_axis(ax, list(rows), least=3)
    return ends


# ------------------------------------------------------------------------------------------------------ lines, points
def draw_lines(
    ax: Axes,
    curves: Mapping[str, Mapping[float, Mapping[int, float] | Band]],
    own_looks: Mapping[str, Look] | None = None,
    top: float | None = 1,
) -> list[EndLabel]:
    """Draw means `{label: {x: {seed: share}}}` (or a `Band` of them) as lines with their 95 % bands,
    where there are seeds enough for one. Returns the names of the lines.

    own_looks: of labels whose look does not follow from their name
    top: the largest value that there is
    """
    ends = []
    for label, (colour, marker, dashes) in {**looks(curves), **(own_looks or {})}.items():
        x = sorted(curves[label])
        values = [curves[label][place] for place in x]
        bands = [value if isinstance(value, Band) else band(value) for value in values]
        mean = np.array([b.mean for b in bands])
        half_width = np.array([b.half_width if b.is_shown else 0.0 for b in bands])
        low = (mean - half_width).clip(0)
        high = np.minimum(mean + half_width, np.inf if top is None else top)
        ax.fill_between(x, low, high, color=colour, alpha=0.17, lw=0)
        style = {"color": colour, "marker": marker, "ls": dashes, "lw": 1.9, "ms": 5.5}
        ax.plot(x, mean, label=label, **style)
        ends.append(EndLabel(float(mean[-1]), label, colour))
    return ends


def draw_points(
    ax: Axes, rows: Sequence[Series], low: float = 0.0, besides: Sequence[float] = ()
) -> None:
    """Accuracy against `Series.total` bytes on a log axis: a point a row with its band over seeds and its name, pinned
    ones hollow. What costs nothing stands at the left edge.

    low: where the accuracies begin;   besides: further bytes that the axis has to reach
    """
    shown = sorted(rows, key=lambda s: (s.total, s.mean))
    size = 9 if len(shown) <= 10 else 7
    row_looks = looks({s.highlight_key for s in shown})
    for s in shown:
        colour, marker, _ = row_looks[s.highlight_key]
        x = max(s.total, 1.0)
        ax.plot([x] * len(s.ends), s.ends, color=colour, lw=1.6, alpha=0.6, zorder=1)
        style = {"ms": size, "color": colour, "mfc": "white" if s.pinned else colour, "mew": 1.6}
        point = ax.plot([x], [s.mean], marker, zorder=3, **style)[0]
        mark(point, s.hover_text, method=s.highlight_key)
    axis_bytes = [*(s.total for s in rows if s.total), *besides]
    set_bytes_axis(ax, axis_bytes or [1e3, 1e6], pad=2.5)
    set_percent_axis(ax, "y", 1.03, low=low)
    write_names(ax, shown, low, size, {key: one.colour for key, one in row_looks.items()})


def write_names(
    ax: Axes, rows: Sequence[Series], low: float, size: float, colours: Mapping[str, str]
) -> None:
    """Each row's name beside its point, in its colour, where it lies on no point, band or other name.

    low: where the accuracies begin;   size: of the letters
    """
    if is_narrow():
        settle_layout(ax.figure)  # names of other axes take much of the width
    left, right = ax.get_xlim()
    points_of_axes = 72 * ax.get_position().size * ax.figure.get_size_inches()
    letter, line = size * np.array([0.62, 1.15]) / points_of_axes  # as shares of the axes
    scale = 1.03 - low
    places = []
    taken = []
    for s in rows:
        x = math.log(max(s.total, left) / left) / math.log(right / left)
        y = (s.mean - low) / scale
        places.append((x, y))
        taken.append(Box(x - letter, x + letter, y - line / 2, y + line / 2))
    for s, (x, _) in zip(rows, places, strict=True):
        heights = [(end - low) / scale for end in s.ends]
        if heights:
            taken.append(Box(x - letter / 4, x + letter / 4, min(heights), max(heights)))
    halo = [withStroke(linewidth=2.5, foreground="white")]  # over the bands of others
    for s, (x, y) in zip(rows, places, strict=True):
        text = fit_label(s.name, int(max(x, 1 - x) / letter) - 3)
        lines = text.split("\n")
        wide = letter * (1 + max(len(words) for words in lines))
        side, middle = place_label(taken, x, y, wide, line * len(lines), 1.4 * letter)
        ax.text(
            x + 1.6 * side * letter,
            middle,
            text,
            fontsize=size,
            color=colours[s.highlight_key],
            va="center",
            ha="left" if side > 0 else "right",
            linespacing=0.95,
            transform=ax.transAxes,
            path_effects=halo,
            zorder=2,
        )


class Box(NamedTuple):
    """A rectangle on axes, in shares of their width and height."""

    left: float
    right: float
    low: float
    high: float


class LabelPlace(NamedTuple):
    """Where a name stands beside its mark: side (1: right, -1: left) and height of its middle."""

    side: int
    middle: float


def place_label(
    taken: list[Box], x: float, y: float, width: float, height: float, distance: float
) -> LabelPlace:
    """Place a name beside the mark at (x, y), so that it lies on none of the boxes `taken`; its own
    is added to them. All are shares of the axes.

    distance: from the mark to the name
    """
    first_side = 1 if x <= 0.5 else -1
    sides = (first_side, -first_side)
    for middle, side in itertools.product(list_label_heights(y, height / 4), sides):
        ends = (x + side * distance, x + side * (distance + width))
        box = Box(min(ends), max(ends), middle - height / 2, middle + height / 2)
        is_inside = box.low >= 0 and box.high <= 1
        if side != first_side:
            is_inside = is_inside and box.left >= 0 and box.right <= 1
        if is_inside and not any(has_overlap(box, other) for other in taken):
            break
    taken.append(box)
    return LabelPlace(side, middle)


def list_label_heights(y: float, step: float) -> list[float]:
    """Heights to be tried, the nearest to `y` first."""
    heights = []
    for number in range(80):
        heights += [y + number * step, y - number * step]
    return heights


def has_overlap(box: Box, other: Box) -> bool:
    """Whether two boxes have a point in common."""
    is_beside = box.right <= other.left or other.right <= box.left
    is_above_or_below = box.high <= other.low or other.high <= box.low
    return not is_beside and not is_above_or_below


def fit_label(name: str, letters: int) -> str:
    """A name in so many letters: 'FedAvg' of 'FedAvg, one round', or on several lines."""
    if len(name) <= letters:
        return name
    return textwrap.fill(shorten_title(name), max(letters, 8))


# ------------------------------------------------------------------------------------------------------------- tables
def draw_heat_map(
    ax: Axes,
    values: np.ndarray,
    *,
    top: float = 1.0,
    signed: bool = False,
    text: Callable[[float], str] | None = None,
    numbers: np.ndarray | None = None,
    size: float = 8.5,
) -> AxesImage:
    """A table `[rows, columns]` in colours from 0 to `top`: zero is white, more is bluer, so that the eye can compare
    two tables; nan is grey. Returns the image, for a colour bar.

    signed: from -top on, orange below zero;   text: how a value is written into its cell, where there is room for it
    numbers: what is written in place of the values
    """
    steps = [SECOND, "white", ACCENT] if signed else ["white", ACCENT]
    colours = LinearSegmentedColormap.from_list("table", steps).with_extremes(bad=FAINT)
    image = ax.imshow(
        values,
        cmap=colours,
        vmin=-top if signed else 0,
        vmax=top,
        aspect="auto",
        interpolation="nearest",
    )
    if text is not None:
        written = values if numbers is None else numbers
        for i, j in np.argwhere(np.isfinite(values)):
            colour = "white" if abs(values[i, j]) > 0.7 * top else INK
            style = {"ha": "center", "va": "center", "fontsize": size, "color": colour}
            ax.text(j, i, text(written[i, j]), **style)
    ax.tick_params(length=0, labelsize=9, labelcolor=INK)
    ax.spines[:].set_visible(False)
    return image


def mark_cells(ax: Axes, cells: Mapping[tuple[int, int], Mapping[str, Any]]) -> None:
    """Let cells of a heat map answer; {(row, column): what `vector.mark` takes, and `says`}."""
    boxes = [Rectangle((column - 0.5, row - 0.5), 1, 1) for row, column in cells]
    shapes = PatchCollection(boxes, facecolor=(1, 1, 1, 0), edgecolor="none", zorder=4)
    ax.add_collection(shapes, autolim=False)
    texts = [cell.get("says") for cell in cells.values()]
    names = set[str]()
    for cell in cells.values():
        names.update(cell)
    names.discard("says")
    keys = {name: [cell.get(name) for cell in cells.values()] for name in sorted(names)}
    mark(shapes, texts, **keys)


def omit_zeros(form: str) -> Callable[[float], str]:
    """A form of numbers, for a narrow table: neither a zero is written nor the one before a point."""

    def write_number(value: float) -> str:
        label = re.sub(r"^(-?)0\.", r"\1.", form.format(value))
        return label if label.strip("+-0.") else ""

    return write_number


def draw_clients_and_classes(
    ax: Axes,
    values: np.ndarray,
    names: Sequence[str],
    title: str,
    top: float,
    *,
    text: str = "{:.0f}",
    signed: bool = False,
    ring: bool = False,
    client: int | None = None,
    class_index: int | None = None,
    setting: Setting | str = "",
    first: bool = True,
) -> AxesImage:
    """The heat map of a table `[M, C]` with a column a client (nan: grey); returns the image.

    text: form of the numbers in the cells, where there are few (else it has a colour bar);   first: whether the classes
    are named (the left one of two);   top, signed: as for `draw_heat_map`
    ring:    round the largest value of each class
    client, class_index: framed;   setting: by which known clients are named
    """
    clients, classes = values.shape
    has_numbers = max(values.shape) <= MOST_WRITTEN
    form = omit_zeros(text) if has_numbers else None
    image = draw_heat_map(ax, values.T, top=top, signed=signed, text=form, size=8)
    heading(ax, title, 6)
    if first and not has_numbers:
        draw_colour_bar(image, ax)
    set_client_axis(ax, clients, setting, few=12)
    set_class_ticks(ax, names if first else [""] * classes, "y", length=9, few=26)
    ax.set_ylabel("class" if first else "", fontsize=10, color=QUIET)
    ax.tick_params(labelsize=9.5 if classes <= 12 else 8)
    if ring:
        draw_rings(ax, values)
    mark_place(ax, client, clients, frame=True, colour=SECOND)
    mark_place(ax, class_index, classes, "y", frame=True, colour=SECOND)
    return image


def draw_rings(ax: Axes, values: np.ndarray) -> None:
    """A ring round the largest value of each class, of a table `[M, C]`; none where all clients have the same."""
    for c, column in enumerate(values.T):
        known = column[np.isfinite(column)]
        if len(known) and np.ptp(known) > 1e-9:
            corner = (int(np.nanargmax(column)) - 0.46, c - 0.44)
            ax.add_patch(Rectangle(corner, 0.92, 0.88, fill=False, edgecolor=INK, lw=1.5))


# ------------------------------------------------------------------------------------------------------------- images
def draw_image_rows(
    ax: Axes,
    rows: Sequence[tuple[str, Sequence[np.ndarray | None]]],
    *,
    columns: Sequence[str] = (),
    under: Mapping[tuple[int, int], tuple[str, str]] | None = None,
    marked: int | None = None,
) -> None:
    """Rows of small images, each row with its label at the left: `[C, H, W]` in [0, 1], recordings `[C, T]` as lines,
    features `[D]` as a strip, None for a place without one.

    Where the axes are on end the columns go on below, in two or three bands, so that the tiles become larger.

    columns: a name under each;   under: {(row, column): (word, colour)} below a tile;   marked: the column in a frame
    """
    under = under or {}
    grid = TileGrid(ax, rows, columns, under)
    for row, (_, images) in enumerate(rows):
        for start in grid.band_starts:
            draw_band(ax, images[start : start + grid.band_columns], grid, row, start)
    if not any(image is not None and image.ndim == 2 for _, images in rows for image in images):
        keep_photo_colours(ax)
    for (row, column), (word, colour) in under.items():
        left, top = grid.find_corner(row, column)
        middle = top + grid.height + WORD / 2
        style = {"ha": "center", "va": "center", "fontsize": 9, "color": colour}
        ax.text(left + grid.half_width, middle, word, **style)
    for column, name in enumerate(columns):
        left, top = grid.find_corner(0, column)
        style = {"ha": "center", "va": "top", "fontsize": 10, "color": INK}
        ax.text(left + grid.half_width, top + grid.rows_height + 0.04, name, **style)
    middles = []
    for start in grid.band_starts:
        for row in range(len(rows)):
            middles.append(grid.find_corner(row, start)[1] + grid.height / 2)
    ax.set_yticks(middles, [label for label, _ in rows] * len(grid.band_starts))
    ax.set(
        xticks=[],
        xlim=(-0.08, max(grid.band_columns, grid.least_columns)),
        ylim=(len(grid.band_starts) * grid.band_height, -0.08),
        aspect="equal",
        anchor="W",
    )
    ax.tick_params(length=0, labelsize=10, labelcolor=INK)
    ax.spines[:].set_visible(False)
    if marked is not None and marked < grid.columns:
        left, top = grid.find_corner(0, marked)
        size = (2 * grid.half_width + 0.08, grid.rows_height + 0.08)
        style = {"fill": False, "ec": ACCENT, "lw": 2.5, "zorder": 3}
        ax.add_patch(Rectangle((left - 0.04, top - 0.04), *size, **style))


class TileGrid:
    """Where the tiles of `draw_image_rows` lie. The unit is a tile's width with its gap; y goes down.

    columns:      of all images;   band_columns: of one band;   band_starts: the first column of each band
    height, half_width: of a tile;   rows_height: of all rows of a band;   band_height: with what stands under it
    shape, pitch: dots of a tile, and from one tile to the next
    """

    def __init__(
        self,
        ax: Axes,
        rows: Sequence[tuple[str, Sequence[np.ndarray | None]]],
        column_names: Sequence[str],
        under: Mapping[tuple[int, int], tuple[str, str]],
    ) -> None:
        self.shape: tuple[int, ...] = (TILE, TILE, 1)
        images = [image for _, row in rows for image in row if image is not None]
        if images:
            self.shape = make_tile(images[0]).shape
        self.columns = max(1, *(len(row) for _, row in rows))
        gap = round(GAP * self.shape[1] / TILE)
        self.pitch = self.shape[1] + gap
        self.height = self.shape[0] / self.pitch
        self.half_width = 0.5 * self.shape[1] / self.pitch
        self._row_step = self.height + (WORD if under else gap / self.pitch)
        has_last_words = any(row == len(rows) - 1 for row, _ in under)
        self.rows_height = (len(rows) - 1) * self._row_step + self.height + WORD * has_last_words
        lines = max((name.count("\n") + 1.5 for name in column_names), default=0.5)
        self.band_height = self.rows_height + WORD * lines
        self.least_columns = FEW_TILES - is_narrow()
        self.band_columns = self._choose_band_columns(ax)
        self.band_starts = range(0, self.columns, self.band_columns)

    def _choose_band_columns(self, ax: Axes) -> int:
        """The columns of a band, with as many bands (one to three) as make the tiles largest; more bands have to make
        them clearly larger.
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

    def find_corner(self, row: int, column: int) -> tuple[int, float]:
        """Left and top of a tile."""
        band, place = divmod(column, self.band_columns)
        return place, band * self.band_height + row * self._row_step


def draw_band(
    ax: Axes, images: Sequence[np.ndarray | None], grid: TileGrid, row: int, start: int
) -> None:
    """A row of tiles in one band, from column `start` on, as one image; between tiles one sees the paper."""
    page = np.zeros((grid.shape[0], grid.band_columns * grid.pitch, 4))
    for place, image in enumerate(images):
        left = place * grid.pitch
        tile = page[:, left : left + grid.shape[1]]
        if image is None or np.isnan(image).any():
            tile[:] = EMPTY
        else:
            tile[..., :3] = make_tile(image)
            tile[..., 3] = 1
    top = grid.find_corner(row, start)[1]
    extent = (0, grid.band_columns, top + grid.height, top)
    ax.imshow(page, extent=extent, interpolation="nearest")


def keep_photo_colours(ax: Axes) -> None:
    """What these axes show are images: on a dark page they stay as they are, while a heat map is turned dark."""
    ax.set_gid(f"photos-{ax.figure.axes.index(ax)}")


def make_tile(image: np.ndarray) -> np.ndarray:
    """One image of `draw_image_rows` as dots `[h, w, 1 or 3]`, each pixel several dots wide; of features, light for
    much; of a recording a line a channel."""
    if image.ndim == 1:
        low = float(image.min())
        span = float(np.ptp(image)) or 1.0
        return np.repeat(((image - low) / span)[:, None, None], len(image), 1)
    if image.ndim == 2:
        return draw_recording(image)
    channels = image if len(image) in (1, 3) else image[:1]
    dots = np.moveaxis(np.clip(channels, 0, 1), 0, -1)
    times = max(1, math.ceil(TILE / dots.shape[1]))
    return dots.repeat(times, 0).repeat(times, 1)


def draw_recording(recording: np.ndarray, height: int = 4 * TILE) -> np.ndarray:
    """A recording `[C, T]` as dots `[height, T, 3]`: a line a channel in a colour of its own, all on one scale."""
    dots = np.ones((height, recording.shape[1], 3))
    low = float(recording.min())
    span = float(np.ptp(recording)) or 1.0
    rows = np.rint((1 - (recording - low) / span) * (height - 1)).astype(int)  # [C, T]
    # A line goes on where it was a step ago.
    before = np.concatenate([rows[:, :1], rows[:, :-1]], axis=1)
    places = np.arange(height)[:, None]
    for c, colour in enumerate(class_colours(len(recording))):
        top = np.minimum(rows[c], before[c])
        bottom = np.maximum(rows[c], before[c])
        dots[(top <= places) & (places <= bottom)] = to_rgb(colour)
    return dots
