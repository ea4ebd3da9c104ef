"""Every table and figure of the five papers: whether its numbers are here, whether it was run, and how
its claims came out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from ..declared import read_toml
from ..plots.words import join_with_and
from ..studies.statistics import LEVEL
from ..studies.text_tables import Paragraph, Printable, TextTable, format_html_table
from .claims import (
    JUDGED,
    NOT_CLAIMED,
    OUTCOMES,
    Claim,
    ClaimOutcome,
    keep_each_result_in_first_judged_claim,
)
from .durations import describe_duration_in_words, get_seconds_of_ten_seeds_or_nan
from .published import FOLDER, PAPERS, TABLES, Ordering
from .reproduction import Reproduction, describe_verdicts_of_all_and_clear_orderings, reproduce

if TYPE_CHECKING:
    from ..plots.style import Picture

HEAD = ["", "run here", "claims that hold", "what it shows"]
NOT_RUN = "What is not run, and why:"
TOO_LONG = (
    "ten seeds take so long on one core, which was not spent; fl.reproduce makes them, and goes on "
    "where it was stopped"
)

RemarkByTableOrFigure = dict[str, str]  # {"Table 3": a remark on it, or ""}
RemarksByReason = dict[str, RemarkByTableOrFigure]


class ReasonAndRemark(NamedTuple):
    """Why numbers of a table were not run, and a remark on the table, or ""."""

    reason: str
    remark: str


class RunsAndClaimsCells(NamedTuple):
    """Two cells of a table's row: which numbers were run, and the outcomes of its claims."""

    run_here: str
    claim_outcomes: str


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
        return keep_each_result_in_first_judged_claim(self.claims)

    @property
    def claim_count_by_outcome(self) -> dict[ClaimOutcome, int]:
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
    def grid_by_paper(self) -> dict[str, TextTable]:
        """{paper: its grid}: a header, then a row for each table and figure, also for those without numbers."""
        rows_by_paper: dict[str, dict[str, list[str]]] = {paper: {} for paper in PAPERS}
        for reproduction in self.tables:
            table = reproduction.table
            paper = table.name.split(":")[0]
            run_here, outcomes = format_cells_of_runs_and_claims(reproduction)
            rows_by_paper[paper][table.name_in_paper] = [
                table.name_in_paper,
                run_here,
                outcomes,
                table.title,
            ]
        without_numbers = read_toml(f"{FOLDER}/others.toml")
        grids = {}
        for paper, rows in rows_by_paper.items():
            for item, (title, _) in without_numbers[paper].items():
                rows[item] = [item, "no", "", title]
            grids[paper] = [HEAD]
            for item in sorted(rows, key=make_sort_key_of_table_or_figure):
                grids[paper].append(rows[item])
        return grids

    @property
    def reasons_by_paper(self) -> dict[str, list[str]]:
        """{paper: why something is not run}, a line a reason with all its tables and figures."""
        items_by_paper: dict[str, RemarksByReason] = {paper: {} for paper in PAPERS}
        for reproduction in self.tables:
            items_by_reason = items_by_paper[reproduction.table.name.split(":")[0]]
            for reason, remark in list_reasons_not_run_with_remarks(reproduction):
                items = items_by_reason.setdefault(reason, {})
                items[reproduction.table.name_in_paper] = remark
        without_numbers = read_toml(f"{FOLDER}/others.toml")
        lines_by_paper = {}
        for paper, items_by_reason in items_by_paper.items():
            for item, (_, reason) in without_numbers[paper].items():
                items_by_reason.setdefault(reason, {})[item] = ""
            lines = []
            for reason, items in sorted(items_by_reason.items(), key=make_sort_key_of_reason):
                lines.append(f"{format_tables_and_figures_with_remarks(items)}: {reason}.")
            lines_by_paper[paper] = lines
        return lines_by_paper

    @property
    def sentence(self) -> str:
        """How many claims were judged, how they came out, and how many would come out by chance."""
        distinct = len(self.distinct_claims)
        judged = sum(claim.outcome in JUDGED for claim in self.claims)
        counts = self.claim_count_by_outcome
        outcomes = ", ".join(f"{name} {counts[name]}" for name in JUDGED if counts[name])
        claims_of_one_federation = 0
        for claim in self.distinct_claims:
            if not any(column.is_divided_at_random for column in claim.table.columns):
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

    def make_paragraphs_and_tables(self) -> list[Paragraph | TextTable]:
        parts: list[Paragraph | TextTable] = [self.sentence]
        for paper, grid in self.grid_by_paper.items():
            parts += [PAPERS[paper], grid, NOT_RUN, *self.reasons_by_paper[paper]]
        parts.append(describe_verdicts_of_all_and_clear_orderings(self.orderings))
        return parts

    def _repr_html_(self) -> str:
        parts = [f"<p>{escape(self.sentence)}</p>"]
        for paper, grid in self.grid_by_paper.items():
            title = f"{PAPERS[paper]}: {len(grid) - 1} tables and figures"
            summary = f"<summary>{title}</summary>"
            reasons = "".join(f"<li>{escape(line)}</li>" for line in self.reasons_by_paper[paper])
            parts.append(
                f'<details style="overflow-x:auto">{summary}{format_html_table(grid)}'
                f"<p>{NOT_RUN}</p><ul>{reasons}</ul></details>"
            )
        parts.append(
            f"<p>{escape(describe_verdicts_of_all_and_clear_orderings(self.orderings))}</p>"
        )
        return "".join(parts)


def make_sort_key_of_table_or_figure(item_name: str) -> tuple[bool, int]:
    """Make the key by which "Table 3" and "Figure 1" are sorted: tables before figures, by number."""
    kind, _, number = item_name.partition(" ")
    return kind == "Figure", int(number)


def make_sort_key_of_reason(
    reason_and_items: tuple[str, RemarkByTableOrFigure],
) -> tuple[bool, int]:
    """Make the key by which reasons are sorted: by their first table or figure."""
    _, items = reason_and_items
    return min(make_sort_key_of_table_or_figure(item) for item in items)


def format_tables_and_figures_with_remarks(remark_by_table_or_figure: RemarkByTableOrFigure) -> str:
    """Format tables and figures with their remarks: 'Tables 12 (about 130 hours) and 15, Figure 1'."""
    texts = []
    for kind in ("Table", "Figure"):
        numbers = []
        for item in sorted(remark_by_table_or_figure, key=make_sort_key_of_table_or_figure):
            if item.startswith(kind):
                remark = (
                    f" ({remark_by_table_or_figure[item]})"
                    if remark_by_table_or_figure[item]
                    else ""
                )
                numbers.append(item.removeprefix(f"{kind} ") + remark)
        if numbers:
            plural = "s" if len(numbers) > 1 else ""
            texts.append(f"{kind}{plural} {join_with_and(numbers)}")
    return ", ".join(texts)


def list_reasons_not_run_with_remarks(reproduction: Reproduction) -> list[ReasonAndRemark]:
    """List why numbers of a table were not run.

    Tables that take many hours share one reason, and the remark says how many. What ends in the table's remedy is one
    reason with the remedy once.
    """
    table = reproduction.table
    if table.why:
        return [ReasonAndRemark(table.why.rstrip("."), "")]
    pairs: dict[ReasonAndRemark, None] = {}  # an ordered set
    causes: dict[str, None] = {}
    for (_, place), why in reproduction.why.items():
        dataset = table.columns[place].dataset
        if table.too_long:
            seconds = get_seconds_of_ten_seeds_or_nan(table.name, "all")
            pairs[ReasonAndRemark(TOO_LONG, describe_duration_in_words(seconds))] = None
        elif dataset in table.too_long_on:
            seconds = get_seconds_of_ten_seeds_or_nan(table.name, dataset)
            remark = f"{dataset}, {describe_duration_in_words(seconds)}"
            pairs[ReasonAndRemark(TOO_LONG, remark)] = None
        elif table.remedy and why.endswith(table.remedy):
            causes[why.removesuffix(table.remedy).strip().rstrip(".")] = None
        else:
            pairs[ReasonAndRemark(why.rstrip("."), "")] = None
    if causes:
        reason = f"{'; '.join(causes)}. {table.remedy.rstrip('.')}"
        pairs[ReasonAndRemark(reason, "")] = None
    return list(pairs)


def format_cells_of_runs_and_claims(reproduction: Reproduction) -> RunsAndClaimsCells:
    """Format two cells of a table's row.

    How many of its numbers were run, and on which data sets; the outcomes of its claims.
    """
    published = sum(len(column.numbers) for column in reproduction.table.columns)
    if not reproduction.values:
        return RunsAndClaimsCells(f"none of {published} numbers", "")
    seeds = len(next(iter(reproduction.values.values())))
    datasets = ", ".join(dict.fromkeys(reproduction.dataset_by_column_index.values()))
    run_here = f"{len(reproduction.values)} of {published} numbers, on {datasets}, {seeds} seeds"
    return RunsAndClaimsCells(run_here, describe_claim_outcome_counts(reproduction.claims))


def describe_claim_outcome_counts(claims: Sequence[Claim]) -> str:
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
