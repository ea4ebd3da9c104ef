"""What all pictures have in common: the class `Picture`, one size, one style, and the lock around
all drawing.

Figures are matplotlib `Figure`s on the Agg canvas. pyplot is never used, because its global state
breaks when two threads draw. Pictures are drawn dark on white; `vector.py` gives each colour a
second one for a dark page.

Functions for axes are at the end: scales, ticks, rows of bars, marks, lines of seeds and their
names.

set_percent_axis(ax, "y", 1.03, ticks=FIFTHS)                shares as percents
set_log_axis(ax, "x", ticks=alphas)                          a logarithmic axis, as of α
limit_tick_count(ax, "x", 8, only_whole_numbers=True)        a few ticks, as of rounds or counts
set_y_axis_of_named_rows(ax, names)                          horizontal bars with names, the first at the top
set_client_x_ticks(ax, M)                                    a table's columns of clients
set_class_ticks(ax, names)                                   a table's columns or rows of classes
set_client_x_ticks_and_label(ax, M, setting)                 ticks A, B, C, 'D✦', …, and a label with D's name
highlight_row_or_column(ax, client, M)                       the column of the selected client; with "y" a row
draw_level_line(ax, chance, "guessing")                      a thin line at a level
draw_seed_lines_and_get_mean(ax, {seed: [(x, y)]}, colour)   a thin line for each seed, a bold one for the mean
draw_end_labels(ax, [(y, text, colour)])                     the name of each line at its right end
darken_colour_until_readable(SECOND)                         a tone of the colour in which letters can be read
"""

from __future__ import annotations

import functools
import io
import math
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colorbar import Colorbar
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator
from PIL import Image

from ..errors import UsageError
from ..files import write_file
from ..studies.text_tables import format_html_table
from ..value_types import WithBlock
from .identity import ColourMarkerLine, choose_distinct_looks, get_method_look  # noqa: F401
from .marks import attach_tick_hover_texts
from .vector import adapt_svg_to_themes, make_standalone_svg
from .words import (
    SYMBOL,
    SettingCaption,
    capitalize_first_letter,
    find_story_names_of_clients,
    format_client_for_title,
    format_client_letter,
    format_client_letters,
    format_data_size,
    format_percent,
    make_client_axis_label,
    shorten_labels,
)

RC = matplotlib.rcParams
# Matplotlib's settings whose names begin like this do not change how a picture looks.
HOST = ("backend", "interactive", "toolbar", "webagg", "timezone", "date.epoch")
DEFAULTS = {
    name: value for name, value in matplotlib.rcParamsDefault.items() if not name.startswith(HOST)
}


class DrawingLock:
    """`with LOCK`: one drawing at a time, with matplotlib's own defaults.

    The lock is needed because all figures share matplotlib's text parser and font cache. What a
    person has set for pictures of their own (`rcParams["text.usetex"]`, a style sheet, a
    matplotlibrc) does not change ours, and is restored when the outermost `with` ends. The lock is
    reentrant.
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
        # `dict.get` avoids the look-up of RcParams, which takes five times as long. Dragging a slider comes here often.
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
SIZE = (6.7, 4.15)  # inches, unless `use_figure_size` gives another size
NARROW = 5.4  # inches; a frame that is less wide is narrow
UPRIGHT = 7.5  # inches; a frame that is less wide is narrow if it is also higher than wide
DPI = 190
# Letters as outlines, since an SVG loads no fonts; the same picture has the same ids.
SVG_OPTIONS = {"svg.fonttype": "path", "svg.hashsalt": "fedlab_nb"}
TITLE = 11  # points, the font size of titles
LEAST = 7.5  # points, the smallest font size to which texts are shrunk
OUTSIDE = "outside"  # the gid of texts beside their axes begins with this
FOLLOWS = "frame"  # the gid of figures that have the size of their frame
_size: ContextVar[tuple[float, float]] = ContextVar("size", default=SIZE)

INK = "#1f2328"
QUIET = "#59636e"
RULE = "#d5d9de"
FAINT = "#eceff2"
ACCENT = "#0072B2"
SECOND = "#D55E00"
READABLE = 4.5  # minimal contrast of letters with the page (WCAG 2, AA)
NEAR_EDGE = 0.8  # share of the axes' width from which on a line ends near their right edge
LINE_SPACING = 1.2  # height of a line of text, as a multiple of the font size
# Okabe–Ito for a few series, without its black and its yellow (too faint on white); petroff10 for ten classes.
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
PETROFF10 = tuple(map(to_hex, matplotlib.color_sequences["petroff10"]))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
CIVIDIS = matplotlib.colormaps["cividis"]


class EndLabel(NamedTuple):
    """The name of a line, to be written at its right end.

    value: the last value of the line, the height of its end
    """

    value: float
    text: str
    colour: str


@dataclass
class Picture:
    """A figure with the same content in words and numbers.

    alt: the alt text, for people who cannot see the picture: what is drawn, and for which setting
    sentence: what it shows, in plain words
    detail: the exact numbers behind the sentence, shown when a pointer is on the sentence
    table: its numbers, one dict for each row
    tabled: whether the table is always shown, below the figure, or alone if there is no figure
    waits: whether the picture only says what to do to get one
    scene: its content as data for a browser, which draws it (`front/`) instead of the figure; the figure is then for
        export alone
    svg: the picture as an SVG, if it was drawn beforehand and has no figure. It has a background of its own, and is
        dark if the `color-scheme` of its <img> is
    """

    figure: Figure | None
    alt: str
    sentence: str
    table: list[dict[str, Any]] = field(default_factory=list)
    tabled: bool = False
    waits: bool = False
    detail: str = ""
    scene: Mapping[str, Any] = field(default_factory=dict)
    svg: str = ""

    def __repr__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """The sentence followed by its detail, for places without a pointer."""
        return f"{self.sentence} {self.detail}".strip()

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the picture as an SVG, or as a PNG if the name ends in .png.

        UsageError if there is a file that the package did not write, unless `force`, and for a PNG
        of a picture that is an SVG.
        """
        wants_png = Path(path).suffix.lower() == ".png"
        if wants_png and self.svg:
            svg_name = Path(path).with_suffix(".svg").name
            raise UsageError(
                f"This picture is an SVG and cannot be written to {Path(path).name!r}; save it as "
                f"{svg_name!r}, which a browser or a drawing program turns into a PNG."
            )
        image = render_picture_png(self) if wants_png else render_picture_svg(self)
        return write_file(path, image, force=force)

    @property
    def image_metadata(self) -> dict[str, Any]:
        """The metadata that a notebook stores with the PNG: the alt text."""
        return {"image/png": {"alt": self.alt}}

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Show the picture as `make_image_html` does; a PNG is stored beside it for slides, and for
        programs without HTML.
        """
        data: dict[str, Any] = {"text/plain": self.text}
        metadata: dict[str, Any] = {}
        html = ""
        if self.figure is not None or self.svg:
            html = make_image_html(self)
        if self.figure is not None:
            data["image/png"] = render_png_for_notebook(self)
            metadata = self.image_metadata
        if self.tabled or self.svg or self.figure is None:
            html += format_table_html(self.table) if self.table else ""
            html += f"<p>{escape(self.text)}</p>" if html else ""
        if html:
            data["text/html"] = html
        return data, metadata


# A saved picture is light or dark as its page is, by the `color-scheme` of its <img>. JupyterLab sets it for its page,
# so a notebook that is not trusted, which loses this style, needs none. nbconvert and VS Code mark a dark page in
# ways of their own.
STILL_STYLE = (
    '<style>[data-jp-theme-light="true"] img.fl-still,.vscode-light img.fl-still'
    "{color-scheme:light}"
    '[data-jp-theme-light="false"] img.fl-still,.vscode-dark img.fl-still'
    "{color-scheme:dark}</style>"
)


def make_image_html(picture: Picture, size_css: str = "max-width:100%;max-height:78vh") -> str:
    """Make HTML that shows a picture as an image which is light or dark as the page is. It needs no
    script and no style sheet, as a notebook that is not trusted has neither.

    A picture that was drawn beforehand can be scrolled in a narrow place, since its letters would be
    too small to read if it were scaled down.
    """
    if picture.svg:
        size_css = "max-width:none"
    # Text as it is, with the signs escaped that mean something in an address: base64 is a third longer.
    source = quote(make_standalone_svg_of_picture(picture), safe=" /:;=,()+")
    image = (
        f'<img alt="{escape(picture.alt)}" class="fl-still" style="{size_css}" '
        f'src="data:image/svg+xml,{source}">'
    )
    if picture.svg:
        image = f'<div style="overflow-x:auto">{image}</div>'
    return image + STILL_STYLE


def format_table_html(
    table_rows: Sequence[Mapping[str, Any]], *, has_column_names_in_cells: bool = False
) -> str:
    """Format table rows as an HTML table. A column that a row lacks is empty there.

    has_column_names_in_cells: each cell has its column's name as `data-column`, for frames with room for one column
    """
    columns: dict[str, None] = {}  # each once, in their order
    for row in table_rows:
        columns |= dict.fromkeys(row)
    lines = [list(columns)]
    for row in table_rows:
        lines.append([format_table_cell(row.get(column, "")) for column in columns])
    return format_html_table(lines, should_add_data_column_attribute=has_column_names_in_cells)


def format_table_cell(value: Any) -> str:
    """Format a number with spaces between its thousands; other values as they are."""
    if isinstance(value, int):
        return f"{value:,}".replace(",", " ")
    return str(value)


def render_picture_png(picture: Picture | Figure) -> bytes:
    """Render a picture as PNG bytes (8-bit colours)."""
    figure = picture.figure if isinstance(picture, Picture) else picture
    out = io.BytesIO()
    draw_pixels(figure).save(out, "png", compress_level=6)
    return out.getvalue()


def render_png_for_notebook(picture: Picture) -> bytes:
    """Render a picture as a PNG of 256 colours, in a third of the bytes. It is stored in a notebook
    beside the HTML that is shown there, for slides and for programs without HTML.
    """
    out = io.BytesIO()
    draw_pixels(picture.figure).quantize(256).save(out, "png", optimize=True)
    return out.getvalue()


def draw_pixels(figure: Figure) -> Image.Image:
    """Draw a figure as an RGB image."""
    with LOCK:
        canvas = figure.canvas
        compute_layout_if_due(figure)
        canvas.draw()
        pixels = Image.frombuffer("RGBA", canvas.get_width_height(), canvas.buffer_rgba())
        return pixels.convert("RGB")


def render_picture_svg(picture: Picture) -> bytes:
    """Render a picture as SVG, its letters as text, for slides and papers."""
    if picture.svg:
        return picture.svg.encode()
    with LOCK, matplotlib.rc_context({"svg.fonttype": "none"}):
        compute_layout_if_due(picture.figure)
        return render_laid_out_figure_as_svg(picture.figure, "white").encode()


def make_standalone_svg_of_picture(picture: Picture) -> str:
    """Make an SVG for an `<img>` or a file, which is light or dark as the reader prefers; as large
    as the PNG.
    """
    if picture.svg:
        return picture.svg
    assert picture.figure is not None, "a picture without a figure has nothing to draw"
    title = picture.alt.partition(" (")[0]
    svg = draw_light_dark_svg_element(picture.figure)
    return make_standalone_svg(svg, title, picture.alt, pixels_per_point=DPI / 72)


def draw_light_dark_svg_element(figure: Figure) -> str:
    """Draw the figure as an SVG that fills its frame: the text of one element, with colours for a
    light and a dark page.
    """
    with LOCK, matplotlib.rc_context(SVG_OPTIONS):
        resize_figure_to_frame(figure)
        for ax in figure.axes:
            if ax.get_facecolor() == (1, 1, 1, 1):
                ax.patch.set_alpha(0)  # the page's own colour
        compute_layout_if_due(figure)
        text = render_laid_out_figure_as_svg(figure, "none", Date=None, Creator=None)
    return adapt_svg_to_themes(text)


def render_laid_out_figure_as_svg(figure: Figure, facecolor: str, **metadata: Any) -> str:
    """Render a figure as the text of an SVG file. Its layout must be computed already.

    This is faster than `Figure.savefig`, which draws the figure once more to compute its layout.
    """
    out = io.StringIO()
    dpi = figure.dpi
    colour = figure.get_facecolor()
    try:
        figure.set_facecolor(facecolor)
        FigureCanvasSVG(figure).print_svg(out, metadata=metadata or None)
    finally:
        # A new canvas, since the old one's bitmap would stay in memory until the next garbage collection.
        FigureCanvasAgg(figure)
        figure.set_dpi(dpi)
        figure.set_facecolor(colour)
    return out.getvalue()


@contextmanager
def use_figure_size(size_inches: tuple[float, float]) -> WithBlock:
    """Give new figures without an explicit size this one, in inches: the size of their frame."""
    token = _size.set(size_inches)
    try:
        yield
    finally:
        _size.reset(token)


def get_default_figure_size_inches() -> tuple[float, float]:
    """Return the width and height, in inches, of figures that are created without a size."""
    return _size.get()


def is_frame_narrow() -> bool:
    """Whether new figures are too narrow for two axes side by side, as on a telephone."""
    width, height = _size.get()
    return width < NARROW or (width < UPRIGHT and width < height)


def compute_layout_now(figure: Figure) -> None:
    """Compute the positions of the axes now, for code that depends on their size."""
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        exclude_data_from_layout(figure)
        engine.execute(figure)


def compute_layout_if_due(figure: Figure) -> None:
    """Compute the figure's layout, unless that has been done. It is the slowest part of a drawing."""
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        exclude_data_from_layout(figure)
        if figure.axes:
            # The first step of a drawing; its other steps are not needed here.
            engine.execute(figure)
        figure.set_layout_engine("none")
    shrink_titles_and_labels_that_do_not_fit(figure)


def shrink_titles_and_labels_that_do_not_fit(figure: Figure) -> None:
    """Shrink titles and x labels that do not fit, since the layout ignores their width.

    A title must not cross the edge of the figure or touch the title beside it; an x label must not
    cross the edge. A title that is still too long begins further left.
    """
    # {axes: its title and its usual size}
    usual_sizes = figure.__dict__.setdefault("fedlab_words", {})
    titles = [usual_sizes[ax] for ax in figure.axes if ax in usual_sizes]
    labels = []
    for ax in figure.axes:
        label = ax.xaxis.label
        labels.append(usual_sizes.setdefault(ax.xaxis, (label, label.get_fontsize())))
    for text, size in (*titles, *labels):
        text.set_fontsize(size)
    # The canvas's renderer: the one that drew last may be that of an SVG, whose pixels have another size.
    canvas: Any = figure.canvas
    renderer = canvas.get_renderer()
    fit_titles_side_by_side([title for title, _ in titles], figure, renderer)
    edge = figure.bbox.x1
    for axis_label, _ in labels:
        box = axis_label.get_window_extent(renderer)
        middle = (box.x0 + box.x1) / 2
        shrink_text_to_width(axis_label, box.width, 2 * min(middle, edge - middle))


class FittedTitle(NamedTuple):
    """The left, lower and upper end of a title, in pixels."""

    left: float
    low: float
    high: float


def fit_titles_side_by_side(titles: Sequence[Text], figure: Figure, renderer: Any) -> None:
    """Shrink titles, the rightmost one first, until each ends before the next one at the same
    height. A title that is still too long is moved to the left.
    """
    gap = figure.dpi / 12
    boxes = []
    for title in titles:
        title.set_x(0)
        boxes.append((title.get_window_extent(renderer), title))
    fitted: list[FittedTitle] = []
    for box, title in sorted(boxes, key=lambda entry: -entry[0].x0):
        right_limit = figure.bbox.x1
        for fitted_title in fitted:
            is_at_same_height = fitted_title.low < box.y1 and fitted_title.high > box.y0
            if is_at_same_height:
                right_limit = min(right_limit, fitted_title.left)
        right_limit -= gap
        shrink_text_to_width(title, box.width, right_limit - box.x0)
        shift = 0.0
        if title.get_fontsize() <= LEAST:
            right = title.get_window_extent(renderer).x1
            shift = max(0.0, min(right - right_limit, box.x0 - gap))
        title.set_x(-shift / title.axes.bbox.width)
        fitted.append(FittedTitle(box.x0 - shift, box.y0, box.y1))


def shrink_text_to_width(text: Text, text_pixels: float, available_pixels: float) -> None:
    """Shrink a text of this width to fit into `available_pixels` (pixels), down to the smallest
    legible size.
    """
    if text_pixels > available_pixels > 0:
        # A little less than the size that fits, since widths are whole pixels.
        font_size = 0.98 * text.get_fontsize() * available_pixels / text_pixels
        text.set_fontsize(max(LEAST, font_size))


def exclude_data_from_layout(figure: Figure) -> None:
    """Make the layout ignore everything inside the axes.

    It makes room for titles, labels, ticks, and texts whose gid begins with OUTSIDE.
    """
    for ax in figure.axes:
        for artist in (*ax.lines, *ax.collections, *ax.patches, *ax.images, *ax.texts):
            artist.set_in_layout((artist.get_gid() or "").startswith(OUTSIDE))


def make_figure(
    size_inches: tuple[float, float] | None = None, *, has_fixed_axes: bool = False
) -> Figure:
    """Make an empty white figure.

    size_inches:    width and height in inches, by default `get_default_figure_size_inches()`
    has_fixed_axes: its axes stay where they are put, which is faster; otherwise the layout is computed when
        the figure is first drawn
    """
    figure = Figure(
        figsize=size_inches or get_default_figure_size_inches(), dpi=DPI, facecolor="white"
    )
    FigureCanvasAgg(figure)
    figure.set_gid(None if size_inches else FOLLOWS)
    if not has_fixed_axes:
        schedule_layout(figure)
    return figure


def schedule_layout(figure: Figure) -> None:
    """Let the figure's layout be computed when it is drawn next."""
    figure.set_layout_engine("constrained", w_pad=0.08, h_pad=0.07, wspace=0.04, hspace=0.04)


def resize_figure_to_frame(figure: Figure) -> None:
    """Resize a reused figure to the present frame."""
    if (
        figure.get_gid() == FOLLOWS
        and tuple(figure.get_size_inches()) != get_default_figure_size_inches()
    ):
        figure.set_size_inches(*get_default_figure_size_inches())
        if figure.get_layout_engine() is not None:
            schedule_layout(figure)


@contextmanager
def drawing(
    rows: int = 1,
    columns: int = 1,
    *,
    size: tuple[float, float] | None = None,
    fixed: bool = False,
    **grid: Any,
) -> Iterator[tuple[Figure, Any]]:
    """Make a figure with axes, as `Figure.subplots` does, and hold the drawing lock until the block
    ends.

    In a narrow frame, axes side by side are put below each other.

    size:  in inches; None: the size of the frame
    fixed: yields None instead of axes; those that `figure.add_axes` adds stay where they are put
    grid:  arguments of `Figure.subplots`
    """
    if rows == 1 and 1 < columns < 4 and size is None and is_frame_narrow():
        rows, columns = columns, rows
        if "width_ratios" in grid:
            grid["height_ratios"] = grid.pop("width_ratios")
    with LOCK:
        figure = make_figure(size, has_fixed_axes=fixed)
        yield figure, None if fixed else figure.subplots(rows, columns, **grid)


def write_axes_title(ax: Axes, text: str, pad_points: float = 7, font_size: float = TITLE) -> Text:
    """Write the bold title above the left end of the axes, and return it."""
    title = ax.set_title(
        text, loc="left", y=1, fontsize=font_size, fontweight="bold", color=INK, pad=pad_points
    )
    figure: Any = ax.get_figure(root=True)
    figure.__dict__.setdefault("fedlab_words", {})[ax] = title, font_size
    return title


def dress(
    ax: Axes,
    *,
    title: str = "",
    x: str = "",
    y: str = "",
    grid: GridLinesOfAxis = "",
    size: float = 10,
) -> Axes:
    """Style the axes: two thin spines, a left-aligned title, the axis labels `x` and `y`.

    grid: the axis with grid lines behind the data
    size: font size of the axis labels
    """
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(RULE)
    ax.tick_params(which="both", colors=QUIET, labelcolor=INK, labelsize=9.5, length=3, width=0.8)
    ax.tick_params(which="minor", length=0)
    if title:
        write_axes_title(ax, title)
    ax.set_xlabel(x, fontsize=size, color=QUIET)
    ax.set_ylabel(y, fontsize=size, color=QUIET)
    if grid:
        ax.grid(True, which="major", axis=grid, color=FAINT, linewidth=1)
        ax.set_axisbelow(True)
    return ax


def add_legend(owner: Axes | Figure, **options: Any) -> Legend:
    """Add a legend without a frame, and return it; a narrow figure gets at most two columns."""
    max_columns = 2 if is_frame_narrow() else 9
    options["ncols"] = min(options.get("ncols", 1), max_columns)
    new_legend = owner.legend(frameon=False, fontsize=9, labelcolor=INK, **options)
    new_legend.get_title().set(fontsize=9, color=QUIET)
    return new_legend


Colour = str | tuple[float, ...]  # '#0072B2', or red, green, blue and opacity, each 0-1


def list_class_colours(class_count: int) -> list[Colour]:
    """Return one colour per class: petroff10 for up to ten classes, steps of cividis for more."""
    if class_count <= len(PETROFF10):
        return list(PETROFF10[:class_count])
    steps = [i / (class_count - 1) for i in range(class_count)]
    return [tuple(colour) for colour in CIVIDIS(steps)]


# ------------------------------------------------------------------------------------------------------------- axes
PERCENT = FuncFormatter(lambda v, _: format_percent(v))  # 0.25 -> 25 %
ValueFormatter = Callable[[float], str]  # how an axis writes a value
FIFTHS = (0, 0.2, 0.4, 0.6, 0.8, 1)
QUARTERS = (0, 0.25, 0.5, 0.75, 1)
HALVES = (0, 0.5, 1)
DOTS = (0, (2, 2))  # the dashes of reference lines
XYPoints = Sequence[tuple[float, float]]  # (x, y) of each
AxisName = Literal["x", "y"]
GridLinesOfAxis = Literal["", "x", "y", "both"]


def format_bytes_or_zero(byte_count: float) -> str:
    """Format the bytes at a tick: 26280 -> '26.3 kB'."""
    return format_data_size(byte_count) if byte_count else "0"


# ---------------------------------------------------------------------------------------------------- scales and ticks
def set_percent_axis(
    ax: Axes,
    axis: AxisName = "y",
    highest_share: float | None = 1.0,
    *,
    lowest_share: float = 0.0,
    ticks: Sequence[float] = (),
) -> None:
    """Write an axis of shares in percent.

    highest_share: upper end of the axis; with None both limits stay free
    ticks:         shares at the ticks (FIFTHS, HALVES); by default matplotlib's
    """
    if highest_share is not None:
        ax.set(**{f"{axis}lim": (lowest_share, highest_share)})
    if ticks:
        ax.set(**{f"{axis}ticks": ticks})
    getattr(ax, f"{axis}axis").set_major_formatter(PERCENT)


def limit_tick_count(
    ax: Axes,
    axis: AxisName,
    max_ticks: int,
    *,
    only_whole_numbers: bool = False,
    format_value: ValueFormatter | None = None,
) -> None:
    """Set about `max_ticks` ticks at most.

    only_whole_numbers:     ticks at whole numbers only
    format_value: formats a tick's value, such as `format_bytes_or_zero`
    """
    ticked_axis = getattr(ax, f"{axis}axis")
    ticked_axis.set_major_locator(MaxNLocator(max_ticks, integer=only_whole_numbers))
    if format_value is not None:
        ticked_axis.set_major_formatter(lambda v, _: format_value(v))


def set_log_axis(
    ax: Axes,
    axis: AxisName = "x",
    *,
    ticks: Sequence[float] = (),
    max_ticks: int = 6,
    format_value: ValueFormatter = "{:g}".format,
) -> None:
    """Make an axis logarithmic, without minor ticks.

    ticks:        where the ticks are; by default at `max_ticks` powers of ten
    format_value: formats a tick's value
    """
    ax.set(**{f"{axis}scale": "log"})
    log_axis = getattr(ax, f"{axis}axis")
    if ticks:
        log_axis.set_major_locator(FixedLocator(ticks))
    else:
        log_axis.set_major_locator(LogLocator(10, numticks=max_ticks))
    log_axis.set_major_formatter(lambda v, _: format_value(v))
    log_axis.set_minor_locator(NullLocator())


def set_log_bytes_x_axis(ax: Axes, byte_counts: Sequence[float], range_factor: float = 1.6) -> None:
    """Make the x axis a logarithmic axis of bytes that covers `byte_counts`, two decades at least.

    range_factor: factor by which it reaches beyond the least and the greatest value
    """
    positive = [v for v in byte_counts if v > 0] or [1.0]
    low = min(positive) / range_factor
    high = max(positive) * range_factor
    if high / low < 100:
        middle = math.sqrt(high * low)
        low = min(low, middle / 10)
        high = max(high, middle * 10)
    ax.set_xlim(low, high)
    set_log_axis(ax, format_value=format_bytes_or_zero)


def hide_spines(ax: Axes, *sides: str) -> None:
    """Hide the spines of `sides`, or all four if none is named."""
    ax.spines[list(sides) or list(ax.spines)].set_visible(False)


def set_y_axis_of_named_rows(
    ax: Axes, row_names: Sequence[str], *, min_rows: int = 0, font_size: float | None = None
) -> None:
    """Set up the y axis for horizontal bars: rows 0, 1, … from the top down, named on the left.

    min_rows:  number of rows for which there is room, so that few bars stay thin
    font_size: font size of the names, by default chosen by the number of rows
    """
    ax.set_yticks(
        range(len(row_names)),
        row_names,
        fontsize=font_size or choose_font_size_points_for_rows(len(row_names)),
    )
    ax.set_ylim(max(len(row_names), min_rows) - 0.5, -0.5)
    hide_spines(ax, "left")
    ax.tick_params(axis="y", length=0)


def choose_font_size_points_for_rows(row_count: int) -> float:
    """Choose the font size for the names of this many rows."""
    if row_count <= 9:
        return 10
    if row_count <= 14:
        return 8.5
    return 7


def set_client_x_ticks(ax: Axes, client_count: int, *, max_single_ticks: int = 16) -> None:
    """Set one x tick per client, or ticks at round numbers if there are more than
    `max_single_ticks`.
    """
    ax.set_xticks(range(client_count))
    if client_count > max_single_ticks:
        ax.xaxis.set_major_locator(MaxNLocator(13, integer=True, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(lambda v, _: format_client_tick(v, client_count))


def format_client_tick(tick_position: float, client_count: int) -> str:
    """Return the letter of the client at a tick, or '' if there is no client."""
    client = round(tick_position)
    if not 0 <= client < client_count:
        return ""
    return format_client_letters(client)


def set_class_ticks(
    ax: Axes,
    class_names: Sequence[str],
    axis: AxisName = "x",
    *,
    max_letters: int = 8,
    max_single_ticks: int = 20,
    max_ticks: int = 10,
    **tick_options: Any,
) -> None:
    """Set the classes' names, cut to `max_letters` letters, as ticks.

    max_single_ticks: up to this many classes get a tick each; of more classes about `max_ticks` do
    tick_options:     options of `Axes.set_xticks`, such as fontsize
    """
    short_names = shorten_labels(class_names, max_letters)
    class_axis = getattr(ax, f"{axis}axis")
    if len(class_names) <= max_single_ticks:
        class_axis.set_ticks(range(len(class_names)), short_names, **tick_options)
        attach_tick_hover_texts(
            class_axis, [f"class {name}" if name else "" for name in class_names], "class_index"
        )
        return

    def format_class(value: float, _: int) -> str:
        return short_names[int(value)] if 0 <= value < len(short_names) else ""

    class_axis.set_major_locator(MaxNLocator(max_ticks, integer=True))
    class_axis.set_major_formatter(format_class)


# --------------------------------------------------------------------------------------------------------------- marks
def highlight_row_or_column(
    ax: Axes,
    index: int | None,
    count: int,
    axis: AxisName = "x",
    *,
    has_frame: bool = False,
    colour: str = ACCENT,
    line_width: float = 2.2,
) -> None:
    """Mark column `index` of `count` columns, or a row with axis "y", by a faint band or a frame.

    Does nothing if `index` is None or not below `count`.
    """
    if index is None or index >= count:
        return
    style: dict[str, Any] = {"color": colour, "alpha": 0.13, "lw": 0, "zorder": 0}
    if has_frame:
        style = {
            "fill": False,
            "edgecolor": colour,
            "lw": line_width,
            "zorder": 5,
            "clip_on": False,
        }
    draw_span = ax.axvspan if axis == "x" else ax.axhspan
    draw_span(index - 0.5, index + 0.5, **style)


def draw_level_line(
    ax: Axes,
    level: float,
    text: str = "",
    axis: AxisName = "y",
    *,
    colour: str = QUIET,
    line_width: float = 1,
    line_style: Any = DOTS,
    is_text_left: bool = False,
    is_text_below: bool = False,
) -> None:
    """Draw a thin dotted line across the axes at `level`, vertical with axis "x".

    text:  stands above the right end of a horizontal line
    is_text_left:  the text stands at the left end
    is_text_below: the text stands below the line
    """
    draw_line = ax.axhline if axis == "y" else ax.axvline
    draw_line(level, color=colour, lw=line_width, ls=line_style)
    if not text:
        return
    ax.annotate(
        text,
        (0.01 if is_text_left else 0.99, level),
        (0, -9.5 if is_text_below else 2.5),
        xycoords=ax.get_yaxis_transform(),
        textcoords="offset points",
        ha="left" if is_text_left else "right",
        fontsize=9,
        color=colour,
    )


# --------------------------------------------------------------------------------------------------------------- lines
class LinePoints(NamedTuple):
    """The points of a line, as matplotlib takes them."""

    x: list[float]
    y: list[float]


def average_seed_lines_over_common_range(xy_points_by_seed: Mapping[int, XYPoints]) -> LinePoints:
    """Average the lines `{seed: [(x, y), …]}` over the range of x that all seeds have. Lines are
    straight between their points.
    """
    lines = []
    for points in xy_points_by_seed.values():
        if points:
            lines.append(LinePoints([x for x, _ in points], [y for _, y in points]))
    if not lines:
        return LinePoints([], [])
    low = max(line.x[0] for line in lines)
    high = min(line.x[-1] for line in lines)
    places = set[float]()
    for line in lines:
        places.update(x for x in line.x if low <= x <= high)
    shared = sorted(places)
    values = [np.interp(shared, line.x, line.y) for line in lines]
    return LinePoints(shared, np.mean(values, axis=0).tolist())


def draw_seed_lines_and_get_mean(
    ax: Axes,
    xy_points_by_seed: Mapping[int, XYPoints],
    colour: str,
    marker: str = "",
    *,
    label: str = "",
    **mean_style: Any,
) -> LinePoints:
    """Draw the mean of the lines `{seed: [(x, y), …]}`, and of several seeds each one as a thin
    line. Returns the mean.

    mean_style: of the mean's line, as for `Axes.plot`
    """
    if len(xy_points_by_seed) > 1:
        for points in xy_points_by_seed.values():
            if points:
                x = [x for x, _ in points]
                y = [y for _, y in points]
                ax.plot(x, y, color=colour, lw=0.9, alpha=0.35)
    mean = average_seed_lines_over_common_range(xy_points_by_seed)
    mean_style = {"color": colour, "marker": marker or None, "lw": 2.2, "ms": 4.5, **mean_style}
    ax.plot(mean.x, mean.y, label=label or None, **mean_style)
    return mean


def spread_label_positions(
    positions: Sequence[float], min_gap: float, highest: float = math.inf, lowest: float = -math.inf
) -> list[float]:
    """Move positions so that neighbours are at least `min_gap` apart, and keep their order.

    The results are at least `lowest` and, if they all fit, at most `highest`.
    """
    order = sorted(range(len(positions)), key=lambda i: -positions[i])
    places = list(positions)
    limit = highest
    for i in order:
        places[i] = min(positions[i], limit)
        limit = places[i] - min_gap
    limit = lowest
    for i in reversed(order):
        places[i] = max(places[i], limit)
        limit = places[i] + min_gap
    return places


@functools.cache
def darken_colour_until_readable(colour: str) -> str:
    """Make a tone of a colour `#rrggbb` in which letters can be read on white: a darker one if it
    is too light.

    Bars and lines keep the colour itself. On a dark page both become lighter (`vector.py`).
    """
    red, green, blue = to_rgb(colour)
    share = 1.0
    while compute_contrast_with_white(share * red, share * green, share * blue) < READABLE:
        share -= 0.02
    return to_hex((share * red, share * green, share * blue))


def compute_contrast_with_white(*red_green_blue_0_to_1: float) -> float:
    """Compute the contrast of a colour with white as WCAG 2 defines it, from 1 to 21."""
    linear = []
    for channel in red_green_blue_0_to_1:
        is_dark = channel <= 0.04045
        linear.append(channel / 12.92 if is_dark else ((channel + 0.055) / 1.055) ** 2.4)
    luminance = float(np.dot(linear, [0.2126, 0.7152, 0.0722]))
    return 1.05 / (luminance + 0.05)


def draw_end_labels(
    ax: Axes,
    labels: Sequence[EndLabel],
    *,
    font_size: float = 9.5,
    min_gap_in_axes_heights: float = 0.052,
    **style: Any,
) -> None:
    """Write each line's name at its right end, beside the axes, so that no two names overlap.

    Call it after the limits of the axes are set.

    min_gap_in_axes_heights: between two names, as a share of the axes' height; it is larger if the letters need
    more
    """
    low, high = ax.get_ylim()
    texts = [text for _, text, _ in labels]
    if is_frame_narrow():
        texts = [text if "\n" in text else textwrap.fill(text, 14) for text in texts]
    most_lines = max((1 + text.count("\n") for text in texts), default=1)
    inches = ax.figure.get_size_inches()[1] * ax.get_position().height
    # In a low picture the letters need a larger share of the height.
    label_height = most_lines * font_size * LINE_SPACING / 72 / inches
    gap = max(min_gap_in_axes_heights, label_height) * (high - low)
    places = spread_label_positions([y for y, _, _ in labels], gap, high, low)
    style = {"va": "center", "clip_on": False, "gid": "outside", **style}
    style.setdefault("transform", ax.get_yaxis_transform())
    for place, text, (_, _, colour) in zip(places, texts, labels, strict=True):
        style["color"] = darken_colour_until_readable(colour)
        ax.text(1.02, place, text, fontsize=font_size, **style)


class LineEnd(NamedTuple):
    """Where a line ends. is_point: whether it is a single point"""

    name: str
    colour: str
    x: float
    y: float
    is_point: bool = False


def draw_names_at_line_ends(
    ax: Axes,
    line_ends: Sequence[LineEnd],
    *,
    font_size: float = 9.5,
    min_gap_in_axes_heights: float = 0.052,
) -> None:
    """Write each line's name where the line ends: beside the axes as `draw_end_labels` does if it ends near their right
    edge, otherwise at its end, and above a single point.

    Call it after the limits of the axes are set.
    """
    labels = []
    for end in line_ends:
        share, _ = ax.transAxes.inverted().transform(ax.transData.transform((end.x, end.y)))
        if share > NEAR_EDGE:
            labels.append(EndLabel(end.y, end.name, end.colour))
            continue
        ax.annotate(
            end.name,
            (end.x, end.y),
            xytext=(0, 7) if end.is_point else (9, 0),
            textcoords="offset points",
            ha="center" if end.is_point else "left",
            va="bottom" if end.is_point else "center",
            fontsize=font_size,
            color=darken_colour_until_readable(end.colour),
            path_effects=[withStroke(linewidth=3, foreground="white")],
        )
    draw_end_labels(
        ax, labels, font_size=font_size, min_gap_in_axes_heights=min_gap_in_axes_heights
    )


# ------------------------------------------------------------------------------------------------- colour bars
def draw_colour_bar(
    image: AxesImage, ax: Axes | Sequence[Axes], label: str = "", **options: Any
) -> Colorbar:
    """Draw a colour bar of `image` beside `ax`.

    options: as for `Figure.colorbar` (cax, pad, aspect, format, …)
    """
    bar = image.axes.figure.colorbar(image, **{"pad": 0.02, "aspect": 28, "ax": ax, **options})
    bar.outline.set_visible(False)
    bar.locator = MaxNLocator(5)
    bar.ax.tick_params(labelsize=8.5, colors=QUIET, labelcolor=INK)
    if label:
        bar.set_label(label, fontsize=9, color=QUIET)
    return bar


def set_client_x_ticks_and_label(
    ax: Axes, client_count: int, setting: SettingCaption | str, *, max_single_ticks: int = 16
) -> None:
    """Set the clients' ticks and the label of the x axis. Clients with a name in the course's story
    get a ✦.

    It may be called again for another setting; the axes stay where they are.
    """
    characters = find_story_names_of_clients(setting)
    label = make_client_axis_label(setting)
    # In a narrow frame the label alone names them.
    marked_clients = {} if is_frame_narrow() else characters
    set_client_x_ticks(ax, client_count, max_single_ticks=max_single_ticks)

    def write_tick(value: float, _: object) -> str:
        client = round(value)
        if not 0 <= client < client_count:
            return ""
        text = format_client_letter(client, setting)
        return text + SYMBOL if client in marked_clients else text

    ax.xaxis.set_major_formatter(FuncFormatter(write_tick))
    if client_count <= max_single_ticks:
        attach_tick_hover_texts(
            ax.xaxis,
            [
                capitalize_first_letter(format_client_for_title(k, setting))
                for k in range(client_count)
            ],
            "client",
        )
    ax.set_xlabel(label, fontsize=10 if label == "client" else 9, color=QUIET)
