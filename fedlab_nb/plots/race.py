"""The race: what each method has to show once so many bytes have been spent. One-shot methods jump, others climb."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from .accuracy import LOCAL
from .identity import shorten_title
from .kit import describe_picture
from .series import Series, join_settings, select_finished
from .style import (
    ACCENT,
    FAINT,
    INK,
    LOCK,
    QUIET,
    RULE,
    Picture,
    draw_end_labels,
    drawing,
    dress,
    set_bytes_axis,
    set_percent_axis,
)
from .vector import mark
from .words import build_table, data_size, percent, plural, shorten

STEPS = 288  # from the least bytes to the most
STAGES = ("train", "upload", "fuse")
TOLERANCE = 1 + 1e-9  # a budget of a point's own bytes pays for it


class Race:
    """The picture of one race; `show(budget)` draws it for so many bytes into the same axes."""

    def __init__(self, series: Sequence[Series]) -> None:
        self.series = select_finished(series)
        self.limits = find_byte_limits(series)
        with drawing(1, 2, width_ratios=[1.5, 1]) as (self.figure, (left, right)):
            self._prepare_axes(left, right)
            self._tracks = []
            ends = []
            for row, s in enumerate(self.series):
                track = Track(left, right, row, s, is_crowded=len(self.series) > 8)
                self._tracks.append(track)
                if track.points:
                    ends.append((track.points[-1][1], shorten_title(s.name), s.look.colour))
            draw_end_labels(left, ends, size=8.5)

    def show(self, budget: float) -> Picture:
        """The picture once `budget` bytes are spent."""
        with LOCK:
            self._now.set_xdata([budget, budget])
            for track in self._tracks:
                track.update(budget)
        spent = data_size(budget)
        title = f"Accuracy against bytes spent, up to {spent}, and the stages of each method"
        return describe_picture(
            self.figure,
            title,
            join_settings(self.series),
            sentence(self.series, budget),
            table(self.series, budget),
        )

    def budget(self, step: float) -> float:
        """The bytes that are spent at a step, between the least and the most at which something happens."""
        low, high = self.limits
        return low * (high / low) ** (step / STEPS)

    def _prepare_axes(self, left: Axes, right: Axes) -> None:
        """What all methods share: at the left accuracy against bytes, at the right the names of the stages."""
        x = "bytes spent, both ways, all clients"
        dress(left, title="Test accuracy when so much is spent", x=x, grid="both", size=9.5)
        all_bytes = []
        for s in self.series:
            all_bytes += [point["bytes"] for point in find_global_points(s)]
        set_bytes_axis(left, all_bytes or [1e3, 1e6], pad=2)
        self._now = left.axvline(self.limits[1], color=ACCENT, lw=1.2, ls=(0, (3, 2)))
        set_percent_axis(left, "y", 1.03)
        right.set_axis_off()
        right.set(xlim=(0, 4.1), ylim=(max(len(self.series), 4) - 0.3, -0.9))
        style = {"ha": "center", "va": "center", "fontsize": 9.5, "color": QUIET}
        for column, name in enumerate(STAGES):
            right.text(column + 0.45, -0.62, name, **style)


class Track:
    """One method in the race: at the left a line and a mark at its end, at the right a row of boxes that fill up and
    the accuracy so far.

    points: (bytes, accuracy) of its global models, in order
    """

    def __init__(self, left: Axes, right: Axes, row: int, s: Series, *, is_crowded: bool) -> None:
        self.series = s
        self.points = []
        for point in find_global_points(s):
            self.points.append((max(point["bytes"], 1), point["accuracy"]))
        size = 8.5 if is_crowded else 10
        x, y = split_points(self.points)
        left.plot(x, y, color=RULE, lw=1.3, zorder=1)
        self._line = left.plot([], [], color=s.look.colour, ls=s.look.line, lw=2.2)[0]
        end_style = {"color": s.look.colour, "ms": 9, "clip_on": False}
        self._end = left.plot([], [], s.look.marker, **end_style)[0]
        style = {"va": "center", "fontsize": size, "color": INK}
        right.text(0, row - 0.28, shorten([s.name], 30)[0], fontweight="bold", **style)
        boxes = {
            "y": [row + 0.12] * len(STAGES),
            "left": range(len(STAGES)),
            "width": 0.9,
            "height": 0.3,
        }
        right.barh(**boxes, color=FAINT)
        self._boxes = right.barh(**boxes, color=s.look.colour)
        self._text = right.text(4.1, row + 0.12, "–", ha="right", **style)

    def update(self, budget: float) -> None:
        """Put everything where it is once `budget` bytes are spent."""
        count = count_paid_points(self.series, budget)
        paid = self.points[:count]
        self._line.set_data(*split_points(paid))
        self._end.set_data(*split_points(paid[-1:]))
        text = "no global model yet"
        if paid:
            spent, accuracy = paid[-1]
            text = f"{percent(accuracy)} for {data_size(spent)}"
        mark(self._end, f"{self.series.name}\n{text}", method=self.series.highlight_key)
        for box, part in zip(self._boxes, find_stage_shares(self.series, budget), strict=True):
            box.set_width(0.9 * part)
        self._text.set_text(describe_accuracy(find_last_point(self.series, budget), "–"))


def split_points(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """x and y of points, as matplotlib takes them."""
    return [x for x, _ in points], [y for _, y in points]


def find_byte_limits(series: Sequence[Series]) -> tuple[float, float]:
    """Least and most bytes at which something happens, for the slider."""
    values = []
    for s in select_finished(series):
        values += [point["bytes"] for point in find_global_points(s) if point["bytes"] > 0]
    if not values:
        return 1e3, 1e6
    return min(values) / 1.1, max(values)


def find_global_points(s: Series) -> list[Mapping[str, Any]]:
    """The first seed's curve, without what clients can do alone: from a global model on."""
    if not s.curves:
        return []
    return [point for point in s.curves[0] if point["phase"] != LOCAL]


def is_round_based(s: Series) -> bool:
    """Whether the method spends its bytes over many rounds."""
    if not s.curves or any(point["phase"] == LOCAL for point in s.curves[0]):
        return False
    return len({point["bytes"] for point in find_global_points(s)}) > 2


def find_last_point(s: Series, budget: float) -> Mapping[str, Any] | None:
    """The last point that `budget` bytes pay for; None: there is no global model yet."""
    count = count_paid_points(s, budget)
    if not count:
        return None
    return find_global_points(s)[count - 1]


def count_paid_points(s: Series, budget: float) -> int:
    """How many of its points, from the first on, `budget` bytes pay for."""
    return sum(point["bytes"] <= budget * TOLERANCE for point in find_global_points(s))


def describe_accuracy(point: Mapping[str, Any] | None, none: str = "none") -> str:
    """The accuracy of a point in words."""
    return none if point is None else percent(point["accuracy"])


def find_stage_shares(s: Series, budget: float) -> tuple[float, float, float]:
    """How far the stages train, upload and fuse have come, each 0–1."""
    curve = s.curves[0] if s.curves else []
    local_bytes = [point["bytes"] for point in curve if point["phase"] == LOCAL]
    start = local_bytes[0] if local_bytes else 0
    ends = [point["bytes"] for point in find_global_points(s)] or [start]
    if is_round_based(s):
        share = min(1.0, budget / ends[-1])
        return share, share, share
    upload = float(np.interp(budget, [start, ends[0]], [0, 1]))
    fuse = float(np.interp(budget, [ends[0], ends[-1]], [0, 1]))
    return float(budget >= start), upload, fuse


def sentence(series: Sequence[Series], budget: float) -> str:
    """Which method leads once so much is spent."""
    spent = f"With {data_size(budget)} spent by all clients together"
    reached = []
    for s in series:
        point = find_last_point(s, budget)
        if point is not None:
            reached.append((point["accuracy"], s.name))
    if not reached:
        return f"{spent}, no method has a global model yet."
    accuracy, leader = max(reached)
    methods = plural(len(series), "method")
    return (
        f"{spent}, {leader} leads with {percent(accuracy)}; {len(reached)} of {methods} have a "
        "global model. One seed's curves."
    )


def table(series: Sequence[Series], budget: float) -> list[dict[str, Any]]:
    """A row a method: accuracy so far and at the end, bytes at the end."""
    rows = []
    for s in series:
        now = describe_accuracy(find_last_point(s, budget))
        last = find_last_point(s, math.inf)
        total = 0 if last is None else round(last["bytes"])
        rows.append((s.name, now, describe_accuracy(last), total))
    return build_table("method | accuracy so far | at the end | bytes at the end", rows)
