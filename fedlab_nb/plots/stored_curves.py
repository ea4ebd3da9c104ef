"""Stored results: accuracy against α with the present α marked, and bars at the nearest stored setting.

`StoredPlot` redraws in place, so that it can follow a slider. Nothing is interpolated: every number is a stored one,
and the words say which setting it belongs to.
"""

import math
from collections.abc import Collection, Mapping, Sequence

from ..studies.statistics import band
from .accuracy import verdict
from .identity import shorten_title
from .kit import Bars, lines, told
from .series import Series, finished
from .style import (
    HALVES,
    INK,
    LOCK,
    Picture,
    dress,
    end_labels,
    level_line,
    log_axis,
    look,
    new_figure,
    percent_axis,
)
from .vector import mark
from .words import capital, number, plural, tabled

MOST_LINES = 8  # more lines cannot be told apart; bars and table have every method
Results = Mapping[str, Mapping[float, Mapping[int, float]]]


class StoredPlot:
    """A picture of stored results: bars at one α, and lines against α, with the present α as an upright."""

    _results: Results | None = None

    def show(
        self, results: Results, *, alpha: float, clients: int, source: str, wanted: int | None = None,
        bounds: Collection[str] = (), chance: float | None = None, note: str = "", dataset: str = "digits",
    ) -> Picture:  # fmt: skip
        """`results`: {method's title: {stored α: {seed: accuracy 0–1}}}, at `clients` clients.

        alpha:   the present α, which need not be stored;   wanted: the present number of clients
        source:  where the numbers come from, such as "stored results of 2025-01-31, version 0.1.0"
        bounds:  titles that are references, not competitors;   chance: accuracy of guessing
        note:    a sentence to be added;   dataset: the data set's name

        The same object `results` is read and laid out once: while only α changes, a redraw costs little more than the
        drawing.
        """
        if results is not self._results:
            self._build(results, chance)
            self._results = results
        at = self.alphas[nearest(self.alphas, alpha)]
        here = f"α = {at:g}, {plural(clients, 'client')}"
        where = f"{dataset}, {here}"
        found = {title: points.get(at, {}) for title, points in results.items()}
        rows = [
            Series(title, setting=where, accuracies=of, bound=title in bounds)
            for title, of in found.items()
        ]
        with LOCK:
            self._bars.update(rows, f"Stored: {here}")
            self._now.set_xdata([min(max(alpha, self.alphas[0]), self.alphas[-1])] * 2)
            for title, ring in self._rings.items():
                y = self._bands[title][at].mean if at in self._bands[title] else math.nan
                ring.set_data([at], [y])
                mark(ring, f"{title}, α = {at:g}\n{100 * y:.1f} %", method=title)
        near = nearness(alpha, at, clients, wanted)
        sentence = f"{capital(source)}, at {here}{near}: {verdict(finished(rows))} {note}".strip()
        return told(
            self.figure,
            "Bars of test accuracy, and lines of it against α",
            where,
            sentence,
            self._table,
        )

    def _build(self, results: Results, chance: float | None) -> None:
        """The axes: bars at the left; at the right a line and a band a method, which the bars name."""
        bands = {
            title: {a: band(v) for a, v in sorted(of.items()) if v} for title, of in results.items()
        }
        self.alphas = tuple(sorted({a for of in bands.values() for a in of}))
        if not self.alphas:
            raise ValueError("there are no stored results to draw")
        cells = (
            (title, *(f"{number(of[a])} %" if a in of else "– %" for a in self.alphas))
            for title, of in bands.items()
        )
        self._table = tabled(["method", *(f"α = {a:g}" for a in self.alphas)], cells)
        self._bands = dict([(title, of) for title, of in bands.items() if of][:MOST_LINES])
        with LOCK:
            self.figure = new_figure()
            left, ax = self.figure.subplots(1, 2, width_ratios=[1.1, 1])
            self._bars = Bars(left, [Series(title) for title in results], chance)
            few = f" (first {MOST_LINES})" if len(bands) > MOST_LINES else ""
            dress(ax, title=f"Accuracy against α{few}", x="α; the upright is yours", grid="y")
            self._now = ax.axvline(self.alphas[0], color=INK, lw=1.3, zorder=1)
            self._rings, ends = {}, []
            for title, of in self._bands.items():
                own = look(title)
                ends += [
                    (y, shorten_title(title), colour)
                    for y, _, colour in lines(ax, {title: of}, {title: own})
                ]
                each = [f"α = {a:g}: {number(b, 1)} %" for a, b in of.items()]
                mark(ax.lines[-1], "\n".join([title, *each]), method=title)
                style = {"color": own.colour, "ms": 9, "mec": INK, "mew": 1.1, "zorder": 3}
                self._rings[title] = ax.plot([], [], own.marker, **style)[0]
            if chance:
                level_line(ax, chance, "guessing", under=True)
            ax.set_xlim(self.alphas[0] / 1.35, self.alphas[-1] * 1.35)
            log_axis(ax)
            percent_axis(ax, "y", 1.02, ticks=HALVES)
            end_labels(ax, ends, size=8)


def nearest(alphas: Sequence[float], alpha: float) -> int:
    """Index of the stored α that is nearest on a logarithmic scale."""
    return min(range(len(alphas)), key=lambda i: abs(math.log(alphas[i] / alpha)))


def nearness(alpha: float, at: float, clients: int, wanted: int | None) -> str:
    """' (the nearest to your α = 0.13 and 12 clients)', or nothing where the stored setting is the present one."""
    words = [f"α = {alpha:.2g}"] if abs(math.log(alpha / at)) > 0.005 else []
    words += [plural(wanted, "client")] if wanted is not None and wanted != clients else []
    return f" (the nearest to your {' and '.join(words)})" if words else ""
