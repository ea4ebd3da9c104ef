"""What FuseFL costs, as arithmetic: the size of the fused model against one ordinary network and an ensemble of M, and
the bytes of one client, up and down, round by round.
"""

import itertools
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from ....comm.formulas import MIB
from ....plots.axes import few_ticks, rows_axis
from ....plots.style import ACCENT, INK, QUIET, SECOND, Picture, drawing, dress
from ....plots.words import tabled
from ..traffic import Bill

BLOCKS, ADAPTORS, HEAD, STATISTICS, MODEL = "#56B4E9", SECOND, "#009E73", "#CC79A7", "#7f8a94"
KEY = {"blocks": BLOCKS, "adaptors": ADAPTORS, "classifier": HEAD, "class statistics": STATISTICS, "whole model": MODEL}


COLUMNS = "clients | client width | blocks | adaptors | classifier | fused | one network | ensemble"
COLUMNS += " | one client up | of it statistics | one client down"


def arithmetic(
    bills: Sequence[Bill], clients: int, *, network: str, adaptor: str, printed: float | None = None
) -> Picture:
    """`bills`: one for every M on the axis, ascending, and among them M = `clients`, which is looked at.

    network: its name in words;   adaptor: "conv" or "average";   printed: the paper's own storage in MiB, if it has it
    """
    here = next(bill for bill in bills if bill.clients == clients)
    kind = f"K = {len(here.up)}, adaptor {adaptor}"
    with drawing(fixed=True) as (figure, _):
        storage(figure.add_axes((0.1, 0.22, 0.42, 0.62)), bills, here)
        traffic(figure.add_axes((0.63, 0.22, 0.35, 0.62)), here)
        words = f"{network}, {kind}; at M = {clients} clients are {here.parts.width} wide"
        figure.text(0.01, 0.955, words, fontsize=9.5, color=QUIET)
        for x, (text, hue) in zip((0.06, 0.19, 0.34, 0.5, 0.74), KEY.items(), strict=True):
            figure.text(x, 0.03, f"■ {text}", fontsize=9.5, color=hue)
    alt = (
        f"Storage over the number of clients and one client's traffic ({network}, {kind}). At {clients} clients: "
        f"blocks {size(here.blocks)}, adaptors {size(here.adaptors)}, classifier {size(here.head)}; one network "
        f"{size(here.single)}."
    )
    shown = {clients, bills[0].clients, bills[-1].clients, 5, 10, 20, 50}
    return Picture(figure, alt, sentence(here, printed), tabled(COLUMNS, (row(b) for b in bills if b.clients in shown)))


def storage(ax: Axes, bills: Sequence[Bill], here: Bill) -> None:
    """Stacked areas over M of the fused model's parts, and the lines S and M S."""
    unit, name = _unit(max(here.storage, here.single))
    dress(ax, title="Storage of the global model", x="clients M", y=name, grid="y")
    m, single = [bill.clients for bill in bills], here.single / unit
    parts = [[getattr(bill, part) / unit for bill in bills] for part in ("blocks", "head", "adaptors")]
    ax.stackplot(m, parts, colors=(BLOCKS, HEAD, ADAPTORS), alpha=0.85, lw=0)
    ax.plot(m, [single] * len(m), color=INK, lw=1.8)
    ax.plot(m, [count * single for count in m], color=INK, lw=1.8, ls=(0, (4, 2)))
    ax.axvline(here.clients, color=ACCENT, lw=1.6)
    top = 1.28 * max(max(bill.storage, bill.single) for bill in bills) / unit
    ax.set(xlim=(m[0], m[-1]), ylim=(0, top))
    few_ticks(ax, "x", 6, whole=True)

    def write(x: float, y: float, text: str, **style: Any) -> None:
        side = "left" if x < (m[0] + m[-1]) / 2 else "right"
        ax.text(x, y, text, ha=side, **{"fontsize": 9, "color": INK, "va": "center", **style})

    write(here.clients, 0.96 * top, f" M = {here.clients} ", fontsize=9.5, color=ACCENT)
    write(m[-1], single + 0.015 * top, "one network ", va="bottom")
    leaves = min(m[-1], 0.86 * top / single)  # where the line of the ensemble leaves the picture
    if leaves < m[0] + 1:
        write(m[-1], 0.87 * top, "an ensemble: M networks ")
    else:
        write(leaves, min(0.86 * top, leaves * single), "  ensemble  ")


def traffic(ax: Axes, here: Bill) -> None:
    """Bars of one client's bytes: FuseFL up and down by round, and a one-shot method's model each way."""
    up = [*_rounds(here.up, here.part), (here.head, HEAD), (here.statistics, STATISTICS)]
    down = [*_rounds(here.down, here.part), (here.initial, MODEL)]
    model = [(here.single, MODEL)]
    rows = {"FuseFL\nup": up, "FuseFL\ndown": down, "one-shot\nup": model, "one-shot\ndown": model}
    most = max(here.client_up, here.client_down, here.single)
    unit, name = _unit(most)
    dress(ax, title="One client's traffic", x=name, grid="x")
    for i, parts in enumerate(rows.values()):
        left = 0.0
        for value, hue in parts:
            ax.barh(i, value / unit, left=left, height=0.6, color=hue, alpha=0.85)
            left += value / unit
        ax.text(left, i, f" {left:.3g}", va="center", fontsize=9.5, color=INK)
    for i, rounds in enumerate((here.up, here.down)):
        for place in itertools.accumulate(rounds[:-1]):  # a line between two rounds
            ax.vlines(place / unit, i - 0.3, i + 0.3, color="white", lw=1.2)
    rows_axis(ax, list(rows), size=9.5)
    ax.set_xlim(0, 1.22 * most / unit)
    few_ticks(ax, "x", 4, form="{:g}".format)


def _rounds(sent: Sequence[int], part: Sequence[float]) -> list[tuple[float, str]]:
    """Each round's bytes as adaptor and block."""
    pairs = zip(sent, part, strict=True)
    return [half for n, share in pairs for half in ((share * n, ADAPTORS), ((1 - share) * n, BLOCKS))]


def _unit(most: float) -> tuple[int, str]:
    """The paper's MiB where that makes sense, else KiB."""
    return (MIB, "MiB") if most >= MIB / 2 else (1024, "KiB")


def size(count: float) -> str:
    """Bytes as '53.7 MiB' or '12.3 KiB', the paper's units."""
    unit, name = _unit(count)
    return f"{count / unit:.3g} {name}"


def sentence(here: Bill, printed: float | None) -> str:
    paper = f" (the paper prints {printed:.2f} MiB)" if printed is not None else ""
    part = (
        f"The adaptors are {100 * here.adaptors / here.storage:.0f} % of it"
        if here.adaptors
        else "There are no adaptor weights"
    )
    return (
        f"The fused model of {here.clients} clients takes {size(here.storage)}{paper}. This is as much as "
        f"{here.storage / here.single:.2f} ordinary networks. {part}. An ensemble is {here.clients} networks. A client "
        f"sends {size(here.client_up)} and receives {size(here.client_down)}. In a one-shot method it sends and "
        f"receives {size(here.single)}."
    )


def row(b: Bill) -> tuple:
    """One number of clients in the table."""
    sizes = b.blocks, b.adaptors, b.head, b.storage, b.single, b.clients * b.single
    return b.clients, b.parts.width, *map(size, (*sizes, b.client_up, b.statistics, b.client_down))
