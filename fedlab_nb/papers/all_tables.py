"""Every table and figure of the five papers: whether its numbers are here, whether it was run, and how
its claims came out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING

from ..declared import read_toml
from ..studies.statistics import LEVEL
from ..studies.text_tables import Grid, Paragraph, Printable, format_html_table
from .claims import JUDGED, NOT_CLAIMED, OUTCOMES, Claim, ClaimOutcome, count_each_result_once
from .published import FOLDER, PAPERS, TABLES, Ordering
from .reproduction import Reproduction, describe_orderings, reproduce

if TYPE_CHECKING:
    from ..plots.style import Picture

HEAD = ["", "what it shows", "published", "run here", "claims that hold"]


@dataclass(frozen=True, repr=False)
class PaperTables(Printable):
    """The stored reproductions of all tables, and the list of all tables and figures.

    `plot()` draws the outcomes of all claims.
    """

    tables: Sequence[Reproduction]

    @cached_property
    def claims(self) -> list[Claim]:
        """The claims of all tables, in order; `claims.py` says what a claim is."""
        claims: list[Claim] = []
        for reproduction in self.tables:
            claims += reproduction.claims
        return claims

    @cached_property
    def distinct_claims(self) -> list[Claim]:
        """The claims that were judged, each with those of its results that no earlier claim has."""
        return count_each_result_once(self.claims)

    @property
    def outcome_counts(self) -> dict[ClaimOutcome, int]:
        """Count the claims with each outcome. Of the judged ones each result counts once; of the others
        every claim counts."""
        judged = Counter(claim.outcome for claim in self.distinct_claims)
        everything = Counter(claim.outcome for claim in self.claims)
        counts = {}
        for outcome in OUTCOMES:
            counts[outcome] = judged[outcome] if outcome in JUDGED else everything[outcome]
        return counts

    def describe_claims(self) -> list[str]:
        """Describe each claim: its outcome, and what is compared in the paper and here."""
        texts = []
        for reproduction in self.tables:
            for claim in reproduction.claims:
                texts.append(f"{claim.outcome}: {reproduction.describe_claim(claim)}")
        return texts

    @property
    def orderings(self) -> list[Ordering]:
        """Every pair of methods within a column of a table."""
        orderings: list[Ordering] = []
        for reproduction in self.tables:
            orderings += reproduction.orderings
        return orderings

    @property
    def grid_by_paper(self) -> dict[str, Grid]:
        """{paper: its grid}: a header, then a row for each table and figure, also for those without numbers."""
        rows_by_paper: dict[str, dict[str, list[str]]] = {paper: {} for paper in PAPERS}
        for reproduction in self.tables:
            table = reproduction.table
            paper = table.name.split(":")[0]
            cells = [table.item, table.title, *format_overview_cells_of_table(reproduction)]
            rows_by_paper[paper][table.item] = cells
        without_numbers = read_toml(f"{FOLDER}/others.toml")
        grids = {}
        for paper, rows in rows_by_paper.items():
            for item, (title, why) in without_numbers[paper].items():
                rows[item] = [item, title, f"no: {why}", "", ""]
            grids[paper] = [HEAD]
            for item in sorted(rows, key=make_item_sort_key):
                grids[paper].append(rows[item])
        return grids

    @property
    def sentence(self) -> str:
        """How many claims were judged, how they came out, and how many would come out by chance."""
        distinct = len(self.distinct_claims)
        judged = sum(claim.outcome in JUDGED for claim in self.claims)
        counts = self.outcome_counts
        outcomes = ", ".join(f"{name} {counts[name]}" for name in JUDGED if counts[name])
        claims_of_one_federation = 0
        for claim in self.distinct_claims:
            if not any(column.has_drawn_clients for column in claim.table.columns):
                claims_of_one_federation += 1
        text = (
            f"{len(self.claims)} claims, each of a paper's own method beside one other row of a table, in "
            f"the columns that have the same one of the two ahead. "
            f"{counts[NOT_CLAIMED]} are none: the paper's own numbers leave open who is ahead. "
            f"{counts['not tried']} were not tried; {counts['not comparable']} were run, but at another "
            f"setting or budget than the paper's or without reaching its target, and do not count. "
            f"{judged - distinct} of the other {judged} repeat numbers that another claim has. "
            f"The {distinct} that are left, each judged by results that no claim before it has: {outcomes}."
        )
        if claims_of_one_federation:
            text += (
                f" {claims_of_one_federation} of them are of one federation, whose clients come with "
                "the data."
            )
        by_chance = (1 - LEVEL) * distinct
        return (
            f"{text} By chance alone about {by_chance:.0f} of the {distinct} (5 %) would be clear."
        )

    def plot(self) -> Picture:
        """Draw all claims, each as a square."""
        from .pictures import plot_claims

        return plot_claims(self)

    def make_paragraphs_and_grids(self) -> list[Paragraph | Grid]:
        parts: list[Paragraph | Grid] = [self.sentence]
        for paper, grid in self.grid_by_paper.items():
            parts += [PAPERS[paper], grid]
        parts.append(describe_orderings(self.orderings))
        return parts

    def _repr_html_(self) -> str:
        parts = [f"<p>{escape(self.sentence)}</p>"]
        for paper, grid in self.grid_by_paper.items():
            title = f"{PAPERS[paper]}: {len(grid) - 1} tables and figures"
            summary = f"<summary>{title}</summary>"
            parts.append(
                f'<details style="overflow-x:auto">{summary}{format_html_table(grid)}</details>'
            )
        parts.append(f"<p>{escape(describe_orderings(self.orderings))}</p>")
        return "".join(parts)


def make_item_sort_key(item: str) -> tuple[bool, int]:
    """Make the key by which "Table 3" and "Figure 1" are sorted: tables before figures, by number."""
    kind, _, number = item.partition(" ")
    return kind == "Figure", int(number)


def format_overview_cells_of_table(reproduction: Reproduction) -> list[str]:
    """Format three cells of a table's row.

    How many numbers are published; how many of them were run, on which data sets, and why the others
    were not; the outcomes of its claims.
    """
    published = sum(len(column.numbers) for column in reproduction.table.columns)
    reasons = dict.fromkeys(reason.rstrip(".") for reason in reproduction.why.values())
    reasons_text = "; ".join(reasons)
    if reproduction.values:
        seeds = len(next(iter(reproduction.values.values())))
        datasets = ", ".join(dict.fromkeys(reproduction.dataset_by_column_index.values()))
        run_here = f"{len(reproduction.values)} of {published}, on {datasets}, {seeds} seeds"
        if reasons_text:
            run_here += f"; the others: {reasons_text}"
        outcomes = describe_claim_outcomes(reproduction.claims)
    else:
        run_here = f"no: {reasons_text}"
        outcomes = ""
    return [f"{published} numbers", run_here, outcomes]


def describe_claim_outcomes(claims: Sequence[Claim]) -> str:
    """Describe the outcomes of claims: '5 of 7, 1 reversed, 1 within the noise; 2 not comparable'."""
    counts = Counter(claim.outcome for claim in claims)
    judged = sum(counts[name] for name in JUDGED)
    texts = []
    if judged:
        judged_texts = [f"{counts['holds']} of {judged}"]
        for name in JUDGED[1:]:
            if counts[name]:
                judged_texts.append(f"{counts[name]} {name}")
        texts.append(", ".join(judged_texts))
    if counts["not comparable"]:
        texts.append(f"{counts['not comparable']} not comparable")
    if counts[NOT_CLAIMED]:
        texts.append(f"{counts[NOT_CLAIMED]} without a clear order in the paper")
    return "; ".join(texts)


def paper_tables() -> PaperTables:
    """Show all tables with the results that came with the package. Nothing is run."""
    return PaperTables([reproduce(name, stored=True) for name in TABLES])
