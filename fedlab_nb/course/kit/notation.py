"""The course's one table of symbols, notebooks/notation.md, shown in a notebook."""

import html
import re
from collections.abc import Sequence

from IPython.display import Markdown

from ...symbols import (
    Symbol,
    find_symbols,
    read_notation_text,
    read_symbols,
    replace_latex_formulas_by_text,
)

# What the box does each time something is typed: it hides the rows that do not contain it.
FILTER_SCRIPT = (
    "for(const r of this.parentNode.querySelectorAll('tbody tr'))"
    "r.hidden=!r.dataset.find.includes(this.value.trim().toLowerCase())"
)
FILTER_BOX = (
    '<input type="search" placeholder="a symbol or a word" aria-label="Filter" '
    f'oninput="{FILTER_SCRIPT}">'
)
COLUMNS = ("symbol", "meaning", "shape or range", "first in", "papers")


class Notation(Markdown):
    """The table, or some of its rows. In a notebook the whole table has a box to filter its
    rows.
    """

    def __init__(self, rows: Sequence[Symbol], has_filter: bool) -> None:
        text = read_notation_text()
        if not has_filter:
            header = [line for line in text.splitlines() if line.startswith("|")][:2]
            text = "\n".join(header + [row.line for row in rows])
        super().__init__(text)
        self.rows = rows
        self.has_filter = has_filter

    def __repr__(self) -> str:
        return "\n".join(
            f"{row.name_in_plain_letters}: {replace_latex_formulas_by_text(row.meaning)}"
            for row in self.rows
        )

    def _repr_html_(self) -> str:
        header = "".join(f"<th>{name}</th>" for name in COLUMNS)
        body = "".join(make_searchable_symbol_row_html(row) for row in self.rows)
        box = FILTER_BOX if self.has_filter else ""
        return (
            f"<div>{box}<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table></div>"
        )


def make_searchable_symbol_row_html(symbol: Symbol) -> str:
    """Make a row of the table; its `data-find` is the text that the box searches."""
    cells = []
    for text in (f"${symbol.latex}$", symbol.meaning, symbol.shape, symbol.first, symbol.papers):
        escaped = html.escape(text, quote=False)
        content = re.sub(r"`([^`]*)`", r"<code>\1</code>", escaped)
        cells.append(f"<td style=text-align:left>{content}</td>")
    words = [
        symbol.name_in_plain_letters,
        symbol.latex,
        *symbol.other_symbols,
        replace_latex_formulas_by_text(symbol.meaning),
        symbol.papers,
    ]
    searched = html.escape(" ".join(words).lower())
    return f'<tr data-find="{searched}">{"".join(cells)}</tr>'


def notation(symbol: str = "") -> Notation:
    """Show every symbol of lessons, panels and docstrings: its meaning, its shape or range, and the
    papers' own letters.

    symbol: show only the rows of this symbol, such as "λ", "lambda" or "λ_damp", or the rows that
        have this word

    >>> fl.notation("α")   # doctest: +SKIP
    α: concentration of the Dirichlet distribution that divides the samples; smaller is more skewed
    """
    if symbol:
        return Notation(find_symbols(symbol), has_filter=False)
    return Notation(read_symbols(), has_filter=True)
