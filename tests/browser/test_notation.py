"""Symbols in a browser: a link's title under the pointer, and the box over the table."""

import nbformat
import pytest
from lab_steps import open_notebook, run_all
from playwright.sync_api import expect

LINK = '[$\\lambda_{damp}$](notation.md#lambda_damp "damping, added to the diagonals of the factors")'


@pytest.mark.browser
def test_a_symbol_says_what_it_means_and_the_table_can_be_filtered(page, lab, course):
    made = nbformat.v4.new_notebook()
    made.cells = [
        nbformat.v4.new_markdown_cell(f"The damping {LINK} is a number."),
        nbformat.v4.new_code_cell("import fedlab_nb as fl\nfl.notation()"),
    ]
    made.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    nbformat.write(made, course / "symbols.ipynb")
    open_notebook(page, lab, "symbols.ipynb")
    link = page.locator(".jp-MarkdownCell a[title]")
    link.locator("mjx-container").wait_for()
    assert link.get_attribute("title") == "damping, added to the diagonals of the factors"

    run_all(page)
    box = page.locator(".jp-OutputArea input[type=search]")
    box.wait_for()
    rows = page.locator(".jp-OutputArea tbody tr:not([hidden])")
    expect(rows.nth(50)).to_be_attached()
    box.fill("damping")
    page.wait_for_function("n => document.querySelectorAll('tbody tr:not([hidden])').length < n", arg=10)
    assert 0 < rows.count() < 10
    for row in (rows.first, rows.last):
        row.locator("mjx-container").first.wait_for()  # its formulas are set by and by
    assert "λ" in rows.first.inner_text() + rows.last.inner_text()
