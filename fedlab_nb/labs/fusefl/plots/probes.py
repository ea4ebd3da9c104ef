"""Linear probes: what a straight line can still read off the features, layer by layer, of single clients trained alone,
and off the mean over the clients of each fused block's features.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from matplotlib.ticker import MaxNLocator

from ....plots.axes import few_ticks, percent_axis
from ....plots.style import ACCENT, INK, SECOND, Picture, drawing, dress
from ....plots.words import percent, plural, tabled

UPWARDS = "layer, from the image upwards"


@dataclass(frozen=True)
class Probed:
    """Probe accuracies, 0-1.

    alone [M][L]: after each of the L layers of each client's own network; may be empty
    fused [K], places [K]: after each fused block, and the layer (from 1) at which that block ends
    setting: in words;   note: on how it was measured
    """

    alone: Sequence[Sequence[float]]
    fused: Sequence[float]
    places: Sequence[int]
    setting: str
    note: str = ""

    @property
    def means(self) -> list[float]:
        """[L] over the clients."""
        return [mean(layer) for layer in zip(*self.alone, strict=True)]


def probes(data: Probed, *, client: int | None = None) -> Picture:
    """Lines over the layers: each client's, their mean, and that of the fused blocks."""
    alone, means = data.alone, data.means
    layers = max(*data.places, len(means))
    with drawing() as (figure, ax):
        dress(ax, title="What a linear probe reads off each layer", y="probe accuracy", grid="y", x=UPWARDS)
        x = range(1, len(means) + 1)
        for k, row in enumerate(alone):
            mine = {"color": INK, "lw": 1.8, "zorder": 3}
            ax.plot(x, row, **(mine if k == client else {"color": ACCENT, "lw": 0.9, "alpha": 0.35}))
        if alone:
            label = f"trained alone (mean of {plural(len(alone), 'client')}, thin: each)"
            ax.plot(x, means, "o-", color=ACCENT, lw=2.4, ms=7, label=label)
        label = "fused (mean of the clients' features)"
        ax.plot(data.places, data.fused, "s-", color=SECOND, lw=2.4, ms=7, label=label)
        if client is not None and client < len(alone):
            ax.text(x[-1], alone[client][-1], f"   client {client}", fontsize=9.5, color=INK, va="center")
        low = min([*data.fused, *(v for row in alone for v in row)])
        percent_axis(ax, top=1.01, low=max(0, 0.1 * int(10 * low - 0.5)))
        ax.set_xlim(0.7, layers + (0.6 if client is not None else 0.3))
        ax.yaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
        few_ticks(ax, "x", min(layers, 13), whole=True)
        ax.legend(frameon=False, fontsize=9.5, labelcolor=INK, loc="lower left")
    own = ", ".join(f"layer {i + 1} {percent(v)}" for i, v in enumerate(means)) or "none"
    fused = ", ".join(f"layer {p} {percent(v)}" for p, v in zip(data.places, data.fused, strict=True))
    alt = f"Accuracy of linear probes by layer ({data.setting}): clients alone {own}; fused {fused}."
    return Picture(figure, alt, f"{sentence(data, client)} {data.note}".strip(), table(data))


def sentence(data: Probed, client: int | None) -> str:
    fused, means = data.fused[-1], data.means
    if not means:
        return f"The mean over the clients of the last block's fused features is separable to {percent(fused)}."
    size = f"{abs(100 * (fused - means[-1])):.0f}"
    side = "more" if fused > means[-1] else "less"
    more = "as separable as" if size == "0" else f"{size} point{'s' * (size != '1')} {side} separable than"
    text = (
        f"At the top the mean over the clients' fused features is {more} the features of single clients trained alone "
        f"({percent(fused)} against {percent(means[-1])}); after the first layer these have {percent(means[0])}."
    )
    if client is not None and client < len(data.alone):
        first, top = data.alone[client][0], data.alone[client][-1]
        text += f" Client {client}: {percent(first)} after its first layer, {percent(top)} at the top."
    return text


def table(data: Probed) -> list[dict]:
    fused, layers = dict(zip(data.places, map(percent, data.fused), strict=True)), list(zip(*data.alone, strict=True))
    rows = []
    for i in range(max(*data.places, len(layers))):
        alone = [percent(number(layers[i])) for number in (mean, min, max)] if i < len(layers) else ["", "", ""]
        rows.append((i + 1, *alone, fused.get(i + 1, "")))
    return tabled("layer | alone, mean | alone, from | alone, to | fused", rows)
