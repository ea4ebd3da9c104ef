"""A table of a paper beside the same runs made here: `reproduce` runs it, or shows its stored results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..data import load
from ..errors import RunError, check_whole_number, parse_number
from ..files import check_replaceable, write_file
from ..studies.engine import check_results_folder, make_row
from ..studies.experiment import Event
from ..studies.grid import parse_seeds
from ..studies.results import FILES as RESULT_FILES
from ..studies.results import Results
from ..studies.statistics import LEVEL, Band, band
from ..studies.stored_results import load as load_stored
from ..studies.stored_rows import FOLDER, Row, make_row_key, read_stored_rows
from ..studies.text_tables import Grid, Printable, format_text
from . import published
from .cells import (
    SEEDS,
    SMALLER,
    Wanted,
    checked,
    departures,
    points_of,
    scale_of,
    stored_runs,
    wanted,
)
from .claims import Claim, find_claims
from .comparison import both_conditions, describe_side, find_differences
from .points import compute_rows
from .published import TRIED, Ordering, PaperTable, Place, Values, paper_table, tally

FILES = (
    FOLDER / "tables.json",
    FOLDER / "tables-mnist5k.json",
)  # of the small data sets, and of the large ones
TABLE = "table.txt"
WRITTEN = (*RESULT_FILES, TABLE)
MANY = 100  # verdicts: a sentence says how many would be clear by chance
COUNTS = ("numbers to target",)  # measures that are no shares
# Tables with their stored results, by name and by when the rows were written: to see whether each
# run is the paper's comparison takes a second, and many ask for the same table.
_shown: dict[tuple[Any, ...], Reproduction] = {}


@dataclass(frozen=True, repr=False)
class Reproduction(Printable):
    """What was published, and what came out here.

    scale: "classroom", "paper" or a share of the paper's samples
    values: `{(row, column's place): {seed: value}}`, a share for an accuracy, else a count
    why: `{(row, column's place): why it was not run}`;   wanted: the runs
    unreached: `{(row, column's place): the seeds on which the target was not reached}`
    rows: they as a study's rows (of stored results: none);   label: where they are from
    """

    table: PaperTable
    scale: str | float
    seeds: tuple[int, ...]
    values: Values
    why: Mapping[Place, str]
    wanted: Sequence[Wanted] = ()
    rows: Sequence[Mapping[str, Any]] = ()
    label: str = "run here"
    unreached: Mapping[Place, Sequence[int]] = field(default_factory=dict)

    @cached_property
    def orderings(self) -> tuple[Ordering, ...]:
        """Every pair of methods within a column, with its verdict."""
        runs = {(run.row, run.place): (run.point.key, run.label) for run in self.wanted}
        return tuple(published.orderings(self.table, self.values, self.why, runs, self.against))

    @cached_property
    def against(self) -> dict[Place, str]:
        """`{(row, column's place): why what was run is not the paper's comparison}`."""
        reasons: dict[Place, str] = {}
        for run in self.wanted:
            at = (run.row, run.place)
            if at in self.unreached:
                reasons[at] = self.describe_unreached(at)
            elif at in self.values and (found := find_differences(self.table, run)):
                reasons[at] = ", ".join(found)
        return reasons

    def describe_unreached(self, at: Place) -> str:
        """'target not reached, 8 of 10 seeds'; "" where it was reached on all of them."""
        missed = len(self.unreached.get(at, ()))
        seeds = missed + len(self.values.get(at, ()))
        return f"target not reached, {missed} of {seeds} seeds" if missed else ""

    @property
    def counts(self) -> dict[str, int]:
        """How many orderings agree, disagree, and so on."""
        return published.counts(self.orderings)

    @cached_property
    def claims(self) -> list[Claim]:
        """The paper's own method beside each other one, in the mean over the columns."""
        return find_claims(self.table, self.orderings, self.values)

    def describe_claim(self, claim: Claim) -> str:
        """Two sentences: what the paper compares, at what; and what was compared here, or why nothing was."""
        pair = {claim.better, claim.worse}
        named = [o for o in self.orderings if {o.better, o.worse} == pair]
        compared = [o for o in named if o.ours is not None]
        columns = [o.column for o in compared or named]
        runs = {(run.row, run.place): run for run in self.wanted}
        rows = [claim.better, claim.worse]
        sides = []
        for column in columns:
            place = self.table.columns.index(column)
            if all((row, place) in runs for row in rows):
                sides.append({row: both_conditions(self.table, runs[row, place]) for row in rows})
        paper = published.PAPERS[self.table.name.partition(":")[0]]
        about = f"{paper}, {self.table.item}: the paper compares"
        about += f" {claim.better} (ahead) and {claim.worse} by "
        if sides:
            there = [{row: both[0] for row, both in side.items()} for side in sides]
            quantity = self.table.quantity_of(claim.better)
            about += describe_side(rows, there, quantity, self.table.not_given)
        else:
            where = dict.fromkeys(f"{c.dataset} ({c.setting})" for c in columns)
            about += f"{self.table.quantity_of(claim.better)} on {', '.join(where)}"
        if not compared:
            return f"{about}. We do not: {claim.why.rstrip('.')}."
        here = [{row: both[1] for row, both in side.items()} for side in sides]
        quantities = {side[row].quantity for side in here for row in rows}
        published_quantity = self.table.quantity_of(claim.better)
        quantity = quantities.pop() if len(quantities) == 1 else published_quantity
        ours = describe_side(rows, here, quantity)
        return f"{about}. We compare them by {ours}; {claim.ours.n if claim.ours else 0} seeds."

    @cached_property
    def ran_on(self) -> dict[int, str]:
        """{column's place: the data set that was run for it}."""
        return {run.place: run.dataset for run in self.wanted}

    def ours(self, row: str, place: int) -> Band | None:
        """Mean and band of what was run for a row in the column at `place`; None if nothing was."""
        values = self.values.get((row, place))
        return band(values) if values else None

    is_count = property(
        lambda self: self.table.measure in COUNTS
    )  # whether the values are no shares
    results = property(lambda self: Results(self.rows))  # as a study's, with one row a run

    def save(self, folder: str | Path, *, force: bool = False) -> Path:
        """`results.csv` and `results.json` of the runs, and `table.txt`: what is printed. UsageError where files of
        somebody else's with these names are there, unless `force`."""
        check_replaceable([Path(folder) / name for name in WRITTEN], force=force)
        place = self.results.save(folder, parquet=False, force=force)
        write_file(place / TABLE, f"{self}\n\n{self.listing()}\n", force=force)
        return place

    def listing(self) -> str:
        """Every ordering with its verdict, a line each, and every claim with what is compared there and here."""
        claims = [f"{c.outcome}: {self.describe_claim(c)}" for c in self.claims]
        return "\n\n".join(["\n".join(self.list_orderings()), *claims])

    def list_orderings(self) -> list[str]:
        """Every ordering with its verdict, a line each, after a line of heads."""
        rows = [
            ["data set", "setting", "published order", "ahead by", "clear there", "here", "verdict"]
        ]
        known = {True: "yes", False: "no", None: "not known"}
        for o in self.orderings:
            order = [o.column.dataset, o.column.setting, f"{o.better} over {o.worse}"]
            ours = o.ours and replace(
                o.ours, mean=o.ours.mean * (-1 if self.table.less_is_better else 1)
            )
            rows.append(
                [*order, f"{o.gap:g}", known[o.clear_there], words(self, ours, "+"), o.verdict]
            )
        return format_text(rows).splitlines()

    def plot(self) -> Any:
        """The picture of all orderings: how far ahead there and here."""
        from .pictures import plot_orderings

        return plot_orderings(self)

    def parts(self) -> list[str | Grid]:
        return [
            heading(self),
            *blocks(self),
            *not_run(self),
            *differing(self),
            totals(self.orderings),
        ]


def reproduce(
    name: str,
    *,
    dataset: str | Path = "",
    scale: str | float = "classroom",
    seeds: int | Sequence[int] | None = None,
    stored: bool = False,
    workers: int = 1,
    out: str | Path | None = None,
    force: bool = False,
    cache: bool = True,
    progress: bool | None = None,
    watch: Callable[[Event], None] = lambda event: None,
    **overrides: Any,
) -> Reproduction:
    """Run a table of a paper, and show its published numbers beside ours.

    name:    a paper's set-up and the number of a table, such as "fens:1"; `paper_tables` lists them
    dataset: one of the table's data sets, for its own columns. Any other name or file is used for all columns. At
             classroom scale "mnist" means mnist:5k, and the digits stand for data sets that cannot be had offline
    scale:   "classroom"; "paper" takes the paper's set-up and data sets (this needs a GPU and days); a number below 1
             takes that set-up on this share of the training samples
    seeds:   how many, or which. The default is ten at classroom scale, else as many as in the paper (3)
    stored:  show the results that came with the package; nothing is run
    workers: processes on this machine;   out: a folder for `results.csv`, `results.json` and `table.txt`
    force:   replace files in `out` that the package did not write
    overrides: settings, recipe and method fields for all runs, such as `model="cnn"` or `epochs=20`

    Finished runs are stored, so a call that was stopped goes on later. Raises UsageError for wrong input, and
    RunError for a data set that cannot be loaded.
    """
    table = paper_table(name)
    if stored:
        written = (name, *(path.stat().st_mtime_ns for path in FILES if path.exists()))
        if written in _shown:
            return _shown[written]
        runs, why = stored_runs(table)
        abouts, made = zip(*map(read_stored_rows, FILES), strict=True)
        label = f"stored results of {abouts[0]['date']}, version {abouts[0]['version']}"
        if large := {run.dataset for run in runs} & {*SMALLER.values()}:
            label += f"; those of {min(large)} took {abouts[1]['minutes']} minutes on {abouts[1]['device']}"
        _shown[written] = beside(
            table, runs, why, sum(made, []), scale="classroom", seeds=(*range(SEEDS),), label=label
        )
        return _shown[written]
    scale, dataset, count = (
        scale_of(scale),
        str(dataset),
        check_whole_number("workers", parse_number(workers), 1, 1024),
    )
    checked(table, overrides)
    usual = SEEDS if scale == "classroom" else max(table.runs, 1)
    chosen = parse_seeds(usual if seeds is None else seeds, 0)
    runs, why = wanted(table, scale, dataset, chosen, overrides)
    if out is not None:
        check_results_folder(out, WRITTEN, force=force)
    for own in dict.fromkeys(run.dataset for run in runs):
        load(own)
    rows: list[dict[str, Any]] = []
    ways: dict[str, Any] = {"workers": count, "cache": cache, "watch": watch, "progress": progress}
    made = [
        row
        for _, row in compute_rows(
            points_of(runs), finished=lambda *run: rows.append(make_row(*run)), **ways
        )
    ]
    result = beside(table, runs, why, made, scale=scale, seeds=chosen, rows=rows)
    errors = [row["error"] for row in rows if row["error"]]
    if not result.values and errors:
        raise RunError(errors[0])
    if out is not None:
        result.save(out, force=force)
    return result


def beside(
    table: PaperTable,
    runs: Sequence[Wanted],
    why: Mapping[Place, str],
    made: Iterable[Row],
    **about: Any,
) -> Reproduction:
    """The table beside the rows that were `made` of its runs. `why`: what else was not run; `about`: more fields."""
    rows = {make_row_key(row): row for row in made}
    values: dict[Place, dict[int, float]] = {}
    unreached: dict[Place, list[int]] = {}
    reasons = dict(why)
    missing = {run.point.key: run.point for run in runs if run.point.key not in rows}.values()
    took = load_stored().seconds() if missing else {}
    minutes = math.ceil(sum(len(point.seeds) * took.get(point.method, 0) for point in missing) / 60)
    later = (
        f"fl.reproduce({table.name!r}) makes them, in about {max(minutes, 1)} min on a free core"
    )
    for run in runs:
        at, row = (run.row, run.place), rows.get(run.point.key, {})
        if run.label in row:
            of = {
                seed: v
                for seed, v in zip(row["seeds"], row[run.label], strict=True)
                if v is not None
            }
            values |= {at: of} if of else {}
            missed = [seed for seed in row["seeds"] if seed not in of]
            if missed and "failed" not in row:
                unreached[at] = missed
        if at in unreached and at not in values:
            reasons[at] = f"the target was not reached on any of {len(unreached[at])} seeds"
        elif at not in values or "failed" in row:
            reasons[at] = describe_missing(table, row, later)
    about |= {"values": values, "why": reasons, "wanted": runs, "unreached": unreached}
    return Reproduction(table, **about)


# ------------------------------------------------------------------------------------------------ in words
def describe_missing(table: PaperTable, row: Row, later: str) -> str:
    """Why a run of the table has no number: it failed, and what would run; or nobody made it yet (`later`)."""
    if "failed" not in row:
        return f"its results are not stored ({later})"
    return " ".join([row["failed"], table.remedy.replace("{table}", table.name)]).strip()


def heading(r: Reproduction) -> str:
    about = f"{r.table.paper}, {r.table.item}: {r.table.title}. The numbers: {r.table.number}."
    seeds = f"seed {r.seeds[0]}" if len(r.seeds) == 1 else f"{len(r.seeds)} seeds"
    on = ", ".join(dict.fromkeys(r.ran_on.values()))
    scale = (
        r.scale if isinstance(r.scale, str) else f"paper's, on {100 * r.scale:g} % of the samples"
    )
    here = (
        f"Here: {on}, scale {scale}, {seeds}, mean ± 95 % band of Student's t ({r.label})."
        if r.ran_on
        else ""
    )
    return " ".join(filter(None, [about, here, r.table.note]))


def blocks(r: Reproduction) -> Iterator[Grid]:
    """For each setting of the table: a row a method, the published numbers by data set, and ours."""
    columns = r.table.columns
    for setting in dict.fromkeys(column.setting for column in columns):
        places = [place for place, column in enumerate(columns) if column.setting == setting]
        names = [columns[place].dataset for place in places]
        own: dict[str, list[int]] = {}
        for place in places:
            own.setdefault(r.ran_on.get(place) or columns[place].dataset, []).append(place)
        own = {} if columns[places[0]].plain else own
        grid = [[setting, *names, *(f"here: {name}" for name in own)]]
        for row in r.table.rows:
            there = [
                columns[p].numbers[row].printed if row in columns[p].numbers else "-"
                for p in places
            ]
            grid.append([row, *there, *(describe_cell(r, row, of) for of in own.values())])
        yield grid


def describe_cell(r: Reproduction, row: str, columns: Sequence[int]) -> str:
    """Of what was run for a row in the first of the `columns` (by place) that has a result: mean and band, or on how
    many seeds a target was not reached."""
    for place in columns:
        if missed := r.describe_unreached((row, place)):
            return missed
        if ours := r.ours(row, place):
            return words(r, ours)
    return words(r, None)


def words(r: Reproduction, of: Band | None, sign: str = "") -> str:
    """'83.4 ± 2.1' of accuracies in points, '1.23 ± 0.10 million' of counts. `sign`: "+" where it is shown."""
    if of is None:
        return "not run"
    scale, digits, unit = (1e-6, 2, " million") if r.is_count else (100, 1, "")
    wide = "" if math.isnan(of.half_width) else f" ± {scale * of.half_width:.{digits}f}"
    return f"{scale * of.mean + 0.0:{sign}.{digits}f}{wide}{unit}"


def differing(r: Reproduction) -> list[str]:
    """One line on the rows that run another method than the paper's."""
    if not r.wanted:
        return []
    rows: dict[str, list[str]] = {}  # by what they have in common
    for row, words in departures(r.table, r.wanted).items():
        rows.setdefault(", ".join(words.values()), []).append(row)
    here = "; ".join(f"{', '.join(of)}: {words}" for words, of in rows.items()) or "none"
    return [
        f"Rows that differ from the paper's method here: {here}. Sizes, rates and steps are those of the scale."
    ]


def not_run(r: Reproduction) -> list[str]:
    """Each reason once, with the rows and data sets that it holds for."""
    lines = []
    for reason in dict.fromkeys(r.why.values()):
        of = [at for at in r.why if r.why[at] == reason]
        rows = [row for row in r.table.rows if row in dict(of)]
        what = ", ".join(rows) if len(rows) < len(r.table.rows) else "all rows"
        where = ", ".join(dict.fromkeys(r.table.columns[place].dataset for _, place in of))
        lines.append(f"Not run: {what} on {where}, because {reason.rstrip('.')}.")
    return lines


def totals(of: Sequence[Ordering]) -> str:
    """One line: how many orderings there are of each verdict, also of those that are clear in the paper."""
    tried = [o for o in of if o.verdict in TRIED]
    known = any(o.clear_there is not None for o in tried)
    clear = tally(o for o in tried if o.clear_there) if known else "not known, since it prints none"
    words = f"{len(of)} orderings (pairs of methods within a column): {tally(of)}. They rest on "
    words += (
        f"{(pairs := published.pairs(of))} pairs of runs. Clear by the paper's own spread: {clear}."
    )
    if any(o.why == "one seed" for o in of):
        words += " One seed is not enough; take two."
    if len(tried) >= MANY:
        words += f" By chance alone about {(1 - LEVEL) * pairs:.0f} of these {pairs} (5 %) would be clear."
    return words
