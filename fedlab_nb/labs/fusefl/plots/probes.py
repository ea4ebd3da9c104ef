"""Linear probes: what a straight line can still read off the features, layer by layer: of single clients and of the
mean over the clients, with and without fusing. Only curves of one kind can be compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from matplotlib.ticker import MaxNLocator

from ....plots.axes import few_ticks, percent_axis
from ....plots.style import ACCENT, INK, SECOND, Picture, drawing, dress
from ....plots.words import percent, plural, tabled

UPWARDS = "layer, from the image upwards"
Point = tuple[Sequence[float], float]  # of one layer: each client's features, and the mean over the clients


@dataclass(frozen=True)
class Probed:
    """Probe accuracies, 0-1.

    isolated [L]: after each layer of networks that nobody fused: ([M] of each client, of the mean over the clients)
    fused [K], places [K]: the same after each fused block, and the layer (from 1) at which that block ends
    setting: in words;   note: on how it was measured
    """

    isolated: Sequence[Point]
    fused: Sequence[Point]
    places: Sequence[int]
    setting: str
    note: str = ""


def single(points: Sequence[Point]) -> list[float]:
    """Mean accuracy of the clients' own features, by layer."""
    return [mean(each) for each, _ in points]


def together(points: Sequence[Point]) -> list[float]:
    """Accuracy of the mean features, by layer."""
    return [of_mean for _, of_mean in points]


def probes(data: Probed, *, client: int | None = None) -> Picture:
    """Four lines over the layers: single clients and the mean over the clients, isolated and fused."""
    layers, clients = len(data.isolated), len(data.isolated[0][0])
    own = range(1, layers + 1)
    with drawing() as (figure, ax):
        dress(ax, title="What a linear probe reads from each layer", y="probe accuracy", grid="y", x=UPWARDS)
        kinds = (("isolated (K = 1)", data.isolated, own, ACCENT, "o"), ("fused", data.fused, data.places, SECOND, "s"))
        for _, points, x, color, marker in kinds:
            for k in range(clients):
                row = [each[k] for each, _ in points]
                mine = {"lw": 1.8, "zorder": 3} if k == client else {"lw": 0.8, "alpha": 0.3}
                ax.plot(x, row, color=INK if k == client else color, ls="-" if marker == "o" else "--", **mine)
                if k == client and marker == "o":
                    ax.text(x[-1], row[-1], f"   client {client}", fontsize=9.5, color=INK, va="center")
        names = {"mean over the clients": together, f"one client (mean of {plural(clients, 'client')})": single}
        for kind, of in names.items():
            for words, points, x, color, marker in kinds:
                look = {"lw": 2.4, "ms": 7} if of is together else {"lw": 1.6, "ms": 6, "mfc": "white", "ls": "--"}
                ax.plot(x, of(points), color=color, marker=marker, label=f"{words}: {kind}", **look)
        low = min(v for points in (data.isolated, data.fused) for each, of_mean in points for v in (*each, of_mean))
        percent_axis(ax, top=1.01, low=max(0, 0.1 * int(10 * low - 0.5)))
        ax.set_xlim(0.7, layers + (0.6 if client is not None else 0.3))
        ax.yaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
        few_ticks(ax, "x", min(layers, 13), whole=True)
        ax.legend(frameon=False, fontsize=9.5, labelcolor=INK, loc="lower left")
    parts = [
        f"{words}, {kind}, " + ", ".join(f"layer {p} {percent(v)}" for p, v in zip(x, of(points), strict=True))
        for words, points, x, *_ in kinds
        for kind, of in (("mean over the clients", together), ("one client", single))
    ]
    alt = f"Accuracy of linear probes by layer ({data.setting}): {'; '.join(parts)}."
    return Picture(figure, alt, f"{sentence(data, client)} {data.note}".strip(), table(data))


def sentence(data: Probed, client: int | None) -> str:
    ones, means = ((of(data.fused)[-1], of(data.isolated)[-1]) for of in (single, together))
    if len(data.fused) == 1:
        text = (
            "Nothing is fused here (K = 1). At the top a linear probe is right for "
            f"{percent(ones[1])} with one client's features and for {percent(means[1])} with the mean over the "
            "clients. So the mean alone makes that difference."
        )
    else:
        text = (
            f"At the top fusing changes one client's features by {change(*ones)}, and the mean over clients by "
            f"{change(*means)}. The mean alone changes them by {change(means[1], ones[1])}."
        )
    if client is not None and client < len(data.isolated[0][0]):
        own = (points[-1][0][client] for points in (data.isolated, data.fused))
        text += " Client {}: {} at the top isolated, {} fused.".format(client, *map(percent, own))
    return text


def change(after: float, before: float) -> str:
    """'+8 points (66 % to 74 %)'."""
    size = round(100 * (after - before))
    sign = "+" if size > 0 else "−" if size < 0 else ""
    return f"{sign}{abs(size)} point{'s' * (abs(size) != 1)} ({percent(before)} to {percent(after)})"


def table(data: Probed) -> list[dict]:
    rows, fused = [], dict(zip(data.places, data.fused, strict=True))
    for layer, (each, of_mean) in enumerate(data.isolated, 1):
        cells = [percent(mean(each)), percent(min(each)), percent(max(each)), percent(of_mean)]
        other = fused.get(layer)
        rows.append((layer, *cells, *(["", ""] if other is None else [percent(mean(other[0])), percent(other[1])])))
    names = "layer | isolated, one client | from | to | isolated, mean over clients | fused, one client"
    return tabled(f"{names} | fused, mean over clients", rows)
