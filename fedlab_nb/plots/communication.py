"""Communication: bytes up and down by phase on a log axis, and accuracy against bytes."""

from collections import defaultdict
from collections.abc import Sequence

from matplotlib.axes import Axes

from ..studies.statistics import difference
from .axes import rows_axis
from .kit import bytes_axis, points, told
from .series import Series, finished, settings_of
from .style import ACCENT, FAINT, INK, SECOND, Picture, drawing, dress, legend
from .words import data_size, plural, significance, tabled

ROWS = 24  # more phases than this are drawn as totals; the table still has them all


def communication(series: Sequence[Series], *, client_bytes: str = "") -> Picture:
    """Phases at the left, accuracy against bytes at the right. `client_bytes`: to be said instead of the comparison."""
    done = finished(series)
    with drawing(1, 2, width_ratios=[1.25, 1]) as (figure, (left, right)):
        phases(left, done)
        against_bytes(right, done)
    title = "Bytes up and down by phase on a log axis, and accuracy against bytes"
    return told(figure, title, settings_of(done), client_bytes or sentence(done), table(done))


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
    for (marker, colour, pinned), ends in lollipops.items():
        x, places = zip(*ends, strict=True)
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
    seen = [1.0, *(count for ends in lollipops.values() for count, _ in ends)]
    bytes_axis(ax, seen)
    ax.set_xlim(left=max(1.0, min([v for v in seen if v > 1] or [1.0]) / 30))
    ax.set_ylim(max(y, 4) - 0.4, -0.7)
    ax.plot([], [], "^", color=ACCENT, label="up, client to server")
    ax.plot([], [], "v", color=SECOND, label="down, server to client")
    legend(ax, loc="upper center", bbox_to_anchor=(0.4, -0.09), ncol=2, handletextpad=0.1, columnspacing=1.2)


def against_bytes(ax: Axes, series: Sequence[Series]) -> None:
    """One point a series."""
    dress(ax, title="Accuracy against bytes", x="bytes, both ways, all clients", grid="both", size=9)
    points(ax, series)


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


def table(series: Sequence[Series]) -> list[dict]:
    parts = ((s.name, phase, sent) for s in series for phase, sent in (*s.phases.items(), ("all", (s.up, s.down))))
    return tabled("method | phase | bytes up | bytes down", ((*names, *map(round, sent)) for *names, sent in parts))
