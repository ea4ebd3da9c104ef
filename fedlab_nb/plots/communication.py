"""Communication: bytes up and down by phase on a log axis, and accuracy against bytes."""

import math
from collections import defaultdict
from collections.abc import Sequence

from matplotlib.axes import Axes

from ..study.statistics import difference
from .axes import SIZES, log_axis, percent_axis, rows_axis
from .series import Series, finished, settings_of
from .style import ACCENT, FAINT, INK, SECOND, Picture, drawing, dress, legend
from .vector import mark
from .words import data_size, percent, plural, significance, tabled

ROWS = 24  # more phases than this are drawn as totals; the table still has them all
# Where a point's name may stand: alignment, and how far to the right of the point and above it, in parts of the axes.
SIDES = [("left", 0.045, 0), ("right", -0.045, 0), ("center", 0, 0.055), ("center", 0, -0.055)]
SIDES += [(side, right, up) for up in (0.05, -0.05) for side, right in (("left", 0.03), ("right", -0.03))]
Box = tuple[float, float, float, float]  # left, right, bottom, top
CROSSED = 5  # how much worse it is to cross a line than to meet as much of a label
BEFORE = {"left": 0, "center": 0.5, "right": 1}  # how much of a name stands before where it is put


def communication(series: Sequence[Series], *, client_bytes: str = "") -> Picture:
    """Phases at the left, accuracy against bytes at the right. `client_bytes`: to be said instead of the comparison."""
    done = finished(series)
    with drawing(1, 2, width_ratios=[1.25, 1]) as (figure, (left, right)):
        phases(left, done)
        against_bytes(right, done)
    return Picture(figure, alt_text(done), client_bytes or sentence(done), table(done))


def phases(ax: Axes, series: Sequence[Series]) -> None:
    """Two lollipops a phase, up and down, on a logarithmic axis. Methods are told apart by their heading."""
    by_phase = sum(len(s.phases) + 1 for s in series) <= ROWS
    dress(ax, title="Bytes by phase, all clients", grid="x")
    y, names, heads = 0.0, {}, []  # {place: phase}, [(place, series)]
    lollipops = defaultdict(list)  # {(marker, colour, pinned): [(bytes, y)]}
    for s in series:
        if by_phase:
            heads.append((y, s))
            y += 0.9
        for phase, (up, down) in (s.phases if by_phase else {s.lines: (s.up, s.down)}).items():
            for count, shift, marker, colour in ((up, -0.16, "^", ACCENT), (down, 0.16, "v", SECOND)):
                if count:
                    lollipops[marker, colour, s.pinned].append((count, y + shift))
            names[y] = phase
            y += 1
        y += 0.25 * by_phase
    for (marker, colour, pinned), points in lollipops.items():
        x, places = zip(*points, strict=True)
        ax.hlines(places, 1, x, color=colour, lw=1.8, alpha=0.35 if pinned else 0.6)
        ax.plot(x, places, marker, color=colour, ms=6.5, alpha=0.6 if pinned else 1)
    size = 10 if y <= 13 else 8.5 if y <= 20 else 7
    rows_axis(ax, list(names.values()), least=4, size=size)
    ax.set_yticks(list(names), list(names.values()))
    for place, s in heads:
        if place:
            ax.axhline(place - 0.6, color=FAINT, lw=1)
        beside = {"xycoords": ("axes fraction", "data"), "xytext": (4, 0), "textcoords": "offset points"}
        ax.annotate(s.name, (0, place), va="center", fontsize=size, fontweight="bold", color=INK, **beside)
    seen = [1.0, *(count for points in lollipops.values() for count, _ in points)]
    bytes_axis(ax, seen)
    ax.set_xlim(left=max(1.0, min([v for v in seen if v > 1] or [1.0]) / 30))
    ax.set_ylim(max(y, 4) - 0.4, -0.7)
    ax.plot([], [], "^", color=ACCENT, label="up, client to server")
    ax.plot([], [], "v", color=SECOND, label="down, server to client")
    legend(ax, loc="upper center", bbox_to_anchor=(0.4, -0.09), ncol=2, handletextpad=0.1, columnspacing=1.2)


def against_bytes(ax: Axes, series: Sequence[Series]) -> None:
    """One point a series, with its band over seeds; pinned ones hollow. Free methods stand at the left edge."""
    dress(ax, title="Accuracy against bytes", x="bytes, both ways, all clients", grid="both", size=9)
    shown = sorted(series, key=lambda s: (s.total, s.mean))
    size = 9 if len(shown) <= 10 else 7
    for s in shown:
        x, (hue, marker, _) = max(s.total, 1.0), s.look
        ax.plot([x] * len(s.ends), s.ends, color=hue, lw=1.6, alpha=0.6)
        point = ax.plot([x], [s.mean], marker, ms=size, color=hue, mfc="white" if s.pinned else hue, mew=1.6)[0]
        mark(point, s.says, method=s.held_as)
    bytes_axis(ax, [s.total for s in series if s.total] or [1e3, 1e6], pad=2.5)
    percent_axis(ax, "y", 1.03)
    name_points(ax, shown)


def name_points(ax: Axes, series: Sequence[Series], besides: Sequence[Box] = ()) -> None:
    """A label beside each point, where it meets the fewest others; the sizes of letters are estimated, not measured.

    besides: lines that no label should cross, in parts of the axes; labels are in two lines then, which are shorter
    """
    low, high = ax.get_xlim()
    font = 9 if len(series) <= 10 else 7.5
    inches = ax.get_position().width * ax.figure.get_figwidth()
    tall, wide, dot = 0.0045 * font, 0.62 * font / 72 / inches, 0.03  # a line, a letter, a point: parts of the axes
    tops = ax.get_ylim()[1]
    places = [(math.log(max(s.total, low) / low) / math.log(high / low), s.mean / tops) for s in series]
    taken = [*besides] * CROSSED + [(x - dot, x + dot, y - dot, y + dot) for x, y in places]
    for s, (x, y) in zip(series, places, strict=True):
        text = s.lines if besides else s.name
        rows = text.split("\n")
        width, height, boxes = wide * max(map(len, rows)), tall * len(rows), {}
        for side, right, up in SIDES:
            start = x + right - width * BEFORE[side]
            boxes[side, x + right, y + up] = start, start + width, y + up - height / 2, y + up + height / 2
        side, *at = best = min(boxes, key=lambda place, boxes=boxes: cost(boxes[place], taken))
        taken.append(boxes[best])
        ax.text(*at, text, transform=ax.transAxes, fontsize=font, color=INK, ha=side, va="center")


def cost(box: Box, taken: Sequence[Box]) -> float:
    """How much of `box` is covered by others or lies outside the axes."""
    left, right, bottom, top = box
    area = 0.0
    for le, r, b, t in taken:
        area += max(0.0, min(right, r) - max(left, le)) * max(0.0, min(top, t) - max(bottom, b))
    return area + max(0.0, -left) + max(0.0, right - 1.02) + max(0.0, -bottom) + max(0.0, top - 1.0)


def bytes_axis(ax: Axes, values: Sequence[float], pad: float = 1.6) -> None:
    """A logarithmic axis of bytes that covers `values`, with readable ticks."""
    positive = [v for v in values if v > 0] or [1.0]
    low, high = min(positive) / pad, max(positive) * pad
    if high / low < 100:
        middle = math.sqrt(high * low)
        low, high = min(low, middle / 10), max(high, middle * 10)
    ax.set_xlim(low, high)
    log_axis(ax, form=SIZES)


def sentence(series: Sequence[Series]) -> str:
    if not series:
        return "No result yet."
    real = [s for s in series if s.total and not s.bound] or list(series)
    cheap, dear = min(real, key=lambda s: (s.total, -s.mean)), max(real, key=lambda s: (s.total, s.mean))
    several = sum(s.total == cheap.total for s in real) > 1
    if cheap.total == dear.total:
        who = "Each method" if several else cheap.name
        return f"{who} moves {data_size(cheap.up)} up and {data_size(cheap.down)} down, all clients together."
    times = (
        f"{dear.name} costs {dear.total / max(cheap.total, 1):.1f} times as much and is {how_much_better(dear, cheap)}"
    )
    least = "is the best of those that cost least" if several else "costs least"
    return f"{cheap.name} {least}, {data_size(cheap.total)} up and down for all clients; {times}."


def how_much_better(one: Series, other: Series) -> str:
    """'30 ± 4 points better' or 'as accurate', and whether that is more than noise."""
    ahead = difference(one.accuracies, other.accuracies, paired=one.setting == other.setting)
    apart, wide = round(abs(100 * ahead.mean)), f"{100 * ahead.half_width:.0f}"
    word = "better" if ahead.mean > 0 else "worse"
    bare, banded = f"{plural(apart, 'point')} {word}", f"{apart} ± {wide} points {word}"
    if not apart:
        bare, banded = "as accurate", f"as accurate (0 ± {wide} points)"
    alone = f"{bare}; with one seed nobody can tell whether that is noise"
    noise = f"{banded}, which is within the noise" if apart else banded
    return significance(ahead, noise=noise, clear=banded, one_seed=alone)


def alt_text(series: Sequence[Series]) -> str:
    each = [f"{s.name} {data_size(s.up)} up and {data_size(s.down)} down at {percent(s.mean)}" for s in series]
    about = f"Bytes up and down by phase on a log axis, and accuracy against bytes ({settings_of(series)})"
    return f"{about}: {', '.join(each) or 'no result yet'}."


def table(series: Sequence[Series]) -> list[dict]:
    parts = ((s.name, phase, sent) for s in series for phase, sent in (*s.phases.items(), ("all", (s.up, s.down))))
    return tabled("method | phase | bytes up | bytes down", ((*names, *map(round, sent)) for *names, sent in parts))
