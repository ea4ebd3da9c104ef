"""Accuracy: bars with every seed as a dot and a band of two standard errors, and the curve while it trains."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from .series import Series, finished, settings_of
from .style import FAINT, INK, LOCK, QUIET, Picture, dress, new_figure
from .words import gap, is_noise, listed, percent, plural

LOCAL = "local training"  # the phase that all methods share: clients train alone
PERCENT = FuncFormatter(lambda v, _: f"{100 * v:.0f} %")


def accuracy(series: Sequence[Series], *, chance: float | None = None, note: str = "") -> Picture:
    """Bars of the finished series at the left, curves of all of them at the right. `chance`: accuracy of guessing."""
    done = finished(series)
    with LOCK:
        figure = new_figure()
        left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
        bars(left, series, chance)
        curves(right, series, chance)
    return Picture(figure, alt_text(series, done), f"{verdict(done)} {note}".strip(), table(done))


def bars(ax: Axes, series: Sequence[Series], chance: float | None = None) -> None:
    """One horizontal bar a series: mean, band of two standard errors, a dot a seed; the numbers at the right edge.

    A series without a result yet has its place and no bar, so that nothing moves when the result comes.
    """
    rows = max(len(series), 3)
    small = 10 if rows <= 9 else 8.5 if rows <= 14 else 7
    dress(ax, title="Test accuracy", grid="x")
    for i, s in enumerate(series):
        if not s.accuracies:
            ax.text(0.02, i, "…", va="center", fontsize=small, color=QUIET)
            continue
        hatch = {"hatch": "////", "edgecolor": "white", "linewidth": 0} if s.pinned else {}
        ax.barh(i, s.mean, height=0.62, color=s.hue, alpha=0.45 if s.pinned else 0.8, **hatch)
        wide = s.half_width
        if not math.isnan(wide):
            ax.plot([max(0, s.mean - wide), min(1, s.mean + wide)], [i, i], color=INK, lw=2, solid_capstyle="butt")
            ax.plot([max(0, s.mean - wide), min(1, s.mean + wide)], [i, i], "|", color=INK, ms=9, mew=1.6)
        ax.scatter(
            list(s.accuracies.values()), [i] * len(s.accuracies), s=20, color="white", edgecolors=INK, lw=0.9, zorder=3
        )
        number = f"{100 * s.mean:.0f}" + ("" if math.isnan(wide) else f" ± {100 * wide:.0f}")
        ax.text(1.02, i, number, va="center", fontsize=small, color=INK, clip_on=False, gid="outside")
    if chance:
        ax.axvline(chance, color=QUIET, lw=1, ls=(0, (2, 2)))
    ax.set_yticks(range(len(series)), [s.lines for s in series], fontsize=small)
    ax.set_ylim(rows - 0.5, -0.5)
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter(PERCENT)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("mean, band of 2 standard errors, one dot a seed", fontsize=9, color=QUIET)


def curves(ax: Axes, series: Sequence[Series], chance: float | None = None) -> None:
    """Accuracy against the progress of a run; local training, which is shared, in grey."""
    dress(ax, title="While it trains", grid="y")
    local = False
    for s in series:
        for i, points in enumerate(s.curves):
            style = {"color": s.hue, "lw": 1.9 if i == 0 else 1.1, "alpha": 0.5 if s.pinned else 1 if i == 0 else 0.45}
            style["ls"] = (0, (4, 2)) if s.pinned else "-"
            start = sum(p["phase"] == LOCAL for p in points)
            local |= start > 0
            alone, fused = points[:start], points[max(start - 1, 0) :]
            ax.plot([p["progress"] for p in alone], [p["accuracy"] for p in alone], color="#9aa4ae", lw=1.6, zorder=1)
            if len(fused) > 1 or not start:
                x, y = [p["progress"] for p in fused], [p["accuracy"] for p in fused]
                ax.plot(x, y, **style)
                ax.plot(
                    x[-1:], y[-1:], s.marker, color=s.hue, ms=6 if i == 0 else 4, alpha=style["alpha"], clip_on=False
                )
    if chance:
        ax.axhline(chance, color=QUIET, lw=1, ls=(0, (2, 2)))
        ax.text(0.99, chance + 0.015, "guessing", ha="right", fontsize=8.5, color=QUIET)
    if local:
        ax.axvline(0.5, color=FAINT, lw=1.2, zorder=0)
        ax.text(0.25, 1.015, "clients alone", ha="center", fontsize=8.5, color=QUIET)
        ax.text(0.75, 1.015, "fused", ha="center", fontsize=8.5, color=QUIET)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.07)
    ax.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1])
    ax.set_xticks([0, 0.5, 1], ["start", "half", "end"])
    ax.yaxis.set_major_formatter(PERCENT)
    ax.set_xlabel("progress of the run", fontsize=9, color=QUIET)


def verdict(series: Sequence[Series]) -> str:
    """Who is best, by how much, and whether that is more than noise."""
    if not series:
        return "No result yet."
    ranked = sorted([s for s in series if not s.bound] or series, key=lambda s: -s.mean)
    best = ranked[0]
    text = f"{best.name} is best with {percent(best.mean)}"
    if len(ranked) == 1:
        text = f"{best.name} reaches {percent(best.mean)}"
    else:
        second = ranked[1]
        difference, wide = gap(best.accuracies, second.accuracies, best.setting == second.setting)
        points = f"{100 * difference:.0f}"
        behind = "is level with it" if points == "0" else f"follows {plural(int(points), 'point')} behind"
        if math.isnan(wide):
            text += f", {second.name} {behind}; with one seed nobody can tell whether that is noise"
        elif is_noise(difference, wide):
            text += f"; {second.name} is {points} ± {100 * wide:.0f} points behind, which is within the noise"
        else:
            text += f", clearly ahead of {second.name} (by {points} ± {100 * wide:.0f} points)"
    if len(ranked) > 2:
        text += f"; {ranked[-1].name} is last with {percent(ranked[-1].mean)}"
    bounds = [f"{s.name} {percent(s.mean)}" for s in series if s.bound and s not in ranked]
    return f"{text}." + (f" For reference: {listed(bounds)}." if bounds else "")


def alt_text(series: Sequence[Series], done: Sequence[Series]) -> str:
    values = ", ".join(
        f"{s.name} {percent(s.mean)}" + ("" if math.isnan(s.half_width) else f" plus or minus {100 * s.half_width:.0f}")
        for s in done
    )
    seeds = "; ".join(dict.fromkeys(s.seeds for s in done)) or "no seed finished"
    return (
        f"Bars of test accuracy and curves of accuracy against progress ({settings_of(series)}; {seeds}): "
        f"{values or 'no result yet'}."
    )


def table(series: Sequence[Series]) -> list[dict]:
    return [
        {
            "method": s.name,
            "setting": s.setting,
            "accuracy": percent(s.mean),
            "± 2 standard errors": "one seed" if math.isnan(s.half_width) else f"{100 * s.half_width:.1f} points",
            "seeds": ", ".join(f"{seed}: {100 * a:.1f} %" for seed, a in sorted(s.accuracies.items())),
        }
        for s in series
    ]
