"""Accuracy against λ for what a server may make of the uploads; beside it, what is measured and what λ adds to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from .fedlpa_factors import SUPERSCRIPT, power
from .style import ACCENT, FAINT, INK, LOCK, SERIES, Picture, dress, legend, new_figure
from .words import listed, percent

PLACES = {"left": 0.085, "right": 0.975, "top": 0.925, "bottom": 0.125, "wspace": 0.36}
# key -> words, colour, line, marker
USES = {
    "exact": ("exact (FedLPA)", SERIES[2], "-", "o"),
    "shortcut": ("shortcut EA", SERIES[1], "--", "s"),
    "inputs": ("A alone (RegMean)", SERIES[0], "-.", "^"),
    "diagonal": ("diagonals", SERIES[3], ":", "D"),
    "none": ("average", "#7F7F7F", (0, (1, 2)), ""),
}
POWER = FuncFormatter(lambda v, _: "10" + str(round(np.log10(v))).translate(SUPERSCRIPT) if v > 0 else "")


def damping(
    dampings: Sequence[float],
    accuracies: Mapping[str, Sequence[float]],
    chosen: int,
    measured: Mapping[str, np.ndarray],
    added: Mapping[str, np.ndarray],
    *,
    layers: Sequence[str],
    setting: str,
    pi: str,
    client: int | None = None,
) -> Picture:
    """`accuracies`: use (a key of USES) -> test accuracy 0-1 for each λ of `dampings`; number `chosen` is marked.

    measured, added: "A" and "B" -> `[K, layers]`, mean diagonal of the undamped factor, and what λ adds to it.
    """
    with LOCK:
        figure = new_figure()
        figure.set_layout_engine("none")
        grid = figure.add_gridspec(1, 2, width_ratios=[1.4, 1], **PLACES)
        curves(figure.add_subplot(grid[0, 0]), dampings, accuracies, chosen)
        sizes(figure.add_subplot(grid[0, 1]), measured, added, layers, client)
    return Picture(
        figure,
        alt=alt_text(dampings, accuracies, setting, pi),
        sentence=sentence(dampings, accuracies, chosen, measured, added, layers),
        table=table(dampings, accuracies),
    )


def curves(ax: Axes, dampings: Sequence[float], accuracies: Mapping[str, Sequence[float]], chosen: int) -> None:
    dress(ax, title="Test accuracy", x="damping λ", grid="y")
    for name, values in accuracies.items():
        words, colour, line, marker = USES[name]
        ax.plot(
            dampings, values, ls=line, color=colour, marker=marker or None, ms=4.5, lw=2.4 if name == "exact" else 1.7,
            label=words, zorder=4 if name == "exact" else 3,
        )  # fmt: skip
        ax.plot(dampings[chosen], values[chosen], marker or "_", color=colour, ms=9, mec=INK, mew=1, zorder=5)
    ax.axvline(dampings[chosen], color=ACCENT, lw=7, alpha=0.16, zorder=0)
    ax.set_xscale("log")
    ax.set_xlim(min(dampings) / 1.8, max(dampings) * 1.8)
    ax.set_ylim(0, 1.3)  # room for the legend above the curves
    ax.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1])
    ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:.0f} %"))
    powers(ax)
    legend(ax, loc="upper center", ncols=2, columnspacing=1.2, handlelength=2.2, borderaxespad=0.1)


def sizes(
    ax: Axes,
    measured: Mapping[str, np.ndarray],
    added: Mapping[str, np.ndarray],
    layers: Sequence[str],
    client: int | None,
) -> None:
    """One row a factor: a dot a client for its mean diagonal, a bar a client for what λ adds."""
    dress(ax, title="Measured and added", x="mean diagonal", grid="x")
    rows = [(factor, i) for factor in ("A", "B") for i in range(len(layers))]
    few = len(rows) <= 14
    for y, (factor, i) in enumerate(rows):
        found, extra = np.maximum(measured[factor][:, i], 1e-9), np.maximum(added[factor][:, i], 1e-9)
        ax.plot(extra, np.full(len(extra), y), "|", color=SERIES[1], ms=15 if few else 7, mew=2.2, zorder=3)
        small = 6 if few else 3.5
        ax.plot(found, np.full(len(found), y), "o", color=SERIES[0], ms=small, mec="white", mew=0.6, zorder=4)
        if client is not None and client < len(found):
            ax.plot(found[client], y, "o", color=ACCENT, ms=10, mec=INK, mew=1.4, zorder=5)
    ax.set_yticks(range(len(rows)), [f"{factor} of {layers[i]}" for factor, i in rows], fontsize=9 if few else 7)
    ax.set_ylim(len(rows) - 0.4, -1.55 if few else -2.5)
    ax.axhline(len(layers) - 0.5, color=FAINT, lw=1.2)
    ax.set_xscale("log")
    ax.set_xlim(1e-7, 1e3)
    powers(ax)
    ax.plot([], [], "o", color=SERIES[0], ms=6, label="measured, a client")
    ax.plot([], [], "|", color=SERIES[1], ms=11, mew=2.2, label="added by λ")
    legend(ax, loc="upper left", handletextpad=0.2, borderaxespad=0.1, labelspacing=0.25)


def powers(ax: Axes) -> None:
    ax.xaxis.set_major_locator(LogLocator(10, numticks=6))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(POWER)


def taken_over(measured: Mapping[str, np.ndarray], added: Mapping[str, np.ndarray], factor: str = "B") -> np.ndarray:
    """`[layers]`: for each layer whether λ adds more to the factor than was measured, at most clients."""
    return (np.asarray(added[factor]) > np.asarray(measured[factor])).mean(0) > 0.5


def sentence(
    dampings: Sequence[float],
    accuracies: Mapping[str, Sequence[float]],
    chosen: int,
    measured: Mapping[str, np.ndarray],
    added: Mapping[str, np.ndarray],
    layers: Sequence[str],
) -> str:
    told = [f"{USES[name][0]} {percent(values[chosen])}" for name, values in accuracies.items()]
    text = f"At λ = {power(dampings[chosen])}: {', '.join(told)}. "
    over = taken_over(measured, added)
    if over.all():
        return text + "In every layer λ adds more to B than was measured: FedLPA is close to A alone."
    if not over.any():
        return text + "In no layer does λ add more to B than was measured."
    return text + f"λ adds more to B than was measured in {listed([layers[i] for i in np.flatnonzero(over)])}."


def alt_text(dampings: Sequence[float], accuracies: Mapping[str, Sequence[float]], setting: str, pi: str) -> str:
    told = "; ".join(
        f"{USES[name][0]} {percent(values[0])} at the left end, {percent(values[-1])} at the right"
        for name, values in accuracies.items()
    )
    return (
        f"Lines of test accuracy against the damping λ from {power(dampings[0])} to {power(dampings[-1])} with the "
        f"rule π = {pi} ({setting}): {told}. Beside them, for each layer, dots for the mean diagonals of the factors A "
        "and B of each client and bars for what λ adds to them."
    )


def table(dampings: Sequence[float], accuracies: Mapping[str, Sequence[float]]) -> list[dict]:
    return [
        {"λ": power(value), **{USES[name][0]: percent(values[i]) for name, values in accuracies.items()}}
        for i, value in enumerate(dampings)
    ]
