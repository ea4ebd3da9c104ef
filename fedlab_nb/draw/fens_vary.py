"""FENS with one knob at several values: accuracy above, bytes of one client below."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from .accuracy import PERCENT
from .style import ACCENT, FAINT, INK, LOCK, QUIET, SECOND, Picture, dress, legend, new_figure, shorten
from .words import data_size, gap, half_width, is_noise, percent, seeds_of

FENS, AVERAGE, ALONE = "FENS", "plain average", "mean client alone"
LINES = {FENS: (ACCENT, "o"), AVERAGE: (SECOND, "s"), ALONE: ("#7F7F7F", "^")}
PARTS = {"own model": "#9aa4ae", "ensemble": "#56B4E9", "aggregator rounds": ACCENT, "other": "#E69F00"}


@dataclass(frozen=True)
class Point:
    """One value of the knob. `lines`: {name: {seed: accuracy}}, names of LINES or others; `parts`: bytes of one client
    by PARTS; `ratio`: to one-shot learning.
    """

    label: str
    lines: Mapping[str, Mapping[int, float]]
    parts: Mapping[str, float] = field(default_factory=dict)
    ratio: float = math.nan

    @property
    def bytes(self) -> float:
        return sum(self.parts.values())


def vary(points: Sequence[Point], knob: str, *, setting: str, now: str | None = None, ordered: bool = True) -> Picture:
    """`points`, at least one, in the order of the knob.

    now: the label of its present value;   ordered: whether lines join the points
    """
    with LOCK:
        figure = new_figure()
        upper, lower = figure.subplots(2, 1, height_ratios=[2.1, 1], sharex=True)
        accuracies(upper, points, ordered)
        bars(lower, points)
        at = next((i for i, p in enumerate(points) if p.label == now), None)
        for ax in (upper, lower):
            if at is not None:
                ax.axvspan(at - 0.45, at + 0.45, color=FAINT, lw=0, zorder=0)
        lower.set_xticks(range(len(points)), shorten([p.label for p in points], 12))
        lower.set_xlim(-0.5, len(points) - 0.5)
        lower.set_xlabel(knob, fontsize=10, color=QUIET)
    return Picture(figure, alt_text(points, knob, setting), sentence(points, knob), table(points, knob))


def accuracies(ax: Axes, points: Sequence[Point], ordered: bool) -> None:
    dress(ax, title="Accuracy", grid="y")
    names = list(dict.fromkeys(name for p in points for name in p.lines))
    spare = iter(("#009E73", "#CC79A7"))
    for name in names:
        hue, marker = LINES[name] if name in LINES else (next(spare), "D")
        found = [(i, p.lines[name]) for i, p in enumerate(points) if p.lines.get(name)]
        x, y = [i for i, _ in found], [mean(values.values()) for _, values in found]
        style = {"ms": 7, "zorder": 3} if name == FENS else {"ms": 5.5, "zorder": 2}
        ax.plot(x, y, marker + ("-" if ordered else ""), color=hue, lw=1.8, label=name, **style)
        for i, values in found:
            wide = half_width(list(values.values()))
            if not math.isnan(wide):
                middle = mean(values.values())
                ax.plot([i, i], [max(0, middle - wide), min(1, middle + wide)], color=hue, lw=5, alpha=0.25)
    ax.set_ylim(-0.03, 1.03)
    ax.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1])
    ax.yaxis.set_major_formatter(PERCENT)
    ax.tick_params(axis="x", length=0)
    above(ax, len(names))


def bars(ax: Axes, points: Sequence[Point]) -> None:
    dress(ax, title="One client's bytes", grid="y")
    base = [0.0] * len(points)
    for part, hue in PARTS.items():
        heights = [p.parts.get(part, 0.0) for p in points]
        if any(heights):
            ax.bar(range(len(points)), heights, bottom=base, width=0.6, color=hue, label=part)
            base = [b + h for b, h in zip(base, heights, strict=True)]
    top = max(base, default=0) or 1
    for i, p in enumerate(points):
        if not math.isnan(p.ratio):
            ax.text(i, base[i] + 0.03 * top, f"{p.ratio:.3g}×", ha="center", va="bottom", fontsize=9, color=INK)
    ax.set_ylim(0, 1.28 * top)
    ax.yaxis.set_major_locator(MaxNLocator(3))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: data_size(v) if v else "0"))
    above(ax, len(PARTS))


def above(ax: Axes, columns: int) -> None:
    """A legend in one row over the axes, at the right; it takes no room from them."""
    made = legend(
        ax, loc="lower right", bbox_to_anchor=(1.01, 0.985), ncols=columns, borderpad=0, handlelength=1.3,
        columnspacing=1.1, handletextpad=0.4,
    )  # fmt: skip
    made.set_in_layout(False)


def sentence(points: Sequence[Point], knob: str) -> str:
    done = [p for p in points if p.lines.get(FENS)]
    scores = [mean(p.lines[FENS].values()) for p in done]
    best, worst = done[scores.index(max(scores))], done[scores.index(min(scores))]
    if len(done) == 1:
        return f"{knob} {best.label}: FENS reaches {percent(max(scores))} for {data_size(best.bytes)} a client."
    text = (
        f"{knob}: FENS is best with {best.label} ({percent(max(scores))}) and worst with {worst.label} "
        f"({percent(min(scores))})"
    )
    difference, wide = gap(best.lines[FENS], worst.lines[FENS])
    if math.isnan(wide):
        text += "; with one seed nobody can tell how much of that is noise"
    elif is_noise(difference, wide):
        text += f"; the difference of {100 * difference:.0f} ± {100 * wide:.0f} points is within the noise"
    else:
        text += f", {100 * difference:.0f} ± {100 * wide:.0f} points apart"
    few, many = min(done, key=lambda p: p.bytes), max(done, key=lambda p: p.bytes)
    if many.bytes > 1.005 * few.bytes:
        text += (
            f". A client's bytes go from {data_size(few.bytes)} ({few.label}) to {data_size(many.bytes)} ({many.label})"
        )
    return f"{text}."


def alt_text(points: Sequence[Point], knob: str, setting: str) -> str:
    told = []
    for p in points:
        parts = ", ".join(f"{name} {percent(mean(values.values()))}" for name, values in p.lines.items() if values)
        told.append(f"{p.label}: {parts}, {data_size(p.bytes)}")
    return f"Accuracy above and bytes of one client below, by {knob} ({setting}): {'; '.join(told)}."


def table(points: Sequence[Point], knob: str) -> list[dict]:
    rows = []
    for p in points:
        row: dict = {knob: p.label}
        for name, values in p.lines.items():
            if values:
                wide = half_width(list(values.values()))
                row[name] = percent(mean(values.values())) + ("" if math.isnan(wide) else f" ± {100 * wide:.1f} points")
        seeds = next((values for values in p.lines.values() if values), {})
        row |= {"seeds": seeds_of(seeds) if seeds else "", "bytes of one client": round(p.bytes)}
        rows.append(row | ({} if math.isnan(p.ratio) else {"× one-shot": round(p.ratio, 2)}))
    return rows
