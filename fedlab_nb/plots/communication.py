"""Communication: bytes up and down by phase on a log axis, and accuracy against bytes."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from ..studies.statistics import Band, difference
from .kit import describe_picture, draw_points
from .series import Series, join_settings, select_finished
from .style import (
    ACCENT,
    INK,
    SECOND,
    Picture,
    drawing,
    dress,
    is_narrow,
    legend,
    row_font_size,
    set_bytes_axis,
    set_row_axis,
)
from .words import (
    build_table,
    capitalize,
    data_size,
    describe_significance,
    format_share,
    join_words,
)

MOST_NAMED = 2  # methods beside the cheapest one that cost the same, in the sentence
MOST_ROWS = 24  # more phases than this are drawn as totals; the table still has them all


def draw_communication(series: Sequence[Series], *, client_bytes: str = "") -> Picture:
    """Phases at the left, accuracy against bytes at the right. `client_bytes`: to be said instead of the comparison."""
    done = select_finished(series)
    with drawing(1, 2, width_ratios=[1.25, 1]) as (figure, (left, right)):
        draw_phases(left, done)
        x = "bytes, both ways, all clients"
        dress(right, title="Accuracy against bytes", x=x, grid="both", size=9)
        draw_points(right, done)
    title = "Bytes up and down by phase on a log axis, and accuracy against bytes"
    text = client_bytes or describe_costs(done)
    return describe_picture(figure, title, join_settings(done), text, make_phase_table(done))


def draw_phases(ax: Axes, series: Sequence[Series]) -> None:
    """Two lollipops a phase, up and down, on a logarithmic axis. Methods are told apart by their names in bold."""
    has_phases = sum(len(s.phases) + 1 for s in series) <= MOST_ROWS
    dress(ax, title="Bytes by phase, all clients", grid="x")
    size = row_font_size(sum(len(s.phases) if has_phases else 1 for s in series))
    rows: list[tuple[str, tuple[float, float]]] = []  # name, (bytes up, bytes down)
    for s in series:
        if not has_phases:
            rows.append((s.lines, (s.up, s.down)))
            continue
        style = {"fontsize": size, "fontweight": "bold", "color": INK, "va": "center"}
        ax.text(0.01, len(rows), s.name, transform=ax.get_yaxis_transform(), **style)
        rows.append(("", (0, 0)))
        rows += s.phases.items()
    set_row_axis(ax, [name for name, _ in rows], least=4, size=size)
    sizes = []
    for _, both_ways in rows:
        sizes += [count for count in both_ways if count]
    set_bytes_axis(ax, [1.0, *sizes])
    ax.set_xlim(left=max(1.0, min(sizes, default=1.0) / 30))
    ups = [up for _, (up, _) in rows]
    downs = [down for _, (_, down) in rows]
    draw_lollipops(ax, ups, -0.16, "^", ACCENT, "up, client to server")
    draw_lollipops(ax, downs, 0.16, "v", SECOND, "down, server to client")
    place, corner = "upper center", (0.4, -0.09)
    if is_narrow():  # names take much
        place, corner = "upper right", (1.0, -0.09)
    legend(ax, loc=place, bbox_to_anchor=corner, ncols=2, handletextpad=0.1, columnspacing=1.2)


def draw_lollipops(
    ax: Axes, sizes: Sequence[float], shift: float, marker: str, colour: str, label: str
) -> None:
    """A line with a mark at its end for each row that has bytes, a little above or below the row."""
    places = [row + shift for row, size in enumerate(sizes) if size]
    ends = [size for size in sizes if size]
    ax.hlines(places, 1, ends, color=colour, lw=1.8, alpha=0.6)
    ax.plot(ends, places, marker, color=colour, ms=6.5, label=label)


def describe_costs(series: Sequence[Series]) -> str:
    """The cheapest method, and how much more the dearest costs and brings."""
    if not series:
        return "No result yet."
    rivals = [s for s in series if s.total and not s.bound] or list(series)
    cheap = min(rivals, key=lambda s: (s.total, -s.mean))
    dear = max(rivals, key=lambda s: (s.total, s.mean))
    sent = f"{data_size(cheap.up)} up and {data_size(cheap.down)} down for all clients"
    others = [s.name for s in rivals if s.total == cheap.total and s is not cheap]
    subject = f"{capitalize(cheap.name)} costs"
    if 0 < len(others) <= MOST_NAMED:
        subject = f"{capitalize(join_words([cheap.name, *others]))} cost"
    elif others:
        subject = f"{capitalize(cheap.name)} and {len(others)} others cost"
    if cheap.total == dear.total:
        same = "the same, " if others else ""
        return f"{subject} {same}{sent}."
    times = dear.total / max(cheap.total, 1)
    return (
        f"{subject} least, {sent}; {dear.name} costs {times:.1f} times as much "
        f"{describe_gain(dear, cheap)}."
    )


def describe_gain(dear: Series, cheap: Series) -> str:
    """What the dearer method brings: 'and gets 57 points more'."""
    ahead = difference(dear.accuracies, cheap.accuracies, paired=dear.setting == cheap.setting)
    points = format_share(Band(abs(ahead.mean), ahead.half_width, ahead.n))
    if points == "0":
        return "and gets the same accuracy"
    more = "more" if ahead.mean > 0 else "less"
    unit = "point" if points == "1" else "points"
    return describe_significance(
        ahead,
        noise=f"for {points} {unit} {more}, which is within the noise",
        clear=f"and gets {points} {unit} {more}",
        one_seed=f"and gets {points} {unit} {more} (one seed: nobody can tell whether by chance)",
    )


def make_phase_table(series: Sequence[Series]) -> list[dict[str, Any]]:
    """A row for each phase of a method, and one for all of them."""
    rows = []
    for s in series:
        for phase, (up, down) in (*s.phases.items(), ("all", (s.up, s.down))):
            rows.append((s.name, phase, round(up), round(down)))
    return build_table("method | phase | bytes up | bytes down", rows)
