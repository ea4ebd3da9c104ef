"""How long methods take: a bar for each, the longest first, of its clients' training and of all that follows."""

from collections.abc import Sequence

from .kit import describe_picture, draw_stacked_bars
from .style import ACCENT, INK, Picture, add_legend, drawing, dress
from .words import SettingCaption, build_table

COLOURS = {"local training": "#9aa4ae", "the rest": ACCENT}
SHARED = "Clients are trained once for all methods. Here their time counts for each method that uses them."


def draw_times(
    rows: Sequence[tuple[str, float, float]], *, setting: SettingCaption | str
) -> Picture:
    """Draw a bar for each method: (title, seconds of local training, seconds of the rest), means over seeds."""
    ordered = sorted(rows, key=lambda row: -row[1] - row[2])
    with drawing() as (figure, ax):
        dress(ax, title="Wall time on this machine", x="seconds, mean over seeds", grid="x")
        ends = draw_stacked_bars(
            ax, {name: dict(zip(COLOURS, parts, strict=True)) for name, *parts in ordered}, COLOURS
        )
        for i, end in enumerate(ends):
            ax.text(end, i, f" {end:.2g}", va="center", fontsize=9, color=INK, gid="outside")
        add_legend(figure, loc="outside lower center", ncols=2)
    title, *parts = ordered[0]
    table = build_table(
        "method | local training, s | the rest, s",
        ((n, round(a, 2), round(b, 2)) for n, a, b in ordered),
    )
    return describe_picture(
        figure,
        "Bars of wall time, local training and the rest",
        setting,
        f"{title} takes longest, {sum(parts):.1f} s.",
        table,
        detail=SHARED,
    )
