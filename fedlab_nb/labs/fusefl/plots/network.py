"""FuseFL step by step: M clients' networks as columns of K blocks, which part is training, sent or frozen and who reads
whom; the bytes so far, and how good the clients are at home and outside.
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import mean

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patches import FancyBboxPatch

from ....plots.axes import QUARTERS, no_spines, percent_axis
from ....plots.style import ACCENT, FAINT, INK, QUIET, RULE, SECOND, Picture, drawing, dress, heading
from ....plots.words import data_size, percent, tabled
from .steps import ADAPT, AVERAGE, CALIBRATE, SEND, START, TRAIN, Replay, Step, steps

COLUMNS = 8  # more clients than this are not drawn one by one
FROZEN, IDLE = "#c3cad1", "#ffffff"
STATES = (("training", SECOND), ("being sent", ACCENT), ("frozen", FROZEN), ("waiting", IDLE))


def network(replay: Replay, step: int | None = None, *, client: int | None = None) -> Picture:
    """The network at step number `step` of `steps(replay)` (at most its last), the bytes and the accuracies so far.

    step None: while it trains, in the round and with the bytes of the report so far
    """
    every = steps(replay)
    if step is None:
        block, (up, down) = replay.report.block, replay.report.sent
        kinds = (AVERAGE, CALIBRATE) if block > replay.blocks else (TRAIN,)
        step = max(i for i, s in enumerate(every) if s.kind in kinds and s.block == min(block, replay.blocks))
        every[step] = replace(every[step], up=up, down=down)
    now = every[min(step, len(every) - 1)]
    with drawing(fixed=True) as (figure, _):  # nothing jumps from step to step
        columns(figure.add_axes((0.01, 0.02, 0.6, 0.9)), replay, now, client)
        traffic(figure.add_axes((0.69, 0.71, 0.18, 0.21)), now, every[-1])
        progress(figure.add_axes((0.69, 0.22, 0.29, 0.36)), replay, now, client)
    where = f"Step {every.index(now) + 1} of {len(every)}, {now.title.lower()}"
    sent = f"{data_size(now.up)} up and {data_size(now.down)} down so far"
    alt = f"FuseFL step by step ({replay.setting}). {where}: {replay.clients} clients' networks as columns of "
    alt += f"{replay.blocks} blocks, {now.frozen} of them frozen; {sent}."
    return Picture(figure, alt, f"{where}. {now.text}{_of_client(replay, now, client)}", table(replay, every))


# ------------------------------------------------------------------------------------------------- the networks
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
    if step.kind == TRAIN or (step.kind == CALIBRATE and row == blocks + 1):
        return SECOND
    sent = {SEND: step.block, AVERAGE: blocks + 1}.get(step.kind)
    return ACCENT if row == sent else IDLE


def columns(ax: Axes, replay: Replay, step: Step, client: int | None) -> None:
    """The clients' networks, images at the bottom."""
    who, blocks = shown_clients(replay.clients, client), replay.blocks
    left = {"ha": "right", "va": "center", "fontsize": 9 if blocks <= 5 else 8}
    ax.set_axis_off()
    heading(ax, step.title)
    ax.set(xlim=(-1.42, len(who) - 0.45), ylim=(-0.95, blocks + 1.0))
    if client is not None and client in who:
        x = who.index(client)
        ax.fill_between([x - 0.48, x + 0.48], -0.58, blocks + 0.95, color=ACCENT, alpha=0.13, lw=0, zorder=0)
    places = [x for x, k in enumerate(who) if k is not None]
    middle = (places[0] + places[-1]) / 2
    for row in range(1, blocks + 1):
        ax.text(-0.6, row - 0.5, f"block {row}", color=INK, **left)
        if 1 < row <= min(step.adapted, step.frozen + 1):
            join(ax, replay, step, row, places, middle)
        for x in places:
            if row == 1 or row > step.frozen + 1:
                ax.plot([x, x], [row - 1.18, row - 0.78], color=RULE, lw=1.2, zorder=1)
            box(ax, x, row - 0.5, colour_of(step, row, blocks))
    ax.text(-0.6, blocks + 0.5, "classifier", color=INK, **left)
    colour = colour_of(step, blocks + 1, blocks)
    if step.kind in (AVERAGE, CALIBRATE) and replay.options["head"] != "own":
        lines(ax, [((x, blocks - 0.22), (middle, blocks + 0.35)) for x in places])
        box(ax, middle, blocks + 0.5, colour, wide=0.9, high=0.3)
    else:
        for x in places:
            ax.plot([x, x], [blocks - 0.22, blocks + 0.35], color=RULE, lw=1.2, zorder=1)
            box(ax, x, blocks + 0.5, colour, high=0.3)
    for x, k in enumerate(who):
        name, hue = ("…", QUIET) if k is None else (str(k), INK)
        ax.text(x, -0.36, name, ha="center", va="center", fontsize=9.5, color=hue)
    ax.text(-0.6, -0.36, "client", color=QUIET, **left)
    if step.kind == SEND:
        arrows(ax, step, places)
    key(ax, len(who))


def box(ax: Axes, x: float, y: float, colour: str, wide: float = 0.62, high: float = 0.56) -> None:
    edge = {"hatch": "////", "edgecolor": "#8b959e"} if colour == FROZEN else {"edgecolor": INK}
    style = {"boxstyle": "round,pad=0,rounding_size=0.08", "facecolor": colour, "linewidth": 0.9, **edge}
    ax.add_patch(FancyBboxPatch((x - wide / 2, y - high / 2), wide, high, zorder=3, **style))


def lines(ax: Axes, segments: list) -> None:
    """Thin lines of who reads whom, [((x, y), (x, y)), …]."""
    ax.add_collection(LineCollection(segments, colors=QUIET, linewidths=0.7, alpha=0.55, zorder=1))


def join(ax: Axes, replay: Replay, step: Step, row: int, places: Sequence[int], middle: float) -> None:
    """Everybody's outputs of the row below go to every adaptor in front of `row`, or into one mean."""
    low, high = row - 1.22, row - 0.9
    mark = {"markeredgecolor": INK, "mew": 0.9, "zorder": 4, "ls": ""}
    if replay.options["adaptor"] == "conv":
        hue = FROZEN if row <= step.frozen else SECOND if step.kind in (TRAIN, ADAPT) else IDLE
        lines(ax, [((a, low), (b, high)) for a in places for b in places])
        ax.plot(places, [high] * len(places), marker="s", color=hue, ms=7, **mark)
    else:
        lines(ax, [((x, low), (middle, high)) for x in places])
        lines(ax, [((middle, high), (x, row - 0.78)) for x in places])
        ax.plot([middle], [high], marker="o", color="white", ms=9, **mark)


def arrows(ax: Axes, step: Step, places: Sequence[int]) -> None:
    """The block that is sent goes up to the server and comes down to the others."""
    y = step.block - 0.5
    for hue, tip, marker in ((ACCENT, 1, "^"), (SECOND, -1, "v")) if step.down else ((ACCENT, 1, "^"),):
        x = [place + 0.39 * tip for place in places]
        ax.vlines(x, y - 0.3, y + 0.3, colors=hue, linewidths=1.6, zorder=3)
        ax.plot(x, [y + 0.33 * tip] * len(x), marker, color=hue, ms=6, zorder=4)


def key(ax: Axes, wide: int) -> None:
    """What the colours mean, under the columns."""
    gap = (wide + 0.7) / 4
    for i, (name, colour) in enumerate(STATES):
        x = i * gap - 1.25
        style = {"facecolor": colour, "edgecolor": QUIET, "lw": 0.8, "hatch": "////" if colour == FROZEN else None}
        ax.add_patch(FancyBboxPatch((x, -0.86), gap * 0.12, 0.2, "round,pad=0", **style))
        ax.text(x + gap * 0.18, -0.76, name, fontsize=9, va="center", color=QUIET)


# ------------------------------------------------------------------------------------------------- bytes and accuracies
def traffic(ax: Axes, now: Step, end: Step) -> None:
    """Bytes of all clients so far, up and down, against what they will be in the end."""
    dress(ax, title="Sent so far, all clients")
    most = max(end.up, end.down, now.up, now.down, 1)
    for i, (name, hue) in enumerate((("up", ACCENT), ("down", SECOND))):
        ax.barh(i, getattr(end, name), height=0.56, color=FAINT)
        ax.barh(i, getattr(now, name), height=0.56, color=hue, alpha=0.85)
        style = {"va": "center", "fontsize": 9.5, "color": INK, "gid": "outside"}
        ax.text(1.03 * most, i, data_size(getattr(now, name)), **style)
        ax.text(-0.03 * most, i, name, ha="right", **style)
    ax.set(xlim=(0, 1.001 * most), ylim=(1.5, -0.5), xticks=[], yticks=[])
    no_spines(ax)


def progress(ax: Axes, replay: Replay, now: Step, client: int | None) -> None:
    """Accuracy after each round that is over: a dot a client at home and outside; at the end the fused network."""
    dress(ax, title="Clients, then all fused", grid="y")
    size = 4.5 if replay.clients <= 20 else 3
    for k, (home, outside) in enumerate(rounds_over(replay, now)):
        for values, hue, x in ((home, QUIET, k - 0.12), (outside, ACCENT, k + 0.12)):
            ax.plot([x] * len(values), values, "o", color=hue, ms=size, alpha=0.55, clip_on=False)
            ax.plot([x - 0.1, x + 0.1], [mean(values)] * 2, color=INK, lw=2)
            if client is not None and client < len(values):
                ax.plot([x], [values[client]], "o", mfc="none", mec=INK, mew=1.6, ms=9, clip_on=False)
    for x, value in enumerate(_fused(replay, now), replay.blocks):
        ax.bar(x, value, width=0.5, color=SECOND if x > replay.blocks else "#e8b48d")
        ax.text(x, value + 0.02, f"{100 * value:.0f}", ha="center", fontsize=9, color=INK)
    few, every = replay.blocks <= 4, max(1, replay.blocks // 6)
    names = [f"{k + 1}" if k % every == 0 else "" for k in range(replay.blocks)]
    if few:
        names = [f"round\n{names[0]}", *(f"\n{name}" for name in names[1:])]
    heads = ["aver-\naged", "cali-\nbrated"] if few else ["av.", "cal."]
    names += {"own": ["own"], "average": heads[:1], "ccvr": heads}[replay.options["head"]]
    ax.set_xticks(range(len(names)), names, fontsize=9)
    ax.set_xlim(-0.5, len(names) - 0.5)
    percent_axis(ax, top=1.08, ticks=QUARTERS)
    ax.tick_params(axis="x", length=0)
    for x, name, hue in ((-0.1, "● at home", QUIET), (0.38, "● on test samples", ACCENT)):
        ax.text(x, -0.5, name, transform=ax.transAxes, fontsize=9, color=hue)


def _fused(replay: Replay, now: Step) -> list[float]:
    """Accuracies of the fused network that are known by now: under the classifier before calibration, then after it."""
    heads = replay.report.heads or {}
    names = {AVERAGE: 1, CALIBRATE: 2}.get(now.kind, 0)
    known = ["own" if replay.options["head"] == "own" else "average", "ccvr"][:names]
    return [heads[name] for name in known if name in heads]


def rounds_over(replay: Replay, now: Step) -> list:
    """`replay.rounds` that are over by now."""
    return replay.rounds[: now.block if now.kind != START else 0]


def _of_client(replay: Replay, now: Step, client: int | None) -> str:
    rounds = rounds_over(replay, now)
    if client is None or not rounds or client >= replay.clients:
        return ""
    home, outside = (percent(values[client]) for values in rounds[-1])
    return f" Client {client} after round {len(rounds)}: {home} at home, {outside} on test samples."


def table(replay: Replay, every: Sequence[Step]) -> list[dict]:
    rows = []
    for i, step in enumerate(every, 1):
        known = replay.rounds[step.block - 1] if step.kind == TRAIN and replay.rounds else ()
        home, outside = (percent(mean(values)) for values in known) if known else ("", "")
        fused = "".join(percent(value) for value in _fused(replay, step)[-1:])
        rows.append((i, step.title, data_size(step.up), data_size(step.down), home, outside, fused))
    return tabled("step | what | up so far | down so far | at home | test samples | fused network", rows)
