"""Accuracy: bars with every seed as a dot and a 95 % band of Student's t, and the curve while it trains."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..studies.statistics import difference
from .identity import shorten_title
from .kit import BARS, Bars, told
from .series import Series, finished, settings_of
from .style import (
    FAINT,
    FIFTHS,
    QUIET,
    SECOND,
    Picture,
    drawing,
    dress,
    end_labels,
    heading,
    level_line,
    percent_axis,
    seed_lines,
)
from .vector import mark
from .words import (
    band_words,
    capital,
    listed,
    number,
    percent,
    plural,
    seed_words,
    seeds_of,
    significance,
    tabled,
)

LOCAL = "local training"  # the phase that all methods share: clients train alone


def accuracy(series: Sequence[Series], *, chance: float | None = None) -> Picture:
    """Bars of the finished series at the left, curves of all of them at the right. `chance`: accuracy of guessing."""
    done = finished(series)
    with drawing(1, 2, width_ratios=[1.25, 1]) as (figure, (left, right)):
        Bars(left, series, chance).update(series)
        curves(right, series, chance)
    title = "Bars of test accuracy, and curves of it while it trains"
    return told(figure, title, settings_of(series), verdict(done), table(done))


def bars(series: Sequence[Series], *, chance: float | None = None) -> Picture:
    """The bars alone, of series that are finished."""
    with drawing() as (figure, ax):
        Bars(ax, series, chance).update(series)
    return told(
        figure, "Bars of test accuracy", settings_of(series), verdict(series), table(series)
    )


def one_seed(series: Sequence[Series], seed: int) -> Picture:
    """Bars of one seed, and on each a dot for each seed and the band of their mean."""
    with drawing() as (figure, ax):
        Bars(ax, series, seed=seed).update(series)
    each = [(s.name, percent(s.accuracies[seed]), s.number) for s in series]
    said = listed([f"{name} {own} ({mean})" for name, own, mean in each])
    sentence = f"Seed {seed}, and in brackets the mean of {seeds_of(series[0].accuracies)}: {said}."
    table = tabled(f"rule | seed {seed} | mean of seeds", each)
    return told(figure, "Bars of test accuracy", settings_of(series), sentence, table)


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
    many, ends = any(len(s.curves) > 1 for s in series), []
    x = "bold: mean of the seeds" if many else "progress of the run"
    dress(ax, title="While it trains", x=x, grid="y", size=9)
    for s in series:
        fused, dashes = {}, (0, (4, 2)) if s.pinned else s.look.line
        for seed, curve in enumerate(s.curves):
            alone = sum(p["phase"] == LOCAL for p in curve)
            points = [(p["progress"], p["accuracy"]) for p in curve]
            seed_lines(ax, {seed: points[:alone]}, "#9aa4ae", lw=1.6, zorder=1)
            if len(points) > alone:
                fused[seed] = points[max(alone - 1, 0) :]
        if fused:
            bold = {
                "alpha": 0.5 if s.pinned else 1,
                "ls": dashes,
                "lw": 1.9,
                "ms": 6,
                "markevery": [-1],
            }
            _, y = seed_lines(ax, fused, s.look.colour, s.look.marker, clip_on=False, **bold)
            mean = (
                f"mean of {plural(len(fused), 'seed')}; thin: each of them"
                if len(fused) > 1
                else "one seed"
            )
            mark(ax.lines[-1], f"{s.name}\n{percent(y[-1])} so far ({mean})", method=s.held_as)
            ends.append((y[-1], f"  {shorten_title(s.label)}", s.look.colour))  # beside its marker
    if chance:
        level_line(ax, chance, "guessing", under=True)
    if any(p["phase"] == LOCAL for s in series for curve in s.curves for p in curve):
        ax.axvline(0.5, color=FAINT, lw=1.2, zorder=0)
        for x, words in ((0.25, "alone"), (0.75, "fused")):
            ax.text(x, 1.015, words, ha="center", fontsize=8.5, color=QUIET)
    ax.set_xlim(0, 1)
    percent_axis(ax, "y", 1.07, ticks=FIFTHS)
    ax.set_xticks([0, 0.5, 1], ["start", "half", "end"])
    end_labels(ax, ends, size=8)


def verdict(series: Sequence[Series]) -> str:
    """Who is best, by how much, and whether that is more than noise."""
    if not series:
        return "No result yet."
    best, *others = ranked = sorted(
        [s for s in series if not s.bound] or series, key=lambda s: -s.mean
    )
    text = f"{capital(best.name)} {'is best with' if others else 'reaches'} {percent(best.mean)}"
    same = all(
        s.accuracies == best.accuracies for s in others
    )  # of a single client every server makes the same
    if others and same:
        text = f"{'All' if len(others) > 1 else 'Both'} reach the same {percent(best.mean)}"
        text += "; with one seed nobody can tell whether that is chance" * (
            len(best.accuracies) == 1
        )
    elif others:
        second = others[0]
        ahead = difference(
            best.accuracies, second.accuracies, paired=best.setting == second.setting
        )
        shown = round(100 * best.mean) - round(
            100 * second.mean
        )  # what a reader finds by subtracting
        exact = (
            shown != round(100 * ahead.mean) and best.accuracies.keys() == second.accuracies.keys()
        )
        points = number(ahead, 1 if exact else None)
        behind = (
            "is level with it"
            if points == "0"
            else f"follows {points} point{'s' * (points != '1')} behind"
        )
        text += significance(
            ahead,
            noise=f"; {second.name} is {points} points behind, which is within the noise",
            clear=f", clearly ahead of {second.name} (by {points} points)",
            one_seed=f", {second.name} {behind}; with one seed nobody can tell whether that is noise",
        )
    if len(others) > 1 and not same:
        text += f"; {others[-1].name} is last with {percent(others[-1].mean)}"
    bounds = [f"{s.name} {percent(s.mean)}" for s in series if s.bound and s not in ranked]
    return f"{text}." + (f" For reference: {listed(bounds)}." if bounds else "")


def table(series: Sequence[Series]) -> list[dict]:
    rows = (
        (s.name, str(s.setting), percent(s.mean), band_words(s.band), seed_words(s.accuracies))
        for s in series
    )
    return tabled("method | setting | accuracy | ± 95 % band | seeds", rows)
