"""What FENS costs one client: here and with the paper's network, part by part, beside one-shot and FedAvg's rounds."""

from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes

from ....plots.axes import SIZES, few_ticks, rows_axis
from ....plots.style import ACCENT, INK, Picture, drawing, dress, look
from ....plots.words import data_size, plural
from ..numbers import ENSEMBLE, FENS, OTHER, OWN, PAPER_RATIO, ROUNDS, Bill

HUES = {OWN: "#9aa4ae", ENSEMBLE: "#56B4E9", ROUNDS: ACCENT, OTHER: "#E69F00", "rounds": look("fedavg_multi").colour}


def bytes_at_two_sizes(bills: Sequence[Bill], *, clients: int, setting: str, measured: float | None = None) -> Picture:
    """`bills` side by side: here, then at the paper's size. clients: how many there are; measured: what the ledger
    counted for the client with the most bytes
    """
    with drawing(1, len(bills), sharey=True) as (figure, places):
        for ax, bill in zip(places, bills, strict=True):
            bars(ax, bill)
        figure.legend(
            *figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False,
            fontsize=9, labelcolor=INK, handlelength=1.3, columnspacing=1.3,
        )  # fmt: skip
    return Picture(figure, alt_text(bills, setting), sentence(bills, clients, measured), table(bills))


def bars(ax: Axes, bill: Bill) -> None:
    dress(ax, title=bill.what, x="one client, down and up", grid="x")
    totals = [bill.total(name) for name in bill.bars]
    longest = max(totals) or 1
    stacked(ax.barh, list(bill.bars.values()), "left", 0.58)
    for i, (name, total) in enumerate(zip(bill.bars, totals, strict=True)):
        inside = total > 0.62 * longest
        style = {"ha": "right", "color": "white"} if inside else {"ha": "left", "color": INK}
        text = f"{bill.ratio(name):.3g}× · {data_size(total)}"
        x = total + (-0.015 if inside else 0.015) * longest
        ax.text(x, i, text, va="center", fontsize=9.5, fontweight="bold", **style)
    rows_axis(ax, list(bill.bars))
    ax.set_xlim(0, 1.04 * longest)
    few_ticks(ax, "x", 4, form=SIZES)


def stacked(bars: Callable, columns: Sequence[Mapping[str, float]], start: str, thick: float) -> list[float]:
    """A bar of parts for each of `columns` {part: bytes}, drawn by `bars` (`Axes.bar` from "bottom", `Axes.barh` from
    "left"); returns their ends."""
    ends = [0.0] * len(columns)
    for part, hue in HUES.items():
        sizes = [parts.get(part, 0.0) for parts in columns]
        if any(sizes):
            label = "FedAvg, all rounds" if part == "rounds" else part
            bars(range(len(columns)), sizes, thick, **{start: ends}, color=hue, label=label)
            ends = [end + size for end, size in zip(ends, sizes, strict=True)]
    return ends


def sentence(bills: Sequence[Bill], clients: int, measured: float | None) -> str:
    here, there = bills
    rounds, counted = list(here.bars)[2], ""
    if measured is not None:
        same = abs(measured - here.total(FENS)) < 1
        counted = f" (the ledger counted {'the same' if same else data_size(measured)})"
    first, second = ("less" if bill.total(FENS) < bill.total(rounds) else "more" for bill in bills)
    than = f"{first} than" if first == second else f"{first} here, {second} there than"
    return (
        f"With {plural(clients, 'client')} FENS costs a client {here.ratio(FENS):.3g}× one-shot learning here{counted} "
        f"and {there.ratio(FENS):.3g}× with the paper's network, {than} {rounds}. "
        f"The paper's own setting: {PAPER_RATIO:.3g}×."
    )


def alt_text(bills: Sequence[Bill], setting: str) -> str:
    sizes = "; ".join(
        f"{bill.what}: " + ", ".join(f"{n} {data_size(bill.total(n))} ({bill.ratio(n):.3g} times)" for n in bill.bars)
        for bill in bills
    )
    return f"Bars of one client's bytes ({setting}), part by part, at two sizes of the network. {sizes}."


def table(bills: Sequence[Bill]) -> list[dict]:
    return [
        {"network": bill.what, "what": name, **{part: round(parts.get(part, 0)) for part in HUES}}
        | {"bytes of one client": round(bill.total(name)), "× one-shot": float(f"{bill.ratio(name):.3g}")}
        for bill in bills
        for name, parts in bill.bars.items()
    ]
