"""The claims of the papers' tables, and how each comes out here.

A claim is the paper's own row of a table beside one other row: which of the two is ahead, in the mean over the columns
that were compared here. It is judged by our *distinct* runs, since one run of ours may stand for several columns: it
holds if their mean difference is clear and as published, is reversed if it is clear and the other way round, and is
mixed if one of them is clearly one way and another one clearly the other way.
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

    better, worse: as published, in the mean over the columns that were compared (none: over all)
    each: the paired difference of each pair of distinct runs;   ours: of their mean
    numbers: of each such pair the numbers of both runs, by which a claim of another table can be the same result
    why: it was not compared;   was_run: its runs are there, but they are not the paper's comparison
    """

    table: PaperTable
    better: str
    worse: str
    ours: Band | None = None
    each: tuple[Band, ...] = ()
    numbers: frozenset[frozenset[Numbers]] = frozenset()
    why: str = ""
    was_run: bool = False

    @property
    def outcome(self) -> str:
        """One of OUTCOMES."""
        if self.ours is None or self.ours.n < 2:
            return "not comparable" if self.was_run else "not tried"
        clear = [one.mean > 0 for one in self.each if one.verdict == "clear"]
        if True in clear and False in clear:
            return "mixed"
        if self.ours.verdict != "clear":
            return "within the noise"
        return "holds" if self.ours.mean > 0 else "reversed"


def find_claims(table: PaperTable, of: Sequence[Ordering], values: Values) -> list[Claim]:
    """A claim for each row beside the paper's own whose numbers are of the same quantity; where rows run other
    methods, for these alone. `of`: the table's orderings, which say what of the `values` is the same run in two
    columns."""
    if not table.own:
        return []
    own = table.rows[table.own]
    claims = [claim_of(table, own, row, of, values) for row in rows_beside(table, own)]
    return [claim for claim in claims if claim is not None]


def rows_beside(table: PaperTable, own: Row) -> list[Row]:
    """The rows that the paper's own is compared with."""
    skipped = {own.name, *table.inferred, *table.elsewhere}
    rows = [row for row in table.rows.values() if row.name not in skipped]
    return [row for row in rows if row.method != own.method] or rows


def claim_of(
    table: PaperTable, own: Row, row: Row, of: Sequence[Ordering], values: Values
) -> Claim | None:
    """The claim about `own` and `row`; None where the paper's mean has neither ahead."""
    pairs = [pair for pair in of if {pair.better, pair.worse} == {own.name, row.name}]
    compared = [pair for pair in pairs if pair.ours is not None]
    leads = [pair.gap if pair.better == own.name else -pair.gap for pair in compared or pairs]
    ahead = fmean(leads) if leads else 0.0
    if ahead == 0:
        return None
    better, worse = (own.name, row.name) if ahead > 0 else (row.name, own.name)
    if not compared:
        reasons = dict.fromkeys(pair.why for pair in pairs if pair.why)
        places = [table.columns.index(pair.column) for pair in pairs]
        was_run = any(values.get((better, p)) and values.get((worse, p)) for p in places)
        return Claim(table, better, worse, why="; ".join(reasons), was_run=was_run)
    places_of = {pair.runs: table.columns.index(pair.column) for pair in compared}
    runs = [(values[better, place], values[worse, place]) for place in places_of.values()]
    sign = -1 if table.less_is_better else 1
    gaps = [gaps_of(one, other, sign) for one, other in runs]
    seeds = sorted(set.intersection(*(set(gap) for gap in gaps)))
    if not seeds:
        return Claim(table, better, worse, why="no seed was run of all columns", was_run=True)
    mean = band({seed: fmean(gap[seed] for gap in gaps) for seed in seeds})
    numbers = frozenset(frozenset({numbers_of(one), numbers_of(other)}) for one, other in runs)
    each = tuple(band(gap) for gap in gaps)
    return Claim(table, better, worse, mean, each, numbers)


def gaps_of(one: Mapping[int, float], other: Mapping[int, float], sign: int) -> dict[int, float]:
    """How far `one` is ahead, on the seeds that both have."""
    return {seed: sign * (one[seed] - other[seed]) for seed in sorted(set(one) & set(other))}


def numbers_of(values: Mapping[int, float]) -> Numbers:
    """The numbers of a run, as they are stored: two runs with the same ones are one result."""
    return tuple((seed, round(value, DECIMALS)) for seed, value in sorted(values.items()))


def first_claims(of: Iterable[Claim]) -> list[Claim]:
    """Those that were judged, without the ones whose numbers all stand behind earlier claims: these repeat a result."""
    kept, known = [], set[Any]()
    for claim in of:
        if claim.outcome in JUDGED and not claim.numbers <= known:
            kept.append(claim)
            known |= claim.numbers
    return kept
