"""The kit for pictures: each part takes numbers and labels, and draws them into the axes that it gets.

Bars(ax, rows).update(rows)             a bar a `Series`: mean, 95 % band, a dot a seed; `update` for news
lines(ax, {label: {x: {seed: share}}})  means over a number with 95 % bands;   `axes.seed_lines`: with a line a seed
points(ax, rows)                        accuracy against bytes: a named point a `Series`
stacked(ax, {label: {part: size}}, …)   bars of parts, such as bytes
heat_map(ax, values)                    a table in colours;   Heat: of clients and classes, with an update
tiles(ax, [(label, images), …])         rows of small images
told(figure, title, setting, sentence, table)     the `Picture`: its alt text is made from these
blank(text, setting=…)                  a picture that says what to do so that there will be one
"""

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from ..studies.statistics import Band, band
from .axes import FIFTHS, bytes_axis, class_ticks, colour_bar, level_line, percent_axis, rows_axis, rows_size, spread
from .characters import client_axis, known_words
from .identity import Look, looks
from .series import Series
from .style import ACCENT, FAINT, INK, LOCK, QUIET, SECOND, Picture, dress, heading, many_is_dark, new_figure, shorten
from .vector import mark

BARS = "mean, 95 % band of Student's t, one dot per seed"
WRITTEN = 12  # more clients or classes than this, and no numbers are written into the cells of a `Heat`
CELLS = 60  # a table with more of them is not read out in an alt text
TILE, GAP = 24, 2  # dots across a small image, at least, and between two of them
WORD, EMPTY = 0.3, 0.93  # height of a word under a tile, in tiles; grey of a place without one
FEW = 6  # tiles for which a row has room at least, so that few do not become large


# ---------------------------------------------------------------------------------------------------------- in words
def told(
    figure: Figure | None, title: str, setting: str, sentence: str, table: Sequence[Mapping[str, Any]] = ()
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
    rows = (", ".join(f"{key} {value}" for key, value in row.items() if value != "") for row in table)
    return "; ".join(rows) + "." * bool(table)


def blank(text: str, *, setting: str) -> Picture:
    """`text` in the middle of an empty figure; the same is its sentence."""
    with LOCK:
        figure = new_figure()
        middle = {"ha": "center", "va": "center", "fontsize": 13, "color": QUIET, "linespacing": 1.6}
        figure.text(0.5, 0.5, textwrap.fill(text, 46), **middle)
    return told(figure, "No picture yet", setting, text)


# -------------------------------------------------------------------------------------------------------------- bars
class Bars:
    """One horizontal bar a series: mean, 95 % band of Student's t, a dot a seed; the numbers at the right edge.

    A series without a result yet has its place and no bar, so that nothing moves when the result comes.
    """

    def __init__(
        self, ax: Axes, rows: Sequence[Series], chance: float | None = None, *, x: str = BARS, ticks: Sequence = FIFTHS
    ) -> None:
        self.ax = dress(ax, x=x, grid="x", size=9)
        size = rows_size(max(len(rows), 3))
        self.parts = []
        for i, s in enumerate(rows):
            hatch = {"hatch": "////", "edgecolor": "white", "linewidth": 0} if s.pinned else {}
            bar = ax.barh(i, 0, height=0.62, color=s.look.colour, alpha=0.45 if s.pinned else 0.8, **hatch)[0]
            span = ax.plot([], [], color=INK, lw=2, solid_capstyle="butt")[0]
            ends = ax.plot([], [], "|", color=INK, ms=9, mew=1.6)[0]
            dots = ax.plot([], [], "o", ms=4.6, mfc="white", mec=INK, mew=0.9, ls="", zorder=3)[0]
            text = ax.text(1.02, i, "88 ± 88", va="center", fontsize=size, color=INK, clip_on=False, gid="outside")
            self.parts.append((bar, span, ends, dots, text))
        if chance:
            level_line(ax, chance, axis="x")
        rows_axis(ax, [s.lines for s in rows], least=3, size=size)
        percent_axis(ax, "x", ticks=ticks)

    def update(self, rows: Sequence[Series], title: str = "Test accuracy") -> None:
        heading(self.ax, title)
        for i, (s, (bar, span, ends, dots, text)) in enumerate(zip(rows, self.parts, strict=True)):
            bar.set_width(s.mean if s.accuracies else 0)
            for line in (span, ends):
                line.set_data(s.ends, [i] * len(s.ends))
            dots.set_data(list(s.accuracies.values()), [i] * len(s.accuracies))
            mark(bar, s.says, method=s.held_as)
            text.set_text(s.number if s.accuracies else "…")


def stacked(
    ax: Axes, rows: Mapping[str, Mapping[str, float]], colours: Mapping[str, str], *, upright: bool = False,
    thick: float = 0.6,
) -> list[float]:  # fmt: skip
    """A bar for each of `rows` {part: size}, its parts one after the other in the order of `colours`; returns the ends.

    upright: bars that stand, under no names;   else they lie, named at the left, the first on top
    """
    ends = [0.0] * len(rows)
    draw, start = (ax.bar, "bottom") if upright else (ax.barh, "left")
    for part, colour in colours.items():
        sizes = [parts.get(part, 0.0) for parts in rows.values()]
        if any(sizes):
            draw(range(len(rows)), sizes, thick, **{start: ends}, color=colour, label=part)
            ends = [end + size for end, size in zip(ends, sizes, strict=True)]
    if not upright:
        rows_axis(ax, list(rows), least=3, size=rows_size(len(rows)))
    return ends


# ------------------------------------------------------------------------------------------------------ lines, points
def lines(
    ax: Axes, of: Mapping[str, Mapping[float, Mapping[int, float] | Band]], own: Mapping[str, Look] | None = None
) -> list[tuple[float, str, str]]:
    """Means `{label: {x: {seed: share}}}` (or a `Band` of them) as lines with their 95 % bands.

    own: the look of each label, where it does not follow from it. Returns (last y, label, colour), for `end_labels`.
    """
    ends = []
    for label, (colour, marker, dashes) in (own or looks(of)).items():
        bands = {x: v if isinstance(v, Band) else band(v) for x, v in sorted(of[label].items())}
        y, wide = (np.array([getattr(v, name) for v in bands.values()]) for name in ("mean", "half_width"))
        wide = np.nan_to_num(wide)
        ax.fill_between(list(bands), (y - wide).clip(0), (y + wide).clip(None, 1), color=colour, alpha=0.17, lw=0)
        ax.plot(list(bands), y, color=colour, marker=marker, ls=dashes, lw=1.9, ms=5.5, label=label)
        ends.append((float(y[-1]), label, colour))
    return ends


def points(ax: Axes, rows: Sequence[Series], low: float = 0.0, besides: Sequence[float] = ()) -> None:
    """Accuracy against `Series.total` bytes on a log axis: a point a row with its band over seeds and its name, pinned
    ones hollow. What costs nothing stands at the left edge. low: where the accuracies begin;   besides: further bytes
    that the axis has to reach
    """
    shown = sorted(rows, key=lambda s: (s.total, s.mean))
    size, own = 9 if len(shown) <= 10 else 7, looks({s.held_as for s in shown})
    for s in shown:
        x, (hue, marker, _) = max(s.total, 1.0), own[s.held_as]
        ax.plot([x] * len(s.ends), s.ends, color=hue, lw=1.6, alpha=0.6)
        point = ax.plot([x], [s.mean], marker, ms=size, color=hue, mfc="white" if s.pinned else hue, mew=1.6)[0]
        mark(point, s.says, method=s.held_as)
    bytes_axis(ax, [*(s.total for s in rows if s.total), *besides] or [1e3, 1e6], pad=2.5)
    percent_axis(ax, "y", 1.03, low=low)
    # Each name in its colour, at the side of its point with more room; no two stand at one height.
    left, right = ax.get_xlim()
    letters = ax.get_position().width * ax.figure.get_figwidth() * 72 / (0.6 * size)  # as many as fit into the axes
    places = spread([s.mean for s in shown], min(0.048, 1 / max(len(shown), 1)) * (1.03 - low), 1.0, low)
    for s, place in zip(shown, places, strict=True):
        x = max(s.total, left)
        at = math.log(x / left) / math.log(right / left)
        side, away = ("right", -size) if at > 0.5 else ("left", size)
        text = shorten([s.name], int(letters * max(at, 1 - at)) - 3)[0]
        style = {"fontsize": size, "color": own[s.held_as].colour, "ha": side, "va": "center"}
        ax.annotate(text, (x, place), xytext=(away, 0), textcoords="offset points", **style)


# ------------------------------------------------------------------------------------------------------------- tables
def table_colours(signed: bool) -> LinearSegmentedColormap:
    """Zero white, above it blue; `signed`: below it orange. One hue for "more", so that the eye can compare two
    tables. Cells without a value are grey.
    """
    made = LinearSegmentedColormap.from_list("table", [SECOND, "white", ACCENT] if signed else ["white", ACCENT])
    return made.with_extremes(bad=FAINT)


def heat_map(
    ax: Axes, values: np.ndarray, *, top: float = 1.0, text: Callable[[float], str] | None = None, size: float = 8.5,
    empty: bool = False,
) -> AxesImage:  # fmt: skip
    """A table `[rows, columns]` from 0 to `top`, dark for much; nan stays white. Returns the image, for a colour bar.

    text: how a value is written into its cell, where there is room for it;   empty: 0 is white
    """
    image = ax.imshow(values, cmap=many_is_dark(empty), vmin=0, vmax=top, aspect="auto", interpolation="nearest")
    for i, j in np.argwhere(np.isfinite(values)) if text is not None else ():
        dark = "white" if values[i, j] > 0.5 * top else INK
        ax.text(j, i, text(values[i, j]), ha="center", va="center", fontsize=size, color=dark)
    ax.tick_params(length=0, labelsize=9, labelcolor=INK)
    ax.spines[:].set_visible(False)
    return image


def mark_cells(ax: Axes, cells: Mapping[tuple[int, int], Mapping[str, Any]]) -> None:
    """Let cells of a heat map answer; {(row, column): what `vector.mark` takes, and `says`}."""
    at = [Rectangle((j - 0.5, i - 0.5), 1, 1) for i, j in cells]
    shapes = PatchCollection(at, facecolor=(1, 1, 1, 0), edgecolor="none", zorder=4)
    ax.add_collection(shapes, autolim=False)
    names = sorted({name for about in cells.values() for name in about})
    mark(shapes, **{name: [about.get(name) for about in cells.values()] for name in names})


class Heat:
    """The heat-map of a table `[M, C]`. text: form of the numbers in the cells;   signed: values below zero are told
    apart;   first: whether the classes are named (the left one of two)
    """

    def __init__(
        self, ax: Axes, clients: int, names: Sequence[str], *, text: str = "{:.0f}", signed: bool, first: bool = True
    ) -> None:
        self.ax, self.text, self.signed = ax, text, signed
        self.clients, self.classes = clients, len(names)
        empty = np.zeros((self.classes, clients))
        self.image = ax.imshow(empty, cmap=table_colours(signed), aspect="auto", interpolation="nearest")
        cells = np.ndindex(clients, self.classes) if max(clients, self.classes) <= WRITTEN else ()
        self.texts = {(k, c): ax.text(k, c, "", ha="center", va="center", fontsize=8) for k, c in cells}
        self.rings = [Rectangle((0, 0), 0.92, 0.88, fill=False, edgecolor=INK, lw=1.5) for _ in names]
        self.client = Rectangle((0, -0.5), 1, self.classes, fill=False, edgecolor=ACCENT, lw=2.2, clip_on=False)
        self.klass = Rectangle((-0.5, 0), clients, 1, fill=False, edgecolor=SECOND, lw=2.2, clip_on=False)
        for patch in (*self.rings, self.client, self.klass):
            ax.add_patch(patch)
        client_axis(ax, self.clients, "", few=12)
        class_ticks(ax, names if first else [""] * len(names), "y", length=9, few=26)
        ax.set_ylabel("class" if first else "", fontsize=10, color=QUIET)
        ax.set(xlim=(-0.5, self.clients - 0.5), ylim=(self.classes - 0.5, -0.5))
        ax.tick_params(length=0, labelsize=9.5, labelcolor=INK)
        if self.classes > 12:
            ax.tick_params(axis="y", labelsize=8)
        ax.spines[:].set_visible(False)

    def show(
        self, values: np.ndarray, title: str, limit: float, *, ring: bool = True, client: int | None = None,
        klass: int | None = None, setting: str = "",
    ) -> None:  # fmt: skip
        """Bring it up to date. `values [M, C]` (nan: grey); `limit`: end of the colours;   ring: round the largest
        value of each class;   client, klass: framed;   setting: by which known clients are named
        """
        client_axis(self.ax, self.clients, setting, few=12)
        values = np.asarray(values, dtype=float)
        self.image.set_data(np.ma.masked_invalid(values.T))
        self.image.set_clim(-limit if self.signed else 0, limit)
        heading(self.ax, title, 6)
        for (k, c), cell in self.texts.items():
            label = self.text.format(values[k, c]) if np.isfinite(values[k, c]) else ""
            cell.set_text(label if label.strip("+-0.") else "")
            cell.set_color("white" if abs(values[k, c]) > 0.7 * limit else INK)
        for c, patch in enumerate(self.rings):
            column = values[np.isfinite(values[:, c]), c]
            patch.set_visible(bool(ring and len(column) and np.ptp(column) > 1e-9))
            if patch.get_visible():
                patch.set_xy((int(np.nanargmax(values[:, c])) - 0.46, c - 0.44))
        for patch, at, across in ((self.client, client, True), (self.klass, klass, False)):
            patch.set_visible(at is not None and at < (self.clients if across else self.classes))
            if at is not None:
                patch.set_xy((at - 0.5, -0.5) if across else (-0.5, at - 0.5))

    def scale(self, label: str) -> None:
        """A colour bar at the right."""
        colour_bar(self.image, self.ax, label).locator = MaxNLocator(5)


# ------------------------------------------------------------------------------------------------------------- images
def tiles(
    ax: Axes, rows: Sequence[tuple[str, Sequence[np.ndarray | None]]], *, columns: Sequence[str] = (),
    under: Mapping[tuple[int, int], tuple[str, str]] | None = None, marked: int | None = None,
) -> None:  # fmt: skip
    """Rows of small images, each row with its label at the left: `[C, H, W]` in [0, 1], features `[D]` as a strip, None
    for a place without one.

    columns: a name under each;   under: {(row, column): (word, colour)} below a tile;   marked: the column in a frame
    """
    shape = next((as_tile(i).shape for _, images in rows for i in images if i is not None), (TILE, TILE, 1))
    across, gap = max(1, *(len(images) for _, images in rows)), round(GAP * shape[1] / TILE)
    wide = shape[1] + gap  # dots from one tile to the next
    tall, half = shape[0] / wide, 0.5 * shape[1] / wide
    step = tall + (WORD if under else gap / wide)
    for r, (_, images) in enumerate(rows):
        page = np.ones((shape[0], across * wide, shape[2]))
        for c, image in enumerate(images):
            empty = image is None or np.isnan(image).any()
            page[:, c * wide : c * wide + shape[1]] = EMPTY if empty else as_tile(image)
        place = (0, across, r * step + tall, r * step)
        ax.imshow(page.squeeze(), cmap="gray", vmin=0, vmax=1, extent=place, interpolation="nearest")
    for (r, c), (word, colour) in (under or {}).items():
        ax.text(c + half, r * step + tall + WORD / 2, word, ha="center", va="center", fontsize=9, color=colour)
    ax.set_xticks([c + half for c in range(len(columns))], columns)
    ax.set_yticks([r * step + tall / 2 for r in range(len(rows))], [label for label, _ in rows])
    last = len(rows) - 1
    below = last * step + tall + (WORD if any(r == last for r, _ in under or ()) else 0.04)
    ax.set(xlim=(-0.08, max(across, FEW)), ylim=(below, -0.08), aspect="equal", anchor="W")
    ax.tick_params(length=0, labelsize=10, labelcolor=INK)
    ax.spines[:].set_visible(False)
    if marked is not None and marked < across:
        ax.axvspan(marked - 0.04, marked + 2 * half + 0.04, fill=False, edgecolor=ACCENT, lw=2.5, zorder=3)


def as_tile(image: np.ndarray) -> np.ndarray:
    """One image of `tiles` as dots `[h, w, 1 or 3]`, each pixel several dots wide; of features, light for much."""
    if image.ndim == 1:
        low, span = float(image.min()), float(np.ptp(image)) or 1.0
        return np.repeat(((image - low) / span)[:, None, None], len(image), 1)
    dots = np.moveaxis(np.clip(image if len(image) in (1, 3) else image[:1], 0, 1), 0, -1)
    times = max(1, -(-TILE // dots.shape[1]))
    return dots.repeat(times, 0).repeat(times, 1)
