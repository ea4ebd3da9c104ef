"""Stored results: accuracy against α with the present α marked, and bars at the nearest stored setting.

`Stored` redraws in place, so that it can follow a slider. Nothing is interpolated: every number is a stored one, and
the words say which setting it belongs to.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from .accuracy import table, verdict
from .series import Series
from .stored_parts import MOST_LINES, Bars, Lines
from .style import LOCK, QUIET, SIZE, Picture, new_figure
from .words import half_width, listed, percent, plural

KINDS = ("both", "lines", "bars")
Results = Mapping[str, Mapping[float, Mapping[int, float]]]


class Stored:
    """A picture of stored results. kind: "lines" (against α), "bars" (at one α), or "both" side by side."""

    def __init__(self, kind: str = "both", size: tuple[float, float] = SIZE) -> None:
        if kind not in KINDS:
            raise ValueError(f"kind is one of {', '.join(KINDS)}, not {kind!r}")
        self.kind, self.size = kind, size
        self._shape: tuple | None = None
        self._results: Results | None = None

    def show(
        self, results: Results, *, alpha: float, clients: int, source: str, dataset: str = "digits",
        wanted: int | None = None, bounds: Collection[str] = (), chance: float | None = None, note: str = "",
    ) -> Picture:  # fmt: skip
        """`results`: {method's title: {stored α: {seed: accuracy 0–1}}}, at `clients` clients.

        alpha:   the present α, which need not be stored;   wanted: the present number of clients
        source:  where the numbers come from, such as "stored results of 2025-01-31, version 0.1.0"
        bounds:  titles that are references, not competitors;   chance: accuracy of guessing
        note:    a sentence to be added

        The same object `results` is read once: while only α changes, a redraw costs little more than the drawing.
        """
        if results is not self._results:
            self._read(results, bounds)
        i = nearest(self.alphas, alpha)
        at = self.alphas[i]
        where = f"{dataset}, α = {at:g}, {plural(clients, 'client')}"
        rows = [
            Series(title, setting=where, accuracies=points.get(at, {}), colour=k, bound=title in bounds)
            for k, (title, points) in enumerate(results.items())
        ]
        done = [row for row in rows if row.accuracies]
        near = nearness(alpha, at, clients, wanted)
        with LOCK:
            shape = (tuple(results), self.alphas, chance)
            if shape != self._shape:
                self._build(rows, chance)
                self._shape = shape
            if self.kind != "lines":
                self._bars.update(rows, f"Stored: α = {at:g}, {plural(clients, 'client')}")
            if self.kind != "bars":
                self._lines.update(self._means, self._wide, alpha, i)
            self._foot.set_text(f"{source}; {dataset}, {plural(clients, 'client')}; bands: 2 standard errors")
        head = f"{source[:1].upper()}{source[1:]}, at α = {at:g}, {plural(clients, 'client')}{near}"
        told = verdict(done) if self.kind != "lines" else f"{values(done)}. {self._fall}".strip()
        return Picture(
            self.figure,
            alt=f"{WHAT[self.kind]}; {source} ({where}{near}, {done[0].seeds if done else 'no seed'}): "
            f"{values(done, len(done))}. {self._fall}".strip(),
            sentence=f"{head}: {told} {note}".strip(),
            table=table(done) if self.kind == "bars" else self._table,
        )

    def _read(self, results: Results, bounds: Collection[str]) -> None:
        alphas = tuple(sorted({a for points in results.values() for a, seeds in points.items() if seeds}))
        if not alphas:
            raise ValueError("there are no stored results to draw")
        cells = [[list(points.get(a, {}).values()) for a in alphas] for points in results.values()]
        self.alphas = alphas
        self._means = np.array([[np.mean(c) if c else np.nan for c in row] for row in cells])
        self._wide = np.array([[half_width(c) for c in row] for row in cells])
        self._table = wide_table(tuple(results), alphas, self._means, self._wide)
        competitors = [k for k, title in enumerate(results) if title not in bounds]
        self._fall = fall(tuple(results), alphas, self._means, competitors)
        self._results = results

    def _build(self, rows: Sequence[Series], chance: float | None) -> None:
        self.figure = new_figure(self.size)
        if self.kind == "both":
            left, right = self.figure.subplots(1, 2, width_ratios=[1.1, 1])
            self._bars, self._lines = Bars(left, rows, chance), Lines(right, rows, self.alphas, chance, named=False)
        elif self.kind == "bars":
            self._bars = Bars(self.figure.subplots(), rows, chance)
        else:
            self._lines = Lines(self.figure.subplots(), rows, self.alphas, chance, named=True)
        self._foot = self.figure.supxlabel("stored", x=0.99, ha="right", fontsize=9, color=QUIET)


WHAT = {
    "bars": "Bars of test accuracy",
    "lines": "Lines of test accuracy against α",
    "both": "Bars of test accuracy, and lines of it against α",
}


def nearest(alphas: Sequence[float], alpha: float) -> int:
    """Index of the stored α that is nearest on a logarithmic scale."""
    return min(range(len(alphas)), key=lambda i: abs(math.log(alphas[i] / alpha)))


def nearness(alpha: float, at: float, clients: int, wanted: int | None) -> str:
    """' (the nearest to your α = 0.13 and 12 clients)', or nothing where the stored setting is the present one."""
    words = [f"α = {alpha:.2g}"] if abs(math.log(alpha / at)) > 0.005 else []
    words += [plural(wanted, "client")] if wanted is not None and wanted != clients else []
    return f" (the nearest to your {' and '.join(words)})" if words else ""


def fall(titles: Sequence[str], alphas: Sequence[float], means: np.ndarray, rows: Sequence[int]) -> str:
    """Which of `rows` changes most, and which least, from the largest stored α to the smallest."""
    rows = [k for k in rows if not np.isnan(means[k, [0, -1]]).any()]
    if not rows or len(alphas) < 2:
        return ""
    most, least = (pick(rows, key=lambda k: means[k, -1] - means[k, 0]) for pick in (max, min))

    def way(k: int) -> str:
        return f"from {percent(means[k, -1])} to {percent(means[k, 0])}"

    other = f", {titles[least]} {way(least)}" if least != most else ""
    return f"From α = {alphas[-1]:g} to α = {alphas[0]:g}, {titles[most]} goes {way(most)}{other}."


def values(rows: Sequence[Series], most: int = MOST_LINES) -> str:
    """'FedAvg 31 %, FENS 84 % and 12 more in the table'."""
    words = [f"{s.label} {percent(s.mean)}" for s in rows[:most]]
    more = len(rows) - len(words)
    return listed(words + ([f"{more} more in the table"] if more else [])) or "no result"


def wide_table(titles: Sequence[str], alphas: Sequence[float], means: np.ndarray, wide: np.ndarray) -> list[dict]:
    """One row a method, one column a stored α: 'mean ± 2 standard errors', in per cent."""

    def cell(mean: float, band: float) -> str:
        number = "–" if np.isnan(mean) else f"{100 * mean:.0f}"
        return f"{number} %" if np.isnan(band) else f"{number} ± {100 * band:.0f} %"

    rows = []
    for title, row, bands in zip(titles, means, wide, strict=True):
        rows.append({"method": title, **{f"α = {a:g}": cell(m, b) for a, m, b in zip(alphas, row, bands, strict=True)}})
    return rows
