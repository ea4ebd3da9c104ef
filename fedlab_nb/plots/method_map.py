"""A map of methods: what their clients send, what comes back, and what the server needs.

Clients are on the left, the server on the right. All words come from the registry (`Info`), so a
new method has its drawing before it has run. What a run really sends is drawn by `journey`. Lengths
are in inches of a drawing at scale 1.
"""

import textwrap
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from ..front.flight import describe_final_server_model
from ..methods import METHODS
from ..methods.base import Info, group_method_names, shorten_method_title
from .kit import describe_picture
from .style import (
    ACCENT,
    FAINT,
    INK,
    LEAST,
    QUIET,
    SECOND,
    Picture,
    darken_colour_until_readable,
    drawing,
    get_default_figure_size_inches,
    write_axes_title,
)
from .words import build_table, format_client_letters

DRAWING_WIDTH = 2.6
DRAWING_HEIGHT = 1.2
MIN_WIDTH = 2.5  # of a drawing with its margins
ARROW_START = 0.52  # x, at the clients
ARROW_END = 1.7  # x, at the server
DATA = "▦"
# {word in the description of an upload: its symbol}; any other upload is a network.
SYMBOLS = {
    "image": DATA,
    "sample": DATA,
    "generator": DATA,
    "sums": "Σ",
    "Gaussian": "Σ",
    "prediction": "p",
}
COLUMNS = "methods | a client sends | when | comes back | the server needs | returns"


MIDDLE = {"ha": "center", "va": "center"}


class TileTexts(NamedTuple):
    """The texts of one drawing, in the order of COLUMNS."""

    methods: str
    sends: str
    when: str
    comes_back: str
    needs: str
    returns: str


def draw_method_map(methods: Sequence[str]) -> Picture:
    """Draw one tile for each group of methods and kind of upload, with the methods' names below it."""
    tiles = group_methods_into_tiles(methods)
    width, _ = get_default_figure_size_inches()
    columns = max(1, min(len(tiles), int(width / MIN_WIDTH)))
    scale = min((width / columns - 0.25) / DRAWING_WIDTH, 1.4)
    font_size = compute_font_size_points(scale)
    line = 1.4 * font_size / 72
    names = [
        wrap_text_to_drawing_width(make_tile_texts(tile).methods, DRAWING_WIDTH, scale)
        for tile in tiles
    ]
    row_heights = []
    for start in range(0, len(tiles), columns):
        most_breaks = max(text.count("\n") for text in names[start : start + columns])
        row_heights.append(DRAWING_HEIGHT * scale + (3.4 + most_breaks) * line)
    height = sum(row_heights) or 1
    with drawing(size=(width, height), fixed=True) as (figure, _):
        for number, (text, tile) in enumerate(zip(names, tiles, strict=True)):
            row, column = divmod(number, columns)
            left = 0.12 + column * width / columns
            bottom = sum(row_heights[row:]) - 1.9 * line - DRAWING_HEIGHT * scale
            axes_position = (
                left / width,
                bottom / height,
                DRAWING_WIDTH * scale / width,
                DRAWING_HEIGHT * scale / height,
            )
            ax = figure.add_axes(axes_position, xlim=(0, DRAWING_WIDTH), ylim=(0, DRAWING_HEIGHT))
            ax.set_axis_off()
            write_axes_title(ax, tile[0].group, 3, font_size + 1.5)
            MethodTile(ax, scale).draw(tile)
            style = {"size": font_size, "color": ACCENT, "va": "top", "linespacing": 1.3}
            ax.text(0, 0, text, **style)
    sentence = "Not drawn: the start, or the seed, that all clients get first."
    table = build_table(COLUMNS, [make_tile_texts(tile) for tile in tiles])
    return describe_picture(figure, "What travels between clients and server", "", sentence, table)


def group_methods_into_tiles(methods: Sequence[str]) -> list[list[Info]]:
    """Group the methods by their group and by the symbol of what they send. Each result is one
    tile.
    """
    tiles = defaultdict(list)
    for names in group_method_names(methods).values():
        for name in names:
            info = METHODS[name].info
            tiles[info.group, get_upload_symbol_or_empty(info)].append(info)
    return list(tiles.values())


class MethodTile:
    """A tile of the map on one pair of axes."""

    def __init__(self, ax: Axes, scale: float) -> None:
        self.ax = ax
        self.scale = scale

    def draw(self, tile_methods: Sequence[Info]) -> None:
        """Draw a tile with the words of its first method."""
        words = make_tile_texts(tile_methods)
        self._draw_clients(tile_methods[0])
        self._draw_server(words)
        if words.sends:
            self._draw_upload(tile_methods[0], words)
        if words.comes_back:
            self._draw_horizontal_arrow(ARROW_END, ARROW_START, 0.5, SECOND)
            style = {"ha": "center", "va": "top", "color": darken_colour_until_readable(SECOND)}
            self._write_wrapped_text(1.1, 0.44, words.comes_back, 1.15, **style)

    def _draw_clients(self, info: Info) -> None:
        """Draw three clients with their data, and write below them whether the data stay there."""
        for client, low in enumerate((0.9, 0.6, 0.3)):
            self._draw_box(0, low, 0.44, 0.24)
            style = {"size": 10 * self.scale, "color": QUIET, **MIDDLE}
            self.ax.text(0.14, low + 0.12, DATA, **style)
            self._write_wrapped_text(0.32, low + 0.11, format_client_letters(client), **MIDDLE)
        if info.leaks == "everything":
            text = "data leave"
        elif "images" in info.sends:
            text = "a few images leave"
        else:
            text = "data stay"
        self._write_wrapped_text(0, 0.24, text, 1.65, color=QUIET, va="top")

    def _draw_server(self, texts: TileTexts) -> None:
        """Draw the server, what it needs and what it returns."""
        self._draw_box(1.74, 0.2, 0.86, 0.94)
        self._write_wrapped_text(1.8, 1.08, "Server", weight="bold", va="top")
        if not texts.sends:
            self._write_wrapped_text(1.8, 0.9, "gets nothing", va="top")
            return
        self._write_wrapped_text(1.8, 0.9, f"needs {texts.needs}", va="top")
        self._write_wrapped_text(1.8, 0.26, f"returns {texts.returns}", va="bottom")

    def _draw_upload(self, info: Info, texts: TileTexts) -> None:
        """Draw the arrow from the clients to the server, with the symbol of what is sent."""
        self._draw_horizontal_arrow(ARROW_START, ARROW_END, 0.74, ACCENT)
        text = texts.sends
        if texts.when:
            text += ", " + texts.when.replace(" ", "\xa0")
        self._write_wrapped_text(1.1, 0.86, text, 1.15, ha="center", color=ACCENT)
        symbol = get_upload_symbol_or_empty(info)
        frame = {"fc": "white", "ec": ACCENT, "boxstyle": "round,pad=0.25"}
        style = {"size": 9 * self.scale, "color": ACCENT, "weight": "bold", **MIDDLE}
        self.ax.text(1.08, 0.74, symbol or "   ", bbox=frame, **style)
        if not symbol:
            self._draw_small_network()

    def _draw_small_network(self) -> None:
        style = {"color": ACCENT, "ms": 2.5 * self.scale, "lw": self.scale, "zorder": 5}
        self.ax.plot([1.02, 1.14, 1.02], [0.7, 0.74, 0.78], "o-", **style)

    def _draw_box(self, left: float, bottom: float, width: float, height: float) -> None:
        shape = "round,pad=0,rounding_size=0.04"
        style = {"fc": FAINT, "ec": QUIET, "lw": 1, "clip_on": False}
        self.ax.add_patch(FancyBboxPatch((left, bottom), width, height, shape, **style))

    def _draw_horizontal_arrow(self, start_x: float, end_x: float, y: float, colour: str) -> None:
        style = {"arrowstyle": "-|>", "color": colour, "lw": 1.5}
        self.ax.annotate("", (end_x, y), (start_x, y), arrowprops=style)

    def _write_wrapped_text(
        self, x: float, y: float, text: str, width_in_drawing_inches: float = 0.8, **style: Any
    ) -> None:
        """Write a text in lines of at most `width_in_drawing_inches`."""
        style = {
            "size": compute_font_size_points(self.scale),
            "linespacing": 1.3,
            "color": INK,
            **style,
        }
        self.ax.text(
            x, y, wrap_text_to_drawing_width(text, width_in_drawing_inches, self.scale), **style
        )


def get_upload_symbol_or_empty(info: Info) -> str:
    """Return the symbol of what a method's clients send; "" for a network, which is drawn."""
    for word, symbol in SYMBOLS.items():
        if word in info.sends:
            return symbol
    return ""


def make_tile_texts(tile_methods: Sequence[Info]) -> TileTexts:
    """Make the texts of a tile: those of its first method, and how the others differ from it."""
    first_method = tile_methods[0]
    if first_method.rounds.startswith("one-shot"):
        when = "once"
    else:
        when = first_method.rounds.partition(",")[0].removeprefix("none")
    returns = describe_final_server_model(
        first_method.name if len(tile_methods) == 1 else "", first_method.group
    )
    return TileTexts(
        methods="; ".join(
            format_name_with_differences(info, first_method) for info in tile_methods
        ),
        sends=first_method.sends,
        when=when,
        comes_back=first_method.back,
        needs="public images" if "public" in first_method.needs else "nothing else",
        returns=returns if first_method.sends else "nothing",
    )


def format_name_with_differences(info: Info, first_method: Info) -> str:
    """Format a method's short name and how it differs from `first_method`, the first method of its
    drawing: 'FedKD (+ class counts)'.
    """
    name = shorten_method_title(info.title)
    differences = []
    further_uploads = info.sends.removeprefix(first_method.sends).strip(", ")
    if further_uploads:
        differences.append(further_uploads)
    if info.back and info.back != first_method.back:
        differences.append(f"back: {info.back}")
    if not differences:
        return name
    return f"{name} ({', '.join(differences)})"


def compute_font_size_points(drawing_scale: float) -> float:
    """Compute the font size, in points, of a drawing."""
    return max(LEAST, 4.4 * drawing_scale)


def wrap_text_to_drawing_width(
    text: str, width_in_drawing_inches: float, drawing_scale: float
) -> str:
    """Wrap a text in lines of at most `width_in_drawing_inches`, in inches of a drawing at scale 1."""
    letters = int(
        width_in_drawing_inches
        * drawing_scale
        * 72
        / (0.57 * compute_font_size_points(drawing_scale))
    )
    return textwrap.fill(text, max(8, letters))
