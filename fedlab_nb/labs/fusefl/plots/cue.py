"""Clients with a spurious cue: right at home, lost outside. A strip of their images with and without it, a row of dots
a client, and what becomes of it in the fused systems.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np
from matplotlib.axes import Axes

from ....plots.axes import QUARTERS, client_ticks, mark, percent_axis
from ....plots.style import ACCENT, INK, QUIET, RULE, SECOND, Picture, drawing, dress, heading, legend, look, shorten
from ....plots.words import listed, mean_percent, percent, plural, tabled

TESTS = {"clean": "without a cue", "tied": "with the cue of their class", "untied": "with a random cue"}
STRIP = 6  # images of the client that is shown


@dataclass(frozen=True)
class Cue:
    """What is drawn. All accuracies are 0–1; M clients, each trained alone.

    marked:   clients whose training images carry the cue;   setting: in words
    home:     [M] on their own training images as they have them;   bare: [M] on the same images without the cue
    outside:  {"clean", and for images "tied" and "untied": [M]} on test samples
    systems:  {name: {"clean", ...: accuracy}} of all clients together
    images:   [M] pairs [n, H, W(, 3)] of a client's images, without the cue and as it has them; empty of feature rows
    """

    setting: str
    marked: Sequence[int]
    home: Sequence[float]
    bare: Sequence[float]
    outside: Mapping[str, Sequence[float]]
    systems: Mapping[str, Mapping[str, float]]
    images: Sequence[tuple[np.ndarray, np.ndarray]] = ()


def cue(data: Cue, test: str = "clean", *, client: int | None = None) -> Picture:
    """`test`: which test samples are looked at, a key of TESTS."""
    test = test if test in data.outside else "clean"
    client = client if client is not None and client < len(data.home) else None
    with drawing(fixed=True) as (figure, _):
        if data.images:
            who = min(data.marked, default=0) if client is None else client
            strip(figure.add_axes((0.02, 0.77, 0.96, 0.15)), data, who)
        high = 0.42 if data.images else 0.66
        clients(figure.add_axes((0.085, 0.2, 0.5, high + 0.02)), data, test, client)
        if data.systems:
            systems(figure.add_axes((0.69, 0.2, 0.3, high - 0.02)), data, test)
    return Picture(figure, alt_text(data, test), sentence(data, test, client), table(data))


def strip(ax: Axes, data: Cue, who: int) -> None:
    """Images of one client: where it has the cue, each without it and beside that as the client has it."""
    marked = who in data.marked
    pairs = list(zip(*data.images[who], strict=True))[:STRIP]
    tiles = [tile for pair in pairs for tile in (pair if marked else pair[1:])]
    row = np.concatenate(tiles, axis=1)
    ax.imshow(row, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    ax.set_anchor("NW")
    for i in range(1, len(tiles)):
        ax.axvline(i * row.shape[1] / len(tiles) - 0.5, color="white", lw=1.5 if marked and i % 2 else 7)
    ax.set_axis_off()
    text = "without the cue, and beside it as the client has it" if marked else "it has no cue"
    heading(ax, f"Images of client {who}: {text}", pad=5)


def clients(ax: Axes, data: Cue, test: str, client: int | None) -> None:
    """A column a client: at home, at home without the cue, and outside."""
    count, marked = len(data.home), list(data.marked)
    few = count <= 16
    dress(ax, title="Each client, trained alone", x="client (bold: with the cue)" if marked else "client", grid="y")
    for k in marked:
        ax.axvspan(k - 0.42, k + 0.42, color=SECOND, alpha=0.1, lw=0, zorder=0)
    mark(ax, client, count, frame=True, lw=2)
    x, size = np.arange(count), 8 if few else 4.5
    ax.vlines(x, data.outside[test], data.home, color=RULE, lw=2 if few else 1, zorder=1)
    ax.plot(x, data.home, "o", color=INK, ms=size, label="own images", clip_on=False, zorder=4)
    if marked:
        bare = {"mfc": "white", "mec": INK, "mew": 1.4, "ms": 0.8 * size, "label": "own, cue removed"}
        ax.plot(marked, [data.bare[k] for k in marked], "D", clip_on=False, **bare)
    ax.plot(x, data.outside[test], "s", color=ACCENT, ms=size, label="test images", clip_on=False, zorder=3)
    ax.set_xlim(-0.6, count - 0.4)
    client_ticks(ax, count)
    for k in marked if few else ():
        ax.get_xticklabels()[k].set_fontweight("bold")
    percent_axis(ax, top=1.1, ticks=QUARTERS)
    legend(ax, loc="upper left", bbox_to_anchor=(-0.16, -0.23), ncols=3, handletextpad=0.2, columnspacing=1.0)


def systems(ax: Axes, data: Cue, test: str) -> None:
    """Bars of all clients together on the chosen test samples; a tick where it stands on those without a cue."""
    dress(ax, grid="y")
    heading(ax, "All together", pad=22)
    small = {"transform": ax.transAxes, "fontsize": 9, "color": QUIET}
    ax.text(0, 1.05, f"test images {TESTS[test]}", **small)
    for i, (name, values) in enumerate(data.systems.items()):
        ax.bar(i, values[test], width=0.6, color=look(name).colour, alpha=0.85)
        ax.text(i, values[test] + 0.02, f"{100 * values[test]:.0f}", ha="center", fontsize=9.5, color=INK)
        if test != "clean":
            ax.plot([i - 0.36, i + 0.36], [values["clean"]] * 2, color=INK, lw=1.6, ls=(0, (3, 1.5)))
    many = len(data.systems) > 3
    names = [name if many else name.replace(" ", "\n") for name in data.systems]
    turn = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if many else {}
    ax.set_xticks(range(len(names)), shorten(names, 14), fontsize=9, **turn)
    ax.set_xlim(-0.6, max(len(names), 2) - 0.4)
    ax.tick_params(axis="x", length=0)
    percent_axis(ax, top=1.1, ticks=QUARTERS)
    if test != "clean":
        ax.text(0, -0.4, "dashes: without a cue", **small)


def sentence(data: Cue, test: str, client: int | None) -> str:
    where, out, marked = f"test images {TESTS[test]}", data.outside[test], data.marked
    together = ", ".join(f"{name} {percent(values[test])}" for name, values in data.systems.items())
    together = f" All together: {together}." if together else ""
    if client is not None:
        bare = f", for {percent(data.bare[client])} of them without the cue" if client in marked else ""
        own = f"is right for {percent(data.home[client])} of its own images{bare}"
        return f"Client {client} {own}, and for {percent(out[client])} of the {where}.{together}"
    if not marked:
        both = f"right for {mean_percent(data.home)} of their own images and {mean_percent(out)} of the {where}"
        return f"No client has a cue. Clients are {both} (mean of {plural(len(out), 'client')}).{together}"
    home, bare, outside = (percent(mean(values[k] for k in marked)) for values in (data.home, data.bare, out))
    others = [share for k, share in enumerate(out) if k not in marked]
    rest = f" (the other clients for {mean_percent(others)})" if others else ""
    who = (
        f"Clients {listed(list(map(str, marked)))} have the cue and are"
        if marked[1:]
        else f"Client {marked[0]} has the cue and is"
    )
    its = "their" if marked[1:] else "its"
    return (
        f"{who} right for {home} of {its} own images, for {bare} of them without the cue, and for {outside} of the "
        f"{where}{rest}.{together}"
    )


def alt_text(data: Cue, test: str) -> str:
    rows = "; ".join(
        f"client {k}{' with the cue' if k in data.marked else ''} {percent(a)} at home, {percent(b)} outside"
        for k, (a, b) in enumerate(zip(data.home, data.outside[test], strict=True))
        if len(data.home) <= 10 or k in data.marked
    )
    return f"Accuracy at home and on test images {TESTS[test]} ({data.setting}): {rows or 'no client has the cue'}."


def table(data: Cue) -> list[dict]:
    """A row a client and a row a system."""
    columns = ("who", "cue", "own images", "own, cue removed", *(f"test, {TESTS[test]}" for test in data.outside))
    each = enumerate(zip(data.home, data.bare, *data.outside.values(), strict=True))
    rows = [(f"client {k}", "yes" if k in data.marked else "", *map(percent, shares)) for k, shares in each]
    rows += [(name, "", "", "", *(percent(shares[t]) for t in data.outside)) for name, shares in data.systems.items()]
    return tabled(columns, rows)
