"""FENS with one knob at several values: accuracy above, bytes of one client below."""

from collections.abc import Sequence
from statistics import mean

from matplotlib.axes import Axes

from ....plots.axes import FIFTHS, SIZES, few_ticks, legend_above, percent_axis
from ....plots.style import FAINT, INK, Picture, drawing, dress, look, shorten
from ....plots.words import band_words, data_size, mean_percent, seeds_of, significance
from ....plots.words import points as in_points
from ....study.statistics import band, difference
from ..numbers import ALONE, AVERAGE, FENS, Point
from .bytes import stacked

LINES = {FENS: look("fens"), AVERAGE: look("ensemble"), ALONE: look("local")}


def vary(points: Sequence[Point], knob: str, *, setting: str, now: str | None = None, ordered: bool = True) -> Picture:
    """`points`, at least one, in the order of the knob.

    now: the label of its present value;   ordered: whether lines join the points
    """
    labels = [p.label for p in points]
    with drawing(2, 1, height_ratios=[2.1, 1], sharex=True) as (figure, (upper, lower)):
        accuracies(upper, points, ordered)
        bars(lower, points, knob)
        if now in labels:
            at = labels.index(now)
            for ax in (upper, lower):
                ax.axvspan(at - 0.45, at + 0.45, color=FAINT, lw=0, zorder=0)
        lower.set_xticks(range(len(points)), shorten(labels, 12))
        lower.set_xlim(-0.5, len(points) - 0.5)
    return Picture(figure, alt_text(points, knob, setting), sentence(points, knob), table(points, knob))


def accuracies(ax: Axes, points: Sequence[Point], ordered: bool) -> None:
    dress(ax, title="Accuracy", grid="y")
    names = list(dict.fromkeys(name for p in points for name in p.lines))
    for name in names:
        hue, marker, _ = LINES.get(name) or look(name)
        shown = [(i, list(p.lines[name].values())) for i, p in enumerate(points) if p.lines.get(name)]
        style = {"ms": 7, "zorder": 3} if name == FENS else {"ms": 5.5, "zorder": 2}
        middles = [mean(values) for _, values in shown]
        line = marker + ("-" if ordered else "")
        ax.plot([i for i, _ in shown], middles, line, color=hue, lw=1.8, label=name, **style)
        for i, values in shown:
            of = band(values)
            if of.n > 1:
                ax.plot([i, i], [max(0, of.low), min(1, of.high)], color=hue, lw=5, alpha=0.25)
    percent_axis(ax, "y", 1.03, low=-0.03, ticks=FIFTHS)
    ax.tick_params(axis="x", length=0)
    legend_above(ax, len(names))


def bars(ax: Axes, points: Sequence[Point], knob: str) -> None:
    dress(ax, title="One client's bytes", x=knob, grid="y")
    ends = stacked(ax.bar, [p.parts for p in points], "bottom", 0.6)
    top = max(ends) or 1
    for i, p in enumerate(points):
        ax.text(i, ends[i] + 0.03 * top, f"{p.ratio:.3g}×", ha="center", va="bottom", fontsize=9, color=INK)
    ax.set_ylim(0, 1.28 * top)
    few_ticks(ax, "y", 3, form=SIZES)
    legend_above(ax, 4)


def sentence(points: Sequence[Point], knob: str) -> str:
    best, worst = (choose(points, key=lambda p: mean(p.lines[FENS].values())) for choose in (max, min))
    high, low = mean_percent(best.lines[FENS]), mean_percent(worst.lines[FENS])
    if len(points) == 1:
        return f"{knob} {best.label}: FENS reaches {high} for {data_size(best.bytes)} a client."
    ahead = difference(best.lines[FENS], worst.lines[FENS])
    apart = in_points(ahead, sign="")
    text = f"{knob}: FENS is best with {best.label} ({high}) and worst with {worst.label} ({low})" + significance(
        ahead, noise=f"; the difference of {apart} is within the noise", clear=f", {apart} apart",
        one_seed="; with one seed nobody can tell how much of that is noise",
    )  # fmt: skip
    few, many = min(points, key=lambda p: p.bytes), max(points, key=lambda p: p.bytes)
    if many.bytes > 1.005 * few.bytes:
        text += f". A client's bytes go from {data_size(few.bytes)} ({few.label}) to {data_size(many.bytes)} "
        text += f"({many.label})"
    return f"{text}."


def alt_text(points: Sequence[Point], knob: str, setting: str) -> str:
    lines = [", ".join(f"{name} {mean_percent(line)}" for name, line in p.lines.items() if line) for p in points]
    values = (f"{p.label}: {parts}, {data_size(p.bytes)}" for p, parts in zip(points, lines, strict=True))
    return f"Accuracy above and bytes of one client below, by {knob} ({setting}): {'; '.join(values)}."


def table(points: Sequence[Point], knob: str) -> list[dict]:
    rows = []
    for p in points:
        wide = {name: f" ± {band_words(band(line))}" if len(line) > 1 else "" for name, line in p.lines.items()}
        lines = {name: mean_percent(line) + wide[name] for name, line in p.lines.items() if line}
        sizes = {"bytes of one client": round(p.bytes), "× one-shot": round(p.ratio, 2)}
        rows.append({knob: p.label, **lines, "seeds": seeds_of(p.lines[FENS]), **sizes})
    return rows
