"""A table of a paper beside the same runs made here: `reproduce` runs it, or shows its stored results."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from ...data import load
from ...errors import RunError, parsed, whole
from ..engine import bar, row_of, writable
from ..experiment import Event
from ..grid import Cell, seeds_of
from ..outcome import Outcome
from ..results import Results, accuracy_words, aligned, html_table, write
from ..rows import Row, computed, key_of, read
from ..statistics import LEVEL, Band, band
from .cells import SEEDS, STANDARD, Wanted, checked, departures, points_of, scale_of, stored_runs, wanted
from .published import (
    TABLES,
    TRIED,
    VERDICTS,
    Ordering,
    PaperTable,
    Place,
    Values,
    counts,
    orderings,
    pairs,
    paper_table,
    tally,
)  # fmt: skip

FILE = Path(__file__).parents[1] / "declared" / "tables.json"
Grid = list[list[str]]  # a table's cells, the head first
MANY = 100  # verdicts: a sentence says how many would be clear by chance
COUNTS = ("numbers to target",)  # measures that are no shares


@dataclass(frozen=True)
class Reproduction:
    """What was published, and what came out here.

    scale: "classroom", "paper" or a share of the paper's samples;   dataset: what every run was on, "" where each
    column was run on its own;   values: `{(row, column's place): {seed: value}}`, a share for an accuracy, else a count
    why: `{(row, column's place): why it was not run}`;   wanted: the runs;   rows: they as a study's rows (of stored
    results: none);   label: where they are from
    """

    table: PaperTable
    scale: str | float
    dataset: str
    seeds: tuple[int, ...]
    values: Values
    why: Mapping[Place, str]
    wanted: Sequence[Wanted] = ()
    rows: Sequence[Mapping[str, Any]] = ()
    label: str = "run here"

    @cached_property
    def orderings(self) -> tuple[Ordering, ...]:
        """Every pair of methods within a column, with its verdict."""
        runs = {(run.row, run.place): (run.point.key, run.label) for run in self.wanted}
        return tuple(orderings(self.table, self.values, self.why, runs))

    @property
    def counts(self) -> dict[str, int]:
        """How many orderings agree, disagree, and so on."""
        return counts(self.orderings)

    def ours(self, row: str, place: int) -> Band | None:
        """Mean and band of what was run for a row in the column at `place`; None if nothing was."""
        values = self.values.get((row, place))
        return band(values) if values else None

    @property
    def is_count(self) -> bool:
        """Whether the values are no shares."""
        return self.table.measure in COUNTS

    @property
    def results(self) -> Results:
        """The runs as a study's results, with one row a run."""
        return Results(self.rows)

    def save(self, folder: str | Path) -> Path:
        """`results.csv` and `results.json` of the runs, and `table.txt`: what is printed."""
        place = self.results.save(folder, parquet=False)
        write(place / "table.txt", f"{self}\n\n{self.listing()}\n")
        return place

    def listing(self) -> str:
        """Every ordering with its verdict, a line each."""
        return aligned(listing(self))

    def plot(self) -> Any:
        """The picture of all orderings: how far ahead there and here."""
        import fedlab_nb

        return fedlab_nb.plot_orderings(self)

    def __repr__(self) -> str:
        return text(self)

    def _repr_html_(self) -> str:
        return html(self)


def reproduce(
    name: str,
    *,
    dataset: str | Path = "",
    scale: str | float = "classroom",
    seeds: int | Sequence[int] | None = None,
    stored: bool = False,
    workers: int = 1,
    out: str | Path | None = None,
    cache: bool = True,
    progress: bool | None = None,
    watch: Callable[[Event], None] = lambda event: None,
    **overrides: Any,
) -> Reproduction:
    """Run a table of a paper, and show its published numbers beside ours.

    name:    "fens:1", "fedet:2", "fedet:3", "coboosting:1", "coboosting:2", "fusefl:2" or "fedlpa:1"
    dataset: one of the table's data sets, for its own columns. Any other name or file is used for all columns. At
             classroom scale the default is the digits, for all columns
    scale:   "classroom"; "paper" takes the paper's set-up and data sets (this needs a GPU and days); a number below 1
             takes that set-up on this share of the training samples
    seeds:   how many, or which. The default is ten at classroom scale, else as many as in the paper (3)
    stored:  show the results that came with the package; nothing is run
    workers: processes on this machine;   out: a folder for `results.csv`, `results.json` and `table.txt`
    overrides: settings, recipe and method fields for all runs, such as `model="cnn"` or `epochs=20`

    Finished runs are stored, so a call that was stopped goes on later. Raises UsageError for wrong input, and
    RunError for a data set that cannot be loaded.
    """
    table = paper_table(name)
    if stored:
        about, made = read(FILE)
        label = f"stored results of {about['date']}, version {about['version']}"
        seeds = tuple(made[0]["seeds"])
        return beside(table, *stored_runs(table), made, scale="classroom", dataset=STANDARD, seeds=seeds, label=label)
    scale, dataset, count = scale_of(scale), str(dataset), whole("workers", parsed(workers), 1, 1024)
    checked(table, overrides)
    usual = SEEDS if scale == "classroom" else max(table.runs, 1)
    chosen = seeds_of(usual if seeds is None else seeds, 0)
    runs, why = wanted(table, scale, dataset, chosen, overrides)
    if out is not None:
        writable(Path(out))
    datasets = list(dict.fromkeys(run.dataset for run in runs))
    for own in datasets:
        load(own)
    points = points_of(runs)
    rows: list[dict[str, Any]] = []
    with bar(len(points) * len(chosen), progress) as shown:

        def finished(cell: Cell, outcome: Outcome | None, error: str) -> None:
            rows.append(row_of(cell, outcome, error))
            shown.update()

        made = [row for _, row in computed(points, workers=count, cache=cache, watch=watch, finished=finished)]
    on = datasets[0] if len(datasets) == 1 else ""
    result = beside(table, runs, why, made, scale=scale, dataset=on, seeds=chosen, rows=rows)
    errors = [row["error"] for row in rows if row["error"]]
    if not result.values and errors:
        raise RunError(errors[0])
    if out is not None:
        result.save(out)
    return result


def beside(
    table: PaperTable, runs: Sequence[Wanted], why: Mapping[Place, str], made: Iterable[Row], **about: Any
) -> Reproduction:
    """The table beside the rows that were `made` of its runs. `why`: what else was not run; `about`: more fields."""
    rows = {key_of(row): row for row in made}
    values: dict[Place, dict[int, float]] = {}
    reasons = dict(why)
    for run in runs:
        at, row = (run.row, run.place), rows.get(run.point.key, {})
        if run.label in row:
            of = {seed: v for seed, v in zip(row["seeds"], row[run.label], strict=True) if v is not None}
            values |= {at: of} if of else {}
        if at not in values or "failed" in row:
            reasons[at] = row.get("failed", "the stored results lack it")
    return Reproduction(table, values=values, why=reasons, wanted=runs, **about)


# ------------------------------------------------------------------------------------------------ in words
def text(r: Reproduction) -> str:
    """All of it but the list of orderings."""
    parts = [f"{setting}\n{aligned(grid)}" for setting, grid in blocks(r)]
    return "\n\n".join([heading(r), *parts, "\n".join(notes(r))])


def html(r: Reproduction) -> str:
    """The same, and the list of orderings folded under it."""
    parts = [f"<p>{escape(heading(r))}</p>"]
    parts += [f"<p><b>{escape(setting)}</b></p>{html_table(grid)}" for setting, grid in blocks(r)]
    parts += [f"<p>{escape(line)}</p>" for line in notes(r)]
    parts.append(f"<details><summary>All {len(r.orderings)} orderings</summary>{html_table(listing(r))}</details>")
    return "".join(parts)


def heading(r: Reproduction) -> str:
    about = f"{r.table.paper}, Table {r.table.table}: {r.table.title}. The numbers: {r.table.number}."
    seeds = f"seed {r.seeds[0]}" if len(r.seeds) == 1 else f"{len(r.seeds)} seeds"
    on = r.dataset or "the paper's data sets"
    scale = r.scale if isinstance(r.scale, str) else f"paper's, on {100 * r.scale:g} % of the samples"
    here = f"Here: {on}, scale {scale}, {seeds}, mean ± 95 % band of Student's t ({r.label})."
    return " ".join(filter(None, [about, here, r.table.note]))


def blocks(r: Reproduction) -> Iterator[tuple[str, Grid]]:
    """For each setting of the table: a row a method, the published numbers by data set, and ours."""
    for setting, places in by_setting(r).items():
        names = [r.table.columns[place].dataset for place in places]
        own = [places[:1]] if r.dataset else [[place] for place in places]
        ours = [f"here: {r.dataset}"] if r.dataset else [f"here: {name}" for name in names]
        grid = [["method", *names, *ours]]
        for row in r.table.rows:
            published = [r.table.columns[place].numbers.get(row) for place in places]
            bands = [next((b for p in (places if r.dataset else of) if (b := r.ours(row, p))), None) for of in own]
            grid.append([row, *(str(n) if n else "-" for n in published), *(value_words(r, b) for b in bands)])
        yield setting, grid


def by_setting(r: Reproduction) -> dict[str, list[int]]:
    """The columns' places by what they set."""
    places: dict[str, list[int]] = {}
    for place, column in enumerate(r.table.columns):
        places.setdefault(column.setting, []).append(place)
    return places


def value_words(r: Reproduction, of: Band | None) -> str:
    """'83.4 ± 2.1' of an accuracy in per cent, '1.23 ± 0.10 million' of a count."""
    if of is None:
        return "not run"
    if not r.is_count:
        return accuracy_words(of)
    wide = "" if math.isnan(of.half_width) else f" ± {of.half_width / 1e6:.2f}"
    return f"{of.mean / 1e6:.2f}{wide} million"


def notes(r: Reproduction) -> list[str]:
    """What stands under the numbers."""
    return [*not_run(r), *differing(r), *sentences(r)]


def differing(r: Reproduction) -> list[str]:
    """One line on the rows that run another method than the paper's."""
    if not r.wanted:
        return []
    rows: dict[str, list[str]] = {}  # by what they have in common
    for row, words in departures(r.table, r.wanted).items():
        rows.setdefault(", ".join(words.values()), []).append(row)
    here = "; ".join(f"{', '.join(of)}: {words}" for words, of in rows.items()) or "none"
    return [f"Rows that differ from the paper's method here: {here}. Sizes, rates and steps are those of the scale."]


def not_run(r: Reproduction) -> list[str]:
    """Each reason once, with the rows and columns that it holds for."""
    lines = []
    for reason in dict.fromkeys(r.why.values()):
        of = [at for at in r.why if r.why[at] == reason]
        rows = [row for row in r.table.rows if row in dict(of)]
        columns = {place: r.table.columns[place] for _, place in of}
        whole = len(rows) > 1 and all((row, place) in of for place, own in columns.items() for row in own.numbers)
        what = ", ".join(dict.fromkeys(own.dataset for own in columns.values()) if whole else rows)
        lines.append(f"Not run: {what}, because {reason.rstrip('.')}.")
    return lines


def sentences(r: Reproduction) -> list[str]:
    """Which orderings agree: the counts, then pair by pair."""
    count = r.counts
    tried = [o for o in r.orderings if o.verdict in TRIED]
    total = f"The table has {len(r.orderings)} orderings: pairs of methods within a column."
    lines = [f"{total} {len(tried)} were tried: {tally(tried)}."]
    if count["tie in the paper"]:
        lines.append(f"{count['tie in the paper']} are ties in the paper, which have no order.")
    if count["not run"]:
        alone = " One seed is not enough; take two." if any(o.why == "one seed" for o in r.orderings) else ""
        lines.append(f"{count['not run']} could not be tried.{alone}")
    judged = [o for o in tried if o.clear_there is not None]
    if judged:
        clear = [o for o in judged if o.clear_there]
        lines.append(f"{len(clear)} of those tried are clear by the paper's own spread: {tally(clear)}.")
    elif tried:
        lines.append("The paper prints no spread, so nobody can say which of its orderings are clear.")
    lines += by_chance(len(tried))
    return lines + by_pair(tried)


def by_chance(verdicts: int) -> list[str]:
    """What to keep in mind of many verdicts."""
    chance = f"{100 * (1 - LEVEL):.0f} % of the {verdicts} verdicts, about {(1 - LEVEL) * verdicts:.0f}"
    return [f"If all methods were equally good, {chance}, would be clear by chance."] if verdicts >= MANY else []


def by_pair(tried: Sequence[Ordering]) -> list[str]:
    """Three lists of pairs: those that disagree somewhere, those that agree everywhere, and the rest."""
    groups: dict[tuple[str, str], Counter[str]] = {}
    for o in tried:
        groups.setdefault((o.better, o.worse), Counter())[o.verdict] += 1
    against, everywhere = "Published so, and clearly the other way round here", "Agrees wherever it was tried"
    somewhere = "Agrees in some columns, within the noise in the others"
    noise = "Within the noise wherever it was tried"
    lists: dict[str, list[str]] = {words: [] for words in (against, everywhere, somewhere, noise)}
    for (better, worse), n in groups.items():
        pair, total = f"{better} over {worse}", sum(n.values())
        if n["disagrees"]:
            lists[against].append(f"{pair} ({n['disagrees']} of {total})")
        elif n["agrees"] == total:
            lists[everywhere].append(f"{pair} ({total})")
        elif n["agrees"]:
            lists[somewhere].append(f"{pair} ({n['agrees']} of {total})")
        else:
            lists[noise].append(f"{pair} ({total})")
    return [f"{words}: {', '.join(of)}." for words, of in lists.items() if of]


def listing(r: Reproduction) -> Grid:
    """Every ordering, a row each."""
    rows = [["data set", "setting", "published order", "ahead by", "clear there", "here", "verdict"]]
    words = {True: "yes", False: "no", None: "not known"}
    for o in r.orderings:
        there = [o.column.dataset, o.column.setting, f"{o.better} over {o.worse}", f"{o.gap:g}", words[o.clear_there]]
        rows.append([*there, gap_words(r, o.ours), o.verdict])
    return rows


def gap_words(r: Reproduction, of: Band | None) -> str:
    """'+8.2 ± 3.1' points, or millions of numbers."""
    if of is None:
        return "not run"
    scale, sign = 1e-6 if r.is_count else 100, -1 if r.table.less_is_better else 1
    wide = "" if math.isnan(of.half_width) else f" ± {scale * of.half_width:.1f}"
    return f"{scale * sign * of.mean + 0.0:+.1f}{wide}"


# ------------------------------------------------------------------------------------------------ all tables
@dataclass(frozen=True)
class PaperTables:
    """The stored reproductions of all tables."""

    tables: Sequence[Reproduction]

    @property
    def grid(self) -> Grid:
        """A row a table: how many orderings it has, and how many of each verdict; how many pairs of runs are behind
        them, and with how many published columns these agree; of the clear orderings how many agree."""
        head = ["table", "paper", "orderings", *VERDICTS, "pairs of runs", "agree with every column", "some", "none"]
        rows = [[*head, "clear in the paper", "of these agree", "disagree"]]
        for r in self.tables:
            clear = [o.verdict for o in r.orderings if o.clear_there and o.verdict in TRIED]
            own = ["not known", "", ""]
            if any(o.clear_there is not None for o in r.orderings):
                own = [str(len(clear)), str(clear.count("agrees")), str(clear.count("disagrees"))]
            title = f"{r.table.paper}, Table {r.table.table}"
            rows.append(
                [
                    r.table.name,
                    title,
                    *map(str, [len(r.orderings), *r.counts.values(), *pairs(r.orderings).values()]),
                    *own,
                ]
            )
        return rows

    @property
    def sentence(self) -> str:
        tried = [o for r in self.tables for o in r.orderings if o.verdict in TRIED]
        clear = [o for o in tried if o.clear_there]
        every = sum(len(r.orderings) for r in self.tables)
        return " ".join([
            f"The {len(self.tables)} tables have {every} orderings. {len(tried)} were tried: {tally(tried)}.",
            f"{len(clear)} of these are clear by the paper's own spread: {tally(clear)}.", *by_chance(len(tried)),
        ])  # fmt: skip

    def __repr__(self) -> str:
        return f"{aligned(self.grid)}\n\n{self.sentence}"

    def _repr_html_(self) -> str:
        return f"{html_table(self.grid)}<p>{self.sentence}</p>"


def paper_tables() -> PaperTables:
    """Show all tables with the results that came with the package. Nothing is run."""
    return PaperTables([reproduce(name, stored=True) for name in TABLES])
