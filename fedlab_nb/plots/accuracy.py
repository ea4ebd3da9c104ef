"""Accuracy: bars with every seed as a dot and a 95 % band of Student's t, and the curve while it trains."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..studies.statistics import difference
from .axes import FIFTHS, level_line, percent_axis
from .kit import BARS, Bars, told
from .series import Series, finished, settings_of
from .style import FAINT, QUIET, SECOND, Picture, drawing, dress, heading
from .vector import mark
from .words import band_words, listed, percent, plural, seed_words, significance, tabled

LOCAL = "local training"  # the phase that all methods share: clients train alone


def accuracy(series: Sequence[Series], *, chance: float | None = None, note: str = "") -> Picture:
    """Bars of the finished series at the left, curves of all of them at the right. `chance`: accuracy of guessing."""
    done = finished(series)
    with drawing(1, 2, width_ratios=[1.25, 1]) as (figure, (left, right)):
        Bars(left, series, chance).update(series)
        curves(right, series, chance)
    sentence = f"{verdict(done)} {note}".strip()
    return told(
        figure, "Bars of test accuracy, and curves of it while it trains", settings_of(series), sentence, table(done)
    )


def mark_guess(figure: Figure | None, share: float) -> None:
    """A dashed line at a guess across all bars of accuracy in a figure."""
    for ax in figure.axes if figure else ():
        if ax.get_xlabel() == BARS:
            level_line(ax, share, axis="x", colour=SECOND, lw=1.8, ls="--")
            heading(ax, "Test accuracy (dashed: your guess)")


def curves(ax: Axes, series: Sequence[Series], chance: float | None = None) -> None:
    """Accuracy against the progress of a run: every seed faintly, their mean in full; local training, which is shared,
    in grey.
    """
    many = any(len(s.curves) > 1 for s in series)
    x = "progress; bold: mean over seeds" if many else "progress of the run"
    dress(ax, title="While it trains", x=x, grid="y", size=9)
    local = False
    for s in series:
        fused, dashes = [], (0, (4, 2)) if s.pinned else s.look.line
        for points in s.curves:
            start = sum(p["phase"] == LOCAL for p in points)
            local |= start > 0
            x, y = [p["progress"] for p in points], [p["accuracy"] for p in points]
            ax.plot(x[:start], y[:start], color="#9aa4ae", lw=1.6, zorder=1)
            first = max(start - 1, 0)
            if x and (len(x) - first > 1 or not start):
                fused.append((x[first:], y[first:]))
        for x, y in fused if len(fused) > 1 else ():
            ax.plot(x, y, color=s.look.colour, alpha=0.35, lw=0.9)
        if fused:
            x, y = mean_curve(fused)
            bold = {"color": s.look.colour, "alpha": 0.5 if s.pinned else 1, "ls": dashes, "lw": 1.9, "ms": 6}
            line = ax.plot(x, y, marker=s.look.marker, markevery=[-1], clip_on=False, **bold)[0]
            mean = f"mean of {plural(len(fused), 'seed')}; thin: each of them" if len(fused) > 1 else "one seed"
            mark(line, f"{s.name}\n{percent(y[-1])} so far ({mean})", method=s.held_as)
    if chance:
        level_line(ax, chance, "guessing")
    if local:
        ax.axvline(0.5, color=FAINT, lw=1.2, zorder=0)
        for x, words in ((0.25, "clients alone"), (0.75, "fused")):
            ax.text(x, 1.015, words, ha="center", fontsize=8.5, color=QUIET)
    ax.set_xlim(0, 1)
    percent_axis(ax, "y", 1.07, ticks=FIFTHS)
    ax.set_xticks([0, 0.5, 1], ["start", "half", "end"])


def mean_curve(curves: Sequence[tuple[Sequence[float], Sequence[float]]]) -> tuple[list[float], np.ndarray]:
    """x and the mean y of curves (x, y), straight between their points, as far as all of them have come."""
    low, high = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    shared = sorted({v for x, _ in curves for v in x if low <= v <= high})
    return shared, np.mean([np.interp(shared, x, y) for x, y in curves], axis=0)


def verdict(series: Sequence[Series]) -> str:
    """Who is best, by how much, and whether that is more than noise."""
    if not series:
        return "No result yet."
    best, *others = ranked = sorted([s for s in series if not s.bound] or series, key=lambda s: -s.mean)
    text = f"{best.name} {'is best with' if others else 'reaches'} {percent(best.mean)}"
    if others:
        second = others[0]
        ahead = difference(best.accuracies, second.accuracies, paired=best.setting == second.setting)
        shown = round(100 * best.mean) - round(100 * second.mean)  # what a reader finds by subtracting
        exact = shown != round(100 * ahead.mean) and best.accuracies.keys() == second.accuracies.keys()
        points, wide = f"{100 * ahead.mean:.{int(exact)}f}", f"{100 * ahead.half_width:.0f}"
        behind = "is level with it" if points == "0" else f"follows {points} point{'s' * (points != '1')} behind"
        text += significance(
            ahead,
            noise=f"; {second.name} is {points} ± {wide} points behind, which is within the noise",
            clear=f", clearly ahead of {second.name} (by {points} ± {wide} points)",
            one_seed=f", {second.name} {behind}; with one seed nobody can tell whether that is noise",
        )
    if len(others) > 1:
        text += f"; {others[-1].name} is last with {percent(others[-1].mean)}"
    bounds = [f"{s.name} {percent(s.mean)}" for s in series if s.bound and s not in ranked]
    return f"{text}." + (f" For reference: {listed(bounds)}." if bounds else "")


def table(series: Sequence[Series]) -> list[dict]:
    rows = ((s.name, s.setting, percent(s.mean), band_words(s.band), seed_words(s.accuracies)) for s in series)
    return tabled("method | setting | accuracy | ± 95 % band | seeds", rows)
