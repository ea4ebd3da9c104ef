"""What FENS costs one client: here and with the paper's network, part by part, beside one-shot and FedAvg's rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from .fens_vary import PARTS
from .style import INK, LOCK, QUIET, SECOND, Picture, dress, new_figure
from .words import data_size


@dataclass(frozen=True)
class Bill:
    """One size of the network. `bars`: {name: {part: bytes of one client}}, parts of PARTS or "rounds"; the first bar
    is one-shot learning, to which the others are compared;   what: the size in words.
    """

    what: str
    bars: Mapping[str, Mapping[str, float]]

    def total(self, name: str) -> float:
        return sum(self.bars[name].values())

    def ratio(self, name: str) -> float:
        return self.total(name) / self.total(next(iter(self.bars)))


HUES = {**PARTS, "rounds": SECOND}


def bytes_at_two_sizes(
    bills: Sequence[Bill], name: str, rounds: str, *, setting: str, own: float, measured: float | None = None
) -> Picture:
    """`bills` side by side: here, then at the paper's size. `name`, `rounds`: which bars are FENS and FedAvg's rounds;
    own: ratio of the paper's own setting;   measured: what the ledger counted for the client with the most bytes
    """
    with LOCK:
        figure = new_figure()
        for ax, bill in zip(figure.subplots(1, len(bills), sharey=True), bills, strict=True):
            bars(ax, bill)
        figure.legend(
            *figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False,
            fontsize=9, labelcolor=INK, handlelength=1.3, columnspacing=1.3,
        )  # fmt: skip
    return Picture(figure, alt_text(bills, setting), sentence(bills, name, rounds, own, measured), table(bills))


def bars(ax: Axes, bill: Bill) -> None:
    dress(ax, title=bill.what, grid="x")
    names = list(bill.bars)
    longest = max(bill.total(n) for n in names) or 1
    base = [0.0] * len(names)
    for part, hue in HUES.items():
        widths = [bill.bars[n].get(part, 0.0) for n in names]
        if not any(widths):
            continue
        label = "FedAvg, all rounds" if part == "rounds" else part
        ax.barh(range(len(names)), widths, left=base, height=0.58, color=hue, label=label)
        base = [b + w for b, w in zip(base, widths, strict=True)]
    for i, n in enumerate(names):
        inside = base[i] > 0.62 * longest
        ax.text(
            base[i] + (-0.015 if inside else 0.015) * longest, i, f"{bill.ratio(n):.3g}× · {data_size(base[i])}",
            ha="right" if inside else "left", va="center", fontsize=9.5, color="white" if inside else INK,
            fontweight="bold",
        )  # fmt: skip
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.45, -0.55)
    ax.set_xlim(0, 1.04 * longest)
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: data_size(v) if v else "0"))
    ax.set_xlabel("one client, down and up", fontsize=10, color=QUIET)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0, labelsize=10)


def sentence(bills: Sequence[Bill], name: str, rounds: str, own: float, measured: float | None) -> str:
    here, there = bills
    counted = ""
    if measured is not None:
        same = abs(measured - here.total(name)) < 1
        counted = f" (the ledger counted {'the same' if same else data_size(measured)})"
    cheap = [bill.total(name) < bill.total(rounds) for bill in bills]
    than = "less than" if all(cheap) else "more than" if not any(cheap) else "more here, less there than"
    if cheap == [True, False]:
        than = "less here, more there than"
    return (
        f"FENS costs a client {here.ratio(name):.3g}× one-shot learning here{counted} and {there.ratio(name):.3g}× "
        f"with the paper's network, {than} {rounds}. The paper's own setting: {own:.4f}×."
    )


def alt_text(bills: Sequence[Bill], setting: str) -> str:
    told = "; ".join(
        f"{bill.what}: " + ", ".join(f"{n} {data_size(bill.total(n))} ({bill.ratio(n):.3g} times)" for n in bill.bars)
        for bill in bills
    )
    return f"Bars of one client's bytes ({setting}), part by part, at two sizes of the network. {told}."


def table(bills: Sequence[Bill]) -> list[dict]:
    rows = []
    for bill in bills:
        for name, parts in bill.bars.items():
            row = {"network": bill.what, "what": name, **{p: round(parts.get(p, 0)) for p in HUES}}
            rows.append(
                row | {"bytes of one client": round(bill.total(name)), "× one-shot": round(bill.ratio(name), 4)}
            )
    return rows
