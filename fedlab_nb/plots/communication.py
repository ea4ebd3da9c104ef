"""Communication: bytes up and down by phase on a log axis, and accuracy against bytes."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from ..studies.statistics import difference
from .kit import points, told
from .series import Series, finished, settings_of
from .style import (
    ACCENT,
    INK,
    SECOND,
    Picture,
    bytes_axis,
    drawing,
    dress,
    legend,
    narrow,
    rows_axis,
    rows_size,
)
from .words import capital, data_size, significance, tabled
from .words import points as in_points

ROWS = 24  # more phases than this are drawn as totals; the table still has them all


def communication(series: Sequence[Series], *, client_bytes: str = "") -> Picture:
    """Phases at the left, accuracy against bytes at the right. `client_bytes`: to be said instead of the comparison."""
    done = finished(series)
    with drawing(1, 2, width_ratios=[1.25, 1]) as (figure, (left, right)):
        phases(left, done)
        dress(
            right,
            title="Accuracy against bytes",
            x="bytes, both ways, all clients",
            grid="both",
            size=9,
        )
        points(right, done)
    title = "Bytes up and down by phase on a log axis, and accuracy against bytes"
    return told(figure, title, settings_of(done), client_bytes or sentence(done), table(done))


def phases(ax: Axes, series: Sequence[Series]) -> None:
    """Two lollipops a phase, up and down, on a logarithmic axis. Methods are told apart by their names in bold."""
    by_phase = sum(len(s.phases) + 1 for s in series) <= ROWS
    dress(ax, title="Bytes by phase, all clients", grid="x")
    rows: list[tuple[str, tuple[float, float]]] = []
    size = rows_size(sum(len(s.phases) if by_phase else 1 for s in series))
    for s in series:
        if by_phase:
            bold = {"fontsize": size, "fontweight": "bold", "color": INK, "va": "center"}
            ax.text(0.01, len(rows), s.name, transform=ax.get_yaxis_transform(), **bold)
        rows += [("", (0, 0)), *s.phases.items()] if by_phase else [(s.lines, (s.up, s.down))]
    rows_axis(ax, [name for name, _ in rows], least=4, size=size)
    seen = [count for _, sent in rows for count in sent if count]
    bytes_axis(ax, [1.0, *seen])
    ax.set_xlim(left=max(1.0, min(seen, default=1.0) / 30))
    ways = (
        ("up, client to server", -0.16, "^", ACCENT),
        ("down, server to client", 0.16, "v", SECOND),
    )
    for way, (label, shift, marker, colour) in enumerate(ways):
        at = [i + shift for i, (_, sent) in enumerate(rows) if sent[way]]
        sizes = [sent[way] for _, sent in rows if sent[way]]
        ax.hlines(at, 1, sizes, color=colour, lw=1.8, alpha=0.6)
        ax.plot(sizes, at, marker, color=colour, ms=6.5, label=label)
    place = (
        ("upper right", (1.0, -0.09)) if narrow() else ("upper center", (0.4, -0.09))
    )  # names take much
    legend(ax, loc=place[0], bbox_to_anchor=place[1], ncols=2, handletextpad=0.1, columnspacing=1.2)


def sentence(series: Sequence[Series]) -> str:
    if not series:
        return "No result yet."
    real = [s for s in series if s.total and not s.bound] or list(series)
    cheap, dear = (
        min(real, key=lambda s: (s.total, -s.mean)),
        max(real, key=lambda s: (s.total, s.mean)),
    )
    sent = f"{data_size(cheap.up)} up and {data_size(cheap.down)} down for all clients"
    others = sum(s.total == cheap.total for s in real) - 1
    cost = (
        " costs"
        if not others
        else " and one other cost"
        if others == 1
        else f" and {others} others cost"
    )
    if cheap.total == dear.total:
        return f"{capital(cheap.name)}{cost} {'the same, ' if others else ''}{sent}."
    ahead = difference(dear.accuracies, cheap.accuracies, paired=dear.setting == cheap.setting)
    verdict = significance(
        ahead, clear="clear", one_seed="with one seed nobody can tell whether that is noise"
    )
    times = f"{dear.total / max(cheap.total, 1):.1f} times as much"
    said = f"{capital(cheap.name)}{cost} least, {sent}; {dear.name} costs {times}"
    return f"{said}, for {in_points(ahead)} of accuracy ({verdict})."


def table(series: Sequence[Series]) -> list[dict]:
    parts = (
        (s.name, phase, sent)
        for s in series
        for phase, sent in (*s.phases.items(), ("all", (s.up, s.down)))
    )
    return tabled(
        "method | phase | bytes up | bytes down",
        ((*names, *map(round, sent)) for *names, sent in parts),
    )
