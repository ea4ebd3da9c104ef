"""What travels in a method, and what the server needs: `journey("fens")`; `journey(*METHODS)` is the map of all.

Clients stand at the left, the server at the right. All words come from the registry (`Info`), so a new method has its
drawing. Lengths are inches of a drawing at scale 1.
"""

import textwrap
from collections import defaultdict

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from ..front.flight import name_result
from ..methods import METHODS
from ..methods.base import Info, group_methods, shorten_title
from .kit import describe_picture
from .style import ACCENT, FAINT, INK, LEAST, QUIET, SECOND, Picture, current_size, drawing, heading
from .words import build_table, format_letters

WIDE, TALL, SMALL = 2.6, 1.2, 2.5  # one drawing; and its least width with its edges
NEAR, FAR = 0.52, 1.7  # where an arrow begins at the clients, and where it ends at the server
DATA = "▦"
# How things look whose name has this word; all else is a network.
LOOKS = {
    "image": DATA,
    "sample": DATA,
    "generator": DATA,
    "sums": "Σ",
    "Gaussian": "Σ",
    "prediction": "p",
}
COLUMNS = "methods | a client sends | when | comes back | the server needs | returns"


def journey(*methods: str) -> Picture:
    """What clients send, what comes back, and what the server needs beside it and returns.

    Of one method a large drawing; of several a small one for each group and kind of thing that is sent, with the names
    below it.
    """
    tiles = defaultdict(list)
    for info in (METHODS[name].info for names in group_methods(methods).values() for name in names):
        tiles[info.group, look_of(info)].append(info)
    width, one = current_size()[0], len(methods) == 1
    columns = max(1, min(len(tiles), int(width / SMALL)))
    scale = min((width / columns - 0.25) / WIDE, 2.6 if one else 1.4)
    line, names = (
        1.4 * letters(scale) / 72,
        [filled(row_of(tile)[0], WIDE, scale) for tile in tiles.values()],
    )
    rows = [names[i : i + columns] for i in range(0, len(tiles), columns)]
    tall = [TALL * scale + (3.4 + max(text.count("\n") for text in row)) * line for row in rows]
    high = sum(tall) or 1
    with drawing(size=(width, high), fixed=True) as (figure, _):
        for i, (text, tile) in enumerate(zip(names, tiles.values(), strict=True)):
            x, y = (
                0.12 + i % columns * width / columns,
                sum(tall[i // columns :]) - 1.9 * line - TALL * scale,
            )
            place = (x / width, y / high, WIDE * scale / width, TALL * scale / high)
            ax = figure.add_axes(place, xlim=(0, WIDE), ylim=(0, TALL))
            ax.set_axis_off()
            group = tile[0].group
            heading(ax, f"{text}: {group.lower()}" if one else group, 3, letters(scale) + 1.5)
            draw(ax, scale, tile, tile[0].extra if one else "")
            ax.text(
                0,
                0,
                "" if one else text,
                size=letters(scale),
                color=ACCENT,
                va="top",
                linespacing=1.3,
            )
    text, table = (
        "Not drawn: the start, or the seed, that all clients get first.",
        map(row_of, tiles.values()),
    )
    return describe_picture(
        figure, "What travels between clients and server", "", text, build_table(COLUMNS, table)
    )


def draw(ax: Axes, scale: float, tile: list[Info], extra: str) -> None:
    """One drawing; extra: what clients need beside their data, too."""
    info, (_, sent, when, back, needs, returns) = tile[0], row_of(tile)

    def box(left: float, low: float, wide: float, high: float) -> None:
        style = "round,pad=0,rounding_size=0.04"
        ax.add_patch(
            FancyBboxPatch((left, low), wide, high, style, fc=FAINT, ec=QUIET, lw=1, clip_on=False)
        )

    def say(left: float, low: float, text: str, wide: float = 0.8, **style: str) -> None:
        ax.text(
            left,
            low,
            filled(text, wide, scale),
            size=letters(scale),
            linespacing=1.3,
            **{"color": INK} | style,
        )

    def arrow(start: float, end: float, high: float, colour: str) -> None:
        ax.annotate(
            "",
            (end, high),
            (start, high),
            arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 1.5},
        )

    middle = {"ha": "center", "va": "center"}
    for k, low in enumerate((0.9, 0.6, 0.3)):
        box(0, low, 0.44, 0.24)
        ax.text(0.14, low + 0.12, DATA, size=10 * scale, color=QUIET, **middle)
        say(0.32, low + 0.11, format_letters(k), **middle)
    own = (
        f"; {extra}"
        if "client" in extra or not info.needs & {"public"} and extra not in ("", "nothing")
        else ""
    )
    if info.leaks == "everything":
        stay = "data leave"
    elif "images" in info.sends:
        stay = "a few images leave"
    else:
        stay = "data stay"
    say(
        0,
        0.24,
        stay + own,
        1.65,
        color=QUIET,
        va="top",
    )
    box(1.74, 0.2, 0.86, 0.94)
    say(1.8, 1.08, "Server", weight="bold", va="top")
    say(1.8, 0.9, f"needs {needs}" if sent else "gets nothing", va="top")
    if sent:
        say(1.8, 0.26, f"returns {returns}", va="bottom")
        arrow(NEAR, FAR, 0.74, ACCENT)
        say(
            1.1,
            0.86,
            ", ".join(filter(None, (sent, when.replace(" ", "\xa0")))),
            1.15,
            ha="center",
            color=ACCENT,
        )
        frame = {"fc": "white", "ec": ACCENT, "boxstyle": "round,pad=0.25"}
        ax.text(
            1.08,
            0.74,
            look_of(info) or "   ",
            bbox=frame,
            size=9 * scale,
            color=ACCENT,
            weight="bold",
            **middle,
        )
    if sent and not look_of(info):  # a small network
        ax.plot(
            [1.02, 1.14, 1.02],
            [0.7, 0.74, 0.78],
            "o-",
            color=ACCENT,
            ms=2.5 * scale,
            lw=scale,
            zorder=5,
        )
    if back:
        arrow(FAR, NEAR, 0.5, SECOND)
        say(1.1, 0.44, back, 1.15, ha="center", va="top", color=SECOND)


def look_of(info: Info) -> str:
    return next((look for word, look in LOOKS.items() if word in info.sends), "")


def row_of(tile: list[Info]) -> tuple[str, ...]:
    """A drawing in words, in the order of COLUMNS: that of its first method, and how the others differ."""
    head = tile[0]
    when = (
        "once"
        if head.rounds.startswith("one-shot")
        else head.rounds.partition(",")[0].removeprefix("none")
    )
    needs = "public images" if "public" in head.needs else "nothing else"
    names = "; ".join(named(info, head) for info in tile)
    returns = name_result(head.name if len(tile) == 1 else "", head.group)
    return names, head.sends, when, head.back, needs, returns if head.sends else "nothing"


def named(info: Info, head: Info) -> str:
    """A method's short name, and what differs from the first of its drawing: 'FedKD (+ class counts)'."""
    own = [
        info.sends.removeprefix(head.sends).strip(),
        info.back and info.back != head.back and f"back: {info.back}",
    ]
    return shorten_title(info.title) + (f" ({', '.join(filter(None, own))})" if any(own) else "")


def letters(scale: float) -> float:
    """Points of a drawing's letters."""
    return max(LEAST, 4.4 * scale)


def filled(text: str, wide: float, scale: float) -> str:
    """`text` in lines that are so wide at most."""
    return textwrap.fill(text, max(8, int(wide * scale * 72 / (0.57 * letters(scale)))))
