"""The terms of Fed-ET's Theorem 1 as stacked bars against α, beside the loss that they are to bound."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .style import INK, LOCK, QUIET, SECOND, SERIES, Picture, dress, legend, new_figure
from .words import percent

NAMES = {"local_loss": "(i) local loss", "small_data": "(ii) small data", "skew": "(iii) skew"}
HATCHES = ("", "////", "....")


def bound(
    terms: Mapping[float, Mapping[str, float]],
    loss: Mapping[float, float],
    alone: Mapping[float, float],
    *,
    setting: str,
) -> Picture:
    """terms {α: {name of NAMES: value}}; loss {α: Brier test loss of the mean output}; alone {α: mean of the clients'
    own}. Term (iv) needs labelled target data and is left out."""
    alphas = sorted(terms)
    place = np.arange(len(alphas))
    with LOCK:
        figure = new_figure()
        ax = dress(figure.subplots(), title="Three of the bound's four terms", grid="y")
        floor = np.zeros(len(alphas))
        for (name, label), hue, hatch in zip(NAMES.items(), SERIES, HATCHES, strict=False):
            values = np.array([terms[a][name] for a in alphas])
            ax.bar(place, values, 0.5, bottom=floor, color=hue, hatch=hatch, ec="white", lw=0.5, label=label)
            floor = floor + values
        ax.plot(
            place, [alone[a] for a in alphas], "o", ms=10, mfc="white", mec=INK, mew=1.6, label="clients, mean loss"
        )
        ax.plot(place, [loss[a] for a in alphas], "D", ms=9, color=INK, mec="white", label="loss of the mean output")
        ax.axhline(1, color=SECOND, lw=1, ls=(0, (2, 2)))
        ax.text(len(alphas) - 0.55, 1.01, "no loss can be larger", ha="right", fontsize=9, color=SECOND)
        ax.set_xticks(place, [f"α = {a:g}" for a in alphas])
        ax.set_xlim(-0.6, len(alphas) - 0.4)
        ax.set_ylim(0, max(1.15, float(floor.max()) * 1.08))
        ax.set_ylabel("Brier loss", fontsize=10, color=QUIET)
        legend(ax, loc="upper center", bbox_to_anchor=(0.5, -0.09), ncol=3)
    first = alphas[0]
    whole = sum(terms[first].values())
    sentence = (
        f"At α = {first:g} the terms add up to {whole:.2f}, of which skew is {percent(terms[first]['skew'] / whole)}; "
        f"the loss is {loss[first]:.2f}. Every client alone would lose {alone[first]:.2f} on average."
    )
    told = "; ".join(
        f"α = {a:g}: {', '.join(f'{NAMES[n]} {v:.2f}' for n, v in terms[a].items())}, loss {loss[a]:.2f}"
        for a in alphas
    )
    table = [
        {"α": f"{a:g}", **{NAMES[n]: f"{v:.2f}" for n, v in terms[a].items()}, "sum": f"{sum(terms[a].values()):.2f}",
         "loss of the mean": f"{loss[a]:.2f}", "mean loss": f"{alone[a]:.2f}"}
        for a in alphas
    ]  # fmt: skip
    return Picture(figure, f"Stacked bars of the bound's terms ({setting}): {told}.", sentence, table)
