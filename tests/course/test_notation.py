"""The table of symbols: shown by `fl.notation()`, the same beside the notebooks, one row a symbol, none missing."""

import re

import pytest
from IPython.display import Markdown
from lessons import LESSONS, NOTEBOOKS

import fedlab_nb as fl
from fedlab_nb.course import COURSE, get_lesson_label

MATHS = re.compile(r"\$\$(.+?)\$\$|\$([^$]+)\$", re.DOTALL)
WORDS = re.compile(r"\\(?:text|mathrm)\{[^{}]*\}")  # words in a formula: no symbols
# A capital of another alphabet (\mathcal P is another symbol than P), any command, a capital that stands alone.
SYMBOL_OR_COMMAND = re.compile(
    r"\\(?:mathcal|mathbb)\s?\{?[A-Z]\}?|\\[A-Za-z]+|(?<![A-Za-z])[A-Z](?![A-Za-z])"
)
GREEK = {
    *("alpha", "beta", "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta"),
    *("kappa", "lambda", "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "phi", "varphi"),
    *("chi", "psi", "omega", "Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma"),
    *("Phi", "Psi", "Omega"),
}


def list_table_rows():
    """The cells of each row of the table of symbols, without its two lines of headings."""
    lines = [line for line in fl.notation().data.splitlines() if line.startswith("|")]
    rows = []
    for line in lines[2:]:
        cells = line.strip("|").split("|")
        rows.append([cell.strip() for cell in cells])
    return rows


def find_symbols(text):
    """Greek letters, capitals that stand alone, and capitals of another alphabet, in the formulas of `text`."""
    formulas = "\n".join(long or short for long, short in MATHS.findall(text))
    symbols = set()
    for match in SYMBOL_OR_COMMAND.findall(WORDS.sub("", formulas)):
        name = re.sub(r"[\s{}]", "", match)
        is_capital = not name.startswith("\\")
        if is_capital or name[1:] in GREEK or name.startswith("\\math"):
            symbols.add(name)
    return symbols


def test_symbols_of_a_text_are_found():
    text = r"$\bar f_w(x)$ and $\mathcal{L}_H=\mathrm{CE}\,\sum_k A_k$, $$\frac M8\text{ of K},\ \Sigma_c$$ and K"
    assert find_symbols(text) == {"\\mathcalL", "H", "A", "M", "\\Sigma"}


def test_it_is_shown_in_a_notebook_and_stands_beside_the_lessons():
    shown = fl.notation()
    assert isinstance(shown, Markdown)
    assert shown.data == (NOTEBOOKS / "notation.md").read_text(encoding="utf-8")


def test_each_symbol_has_one_row():
    rows = list_table_rows()  # test_symbols.py says that no two are alike
    assert all(len(row) == 5 for row in rows)
    assert {row[3] for row in rows} <= {*map(get_lesson_label, COURSE), "panels"}


@pytest.mark.parametrize("lesson", LESSONS)
def test_each_symbol_of_a_lesson_is_in_the_table(lesson):
    cells_with_symbols = [" ".join(row[:2]) for row in list_table_rows()]
    explained = find_symbols("\n".join(cells_with_symbols))
    missing = find_symbols(LESSONS[lesson]) - explained
    assert not missing, f"{lesson} uses {sorted(missing)}: give each a row in notebooks/notation.md"
