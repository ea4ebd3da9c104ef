"""Pictures of the papers' tables: their orderings there and here, and all their claims.

plot_orderings(fl.reproduce("fens:1", stored=True))    a dot an ordering
plot_claims(fl.paper_tables())                         a sign a claim
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes

from ..plots.kit import describe_picture
from ..plots.style import (
    ACCENT,
    INK,
    QUIET,
    SECOND,
    Picture,
    add_legend,
    draw_level_line,
    drawing,
    dress,
)
from ..plots.words import build_table
from .claims import JUDGED, NOT_CLAIMED, OUTCOMES, Claim, ClaimKey, ClaimOutcome
from .published import PAPERS, TRIED, Ordering, describe_verdict_counts

if TYPE_CHECKING:
    from .all_tables import PaperTables
    from .reproduction import Reproduction

PlotKeywordArguments = dict[str, Any]  # keyword arguments of Axes.plot
HUES = {"agrees": ACCENT, "disagrees": SECOND, "within the noise": QUIET}  # of orderings
# Of claims; the signs differ, so that no colour is needed to tell them apart.
SIGNS = {
    "holds": "s",
    "mixed": "D",
    "within the noise": "o",
    "reversed": "x",
    NOT_CLAIMED: "_",
    "not comparable": "^",
    "not tried": ".",
}
FILLS = {
    "holds": ACCENT,
    "mixed": "white",
    "within the noise": QUIET,
    "reversed": SECOND,
    NOT_CLAIMED: QUIET,
    "not comparable": "white",
    "not tried": "white",
}
EDGES = {"mixed": ACCENT, "not comparable": QUIET, "not tried": QUIET}  # the others: as the fill
EDGE_WIDTHS = {"reversed": 1.6, "mixed": 1.2}  # points; the others: THIN_EDGE
THIN_EDGE = 0.6
TABLE_NUMBER = {"fontsize": 8, "color": QUIET, "va": "center", "ha": "right"}  # text options
LARGE_SIGN = 5.4  # points
SMALL_SIGN = 2.8
PAPER_WIDTH = 11.5  # width of a paper's column, its name included, in signs


def plot_orderings(reproduction: Reproduction) -> Picture:
    """Draw how far the better method of the paper is ahead, in the paper (x) and here (y).

    reproduction: what `reproduce` gives. Dots above the line agree, dots below it disagree; grey
        ones are within the noise.
    """
    tried = [ordering for ordering in reproduction.orderings if ordering.verdict in TRIED]
    if reproduction.is_measured_in_counts:
        scale = 1e-6
        paper_unit = "10⁹ numbers"
        our_unit = "10⁶ numbers"
    else:
        scale = 100
        paper_unit = our_unit = "points"
    x_label = f"ahead in the paper, {paper_unit}"
    y_label = f"ahead here, {our_unit}"
    with drawing(size=(6.2, 3.9)) as (figure, ax):
        dress(ax, x=x_label, y=y_label, grid="both")
        for verdict in reversed(TRIED):
            dots = [ordering for ordering in tried if ordering.verdict == verdict]
            ax.plot(
                [ordering.published_gap_in_table_unit for ordering in dots],
                [scale * get_mean_lead_in_our_runs(ordering) for ordering in dots],
                "o",
                color=HUES[verdict],
                ms=4.5,
                alpha=0.65,
                mew=0,
                label=f"{verdict} ({len(dots)})",
            )
        draw_level_line(ax, 0)
        add_legend(ax, loc="best")
    rows = []
    for ordering in tried:
        rows.append(
            (
                ordering.column.dataset,
                ordering.column.setting,
                f"{ordering.better} over {ordering.worse}",
                f"{ordering.published_gap_in_table_unit:g}",
                f"{scale * get_mean_lead_in_our_runs(ordering):.1f}",
                ordering.verdict,
            )
        )
    head = "data set | setting | published order | ahead there | ahead here | verdict"
    title = f"A dot for each of {len(tried)} orderings: how far the better method is ahead there and here"
    table = reproduction.table
    sentence = f"Orderings: {describe_verdict_counts(tried)}."
    return describe_picture(
        figure, title, f"{table.paper}, {table.name_in_paper}", sentence, build_table(head, rows)
    )


def get_mean_lead_in_our_runs(compared_ordering: Ordering) -> float:
    """Return how far the method that leads in the paper leads here, in the mean over seeds."""
    assert compared_ordering.ours is not None  # its verdict is one of TRIED
    return compared_ordering.ours.mean


def plot_claims(tables: PaperTables) -> Picture:
    """Draw every claim of the five papers: a column a paper, a row a table, a sign for each claim;
    small ones repeat the numbers of a claim above them.

    tables: what `paper_tables` gives
    """
    columns: dict[str, list[Reproduction]] = {paper: [] for paper in PAPERS}
    for reproduction in tables.tables:
        if reproduction.claims:
            columns[get_key_of_reproduced_paper(reproduction)].append(reproduction)
    most = max(len(column) for column in columns.values())
    distinct = {claim.key for claim in tables.distinct_claims}
    with drawing(size=(7.4, 0.9 + 0.19 * most)) as (figure, ax):
        for number, (paper, column) in enumerate(columns.items()):
            left = number * PAPER_WIDTH
            ax.text(
                left, -1.3, PAPERS[paper], fontsize=10, fontweight="bold", color=INK, va="center"
            )
            for y, reproduction in enumerate(column):
                ax.text(left + 0.9, y, reproduction.table.name.split(":")[1], **TABLE_NUMBER)
                draw_claim_signs(ax, left + 2, y, reproduction.claims, distinct)
        add_sign_legend(ax, tables.claim_count_by_outcome)
        ax.set(xlim=(-0.5, len(columns) * PAPER_WIDTH - 1), ylim=(most - 0.4, -2))
        ax.set_axis_off()
    rows = []
    for column in columns.values():
        for reproduction in column:
            item = f"{PAPERS[get_key_of_reproduced_paper(reproduction)]}, {reproduction.table.name_in_paper}"
            for claim in reproduction.claims:
                relation = "over" if claim.is_claimed else "beside"
                order = f"{claim.better} {relation} {claim.worse}"
                rows.append((item, order, claim.outcome, reproduction.describe_claim(claim)))
    table = build_table("table | claim | here | what is compared", rows)
    title = "A sign for each claim of the five papers, a row a table"
    return describe_picture(figure, title, "", tables.sentence, table)


def get_key_of_reproduced_paper(reproduction: Reproduction) -> str:
    """Return the key in PAPERS of a table's paper: "fens" of "fens:1"."""
    return reproduction.table.name.split(":")[0]


def draw_claim_signs(
    ax: Axes,
    first_sign_x: float,
    row_y: float,
    claims: Sequence[Claim],
    keys_of_claims_with_new_results: Collection[ClaimKey],
) -> None:
    """Draw a row of signs from `first_sign_x` on, in the order of OUTCOMES.

    keys_of_claims_with_new_results: keys of the claims that have a result of their own
    """
    ordered = sorted(claims, key=lambda claim: OUTCOMES.index(claim.outcome))
    for place, claim in enumerate(ordered):
        is_repeated = claim.outcome in JUDGED and claim.key not in keys_of_claims_with_new_results
        size = SMALL_SIGN if is_repeated else LARGE_SIGN
        style = choose_sign_colour_and_edge(claim.outcome)
        ax.plot(first_sign_x + place, row_y, SIGNS[claim.outcome], ms=size, **style)


def add_sign_legend(ax: Axes, claim_count_by_outcome: Mapping[str, int]) -> None:
    """Add the legend of the signs, with how many claims have each outcome."""
    for outcome, count in claim_count_by_outcome.items():
        label = f"{outcome} ({count})"
        style = choose_sign_colour_and_edge(outcome)
        ax.plot([], [], SIGNS[outcome], ms=LARGE_SIGN, label=label, ls="", **style)
    label = "small: numbers of a claim above"
    ax.plot(
        [], [], "s", ms=SMALL_SIGN, label=label, ls="", **choose_sign_colour_and_edge(OUTCOMES[0])
    )
    add_legend(ax, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=3, handletextpad=0.2)


def choose_sign_colour_and_edge(claim_outcome: ClaimOutcome) -> PlotKeywordArguments:
    """Choose colour and edge of a claim's sign."""
    fill = FILLS[claim_outcome]
    return {
        "color": fill,
        "mec": EDGES.get(claim_outcome, fill),
        "mew": EDGE_WIDTHS.get(claim_outcome, THIN_EDGE),
    }
