"""What travels in a method, and what the server needs: `journey("fens")`; `journey(*METHODS)` is the map of all.

Clients stand at the left, the server at the right. All words come from the registry (`Info`), so a new method has its
drawing. Lengths are inches of a drawing at scale 1.
"""

import textwrap
from collections import defaultdict

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch, Rectangle

from ..methods import METHODS
from ..methods.base import Info, grouped, short
from .kit import told
from .style import ACCENT, FAINT, INK, LEAST, QUIET, SECOND, Picture, current_size, drawing
from .words import letter, tabled

WIDE, TALL, SMALL = 2.6, 1.2, 2.5  # one drawing; and its least width with its edges
NEAR, FAR = 0.52, 1.7  # where an arrow begins at the clients, and where it ends at the server
LETTERS, LINE = 4.4, 1.4 / 72  # points at scale 1; height of a line for each point
# How things look whose name has this word; all else is a network.
LOOKS = {"image": "▦", "sample": "▦", "generator": "▦", "sums": "Σ", "Gaussian": "Σ", "prediction": "p"}
RETURNS = {
    "Keep an ensemble": "all, as one model", "Closed form": "one head",
    "ensemble": "an ensemble", "fens": "an ensemble", "fusefl": "one network of all blocks", "afl": "one linear map",
}  # fmt: skip
COLUMNS = "methods | a client sends | when | comes back | the server needs | returns"
UNSEEN = "A start or a seed that goes down first is not drawn."


def journey(*methods: str) -> Picture:
    """What clients send, what comes back, and what the server needs beside it and returns.

    Of one method a large drawing; of several a small one for each group and kind of thing that is sent, with the names
    below it.
    """
    tiles = defaultdict(list)
    for info in (METHODS[name].info for names in grouped(methods).values() for name in names):
        tiles[info.group, look_of(info)].append(info)
    width, one = current_size()[0], len(methods) == 1
    columns = max(1, min(len(tiles), int(width / SMALL)))
    scale = min((width / columns - 0.25) / WIDE, 2.6 if one else 1.4)
    size = max(LEAST, LETTERS * scale)
    texts = [filled("; ".join(named(info, tile[0]) for info in tile), WIDE * scale, size) for tile in tiles.values()]
    rows = [texts[i : i + columns] for i in range(0, len(tiles), columns)]
    tall = [TALL * scale + (3.4 + max(text.count("\n") for text in row)) * LINE * size for row in rows]
    with drawing(size=(width, sum(tall) or 1), fixed=True) as (figure, _):
        ax = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, sum(tall) or 1))
        ax.set_axis_off()
        for i, (text, tile) in enumerate(zip(texts, tiles.values(), strict=True)):
            x, y = 0.12 + i % columns * width / columns, sum(tall[i // columns :]) - 1.9 * LINE * size
            title = f"{text}: {tile[0].group.lower()}" if one else tile[0].group
            ax.text(x, y + 0.3 * LINE * size, title, size=size + 1.5, weight="bold", color=INK)
            draw(ax, x, y - TALL * scale, scale, size, tile, tile[0].extra if one else "")
            if not one:
                ax.text(x, y - TALL * scale, text, size=size, color=ACCENT, va="top", linespacing=1.3)
    table = tabled(COLUMNS, [row_of(tile) for tile in tiles.values()])
    return told(figure, "What travels between clients and server", "", UNSEEN, table)


def draw(ax: Axes, x: float, y: float, scale: float, size: float, tile: list[Info], extra: str) -> None:
    """One drawing with its lower left corner at (x, y); extra: what clients need beside their data, too."""
    info = tile[0]

    def box(left: float, low: float, wide: float, high: float) -> None:
        at, style = (x + left * scale, y + low * scale), f"round,pad=0,rounding_size={0.04 * scale}"
        ax.add_patch(FancyBboxPatch(at, wide * scale, high * scale, style, fc=FAINT, ec=QUIET, lw=1))

    def say(left: float, low: float, text: str, wide: float, **style: str) -> None:
        words = filled(text, wide * scale, size)
        ax.text(x + left * scale, y + low * scale, words, **{"size": size, "color": INK, "linespacing": 1.3} | style)

    def arrow(start: float, end: float, high: float, colour: str) -> None:
        at = {"xy": (x + end * scale, y + high * scale), "xytext": (x + start * scale, y + high * scale)}
        ax.annotate("", **at, arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 1.2 + 0.3 * scale})

    for k, low in enumerate((0.9, 0.6, 0.3)):
        box(0, low, 0.44, 0.24)
        say(0.32, low + 0.11, letter(k), 1, ha="center", va="center")
        for i in range(4):
            at = (x + (0.07 + 0.08 * (i % 2)) * scale, y + (low + 0.05 + 0.08 * (i // 2)) * scale)
            ax.add_patch(Rectangle(at, 0.06 * scale, 0.06 * scale, fc=QUIET, ec="none"))
    stay = "data leave" if info.leaks == "everything" else "data stay"
    own = f"; {extra}" if "client" in extra or not info.needs & {"public"} and extra not in ("", "nothing") else ""
    say(0, 0.24, stay + own, 1.65, color=QUIET, va="top")
    box(1.74, 0.2, 0.86, 0.94)
    say(1.8, 1.08, "Server", 0.8, weight="bold", va="top")
    sent, when, back, needs, returns = row_of(tile)[1:]
    say(1.8, 0.9, f"needs {needs}" if sent else "gets nothing", 0.8, va="top")
    if sent:
        say(1.8, 0.26, f"returns {returns}", 0.8, va="bottom")
        arrow(NEAR, FAR, 0.74, ACCENT)
        say(1.1, 0.86, ", ".join(filter(None, (sent, when.replace(" ", "\xa0")))), 1.15, ha="center", color=ACCENT)
        thing(ax, x + 1.08 * scale, y + 0.74 * scale, scale, look_of(info))
    if back:
        arrow(FAR, NEAR, 0.5, SECOND)
        say(1.1, 0.44, back, 1.15, ha="center", va="top", color=SECOND)


def thing(ax: Axes, x: float, y: float, scale: float, look: str) -> None:
    """What travels, in the middle of its arrow: a letter, or a small network."""
    at = {"ha": "center", "va": "center", "size": 9 * scale, "color": ACCENT, "weight": "bold"}
    ax.text(x, y, look or "   ", bbox={"fc": "white", "ec": ACCENT, "boxstyle": "round,pad=0.25"}, **at)
    if not look:
        ends = [x - 0.06 * scale, x + 0.06 * scale, x - 0.06 * scale]
        ax.plot(ends, [y - 0.04 * scale, y, y + 0.04 * scale], "o-", color=ACCENT, ms=2.5 * scale, lw=scale, zorder=5)


def look_of(info: Info) -> str:
    return next((look for word, look in LOOKS.items() if word in info.sends), "")


def row_of(tile: list[Info]) -> tuple[str, ...]:
    """A drawing in words, in the order of COLUMNS: that of its first method, and how the others differ."""
    head = tile[0]
    when = "once" if head.rounds.startswith("one-shot") else head.rounds.partition(",")[0].removeprefix("none")
    needs = "public images" if "public" in head.needs else "nothing else"
    names = "; ".join(named(info, head) for info in tile)
    returns = RETURNS.get(head.name if len(tile) == 1 else "", RETURNS.get(head.group, "one network"))
    return names, head.sends, when, head.back, needs, returns if head.sends else "nothing"


def named(info: Info, head: Info) -> str:
    """A method's short name, and what differs from the first of its drawing: 'FedKD (+ class counts)'."""
    own = [info.sends.removeprefix(head.sends).strip(), info.back and info.back != head.back and f"back: {info.back}"]
    return short(info.title) + (f" ({', '.join(filter(None, own))})" if any(own) else "")


def filled(text: str, wide: float, size: float) -> str:
    """`text` in lines that are `wide` inches long at most."""
    return "\n".join(textwrap.fill(line, max(8, int(wide * 72 / (0.53 * size)))) for line in text.split("\n"))
