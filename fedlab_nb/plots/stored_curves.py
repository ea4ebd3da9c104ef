"""Stored results: accuracy against α with the present α marked, and bars at the nearest stored setting.

`StoredPlot` redraws in place, so that it can follow a slider. Nothing is interpolated: every number is a stored one,
and the words say which setting it belongs to.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes

from ..studies.statistics import Band, band
from .accuracy import describe_best_method
from .identity import shorten_title
from .kit import Bars, describe_picture, draw_lines
from .series import Series, select_finished
from .style import (
    HALVES,
    INK,
    LOCK,
    Picture,
    draw_end_labels,
    draw_level_line,
    dress,
    look,
    new_figure,
    set_log_axis,
    set_percent_axis,
)
from .vector import mark
from .words import build_table, capitalize, format_share, plural

MOST_LINES = 8  # more lines cannot be told apart; bars and table have every method
AccuraciesByAlpha = Mapping[str, Mapping[float, Mapping[int, float]]]


class StoredPlot:
    """A picture of stored results: bars at one α, and lines against α, with the present α as an upright."""

    _results: AccuraciesByAlpha | None = None

    def show(
        self,
        results: AccuraciesByAlpha,
        *,
        alpha: float,
        clients: int,
        source: str,
        wanted_clients: int | None = None,
        bounds: Collection[str] = (),
        chance: float | None = None,
        note: str = "",
        dataset: str = "digits",
    ) -> Picture:
        """`results`: {method's title: {stored α: {seed: accuracy 0–1}}}, at `clients` clients.

        alpha:   the present α, which need not be stored;   wanted_clients: the present number of clients
        source:  where the numbers come from, such as "stored results of 2025-01-31, version 0.1.0"
        bounds:  titles that are references, not competitors;   chance: accuracy of guessing
        note:    a sentence to be added;   dataset: the data set's name

        The same object `results` is read and laid out once: while only α changes, a redraw costs little more than the
        drawing.
        """
        if results is not self._results:
            self._build(results, chance)
            self._results = results
        stored_alpha = self.alphas[find_nearest_index(self.alphas, alpha)]
        place = f"α = {stored_alpha:g}, {plural(clients, 'client')}"
        setting = f"{dataset}, {place}"
        rows = []
        for title, by_alpha in results.items():
            accuracies = by_alpha.get(stored_alpha, {})
            bound = title in bounds
            rows.append(Series(title, setting=setting, accuracies=accuracies, bound=bound))
        with LOCK:
            self._bars.update(rows, f"Stored: {place}")
            within = min(max(alpha, self.alphas[0]), self.alphas[-1])
            self._now.set_xdata([within, within])
            self._place_rings(stored_alpha)
        remark = describe_distance(alpha, stored_alpha, clients, wanted_clients)
        results_text = describe_best_method(select_finished(rows))
        text = f"Stored results at {place}{remark}: {results_text} {note}".strip()
        title = "Bars of test accuracy, and lines of it against α"
        detail = f"{capitalize(source)}."
        return describe_picture(self.figure, title, setting, text, self._table, detail=detail)

    def _place_rings(self, alpha: float) -> None:
        """Put each method's ring on its line at a stored α."""
        for title, ring in self._rings.items():
            bands = self._bands[title]
            accuracy = bands[alpha].mean if alpha in bands else math.nan
            ring.set_data([alpha], [accuracy])
            mark(ring, f"{title}, α = {alpha:g}\n{100 * accuracy:.1f} %", method=title)

    def _build(self, results: AccuraciesByAlpha, chance: float | None) -> None:
        """The axes: bars at the left; at the right a line and a band a method, which the bars name."""
        bands: dict[str, dict[float, Band]] = {}
        for title, by_alpha in results.items():
            bands[title] = {a: band(seeds) for a, seeds in sorted(by_alpha.items()) if seeds}
        alphas = set()
        for by_alpha in bands.values():
            alphas.update(by_alpha)
        self.alphas = tuple(sorted(alphas))
        if not self.alphas:
            raise ValueError("there are no stored results to draw")
        self._table = make_table(bands, self.alphas)
        with_results = [title for title, by_alpha in bands.items() if by_alpha]
        self._bands = {title: bands[title] for title in with_results[:MOST_LINES]}
        with LOCK:
            self.figure = new_figure()
            left, right = self.figure.subplots(1, 2, width_ratios=[1.1, 1])
            self._bars = Bars(left, [Series(title) for title in results], chance)
            self._draw_lines(right, len(bands), chance)

    def _draw_lines(self, ax: Axes, methods: int, chance: float | None) -> None:
        """Accuracy against α. methods: how many there are, also without a line"""
        remark = f" (first {MOST_LINES})" if methods > MOST_LINES else ""
        x = "α; the upright is yours"
        dress(ax, title=f"Accuracy against α{remark}", x=x, grid="y")
        self._now = ax.axvline(self.alphas[0], color=INK, lw=1.3, zorder=1)
        self._rings = {}
        ends = []
        for title, by_alpha in self._bands.items():
            method_look = look(title)
            for y, _, colour in draw_lines(ax, {title: by_alpha}, {title: method_look}):
                ends.append((y, shorten_title(title), colour))
            text = title
            for a, share in by_alpha.items():
                text += f"\nα = {a:g}: {format_share(share, 1)} %"
            mark(ax.lines[-1], text, method=title)
            style = {"color": method_look.colour, "ms": 9, "mec": INK, "mew": 1.1, "zorder": 3}
            self._rings[title] = ax.plot([], [], method_look.marker, **style)[0]
        if chance:
            draw_level_line(ax, chance, "guessing", under=True)
        ax.set_xlim(self.alphas[0] / 1.35, self.alphas[-1] * 1.35)
        set_log_axis(ax)
        set_percent_axis(ax, "y", 1.02, ticks=HALVES)
        draw_end_labels(ax, ends, size=8)


def make_table(
    bands: Mapping[str, Mapping[float, Band]], alphas: Sequence[float]
) -> list[dict[str, Any]]:
    """A row a method, a column a stored α."""
    columns = ["method", *(f"α = {a:g}" for a in alphas)]
    rows = []
    for title, by_alpha in bands.items():
        cells = [f"{format_share(by_alpha[a])} %" if a in by_alpha else "– %" for a in alphas]
        rows.append((title, *cells))
    return build_table(columns, rows)


def find_nearest_index(alphas: Sequence[float], alpha: float) -> int:
    """Index of the stored α that is nearest on a logarithmic scale."""
    return min(range(len(alphas)), key=lambda i: abs(math.log(alphas[i] / alpha)))


def describe_distance(
    alpha: float, stored_alpha: float, clients: int, wanted_clients: int | None
) -> str:
    """' (the nearest to your α = 0.13 and 12 clients)', or nothing where the stored setting is the present one."""
    words = []
    if abs(math.log(alpha / stored_alpha)) > 0.005:
        words.append(f"α = {alpha:.2g}")
    if wanted_clients is not None and wanted_clients != clients:
        words.append(plural(wanted_clients, "client"))
    if not words:
        return ""
    return f" (the nearest to your {' and '.join(words)})"
