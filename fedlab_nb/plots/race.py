"""The race: what each method has to show once so many bytes have been spent. One-shot methods jump, others climb."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes

from .accuracy import LOCAL
from .axes import percent_axis
from .communication import bytes_axis
from .series import Series, finished, settings_of
from .style import ACCENT, FAINT, INK, QUIET, RULE, Picture, drawing, dress, shorten
from .vector import mark
from .words import data_size, percent, plural, tabled

STAGES = ("train", "upload", "fuse")


def race(series: Sequence[Series], budget: float) -> Picture:
    """Accuracy against bytes up to `budget` (bytes of all clients, both ways) at the left, stages at the right."""
    done = finished(series)
    with drawing(1, 2, width_ratios=[1.5, 1]) as (figure, (left, right)):
        tracks(left, done, budget)
        stages(right, done, budget)
    return Picture(figure, alt_text(done, budget), sentence(done, budget), table(done, budget))


def limits(series: Sequence[Series]) -> tuple[float, float]:
    """Least and most bytes at which something happens, for the slider."""
    values = [p["bytes"] for s in finished(series) for p in points(s) if p["bytes"] > 0]
    return (min(values) / 2, max(values)) if values else (1e3, 1e6)


def points(s: Series) -> list[Mapping[str, Any]]:
    """The first seed's curve, without what clients can do alone: from a global model on."""
    return [p for p in (s.curves[0] if s.curves else []) if p["phase"] != LOCAL]


def is_round_based(s: Series) -> bool:
    """Whether the method spends its bytes over many rounds."""
    return bool(s.curves) and all(p["phase"] != LOCAL for p in s.curves[0]) and len({p["bytes"] for p in points(s)}) > 2


def at(s: Series, budget: float) -> Mapping[str, Any] | None:
    """The last point that `budget` bytes pay for; None: there is no global model yet."""
    paid = [p for p in points(s) if p["bytes"] <= budget * (1 + 1e-9)]
    return paid[-1] if paid else None


def reached(point: Mapping[str, Any] | None, none: str = "none") -> str:
    """The accuracy of a point in words."""
    return none if point is None else percent(point["accuracy"])


def tracks(ax: Axes, series: Sequence[Series], budget: float) -> None:
    x = "bytes spent, both ways, all clients"
    dress(ax, title="Test accuracy when so much is spent", x=x, grid="both", size=9.5)
    for s in series:
        passed = points(s)
        x, y = [max(p["bytes"], 1) for p in passed], [p["accuracy"] for p in passed]
        ax.plot(x, y, color=RULE, lw=1.3, zorder=1)
        paid = [(a, b) for a, b in zip(x, y, strict=True) if a <= budget * (1 + 1e-9)]
        if paid:
            ax.plot(*zip(*paid, strict=True), color=s.look.colour, ls=s.look.line, lw=2.2)
            end = ax.plot(*paid[-1], s.look.marker, color=s.look.colour, ms=9, clip_on=False)[0]
            mark(end, f"{s.name}\n{percent(paid[-1][1])} for {data_size(paid[-1][0])}", method=s.held_as)
    bytes_axis(ax, [p["bytes"] for s in series for p in points(s)] or [1e3, 1e6], pad=2)
    ax.axvline(budget, color=ACCENT, lw=1.2, ls=(0, (3, 2)))
    percent_axis(ax, "y", 1.03)


def share(s: Series, budget: float) -> tuple[float, float, float]:
    """How far the stages train, upload and fuse have come, each 0–1."""
    total = points(s)[-1]["bytes"] if points(s) else 0
    if is_round_based(s):
        part = min(1.0, budget / total) if total else 1.0
        return part, part, part
    first = next((p["bytes"] for p in (s.curves[0] if s.curves else []) if p["phase"] == LOCAL), 0)
    trained = float(budget >= first)
    uploaded = points(s)[0]["bytes"] if points(s) else total
    up = min(1.0, max(0.0, (budget - first) / (uploaded - first))) if uploaded > first else trained
    rest = 1.0 if total <= uploaded else min(1.0, max(0.0, (budget - uploaded) / (total - uploaded)))
    return trained, up, rest if up >= 1 else 0.0


def stages(ax: Axes, series: Sequence[Series], budget: float) -> None:
    """One row a method: three boxes that fill up, and the accuracy so far."""
    rows = max(len(series), 4)
    ax.set_axis_off()
    ax.set(xlim=(0, 4.1), ylim=(rows - 0.3, -0.9))
    small = 10 if rows <= 8 else 8.5
    for column, name in enumerate(STAGES):
        ax.text(column + 0.45, -0.62, name, ha="center", va="center", fontsize=9.5, color=QUIET)
    for i, s in enumerate(series):
        ax.text(0, i - 0.28, shorten([s.name], 30)[0], va="center", fontsize=small, color=INK, fontweight="bold")
        for column, part in enumerate(share(s, budget)):
            ax.barh(i + 0.12, 0.9, left=column, height=0.3, color=FAINT)
            ax.barh(i + 0.12, 0.9 * part, left=column, height=0.3, color=s.look.colour)
        ax.text(4.1, i + 0.12, reached(at(s, budget), "–"), ha="right", va="center", fontsize=small)


def sentence(series: Sequence[Series], budget: float) -> str:
    if not series:
        return "No result yet."
    shown = [(s, now) for s in series if (now := at(s, budget)) is not None]
    text = f"With {data_size(budget)} spent by all clients together, "
    if not shown:
        return text + "no method has a global model yet."
    best, now = max(shown, key=lambda pair: pair[1]["accuracy"])
    text += f"{best.name} leads with {percent(now['accuracy'])}"
    if waiting := len(series) - len(shown):
        text += f"; {plural(waiting, 'method')} {'has' if waiting == 1 else 'have'} no global model yet"
    climbing = [(s, p) for s, p in shown if is_round_based(s) and p is not points(s)[-1]]
    for s, p in climbing[:1]:
        text += f"; {s.name} is on its way with {percent(p['accuracy'])}"
    return text + ". One seed's curves."


def alt_text(series: Sequence[Series], budget: float) -> str:
    values = ", ".join(f"{s.name} {reached(at(s, budget))}" for s in series) or "no result yet"
    return (
        f"Accuracy against bytes spent on a log axis, up to {data_size(budget)} ({settings_of(series)}); beside it the "
        f"stages train, upload and fuse of each method. So far: {values}."
    )


def table(series: Sequence[Series], budget: float) -> list[dict]:
    ends = [(s, at(s, math.inf)) for s in series]
    rows = ((s.name, reached(at(s, budget)), reached(p), 0 if p is None else round(p["bytes"])) for s, p in ends)
    return tabled("method | accuracy so far | at the end | bytes at the end", rows)
