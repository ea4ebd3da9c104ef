"""The table of symbols: shown by `fl.notation()`, the same beside the notebooks, one row a symbol, none missing."""

import re

import pytest
from IPython.display import Markdown
from lessons import LESSONS, NOTEBOOKS

import fedlab_nb as fl
from fedlab_nb.course import COURSE, get_lesson_label

MATHS = re.compile(r"\$\$(.+?)\$\$|\$([^$]+)\$", re.DOTALL)
WORDS = re.compile(r"\\(?:text|mathrm)\{[^{}]*\}")  # words in a formula: no symbols
# \mathcal P is another symbol than P; of the others, Greek letters and capitals that stand alone
SYMBOL = re.compile(
    r"\\(?:mathcal|mathbb)\s?\{?[A-Z]\}?|\\[A-Za-z]+|(?<![A-Za-z])[A-Z](?![A-Za-z])"
)
GREEK = {
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "varepsilon",
    "zeta",
    "eta",
    "theta",
    "kappa",
    "lambda",
    "mu",
}
GREEK |= {"nu", "xi", "pi", "rho", "sigma", "tau", "phi", "varphi", "chi", "psi", "omega"}
GREEK |= {"Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Phi", "Psi", "Omega"}


def rows():
    """The cells of each row of the table."""
    lines = [line for line in fl.notation().data.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def symbols(text):
    """Greek letters, capitals that stand alone, and capitals of another alphabet, in the formulas of `text`."""
    formulas = "\n".join(long or short for long, short in MATHS.findall(text))
    names = {re.sub(r"[\s{}]", "", name) for name in SYMBOL.findall(WORDS.sub("", formulas))}
    return {
        name
        for name in names
        if not name.startswith("\\") or name[1:] in GREEK or name[1:5] == "math"
    }


def test_symbols_of_a_text():
    text = r"$\bar f_w(x)$ and $\mathcal{L}_H=\mathrm{CE}\,\sum_k A_k$, $$\frac M8\text{ of K},\ \Sigma_c$$ and K"
    assert symbols(text) == {"\\mathcalL", "H", "A", "M", "\\Sigma"}


def test_it_is_shown_in_a_notebook_and_stands_beside_the_lessons():
    shown = fl.notation()
    assert isinstance(shown, Markdown)
    assert shown.data == (NOTEBOOKS / "notation.md").read_text(encoding="utf-8")


def test_each_symbol_has_one_row():
    table = rows()  # test_symbols says that no two are alike
    assert all(len(row) == 5 for row in table)
    assert {row[3] for row in table} <= {*map(get_lesson_label, COURSE), "panels"}


@pytest.mark.parametrize("lesson", LESSONS)
def test_each_symbol_of_a_lesson_is_in_the_table(lesson):
    explained = symbols("\n".join(" ".join(row[:2]) for row in rows()))
    missing = symbols(LESSONS[lesson]) - explained
    assert not missing, f"{lesson} uses {sorted(missing)}: give each a row in notebooks/notation.md"
