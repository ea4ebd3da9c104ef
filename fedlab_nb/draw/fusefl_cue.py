"""Clients with a spurious cue: right at home, lost outside. A strip of their images with and without it, a row of dots
a client, and what becomes of it in the fused systems.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from .accuracy import PERCENT
from .style import ACCENT, INK, LOCK, QUIET, RULE, SECOND, SERIES, Picture, dress, new_figure, shorten
from .words import listed, percent, plural

TESTS = {"clean": "without a cue", "tied": "with the cue of their class", "untied": "with a random cue"}
STRIP = 6  # images of the client that is shown


@dataclass(frozen=True)
class Cue:
    """What is drawn. All accuracies are 0–1; M clients, each trained alone.

    marked:   clients whose training images carry the cue;   without [n, H, W(, 3)], with_cue: images of `shown`
    home:     [M] on their own training images as they have them;   bare: [M] on the same images without the cue
    outside:  {"clean", and for images "tied" and "untied": [M]} on test samples
    systems:  {name: {"clean", ...: accuracy}} of all clients together
    """

    setting: str
    marked: Sequence[int]
    home: Sequence[float]
    bare: Sequence[float]
    outside: Mapping[str, Sequence[float]]
    systems: Mapping[str, Mapping[str, float]]
    shown: int = 0
    without: np.ndarray | None = None
    with_cue: np.ndarray | None = None
    colours: Mapping[str, int] = field(default_factory=dict)


def cue(data: Cue, test: str = "clean", *, client: int | None = None) -> Picture:
    """`test`: which test samples are looked at, a key of TESTS."""
    test = test if test in data.outside else "clean"
    with LOCK:
        figure = new_figure()
        figure.set_layout_engine("none")
        images = data.without is not None and data.with_cue is not None and len(data.without) > 0
        if images:
            strip(figure.add_axes((0.02, 0.77, 0.96, 0.15)), data)
        high = 0.42 if images else 0.66
        clients(figure.add_axes((0.085, 0.2, 0.5, high + 0.02)), data, test, client)
        systems(figure.add_axes((0.69, 0.2, 0.3, high - 0.02)), data, test)
    return Picture(figure, alt_text(data, test), sentence(data, test, client), table(data))


def strip(ax: Axes, data: Cue) -> None:
    """Images of one client: where it has the cue, each without it and beside that as the client has it."""
    marked = data.shown in data.marked
    pairs = list(zip(data.without, data.with_cue, strict=True))[:STRIP]
    tiles = [tile for pair in pairs for tile in (pair if marked else pair[1:])]
    row = np.concatenate([_rgb(tile) for tile in tiles], axis=1)
    step = row.shape[1] / len(tiles)
    ax.imshow(row, interpolation="nearest", aspect="equal")
    ax.set_anchor("NW")
    for i in range(1, len(tiles)):
        ax.axvline(i * step - 0.5, color="white", lw=1.5 if marked and i % 2 else 7)
    ax.set_axis_off()
    text = "without the cue, and beside it as the client has it" if marked else "it has no cue"
    title = f"Images of client {data.shown}: {text}"
    ax.set_title(title, loc="left", fontsize=11, fontweight="bold", color=INK, pad=5)


def _rgb(image: np.ndarray) -> np.ndarray:
    image = np.clip(np.asarray(image, dtype=float), 0, 1)
    return np.repeat(image[..., None], 3, 2) if image.ndim == 2 else image


def clients(ax: Axes, data: Cue, test: str, client: int | None) -> None:
    """A column a client: at home, at home without the cue, and outside."""
    count = len(data.home)
    few = count <= 16
    dress(
        ax, title="Each client, trained alone", x="client (bold: with the cue)" if data.marked else "client", grid="y"
    )
    for k in data.marked:
        ax.axvspan(k - 0.42, k + 0.42, color=SECOND, alpha=0.1, lw=0, zorder=0)
    if client is not None and client < count:
        ax.axvspan(client - 0.5, client + 0.5, fill=False, edgecolor=ACCENT, lw=2)
    x = np.arange(count)
    ax.vlines(x, data.outside[test], data.home, color=RULE, lw=2 if few else 1, zorder=1)
    size = 8 if few else 4.5
    ax.plot(x, data.home, "o", color=INK, ms=size, label="own images", clip_on=False, zorder=4)
    if data.marked:
        marked = list(data.marked)
        bare = [data.bare[k] for k in marked]
        ax.plot(
            marked, bare, "D", mfc="white", mec=INK, mew=1.4, ms=0.8 * size, label="own, cue removed", clip_on=False
        )
    ax.plot(x, data.outside[test], "s", color=ACCENT, ms=size, label="test images", clip_on=False, zorder=3)
    ax.set_xlim(-0.6, count - 0.4)
    if few:
        ax.set_xticks(range(count), [str(k) for k in range(count)])
        for k, label in enumerate(ax.get_xticklabels()):
            label.set_fontweight("bold" if k in data.marked else "normal")
    else:
        ax.xaxis.set_major_locator(MaxNLocator(13, integer=True, steps=[1, 2, 5, 10]))
    _percent_axis(ax)
    ax.legend(
        frameon=False, fontsize=9, labelcolor=INK, ncols=3, loc="upper left", bbox_to_anchor=(-0.16, -0.23),
        handletextpad=0.2, columnspacing=1.0,
    )  # fmt: skip


def systems(ax: Axes, data: Cue, test: str) -> None:
    """Bars of all clients together on the chosen test samples; a tick where it stands on those without a cue."""
    dress(ax, grid="y")
    if not data.systems:
        ax.set_axis_off()
        return
    ax.set_title("All together", loc="left", fontsize=11, fontweight="bold", color=INK, pad=22)
    ax.text(0, 1.05, f"test images {TESTS[test]}", transform=ax.transAxes, fontsize=9, color=QUIET)
    for i, (name, values) in enumerate(data.systems.items()):
        hue = SERIES[data.colours.get(name, i) % len(SERIES)]
        ax.bar(i, values[test], width=0.6, color=hue, alpha=0.85)
        ax.text(i, values[test] + 0.02, f"{100 * values[test]:.0f}", ha="center", fontsize=9.5, color=INK)
        if test != "clean":
            ax.plot([i - 0.36, i + 0.36], [values["clean"]] * 2, color=INK, lw=1.6, ls=(0, (3, 1.5)))
    many = len(data.systems) > 3
    names = list(data.systems) if many else [name.replace(" ", "\n") for name in data.systems]
    turn = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if many else {}
    ax.set_xticks(range(len(data.systems)), shorten(names, 14), fontsize=9, **turn)
    ax.set_xlim(-0.6, max(len(data.systems), 2) - 0.4)
    ax.tick_params(axis="x", length=0)
    _percent_axis(ax)
    if test != "clean":
        ax.text(0, -0.4, "dashes: without a cue", transform=ax.transAxes, fontsize=9, color=QUIET)


def _percent_axis(ax: Axes) -> None:
    ax.set_ylim(0, 1.1)
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1])
    ax.yaxis.set_major_formatter(PERCENT)


def sentence(data: Cue, test: str, client: int | None) -> str:
    where = f"test images {TESTS[test]}"
    count = len(data.home)
    marked = [k for k in data.marked if k < count]
    others = [k for k in range(count) if k not in marked]
    together = ", ".join(f"{name} {percent(values[test])}" for name, values in data.systems.items())
    together = f" All together: {together}." if together else ""
    out = data.outside[test]
    if client is not None and client < count:
        bare = f", {percent(data.bare[client])} of them with the cue taken away" if client in marked else ""
        return (
            f"Client {client} is right for {percent(data.home[client])} of its own images{bare}, and for "
            f"{percent(out[client])} of the {where}.{together}"
        )
    if not marked:
        return (
            f"No client has a cue: at home {percent(mean(data.home))}, on {where} {percent(mean(out))} (mean of "
            f"{plural(count, 'client')}).{together}"
        )
    who = "Client" if len(marked) == 1 else "Clients"
    rest = f" (the others {percent(mean(out[k] for k in others))})" if others else ""
    return (
        f"{who} {listed(list(map(str, marked)))} with the cue: {percent(mean(data.home[k] for k in marked))} right at "
        f"home, {percent(mean(data.bare[k] for k in marked))} there without the cue, "
        f"{percent(mean(out[k] for k in marked))} on {where}{rest}.{together}"
    )


def alt_text(data: Cue, test: str) -> str:
    rows = "; ".join(
        f"client {k}{' with the cue' if k in data.marked else ''} {percent(a)} at home, {percent(b)} outside"
        for k, (a, b) in enumerate(zip(data.home, data.outside[test], strict=True))
        if len(data.home) <= 10 or k in data.marked
    )
    return f"Accuracy at home and on test images {TESTS[test]} ({data.setting}): {rows or 'no client has the cue'}."


def table(data: Cue) -> list[dict]:
    rows = []
    for k, home in enumerate(data.home):
        row = {"who": f"client {k}", "cue": "yes" if k in data.marked else "", "own images": percent(home)}
        row["own, cue removed"] = percent(data.bare[k])
        rows.append(row | {f"test, {TESTS[t]}": percent(values[k]) for t, values in data.outside.items()})
    for name, values in data.systems.items():
        row = {"who": name, "cue": "", "own images": "", "own, cue removed": ""}
        rows.append(row | {f"test, {TESTS[t]}": percent(values[t]) for t in data.outside})
    return rows
