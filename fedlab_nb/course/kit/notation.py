"""The course's one table of symbols, notebooks/notation.md, shown in a notebook."""

import html
import re
from collections.abc import Sequence

from IPython.display import Markdown

from ...symbols import Symbol, find, plain, symbols, table

# what the box does at each letter: rows without it are hidden
FILTER = (
    "for(const r of this.parentNode.querySelectorAll('tbody tr'))"
    "r.hidden=!r.dataset.find.includes(this.value.trim().toLowerCase())"
)


class Notation(Markdown):
    """The table, or some rows of it. In a notebook it has a box: what is typed there leaves the rows that have it."""

    def __init__(self, rows: Sequence[Symbol], boxed: bool) -> None:
        text = table()
        if not boxed:
            head = [line for line in text.splitlines() if line.startswith("|")][:2]
            text = "\n".join([*head, *(row.line for row in rows)])
        super().__init__(text)
        self.rows, self.boxed = rows, boxed

    def __repr__(self) -> str:
        return "\n".join(f"{row.name}: {plain(row.meaning)}" for row in self.rows)

    def _repr_html_(self) -> str:
        box = f'<input type="search" placeholder="a symbol or a word" aria-label="Filter" oninput="{FILTER}">'
        head = "".join(
            f"<th>{name}</th>"
            for name in ("symbol", "meaning", "shape or range", "first in", "papers")
        )
        body = "".join(map(row_html, self.rows))
        rows = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<div>{box if self.boxed else ''}{rows}</div>"


def row_html(row: Symbol) -> str:
    """A row; its `data-find` has what the box looks for."""
    cells = (f"${row.latex}$", row.meaning, row.shape, row.first, row.papers)
    shown = (
        re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(cell, quote=False)) for cell in cells
    )
    asked = html.escape(
        " ".join([row.name, row.latex, *row.also, plain(row.meaning), row.papers]).lower()
    )
    return f'<tr data-find="{asked}">{"".join(f"<td style=text-align:left>{cell}</td>" for cell in shown)}</tr>'


def notation(symbol: str = "") -> Notation:
    """Every symbol of lessons, panels and docstrings: its meaning, its shape or range, and the papers' own letters.

    symbol: show only the rows of this symbol, such as "λ", "lambda" or "λ_damp", or the rows that have this word

    >>> fl.notation("α")   # doctest: +SKIP
    α: concentration of the Dirichlet distribution that divides the samples; smaller is more skewed
    """
    return Notation(find(symbol), boxed=False) if symbol else Notation(symbols(), boxed=True)
