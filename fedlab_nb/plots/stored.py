"""Stored results: accuracy against α with the present α marked, and bars at the nearest stored setting.

`Stored` redraws in place, so that it can follow a slider. Nothing is interpolated: every number is a stored one, and
the words say which setting it belongs to.
"""

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from ..study.statistics import Band, band
from .accuracy import verdict
from .axes import HALVES, level_line, log_axis, percent_axis
from .kit import Bars, lines, told
from .series import Series, finished
from .style import INK, LOCK, QUIET, Picture, dress, look, new_figure
from .vector import mark
from .words import capital, number, plural, tabled

MOST_LINES = 8  # more lines cannot be told apart; bars and table have every method
Results = Mapping[str, Mapping[float, Mapping[int, float]]]


class Stored:
    """A picture of stored results: bars at one α, and lines against α."""

    _results: Results | None = None
    _drawn: Results | None = None

    def show(
        self, results: Results, *, alpha: float, clients: int, source: str, wanted: int | None = None,
        bounds: Collection[str] = (), chance: float | None = None, note: str = "", dataset: str = "digits",
    ) -> Picture:  # fmt: skip
        """`results`: {method's title: {stored α: {seed: accuracy 0–1}}}, at `clients` clients.

        alpha:   the present α, which need not be stored;   wanted: the present number of clients
        source:  where the numbers come from, such as "stored results of 2025-01-31, version 0.1.0"
        bounds:  titles that are references, not competitors;   chance: accuracy of guessing
        note:    a sentence to be added;   dataset: the data set's name

        The same object `results` is read once: while only α changes, a redraw costs little more than the drawing.
        """
        if results is not self._results:
            self._read(results)
        i = nearest(self.alphas, alpha)
        at = self.alphas[i]
        here = f"α = {at:g}, {plural(clients, 'client')}"
        where = f"{dataset}, {here}"
        rows = [
            Series(title, setting=where, accuracies=points.get(at, {}), bound=title in bounds)
            for title, points in results.items()
        ]
        done = finished(rows)
        near = nearness(alpha, at, clients, wanted)
        with LOCK:
            if results is not self._drawn:
                self._build(results, rows, chance)
                self._drawn = results
            self._bars.update(rows, f"Stored: {here}")
            self._lines.update(self._means, alpha, i)
            self._foot.set_text(f"{source}; {dataset}, {plural(clients, 'client')}; 95 % bands of Student's t")
        sentence = f"{capital(source)}, at {here}{near}: {verdict(done)} {note}".strip()
        return told(self.figure, "Bars of test accuracy, and lines of it against α", where, sentence, self._table)

    def _read(self, results: Results) -> None:
        alphas = tuple(sorted({a for points in results.values() for a, seeds in points.items() if seeds}))
        if not alphas:
            raise ValueError("there are no stored results to draw")
        cells = [[list(points.get(a, {}).values()) for a in alphas] for points in results.values()]
        self.alphas = alphas
        self._means = np.array([[np.mean(c) if c else np.nan for c in row] for row in cells])
        self._wide = np.array([[band(c).half_width if c else np.nan for c in row] for row in cells])
        self._table = wide_table(tuple(results), alphas, self._means, self._wide)
        self._results = results

    def _build(self, results: Results, rows: Sequence[Series], chance: float | None) -> None:
        self.figure = new_figure()
        left, right = self.figure.subplots(1, 2, width_ratios=[1.1, 1])
        self._bars = Bars(left, rows, chance, x="test accuracy, one dot per seed", ticks=HALVES)
        self._lines = Lines(right, results, self.alphas, chance)
        self._foot = self.figure.supxlabel("stored", x=0.99, ha="right", fontsize=9, color=QUIET)


class Lines:
    """Accuracy against α: a line and a band a method, which the bars beside it name; the present α as an upright."""

    def __init__(self, ax: Axes, results: Results, alphas: Sequence[float], chance: float | None) -> None:
        shown = {title: {a: v for a, v in of.items() if v} for title, of in list(results.items())[:MOST_LINES]}
        title = "Accuracy against α" + (f" (first {MOST_LINES})" if len(results) > MOST_LINES else "")
        self.ax, self.alphas = dress(ax, title=title, x="α (smaller: more skewed)", grid="y"), alphas
        self.mark = ax.axvline(alphas[0], color=INK, lw=1.3, zorder=1)
        self.words = ax.text(alphas[0], 0.035, "", fontsize=9, color=INK, va="center")
        self.here = {}
        for title, of in shown.items():
            hue, marker, _ = own = look(title)
            if of:
                lines(ax, {title: of}, {title: own})
                bands = {a: band(v) for a, v in sorted(of.items())}
                each = [f"α = {a:g}: {number(b, 1)} %" for a, b in bands.items()]
                mark(ax.lines[-1], "\n".join([title, *each]), method=title)
            self.here[title] = ax.plot([], [], marker, color=hue, ms=9, mec=INK, mew=1.1, zorder=3)[0]
        if chance:
            level_line(ax, chance, "guessing", lift=0.012, size=9)
        ax.set_xlim(alphas[0] / 1.35, alphas[-1] * 1.35)
        log_axis(ax, ticks=alphas)
        ax.set_xticks(alphas, labels(alphas))
        percent_axis(ax, "y", 1.02, ticks=HALVES)

    def update(self, means: np.ndarray, alpha: float, at: int) -> None:
        """means `[methods, alphas]`, 0–1, nan where nothing is stored; `at`: index of the nearest stored α."""
        low, high = self.ax.get_xlim()
        x = min(max(alpha, low), high)
        right = math.log(x / low) < 0.5 * math.log(high / low)
        self.mark.set_xdata([x, x])
        words = f" your α = {alpha:.2g} "
        self.words.set(x=x, text=words.rstrip() if right else words.lstrip(), ha="left" if right else "right")
        for (title, here), y in zip(self.here.items(), means[:, at], strict=False):
            here.set_data([self.alphas[at]], [y])
            mark(here, f"{title}, α = {self.alphas[at]:g}\n{100 * y:.1f} %", method=title)


def nearest(alphas: Sequence[float], alpha: float) -> int:
    """Index of the stored α that is nearest on a logarithmic scale."""
    return min(range(len(alphas)), key=lambda i: abs(math.log(alphas[i] / alpha)))


def nearness(alpha: float, at: float, clients: int, wanted: int | None) -> str:
    """' (the nearest to your α = 0.13 and 12 clients)', or nothing where the stored setting is the present one."""
    words = [f"α = {alpha:.2g}"] if abs(math.log(alpha / at)) > 0.005 else []
    words += [plural(wanted, "client")] if wanted is not None and wanted != clients else []
    return f" (the nearest to your {' and '.join(words)})" if words else ""


def wide_table(titles: Sequence[str], alphas: Sequence[float], means: np.ndarray, wide: np.ndarray) -> list[dict]:
    """One row a method, one column a stored α: 'mean ± 95 % band', in per cent."""

    def cell(mean: float, wide: float) -> str:
        return "– %" if np.isnan(mean) else f"{number(Band(mean, wide, 0))} %"

    rows = ((title, *map(cell, *of)) for title, *of in zip(titles, means, wide, strict=True))
    return tabled(["method", *(f"α = {a:g}" for a in alphas)], rows)


def labels(alphas: Sequence[float]) -> list[str]:
    """Tick labels: the powers of ten, or every α where there is none among them."""
    tens = [abs(math.log10(a) - round(math.log10(a))) < 1e-9 for a in alphas]
    return [f"{a:g}" if ten or not any(tens) else "" for a, ten in zip(alphas, tens, strict=True)]
