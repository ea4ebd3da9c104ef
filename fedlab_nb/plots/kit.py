"""The kit for pictures: each part takes numbers and labels, and draws them into the axes that it gets.

Bars(ax, rows).update(rows)             a bar a `Series`: mean, 95 % band, a dot a seed; `update` for news
lines(ax, {label: {x: {seed: share}}})  means over a number with 95 % bands;   `axes.seed_lines`: with a line a seed
points(ax, rows)                        accuracy against bytes: a named point a `Series`
stacked(ax, {label: {part: size}}, …)   bars of parts, such as bytes
heat_map(ax, values)                    a table in colours;   clients_and_classes: of those two
tiles(ax, [(label, images), …])         rows of small images
told(figure, title, setting, sentence, table)     the `Picture`: its alt text is made from these
blank(text, setting=…)                  a picture that says what to do so that there will be one
"""

import itertools
import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

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
    Picture,
    bytes_axis,
    class_colours,
    class_ticks,
    client_axis,
    colour_bar,
    dress,
    heading,
    level_line,
    narrow,
    new_figure,
    percent_axis,
    rows_axis,
    rows_size,
)
from .style import mark as look_at
from .vector import mark
from .words import Setting, known_words, percent

BARS = "dots: seeds; line: 95 % band of the mean"
WRITTEN = 12  # more clients or classes than this, and no numbers are written into the cells of their table
CELLS = 60  # a table with more of them is not read out in an alt text
TILE, GAP = 24, 2  # dots across a small image, at least, and between two of them
WORD, EMPTY = (
    0.3,
    (0.5, 0.5, 0.5, 0.14),
)  # height of a word under a tile, in tiles; colour of a place without one
FEW = 3  # tiles for which a row has room at least, so that few do not become large


# ---------------------------------------------------------------------------------------------------------- in words
def told(
    figure: Figure | None,
    title: str,
    setting: Setting | str,
    sentence: str,
    table: Sequence[Mapping[str, Any]] = (),
) -> Picture:
    """The picture of a figure. Its alt text: the title (what is drawn), the setting and whom it knows by name, the
    sentence, and the table row by row, where that is short enough to be listened to.
    """
    rows = [dict(row) for row in table]
    about = f" ({setting})" if setting else ""
    parts = [f"{title}{about}.{known_words(setting)}", sentence, in_words(rows)]
    return Picture(figure, " ".join(filter(None, parts)), sentence, rows)


def in_words(table: Sequence[Mapping[str, Any]]) -> str:
    """[{"method": "FENS", "accuracy": "87 %"}] -> 'method FENS, accuracy 87 %.'; of a long table its size."""
    if sum(map(len, table)) > CELLS:
        return f"The table has {len(table)} rows."
    rows = (
        ", ".join(f"{key} {value}" for key, value in row.items() if value != "") for row in table
    )
    return "; ".join(rows) + "." * bool(table)


def blank(text: str, *, setting: Setting | str) -> Picture:
    """`text` in the middle of an empty figure; the same is its sentence."""
    with LOCK:
        figure = new_figure()
        middle = {
            "ha": "center",
            "va": "center",
            "fontsize": 13,
            "color": QUIET,
            "linespacing": 1.6,
        }
        figure.text(0.5, 0.5, textwrap.fill(text, 46), **middle)
    return replace(told(figure, "No picture yet", setting, text), waits=True)


# -------------------------------------------------------------------------------------------------------------- bars
STRIP = 0.2  # height of the strip of seeds under a bar, where the place of a row is 1


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
        x = BARS if seed is None else f"bar: seed {seed}; {BARS}"
        self.ax, self.seed = dress(ax, x=x, grid="x", size=9), seed
        size = rows_size(len(rows))
        self.parts = []
        for i, s in enumerate(rows):
            faint = {"alpha": 0.45, "hatch": "////", "edgecolor": "white", "linewidth": 0}
            how = faint if s.pinned else {"alpha": 0.8}
            bar = ax.barh(i - STRIP / 2, 0, height=0.5, color=s.look.colour, **how)[0]
            span = ax.plot([], [], "|-", color=INK, lw=2, ms=9, mew=1.6, solid_capstyle="butt")[0]
            dots = ax.plot(
                [], [], "o", ms=3.6, color=INK, mew=0, alpha=0.55, ls="", zorder=3, clip_on=False
            )[0]
            text = ax.text(
                1.02,
                i,
                "88.8 ± 0.8",
                va="center",
                fontsize=size,
                color=INK,
                clip_on=False,
                gid="outside",
            )
            self.parts.append((bar, span, dots, text))
        if chance:
            level_line(ax, chance, axis="x")
        rows_axis(ax, [s.lines for s in rows], least=3)
        percent_axis(ax, "x", ticks=HALVES)

    def update(self, rows: Sequence[Series], title: str = "Test accuracy") -> None:
        heading(self.ax, title)
        for i, (s, (bar, span, dots, text)) in enumerate(zip(rows, self.parts, strict=True)):
            number = s.number if s.accuracies else "…"
            long = s.accuracies.get(self.seed, s.mean if s.accuracies else 0)
            bar.set_width(long)
            span.set_data(s.ends, [i - STRIP / 2] * len(s.ends))
            dots.set_data(list(s.accuracies.values()), [i + 0.25 + STRIP / 2] * len(s.accuracies))
            mark(bar, s.says, method=s.held_as)
            text.set_text(number if self.seed is None else f"{percent(long)}  ({number})")


def stacked(
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
    rows_axis(ax, list(rows), least=3)
    return ends


# ------------------------------------------------------------------------------------------------------ lines, points
def lines(
    ax: Axes,
    of: Mapping[str, Mapping[float, Mapping[int, float] | Band]],
    own: Mapping[str, Look] | None = None,
    top: float | None = 1,
) -> list[tuple[float, str, str]]:
    """Means `{label: {x: {seed: share}}}` (or a `Band` of them) as lines with their 95 % bands.

    own: the looks of labels from which they do not follow;   top: the largest value that there is. Returns (last y,
    label, colour), for `end_labels`.
    """
    ends = []
    for label, (colour, marker, dashes) in {**looks(of), **(own or {})}.items():
        bands = {x: v if isinstance(v, Band) else band(v) for x, v in sorted(of[label].items())}
        y, wide = (
            np.array([getattr(v, name) for v in bands.values()]) for name in ("mean", "half_width")
        )
        wide = np.nan_to_num(wide)
        ax.fill_between(
            list(bands),
            (y - wide).clip(0),
            np.minimum(y + wide, np.inf if top is None else top),
            color=colour,
            alpha=0.17,
            lw=0,
        )
        ax.plot(list(bands), y, color=colour, marker=marker, ls=dashes, lw=1.9, ms=5.5, label=label)
        ends.append((float(y[-1]), label, colour))
    return ends


def points(
    ax: Axes, rows: Sequence[Series], low: float = 0.0, besides: Sequence[float] = ()
) -> None:
    """Accuracy against `Series.total` bytes on a log axis: a point a row with its band over seeds and its name, pinned
    ones hollow. What costs nothing stands at the left edge. low: where the accuracies begin;   besides: further bytes
    that the axis has to reach
    """
    shown = sorted(rows, key=lambda s: (s.total, s.mean))
    size, own = 9 if len(shown) <= 10 else 7, looks({s.held_as for s in shown})
    for s in shown:
        x, (hue, marker, _) = max(s.total, 1.0), own[s.held_as]
        ax.plot([x] * len(s.ends), s.ends, color=hue, lw=1.6, alpha=0.6, zorder=1)
        face = "white" if s.pinned else hue
        point = ax.plot([x], [s.mean], marker, ms=size, color=hue, mfc=face, mew=1.6, zorder=3)[0]
        mark(point, s.says, method=s.held_as)
    bytes_axis(ax, [*(s.total for s in rows if s.total), *besides] or [1e3, 1e6], pad=2.5)
    percent_axis(ax, "y", 1.03, low=low)
    # Each name in its colour, at the side of its point with more room, unless it would lie on something there.
    (left, right), box = ax.get_xlim(), 72 * ax.get_position().size * ax.figure.get_size_inches()
    letter, line = size * np.array([0.62, 1.15]) / box  # as shares of the axes
    at = [
        (
            math.log(max(s.total, left) / left) / math.log(right / left),
            (s.mean - low) / (1.03 - low),
        )
        for s in shown
    ]
    taken = [(x - letter, x + letter, y - line / 2, y + line / 2) for x, y in at]
    bands = [[(end - low) / (1.03 - low) for end in s.ends] for s in shown]
    taken += [
        (x - letter / 4, x + letter / 4, min(of), max(of))
        for (x, _), of in zip(at, bands, strict=True)
        if of
    ]
    for s, (x, y) in zip(shown, at, strict=True):
        text = fitting(s.name, int(max(x, 1 - x) / letter) - 3)
        wide, tall = letter * (1 + max(map(len, text.split("\n")))), line * (1 + text.count("\n"))
        side, middle = beside(taken, x, y, wide, tall, 1.4 * letter)
        style = {
            "fontsize": size,
            "color": own[s.held_as].colour,
            "va": "center",
            "linespacing": 0.95,
        }
        halo = [withStroke(linewidth=2.5, foreground="white")]  # over the bands of others
        place = {
            "ha": ("right", "left")[side > 0],
            "transform": ax.transAxes,
            "path_effects": halo,
            "zorder": 2,
        }
        ax.text(x + 1.6 * side * letter, middle, text, **place, **style)


def beside(
    taken: list, x: float, y: float, wide: float, tall: float, away: float
) -> tuple[int, float]:
    """Side (1: right) and height of a name beside the mark at (x, y), so that it lies on none of the boxes `taken`
    (left, right, low, high); its own is added. All are shares of the axes."""
    first = 1 if x <= 0.5 else -1
    heights = (y + sign * step * tall / 4 for step in range(80) for sign in (1, -1))
    for middle, side in itertools.product(heights, (first, -first)):
        left, right = sorted((x + side * away, x + side * (away + wide)))
        low, high = middle - tall / 2, middle + tall / 2
        met = any(left < b and a < right and low < d and c < high for a, b, c, d in taken)
        if not met and low >= 0 and high <= 1 and (side == first or (left >= 0 and right <= 1)):
            break
    taken.append((left, right, low, high))
    return side, middle


def fitting(name: str, letters: int) -> str:
    """A name in so many letters: 'FedAvg' of 'FedAvg, one round', or on several lines."""
    return name if len(name) <= letters else textwrap.fill(shorten_title(name), max(letters, 8))


# ------------------------------------------------------------------------------------------------------------- tables
def heat_map(
    ax: Axes, values: np.ndarray, *, top: float = 1.0, signed: bool = False, text: Callable[[float], str] | None = None,
    numbers: np.ndarray | None = None, size: float = 8.5,
) -> AxesImage:  # fmt: skip
    """A table `[rows, columns]` in colours from 0 to `top`: zero is white, more is bluer, so that the eye can compare
    two tables; nan is grey. Returns the image, for a colour bar.

    signed: from -top on, orange below zero;   text: how a value is written into its cell, where there is room for it
    numbers: what is written in place of the values
    """
    colours = LinearSegmentedColormap.from_list(
        "table", [SECOND, "white", ACCENT] if signed else ["white", ACCENT]
    )
    place = {
        "vmin": -top if signed else 0,
        "vmax": top,
        "aspect": "auto",
        "interpolation": "nearest",
    }
    image = ax.imshow(values, cmap=colours.with_extremes(bad=FAINT), **place)
    for i, j in np.argwhere(np.isfinite(values)) if text is not None else ():
        dark = "white" if abs(values[i, j]) > 0.7 * top else INK
        label = text((values if numbers is None else numbers)[i, j])
        ax.text(j, i, label, ha="center", va="center", fontsize=size, color=dark)
    ax.tick_params(length=0, labelsize=9, labelcolor=INK)
    ax.spines[:].set_visible(False)
    return image


def mark_cells(ax: Axes, cells: Mapping[tuple[int, int], Mapping[str, Any]]) -> None:
    """Let cells of a heat map answer; {(row, column): what `vector.mark` takes, and `says`}."""
    at = [Rectangle((j - 0.5, i - 0.5), 1, 1) for i, j in cells]
    shapes = PatchCollection(at, facecolor=(1, 1, 1, 0), edgecolor="none", zorder=4)
    ax.add_collection(shapes, autolim=False)
    names = {"says", *(name for about in cells.values() for name in about)}
    mark(shapes, **{name: [about.get(name) for about in cells.values()] for name in sorted(names)})


def unless_zero(form: str) -> Callable[[float], str]:
    """A form of numbers, for a narrow table: neither a zero is written nor the one before a point."""

    def written(value: float) -> str:
        label = re.sub(r"^(-?)0\.", r"\1.", form.format(value))
        return label if label.strip("+-0.") else ""

    return written


def clients_and_classes(
    ax: Axes, values: np.ndarray, names: Sequence[str], title: str, top: float, *, text: str = "{:.0f}",
    signed: bool = False, ring: bool = False, client: int | None = None, klass: int | None = None,
    setting: Setting | str = "", first: bool = True,
) -> AxesImage:  # fmt: skip
    """The heat-map of a table `[M, C]` with a column a client (nan: grey); returns the image.

    text: form of the numbers in the cells, where there are few (else it has a colour bar);   first: whether the classes
    are named (the left one of two);   top, signed: as for `heat_map`;   ring: round the largest value of each class
    client, klass: framed;   setting: by which known clients are named
    """
    clients, classes = values.shape
    few = max(values.shape) <= WRITTEN
    image = heat_map(
        ax, values.T, top=top, signed=signed, text=unless_zero(text) if few else None, size=8
    )
    heading(ax, title, 6)
    if first and not few:
        colour_bar(image, ax)
    client_axis(ax, clients, setting, few=12)
    class_ticks(ax, names if first else [""] * classes, "y", length=9, few=26)
    ax.set_ylabel("class" if first else "", fontsize=10, color=QUIET)
    ax.tick_params(labelsize=9.5 if classes <= 12 else 8)
    for c, column in enumerate(values.T) if ring else ():
        known = column[np.isfinite(column)]
        if len(known) and np.ptp(known) > 1e-9:
            corner = (int(np.nanargmax(column)) - 0.46, c - 0.44)
            ax.add_patch(Rectangle(corner, 0.92, 0.88, fill=False, edgecolor=INK, lw=1.5))
    look_at(ax, client, clients, frame=True, colour=SECOND)
    look_at(ax, klass, classes, "y", frame=True, colour=SECOND)
    return image


# ------------------------------------------------------------------------------------------------------------- images
def tiles(
    ax: Axes, rows: Sequence[tuple[str, Sequence[np.ndarray | None]]], *, columns: Sequence[str] = (),
    under: Mapping[tuple[int, int], tuple[str, str]] | None = None, marked: int | None = None,
) -> None:  # fmt: skip
    """Rows of small images, each row with its label at the left: `[C, H, W]` in [0, 1], recordings `[C, T]` as lines,
    features `[D]` as a strip, None for a place without one.

    Where the axes are on end the columns go on below, in two or three bands, so that the tiles become larger.

    columns: a name under each;   under: {(row, column): (word, colour)} below a tile;   marked: the column in a frame
    """
    shape = next(
        (as_tile(i).shape for _, images in rows for i in images if i is not None), (TILE, TILE, 1)
    )
    across, gap = max(1, *(len(images) for _, images in rows)), round(GAP * shape[1] / TILE)
    wide = shape[1] + gap  # dots from one tile to the next
    tall, half = shape[0] / wide, 0.5 * shape[1] / wide
    step = tall + (WORD if under else gap / wide)
    low = (len(rows) - 1) * step + tall + WORD * any(r == len(rows) - 1 for r, _ in under or ())
    block = low + WORD * max((name.count("\n") + 1.5 for name in columns), default=0.5)
    width, height = ax.figure.get_size_inches() * ax.get_position().size
    few = FEW - narrow()
    larger = {
        n: 0.85**n * min(width / max(few, -(-across // n)), height / (n * block)) for n in (1, 2, 3)
    }
    fold = -(-across // max(larger, key=larger.__getitem__))
    firsts = range(0, across, fold)

    def place(r: int, c: int) -> tuple[int, float]:
        return c % fold, c // fold * block + r * step

    for (r, (_, images)), first in itertools.product(enumerate(rows), firsts):
        page = np.zeros((shape[0], fold * wide, 4))  # between tiles one sees the paper
        for c, image in enumerate(images[first : first + fold]):
            tile = page[:, c * wide : c * wide + shape[1]]
            if image is None or np.isnan(image).any():
                tile[:] = EMPTY
            else:
                tile[..., :3], tile[..., 3] = as_tile(image), 1
        top = place(r, first)[1]
        ax.imshow(page, extent=(0, fold, top + tall, top), interpolation="nearest")
    if not any(image is not None and image.ndim == 2 for _, images in rows for image in images):
        photos(ax)
    for (r, c), (word, colour) in (under or {}).items():
        left, top = place(r, c)
        ax.text(
            left + half,
            top + tall + WORD / 2,
            word,
            ha="center",
            va="center",
            fontsize=9,
            color=colour,
        )
    for c, name in enumerate(columns):
        left, top = place(0, c)
        ax.text(left + half, top + low + 0.04, name, ha="center", va="top", fontsize=10, color=INK)
    middles = [place(r, first)[1] + tall / 2 for first in firsts for r in range(len(rows))]
    ax.set_yticks(middles, [label for label, _ in rows] * len(firsts))
    ax.set(
        xticks=[],
        xlim=(-0.08, max(fold, few)),
        ylim=(len(firsts) * block, -0.08),
        aspect="equal",
        anchor="W",
    )
    ax.tick_params(length=0, labelsize=10, labelcolor=INK)
    ax.spines[:].set_visible(False)
    if marked is not None and marked < across:
        left, top = place(0, marked)
        corner = left - 0.04, top - 0.04
        ax.add_patch(
            Rectangle(corner, 2 * half + 0.08, low + 0.08, fill=False, ec=ACCENT, lw=2.5, zorder=3)
        )


def photos(ax: Axes) -> None:
    """What these axes show are images: on a dark page they stay as they are, while a heat map is turned dark."""
    ax.set_gid(f"photos-{ax.figure.axes.index(ax)}")


def as_tile(image: np.ndarray) -> np.ndarray:
    """One image of `tiles` as dots `[h, w, 1 or 3]`, each pixel several dots wide; of features, light for much; of a
    recording a line a channel."""
    if image.ndim == 1:
        low, span = float(image.min()), float(np.ptp(image)) or 1.0
        return np.repeat(((image - low) / span)[:, None, None], len(image), 1)
    if image.ndim == 2:
        return lined(image)
    dots = np.moveaxis(np.clip(image if len(image) in (1, 3) else image[:1], 0, 1), 0, -1)
    times = max(1, -(-TILE // dots.shape[1]))
    return dots.repeat(times, 0).repeat(times, 1)


def lined(recording: np.ndarray, height: int = 4 * TILE) -> np.ndarray:
    """A recording `[C, T]` as dots `[height, T, 3]`: a line a channel in a colour of its own, all on one scale."""
    dots = np.ones((height, recording.shape[1], 3))
    low, span = float(recording.min()), float(np.ptp(recording)) or 1.0
    rows = np.rint((1 - (recording - low) / span) * (height - 1)).astype(int)  # [C, T]
    before = np.concatenate(
        [rows[:, :1], rows[:, :-1]], axis=1
    )  # a line goes on where it was a step ago
    at = np.arange(height)[:, None]
    for c, colour in enumerate(class_colours(len(recording))):
        dots[(np.minimum(rows[c], before[c]) <= at) & (at <= np.maximum(rows[c], before[c]))] = (
            to_rgb(colour)
        )
    return dots
