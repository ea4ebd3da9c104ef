"""The race: what each method has to show once so many bytes have been spent. One-shot methods jump, others climb."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from .accuracy import LOCAL
from .identity import shorten_title
from .kit import told
from .series import Series, finished, settings_of
from .style import (
    ACCENT,
    FAINT,
    INK,
    LOCK,
    QUIET,
    RULE,
    Picture,
    bytes_axis,
    drawing,
    dress,
    end_labels,
    percent_axis,
)
from .vector import mark
from .words import data_size, percent, plural, shorten, tabled

STEPS = 288  # from the least bytes to the most
STAGES = ("train", "upload", "fuse")


class Race:
    """The picture of one race; `show(budget)` moves it."""

    def __init__(self, series: Sequence[Series]) -> None:
        self.done = finished(series)
        self.limits = limits(series)
        with drawing(1, 2, width_ratios=[1.5, 1]) as (self.figure, (left, right)):
            self._axes(left, right)
            self._tracks = [self._track(left, right, row, s) for row, s in enumerate(self.done)]
            tracks = zip(self.done, self._tracks, strict=True)
            end_labels(
                left,
                [(xy[-1][1], shorten_title(s.name), s.look.colour) for s, (xy, *_) in tracks if xy],
                size=8.5,
            )

    def show(self, budget: float) -> Picture:
        with LOCK:
            self._place(budget)
        done = self.done
        title = f"Accuracy against bytes spent, up to {data_size(budget)}, and the stages of each method"
        return told(
            self.figure, title, settings_of(done), sentence(done, budget), table(done, budget)
        )

    def budget(self, step: float) -> float:
        """The bytes that are spent at a step, between the least and the most at which something happens."""
        low, high = self.limits
        return low * (high / low) ** (step / STEPS)

    # ------------------------------------------------------------------------------------------------ artists
    def _axes(self, left: Axes, right: Axes) -> None:
        """What all methods share: at the left accuracy against bytes, at the right the names of the stages."""
        x = "bytes spent, both ways, all clients"
        dress(left, title="Test accuracy when so much is spent", x=x, grid="both", size=9.5)
        bytes_axis(left, [p["bytes"] for s in self.done for p in points(s)] or [1e3, 1e6], pad=2)
        self._now = left.axvline(self.limits[1], color=ACCENT, lw=1.2, ls=(0, (3, 2)))
        percent_axis(left, "y", 1.03)
        right.set_axis_off()
        right.set(xlim=(0, 4.1), ylim=(max(len(self.done), 4) - 0.3, -0.9))
        for column, name in enumerate(STAGES):
            right.text(
                column + 0.45, -0.62, name, ha="center", va="center", fontsize=9.5, color=QUIET
            )

    def _track(self, left: Axes, right: Axes, row: int, s: Series) -> tuple:
        """One method: its points; the line behind and the mark at its end; its row of boxes that fill up, and the
        accuracy so far."""
        xy, small = (
            [(max(p["bytes"], 1), p["accuracy"]) for p in points(s)],
            10 if len(self.done) <= 8 else 8.5,
        )
        left.plot(*np.array(xy).reshape(-1, 2).T, color=RULE, lw=1.3, zorder=1)
        line = left.plot([], [], color=s.look.colour, ls=s.look.line, lw=2.2)[0]
        end = left.plot([], [], s.look.marker, color=s.look.colour, ms=9, clip_on=False)[0]
        right.text(
            0,
            row - 0.28,
            shorten([s.name], 30)[0],
            va="center",
            fontsize=small,
            color=INK,
            fontweight="bold",
        )
        places = {
            "y": [row + 0.12] * len(STAGES),
            "left": range(len(STAGES)),
            "width": 0.9,
            "height": 0.3,
        }
        right.barh(**places, color=FAINT)
        boxes = right.barh(**places, color=s.look.colour)
        text = right.text(4.1, row + 0.12, "–", ha="right", va="center", fontsize=small, color=INK)
        return xy, line, end, boxes, text

    def _place(self, budget: float) -> None:
        """Put everything where it is when so much is spent."""
        self._now.set_xdata([budget, budget])
        for s, (xy, line, end, boxes, text) in zip(self.done, self._tracks, strict=True):
            count = paid_for(s, budget)
            line.set_data(*np.array(xy[:count]).reshape(-1, 2).T)
            end.set_data(*np.array(xy[:count][-1:]).reshape(-1, 2).T)
            says = "no global model yet"
            if count:
                spent, accuracy = xy[count - 1]
                says = f"{percent(accuracy)} for {data_size(spent)}"
            mark(end, f"{s.name}\n{says}", method=s.held_as)
            for box, part in zip(boxes, share(s, budget), strict=True):
                box.set_width(0.9 * part)
            text.set_text(reached(at(s, budget), "–"))


def limits(series: Sequence[Series]) -> tuple[float, float]:
    """Least and most bytes at which something happens, for the slider."""
    values = [p["bytes"] for s in finished(series) for p in points(s) if p["bytes"] > 0]
    return (min(values) / 1.1, max(values)) if values else (1e3, 1e6)


def points(s: Series) -> list[Mapping[str, Any]]:
    """The first seed's curve, without what clients can do alone: from a global model on."""
    return [p for p in (s.curves[0] if s.curves else []) if p["phase"] != LOCAL]


def is_round_based(s: Series) -> bool:
    """Whether the method spends its bytes over many rounds."""
    return (
        bool(s.curves)
        and all(p["phase"] != LOCAL for p in s.curves[0])
        and len({p["bytes"] for p in points(s)}) > 2
    )


def at(s: Series, budget: float) -> Mapping[str, Any] | None:
    """The last point that `budget` bytes pay for; None: there is no global model yet."""
    paid = paid_for(s, budget)
    return points(s)[paid - 1] if paid else None


def paid_for(s: Series, budget: float) -> int:
    """How many of its points, from the first on, `budget` bytes pay for."""
    return sum(p["bytes"] <= budget * (1 + 1e-9) for p in points(s))


def reached(point: Mapping[str, Any] | None, none: str = "none") -> str:
    """The accuracy of a point in words."""
    return none if point is None else percent(point["accuracy"])


def share(s: Series, budget: float) -> tuple[float, float, float]:
    """How far the stages train, upload and fuse have come, each 0–1."""
    first = next((p["bytes"] for p in (s.curves[0] if s.curves else []) if p["phase"] == LOCAL), 0)
    ends = [p["bytes"] for p in points(s)] or [first]
    if is_round_based(s):
        return (min(1.0, budget / ends[-1]),) * 3
    upload, fuse = (
        float(np.interp(budget, way, [0, 1])) for way in ([first, ends[0]], [ends[0], ends[-1]])
    )
    return float(budget >= first), upload, fuse


def sentence(series: Sequence[Series], budget: float) -> str:
    shown = [(now["accuracy"], s.name) for s in series if (now := at(s, budget)) is not None]
    if not shown:
        return f"With {data_size(budget)} spent by all clients together, no method has a global model yet."
    share, best = max(shown)
    text = f"With {data_size(budget)} spent by all clients together, {best} leads with {percent(share)}"
    return f"{text}; {len(shown)} of {plural(len(series), 'method')} have a global model. One seed's curves."


def table(series: Sequence[Series], budget: float) -> list[dict]:
    ends = [(s, at(s, math.inf)) for s in series]
    rows = (
        (s.name, reached(at(s, budget)), reached(p), 0 if p is None else round(p["bytes"]))
        for s, p in ends
    )
    return tabled("method | accuracy so far | at the end | bytes at the end", rows)
