"""A reproduced table in words: published beside ours, what was not run, and which orderings agree."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from ..results import accuracy_words, aligned, html_table
from ..statistics import Band
from .published import TRIED, Ordering

if TYPE_CHECKING:
    from .reproduction import Reproduction

Grid = list[list[str]]  # a table's cells, the head first
SHORT = {"agrees": "agrees", "disagrees": "DISAGREES", "within the noise": "noise", "tie in the paper": "tie"}


def text(r: Reproduction) -> str:
    """All of it but the list of orderings."""
    parts = [f"{setting}\n{aligned(grid)}" for setting, grid in blocks(r)]
    return "\n\n".join([heading(r), *parts, "\n".join([*not_run(r), *sentences(r)])])


def html(r: Reproduction) -> str:
    """The same, and the list of orderings folded under it."""
    parts = [f"<p>{escape(heading(r))}</p>"]
    parts += [f"<p><b>{escape(setting)}</b></p>{html_table(grid)}" for setting, grid in blocks(r)]
    parts += [f"<p>{escape(line)}</p>" for line in [*not_run(r), *sentences(r)]]
    lists = "".join(f"<p><b>{escape(setting)}</b></p>{html_table(grid)}" for setting, grid in pairs(r))
    legend = (
        "Published difference in the table's unit (* clear by the paper's spread), and the verdict; here in points."
    )
    parts.append(f"<details><summary>All {len(r.orderings)} orderings</summary><p>{legend}</p>{lists}</details>")
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
    return lines + by_pair(tried)


def tally(of: Sequence[Ordering]) -> str:
    """'5 agree, 1 disagrees and 2 are within the noise'."""
    n = Counter(o.verdict for o in of)
    agree = f"{n['agrees']} agree{'s' * (n['agrees'] == 1)}"
    against = f"{n['disagrees']} disagree{'s' * (n['disagrees'] == 1)}"
    noise = n["within the noise"]
    return f"{agree}, {against} and {noise} {'is' if noise == 1 else 'are'} within the noise"


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


def listing(r: Reproduction) -> str:
    """Every ordering, a line each."""
    rows = [["data set", "setting", "published order", "ahead by", "clear there", "here", "verdict"]]
    words = {True: "yes", False: "no", None: "not known"}
    for o in r.orderings:
        there = [o.column.dataset, o.column.setting, f"{o.better} over {o.worse}", f"{o.gap:g}", words[o.clear_there]]
        rows.append([*there, gap_words(r, o.ours), o.verdict])
    return aligned(rows)


def pairs(r: Reproduction) -> Iterator[tuple[str, Grid]]:
    """For each setting: a row a pair of methods, in the table's order, with its verdict by data set, and ours."""
    own = {(o.column.dataset, o.column.setting, frozenset((o.better, o.worse))): o for o in r.orderings}
    for setting, places in by_setting(r).items():
        datasets = [r.table.columns[place].dataset for place in places]
        grid = [["pair", *datasets, "here"]]
        for one, other in itertools.combinations(r.table.rows, 2):
            of = [own.get((dataset, setting, frozenset((one, other)))) for dataset in datasets]
            if any(of):
                ours = next((o for o in of if o and o.ours), None)
                sign = -1 if ours and ours.better != one else 1
                here = gap_words(r, ours.ours if ours else None, sign)
                grid.append([f"{one} − {other}", *(pair_words(o, one) for o in of), here])
        if len(grid) > 1:
            yield setting, grid


def pair_words(o: Ordering | None, one: str) -> str:
    """'+11.5* agrees': the published difference, `one` minus the other, and the verdict."""
    if o is None:
        return "-"
    gap = o.gap if (o.better == one) != o.table.less_is_better else -o.gap
    return f"{gap:+g}{'*' if o.clear_there else ''} {SHORT.get(o.verdict, o.verdict)}"


def gap_words(r: Reproduction, of: Band | None, sign: int = 1) -> str:
    """'+8.2 ± 3.1' points, or millions of numbers."""
    if of is None:
        return "not run"
    scale = 1e-6 if r.is_count else 100
    if r.table.less_is_better:
        sign = -sign
    wide = "" if math.isnan(of.half_width) else f" ± {scale * of.half_width:.1f}"
    return f"{scale * sign * of.mean + 0.0:+.1f}{wide}"
