"""FENS with one knob at several values: accuracy above, bytes of one client below.

Values are compared on validation images; of the one that is best there, and of it alone, the test accuracy is shown.
"""

from collections.abc import Sequence
from statistics import mean

from matplotlib.axes import Axes

from ....plots.axes import FIFTHS, SIZES, few_ticks, legend_above, percent_axis
from ....plots.kit import blank
from ....plots.style import FAINT, INK, Picture, drawing, dress, look, shorten
from ....plots.words import band_words, data_size, listed, mean_percent, seeds_of, significance
from ....plots.words import points as in_points
from ....study.statistics import band, difference
from ....study.validation import WORDS
from ..numbers import ALONE, AVERAGE, FENS, Point
from .bytes import stacked

LINES = {FENS: look("fens"), AVERAGE: look("ensemble"), ALONE: look("local")}
NOTHING = "FENS learnt from the held-out samples, and this data set has no public images with labels: there are no \
validation images to compare values on."


def vary(points: Sequence[Point], knob: str, *, setting: str, now: str | None = None, ordered: bool = True) -> Picture:
    """`points`, at least one, in the order of the knob.

    now: the label of its present value;   ordered: whether lines join the points
    """
    judged = [p for p in points if p.validation]
    if not judged:
        return blank(NOTHING, setting=setting)
    labels, taken = [p.label for p in points], choose(judged)
    with drawing(2, 1, height_ratios=[2.1, 1], sharex=True) as (figure, (upper, lower)):
        accuracies(upper, points, taken, ordered)
        bars(lower, points, knob)
        if now in labels:
            at = labels.index(now)
            for ax in (upper, lower):
                ax.axvspan(at - 0.45, at + 0.45, color=FAINT, lw=0, zorder=0)
        lower.set_xticks(range(len(points)), shorten(labels, 12))
        lower.set_xlim(-0.5, len(points) - 0.5)
    alt, rows = alt_text(points, taken, knob, setting), table(points, taken, knob)
    return Picture(figure, alt, sentence(points, taken, knob), rows)


def choose(points: Sequence[Point]) -> Point:
    """The point that is best on validation images."""
    return max(points, key=lambda p: mean(p.validation.values()))


def accuracies(ax: Axes, points: Sequence[Point], taken: Point, ordered: bool) -> None:
    """FENS on validation images at every value; at the best one, everybody on the test images."""
    dress(ax, title="Accuracy", grid="y")
    hue, marker, _ = LINES[FENS]
    shown = [(i, band(p.validation)) for i, p in enumerate(points) if p.validation]
    style = {"color": hue, "lw": 1.8, "ms": 7, "zorder": 3, "label": "FENS, validation"}
    ax.plot([i for i, _ in shown], [of.mean for _, of in shown], marker + ("-" if ordered else ""), **style)
    for i, of in shown:
        if of.n > 1:
            ax.plot([i, i], [max(0, of.low), min(1, of.high)], color=hue, lw=5, alpha=0.25)
    at, named = points.index(taken), {FENS: "FENS, test", AVERAGE: AVERAGE, ALONE: "client alone"}
    for name, values in taken.lines.items():
        if values:
            hue, marker, _ = LINES.get(name) or look(name)
            ring = {"mfc": "white", "mec": hue, "mew": 2, "ls": "none", "ms": 8, "zorder": 4}
            ax.plot(at + 0.18, mean(values.values()), marker, label=named.get(name), **ring)
            if name not in named:
                ax.text(at + 0.26, mean(values.values()), name, va="center", fontsize=9, color=hue)
    percent_axis(ax, "y", 1.03, low=-0.03, ticks=FIFTHS)
    ax.tick_params(axis="x", length=0)
    legend_above(ax, 4)


def bars(ax: Axes, points: Sequence[Point], knob: str) -> None:
    dress(ax, title="One client's bytes", x=knob, grid="y")
    ends = stacked(ax.bar, [p.parts for p in points], "bottom", 0.6)
    top = max(ends) or 1
    for i, p in enumerate(points):
        ax.text(i, ends[i] + 0.03 * top, f"{p.ratio:.3g}×", ha="center", va="bottom", fontsize=9, color=INK)
    ax.set_ylim(0, 1.28 * top)
    few_ticks(ax, "y", 3, form=SIZES)
    legend_above(ax, 4)


def sentence(points: Sequence[Point], taken: Point, knob: str) -> str:
    judged = [p for p in points if p.validation]
    worst = min(judged, key=lambda p: mean(p.validation.values()))
    high, low = mean_percent(taken.validation), mean_percent(worst.validation)
    kinds = list(dict.fromkeys(p.judged_on for p in judged))
    images = " or ".join(WORDS[kind] for kind in kinds)
    if len(points) == 1:
        text = f"{knob} {taken.label}: FENS reaches {high} on validation images ({images}), "
        return text + f"{mean_percent(taken.lines[FENS])} on the test images, for {data_size(taken.bytes)} a client."
    ahead = difference(taken.validation, worst.validation)
    apart = in_points(ahead, sign="")
    text = f"{knob}: on validation images ({images}) FENS is best with {taken.label} ({high}) and worst with "
    text += f"{worst.label} ({low})" + significance(
        ahead, noise=f"; the difference of {apart} is within the noise", clear=f", {apart} apart",
        one_seed="; with one seed nobody can tell how much of that is noise",
    )  # fmt: skip
    shares = [f"{name} {mean_percent(values)}" for name, values in taken.lines.items() if values]
    text += f". On the test images, with {taken.label}: {listed(shares)}"
    few, many = min(points, key=lambda p: p.bytes), max(points, key=lambda p: p.bytes)
    if many.bytes > 1.005 * few.bytes:
        text += f". A client's bytes go from {data_size(few.bytes)} ({few.label}) to {data_size(many.bytes)} "
        text += f"({many.label})"
    return f"{text}."


def alt_text(points: Sequence[Point], taken: Point, knob: str, setting: str) -> str:
    values = (
        f"{p.label}: {mean_percent(p.validation) if p.validation else 'unknown'}, {data_size(p.bytes)}" for p in points
    )
    test = ", ".join(f"{name} {mean_percent(line)}" for name, line in taken.lines.items() if line)
    return (
        f"Validation accuracy of FENS above and bytes of one client below, by {knob} ({setting}): {'; '.join(values)}. "
        f"Rings at {taken.label}, the best: test accuracy, {test}."
    )


def table(points: Sequence[Point], taken: Point, knob: str) -> list[dict]:
    rows = []
    for p in points:
        row = {knob: p.label, "validation": "", "test": ""}
        if p.validation:
            wide = f" ± {band_words(band(p.validation))}" if len(p.validation) > 1 else ""
            row["validation"] = mean_percent(p.validation) + wide
        if p is taken:
            row["test"] = ", ".join(f"{name} {mean_percent(line)}" for name, line in p.lines.items() if line)
        sizes = {"bytes of one client": round(p.bytes), "× one-shot": round(p.ratio, 2)}
        rows.append({**row, "seeds": seeds_of(p.lines[FENS]), **sizes})
    return rows
