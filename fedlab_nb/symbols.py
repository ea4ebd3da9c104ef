"""Reads the course's table of symbols, `notation.md` beside the notebooks: the name and meaning of each symbol.

find_symbols("λ_damp")                 # [Symbol(…)]; also find_symbols("lambda")
explain_symbols_in_label("η_w M", "Co-Boosting")  # 'η_w: step of a weight in ensemble enhancement'
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from .errors import UsageError
from .jupyter import find_course_source_folder

NAMES = "alpha beta gamma delta varepsilon zeta eta theta kappa lambda mu xi pi rho sigma tau varphi omega"
GREEK = dict(zip(f"{NAMES} Theta Lambda Sigma".split(), "αβγδεζηθκλμξπρστφωΘΛΣ", strict=True))
WORDS = {"star": "*", "top": "ᵀ", "partial": "∂", "dots": "…", "mathrm": "", "text": ""}
SCRIPT = {"K": "𝒦", "L": "ℒ", "N": "𝒩", "P": "𝒫", "E": "𝔼"}  # letters in \\mathcal and \\mathbb
ACCENTS = {"bar": "\u0304", "hat": "\u0302"}
# Small digits as labels of controls write them: their form in the table.
DIGITS = str.maketrans({"₀": "_0", "₁": "_1", "₂": "_2", "⁰": "^0"})
# The methods that alone use a symbol, at the beginning of its meaning: "FENS: ", "Co-Boosting, FedLPA: ".
OWNER = re.compile(r"([A-Z][\w-]*|matching|merging changes)(?:[, ][\w, -]*)?: ")


def replace_latex_formulas_by_text(text: str) -> str:
    r"""Write the formulas of a text in plain letters: r'weight of $\theta_k$' -> 'weight of θ_k'."""
    text = re.sub(r"\$([^$]*)\$", lambda match: convert_latex_to_text(match[1]), text)
    return text.replace("`", "")


def convert_latex_to_text(latex: str) -> str:
    r"""Write a formula in plain letters: r'\lambda_{div}' -> 'λ_div', r'\bar f_w(x)' -> 'f̄_w(x)'."""
    accented = r"\\(bar|hat)\s*\{?\\?((?<=\\)[A-Za-z]+|[A-Za-z])\}?"
    text = re.sub(accented, lambda m: GREEK.get(m[2], m[2]) + ACCENTS[m[1]], latex)
    text = re.sub(r"\\math(?:cal|bb)\s*\{?([A-Z])\}?", lambda m: SCRIPT.get(m[1], m[1]), text)
    text = re.sub(r"\\([A-Za-z]+)\s*", lambda m: GREEK.get(m[1], WORDS.get(m[1], m[1])), text)
    return re.sub(r"[{}\\]", "", text)


@dataclass(frozen=True)
class Symbol:
    """A row of the table.

    latex: the symbol without its dollars
    first: the lesson that introduces it, or "panels"
    papers: the papers' own letters
    line: the row as it stands in the table
    """

    latex: str
    meaning: str
    shape: str
    first: str
    papers: str
    line: str

    @property
    def name_in_plain_letters(self) -> str:
        """The symbol in plain letters: 'λ_div'."""
        return convert_latex_to_text(self.latex)

    @property
    def name_before_brackets(self) -> str:
        """The name without its arguments: 'f_k' of 'f_k(x)'."""
        return re.sub(r"\(.*\)$", "", self.name_in_plain_letters)

    @property
    def anchor(self) -> str:
        """The row's name in a link: 'lambda_div'."""
        plain = re.sub(r"[\\{}]|\(.*\)$", "", self.latex)
        return re.sub(r"\W+", "-", plain).strip("-")

    @property
    def method_title(self) -> str:
        """The only method or topic that uses it, such as 'FENS'; '' for a symbol of the whole course."""
        match = OWNER.match(self.meaning)
        return match[1] if match else ""

    @property
    def other_symbols(self) -> list[str]:
        """Further symbols that its meaning explains, in plain letters."""
        return [convert_latex_to_text(latex) for latex in re.findall(r"\$([^$]+)\$", self.meaning)]

    @property
    def first_meaning(self) -> str:
        """The first part of its meaning in plain letters, for a tooltip."""
        return re.split(r"; |\. ", replace_latex_formulas_by_text(self.meaning))[0].rstrip(".")


def read_notation_text() -> str:
    """The text of `notation.md`."""
    return (find_course_source_folder() / "notation.md").read_text(encoding="utf-8")


@cache
def read_symbols() -> tuple[Symbol, ...]:
    """Read all rows of the table, in their order."""
    rows = []
    table_lines = [line for line in read_notation_text().splitlines() if line.startswith("|")]
    for line in table_lines[2:]:  # below the header and its rule
        first_cell, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        latex = re.sub(r"<a [^>]*></a>|\$", "", first_cell)
        rows.append(Symbol(latex, *cells, line))
    return tuple(rows)


def find_symbols(symbol_or_word: str) -> list[Symbol]:
    """Find the rows of a symbol, written 'λ', 'lambda' or '\\lambda'; first its own, then those of related symbols.

    If there is none, find the rows whose meaning contains `symbol_or_word`. UsageError if there is none either.
    """
    symbol_name = convert_latex_to_text(str(symbol_or_word).strip().strip("$"))
    greek_names = re.compile(r"(?<![A-Za-z])(" + "|".join(GREEK) + r")(?![A-Za-z])")
    symbol_name = greek_names.sub(lambda match: GREEK[match[1]], symbol_name)
    spellings = {symbol_name, SCRIPT.get(symbol_name)}
    exact = []
    related = []
    described = []
    for row in read_symbols():
        has_index = row.name_before_brackets.startswith((f"{symbol_name}_", f"{symbol_name}^"))
        if spellings & {row.name_in_plain_letters, row.name_before_brackets}:
            exact.append(row)
        elif has_index or symbol_name in row.other_symbols:
            related.append(row)
        if (
            len(symbol_name) > 2
            and symbol_name.lower() in replace_latex_formulas_by_text(row.meaning).lower()
        ):
            described.append(row)
    rows = exact + related or described
    if not rows:
        raise UsageError(
            f"No symbol or word of the table is {symbol_or_word!r}. fl.notation() shows the whole table."
        )
    return rows


def explain_symbols_in_label(control_label: str, method_title: str = "") -> str:
    """Explain the symbols of a control's label, such as 'λ_damp' or 'η_w M'; '' if none of them is in the table.

    method_title: title of the method whose control it is; meanings that a symbol has in other methods are left out
    """
    meanings = []
    for token in re.findall(r"[^\s|0-9=,.()][^\s|=,.()]*", control_label):
        name = token.translate(DIGITS)
        candidates = [find_ranked_meaning_in_row(row, name, method_title) for row in read_symbols()]
        ranked = [meaning for meaning in candidates if meaning is not None]
        if ranked:
            meanings.append(f"{token}: {min(ranked).text}")
    return "; ".join(dict.fromkeys(meanings))


def append_symbol_meanings_to_tooltip(
    tooltip: str, control_label: str, method_title: str = ""
) -> str:
    """Append the meanings of a label's symbols to a control's tooltip; see `explain_symbols_in_label`."""
    meaning = explain_symbols_in_label(control_label, method_title)
    return f"{tooltip.rstrip('.')}. {meaning}." if meaning else tooltip


class RankedMeaning(NamedTuple):
    """The meaning of a symbol that a row of the table has. Of several meanings the one with the lowest rank is best."""

    rank: int
    text: str


def find_ranked_meaning_in_row(
    row: Symbol, symbol_name: str, method_title: str
) -> RankedMeaning | None:
    """Find what a row says of the symbol `symbol_name` in the method with the title `method_title`; None if nothing.

    Rank 0: the row is the symbol's own and names the method. 1: another symbol's row names both. 2: the row is the
    symbol's own, and speaks of no single method. 3: another symbol's row explains it.
    """
    is_row_of_name = row.name_before_brackets in (symbol_name, SCRIPT.get(symbol_name))
    if not is_row_of_name and symbol_name not in row.other_symbols:
        return None
    parts = replace_latex_formulas_by_text(row.meaning).split("; ")
    for part in parts:
        owners, colon, explanation = part.partition(": ")
        if not colon or not is_title_among_owners(method_title, owners):
            continue  # it does not speak of this method
        begins_with_name = explanation.startswith(f"{symbol_name} ")
        begins_with_indexed_name = explanation.startswith(f"{symbol_name}_")
        if begins_with_name or (is_row_of_name and not begins_with_indexed_name):
            rank = 0 if is_row_of_name else 1
            return RankedMeaning(rank, explanation.removeprefix(f"{symbol_name} "))
    if is_row_of_name:
        return None if OWNER.match(parts[0]) else RankedMeaning(2, parts[0])
    for part in parts[1:]:
        if re.search(rf"(?<!\w){re.escape(symbol_name)}(?!\w)", part) and not OWNER.match(part):
            return RankedMeaning(3, part.removeprefix(f"{symbol_name} ").split(": ")[0])
    return None


def is_title_among_owners(method_title: str, owners_joined_by_commas: str) -> bool:
    """Whether a method's title begins with one of these names, which are joined by ', '."""
    return bool(method_title) and any(
        method_title.startswith(owner) for owner in owners_joined_by_commas.split(", ")
    )
