"""Temperature of Fed-ET's weights: how right the consensus is, and how many clients count, against τ."""

from collections.abc import Mapping, Sequence

import numpy as np

from ....plots.axes import DOTS, log_axis, percent_axis, seed_lines, two_axes
from ....plots.style import ACCENT, QUIET, SERIES, Picture, dress, legend
from ....plots.words import capital, percent, seeds_of, tabled
from ..numbers import HEATS

Curves = tuple[Sequence[float], Sequence[float], Mapping[str, float]]


def temperature(
    runs: Mapping[int, Curves], *, setting: str, clients: int, chosen: float, heats: Sequence[float] = HEATS
) -> Picture:
    """Two curves over the temperatures `heats`.

    runs {seed: (the consensus' accuracy 0–1, 1 / Σ ω², both one number a temperature; {rule without a temperature:
    accuracy})};   chosen: the τ that is marked
    """
    t = np.asarray(heats, dtype=float)
    right, count = (np.mean([run[i] for run in runs.values()], 0) for i in (0, 1))
    others = {name: float(np.mean([run[2][name] for run in runs.values()])) for name in next(iter(runs.values()))[2]}
    here, few = (float(np.interp(np.log(chosen), np.log(t), middle)) for middle in (right, count))
    with two_axes((1.35, 1), between=0.22) as (figure, left, ax):
        for i, (axes, value) in enumerate(((left, here), (ax, few))):
            curves = {seed: list(zip(t, run[i], strict=True)) for seed, run in runs.items()}
            seed_lines(axes, curves, ACCENT, label="variance of softmax(f_k/τ)")
            axes.plot([chosen], [value], "o", ms=8, color=ACCENT, mec="white")
            axes.axvline(chosen, color=QUIET, lw=1, ls=DOTS, zorder=0)
            log_axis(axes)
        for i, (name, value) in enumerate(others.items()):
            left.axhline(value, color=SERIES[1 + i % 6], lw=1.5, ls=("--", "-.", ":")[i % 3], label=name)
        dress(left, title="Consensus right", x="temperature τ of the weights (log)", grid="y")
        dress(ax, title="Clients that count", x="temperature τ (log)", y="effective clients, 1 / Σω²", grid="y")
        low, high = min(right.min(), *others.values()), max(right.max(), *others.values())
        percent_axis(left, top=min(1.03, high + 0.08), low=max(0.0, low - 0.28))
        ax.set_ylim(0, clients * 1.06)
        ax.axhline(clients, color=QUIET, lw=1)
        ax.text(t[-1], 0.98 * clients, f"all {clients} ", ha="right", va="top", fontsize=9, color=QUIET)
        legend(left, loc="best")
    best = int(right.argmax())
    words = ", ".join(f"{name} {percent(value)}" for name, value in others.items())
    sentence = (
        f"At τ = {chosen:.2g} the consensus is right for {percent(here)} of the test samples, and in "
        f"effect {few:.1f} of {clients} clients count. Best is τ = {t[best]:.2g} with {percent(right[best])} "
        f"({seeds_of(runs)}). {capital(words)}."
    )
    rows = list(zip(t, map(percent, right), count, strict=True))
    each = "; ".join(f"τ = {a:.2g} {b}, {c:.1f} clients" for a, b, c in rows)
    alt = "Accuracy of the consensus and effective number of clients against the temperature of the weights "
    alt += f"({setting}): {each}. Without a temperature: {words}."
    table = tabled("τ | consensus right | effective clients", ((f"{a:.3g}", b, f"{c:.1f}") for a, b, c in rows))
    return Picture(figure, alt, sentence, table + [{"τ": n, "consensus right": percent(v)} for n, v in others.items()])
