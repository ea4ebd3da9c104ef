"""Temperature of Fed-ET's weights: how right the consensus is, and how many clients count, against T."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.ticker import FuncFormatter, NullLocator

from .accuracy import PERCENT
from .fedet_axes import two_axes
from .style import ACCENT, INK, LOCK, QUIET, SERIES, Picture, dress, legend
from .words import percent, seeds_of


def temperature(
    values: Sequence[float],
    accuracy: Mapping[int, Sequence[float]],
    effective: Mapping[int, Sequence[float]],
    others: Mapping[str, Mapping[int, float]],
    *,
    setting: str,
    clients: int,
    chosen: float,
) -> Picture:
    """Two curves over the temperatures `values`.

    accuracy, effective: {seed: one number a temperature}, the consensus' accuracy 0–1 and 1 / Σ α²;
    others: {rule: {seed: accuracy}}, rules without a temperature;   chosen: the T that is marked
    """
    t = np.asarray(values, dtype=float)
    mean = np.mean(list(accuracy.values()), 0)
    count = np.mean(list(effective.values()), 0)
    rest = {name: float(np.mean(list(of.values()))) for name, of in others.items()}
    with LOCK:
        figure, left, right = two_axes((1.35, 1), between=0.22)
        for ax, curves, middle in ((left, accuracy, mean), (right, effective, count)):
            if len(curves) > 1:
                for curve in curves.values():
                    ax.plot(t, curve, color=ACCENT, lw=0.9, alpha=0.35)
            ax.plot(t, middle, color=ACCENT, lw=2.2, label="variance of softmax(z/T)")
            ax.plot([chosen], [np.interp(np.log(chosen), np.log(t), middle)], "o", ms=8, color=ACCENT, mec="white")
            ax.axvline(chosen, color=QUIET, lw=1, ls=(0, (2, 2)), zorder=0)
            ax.set_xscale("log")
            ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
            ax.xaxis.set_minor_locator(NullLocator())
        for i, (name, value) in enumerate(rest.items()):
            left.axhline(value, color=SERIES[1 + i % 6], lw=1.5, ls=("--", "-.", ":")[i % 3], label=name)
        dress(left, title="Consensus right", x="temperature T of the weights (log)", grid="y")
        dress(right, title="Clients that count", x="temperature T (log)", grid="y")
        left.yaxis.set_major_formatter(PERCENT)
        low = min([float(mean.min()), *rest.values()])
        left.set_ylim(max(0.0, low - 0.28), min(1.03, max([float(mean.max()), *rest.values()]) + 0.08))
        right.set_ylim(0, clients * 1.06)
        right.axhline(clients, color=QUIET, lw=1)
        right.text(t[-1], clients, f"all {clients} ", ha="right", va="top", fontsize=9, color=QUIET)
        right.set_ylabel("effective clients, 1 / Σα²", fontsize=10, color=QUIET)
        legend(left, loc="lower left")
        left.title.set_color(INK)
    here = float(np.interp(np.log(chosen), np.log(t), mean))
    few = float(np.interp(np.log(chosen), np.log(t), count))
    best = int(mean.argmax())
    told = ", ".join(f"{name} {percent(value)}" for name, value in rest.items())
    sentence = (
        f"At T = {chosen:.2g} the consensus is right for {percent(here)} of the test samples and as if "
        f"{few:.1f} of {clients} clients counted; best at T = {t[best]:.2g} with {percent(mean[best])} "
        f"({seeds_of(accuracy)}). {told[:1].upper()}{told[1:]}."
    )
    alt = (
        f"Accuracy of the consensus and effective number of clients against the temperature of the weights "
        f"({setting}): "
        + "; ".join(f"T = {a:.2g} {percent(b)}, {c:.1f} clients" for a, b, c in zip(t, mean, count, strict=True))
        + f". Without a temperature: {told}."
    )
    table = [
        {"T": f"{a:.3g}", "consensus right": percent(b), "effective clients": f"{c:.1f}"}
        for a, b, c in zip(t, mean, count, strict=True)
    ]
    return Picture(figure, alt, sentence, table + [{"T": n, "consensus right": percent(v)} for n, v in rest.items()])
