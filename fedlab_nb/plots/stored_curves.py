"""The picture of stored results: accuracy against α, and bars at the stored α nearest to the chosen
one.

`StoredPlot` redraws in place, so that it can follow a slider. Nothing is interpolated: every number
is a stored one, and the text says to which setting it belongs.
"""

import math
from collections.abc import Collection, Mapping, Sequence

from matplotlib.axes import Axes

from ..studies.statistics import Band, compute_band
from ..value_types import Accuracy0To1
from .accuracy import describe_best_method
from .identity import shorten_method_title
from .kit import AccuracyBars, describe_picture, draw_lines_with_bands_and_make_labels
from .marks import attach_hover_text
from .series import MethodResults, select_results_with_accuracies
from .style import (
    HALVES,
    INK,
    LOCK,
    Picture,
    draw_end_labels,
    draw_level_line,
    dress,
    get_method_look,
    make_figure,
    set_log_axis,
    set_percent_axis,
)
from .words import (
    TableRows,
    build_table,
    capitalize_first_letter,
    format_count_and_noun,
    format_percent_band,
)

MAX_LINES = 8  # more lines cannot be told apart; the bars and the table show every method
# {method's title: {stored α: {seed: accuracy 0–1}}}
AccuracyByTitleAlphaAndSeed = Mapping[str, Mapping[float, Mapping[int, float]]]


class StoredPlot:
    """Bars at one stored α beside lines of accuracy against α; a vertical line marks the chosen α."""

    _results: AccuracyByTitleAlphaAndSeed | None = None

    def show(
        self,
        results: AccuracyByTitleAlphaAndSeed,
        *,
        chosen_alpha: float,
        stored_client_count: int,
        source_text: str,
        wanted_client_count: int | None = None,
        reference_titles: Collection[str] = (),
        chance_accuracy: Accuracy0To1 | None = None,
        appended_sentence: str = "",
        dataset: str = "digits",
    ) -> Picture:
        """Draw the results for the chosen α, and return the picture.

        results: accuracies of a federation of `stored_client_count` clients
        chosen_alpha: the chosen α, which need not be a stored one
        source_text: where the numbers come from, such as "stored results of 2025-01-31"
        wanted_client_count: number of clients that the user has chosen
        reference_titles: titles of methods that are references, not competitors
        chance_accuracy: accuracy of guessing, 0–1
        appended_sentence: a sentence to append
        dataset: name of the data set

        The axes are built once for each `results` object. If only α has changed, a call just moves
        marks.
        """
        if results is not self._results:
            self._build_axes(results, chance_accuracy)
            self._results = results
        stored_alpha = self.alphas[find_index_of_nearest_alpha(self.alphas, chosen_alpha)]
        stored_setting = (
            f"α = {stored_alpha:g}, {format_count_and_noun(stored_client_count, 'client')}"
        )
        setting = f"{dataset}, {stored_setting}"
        rows = []
        for title, by_alpha in results.items():
            accuracies = by_alpha.get(stored_alpha, {})
            is_bound = title in reference_titles
            rows.append(
                MethodResults(title, setting=setting, accuracies=accuracies, bound=is_bound)
            )
        with LOCK:
            self._bars.update(rows, f"Stored: {stored_setting}")
            visible_alpha = min(max(chosen_alpha, self.alphas[0]), self.alphas[-1])
            self._alpha_line.set_xdata([visible_alpha, visible_alpha])
            self._place_rings(stored_alpha)
        remark = describe_distance_to_stored_setting_or_empty(
            chosen_alpha, stored_alpha, stored_client_count, wanted_client_count
        )
        results_text = describe_best_method(select_results_with_accuracies(rows))
        text = f"Stored results at {stored_setting}{remark}: {results_text} {appended_sentence}".strip()
        title = "Bars of test accuracy, and lines of it against α"
        detail = f"{capitalize_first_letter(source_text)}."
        return describe_picture(self.figure, title, setting, text, self._table, detail=detail)

    def _place_rings(self, stored_alpha: float) -> None:
        """Move each method's ring to the point of its line at `stored_alpha`, a stored α."""
        for title, ring in self._rings.items():
            bands = self._bands[title]
            accuracy = bands[stored_alpha].mean if stored_alpha in bands else math.nan
            ring.set_data([stored_alpha], [accuracy])
            attach_hover_text(
                ring, f"{title}, α = {stored_alpha:g}\n{100 * accuracy:.1f} %", method=title
            )

    def _build_axes(
        self, results: AccuracyByTitleAlphaAndSeed, chance_accuracy: Accuracy0To1 | None
    ) -> None:
        """Build the axes: bars on the left; on the right one line with its band per method."""
        bands: dict[str, dict[float, Band]] = {}
        for title, by_alpha in results.items():
            bands[title] = {
                a: compute_band(seeds) for a, seeds in sorted(by_alpha.items()) if seeds
            }
        alphas = set()
        for by_alpha in bands.values():
            alphas.update(by_alpha)
        self.alphas = tuple(sorted(alphas))
        if not self.alphas:
            raise ValueError("there are no stored results to draw")
        self._table = make_stored_accuracy_table(bands, self.alphas)
        titles_with_results = [title for title, by_alpha in bands.items() if by_alpha]
        self._bands = {title: bands[title] for title in titles_with_results[:MAX_LINES]}
        with LOCK:
            self.figure = make_figure()
            left, right = self.figure.subplots(1, 2, width_ratios=[1.1, 1])
            self._bars = AccuracyBars(
                left, [MethodResults(title) for title in results], chance_accuracy
            )
            self._draw_lines(right, len(bands), chance_accuracy)

    def _draw_lines(
        self, ax: Axes, method_count: int, chance_accuracy: Accuracy0To1 | None
    ) -> None:
        """Draw accuracy against α. method_count: number of all methods, with or without a line"""
        title = "Accuracy against α"
        if method_count > MAX_LINES:
            title += f" (first {MAX_LINES})"
        dress(ax, title=title, x="α; the upright is yours", grid="y")
        self._alpha_line = ax.axvline(self.alphas[0], color=INK, lw=1.3, zorder=1)
        self._rings = {}
        end_labels = []
        for title, by_alpha in self._bands.items():
            method_look = get_method_look(title)
            for y, _, colour in draw_lines_with_bands_and_make_labels(
                ax, {title: by_alpha}, {title: method_look}
            ):
                end_labels.append((y, shorten_method_title(title), colour))
            text = title
            for a, share in by_alpha.items():
                text += f"\nα = {a:g}: {format_percent_band(share, 1)} %"
            attach_hover_text(ax.lines[-1], text, method=title)
            style = {"color": method_look.colour, "ms": 9, "mec": INK, "mew": 1.1, "zorder": 3}
            self._rings[title] = ax.plot([], [], method_look.marker, **style)[0]
        if chance_accuracy:
            draw_level_line(ax, chance_accuracy, "guessing", is_text_below=True)
        ax.set_xlim(self.alphas[0] / 1.35, self.alphas[-1] * 1.35)
        set_log_axis(ax)
        set_percent_axis(ax, "y", 1.02, ticks=HALVES)
        draw_end_labels(ax, end_labels, font_size=8)


def make_stored_accuracy_table(
    bands_by_method: Mapping[str, Mapping[float, Band]], alphas: Sequence[float]
) -> TableRows:
    """Make a table of accuracies with one row per method and one column per stored α."""
    columns = ["method", *(f"α = {a:g}" for a in alphas)]
    rows = []
    for title, by_alpha in bands_by_method.items():
        cells = [
            f"{format_percent_band(by_alpha[a])} %" if a in by_alpha else "– %" for a in alphas
        ]
        rows.append((title, *cells))
    return build_table(columns, rows)


def find_index_of_nearest_alpha(stored_alphas: Sequence[float], chosen_alpha: float) -> int:
    """Find the index of the stored α nearest to `chosen_alpha` on a logarithmic scale."""
    return min(
        range(len(stored_alphas)), key=lambda i: abs(math.log(stored_alphas[i] / chosen_alpha))
    )


def describe_distance_to_stored_setting_or_empty(
    chosen_alpha: float,
    stored_alpha: float,
    stored_client_count: int,
    wanted_client_count: int | None,
) -> str:
    """Say which chosen values the stored setting stands for: ' (the nearest to your α = 0.13 and 12
    clients)'.

    Empty if the stored setting is the chosen one.
    """
    choices = []
    if abs(math.log(chosen_alpha / stored_alpha)) > 0.005:
        choices.append(f"α = {chosen_alpha:.2g}")
    if wanted_client_count is not None and wanted_client_count != stored_client_count:
        choices.append(format_count_and_noun(wanted_client_count, "client"))
    if not choices:
        return ""
    return f" (the nearest to your {' and '.join(choices)})"
