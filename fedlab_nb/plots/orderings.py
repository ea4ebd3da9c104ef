"""A paper's orderings there and here: one dot a pair of methods in a column, coloured by its verdict."""

from typing import Any

from ..study.papers.orderings import TRIED, counts
from .axes import level_line
from .kit import told
from .style import ACCENT, QUIET, SECOND, Picture, drawing, dress
from .words import tabled

HUES = {"agrees": ACCENT, "disagrees": SECOND, "within the noise": QUIET}


def plot_orderings(result: Any) -> Picture:
    """Draw how far the better method of the paper is ahead, in the paper (x) and here (y).

    result: what `reproduce` gives. Dots above the line agree, dots below it disagree; grey ones are within the noise.
    """
    tried = [o for o in result.orderings if o.verdict in TRIED]
    scale = 1e-6 if result.is_count else 100
    unit = ("10⁹ numbers", "10⁶ numbers") if result.is_count else ("points", "points")
    with drawing(size=(6.2, 3.9)) as (figure, ax):
        dress(ax, x=f"ahead in the paper, {unit[0]}", y=f"ahead here, {unit[1]}", grid="both")
        for verdict in reversed(TRIED):
            own = [o for o in tried if o.verdict == verdict]
            x, y = [o.gap for o in own], [scale * o.ours.mean for o in own]
            ax.plot(x, y, "o", color=HUES[verdict], ms=4.5, alpha=0.65, mew=0, label=f"{verdict} ({len(own)})")
        level_line(ax, 0)
        ax.legend(loc="best", fontsize=8.5, frameon=False)
    table = tabled(
        "data set | setting | published order | ahead there | ahead here | verdict",
        (
            (o.column.dataset, o.column.setting, f"{o.better} over {o.worse}", f"{o.gap:g}",
             f"{scale * o.ours.mean:.1f}", o.verdict)
            for o in tried
        ),
    )  # fmt: skip
    n = counts(tried)
    sentence = (
        f"{n['agrees']} orderings agree, {n['disagrees']} disagree, {n['within the noise']} are within the noise."
    )
    title = f"A dot for each of {len(tried)} orderings: how far the better method is ahead there and here"
    return told(figure, title, f"{result.table.paper}, Table {result.table.table}", sentence, table)
