"""The picture of how long methods take: a bar for each method, with a part for its clients'
training and one for the rest of the run.
"""

from collections.abc import Sequence
from typing import NamedTuple

from .kit import describe_picture, draw_stacked_bars_and_get_ends
from .style import ACCENT, INK, Picture, add_legend, drawing, dress
from .words import SettingCaption, build_table

COLOURS = {"local training": "#9aa4ae", "the rest": ACCENT}
SHARED = "Clients are trained once for all methods. Here their time counts for each method that uses them."


class MethodTime(NamedTuple):
    """The wall time of a method in seconds, means over its seeds."""

    title: str
    local_seconds: float
    other_seconds: float

    @property
    def total_seconds(self) -> float:
        return self.local_seconds + self.other_seconds


def draw_wall_times(
    method_times: Sequence[MethodTime], *, setting: SettingCaption | str
) -> Picture:
    """Draw a bar for each method, the longest first: its local training, and all the rest."""
    ordered = sorted(method_times, key=lambda row: -row.total_seconds)
    parts_by_title = {}
    table_rows = []
    for row in ordered:
        parts = (row.local_seconds, row.other_seconds)
        parts_by_title[row.title] = dict(zip(COLOURS, parts, strict=True))
        table_rows.append((row.title, round(row.local_seconds, 2), round(row.other_seconds, 2)))
    with drawing() as (figure, ax):
        dress(ax, title="Wall time on this machine", x="seconds, mean over seeds", grid="x")
        ends = draw_stacked_bars_and_get_ends(ax, parts_by_title, COLOURS)
        for i, end in enumerate(ends):
            ax.text(end, i, f" {end:.2g}", va="center", fontsize=9, color=INK, gid="outside")
        add_legend(figure, loc="outside lower center", ncols=2)
    longest = ordered[0]
    return describe_picture(
        figure,
        "Bars of wall time, local training and the rest",
        setting,
        f"{longest.title} takes longest, {longest.total_seconds:.1f} s.",
        build_table("method | local training, s | the rest, s", table_rows),
        detail=SHARED,
    )
