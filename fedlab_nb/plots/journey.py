"""What travels in a method, and what the server needs: `journey("fens")`; `journey(*METHODS)` is the map of all.

Clients stand at the left, the server at the right. All words come from the registry (`Info`), so a new method has its
drawing. Lengths are inches of a drawing at scale 1.
"""

import textwrap
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from ..front.flight import name_result
from ..methods import METHODS
from ..methods.base import Info, group_methods, shorten_title
from .kit import describe_picture
from .style import ACCENT, FAINT, INK, LEAST, QUIET, SECOND, Picture, current_size, drawing, heading
from .words import build_table, format_letters

WIDE = 2.6  # width of one drawing
TALL = 1.2  # height of one drawing
SMALL = 2.5  # least width of a drawing with its edges
NEAR = 0.52  # where an arrow begins at the clients
FAR = 1.7  # where an arrow ends at the server
DATA = "▦"
# The symbol of what is sent, by a word of its description; all else is a network.
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


class Tile(NamedTuple):
    """One drawing in words, in the order of COLUMNS."""

    methods: str
    sends: str
    when: str
    comes_back: str
    needs: str
    returns: str


def journey(*methods: str) -> Picture:
    """What clients send, what comes back, and what the server needs beside it and returns.

    Of one method a large drawing; of several a small one for each group and kind of thing that is
    sent, with the names below it.
    """
    tiles = group_into_tiles(methods)
    is_single = len(methods) == 1
    width, _ = current_size()
    columns = max(1, min(len(tiles), int(width / SMALL)))
    scale = min((width / columns - 0.25) / WIDE, 2.6 if is_single else 1.4)
    font_size = compute_font_size(scale)
    line = 1.4 * font_size / 72
    names = [wrap_text(describe_tile(tile).methods, WIDE, scale) for tile in tiles]
    row_heights = []
    for start in range(0, len(tiles), columns):
        most_breaks = max(text.count("\n") for text in names[start : start + columns])
        row_heights.append(TALL * scale + (3.4 + most_breaks) * line)
    height = sum(row_heights) or 1
    with drawing(size=(width, height), fixed=True) as (figure, _):
        for number, (text, tile) in enumerate(zip(names, tiles, strict=True)):
            row, column = divmod(number, columns)
            left = 0.12 + column * width / columns
            low = sum(row_heights[row:]) - 1.9 * line - TALL * scale
            place = (left / width, low / height, WIDE * scale / width, TALL * scale / height)
            ax = figure.add_axes(place, xlim=(0, WIDE), ylim=(0, TALL))
            ax.set_axis_off()
            group = tile[0].group
            if is_single:
                heading(ax, f"{text}: {group.lower()}", 3, font_size + 1.5)
                MethodDrawing(ax, scale).draw(tile, tile[0].extra)
            else:
                heading(ax, group, 3, font_size + 1.5)
                MethodDrawing(ax, scale).draw(tile, "")
                style = {"size": font_size, "color": ACCENT, "va": "top", "linespacing": 1.3}
                ax.text(0, 0, text, **style)
    sentence = "Not drawn: the start, or the seed, that all clients get first."
    table = build_table(COLUMNS, [describe_tile(tile) for tile in tiles])
    return describe_picture(figure, "What travels between clients and server", "", sentence, table)


def group_into_tiles(methods: Sequence[str]) -> list[list[Info]]:
    """Methods by group and by what is sent, a drawing each."""
    tiles = defaultdict(list)
    for names in group_methods(methods).values():
        for name in names:
            info = METHODS[name].info
            tiles[info.group, find_symbol(info)].append(info)
    return list(tiles.values())


class MethodDrawing:
    """The drawing of a method on one pair of axes."""

    def __init__(self, ax: Axes, scale: float) -> None:
        self.ax = ax
        self.scale = scale

    def draw(self, tile: Sequence[Info], extra: str) -> None:
        """Draw what the methods of a tile have in common, as its first one has it.

        extra: what clients need beside their data, or the server beside what is sent
        """
        words = describe_tile(tile)
        self._draw_clients(tile[0], extra)
        self._draw_server(words)
        if words.sends:
            self._draw_upload(tile[0], words)
        if words.comes_back:
            self._draw_arrow(FAR, NEAR, 0.5, SECOND)
            style = {"ha": "center", "va": "top", "color": SECOND}
            self._write(1.1, 0.44, words.comes_back, 1.15, **style)

    def _draw_clients(self, info: Info, extra: str) -> None:
        """Three clients with their data, and below them whether the data stay there."""
        for client, low in enumerate((0.9, 0.6, 0.3)):
            self._draw_box(0, low, 0.44, 0.24)
            style = {"size": 10 * self.scale, "color": QUIET, **MIDDLE}
            self.ax.text(0.14, low + 0.12, DATA, **style)
            self._write(0.32, low + 0.11, format_letters(client), **MIDDLE)
        if info.leaks == "everything":
            text = "data leave"
        elif "images" in info.sends:
            text = "a few images leave"
        else:
            text = "data stay"
        has_extra = extra not in ("", "nothing") and "public" not in info.needs
        if "client" in extra or has_extra:
            text += f"; {extra}"
        self._write(0, 0.24, text, 1.65, color=QUIET, va="top")

    def _draw_server(self, words: Tile) -> None:
        """The server, what it needs and what it returns."""
        self._draw_box(1.74, 0.2, 0.86, 0.94)
        self._write(1.8, 1.08, "Server", weight="bold", va="top")
        if not words.sends:
            self._write(1.8, 0.9, "gets nothing", va="top")
            return
        self._write(1.8, 0.9, f"needs {words.needs}", va="top")
        self._write(1.8, 0.26, f"returns {words.returns}", va="bottom")

    def _draw_upload(self, info: Info, words: Tile) -> None:
        """The arrow from the clients to the server, with the symbol of what is sent."""
        self._draw_arrow(NEAR, FAR, 0.74, ACCENT)
        text = words.sends
        if words.when:
            text += ", " + words.when.replace(" ", "\xa0")
        self._write(1.1, 0.86, text, 1.15, ha="center", color=ACCENT)
        symbol = find_symbol(info)
        frame = {"fc": "white", "ec": ACCENT, "boxstyle": "round,pad=0.25"}
        style = {"size": 9 * self.scale, "color": ACCENT, "weight": "bold", **MIDDLE}
        self.ax.text(1.08, 0.74, symbol or "   ", bbox=frame, **style)
        if not symbol:
            self._draw_small_network()

    def _draw_small_network(self) -> None:
        style = {"color": ACCENT, "ms": 2.5 * self.scale, "lw": self.scale, "zorder": 5}
        self.ax.plot([1.02, 1.14, 1.02], [0.7, 0.74, 0.78], "o-", **style)

    def _draw_box(self, left: float, low: float, width: float, height: float) -> None:
        shape = "round,pad=0,rounding_size=0.04"
        style = {"fc": FAINT, "ec": QUIET, "lw": 1, "clip_on": False}
        self.ax.add_patch(FancyBboxPatch((left, low), width, height, shape, **style))

    def _draw_arrow(self, start: float, end: float, height: float, colour: str) -> None:
        style = {"arrowstyle": "-|>", "color": colour, "lw": 1.5}
        self.ax.annotate("", (end, height), (start, height), arrowprops=style)

    def _write(self, left: float, low: float, text: str, width: float = 0.8, **style: Any) -> None:
        """Write a text in lines of at most `width`."""
        style = {
            "size": compute_font_size(self.scale),
            "linespacing": 1.3,
            "color": INK,
            **style,
        }
        self.ax.text(left, low, wrap_text(text, width, self.scale), **style)


def find_symbol(info: Info) -> str:
    """The symbol of what a method's clients send; "" for a network, which is drawn."""
    for word, symbol in SYMBOLS.items():
        if word in info.sends:
            return symbol
    return ""


def describe_tile(tile: Sequence[Info]) -> Tile:
    """A drawing in words: its first method, and how the others differ from it."""
    head = tile[0]
    if head.rounds.startswith("one-shot"):
        when = "once"
    else:
        when = head.rounds.partition(",")[0].removeprefix("none")
    returns = name_result(head.name if len(tile) == 1 else "", head.group)
    return Tile(
        methods="; ".join(name_variant(info, head) for info in tile),
        sends=head.sends,
        when=when,
        comes_back=head.back,
        needs="public images" if "public" in head.needs else "nothing else",
        returns=returns if head.sends else "nothing",
    )


def name_variant(info: Info, head: Info) -> str:
    """A method's short name, and what differs from the first of its drawing:
    'FedKD (+ class counts)'."""
    name = shorten_title(info.title)
    differences = []
    more = info.sends.removeprefix(head.sends).strip()
    if more:
        differences.append(more)
    if info.back and info.back != head.back:
        differences.append(f"back: {info.back}")
    if not differences:
        return name
    return f"{name} ({', '.join(differences)})"


def compute_font_size(scale: float) -> float:
    """Points of a drawing's letters."""
    return max(LEAST, 4.4 * scale)


def wrap_text(text: str, width: float, scale: float) -> str:
    """`text` in lines of at most `width`, in inches of a drawing at scale 1."""
    letters = int(width * scale * 72 / (0.57 * compute_font_size(scale)))
    return textwrap.fill(text, max(8, letters))
