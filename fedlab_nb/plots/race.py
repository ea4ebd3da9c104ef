"""The picture of the race: each method's accuracy after a number of bytes has been spent. One-shot
methods jump, others climb.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes

from .accuracy import LOCAL
from .identity import shorten_method_title
from .kit import describe_picture
from .marks import attach_hover_text
from .series import CurvePoint, MethodResults, join_setting_texts, select_results_with_accuracies
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
    set_log_bytes_x_axis,
    set_percent_axis,
)
from .words import (
    TableRows,
    build_table,
    format_count_and_noun,
    format_data_size,
    format_percent,
    shorten_labels,
)

STEPS = 288  # steps of the slider, from the fewest bytes to the most
STAGES = ("train", "upload", "fuse")
TOLERANCE = 1 + 1e-9  # for rounding errors: a budget equal to a point's bytes is enough for it


class ByteRange(NamedTuple):
    """The fewest and the most bytes of a slider."""

    least: float
    most: float


class RacePicture:
    """The picture of one race. `show(budget_bytes)` draws it into the same axes."""

    def __init__(self, series: Sequence[MethodResults]) -> None:
        self.series = select_results_with_accuracies(series)
        self.limits = find_byte_range(series)
        with drawing(1, 2, width_ratios=[1.5, 1]) as (self.figure, (left, right)):
            self._prepare_axes(left, right)
            self._tracks = []
            ends = []
            for row, s in enumerate(self.series):
                track = RaceTrack(left, right, row, s, is_crowded=len(self.series) > 8)
                self._tracks.append(track)
                if track.points:
                    ends.append((track.points[-1][1], shorten_method_title(s.name), s.look.colour))
            draw_end_labels(left, ends, font_size=8.5)

    def show(self, budget_bytes: float) -> Picture:
        """Draw the race after `budget_bytes` bytes have been spent, and return the picture."""
        with LOCK:
            self._budget_line.set_xdata([budget_bytes, budget_bytes])
            for track in self._tracks:
                track.update(budget_bytes)
        spent = format_data_size(budget_bytes)
        title = f"Accuracy against bytes spent, up to {spent}, and the stages of each method"
        return describe_picture(
            self.figure,
            title,
            join_setting_texts(self.series),
            describe_leader(self.series, budget_bytes),
            make_race_table(self.series, budget_bytes),
        )

    def compute_budget_bytes(self, slider_step: float) -> float:
        """Compute the bytes spent at a step of the slider, 0 to STEPS, on a logarithmic scale."""
        low, high = self.limits
        return low * (high / low) ** (slider_step / STEPS)

    def _prepare_axes(self, left: Axes, right: Axes) -> None:
        """Set up the axes for all methods: accuracy against bytes on the left, stages on the right."""
        x = "bytes spent, both ways, all clients"
        dress(left, title="Test accuracy when so much is spent", x=x, grid="both", size=9.5)
        all_bytes = []
        for s in self.series:
            all_bytes += [point["bytes"] for point in list_global_model_points(s)]
        set_log_bytes_x_axis(left, all_bytes or [1e3, 1e6], range_factor=2)
        self._budget_line = left.axvline(self.limits[1], color=ACCENT, lw=1.2, ls=(0, (3, 2)))
        set_percent_axis(left, "y", 1.03)
        right.set_axis_off()
        right.set(xlim=(0, 4.1), ylim=(max(len(self.series), 4) - 0.3, -0.9))
        style = {"ha": "center", "va": "center", "fontsize": 9.5, "color": QUIET}
        for column, name in enumerate(STAGES):
            right.text(column + 0.45, -0.62, name, **style)


class RaceTrack:
    """One method in the race: on the left a line with a mark at its end; on the right a row of
    boxes that fill up, and the accuracy so far.

    points: (bytes, accuracy 0–1) of its global models, in order
    """

    def __init__(
        self, left: Axes, right: Axes, row: int, method_results: MethodResults, *, is_crowded: bool
    ) -> None:
        self.series = method_results
        self.points = []
        for point in list_global_model_points(method_results):
            self.points.append((max(point["bytes"], 1), point["accuracy"]))
        size = 8.5 if is_crowded else 10
        x, y = split_into_x_and_y(self.points)
        left.plot(x, y, color=RULE, lw=1.3, zorder=1)
        self._line = left.plot(
            [], [], color=method_results.look.colour, ls=method_results.look.line, lw=2.2
        )[0]
        end_style = {"color": method_results.look.colour, "ms": 9, "clip_on": False}
        self._end = left.plot([], [], method_results.look.marker, **end_style)[0]
        style = {"va": "center", "fontsize": size, "color": INK}
        right.text(
            0, row - 0.28, shorten_labels([method_results.name], 30)[0], fontweight="bold", **style
        )
        boxes = {
            "y": [row + 0.12] * len(STAGES),
            "left": range(len(STAGES)),
            "width": 0.9,
            "height": 0.3,
        }
        right.barh(**boxes, color=FAINT)
        self._boxes = right.barh(**boxes, color=method_results.look.colour)
        self._text = right.text(4.1, row + 0.12, "–", ha="right", **style)

    def update(self, budget_bytes: float) -> None:
        """Show the line, the mark and the boxes as they are after `budget_bytes` bytes."""
        count = count_points_within_budget(self.series, budget_bytes)
        reached_points = self.points[:count]
        self._line.set_data(*split_into_x_and_y(reached_points))
        self._end.set_data(*split_into_x_and_y(reached_points[-1:]))
        text = "no global model yet"
        if reached_points:
            spent, accuracy = reached_points[-1]
            text = f"{format_percent(accuracy)} for {format_data_size(spent)}"
        attach_hover_text(
            self._end, f"{self.series.name}\n{text}", method=self.series.highlight_key
        )
        for box, share_done in zip(
            self._boxes, compute_stage_completion(self.series, budget_bytes), strict=True
        ):
            box.set_width(0.9 * share_done)
        last_point = find_last_point_within_budget(self.series, budget_bytes)
        self._text.set_text(format_point_accuracy(last_point, "–"))


def split_into_x_and_y(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Split points into their x and their y values, as matplotlib takes them."""
    return [x for x, _ in points], [y for _, y in points]


def find_byte_range(series: Sequence[MethodResults]) -> ByteRange:
    """Find the fewest and the most bytes at which any method has a global model, for the slider."""
    values = []
    for s in select_results_with_accuracies(series):
        values += [point["bytes"] for point in list_global_model_points(s) if point["bytes"] > 0]
    if not values:
        return ByteRange(1e3, 1e6)
    return ByteRange(min(values) / 1.1, max(values))


def list_global_model_points(method_results: MethodResults) -> list[CurvePoint]:
    """Find the points of the first seed's curve that have a global model."""
    if not method_results.curves:
        return []
    return [point for point in method_results.curves[0] if point["phase"] != LOCAL]


def has_many_rounds(method_results: MethodResults) -> bool:
    """Whether the method spends its bytes over many rounds."""
    if not method_results.curves:
        return False
    has_local_training = any(point["phase"] == LOCAL for point in method_results.curves[0])
    if has_local_training:
        return False
    return len({point["bytes"] for point in list_global_model_points(method_results)}) > 2


def find_last_point_within_budget(
    method_results: MethodResults, budget_bytes: float
) -> CurvePoint | None:
    """Find the last point that is reached with `budget_bytes`; None if there is no global model
    yet.
    """
    count = count_points_within_budget(method_results, budget_bytes)
    if not count:
        return None
    return list_global_model_points(method_results)[count - 1]


def count_points_within_budget(method_results: MethodResults, budget_bytes: float) -> int:
    """Count the points that are reached with `budget_bytes`."""
    points = list_global_model_points(method_results)
    return sum(point["bytes"] <= budget_bytes * TOLERANCE for point in points)


def format_point_accuracy(point: CurvePoint | None, text_if_none: str = "none") -> str:
    """Format a point's accuracy in percent, or return `text_if_none`."""
    return text_if_none if point is None else format_percent(point["accuracy"])


class StageShares(NamedTuple):
    """How much of each stage is done, 0–1."""

    train: float
    upload: float
    fuse: float


def compute_stage_completion(method_results: MethodResults, budget_bytes: float) -> StageShares:
    """Compute how much of each stage is done after `budget_bytes` bytes."""
    curve = method_results.curves[0] if method_results.curves else []
    local_bytes = [point["bytes"] for point in curve if point["phase"] == LOCAL]
    start = local_bytes[0] if local_bytes else 0
    ends = [point["bytes"] for point in list_global_model_points(method_results)] or [start]
    if has_many_rounds(method_results):
        share = min(1.0, budget_bytes / ends[-1])
        return StageShares(share, share, share)
    upload = float(np.interp(budget_bytes, [start, ends[0]], [0, 1]))
    fuse = float(np.interp(budget_bytes, [ends[0], ends[-1]], [0, 1]))
    return StageShares(float(budget_bytes >= start), upload, fuse)


def describe_leader(series: Sequence[MethodResults], budget_bytes: float) -> str:
    """Say which method leads after `budget_bytes` bytes."""
    spent = f"With {format_data_size(budget_bytes)} spent by all clients together"
    standings = []
    for s in series:
        point = find_last_point_within_budget(s, budget_bytes)
        if point is not None:
            standings.append((point["accuracy"], s.name))
    if not standings:
        return f"{spent}, no method has a global model yet."
    accuracy, leader = max(standings)
    methods = format_count_and_noun(len(series), "method")
    return (
        f"{spent}, {leader} leads with {format_percent(accuracy)}; {len(standings)} of {methods} "
        "have a global model. One seed's curves."
    )


def make_race_table(series: Sequence[MethodResults], budget_bytes: float) -> TableRows:
    """Make the table with one row per method: accuracy so far and at the end, bytes at the end."""
    rows = []
    for s in series:
        accuracy = format_point_accuracy(find_last_point_within_budget(s, budget_bytes))
        last_point = find_last_point_within_budget(s, math.inf)
        total = 0 if last_point is None else round(last_point["bytes"])
        rows.append((s.name, accuracy, format_point_accuracy(last_point), total))
    return build_table("method | accuracy so far | at the end | bytes at the end", rows)
