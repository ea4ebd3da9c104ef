"""The claims of the papers' tables, and their outcomes in our runs.

A claim compares the row of a paper's own method with one other row, in all columns in which the paper
has the same one of the two ahead. If each of them is ahead in some columns, there are two claims. A
column counts only if the paper's own numbers say who is ahead (`Ordering.is_claimed`).

A claim is judged by our *distinct* runs, since one run of ours may stand for several columns:

- It holds if their mean difference is clear, and has the published sign.
- It is reversed if their mean difference is clear, and has the opposite sign.
- It is mixed if one run clearly has the published sign and another one clearly the opposite sign.

A run may stand for columns in which the paper has different rows ahead. It cannot agree with all of
them, so it does not count.

The same result may stand behind the claims of several tables. In a count of all claims it is used
once, for the first claim that has it (`keep_each_result_in_first_judged_claim`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, NamedTuple

from ..studies.statistics import Band, compute_band
from .published import Ordering, PaperTable, TableRow, ValueBySeedByCell

JUDGED = ("holds", "mixed", "within the noise", "reversed")
NOT_CLAIMED = "no clear order in the paper"
OUTCOMES = (*JUDGED, NOT_CLAIMED, "not comparable", "not tried")
ClaimOutcome = str  # one of OUTCOMES
UNCLEAR = "the paper's own numbers leave open which of the two is ahead"
TWO_WAYS = "our run stands for columns in which the paper has different rows ahead"
SeedAndValuePairs = tuple[tuple[int, float], ...]  # of a run: (seed, value)
DECIMALS = 4  # to which stored values are rounded


@dataclass(frozen=True)
class Claim:
    """The claim that one row of a table is ahead of another one; one of the two is the paper's own method.

    better, worse: names of the rows. The paper has `better` ahead in all `orderings`. If its numbers leave open which
        of the two is ahead, `better` is ahead in the mean over the columns
    ours: the band of the mean of our paired differences, `better` minus `worse`; None if nothing was compared
    results: our distinct pairs of runs
    orderings: the columns that count, or that would count if they had been run
    why: the reason why it was not judged
    was_run: whether its runs were made, even if they are not comparable with the paper's
    is_claimed: whether the paper's numbers say in any column who is ahead
    """

    table: PaperTable
    better: str
    worse: str
    ours: Band | None = None
    results: tuple[ComparedRuns, ...] = ()
    orderings: tuple[Ordering, ...] = ()
    why: str = ""
    was_run: bool = False
    is_claimed: bool = True

    @property
    def lead_band_of_each_result(self) -> tuple[Band, ...]:
        """How far `better` is ahead of `worse` in each result."""
        return tuple(compute_band(result.gaps) for result in self.results)

    @property
    def key(self) -> ClaimKey:
        """A key that no other claim of the five papers has."""
        return ClaimKey(self.table.name, self.better, self.worse)

    @property
    def outcome(self) -> ClaimOutcome:
        """One of OUTCOMES."""
        if not self.is_claimed:
            return NOT_CLAIMED
        if self.ours is None or self.ours.n < 2:
            return "not comparable" if self.was_run else "not tried"
        clear = [
            difference
            for difference in self.lead_band_of_each_result
            if difference.verdict == "clear"
        ]
        signs = {difference.mean > 0 for difference in clear}
        if len(signs) == 2:
            return "mixed"
        if self.ours.verdict != "clear":
            return "within the noise"
        return "holds" if self.ours.mean > 0 else "reversed"


class ClaimKey(NamedTuple):
    """The name of a table, and of the rows that are ahead and behind in its paper."""

    table: str
    better: str
    worse: str


class LeadingAndOtherRowNames(NamedTuple):
    """Names of two rows, the first of which is ahead in the paper."""

    leader: str
    other: str


@dataclass(frozen=True)
class ComparedRuns:
    """A pair of runs that were compared. Two pairs with the same `numbers` or the same `runs` are one result.

    numbers: the values of both runs by seed
    runs: the keys that identify the two runs
    gaps: {seed: how far the row that leads in the paper leads here}
    """

    numbers: frozenset[SeedAndValuePairs]
    runs: frozenset[Any]
    gaps: Mapping[int, float]


def find_claims_of_papers_own_method(
    table: PaperTable,
    all_orderings_of_table: Sequence[Ordering],
    value_by_seed_by_cell: ValueBySeedByCell,
) -> list[Claim]:
    """Find the claims about the paper's own row and each row that it is compared with."""
    if not table.own:
        return []
    own_row = table.rows[table.own]
    claims = []
    for row in select_rows_compared_with_own_method(table, own_row):
        claims += make_claims_about_two_rows(
            table, own_row, row, all_orderings_of_table, value_by_seed_by_cell
        )
    return claims


def select_rows_compared_with_own_method(
    table: PaperTable, row_of_own_method: TableRow
) -> list[TableRow]:
    """Select the rows with which the paper's own row is compared: those of other methods, or all other
    rows if every row runs the same method."""
    skipped = {row_of_own_method.name, *table.inferred, *table.elsewhere, *table.quoted}
    rows = [row for row in table.rows.values() if row.name not in skipped]
    of_other_methods = [row for row in rows if row.method != row_of_own_method.method]
    return of_other_methods or rows


def make_claims_about_two_rows(
    table: PaperTable,
    own_row: TableRow,
    other_row: TableRow,
    all_orderings_of_table: Sequence[Ordering],
    value_by_seed_by_cell: ValueBySeedByCell,
) -> list[Claim]:
    """Make the claims about two rows: one, or two if the paper has each of them ahead in some columns.

    The list is empty if no column has numbers of both rows that are the paper's own.
    """
    names = {own_row.name, other_row.name}
    pairs = []
    for ordering in all_orderings_of_table:
        is_quoted = bool(names & ordering.column.quoted)
        if {ordering.better, ordering.worse} == names and not is_quoted:
            pairs.append(ordering)
    if not pairs:
        return []
    claimed = [pair for pair in pairs if pair.is_claimed]
    if not claimed:
        better, worse = order_row_names_by_mean_published_gap(own_row, other_row, pairs)
        return [Claim(table, better, worse, why=UNCLEAR, is_claimed=False)]
    compared = [pair for pair in claimed if pair.ours is not None]
    if not compared:
        return [
            make_untried_claim(table, group, value_by_seed_by_cell)
            for group in group_orderings_by_leader(claimed)
        ]
    counted = drop_orderings_with_contradicting_leaders(compared)
    if not counted:
        better, worse = order_row_names_by_mean_published_gap(own_row, other_row, compared)
        return [Claim(table, better, worse, why=TWO_WAYS, is_claimed=False)]
    return [
        make_judged_claim(table, group, value_by_seed_by_cell)
        for group in group_orderings_by_leader(counted)
    ]


def group_orderings_by_leader(orderings: Sequence[Ordering]) -> list[list[Ordering]]:
    """Group the columns of two rows by which of them is ahead in the paper."""
    groups: dict[str, list[Ordering]] = {}
    for pair in orderings:
        groups.setdefault(pair.better, []).append(pair)
    return list(groups.values())


def order_row_names_by_mean_published_gap(
    own_row: TableRow, other_row: TableRow, orderings_of_both_rows: Sequence[Ordering]
) -> LeadingAndOtherRowNames:
    """Return the row that is ahead in the paper in the mean over the columns, and the other one."""
    leads_of_own_row = []
    for pair in orderings_of_both_rows:
        is_own_ahead = pair.better == own_row.name
        gap = pair.published_gap_in_table_unit
        leads_of_own_row.append(gap if is_own_ahead else -gap)
    if fmean(leads_of_own_row) < 0:
        return LeadingAndOtherRowNames(other_row.name, own_row.name)
    return LeadingAndOtherRowNames(own_row.name, other_row.name)


def drop_orderings_with_contradicting_leaders(orderings: Sequence[Ordering]) -> list[Ordering]:
    """Drop the orderings whose runs also stand for a column in which the other row is ahead."""
    leaders: dict[Any, set[str]] = {}
    for pair in orderings:
        leaders.setdefault(pair.runs, set()).add(pair.better)
    return [pair for pair in orderings if len(leaders[pair.runs]) == 1]


def make_judged_claim(
    table: PaperTable,
    orderings_with_same_leader: Sequence[Ordering],
    value_by_seed_by_cell: ValueBySeedByCell,
) -> Claim:
    """Make the claim about two rows from the columns of orderings in all of which the same row is ahead."""
    better = orderings_with_same_leader[0].better
    worse = orderings_with_same_leader[0].worse
    results = []
    pair_by_runs = {
        pair.runs: pair for pair in orderings_with_same_leader
    }  # columns with the same runs count once
    for pair in pair_by_runs.values():
        column = table.columns.index(pair.column)
        better_run = value_by_seed_by_cell[better, column]
        worse_run = value_by_seed_by_cell[worse, column]
        numbers = frozenset(
            {
                round_run_values_to_stored_decimals(better_run),
                round_run_values_to_stored_decimals(worse_run),
            }
        )
        gaps = compute_lead_by_seed(better_run, worse_run, less_is_better=table.less_is_better)
        results.append(ComparedRuns(numbers, pair.runs, gaps))
    claim = Claim(
        table, better, worse, results=tuple(results), orderings=tuple(orderings_with_same_leader)
    )
    ours = compute_band_of_mean_lead(results)
    if ours is None:
        return replace(claim, why="no seed was run of all columns", was_run=True)
    return replace(claim, ours=ours)


def compute_band_of_mean_lead(results: Sequence[ComparedRuns]) -> Band | None:
    """Compute the band of the mean over results, on the seeds that all of them have; None without such seeds."""
    seeds = set(results[0].gaps)
    for result in results:
        seeds &= set(result.gaps)
    if not seeds:
        return None
    mean_lead_by_seed = {}
    for seed in sorted(seeds):
        mean_lead_by_seed[seed] = fmean(result.gaps[seed] for result in results)
    return compute_band(mean_lead_by_seed)


def make_untried_claim(
    table: PaperTable,
    orderings_with_same_leader: Sequence[Ordering],
    value_by_seed_by_cell: ValueBySeedByCell,
) -> Claim:
    """Make a claim none of whose columns was compared, with the reasons.

    orderings_with_same_leader: in all of which the same row is ahead
    """
    better = orderings_with_same_leader[0].better
    worse = orderings_with_same_leader[0].worse
    reasons = dict.fromkeys(pair.why for pair in orderings_with_same_leader if pair.why)
    was_run = False
    for pair in orderings_with_same_leader:
        column = table.columns.index(pair.column)
        if value_by_seed_by_cell.get((better, column)) and value_by_seed_by_cell.get(
            (worse, column)
        ):
            was_run = True
    why = "; ".join(reasons)
    return Claim(
        table, better, worse, orderings=tuple(orderings_with_same_leader), why=why, was_run=was_run
    )


def compute_lead_by_seed(
    better_value_by_seed: Mapping[int, float],
    worse_value_by_seed: Mapping[int, float],
    *,
    less_is_better: bool,
) -> dict[int, float]:
    """Compute how far the better row is ahead on each seed that both rows have.

    less_is_better: whether a smaller value is better
    """
    sign = -1 if less_is_better else 1
    seeds = sorted(set(better_value_by_seed) & set(worse_value_by_seed))
    return {seed: sign * (better_value_by_seed[seed] - worse_value_by_seed[seed]) for seed in seeds}


def round_run_values_to_stored_decimals(value_by_seed: Mapping[int, float]) -> SeedAndValuePairs:
    """Round the values of a run as they are stored. Two runs with the same rounded values count as the same."""
    return tuple((seed, round(value, DECIMALS)) for seed, value in sorted(value_by_seed.items()))


def keep_each_result_in_first_judged_claim(claims: Iterable[Claim]) -> list[Claim]:
    """List the claims that were judged, each with those of its results that no earlier claim has.
    Claims that have no such result are left out."""
    distinct = []
    known = set[Any]()
    for claim in claims:
        if claim.outcome not in JUDGED:
            continue
        new_results = []
        for result in claim.results:
            if result.numbers not in known and result.runs not in known:
                new_results.append(result)
        for result in claim.results:
            known.update((result.numbers, result.runs))
        if new_results:
            ours = compute_band_of_mean_lead(new_results)
            distinct.append(replace(claim, results=tuple(new_results), ours=ours))
    return distinct
