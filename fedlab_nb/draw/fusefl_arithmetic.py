"""What FuseFL costs, as arithmetic: the size of the fused model against one ordinary network and an ensemble of M, and
the bytes of one client, up and down, round by round.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from .style import ACCENT, INK, LOCK, QUIET, SECOND, Picture, dress, new_figure

MIB = 2**20
BLOCKS, ADAPTORS, HEAD, STATISTICS, MODEL = "#56B4E9", SECOND, "#009E73", "#CC79A7", "#7f8a94"
KEY = (
    (BLOCKS, "blocks"), (ADAPTORS, "adaptors"), (HEAD, "classifier"), (STATISTICS, "class statistics"),
    (MODEL, "whole model"),
)  # fmt: skip
KEY_PLACES = (0.06, 0.19, 0.34, 0.5, 0.74)


@dataclass(frozen=True)
class Cost:
    """Bytes for one number of clients. Storage: blocks, adaptors, classifier of the fused model. Of one client: `up`,
    `down` [K] by round, `part` [K] of an upload that is adaptor (0–1), the classifier and the statistics up, first
    weights down. single: the ordinary network.
    """

    clients: int
    width: int
    blocks: int
    adaptors: int
    head: int
    up: Sequence[int]
    down: Sequence[int]
    part: Sequence[float]
    initial: int
    statistics: int
    single: int

    @property
    def storage(self) -> int:
        return self.blocks + self.adaptors + self.head


def arithmetic(
    costs: Sequence[Cost], clients: int, *, network: str, adaptor: str, printed: float | None = None
) -> Picture:
    """`costs`: one for every M on the axis, ascending, and among them M = `clients`, which is looked at.

    network: its name in words;   adaptor: "conv" or "average";   printed: the paper's own storage in MiB, if it has it
    """
    here = next(cost for cost in costs if cost.clients == clients)
    unit, name = _unit(max(here.storage, here.single))
    with LOCK:
        figure = new_figure()
        figure.set_layout_engine("none")
        storage(figure.add_axes((0.1, 0.22, 0.42, 0.62)), costs, here, unit, name)
        traffic(figure.add_axes((0.63, 0.22, 0.35, 0.62)), here)
        words = f"{network}, K = {len(here.up)}, adaptor {adaptor}; at M = {here.clients} clients are {here.width} wide"
        figure.text(0.01, 0.955, words, fontsize=9.5, color=QUIET)
        for x, (hue, text) in zip(KEY_PLACES, KEY, strict=True):
            figure.text(x, 0.03, f"■ {text}", fontsize=9.5, color=hue)
    return Picture(
        figure,
        alt=alt_text(here, network, adaptor),
        sentence=sentence(here, printed),
        table=table(costs, here),
    )


def storage(ax: Axes, costs: Sequence[Cost], here: Cost, unit: int, name: str) -> None:
    """Stacked areas over M of the fused model's parts, and the lines S and M S."""
    dress(ax, title="Storage of the global model", x="clients M", y=name, grid="y")
    m = [cost.clients for cost in costs]
    parts = [[getattr(cost, part) / unit for cost in costs] for part in ("blocks", "head", "adaptors")]
    colours = (BLOCKS, HEAD, ADAPTORS)
    if len(m) > 1:
        ax.stackplot(m, parts, colors=colours, alpha=0.85, lw=0)
    else:
        bottom = 0.0
        for values, colour in zip(parts, colours, strict=True):
            ax.bar(m, values, bottom=bottom, width=0.6, color=colour)
            bottom += values[0]
    single = here.single / unit
    most = max(max(cost.storage, cost.single) for cost in costs) / unit
    ax.plot(m, [single] * len(m), color=INK, lw=1.8)
    ax.plot(m, [count * single for count in m], color=INK, lw=1.8, ls=(0, (4, 2)))
    ax.axvline(here.clients, color=ACCENT, lw=1.6)
    top = 1.28 * most
    ax.set_ylim(0, top)
    ax.set_xlim(min(m) - 0.5 * (len(m) == 1), max(m) + 0.5 * (len(m) == 1))
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    side = "left" if here.clients < (min(m) + max(m)) / 2 else "right"
    ax.text(here.clients, 0.96 * top, f" M = {here.clients} ", fontsize=9.5, color=ACCENT, va="center", ha=side)
    ax.text(max(m), single + 0.015 * top, "one network ", fontsize=9, color=INK, ha="right", va="bottom")
    leaves = min(max(m), 0.86 * top / single)  # where the line of the ensemble leaves the picture
    if leaves < min(m) + 1:
        ax.text(max(m), 0.87 * top, "an ensemble: M networks ", fontsize=9, color=INK, va="center", ha="right")
    else:
        side = "left" if leaves < (min(m) + max(m)) / 2 else "right"
        ax.text(leaves, min(0.86 * top, leaves * single), "  ensemble  ", fontsize=9, color=INK, va="center", ha=side)


def traffic(ax: Axes, here: Cost) -> None:
    """Bars of one client's bytes: FuseFL up and down by round, and a one-shot method's model each way."""
    rows = [
        ("FuseFL\nup", [*_rounds(here.up, here.part), (here.head, HEAD), (here.statistics, STATISTICS)]),
        ("FuseFL\ndown", [*_rounds(here.down, here.part), (here.initial, MODEL)]),
        ("one-shot\nup", [(here.single, MODEL)]),
        ("one-shot\ndown", [(here.single, MODEL)]),
    ]
    totals = [sum(value for value, _ in parts) for _, parts in rows]
    unit, name = _unit(max(totals))
    dress(ax, title="One client's traffic", x=name, grid="x")
    for i, (_, parts) in enumerate(rows):
        left = 0.0
        for value, hue in parts:
            ax.barh(i, value / unit, left=left, height=0.6, color=hue, alpha=0.85)
            left += value / unit
        ax.text(left, i, f" {left:.3g}", va="center", fontsize=9.5, color=INK)
        for place in itertools.accumulate((here.up, here.down)[i][:-1] if i < 2 else ()):  # a line between two rounds
            ax.vlines(place / unit, i - 0.3, i + 0.3, color="white", lw=1.2)
    ax.set_yticks(range(len(rows)), [label for label, _ in rows], fontsize=9.5)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlim(0, 1.22 * max(totals) / unit)
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)


def _rounds(sent: Sequence[int], part: Sequence[float]) -> list[tuple[float, str]]:
    """Each round's bytes as block and adaptor."""
    both = [((1 - share) * count, share * count) for count, share in zip(sent, part, strict=True)]
    return [pair for block, adaptor in both for pair in ((adaptor, ADAPTORS), (block, BLOCKS))]


def _unit(most: float) -> tuple[int, str]:
    """The paper's MiB where that makes sense, else KiB."""
    return (MIB, "MiB") if most >= MIB / 2 else (1024, "KiB")


def told(count: float) -> str:
    """Bytes as '53.7 MiB' or '12.3 KiB', the paper's units."""
    unit, name = _unit(count)
    return f"{count / unit:.3g} {name}"


def sentence(here: Cost, printed: float | None) -> str:
    share = here.storage / here.single
    paper = f" (the paper prints {printed:.2f} MiB)" if printed is not None else ""
    up, down = sum(here.up) + here.head + here.statistics, sum(here.down) + here.initial
    part = f"{100 * here.adaptors / here.storage:.0f} % of it adaptors" if here.adaptors else "no adaptor weights"
    return (
        f"{here.clients} clients fused take {told(here.storage)}{paper}, {share:.2f} ordinary networks, {part}; an "
        f"ensemble takes {here.clients}. A client sends {told(up)} and receives {told(down)}; a one-shot method sends "
        f"and receives {told(here.single)}."
    )


def alt_text(here: Cost, network: str, adaptor: str) -> str:
    return (
        f"Storage over the number of clients and one client's traffic ({network}, K = {len(here.up)}, adaptor "
        f"{adaptor}). At {here.clients} clients: blocks {told(here.blocks)}, adaptors {told(here.adaptors)}, "
        f"classifier {told(here.head)}; one network {told(here.single)}."
    )


def table(costs: Sequence[Cost], here: Cost) -> list[dict]:
    shown = {here.clients, costs[0].clients, costs[-1].clients, 5, 10, 20, 50}
    return [
        {
            "clients": cost.clients, "client width": cost.width, "blocks": told(cost.blocks),
            "adaptors": told(cost.adaptors), "classifier": told(cost.head), "fused": told(cost.storage),
            "one network": told(cost.single), "ensemble": told(cost.clients * cost.single),
            "one client up": told(sum(cost.up) + cost.head + cost.statistics),
            "of it statistics": told(cost.statistics), "one client down": told(sum(cost.down) + cost.initial),
        }
        for cost in costs
        if cost.clients in shown
    ]  # fmt: skip
