"""What every picture has in common: `Picture`, one size, one style, a look for each method (made in `identity`), and
the lock round all drawing.

Figures are matplotlib `Figure`s on the Agg canvas; pyplot is never used, because its global state breaks when two
threads draw. Pictures are drawn dark on white; `vector.py` gives each colour a second one for a dark page.

Helpers for axes stand at the end: scales, ticks, rows of bars, marks, lines of seeds and their names.

set_percent_axis(ax, "y", 1.03, ticks=FIFTHS)     shares as percents
set_log_axis(ax, "x", ticks=alphas)               α, bytes
limit_ticks(ax, "x", 8, whole=True)               rounds, counts;   form=format_bytes: bytes
set_row_axis(ax, names)                           horizontal bars, named at the left, the first on top
set_client_ticks(ax, M), set_class_ticks(ax, names)   columns or rows of a table of clients and classes
set_client_axis(ax, M, setting)                   ticks A, B, C, 'D✦', …, and a label that says who D is
mark_place(ax, client, M)                         the client that is looked at; with "y" a row
draw_level_line(ax, chance, "guessing")           a thin line at a level
draw_seed_lines(ax, {seed: [(x, y)]}, colour)     every seed faintly, their mean clearly
draw_end_labels(ax, [(y, text, colour)])          the name of each line at its right end
"""

from __future__ import annotations

import io
import math
import textwrap
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colorbar import Colorbar
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator
from PIL import Image

from ..files import write_file
from ..studies.text_tables import format_html
from .identity import Look, look, looks  # noqa: F401
from .words import (
    SYMBOL,
    Setting,
    client_letter,
    data_size,
    find_characters,
    format_letters,
    make_client_axis_label,
    percent,
    shorten,
)

RC = matplotlib.rcParams
HOST = ("backend", "interactive", "toolbar", "webagg", "timezone", "date.epoch")  # no looks
DEFAULTS = {
    name: value for name, value in matplotlib.rcParamsDefault.items() if not name.startswith(HOST)
}


class DrawingLock:
    """`with LOCK`: one drawing at a time, in matplotlib's own defaults.

    Matplotlib's text parser and font cache are shared by all figures. What a person set for pictures of their own
    (`rcParams["text.usetex"]`, a style sheet, a matplotlibrc) neither changes ours nor is changed: it is back when the
    last `with` ends. Reentrant.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._defaults = ExitStack()

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1
        if self._depth > 1:
            return
        # Past RcParams' own look-up, which takes five times as long: this is passed many times in a drag.
        changed = {name: value for name, value in DEFAULTS.items() if dict.get(RC, name) != value}
        if changed:
            self._defaults.enter_context(matplotlib.rc_context(changed))

    def __exit__(self, *error: object) -> None:
        try:
            self._depth -= 1
            if not self._depth:
                self._defaults.close()
        finally:
            self._lock.release()


LOCK = DrawingLock()
SIZE = (6.7, 4.15)  # inches, where nothing else is asked for by `use_size`
NARROW = 5.4  # inches of width, up to which a frame is narrow
UPRIGHT = 7.5  # inches
DPI = 190
TITLE = 11  # points of a title's letters
LEAST = 7.5  # points of the smallest letters that words shrink to
OUTSIDE = "outside"  # how the gid of texts begins that stand beside their axes
FOLLOWS = "frame"  # gid of the figures that are as large as their frame
_size: ContextVar[tuple[float, float]] = ContextVar("size", default=SIZE)

INK = "#1f2328"
QUIET = "#59636e"
RULE = "#d5d9de"
FAINT = "#eceff2"
ACCENT = "#0072B2"
SECOND = "#D55E00"
# Okabe–Ito for a few series, without its black and its yellow (too faint on white); petroff10 for ten classes.
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
PETROFF10 = tuple(map(to_hex, matplotlib.color_sequences["petroff10"]))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
CIVIDIS = matplotlib.colormaps["cividis"]


class EndLabel(NamedTuple):
    """A line's name at its right end: `value` is the line's last one."""

    value: float
    text: str
    colour: str


@dataclass
class Picture:
    """A figure with the same content in words and numbers.

    alt: what is drawn and for which setting, for who cannot see it;   sentence: what it shows, plainly
    detail: the exact numbers behind the sentence, for who hovers over it;   table: its numbers, one dict a row
    tabled: the table is always shown, below the figure; without a figure it is what is shown
    waits: it only says what to do so that there will be one
    scene: the same as data for a browser, which draws it (`front/`) in the place of the figure, which is exported
    """

    figure: Figure | None
    alt: str
    sentence: str
    table: list[dict[str, Any]] = field(default_factory=list)
    tabled: bool = False
    waits: bool = False
    detail: str = ""
    scene: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """The sentence with its detail: for where nobody can hover."""
        return f"{self.sentence} {self.detail}".strip()

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the picture as SVG, or as PNG where the name ends so. UsageError where a file of somebody else's is
        there already, unless `force`."""
        image = png(self) if Path(path).suffix.lower() == ".png" else svg(self)
        return write_file(path, image, force=force)

    @property
    def image_metadata(self) -> dict[str, Any]:
        """What a notebook keeps beside the PNG: its alt text, and (in JupyterLab's words) that it is drawn on white, so
        that a dark page turns its colours (theme.css). Photos keep theirs.
        """
        metadata: dict[str, Any] = {"image/png": {"alt": self.alt}}
        if self.figure is not None and not has_photos(self.figure):
            metadata["needs_background"] = "light"
        return metadata

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        if self.figure is not None and not self.tabled:
            data = {"image/png": png(self), "text/plain": self.text}
            return data, self.image_metadata
        if not self.table:
            return {"text/plain": self.text}, {}
        page = f"{format_table_html(self.table)}<p>{escape(self.text)}</p>"
        if self.figure is not None:
            image = b64encode(png(self)).decode()
            page = f'<img alt="{escape(self.alt)}" src="data:image/png;base64,{image}">{page}'
        return {"text/plain": self.text, "text/html": page}, {}


def has_photos(figure: Figure) -> bool:
    """Whether a figure shows images, whose colours are not to be turned (`kit.keep_photo_colours`)."""
    return any((ax.get_gid() or "").startswith("photos") for ax in figure.axes)


def format_table_html(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as an HTML table."""
    columns: dict[str, None] = {}  # each once, in their order
    for row in rows:
        columns |= dict.fromkeys(row)
    lines = [list(columns)]
    for row in rows:
        lines.append([format_cell(row.get(column, "")) for column in columns])
    return format_html(lines)


def format_cell(value: Any) -> str:
    """A number with spaces between its thousands; other values as they are."""
    if isinstance(value, int):
        return f"{value:,}".replace(",", " ")
    return str(value)


def png(picture: Picture | Figure) -> bytes:
    """The picture as PNG bytes (8-bit colours)."""
    figure = picture.figure if isinstance(picture, Picture) else picture
    with LOCK:
        canvas = figure.canvas
        lay_out(figure)
        canvas.draw()
        image = Image.frombuffer("RGBA", canvas.get_width_height(), canvas.buffer_rgba()).convert(
            "RGB"
        )
        out = io.BytesIO()
        image.save(out, "png", compress_level=6)
        return out.getvalue()


def svg(picture: Picture) -> bytes:
    """The picture as SVG, its letters as text, for slides and papers."""
    with LOCK, matplotlib.rc_context({"svg.fonttype": "none"}):
        lay_out(picture.figure)
        return write_svg(picture.figure, "white").encode()


def write_svg(figure: Figure, facecolor: str, **metadata: Any) -> str:
    """A settled figure as an SVG file: `Figure.savefig` without the drawing that it makes for the layout alone."""
    out = io.StringIO()
    dpi = figure.dpi
    colour = figure.get_facecolor()
    try:
        figure.set_facecolor(facecolor)
        FigureCanvasSVG(figure).print_svg(out, metadata=metadata or None)
    finally:
        # A new canvas: the layout's has a bitmap, which would stay until the next garbage collection.
        FigureCanvasAgg(figure)
        figure.set_dpi(dpi)
        figure.set_facecolor(colour)
    return out.getvalue()


@contextmanager
def use_size(size: tuple[float, float]) -> Iterator[None]:
    """New figures that have no size of their own get this one, in inches: that of the frame that they are shown in."""
    token = _size.set(size)
    try:
        yield
    finally:
        _size.reset(token)


def current_size() -> tuple[float, float]:
    """Width and height in inches of new figures."""
    return _size.get()


def is_narrow() -> bool:
    """Whether new figures are too narrow for two axes side by side: those of a telephone, and of a window on end."""
    width, height = _size.get()
    return width < NARROW or (width < UPRIGHT and width < height)


def settle_layout(figure: Figure) -> None:
    """Compute where the axes lie as the figure stands, for what depends on their size."""
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        exclude_data_from_layout(figure)
        engine.execute(figure)


def lay_out(figure: Figure) -> None:
    """Compute the figure's layout, if that was not done before: it costs most of a frame."""
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        exclude_data_from_layout(figure)
        if figure.axes:
            engine.execute(figure)  # what a drawing begins with; the rest would be thrown away
        figure.set_layout_engine("none")
    fit_titles(figure)


def fit_titles(figure: Figure) -> None:
    """Make the letters smaller of a title that would reach over the figure's edge or into the title
    beside it, and of an x axis' name that would reach over the edge: layouts do not look at the
    width of these. A title that is still too long begins further left.
    """
    usual = figure.__dict__.setdefault("fedlab_words", {})  # {axes: its title and its usual size}
    titles = [usual[ax] for ax in figure.axes if ax in usual]
    names = []
    for ax in figure.axes:
        label = ax.xaxis.label
        names.append(usual.setdefault(ax.xaxis, (label, label.get_fontsize())))
    for text, size in (*titles, *names):
        text.set_fontsize(size)
    # Not the renderer that has drawn a text last, which was an SVG's with other pixels.
    canvas: Any = figure.canvas
    renderer = canvas.get_renderer()
    fit_titles_side_by_side([title for title, _ in titles], figure, renderer)
    edge = figure.bbox.x1
    for name, _ in names:
        box = name.get_window_extent(renderer)
        middle = (box.x0 + box.x1) / 2
        shrink_text(name, box.width, 2 * min(middle, edge - middle))


def fit_titles_side_by_side(titles: Sequence[Text], figure: Figure, renderer: Any) -> None:
    """Make titles smaller, from the right one on, until each ends before the next one at its height
    begins; move one further left that is still too long."""
    gap = figure.dpi / 12
    boxes = []
    for title in titles:
        title.set_x(0)
        boxes.append((title.get_window_extent(renderer), title))
    fitted: list[
        tuple[float, float, float]
    ] = []  # where a title begins, and its lower and upper end
    for box, title in sorted(boxes, key=lambda entry: -entry[0].x0):
        end = figure.bbox.x1
        for left, low, high in fitted:
            if low < box.y1 and high > box.y0:
                end = min(end, left)
        end -= gap
        shrink_text(title, box.width, end - box.x0)
        moved = 0.0
        if title.get_fontsize() <= LEAST:
            right = title.get_window_extent(renderer).x1
            moved = max(0.0, min(right - end, box.x0 - gap))
        title.set_x(-moved / title.axes.bbox.width)
        fitted.append((box.x0 - moved, box.y0, box.y1))


def shrink_text(text: Text, width: float, room: float) -> None:
    """Let a text of this width fit into `room`, with letters that can still be read."""
    if width > room > 0:
        fitting = 0.98 * text.get_fontsize() * room / width  # widths come in whole pixels
        text.set_fontsize(max(LEAST, fitting))


def exclude_data_from_layout(figure: Figure) -> None:
    """Let the layout look at titles, labels and ticks only, not at what lies within the axes; texts whose gid begins
    with OUTSIDE count.
    """
    for ax in figure.axes:
        for artist in (*ax.lines, *ax.collections, *ax.patches, *ax.images, *ax.texts):
            artist.set_in_layout((artist.get_gid() or "").startswith(OUTSIDE))


def new_figure(size: tuple[float, float] | None = None, *, fixed: bool = False) -> Figure:
    """An empty white figure whose layout is computed at its first drawing; `fixed`: its axes stay where they are put,
    which is quicker. `size`: in inches, default `current_size()`.
    """
    figure = Figure(figsize=size or current_size(), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    figure.set_gid(None if size else FOLLOWS)
    if not fixed:
        request_layout(figure)
    return figure


def request_layout(figure: Figure) -> None:
    """Have the figure's layout computed at its next drawing."""
    figure.set_layout_engine("constrained", w_pad=0.08, h_pad=0.07, wspace=0.04, hspace=0.04)


def fit_to_frame(figure: Figure) -> None:
    """Give a figure that is kept and moved the size of today's frame."""
    if figure.get_gid() == FOLLOWS and tuple(figure.get_size_inches()) != current_size():
        figure.set_size_inches(*current_size())
        if figure.get_layout_engine() is not None:
            request_layout(figure)


@contextmanager
def drawing(
    rows: int = 1,
    columns: int = 1,
    *,
    size: tuple[float, float] | None = None,
    fixed: bool = False,
    **grid: Any,
) -> Iterator[tuple[Figure, Any]]:
    """Make a figure and its axes, as `Figure.subplots` makes them, while nobody else draws. Axes side
    by side stand below each other in a narrow frame.

    size: in inches; without one the figure follows its frame
    fixed: there are no axes (None); `figure.add_axes` adds them, and they stay where they are put
    grid: as for `Figure.subplots`
    """
    if rows == 1 and 1 < columns < 4 and size is None and is_narrow():
        rows, columns = columns, rows
        if "width_ratios" in grid:
            grid["height_ratios"] = grid.pop("width_ratios")
    with LOCK:
        figure = new_figure(size, fixed=fixed)
        yield figure, None if fixed else figure.subplots(rows, columns, **grid)


def heading(ax: Axes, text: str, pad: float = 7, size: float = TITLE) -> Text:
    """The bold title over the left end of the axes."""
    title = ax.set_title(
        text, loc="left", y=1, fontsize=size, fontweight="bold", color=INK, pad=pad
    )
    figure: Any = ax.get_figure(root=True)
    figure.__dict__.setdefault("fedlab_words", {})[ax] = title, size
    return title


def dress(
    ax: Axes, *, title: str = "", x: str = "", y: str = "", grid: str = "", size: float = 10
) -> Axes:
    """The quiet look: two thin spines, left-aligned title, grid lines along `grid` ("x", "y" or "both") behind the
    data; `size`: of the letters of `x` and `y`.
    """
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(RULE)
    ax.tick_params(which="both", colors=QUIET, labelcolor=INK, labelsize=9.5, length=3, width=0.8)
    ax.tick_params(which="minor", length=0)
    if title:
        heading(ax, title)
    ax.set_xlabel(x, fontsize=size, color=QUIET)
    ax.set_ylabel(y, fontsize=size, color=QUIET)
    if grid:
        ax.grid(True, which="major", axis=grid, color=FAINT, linewidth=1)
        ax.set_axisbelow(True)
    return ax


def legend(owner: Axes | Figure, **options: Any) -> Legend:
    """A legend without a frame in the quiet look, in a narrow figure with two columns at most."""
    most_columns = 2 if is_narrow() else 9
    options["ncols"] = min(options.get("ncols", 1), most_columns)
    drawn = owner.legend(frameon=False, fontsize=9, labelcolor=INK, **options)
    drawn.get_title().set(fontsize=9, color=QUIET)
    return drawn


Colour = str | tuple[float, ...]  # '#0072B2', or red, green, blue and opacity, each 0-1


def class_colours(classes: int) -> list[Colour]:
    """A colour for each class: petroff10 up to ten, steps of cividis beyond."""
    if classes <= len(PETROFF10):
        return list(PETROFF10[:classes])
    return [tuple(c) for c in CIVIDIS([i / (classes - 1) for i in range(classes)])]


# ------------------------------------------------------------------------------------------------------------- axes
PERCENT = FuncFormatter(lambda v, _: percent(v))  # 0.25 -> 25 %
Form = Callable[[float], str]  # how an axis writes a value
FIFTHS = (0, 0.2, 0.4, 0.6, 0.8, 1)
QUARTERS = (0, 0.25, 0.5, 0.75, 1)
HALVES = (0, 0.5, 1)
DOTS = (0, (2, 2))  # the dashes of reference lines
Points = Sequence[tuple[float, float]]


def format_bytes(count: float) -> str:
    """Bytes of a tick: 26280 -> '26.3 kB'."""
    return data_size(count) if count else "0"


# ---------------------------------------------------------------------------------------------------- scales and ticks
def set_percent_axis(
    ax: Axes,
    axis: str = "y",
    top: float | None = 1.0,
    *,
    low: float = 0.0,
    ticks: Sequence[float] = (),
) -> None:
    """Shares from `low` to `top`, written as percents, at `ticks` (FIFTHS, HALVES) where given. top None: limits stay
    free."""
    if top is not None:
        ax.set(**{f"{axis}lim": (low, top)})
    if ticks:
        ax.set(**{f"{axis}ticks": ticks})
    getattr(ax, f"{axis}axis").set_major_formatter(PERCENT)


def limit_ticks(
    ax: Axes, axis: str, most: int, *, whole: bool = False, form: Form | None = None
) -> None:
    """At most about `most` ticks. whole: at whole numbers only;   form: writes a value, such as `format_bytes`."""
    here = getattr(ax, f"{axis}axis")
    here.set_major_locator(MaxNLocator(most, integer=whole))
    if form is not None:
        here.set_major_formatter(lambda v, _: form(v))


def set_log_axis(
    ax: Axes,
    axis: str = "x",
    *,
    ticks: Sequence[float] = (),
    most: int = 6,
    form: Form = "{:g}".format,
) -> None:
    """A logarithmic axis without small ticks: at `ticks`, else at `most` powers of ten. form: how one is written."""
    ax.set(**{f"{axis}scale": "log"})
    here = getattr(ax, f"{axis}axis")
    here.set_major_locator(FixedLocator(ticks) if ticks else LogLocator(10, numticks=most))
    here.set_major_formatter(lambda v, _: form(v))
    here.set_minor_locator(NullLocator())


def set_bytes_axis(ax: Axes, values: Sequence[float], pad: float = 1.6) -> None:
    """A logarithmic axis of bytes that covers `values`, with readable ticks."""
    positive = [v for v in values if v > 0] or [1.0]
    low, high = min(positive) / pad, max(positive) * pad
    if high / low < 100:
        middle = math.sqrt(high * low)
        low, high = min(low, middle / 10), max(high, middle * 10)
    ax.set_xlim(low, high)
    set_log_axis(ax, form=format_bytes)


def hide_spines(ax: Axes, *sides: str) -> None:
    """Take away the spines of `sides`; of all four where none is named."""
    ax.spines[list(sides) or list(ax.spines)].set_visible(False)


def set_row_axis(
    ax: Axes, names: Sequence[str], *, least: int = 0, size: float | None = None
) -> None:
    """Rows 0, 1, … from the top down, named at the left, for bars that lie. least: rows for which there is room, so
    that few bars stay thin;   size: of the letters, which follows from the number of rows"""
    ax.set_yticks(range(len(names)), names, fontsize=size or row_font_size(len(names)))
    ax.set_ylim(max(len(names), least) - 0.5, -0.5)
    hide_spines(ax, "left")
    ax.tick_params(axis="y", length=0)


def row_font_size(rows: int) -> float:
    """Size of the letters that name so many rows."""
    if rows <= 9:
        return 10
    if rows <= 14:
        return 8.5
    return 7


def set_client_ticks(ax: Axes, clients: int, *, few: int = 16) -> None:
    """A tick on the x axis for each client while there are `few`, else at round numbers."""
    ax.set_xticks(range(clients))
    if clients > few:
        ax.xaxis.set_major_locator(MaxNLocator(13, integer=True, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(lambda v, _: format_client_tick(v, clients))


def format_client_tick(value: float, clients: int) -> str:
    """The letter of the client at a tick; '' where there is none."""
    return format_letters(round(value)) if 0 <= round(value) < clients else ""


def set_class_ticks(
    ax: Axes,
    names: Sequence[str],
    axis: str = "x",
    *,
    length: int = 8,
    few: int = 20,
    most: int = 10,
    **text: Any,
) -> None:
    """The classes' names, cut to `length` letters: all of a `few`, else about `most` of them. text: as for
    `set_xticks`, such as fontsize."""
    short = shorten(names, length)
    if len(names) <= few:
        getattr(ax, f"set_{axis}ticks")(range(len(names)), short, **text)
        return
    here = getattr(ax, f"{axis}axis")
    here.set_major_locator(MaxNLocator(most, integer=True))
    here.set_major_formatter(lambda v, _: short[int(v)] if 0 <= v < len(short) else "")


# --------------------------------------------------------------------------------------------------------------- marks
def mark_place(
    ax: Axes,
    place: int | None,
    count: int,
    axis: str = "x",
    *,
    frame: bool = False,
    colour: str = ACCENT,
    lw: float = 2.2,
) -> None:
    """Mark column `place` of `count` (a row with axis "y"): a faint band behind, or a frame. Nothing where `place` is
    None or beyond."""
    if place is None or place >= count:
        return
    style: dict[str, Any] = {"color": colour, "alpha": 0.13, "lw": 0, "zorder": 0}
    if frame:
        style = {"fill": False, "edgecolor": colour, "lw": lw, "zorder": 5, "clip_on": False}
    draw_span = ax.axvspan if axis == "x" else ax.axhspan
    draw_span(place - 0.5, place + 0.5, **style)


def draw_level_line(
    ax: Axes, level: float, text: str = "", axis: str = "y", *, colour: str = QUIET, lw: float = 1, ls: Any = DOTS,
    left: bool = False, under: bool = False,
) -> None:  # fmt: skip
    """A thin dotted line across the axes at `level`, an upright with axis "x"; `text` stands over a level's right end
    (`left`: its left one; `under` it)."""
    draw_line = ax.axhline if axis == "y" else ax.axvline
    draw_line(level, color=colour, lw=lw, ls=ls)
    if not text:
        return
    ax.annotate(
        text,
        (0.01 if left else 0.99, level),
        (0, -9.5 if under else 2.5),
        xycoords=ax.get_yaxis_transform(),
        textcoords="offset points",
        ha="left" if left else "right",
        fontsize=9,
        color=colour,
    )


# --------------------------------------------------------------------------------------------------------------- lines
class Line(NamedTuple):
    """The points of a line, as matplotlib takes them."""

    x: list[float]
    y: list[float]


def average_lines(runs: Mapping[int, Points]) -> Line:
    """Average the lines `{seed: [(x, y), …]}`, straight between their points, as far as all seeds
    have come."""
    lines = []
    for points in runs.values():
        if points:
            lines.append(Line([x for x, _ in points], [y for _, y in points]))
    if not lines:
        return Line([], [])
    low = max(line.x[0] for line in lines)
    high = min(line.x[-1] for line in lines)
    places = set[float]()
    for line in lines:
        places.update(x for x in line.x if low <= x <= high)
    shared = sorted(places)
    values = [np.interp(shared, line.x, line.y) for line in lines]
    return Line(shared, np.mean(values, axis=0).tolist())


def draw_seed_lines(
    ax: Axes,
    runs: Mapping[int, Points],
    colour: str,
    marker: str = "",
    *,
    label: str = "",
    **style: Any,
) -> Line:
    """Draw the lines `{seed: [(x, y), …]}`: each seed of several faintly, their mean in full. Returns
    the mean.

    style: of the mean's line, as for `Axes.plot`
    """
    if len(runs) > 1:
        for points in runs.values():
            if points:
                x = [x for x, _ in points]
                y = [y for _, y in points]
                ax.plot(x, y, color=colour, lw=0.9, alpha=0.35)
    mean = average_lines(runs)
    style = {"color": colour, "marker": marker or None, "lw": 2.2, "ms": 4.5, **style}
    ax.plot(mean.x, mean.y, label=label or None, **style)
    return mean


def spread_labels(
    values: Sequence[float], gap: float, top: float = math.inf, low: float = -math.inf
) -> list[float]:
    """`values` moved so that neighbours are `gap` apart, in their order, between `low` and (while they fit) `top`."""
    order = sorted(range(len(values)), key=lambda i: -values[i])
    places = list(values)
    limit = top
    for i in order:
        places[i] = min(values[i], limit)
        limit = places[i] - gap
    limit = low
    for i in reversed(order):
        places[i] = max(places[i], limit)
        limit = places[i] + gap
    return places


def draw_end_labels(
    ax: Axes,
    labels: Sequence[EndLabel],
    *,
    size: float = 9.5,
    gap: float = 0.052,
    **style: Any,
) -> None:
    """Each line's name at its right end, beside the axes, none on another. Call it when the limits are set.

    labels: one a line;   gap: between two names, as a share of the axes' height
    """
    low, high = ax.get_ylim()
    texts = [text for _, text, _ in labels]
    if is_narrow():
        texts = [text if "\n" in text else textwrap.fill(text, 14) for text in texts]
        most_lines = max((1 + text.count("\n") for text in texts), default=1)
        gap = max(gap, 0.034 * most_lines)
    places = spread_labels([y for y, _, _ in labels], gap * (high - low), high, low)
    style = {"va": "center", "clip_on": False, "gid": "outside", **style}
    style.setdefault("transform", ax.get_yaxis_transform())
    for place, text, (_, _, colour) in zip(places, texts, labels, strict=True):
        ax.text(1.02, place, text, color=colour, fontsize=size, **style)


# ------------------------------------------------------------------------------------------------- colour bars
def draw_colour_bar(
    image: AxesImage, ax: Axes | Sequence[Axes], label: str = "", **options: Any
) -> Colorbar:
    """A quiet colour bar of `image` beside `ax`; `options` as for `Figure.colorbar` (cax, pad, aspect, format, …)."""
    bar = image.axes.figure.colorbar(image, **{"pad": 0.02, "aspect": 28, "ax": ax, **options})
    bar.outline.set_visible(False)
    bar.locator = MaxNLocator(5)
    bar.ax.tick_params(labelsize=8.5, colors=QUIET, labelcolor=INK)
    if label:
        bar.set_label(label, fontsize=9, color=QUIET)
    return bar


def set_client_axis(ax: Axes, clients: int, setting: Setting | str, *, few: int = 16) -> None:
    """Ticks of `clients`, the characters with a ✦, and the x axis' label. It may be called again for another setting:
    the axes keep their place.
    """
    characters = find_characters(setting)
    label = make_client_axis_label(setting)
    marked = {} if is_narrow() else characters  # there the label below names them
    set_client_ticks(ax, clients, few=few)

    def write_tick(value: float, _: object) -> str:
        client = round(value)
        if not 0 <= client < clients:
            return ""
        text = client_letter(client, setting)
        return text + SYMBOL if client in marked else text

    ax.xaxis.set_major_formatter(FuncFormatter(write_tick))
    ax.set_xlabel(label, fontsize=10 if label == "client" else 9, color=QUIET)
