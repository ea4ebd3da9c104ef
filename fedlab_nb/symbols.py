"""The course's one table of symbols, `notation.md` beside the notebooks, row by row: what a symbol is called and means.

find("λ_damp")                    # [Symbol(…)]; also find("lambda"), find("damping")
of_label("η_w M", "Co-Boosting")  # 'η_w: step of a weight in ensemble enhancement'
"""

import re
from dataclasses import dataclass
from functools import cache

from .errors import UsageError
from .jupyter import course_source

NAMES = "alpha beta gamma delta varepsilon zeta eta theta kappa lambda mu xi pi rho sigma tau varphi omega"
GREEK = dict(zip(f"{NAMES} Theta Lambda Sigma".split(), "αβγδεζηθκλμξπρστφωΘΛΣ", strict=True))
WORDS = {"star": "*", "top": "ᵀ", "partial": "∂", "dots": "…", "mathrm": "", "text": ""}
SCRIPT = {"K": "𝒦", "L": "ℒ", "N": "𝒩", "P": "𝒫", "E": "𝔼"}  # of \\mathcal and \\mathbb
ACCENTS = {"bar": "\u0304", "hat": "\u0302"}
DIGITS = str.maketrans({"₀": "_0", "₁": "_1", "₂": "_2", "⁰": "^0"})  # of the labels of controls
OWNER = re.compile(r"([A-Z][\w-]*|matching|merging changes)(?:[, ][\w, -]*)?: ")


def plain(text: str) -> str:
    r"""Text with its formulas as plain letters: r'weight of $\theta_k$' -> 'weight of θ_k'."""
    return re.sub(r"\$([^$]*)\$", lambda match: letters(match[1]), text).replace("`", "")


def letters(latex: str) -> str:
    r"""A formula as plain letters: r'\lambda_{div}' -> 'λ_div', r'\bar f_w(x)' -> 'f̄_w(x)'."""
    accented = r"\\(bar|hat)\s*\{?\\?((?<=\\)[A-Za-z]+|[A-Za-z])\}?"
    text = re.sub(accented, lambda m: GREEK.get(m[2], m[2]) + ACCENTS[m[1]], latex)
    text = re.sub(r"\\math(?:cal|bb)\s*\{?([A-Z])\}?", lambda m: SCRIPT.get(m[1], m[1]), text)
    text = re.sub(r"\\([A-Za-z]+)\s*", lambda m: GREEK.get(m[1], WORDS.get(m[1], m[1])), text)
    return re.sub(r"[{}\\]", "", text)


@dataclass(frozen=True)
class Symbol:
    """A row of the table. latex: the symbol without its dollars;   first: the lesson that introduces it, or "panels";
    papers: the papers' own letters;   line: the row as it stands in the table
    """

    latex: str
    meaning: str
    shape: str
    first: str
    papers: str
    line: str

    @property
    def name(self) -> str:
        """In plain letters: 'λ_div'."""
        return letters(self.latex)

    @property
    def base(self) -> str:
        """Without what it depends on: 'f_k' of 'f_k(x)'."""
        return re.sub(r"\(.*\)$", "", self.name)

    @property
    def anchor(self) -> str:
        """The row's name in a link: 'lambda_div'."""
        return re.sub(r"\W+", "-", re.sub(r"[\\{}]|\(.*\)$", "", self.latex)).strip("-")

    @property
    def owner(self) -> str:
        """The method or topic that alone uses it, such as 'FENS'; '' for a symbol of the whole course."""
        match = OWNER.match(self.meaning)
        return match[1] if match else ""

    @property
    def also(self) -> list[str]:
        """Further symbols that its meaning explains, in plain letters."""
        return [letters(latex) for latex in re.findall(r"\$([^$]+)\$", self.meaning)]

    @property
    def short(self) -> str:
        """The first part of its meaning in plain letters, for a tooltip."""
        return re.split(r"; |\. ", plain(self.meaning))[0].rstrip(".")


def table() -> str:
    """The text of the table."""
    return (course_source() / "notation.md").read_text(encoding="utf-8")


@cache
def symbols() -> tuple[Symbol, ...]:
    """All rows, in the order of the table."""
    rows = []
    for line in [line for line in table().splitlines() if line.startswith("|")][2:]:
        symbol, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        rows.append(Symbol(re.sub(r"<a [^>]*></a>|\$", "", symbol), *cells, line))
    return tuple(rows)


def find(name: str) -> list[Symbol]:
    """The rows of a symbol, written 'λ', 'lambda' or '\\lambda', or else those whose words have `name`; UsageError if
    there is none."""
    asked = letters(str(name).strip().strip("$"))
    asked = re.sub(
        r"(?<![A-Za-z])(" + "|".join(GREEK) + r")(?![A-Za-z])", lambda match: GREEK[match[1]], asked
    )
    exact = [row for row in symbols() if {asked, SCRIPT.get(asked)} & {row.name, row.base}]
    family = [
        row
        for row in symbols()
        if row.base.startswith((f"{asked}_", f"{asked}^")) or asked in row.also
    ]
    words = [row for row in symbols() if asked and asked.lower() in plain(row.meaning).lower()]
    rows = list(dict.fromkeys(exact + family)) or (words if len(asked) > 2 else [])
    if not rows:
        raise UsageError(
            f"No symbol or word of the table is {name!r}. fl.notation() shows the whole table."
        )
    return rows


def of_label(label: str, owner: str = "") -> str:
    """What the symbols of a control's label mean, such as 'λ_damp' or 'η_w M'; '' where the table knows none.

    owner: title of the method whose control it is: what a symbol means to another method is left out
    """
    meanings = []
    for token in re.findall(r"[^\s|0-9=,.()][^\s|=,.()]*", label):
        name = token.translate(DIGITS)
        ranked = sorted(filter(None, (meaning_of(row, name, owner) for row in symbols())))
        meanings += [f"{token}: {ranked[0][1]}"] if ranked else []
    return "; ".join(dict.fromkeys(meanings))


def explained(tooltip: str, label: str, owner: str = "") -> str:
    """A control's tooltip, and behind it what the symbols of its `label` mean: see `of_label`."""
    meaning = of_label(label, owner)
    return f"{tooltip.rstrip('.')}. {meaning}." if meaning else tooltip


def meaning_of(row: Symbol, name: str, owner: str) -> tuple[int, str] | None:
    """(rank, words) of what a row says of `name` to a method with the title `owner`; the lowest rank is best."""
    own = row.base in (name, SCRIPT.get(name))
    if not own and name not in row.also:
        return None
    first, *others = plain(row.meaning).split("; ")
    for part in (first, *others):  # what is said of this method
        owners, colon, words = part.partition(": ")
        its = (
            own
            and not part.removeprefix(f"{owners}: ").startswith(f"{name}_")
            or words.startswith(f"{name} ")
        )
        if its and colon and any(owner and owner.startswith(each) for each in owners.split(", ")):
            return (0 if own else 1), words.removeprefix(f"{name} ")
    if own:
        return None if OWNER.match(first) else (2, first)
    for part in others:
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", part) and not OWNER.match(part):
            return 3, part.removeprefix(f"{name} ").split(": ")[0]
    return None
