"""The claims of the papers' tables, and how each comes out here.

A claim is the paper's own row of a table beside one other row: which of the two is ahead, in the
mean over the columns that were compared here. It is judged by our *distinct* runs, since one run
of ours may stand for several columns: it holds if their mean difference is clear and as published,
is reversed if it is clear and the other way round, and is mixed if one of them is clearly one way
and another one clearly the other way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ..studies.statistics import Band, band
from .published import Ordering, PaperTable, Row, Values

JUDGED = ("holds", "mixed", "within the noise", "reversed")
OUTCOMES = (*JUDGED, "not comparable", "not tried")
Numbers = tuple[tuple[int, float], ...]  # of a run: (seed, value)
DECIMALS = 4  # of a stored value


@dataclass(frozen=True)
class Claim:
    """The paper's own row of a table is ahead of another one, or behind it.

    better, worse: names of the rows as published, in the mean over the columns that were compared (none: over all)
    ours: the band of the mean of our paired differences, None where none was compared
    differences: of each pair of distinct runs
    numbers: of each such pair the numbers of both runs, by which a claim of another table can be the same result
    why: it was not compared
    was_run: its runs are there, but they are not the paper's comparison
    """

    table: PaperTable
    better: str
    worse: str
    ours: Band | None = None
    differences: tuple[Band, ...] = ()
    numbers: frozenset[frozenset[Numbers]] = frozenset()
    why: str = ""
    was_run: bool = False

    @property
    def outcome(self) -> str:
        """One of OUTCOMES."""
        if self.ours is None or self.ours.n < 2:
            return "not comparable" if self.was_run else "not tried"
        clear = [difference for difference in self.differences if difference.verdict == "clear"]
        signs = {difference.mean > 0 for difference in clear}
        if len(signs) == 2:
            return "mixed"
        if self.ours.verdict != "clear":
            return "within the noise"
        return "holds" if self.ours.mean > 0 else "reversed"


def find_claims(table: PaperTable, orderings: Sequence[Ordering], values: Values) -> list[Claim]:
    """A claim for each row beside the paper's own whose numbers are of the same quantity; where rows run other
    methods, for these alone. `orderings`: those of the table, which say what of the `values` is the same run in two
    columns."""
    if not table.own:
        return []
    own_row = table.rows[table.own]
    claims = []
    for row in find_compared_rows(table, own_row):
        claim = make_claim(table, own_row, row, orderings, values)
        if claim is not None:
            claims.append(claim)
    return claims


def find_compared_rows(table: PaperTable, own_row: Row) -> list[Row]:
    """The rows that the paper's own is compared with."""
    skipped = {own_row.name, *table.inferred, *table.elsewhere, *table.quoted}
    rows = [row for row in table.rows.values() if row.name not in skipped]
    of_other_methods = [row for row in rows if row.method != own_row.method]
    return of_other_methods or rows


def make_claim(
    table: PaperTable, own_row: Row, other_row: Row, orderings: Sequence[Ordering], values: Values
) -> Claim | None:
    """The claim about `own_row` and `row`; None where the paper's mean has neither ahead."""
    names = {own_row.name, other_row.name}
    pairs = [pair for pair in orderings if {pair.better, pair.worse} == names]
    compared = [pair for pair in pairs if pair.ours is not None]
    leads = []  # of the own row, in the paper
    for pair in compared or pairs:
        leads.append(pair.gap if pair.better == own_row.name else -pair.gap)
    lead = fmean(leads) if leads else 0.0
    if lead == 0:
        return None
    if lead > 0:
        better, worse = own_row.name, other_row.name
    else:
        better, worse = other_row.name, own_row.name
    if not compared:
        return make_untried_claim(table, better, worse, pairs, values)
    # Columns with the same runs count once.
    columns = {pair.runs: table.columns.index(pair.column) for pair in compared}
    sign = -1 if table.less_is_better else 1
    gaps = []
    numbers = set()
    for column in columns.values():
        better_run = values[better, column]
        worse_run = values[worse, column]
        gaps.append(subtract_by_seed(better_run, worse_run, sign))
        numbers.add(frozenset({round_values(better_run), round_values(worse_run)}))
    common_seeds = set(gaps[0]).intersection(*gaps[1:])
    if not common_seeds:
        return Claim(table, better, worse, why="no seed was run of all columns", was_run=True)
    mean = band({seed: fmean(gap[seed] for gap in gaps) for seed in sorted(common_seeds)})
    differences = tuple(band(gap) for gap in gaps)
    return Claim(table, better, worse, mean, differences, frozenset(numbers))


def make_untried_claim(
    table: PaperTable, better: str, worse: str, pairs: Sequence[Ordering], values: Values
) -> Claim:
    """A claim none of whose columns was compared, with the reasons."""
    reasons = dict.fromkeys(pair.why for pair in pairs if pair.why)
    was_run = False
    for pair in pairs:
        column = table.columns.index(pair.column)
        if values.get((better, column)) and values.get((worse, column)):
            was_run = True
    return Claim(table, better, worse, why="; ".join(reasons), was_run=was_run)


def subtract_by_seed(
    better: Mapping[int, float], worse: Mapping[int, float], sign: int
) -> dict[int, float]:
    """How far `better` is ahead, on the seeds that both have."""
    seeds = sorted(set(better) & set(worse))
    return {seed: sign * (better[seed] - worse[seed]) for seed in seeds}


def round_values(values: Mapping[int, float]) -> Numbers:
    """The numbers of a run, as they are stored: two runs with the same ones are one result."""
    return tuple((seed, round(value, DECIMALS)) for seed, value in sorted(values.items()))


def drop_repeated_claims(claims: Iterable[Claim]) -> list[Claim]:
    """Those that were judged, without the ones whose numbers all stand behind earlier claims: these repeat a result."""
    distinct = []
    known = set[Any]()
    for claim in claims:
        if claim.outcome in JUDGED and not claim.numbers <= known:
            distinct.append(claim)
            known |= claim.numbers
    return distinct
