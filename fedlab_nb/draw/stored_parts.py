"""Artists of the stored results: bars at one setting, lines against α. Made once, moved by `update`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from .accuracy import PERCENT
from .series import Series
from .style import INK, QUIET, RULE, dress

MOST_LINES = 8  # more lines cannot be told apart; bars and table have every method


class Bars:
    """One bar a method with its band, a dot a seed and its number."""

    def __init__(self, ax: Axes, rows: Sequence[Series], chance: float | None) -> None:
        count = max(len(rows), 3)
        small = 10 if count <= 9 else 8.5 if count <= 14 else 7
        self.ax = dress(ax, title="Stored", grid="x")
        self.parts = []
        for i, s in enumerate(rows):
            bar = ax.barh(i, 0, height=0.62, color=s.hue, alpha=0.8)[0]
            band = ax.plot([], [], color=INK, lw=2, solid_capstyle="butt")[0]
            ends = ax.plot([], [], "|", color=INK, ms=9, mew=1.6)[0]
            dots = ax.plot([], [], "o", ms=4.6, mfc="white", mec=INK, mew=0.9, ls="", zorder=3)[0]
            text = ax.text(1.02, i, "88 ± 88", va="center", fontsize=small, color=INK, clip_on=False, gid="outside")
            self.parts.append((i, bar, band, ends, dots, text))
        if chance:
            ax.axvline(chance, color=QUIET, lw=1, ls=(0, (2, 2)))
        ax.set_yticks(range(len(rows)), [s.lines for s in rows], fontsize=small)
        ax.set_ylim(count - 0.5, -0.5)
        ax.set_xlim(0, 1)
        ax.set_xticks([0, 0.5, 1])
        ax.xaxis.set_major_formatter(PERCENT)
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        ax.set_xlabel("test accuracy, one dot a seed", fontsize=9.5, color=QUIET)

    def update(self, rows: Sequence[Series], title: str) -> None:
        self.ax.set_title(title, loc="left", fontsize=11, fontweight="bold", color=INK, pad=7)
        for s, (i, bar, band, ends, dots, text) in zip(rows, self.parts, strict=True):
            there = bool(s.accuracies)
            mean, wide = (s.mean, s.half_width) if there else (0.0, math.nan)
            ends_at = [] if math.isnan(wide) else [max(0, mean - wide), min(1, mean + wide)]
            bar.set_width(mean)
            band.set_data(ends_at, [i] * len(ends_at))
            ends.set_data(ends_at, [i] * len(ends_at))
            dots.set_data(list(s.accuracies.values()), [i] * len(s.accuracies))
            number = f"{100 * mean:.0f}" + ("" if math.isnan(wide) else f" ± {100 * wide:.0f}")
            text.set_text(number if there else "…")


class Lines:
    """Accuracy against α: a line and a band a method, the present α as an upright.

    named: each line has its name at its right end (where bars beside it do not name it), and every α its tick label.
    """

    def __init__(
        self, ax: Axes, rows: Sequence[Series], alphas: Sequence[float], chance: float | None, named: bool
    ) -> None:
        title = "Accuracy against α" + (f" (first {MOST_LINES})" if len(rows) > MOST_LINES else "")
        self.ax, self.alphas = dress(ax, title=title, x="α (smaller: more skewed)", grid="y"), alphas
        flank = {"transform": ax.get_yaxis_transform(), "clip_on": False}
        self.mark = ax.axvline(alphas[0], color=INK, lw=1.3, zorder=1)
        self.words = ax.text(alphas[0], 0.035, "", fontsize=9, color=INK, va="center")
        self.parts = []
        for s in rows[:MOST_LINES]:
            band = ax.fill_between(alphas, 0, 0, color=s.hue, alpha=0.16, lw=0)
            line = ax.plot([], [], color=s.hue, marker=s.marker, lw=1.9, ms=5.5)[0]
            here = ax.plot([], [], s.marker, color=s.hue, ms=9, mec=INK, mew=1.1, zorder=3)[0]
            name = ax.text(1.06, 0, s.label, va="center", fontsize=10, color=INK, gid="outside", **flank)
            lead = ax.plot([], [], color=RULE, lw=1, zorder=0.5, **flank)[0]
            if not named:
                name.remove()
                lead.remove()
            self.parts.append((band, line, here, name, lead))
        if chance:
            ax.axhline(chance, color=QUIET, lw=1, ls=(0, (2, 2)))
            guess = {"ha": "right", "fontsize": 9, "color": QUIET, "transform": ax.get_yaxis_transform()}
            ax.text(0.99, chance + 0.012, "guessing", **guess)
        ax.set_xscale("log")
        ax.set_xlim(alphas[0] / 1.35, alphas[-1] * 1.35)
        ax.set_xticks(alphas, labels(alphas, named))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_ylim(0, 1.02)
        ax.set_yticks([0, 0.5, 1] if not named else [0, 0.2, 0.4, 0.6, 0.8, 1])
        ax.yaxis.set_major_formatter(PERCENT)

    def update(self, means: np.ndarray, bands: np.ndarray, alpha: float, at: int) -> None:
        """means, bands `[methods, alphas]`, 0–1, nan where nothing is stored; `at`: index of the nearest stored α."""
        low, high = self.ax.get_xlim()
        x = min(max(alpha, low), high)
        right = math.log(x / low) < 0.5 * math.log(high / low)
        self.mark.set_xdata([x, x])
        self.words.set(x=x, text=f" your α = {alpha:.2g}" if right else f"your α = {alpha:.2g} ",
                       ha="left" if right else "right")  # fmt: skip
        last = []
        for y, wide, (band, line, here, _, _) in zip(means, bands, self.parts, strict=False):
            known = np.flatnonzero(~np.isnan(y))
            stored = np.asarray(self.alphas)[known]
            wide = np.nan_to_num(wide[known])
            band.set_data(stored, np.clip(y[known] - wide, 0, 1), np.clip(y[known] + wide, 0, 1))
            line.set_data(stored, y[known])
            here.set_data([self.alphas[at]], [y[at]])
            last.append(float(y[known[-1]]) if len(known) else 0.0)
        end = math.log(self.alphas[-1] / low) / math.log(high / low)
        for y, place, (_, _, _, name, lead) in zip(last, spread(last, 0.066), self.parts, strict=True):
            name.set_y(place)
            lead.set_data([end, 1.0, 1.05], [y, y, place])


def labels(alphas: Sequence[float], all_of_them: bool) -> list[str]:
    """Tick labels: every α, or where there is no room the powers of ten alone."""
    tens = [abs(math.log10(a) - round(math.log10(a))) < 1e-9 for a in alphas]
    return [f"{a:g}" if all_of_them or ten or not any(tens) else "" for a, ten in zip(alphas, tens, strict=True)]


def spread(values: Sequence[float], gap: float, top: float = 1.0) -> list[float]:
    """`values` lowered as little as needed for neighbours to be `gap` apart, in their order, none above `top`."""
    places, before = [0.0] * len(values), top + gap
    for i in sorted(range(len(values)), key=lambda i: -values[i]):
        before = places[i] = min(values[i], before - gap)
    return places
