"""The terms of Fed-ET's Theorem 1 as stacked bars against α, beside the loss that they are to bound."""

from collections.abc import Mapping

import numpy as np

from ....plots.axes import level_line
from ....plots.style import INK, SECOND, SERIES, Picture, drawing, dress, legend
from ....plots.words import tabled

NAMES = {"local_loss": "(i) local loss", "small_data": "(ii) small data", "skew": "more than (iii), skew"}
HATCHES = ("", "////", "....")
Loss = Mapping[float, float]


def bound(terms: Mapping[float, Mapping[str, float]], loss: Loss, alone: Loss, *, setting: str) -> Picture:
    """terms {α: {name of NAMES: value}}; loss {α: Brier test loss of the mean output}; alone {α: mean of the clients'
    own}. "skew" is an upper bound of term (iii); term (iv) needs labelled target data and is left out."""
    alphas = sorted(terms)
    place, sums = np.arange(len(alphas)), {a: sum(terms[a].values()) for a in alphas}
    with drawing() as (figure, ax):
        dress(ax, title="Three of the bound's four terms", y="Brier loss", grid="y")
        floor = np.zeros(len(alphas))
        for (name, label), hue, hatch in zip(NAMES.items(), SERIES, HATCHES, strict=False):
            values = np.array([terms[a][name] for a in alphas])
            exact = {"color": hue, "hatch": hatch, "ec": "white", "lw": 0.5}
            at_most = {"color": "none", "hatch": hatch, "ec": hue, "lw": 1.4, "ls": "--"}  # no part of the theorem
            ax.bar(place, values, 0.5, bottom=floor, label=label, **(at_most if name == "skew" else exact))
            floor = floor + values
        own = [alone[a] for a in alphas]
        ax.plot(place, own, "o", ms=10, mfc="white", mec=INK, mew=1.6, label="clients, mean loss")
        ax.plot(place, [loss[a] for a in alphas], "D", ms=9, color=INK, mec="white", label="loss of the mean output")
        level_line(ax, 1, "no loss can be larger", colour=SECOND, lift=0.01, size=9)
        ax.set_xticks(place, [f"α = {a:g}" for a in alphas])
        ax.set(xlim=(-0.6, len(alphas) - 0.4), ylim=(0, max(1.15, float(floor.max()) * 1.08)))
        legend(ax, loc="upper center", bbox_to_anchor=(0.5, -0.09), ncol=3)
    first = alphas[0]
    known = sums[first] - terms[first]["skew"]
    sentence = (
        f"At α = {first:g} terms (i) and (ii) add up to {known:.2f}, and the loss is {loss[first]:.2f}. Term (iii) "
        f"cannot be computed. The dashed part, {terms[first]['skew']:.2f}, is an upper bound of it. So the theorem's "
        f"sum may be lower than the whole bar, {sums[first]:.2f}. A client alone has {alone[first]:.2f} on average."
    )
    parts = {a: ", ".join(f"{NAMES[n]} {v:.2f}" for n, v in terms[a].items()) for a in alphas}
    each = "; ".join(f"α = {a:g}: {parts[a]}, loss {loss[a]:.2f}" for a in alphas)
    rows = ((f"{a:g}", *(f"{v:.2f}" for v in (*terms[a].values(), sums[a], loss[a], alone[a]))) for a in alphas)
    table = tabled(["α", *(NAMES[n] for n in terms[first]), "sum", "loss of the mean", "mean loss"], rows)
    return Picture(figure, f"Stacked bars of the bound's terms ({setting}): {each}.", sentence, table)
