"""Pictures of the papers' tables: their orderings there and here, and all their claims.

plot_orderings(fl.reproduce("fens:1", stored=True))    a dot an ordering
plot_claims(fl.paper_tables())                         a sign a claim
"""

from __future__ import annotations

from typing import Any

from ..plots.kit import describe_picture
from ..plots.style import (
    ACCENT,
    INK,
    QUIET,
    SECOND,
    Picture,
    draw_level_line,
    drawing,
    dress,
    legend,
)
from ..plots.words import build_table
from .claims import JUDGED, OUTCOMES
from .published import PAPERS, TRIED, tally

HUES = {"agrees": ACCENT, "disagrees": SECOND, "within the noise": QUIET}  # of orderings
# Of claims; the signs differ, so that no colour is needed to tell them apart.
FILLS = dict(zip(OUTCOMES, (ACCENT, "white", QUIET, SECOND, "white", "white"), strict=True))
SIGNS = dict(zip(OUTCOMES, "sDox^.", strict=True))
NUMBERED = {"fontsize": 8, "color": QUIET, "va": "center", "ha": "right"}  # the number of a table
WIDE = 11.5  # places across that the claims of a paper have, names included


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
            ax.plot(
                x,
                y,
                "o",
                color=HUES[verdict],
                ms=4.5,
                alpha=0.65,
                mew=0,
                label=f"{verdict} ({len(own)})",
            )
        draw_level_line(ax, 0)
        legend(ax, loc="best")
    order = "data set | setting | published order | ahead there | ahead here | verdict"
    rows = (
        (
            o.column.dataset,
            o.column.setting,
            f"{o.better} over {o.worse}",
            f"{o.gap:g}",
            f"{scale * o.ours.mean:.1f}",
        )
        for o in tried
    )
    table = build_table(order, ((*row, o.verdict) for row, o in zip(rows, tried, strict=True)))
    title = f"A dot for each of {len(tried)} orderings: how far the better method is ahead there and here"
    return describe_picture(
        figure,
        title,
        f"{result.table.paper}, {result.table.item}",
        f"Orderings: {tally(tried)}.",
        table,
    )


def plot_claims(tables: Any) -> Picture:
    """Draw every claim of the five papers: a column a paper, a row a table, a sign for each claim; small ones repeat
    the numbers of a claim above them.

    tables: what `paper_tables` gives
    """
    rows: dict[str, list[Any]] = {paper: [] for paper in PAPERS}
    for r in tables.tables:
        if r.claims:
            rows[r.table.name.split(":")[0]].append(r)
    most = max(map(len, rows.values()))
    once = {id(claim) for claim in tables.first}
    with drawing(size=(7.4, 0.9 + 0.19 * most)) as (figure, ax):
        for x, (paper, of) in enumerate(rows.items()):
            ax.text(
                x * WIDE,
                -1.3,
                PAPERS[paper],
                fontsize=10,
                fontweight="bold",
                color=INK,
                va="center",
            )
            for y, r in enumerate(of):
                ax.text(x * WIDE + 0.9, y, r.table.name.split(":")[1], **NUMBERED)
                ordered = sorted(r.claims, key=lambda claim: OUTCOMES.index(claim.outcome))
                for place, claim in enumerate(ordered, 2):
                    repeats = claim.outcome in JUDGED and id(claim) not in once
                    size = 2.8 if repeats else 5.4
                    ax.plot(
                        x * WIDE + place, y, SIGNS[claim.outcome], ms=size, **signed(claim.outcome)
                    )
        for outcome, count in tables.counts.items():
            ax.plot(
                [],
                [],
                SIGNS[outcome],
                ms=5.4,
                label=f"{outcome} ({count})",
                ls="",
                **signed(outcome),
            )
        ax.plot(
            [],
            [],
            "s",
            ms=2.8,
            label="small: numbers of a claim above",
            ls="",
            **signed(OUTCOMES[0]),
        )
        ax.set(xlim=(-0.5, len(rows) * WIDE - 1), ylim=(most - 0.4, -2))
        ax.set_axis_off()
        legend(ax, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=3, handletextpad=0.2)
    every = [(r, claim) for of in rows.values() for r in of for claim in r.claims]
    named = (
        (
            f"{PAPERS[r.table.name.split(':')[0]]}, {r.table.item}",
            f"{claim.better} over {claim.worse}",
            claim.outcome,
            r.describe_claim(claim),
        )
        for r, claim in every
    )
    table = build_table("table | claim | here | what is compared", named)
    return describe_picture(
        figure,
        "A sign for each claim of the five papers, a row a table",
        "",
        tables.sentence,
        table,
    )


def signed(outcome: str) -> dict[str, Any]:
    """Colour and edge of a claim's sign."""
    edge = {"mixed": ACCENT, "not comparable": QUIET, "not tried": QUIET}.get(
        outcome, FILLS[outcome]
    )
    return {
        "color": FILLS[outcome],
        "mec": edge,
        "mew": {"reversed": 1.6, "mixed": 1.2}.get(outcome, 0.6),
    }
