"""Tables and sizes as text: aligned, in Markdown, in LaTeX and in HTML.

A table is a list of rows of cells, the header first. `Printable` is the base of objects that a
terminal or a notebook shows as sentences and such tables.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape

TextTable = list[list[str]]  # a table's cells, the head first
Paragraph = str  # one of the texts above and below a table
NUMERIC_CELL = re.compile(r"[+−-]?\d|-?$")


class Printable:
    """Base of objects that a terminal or a notebook shows as the sentences and tables of
    `make_paragraphs_and_tables()`.
    """

    def make_paragraphs_and_tables(self) -> list[Paragraph | TextTable]:
        raise NotImplementedError

    def __repr__(self) -> str:
        texts = []
        for part in self.make_paragraphs_and_tables():
            texts.append(part if isinstance(part, str) else f"{format_text_table(part)}\n")
        return "\n".join(texts).strip()

    def _repr_html_(self) -> str:
        texts = []
        for part in self.make_paragraphs_and_tables():
            texts.append(
                f"<p>{escape(part)}</p>" if isinstance(part, str) else format_html_table(part)
            )
        return "".join(texts)


def is_column_of_numbers(header_and_cells: Sequence[str]) -> bool:
    """Whether the cells of a column, its head left out, are numbers or empty."""
    return all(NUMERIC_CELL.match(cell) for cell in header_and_cells[1:])


def format_text_table(header_and_rows: Sequence[Sequence[str]]) -> str:
    """Format rows as lines of text. Columns of numbers are aligned on the right, the others on the
    left.
    """
    padded_columns = []
    for column in zip(*header_and_rows, strict=True):
        width = max(len(cell) for cell in column)
        pad = str.rjust if is_column_of_numbers(column) else str.ljust
        padded_columns.append([pad(cell, width) for cell in column])
    lines = ["  ".join(cells).rstrip() for cells in zip(*padded_columns, strict=True)]
    return "\n".join(lines)


def format_markdown_table(header_and_rows: Sequence[Sequence[str]]) -> str:
    """Format rows as a table in Markdown."""
    lines = []
    for row in header_and_rows:
        cells = [cell.replace("|", "\\|") for cell in row]
        lines.append(f"| {' | '.join(cells)} |")
    rule = "|---" * len(header_and_rows[0]) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def format_html_table(
    header_and_rows: Sequence[Sequence[str]], *, should_add_data_column_attribute: bool = False
) -> str:
    """Format rows as a table in HTML.

    should_add_data_column_attribute: each cell has the name of its column as `data-column`, for frames with room
        for one column
    """
    sides = []
    for column in zip(*header_and_rows, strict=True):
        sides.append("right" if is_column_of_numbers(column) else "left")
    lines = []
    for i, row in enumerate(header_and_rows):
        opening, closing = ("<td", "</td>") if i else ('<th scope="col"', "</th>")
        cells = ""
        for column_name, cell, side in zip(header_and_rows[0], row, sides, strict=True):
            name = ""
            if should_add_data_column_attribute and i:
                name = f' data-column="{escape(column_name)}"'
            cells += f'{opening}{name} style="text-align:{side}">{escape(cell)}{closing}'
        lines.append(f"<tr>{cells}</tr>")
    return f"<table>{''.join(lines)}</table>"


def format_latex_table(header_and_rows: Sequence[Sequence[str]]) -> str:
    """Format rows as a tabular environment of LaTeX. The first column is aligned left, the others
    right.
    """
    lines = []
    for row in header_and_rows:
        cells = [
            cell.replace("_", "\\_").replace("%", "\\%").replace("±", "$\\pm$") for cell in row
        ]
        lines.append(f"{' & '.join(cells)} \\\\")
    columns = "l" + "r" * (len(header_and_rows[0]) - 1)
    rule = r"\hline"
    return "\n".join(
        [
            f"\\begin{{tabular}}{{{columns}}}",
            rule,
            lines[0],
            rule,
            *lines[1:],
            rule,
            r"\end{tabular}",
        ]
    )


FORMATS: Mapping[str, Callable[[Sequence[Sequence[str]]], str]] = {
    "text": format_text_table,
    "markdown": format_markdown_table,
    "latex": format_latex_table,
}


def format_data_size(byte_count: float) -> str:
    """Format bytes in decimal units: 26280 -> '26.3 kB'."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(byte_count) < 1000 or unit == "TB":
            break
        byte_count /= 1000
    return f"{byte_count:.0f} B" if unit == "B" else f"{byte_count:.3g} {unit}"
