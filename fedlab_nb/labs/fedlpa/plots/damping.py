"""Accuracy against λ_damp for what a server may make of the uploads; beside it, what is measured and what is added.

The curves are on validation images, so that a λ_damp may be chosen; only the chosen one is tried on the test images.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from ....plots.axes import FIFTHS, log_axis, percent_axis, two_axes
from ....plots.style import ACCENT, FAINT, INK, SERIES, Picture, dress, legend, look
from ....plots.words import listed, percent, tabled
from ....study.validation import WORDS
from ..numbers import DampingSweep
from .factors import SUPERSCRIPT, power

# key -> words, colour, line, marker
USES = {
    "exact": ("exact (FedLPA)", look("fedlpa").colour, "-", "o"),
    "shortcut": ("shortcut EA", SERIES[1], "--", "s"),
    "inputs": ("A alone (RegMean)", look("regmean").colour, "-.", "^"),
    "diagonal": ("factor diagonals", SERIES[3], ":", "D"),
    "none": ("average", "#7F7F7F", (0, (1, 2)), ""),
}
POWER = FuncFormatter(lambda v, _: "10" + str(round(np.log10(v))).translate(SUPERSCRIPT) if v > 0 else "")


def damping(sweep: DampingSweep, rule: str, chosen: int, client: int | None = None) -> Picture:
    """Every use of the uploads under a `rule` for π; λ_damp number `chosen` and a `client` are marked."""
    dampings, accuracies, added = sweep.dampings, sweep.accuracies[rule], sweep.added(rule, chosen)
    best, tested = sweep.best(rule), sweep.tested.get(rule)
    with two_axes((1.4, 1), left=0.085, right=0.975, bottom=0.125, between=0.36) as (figure, left, right):
        curves(left, dampings, accuracies, chosen)
        if tested is not None:
            left.plot(dampings[best], tested, "o", ms=12, mfc="none", mec=INK, mew=1.6, zorder=6)
        sizes(right, sweep, added, client)
    here = ", ".join(f"{USES[name][0].split(' (')[0]} {percent(shares[chosen])}" for name, shares in accuracies.items())
    ends = [(USES[name][0], percent(shares[0]), percent(shares[-1])) for name, shares in accuracies.items()]
    ends = "; ".join(f"{words} {first} at the left end, {last} at the right" for words, first, last in ends)
    rows = zip(map(power, dampings), *(map(percent, shares) for shares in accuracies.values()), strict=True)
    return Picture(
        figure,
        alt=f"Lines of validation accuracy against λ_damp from {power(dampings[0])} to {power(dampings[-1])} with the "
        f"rule π = {1 if rule == 'one' else rule} ({sweep.setting}): {ends}. A ring: test accuracy with the best "
        "λ_damp. Beside them, for each layer, dots for the "
        "mean diagonals of the factors A and B of each client and bars for what λ_damp adds to them.",
        sentence=f"At λ_damp = {power(dampings[chosen])}, on validation images ({WORDS[sweep.judged_on]}): {here}. "
        f"{choice(dampings[best], accuracies['exact'][best], tested)} {taken_over(sweep, added)}",
        table=tabled(["λ_damp", *(USES[name][0] for name in accuracies)], rows),
    )


def choice(damping: float, share: float, tested: float | None) -> str:
    """Which λ_damp the validation images choose, and what it has on the test images."""
    tests = "" if tested is None else f"; on test images {percent(tested)}"
    return f"Best for FedLPA: {power(damping)} ({percent(share)}{tests})."


def curves(ax: Axes, dampings: Sequence[float], accuracies: Mapping[str, Sequence[float]], chosen: int) -> None:
    dress(ax, title="Validation accuracy (ring: test)", x="damping λ_damp", grid="y")
    for name, shares in accuracies.items():
        words, colour, line, marker = USES[name]
        main = name == "exact"
        style = {"ls": line, "marker": marker or None, "lw": 2.4 if main else 1.7, "zorder": 4 if main else 3}
        ax.plot(dampings, shares, color=colour, ms=4.5, label=words, **style)
        ax.plot(dampings[chosen], shares[chosen], marker or "_", color=colour, ms=9, mec=INK, mew=1, zorder=5)
    ax.axvline(dampings[chosen], color=ACCENT, lw=7, alpha=0.16, zorder=0)
    log_axis(ax, form=POWER)
    ax.set_xlim(min(dampings) / 1.8, max(dampings) * 1.8)
    percent_axis(ax, "y", 1.3, ticks=FIFTHS)  # room for the legend above the curves
    legend(ax, loc="upper center", ncols=2, columnspacing=1.2, handlelength=2.2, borderaxespad=0.1)


def sizes(ax: Axes, sweep: DampingSweep, added: Mapping[str, np.ndarray], client: int | None) -> None:
    """One row a factor: a dot a client for its mean diagonal, a bar a client for what λ_damp adds."""
    dress(ax, title="Measured and added", x="mean diagonal", grid="x")
    rows = [(factor, i) for factor in "AB" for i in range(len(sweep.layers))]
    few = len(rows) <= 14
    for y, (factor, i) in enumerate(rows):
        dots, bars = (np.maximum(of[factor][:, i], 1e-9) for of in (sweep.measured, added))
        ax.plot(bars, np.full(len(bars), y), "|", color=SERIES[1], ms=15 if few else 7, mew=2.2, zorder=3)
        small = 6 if few else 3.5
        ax.plot(dots, np.full(len(dots), y), "o", color=SERIES[0], ms=small, mec="white", mew=0.6, zorder=4)
        if client is not None and client < len(dots):
            ax.plot(dots[client], y, "o", color=ACCENT, ms=10, mec=INK, mew=1.4, zorder=5)
    ax.set_yticks(range(len(rows)), [f"{factor} of {sweep.layers[i]}" for factor, i in rows], fontsize=9 if few else 7)
    ax.set_ylim(len(rows) - 0.4, -1.55 if few else -2.5)
    ax.axhline(len(sweep.layers) - 0.5, color=FAINT, lw=1.2)
    log_axis(ax, form=POWER)
    ax.set_xlim(1e-7, 1e3)
    ax.plot([], [], "o", color=SERIES[0], ms=6, label="measured, a client")
    ax.plot([], [], "|", color=SERIES[1], ms=11, mew=2.2, label="added by λ_damp")
    legend(ax, loc="upper left", handletextpad=0.2, borderaxespad=0.1, labelspacing=0.25)


def taken_over(sweep: DampingSweep, added: Mapping[str, np.ndarray]) -> str:
    """In which layers λ_damp adds more to B than was measured, at most clients."""
    over = (added["B"] > sweep.measured["B"]).mean(0) > 0.5
    if over.all():
        return "In every layer λ_damp adds more to B than was measured: FedLPA is close to A alone."
    if not over.any():
        return "In no layer does λ_damp add more to B than was measured."
    return f"λ_damp adds more to B than was measured in {listed([sweep.layers[i] for i in np.flatnonzero(over)])}."
