"""Linear probes: what a straight line can still read off the features, layer by layer, of clients trained alone and of
the fused network.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from matplotlib.ticker import MaxNLocator

from .accuracy import PERCENT
from .style import ACCENT, INK, LOCK, QUIET, SECOND, Picture, dress, new_figure
from .words import percent, plural


def probes(
    alone: Sequence[Sequence[float]],
    fused: Sequence[float],
    places: Sequence[int],
    *,
    setting: str,
    client: int | None = None,
    note: str = "",
) -> Picture:
    """`alone [M][L]`: probe accuracy after each of the L layers of each client's own network; may be empty.

    fused [K], places [K]: probe accuracy after each fused block, and the layer (from 1) at which that block ends
    """
    layers = max([*places, *(len(row) for row in alone)], default=1)
    means = [mean(row[i] for row in alone) for i in range(len(alone[0]))] if alone else []
    with LOCK:
        figure = new_figure()
        ax = dress(figure.subplots(), title="What a linear probe reads off each layer", y="probe accuracy", grid="y")
        ax.set_xlabel("layer, from the image upwards", fontsize=10, color=QUIET)
        x = range(1, len(means) + 1)
        for k, row in enumerate(alone):
            mine = k == client
            style = {"color": INK, "lw": 1.8, "zorder": 3} if mine else {"color": ACCENT, "lw": 0.9, "alpha": 0.35}
            ax.plot(x, row, **style)
        if alone:
            few = plural(len(alone), "client")
            ax.plot(x, means, "o-", color=ACCENT, lw=2.4, ms=7, label=f"trained alone (mean of {few}, thin: each)")
        ax.plot(places, fused, "s-", color=SECOND, lw=2.4, ms=7, label="fused (mean of the clients' features)")
        if client is not None and client < len(alone):
            ax.text(x[-1], alone[client][-1], f"   client {client}", fontsize=9.5, color=INK, va="center")
        low = min([*fused, *(v for row in alone for v in row)], default=0)
        ax.set_ylim(max(0, 0.1 * int(10 * low - 0.5)), 1.01)
        ax.set_xlim(0.7, layers + (0.6 if client is not None else 0.3))
        ax.yaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10], integer=False))
        ax.xaxis.set_major_locator(MaxNLocator(min(layers, 13), integer=True))
        ax.yaxis.set_major_formatter(PERCENT)
        ax.legend(frameon=False, fontsize=9.5, labelcolor=INK, loc="lower left")
    return Picture(
        figure,
        alt=alt_text(means, fused, places, setting),
        sentence=f"{sentence(alone, means, fused, client)} {note}".strip(),
        table=table(alone, means, fused, places),
    )


def sentence(
    alone: Sequence[Sequence[float]], means: Sequence[float], fused: Sequence[float], client: int | None
) -> str:
    if not alone:
        return f"The fused features of the last block are separable to {percent(fused[-1])}."
    difference = 100 * (fused[-1] - means[-1])
    points = f"{abs(difference):.0f} point{'' if f'{abs(difference):.0f}' == '1' else 's'}"
    side = "more" if difference > 0 else "less"
    more = "as separable as" if abs(difference) < 0.5 else f"{points} {side} separable than"
    text = (
        f"At the top the fused features are {more} those of clients trained alone ({percent(fused[-1])} against "
        f"{percent(means[-1])}); after the first layer these have {percent(means[0])}."
    )
    if client is not None and client < len(alone):
        first, top = alone[client][0], alone[client][-1]
        text += f" Client {client}: {percent(first)} after its first layer, {percent(top)} at the top."
    return text


def alt_text(means: Sequence[float], fused: Sequence[float], places: Sequence[int], setting: str) -> str:
    own = ", ".join(f"layer {i + 1} {percent(v)}" for i, v in enumerate(means)) or "none"
    joint = ", ".join(f"layer {p} {percent(v)}" for p, v in zip(places, fused, strict=True))
    return f"Accuracy of linear probes by layer ({setting}): clients alone {own}; fused {joint}."


def table(
    alone: Sequence[Sequence[float]], means: Sequence[float], fused: Sequence[float], places: Sequence[int]
) -> list[dict]:
    at = dict(zip(places, fused, strict=True))
    rows = []
    for i in range(max([*places, len(means)], default=0)):
        row = {"layer": i + 1, "alone, mean": percent(means[i]) if i < len(means) else ""}
        row["alone, from"] = percent(min(r[i] for r in alone)) if i < len(means) else ""
        row["alone, to"] = percent(max(r[i] for r in alone)) if i < len(means) else ""
        rows.append(row | {"fused": percent(at[i + 1]) if i + 1 in at else ""})
    return rows
