"""All reproduced tables at a glance: how many orderings of each agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..results import aligned
from .orderings import TRIED, VERDICTS
from .published import TABLES
from .reproducing import reproduce
from .reproduction import Reproduction
from .words import Grid, table, tally


@dataclass(frozen=True)
class PaperTables:
    """The stored reproductions of all tables."""

    tables: Sequence[Reproduction]

    @property
    def grid(self) -> Grid:
        """A row a table: how many orderings it has, and how many of each verdict; of the clear ones the same."""
        rows = [["table", "paper", "orderings", *VERDICTS, "clear in the paper", "of these agree", "disagree"]]
        for r in self.tables:
            clear = [o for o in r.orderings if o.clear_there and o.verdict in TRIED]
            verdicts = [o.verdict for o in clear]
            known = any(o.clear_there is not None for o in r.orderings)
            own = (
                [len(clear), verdicts.count("agrees"), verdicts.count("disagrees")] if known else ["not known", "", ""]
            )
            title = f"{r.table.paper}, Table {r.table.table}"
            rows.append([r.table.name, title, *map(str, [len(r.orderings), *r.counts.values(), *own])])
        return rows

    @property
    def sentence(self) -> str:
        tried = [o for r in self.tables for o in r.orderings if o.verdict in TRIED]
        clear = [o for o in tried if o.clear_there]
        every = sum(len(r.orderings) for r in self.tables)
        return (
            f"The {len(self.tables)} tables have {every} orderings. {len(tried)} were tried: {tally(tried)}. "
            f"{len(clear)} of these are clear by the paper's own spread: {tally(clear)}."
        )

    def __repr__(self) -> str:
        return f"{aligned(self.grid)}\n\n{self.sentence}"

    def _repr_html_(self) -> str:
        return f"{table(self.grid)}<p>{self.sentence}</p>"


def paper_tables() -> PaperTables:
    """Show all tables with the results that came with the package. Nothing is run."""
    return PaperTables([reproduce(name, stored=True) for name in TABLES])
