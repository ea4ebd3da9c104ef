"""M clients' networks as columns of K blocks at one step of FuseFL: what trains, is sent or frozen, who reads whom."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patches import FancyBboxPatch

from .fusefl_steps import ADAPT, AVERAGE, CALIBRATE, SEND, TRAIN, Replay, Step
from .style import ACCENT, INK, QUIET, RULE, SECOND

COLUMNS = 8  # more clients than this are not drawn one by one
FROZEN, IDLE = "#c3cad1", "#ffffff"
STATES = (("training", SECOND), ("being sent", ACCENT), ("frozen", FROZEN), ("waiting", IDLE))


def shown_clients(clients: int, client: int | None) -> list[int | None]:
    """Which clients are drawn: all of a few; of many the first, the chosen one and the last; None for a gap."""
    if clients <= COLUMNS:
        return list(range(clients))
    if client is None or client < COLUMNS - 2 or client == clients - 1:
        return [*range(COLUMNS - 2), None, clients - 1]
    return [*range(COLUMNS - 4), None, client, None, clients - 1]


def colour_of(step: Step, row: int, blocks: int) -> str:
    """Colour of block `row` (from 1; K + 1: the classifier) at a step."""
    if row <= step.frozen:
        return FROZEN
    if step.kind == TRAIN:
        return SECOND
    if (step.kind == SEND and row == step.block) or (step.kind in (AVERAGE, CALIBRATE) and row == blocks + 1):
        return ACCENT if step.kind != CALIBRATE else SECOND
    return IDLE


def columns(ax: Axes, replay: Replay, step: Step, client: int | None) -> None:
    """The clients' networks, images at the bottom."""
    who = shown_clients(replay.clients, client)
    blocks = replay.blocks
    size = 9 if blocks <= 5 else 8
    ax.set_axis_off()
    ax.set_title(step.title, loc="left", fontsize=11, fontweight="bold", color=INK, pad=7)
    ax.set_xlim(-1.42, len(who) - 0.45)
    ax.set_ylim(-0.95, blocks + 1.0)
    if client is not None and client in who:
        x = who.index(client)
        ax.fill_between([x - 0.48, x + 0.48], -0.58, blocks + 0.95, color=ACCENT, alpha=0.13, lw=0, zorder=0)
    places = [x for x, k in enumerate(who) if k is not None]
    merged = step.kind in (AVERAGE, CALIBRATE)
    for row in range(1, blocks + 1):
        ax.text(-0.6, row - 0.5, f"block {row}", ha="right", va="center", fontsize=size, color=INK)
        if row > 1 and step.adapted >= row and row <= step.frozen + 1:
            join(ax, replay, step, row, places)
        for x in places:
            straight = row == 1 or row > step.frozen + 1
            if straight:
                ax.plot([x, x], [row - 1.18, row - 0.78], color=RULE, lw=1.2, zorder=1)
            box(ax, x, row - 0.5, colour_of(step, row, blocks))
    ax.text(-0.6, blocks + 0.5, "classifier", ha="right", va="center", fontsize=size, color=INK)
    if merged and replay.head != "own":
        middle = (places[0] + places[-1]) / 2
        ax.add_collection(_lines([((x, blocks - 0.22), (middle, blocks + 0.35)) for x in places]))
        box(ax, middle, blocks + 0.5, colour_of(step, blocks + 1, blocks), wide=0.9, high=0.3)
    else:
        for x in places:
            ax.plot([x, x], [blocks - 0.22, blocks + 0.35], color=RULE, lw=1.2, zorder=1)
            box(ax, x, blocks + 0.5, colour_of(step, blocks + 1, blocks), high=0.3)
    for x, k in enumerate(who):
        name = "…" if k is None else str(k)
        ax.text(x, -0.36, name, ha="center", va="center", fontsize=9.5, color=INK if k is not None else QUIET)
    ax.text(-0.6, -0.36, "client", ha="right", va="center", fontsize=size, color=QUIET)
    if step.kind == SEND:
        arrows(ax, step, places)
    key(ax, len(who))


def box(ax: Axes, x: float, y: float, colour: str, wide: float = 0.62, high: float = 0.56) -> None:
    style = {"boxstyle": "round,pad=0,rounding_size=0.08", "facecolor": colour, "edgecolor": INK, "linewidth": 0.9}
    if colour == FROZEN:
        style |= {"hatch": "////", "edgecolor": "#8b959e"}
    ax.add_patch(FancyBboxPatch((x - wide / 2, y - high / 2), wide, high, zorder=3, **style))


def join(ax: Axes, replay: Replay, step: Step, row: int, places: Sequence[int]) -> None:
    """Everybody's outputs of the row below go to every adaptor in front of `row`, or into one mean."""
    hue = FROZEN if row <= step.frozen else SECOND if step.kind in (TRAIN, ADAPT) else IDLE
    low, high = row - 1.22, row - 0.9
    if replay.adaptor == "conv":
        ax.add_collection(_lines([((a, low), (b, high)) for a in places for b in places]))
        for x in places:
            ax.plot([x], [high], "s", color=hue, markeredgecolor=INK, ms=7, mew=0.9, zorder=4)
    else:
        middle = (places[0] + places[-1]) / 2
        ax.add_collection(_lines([((x, low), (middle, high)) for x in places]))
        ax.add_collection(_lines([((middle, high), (x, row - 0.78)) for x in places]))
        ax.plot([middle], [high], "o", color="white", markeredgecolor=INK, ms=9, mew=0.9, zorder=4)


def _lines(segments: list) -> LineCollection:
    return LineCollection(segments, colors=QUIET, linewidths=0.7, alpha=0.55, zorder=1)


def arrows(ax: Axes, step: Step, places: Sequence[int]) -> None:
    """The block that is sent goes up to the server and comes down to the others."""
    y = step.block - 0.5
    for shift, hue, tip in ((0.39, ACCENT, 1), (-0.39, SECOND, -1)):
        if tip > 0 or step.down:
            x = [place + shift for place in places]
            ax.vlines(x, y - 0.3, y + 0.3, colors=hue, linewidths=1.6, zorder=3)
            ax.plot(x, [y + 0.33 * tip] * len(x), "^" if tip > 0 else "v", color=hue, ms=6, zorder=4)


def key(ax: Axes, wide: int) -> None:
    """What the colours mean, under the columns."""
    left, gap = -1.25, (wide + 0.7) / 4
    for i, (name, colour) in enumerate(STATES):
        x = left + i * gap
        hatch = "////" if colour == FROZEN else None
        ax.add_patch(
            FancyBboxPatch(
                (x, -0.86), gap * 0.12, 0.2, boxstyle="round,pad=0", facecolor=colour, edgecolor=QUIET, lw=0.8,
                hatch=hatch,
            )
        )  # fmt: skip
        ax.text(x + gap * 0.18, -0.76, name, fontsize=9, va="center", color=QUIET)
