"""The table of symbols: its rows, how a symbol is found, and what labels and tooltips say about symbols."""

import pytest
from ipywidgets import Button

import fedlab_nb as fl
from fedlab_nb.errors import UsageError
from fedlab_nb.methods import METHODS
from fedlab_nb.panels.choices import KnobControls
from fedlab_nb.panels.controls import make_alpha_slider
from fedlab_nb.panels.theme import make_widget
from fedlab_nb.symbols import (
    append_symbol_meanings_to_tooltip,
    convert_latex_to_text,
    explain_symbols_in_label,
    find_symbols,
    read_symbols,
    replace_latex_formulas_by_text,
)

KNOBS = [(cls.info.title, knob) for cls in METHODS.values() for knob in cls.fields() if knob.symbol]


@pytest.mark.parametrize(
    "latex, text",
    [(r"\lambda_{div}", "λ_div"), (r"\bar f_w(x)", "f̄_w(x)"), (r"\mathcal P", "𝒫"), (r"\theta", "θ"),
     (r"H^l_k", "H^l_k"), (r"\mathcal{L}_{BN}", "ℒ_BN"), (r"\bar\theta", "θ̄"), (r"q^\star", "q^*")],
)  # fmt: skip
def test_formulas_in_plain_letters(latex, text):
    assert convert_latex_to_text(latex) == text


def test_each_row_has_a_plain_meaning_and_a_place_of_its_own():
    for row in read_symbols():
        assert row.name_in_plain_letters and not set(
            row.name_in_plain_letters + replace_latex_formulas_by_text(row.meaning)
        ) & set("$\\{}"), row.latex
        assert row.first_meaning and "; " not in row.first_meaning
    anchors = [row.anchor for row in read_symbols()]
    assert len(set(anchors)) == len(anchors) > 50 and all(anchors)


@pytest.mark.parametrize("name", ["α", "alpha", r"\alpha", r"$\alpha$", " α "])
def test_a_symbol_is_found_however_it_is_written(name):
    assert [row.latex for row in find_symbols(name)] == [r"\alpha"]


def test_a_letter_finds_all_symbols_with_it_and_a_word_the_rows_that_have_it():
    assert {"λ", "λ_div", "λ_damp", "λ_1"} <= {
        row.name_before_brackets for row in find_symbols("lambda")
    }
    assert [row.name_before_brackets for row in find_symbols("λ_damp")] == ["λ_damp"]
    assert "λ_damp" in {row.name_before_brackets for row in find_symbols("damping")}
    assert [row.name_before_brackets for row in find_symbols("η_s")] == ["η"]
    for unknown in ("ψ", "", "no such word"):
        with pytest.raises(UsageError, match=r"fl.notation\(\)"):
            find_symbols(unknown)


def test_notation_shows_the_rows_that_are_asked_for():
    table = fl.notation("α")
    assert repr(table) == f"α: {replace_latex_formulas_by_text(find_symbols('α')[0].meaning)}"
    assert table.data.count("\n") == 2
    assert "<input" not in table._repr_html_() and table._repr_html_().count("<tr") == 2
    whole = fl.notation()
    assert whole._repr_html_().count("<tr data-find=") == len(read_symbols())
    assert "oninput=" in whole._repr_html_()
    assert repr(whole).count("\n") == len(read_symbols()) - 1


@pytest.mark.parametrize("title, knob", KNOBS, ids=lambda value: getattr(value, "symbol", value))
def test_the_symbol_of_every_knob_is_in_the_table(title, knob):
    assert explain_symbols_in_label(knob.symbol, title), (
        f"give {knob.symbol} of {title} a row in notebooks/notation.md"
    )


def test_a_letter_has_the_meaning_of_the_method():
    assert explain_symbols_in_label("ρ", "AFL").startswith("ρ: ")
    assert explain_symbols_in_label("ρ", "FENS") == explain_symbols_in_label("ψ") == ""
    assert explain_symbols_in_label("255 ε", "Co-Boosting").startswith("ε: ")
    assert explain_symbols_in_label("ε", "Co-Boosting") != explain_symbols_in_label("ε", "AFL")
    assert explain_symbols_in_label("λ₂", "DENSE").startswith("λ₂: ")


def test_tooltips_say_what_a_symbol_means():
    meaning = explain_symbols_in_label("λ_damp", "FedLPA")
    assert append_symbol_meanings_to_tooltip("Help.", "λ_damp", "FedLPA") == f"Help. {meaning}."
    assert meaning in KnobControls("fedlpa")["damping"].tooltip
    # T is no Greek letter, and may be a word.
    assert make_widget(Button, label="Rounds T", help="Help").tooltip == "Help"
    assert find_symbols("α")[0].first_meaning in make_alpha_slider().tooltip
