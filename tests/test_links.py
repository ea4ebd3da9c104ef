"""Links from lessons to the table of symbols: the first use of each symbol has one, with its meaning."""

import re

import make
import pytest
from lessons import SOURCES

from fedlab_nb.symbols import find_symbols, read_symbols

LINKED_LESSONS = {
    name: make.read_text_with_links(name)
    for name in SOURCES
    if name not in make.PAGES_WITHOUT_LINKS
}
LINK = re.compile(r'\[[^\]\[]+\]\((?:\.\./)?notation\.md#([\w-]+) "([^"]+)"\)')


def test_sources_have_no_links_of_their_own():
    lessons_with_links = [name for name, text in SOURCES.items() if LINK.search(text)]
    assert not lessons_with_links, "make.py adds links when it makes a notebook"


@pytest.mark.parametrize("lesson", LINKED_LESSONS)
def test_links_lead_to_rows_and_each_symbol_has_one(lesson):
    entries = LINK.findall(LINKED_LESSONS[lesson])
    anchors = [anchor for anchor, _ in entries]
    assert set(anchors) <= {row.anchor for row in read_symbols()}
    assert len(set(anchors)) == len(anchors)
    assert entries or lesson == "6_capstone"


def test_each_row_has_the_place_to_which_links_lead():
    for row in read_symbols():
        beginning = f'| <a id="{row.anchor}"></a>$'
        assert row.line.startswith(beginning), (
            f"begin the row of {row.name_in_plain_letters} with {beginning}"
        )


def test_the_first_use_and_no_other_is_linked():
    text = "# α\n\n`α` and $\\alpha$, then α and $\\tau$, $\\tau$.\n\n```python\nα\n```\n\n$$\\rho$$\n\n| α |\n"
    text_with_links = make.add_links(text, "3_fens")
    assert text_with_links.startswith('# α\n\n`α` and [$\\alpha$](notation.md#alpha "')
    assert text_with_links.count("](notation.md#alpha ") == 1
    assert text_with_links.count("](notation.md#tau ") == 1
    assert text_with_links.endswith("```python\nα\n```\n\n$$\\rho$$\n\n| α |\n")


def test_a_paper_s_other_letter_and_an_equation_get_no_link():
    for text in (
        "(its $M$)",
        "(The paper writes α.)",
        "$M=10$",
        "β-predictive",
        "[α](x.md)",
        "a $M_k$",
    ):
        assert make.add_links(text, "2_heterogeneity") == text


def test_a_letter_has_the_meaning_of_its_lesson():
    in_afl = make.add_links("γ", "4_closed_form")
    in_coboosting = make.add_links("γ", "shelf/co_boosting").replace("../", "")
    assert "#gamma " in in_afl and in_afl != in_coboosting
    assert "#omega_div " in make.add_links("ω_div", "shelf/fed_et")
    assert "#rho " in make.add_links(r"$\rho$", "4_closed_form")
    assert make.add_links("λ", "shelf/fedlpa") == "λ" and find_symbols("λ")


def test_a_symbol_means_the_same_in_all_lessons():
    meanings: dict[str, set[str]] = {}
    for text in LINKED_LESSONS.values():
        for anchor, words in LINK.findall(text):
            # Without the method's name, which other lessons add.
            meaning = re.sub(r"^[A-Z][\w-]*: ", "", words)
            meanings.setdefault(anchor, set()).add(meaning.split(",")[0])
    assert not {anchor: words for anchor, words in meanings.items() if len(words) > 1}
    assert len(meanings) > 50
    assert len({row.name_before_brackets for row in read_symbols()}) == len(read_symbols()), (
        "a letter has two rows"
    )
