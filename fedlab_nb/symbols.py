"""The course's one table of symbols, `teach/notation.md`, row by row: what a symbol is called, and what it means.

find("λ_damp")                    # [Symbol(…)]; also find("lambda"), find("damping")
of_label("η_w M", "Co-Boosting")  # 'η_w: step of a weight in ensemble enhancement'
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .errors import UsageError

TABLE = Path(__file__).parent / "teach" / "notation.md"
GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "varepsilon": "ε", "eta": "η", "theta": "θ", "kappa": "κ",
    "lambda": "λ", "mu": "μ", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "varphi": "φ", "omega": "ω",
    "Theta": "Θ", "Lambda": "Λ", "Sigma": "Σ",
}  # fmt: skip
WORDS = {"star": "*", "top": "ᵀ", "partial": "∂", "dots": "…", "mathcal": "", "mathbb": "", "mathrm": "", "text": ""}
ACCENTS = {"bar": "\u0304", "hat": "\u0302"}
DIGITS = str.maketrans("₀₁₂⁰", "0120")  # of the labels of controls
OWNER = re.compile(r"([A-Z][\w-]*|matching|merging changes|distilled data|differential privacy)(?:, [\w, ]+)?: ")


def plain(text: str) -> str:
    r"""Text with its formulas as plain letters: r'weight of $\theta_k$' -> 'weight of θ_k'."""
    return re.sub(r"\$([^$]*)\$", lambda match: letters(match[1]), text).replace("`", "")


def letters(latex: str) -> str:
    r"""A formula as plain letters: r'\lambda_{div}' -> 'λ_div', r'\bar f_w(x)' -> 'f̄_w(x)'."""
    text = re.sub(r"\\(bar|hat)\s*\{?\\?(\w+)\}?", lambda m: GREEK.get(m[2], m[2]) + ACCENTS[m[1]], latex)
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
        words = re.sub(r"\(.*\)$", "", self.latex)
        return "-".join(re.findall(r"\w+", words.replace("{", "").replace("}", "")))

    @property
    def owner(self) -> str:
        """The method or topic that alone uses it, such as 'FENS'; '' for a symbol of the whole course."""
        found = OWNER.match(self.meaning)
        return found[1] if found else ""

    @property
    def also(self) -> list[str]:
        """Further symbols that its meaning explains, in plain letters."""
        return [letters(latex) for latex in re.findall(r"\$([^$]+)\$", self.meaning)]

    @property
    def short(self) -> str:
        """The first part of its meaning in plain letters, for a tooltip."""
        return re.split(r"; |\. ", plain(self.meaning))[0].rstrip(".")


@cache
def symbols() -> tuple[Symbol, ...]:
    """All rows, in the order of the table."""
    lines = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith("|")][2:]
    rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return tuple(Symbol(symbol.strip("$"), *cells, line) for line, (symbol, *cells) in zip(lines, rows, strict=True))


def find(name: str) -> list[Symbol]:
    """The rows of a symbol, written 'λ', 'lambda' or '\\lambda', or else those whose words have `name`; UsageError if
    there is none."""
    asked = letters(str(name).strip().strip("$"))
    asked = re.sub(r"(?<![A-Za-z])(" + "|".join(GREEK) + r")(?![A-Za-z])", lambda match: GREEK[match[1]], asked)
    exact = [row for row in symbols() if asked in (row.name, row.base)]
    family = [row for row in symbols() if row.base.startswith((f"{asked}_", f"{asked}^")) or asked in row.also]
    words = [row for row in symbols() if asked and asked.lower() in plain(row.meaning).lower()]
    found = list(dict.fromkeys(exact + family)) or (words if len(asked) > 2 else [])
    if not found:
        raise UsageError(f"No symbol or word of the table is {name!r}. fl.notation() shows the whole table.")
    return found


def of_label(label: str, owner: str = "") -> str:
    """What the symbols of a control's label mean, such as 'λ_damp' or 'η_w M'; '' where the table knows none.

    owner: the method whose control it is: a symbol that only another method uses is left out
    """
    said = []
    for token in re.findall(r"[^\s|0-9=,.()][^\s|=,.()]*", label):
        name = token.translate(DIGITS)
        name = re.sub(r"(?<=[^\W\d_])(?=\d)", "_", name)  # λ1 -> λ_1
        rows = [row for row in symbols() if name == row.base or name in row.also]
        rows = [row for row in rows if row.owner in ("", owner) or "_" in name and len(name) > 3]
        rows.sort(key=lambda row: (row.owner != owner, name != row.base))
        if rows:
            said.append(f"{token}: {rows[0].short}")
    return "; ".join(dict.fromkeys(said))
