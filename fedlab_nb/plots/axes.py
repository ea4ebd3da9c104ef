"""The chores of axes, each in one place: scales, ticks, rows of bars, marks, lines of seeds and their names.

percent_axis(ax, "y", 1.03, ticks=FIFTHS)     shares as percents          log_axis(ax, "x", ticks=alphas)
few_ticks(ax, "x", 8, whole=True)             rounds, counts              few_ticks(ax, "x", 4, form=SIZES)
rows_axis(ax, names)                          bars that lie, named at the left, the first on top
client_ticks(ax, M), class_ticks(ax, names)   columns or rows of a table of clients and classes
mark(ax, client, M), mark(ax, klass, C, "y")  what is looked at, if anything is
level_line(ax, chance, "guessing")            a thin line at a level
seed_lines(ax, {seed: [(x, y)]}, colour)      every seed faintly, their mean clearly
end_labels(ax, [(y, text, colour)])           the name of each line at its right end
"""

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from .style import ACCENT, INK, QUIET, narrow, shorten
from .words import data_size, letter, percent

PERCENT = FuncFormatter(lambda v, _: percent(v))  # 0.25 -> 25 %
Form = Callable[[float], str]  # how an axis writes a value
FIFTHS, QUARTERS, HALVES = (0, 0.2, 0.4, 0.6, 0.8, 1), (0, 0.25, 0.5, 0.75, 1), (0, 0.5, 1)
DOTS = (0, (2, 2))  # the dashes of reference lines
Points = Sequence[tuple[float, float]]


def SIZES(count: float) -> str:
    """Bytes of a tick: 26280 -> '26.3 kB'."""
    return data_size(count) if count else "0"


# ---------------------------------------------------------------------------------------------------- scales and ticks
def percent_axis(
    ax: Axes,
    axis: str = "y",
    top: float | None = 1.0,
    *,
    low: float = 0.0,
    ticks: Sequence[float] = (),
) -> None:
    """Shares from `low` to `top`, written as percents, at `ticks` (FIFTHS, HALVES) where given. top None: limits stay
    free."""
    if top is not None:
        ax.set(**{f"{axis}lim": (low, top)})
    if ticks:
        ax.set(**{f"{axis}ticks": ticks})
    getattr(ax, f"{axis}axis").set_major_formatter(PERCENT)


def few_ticks(
    ax: Axes, axis: str, most: int, *, whole: bool = False, form: Form | None = None
) -> None:
    """At most about `most` ticks. whole: at whole numbers only;   form: how a value is written, such as `SIZES`."""
    here = getattr(ax, f"{axis}axis")
    here.set_major_locator(MaxNLocator(most, integer=whole))
    if form is not None:
        here.set_major_formatter(lambda v, _: form(v))


def log_axis(
    ax: Axes,
    axis: str = "x",
    *,
    ticks: Sequence[float] = (),
    most: int = 6,
    form: Form = "{:g}".format,
) -> None:
    """A logarithmic axis without small ticks: at `ticks`, else at `most` powers of ten. form: how one is written."""
    ax.set(**{f"{axis}scale": "log"})
    here = getattr(ax, f"{axis}axis")
    here.set_major_locator(FixedLocator(ticks) if ticks else LogLocator(10, numticks=most))
    here.set_major_formatter(lambda v, _: form(v))
    here.set_minor_locator(NullLocator())


def bytes_axis(ax: Axes, values: Sequence[float], pad: float = 1.6) -> None:
    """A logarithmic axis of bytes that covers `values`, with readable ticks."""
    positive = [v for v in values if v > 0] or [1.0]
    low, high = min(positive) / pad, max(positive) * pad
    if high / low < 100:
        middle = math.sqrt(high * low)
        low, high = min(low, middle / 10), max(high, middle * 10)
    ax.set_xlim(low, high)
    log_axis(ax, form=SIZES)


def no_spines(ax: Axes, *sides: str) -> None:
    """Take away the spines of `sides`; of all four where none is named."""
    ax.spines[list(sides) or list(ax.spines)].set_visible(False)


def rows_axis(ax: Axes, names: Sequence[str], *, least: int = 0, size: float | None = None) -> None:
    """Rows 0, 1, … from the top down, named at the left, for bars that lie. least: rows for which there is room, so
    that few bars stay thin;   size: of the letters, which follows from the number of rows"""
    ax.set_yticks(range(len(names)), names, fontsize=size or rows_size(len(names)))
    ax.set_ylim(max(len(names), least) - 0.5, -0.5)
    no_spines(ax, "left")
    ax.tick_params(axis="y", length=0)


def rows_size(rows: int) -> float:
    """Size of the letters that name so many rows."""
    return 10 if rows <= 9 else 8.5 if rows <= 14 else 7


def client_ticks(ax: Axes, clients: int, *, few: int = 16) -> None:
    """A tick on the x axis for each client while there are `few`, else at round numbers."""
    ax.set_xticks(range(clients))
    if clients > few:
        ax.xaxis.set_major_locator(MaxNLocator(13, integer=True, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(lambda v, _: client_tick(v, clients))


def client_tick(value: float, clients: int) -> str:
    """The letter of the client at a tick; '' where there is none."""
    return letter(round(value)) if 0 <= round(value) < clients else ""


def class_ticks(
    ax: Axes,
    names: Sequence[str],
    axis: str = "x",
    *,
    length: int = 8,
    few: int = 20,
    most: int = 10,
    **text: Any,
) -> None:
    """The classes' names, cut to `length` letters: all of a `few`, else about `most` of them. text: as for
    `set_xticks`, such as fontsize."""
    short = shorten(names, length)
    if len(names) <= few:
        getattr(ax, f"set_{axis}ticks")(range(len(names)), short, **text)
        return
    here = getattr(ax, f"{axis}axis")
    here.set_major_locator(MaxNLocator(most, integer=True))
    here.set_major_formatter(lambda v, _: short[int(v)] if 0 <= v < len(short) else "")


# --------------------------------------------------------------------------------------------------------------- marks
def mark(
    ax: Axes,
    at: int | None,
    count: int,
    axis: str = "x",
    *,
    frame: bool = False,
    colour: str = ACCENT,
    lw: float = 2.2,
) -> None:
    """Mark column `at` of `count` (a row with axis "y"): a faint band behind, or a frame. Nothing where `at` is None or
    beyond."""
    if at is None or at >= count:
        return
    style = {"fill": False, "edgecolor": colour, "lw": lw, "zorder": 5, "clip_on": False}
    span = ax.axvspan if axis == "x" else ax.axhspan
    span(
        at - 0.5,
        at + 0.5,
        **(style if frame else {"color": colour, "alpha": 0.13, "lw": 0, "zorder": 0}),
    )


def level_line(
    ax: Axes, level: float, text: str = "", axis: str = "y", *, colour: str = QUIET, lw: float = 1, ls: Any = DOTS,
    left: bool = False, under: bool = False,
) -> None:  # fmt: skip
    """A thin dotted line across the axes at `level`, an upright with axis "x"; `text` stands over a level's right end
    (`left`: its left one; `under` it)."""
    (ax.axhline if axis == "y" else ax.axvline)(level, color=colour, lw=lw, ls=ls)
    if text:
        side = {
            "ha": "left" if left else "right",
            "fontsize": 9,
            "color": colour,
            "textcoords": "offset points",
        }
        at, away = (0.01 if left else 0.99, level), (0, -9.5 if under else 2.5)
        ax.annotate(text, at, away, xycoords=ax.get_yaxis_transform(), **side)


# --------------------------------------------------------------------------------------------------------------- lines
def mean_line(runs: Mapping[int, Points]) -> tuple[list[float], list[float]]:
    """x and the mean y of `{seed: [(x, y), …]}`, straight between their points, as far as all seeds have come."""
    curves = [tuple(zip(*points, strict=True)) for points in runs.values() if points]
    if not curves:
        return [], []
    low, high = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    shared = sorted({v for x, _ in curves for v in x if low <= v <= high})
    return shared, np.mean([np.interp(shared, x, y) for x, y in curves], axis=0).tolist()


def seed_lines(
    ax: Axes,
    runs: Mapping[int, Points],
    colour: str,
    marker: str = "",
    *,
    label: str = "",
    **style: Any,
) -> tuple[list[float], list[float]]:
    """Lines of `{seed: [(x, y), …]}`: each seed of several faintly, their mean in full. Returns the mean's x and y.

    style: of the mean's line, as for `Axes.plot`
    """
    for points in runs.values() if len(runs) > 1 else ():
        ax.plot(*zip(*points, strict=True), color=colour, lw=0.9, alpha=0.35)
    x, y = mean_line(runs)
    ax.plot(
        x,
        y,
        **{
            "color": colour,
            "marker": marker or None,
            "lw": 2.2,
            "ms": 4.5,
            "label": label or None,
            **style,
        },
    )
    return x, y


def spread(
    values: Sequence[float], gap: float, top: float = math.inf, low: float = -math.inf
) -> list[float]:
    """`values` moved so that neighbours are `gap` apart, in their order, between `low` and (while they fit) `top`."""
    order = sorted(range(len(values)), key=lambda i: -values[i])
    places, before = list(values), top + gap
    for i in order:
        before = places[i] = min(values[i], before - gap)
    before = low - gap
    for i in reversed(order):
        before = places[i] = max(places[i], before + gap)
    return places


def end_labels(
    ax: Axes,
    labels: Sequence[tuple[float, str, str]],
    *,
    size: float = 9.5,
    gap: float = 0.052,
    **style: Any,
) -> None:
    """Each line's name at its right end, beside the axes, none on another. Call it when the limits are set.

    labels: (last y, text, colour) a line;   gap: between two names, as a share of the axes' height
    """
    low, high = ax.get_ylim()
    if narrow():
        labels = [
            (y, text if "\n" in text else textwrap.fill(text, 14), colour)
            for y, text, colour in labels
        ]
        gap = max(gap, 0.034 * max((1 + text.count("\n") for _, text, _ in labels), default=1))
    places = spread([y for y, _, _ in labels], gap * (high - low), high, low)
    beside = {
        "transform": ax.get_yaxis_transform(),
        "va": "center",
        "clip_on": False,
        "gid": "outside",
    }
    for place, (_, text, colour) in zip(places, labels, strict=True):
        ax.text(1.02, place, text, color=colour, fontsize=size, **{**beside, **style})


# ------------------------------------------------------------------------------------------------- colour bars
def colour_bar(image: Any, ax: Axes | Sequence[Axes], label: str = "", **options: Any) -> Any:
    """A quiet colour bar of `image` beside `ax`; `options` as for `Figure.colorbar` (cax, pad, aspect, format, …)."""
    bar = image.axes.figure.colorbar(image, **{"pad": 0.02, "aspect": 28, "ax": ax, **options})
    bar.outline.set_visible(False)
    bar.locator = MaxNLocator(5)
    bar.ax.tick_params(labelsize=8.5, colors=QUIET, labelcolor=INK)
    if label:
        bar.set_label(label, fontsize=9, color=QUIET)
    return bar
