"""Every table and figure of the five papers: whether its numbers are here, whether it was run, and what came out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

from ..declared import read_toml
from ..studies.statistics import LEVEL
from ..studies.text_tables import Grid, Printable, format_html
from .claims import JUDGED, OUTCOMES, Claim, drop_repeated_claims
from .published import FOLDER, PAPERS, TABLES, Ordering
from .reproduction import Reproduction, reproduce, totals

HEAD = ["", "what it shows", "published", "run here", "claims that hold"]


@dataclass(frozen=True, repr=False)
class PaperTables(Printable):
    """The stored reproductions of all tables, and the list of everything. `plot()`: the picture of all claims."""

    tables: Sequence[Reproduction]

    @cached_property
    def claims(self) -> list[Claim]:
        """A paper's own method beside each other row of a table: whether the order is the same here."""
        return [claim for r in self.tables for claim in r.claims]

    @cached_property
    def first(self) -> list[Claim]:
        """The claims that were judged, each result once."""
        return drop_repeated_claims(self.claims)

    @property
    def counts(self) -> dict[str, int]:
        """How many claims come out in each way, each result once; and how many were not compared."""
        seen = Counter(claim.outcome for claim in self.first)
        everything = Counter(claim.outcome for claim in self.claims)
        return {name: (seen if name in JUDGED else everything)[name] for name in OUTCOMES}

    def describe_claims(self) -> list[str]:
        """For each claim, how it came out, and what is compared there and here."""
        return [f"{c.outcome}: {r.describe_claim(c)}" for r in self.tables for c in r.claims]

    @property
    def orderings(self) -> list[Ordering]:
        """Every pair of methods within a column of a table."""
        return [o for r in self.tables for o in r.orderings]

    @property
    def grids(self) -> dict[str, Grid]:
        """{paper: a row a table or figure, with a head}: all of them, also those without numbers."""
        rows: dict[str, dict[str, list[str]]] = {paper: {} for paper in PAPERS}
        for r in self.tables:
            rows[r.table.name.split(":")[0]][r.table.item] = [
                r.table.item,
                r.table.title,
                *came_out(r),
            ]
        for paper, of in rows.items():
            for item, (title, why) in read_toml(f"{FOLDER}/others.toml")[paper].items():
                of[item] = [item, title, f"no: {why}", "", ""]
        return {
            paper: [HEAD, *sorted(of.values(), key=lambda row: in_order(row[0]))]
            for paper, of in rows.items()
        }

    @property
    def sentence(self) -> str:
        """How many claims were judged, how they came out, and how many would come out by chance."""
        once = len(self.first)
        judged = sum(claim.outcome in JUDGED for claim in self.claims)
        words = ", ".join(f"{name} {self.counts[name]}" for name in JUDGED if self.counts[name])
        one = sum(not any(column.dealt for column in claim.table.columns) for claim in self.first)
        same = ""
        if one:
            same = f" {one} of them are of one federation, whose clients come with the data."
        return (
            f"{len(self.claims)} claims, each of a paper's own method beside one other row of a table. "
            f"{self.counts['not tried']} were not tried; {self.counts['not comparable']} were run, but at another "
            f"setting or budget than the paper's or without reaching its target, and do not count. "
            f"{judged - once} of the other {judged} repeat numbers that another claim has. "
            f"The {once} that are left: {words}.{same} "
            f"By chance alone about {(1 - LEVEL) * once:.0f} of the {once} (5 %) would be clear."
        )

    def plot(self) -> Any:
        """The picture of all claims: a square each."""
        from .pictures import plot_claims

        return plot_claims(self)

    def parts(self) -> list[str | Grid]:
        named = [part for paper, grid in self.grids.items() for part in (PAPERS[paper], grid)]
        return [self.sentence, *named, totals(self.orderings)]

    def _repr_html_(self) -> str:
        named = {
            f"{PAPERS[paper]}: {len(grid) - 1} tables and figures": grid
            for paper, grid in self.grids.items()
        }
        folded = (
            f'<details style="overflow-x:auto"><summary>{n}</summary>{format_html(grid)}</details>'
            for n, grid in named.items()
        )
        words = (f"<p>{escape(text)}</p>" for text in (self.sentence, totals(self.orderings)))
        return "".join([next(words), *folded, *words])


def in_order(item: str) -> tuple[bool, int]:
    """Tables before figures, by number."""
    kind, _, number = item.partition(" ")
    return kind == "Figure", int(number)


def came_out(r: Reproduction) -> list[str]:
    """Of a table: how many numbers are published, what was run for how many of them, why not for the others, and how
    its claims came out."""
    count = sum(len(column.numbers) for column in r.table.columns)
    seeds = len(next(iter(r.values.values()), ()))
    on = ", ".join(dict.fromkeys(r.ran_on.values()))
    why = "; ".join(dict.fromkeys(reason.rstrip(".") for reason in r.why.values()))
    rest = f"; the others: {why}" * bool(why)
    here = f"{len(r.values)} of {count}, on {on}, {seeds} seeds{rest}" if r.values else f"no: {why}"
    return [f"{count} numbers", here, describe_outcomes(r.claims)]


def describe_outcomes(claims: Sequence[Claim]) -> str:
    """'5 of 7, 1 reversed, 1 within the noise; 2 not comparable'; "" where nothing was run."""
    outcomes = Counter(claim.outcome for claim in claims)
    judged = sum(outcomes[name] for name in JUDGED)
    parts = []
    if judged:
        rest = [f"{outcomes[name]} {name}" for name in JUDGED[1:] if outcomes[name]]
        parts.append(", ".join([f"{outcomes['holds']} of {judged}", *rest]))
    if outcomes["not comparable"]:
        parts.append(f"{outcomes['not comparable']} not comparable")
    return "; ".join(parts)


def paper_tables() -> PaperTables:
    """Show all tables with the results that came with the package. Nothing is run."""
    return PaperTables([reproduce(name, stored=True) for name in TABLES])
