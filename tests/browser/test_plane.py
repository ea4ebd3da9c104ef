"""The toy in the plane in JupyterLab: borders, sentence and words for the blind follow a drag, and nothing jumps.

In the same notebook a symbol's link and the table of symbols.
"""

import nbformat
import pytest
from lab_steps import grab, notebook, open_notebook, run_all, settled, tab_to
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
SEEN = """() => [document.querySelector('.fl-plane .fl-picture').shadowRoot.innerHTML,
               document.querySelector('.fl-plane .fl-sentence').innerText,
               document.querySelector('.fl-plane .fl-picture').ariaLabel]"""
OTHER = f"old => {{ const now = ({SEEN})(); return now.every((part, i) => part && part != old[i]) && now; }}"


LINK = (
    '[$\\lambda_{damp}$](notation.md#lambda_damp "damping, added to the diagonals of the factors")'
)


def test_borders_follow_a_drag_and_symbols_say_what_they_mean(page, lab, course):
    code = (
        "from fedlab_nb.course import plane\nplane.show(alpha=0.1)",
        "import fedlab_nb as fl\nfl.notation()",
    )
    made = nbformat.read(course / notebook(course, "plane", *code), 4)
    made.cells.append(nbformat.v4.new_markdown_cell(f"The damping {LINK} is a number."))
    nbformat.write(made, course / "plane.ipynb")
    open_notebook(page, lab, "plane.ipynb")
    run_all(page)
    panel = page.locator(".fl-plane")
    panel.locator(".fl-picture svg").wait_for()
    expect(panel.locator(".fl-frame .mark")).to_have_count(5)
    still = page.locator(".jp-RenderedImage img")
    still.wait_for(state="attached")
    expect(still).to_be_hidden()  # the panel alone, not its saved picture too
    settled(page)
    now, height = page.evaluate(SEEN), panel.bounding_box()["height"]
    x, y = grab(page, panel.locator(".fl-alpha .noUi-handle"))
    for step in (30, 60, 90):
        page.mouse.move(x + step, y)
        now = page.wait_for_function(OTHER, arg=now).json_value()
        assert panel.bounding_box()["height"] == height
    page.mouse.up()
    tab_to(page, ".fl-plane .fl-alpha .noUi-handle")
    page.keyboard.press("Home")
    now = page.wait_for_function(
        f"() => {{ const now = ({SEEN})(); return now[2].includes('(α = 0.01, seed 0') && now; }}"
    )
    expect(panel.locator(".fl-sentence")).to_contain_text("average of predictions 85 %")
    before = now.json_value()
    panel.get_by_role("button", name="each its own start").click()
    assert "own starts" in page.wait_for_function(OTHER, arg=before).json_value()[2]

    link = page.locator(".jp-MarkdownCell a[title]")
    link.locator("mjx-container").wait_for()
    assert link.get_attribute("title") == "damping, added to the diagonals of the factors"
    box = page.locator(".jp-OutputArea input[type=search]")
    box.wait_for()
    rows = page.locator(".jp-OutputArea tbody tr:not([hidden])")
    expect(rows.nth(50)).to_be_attached()
    box.fill("damping")
    page.wait_for_function(
        "n => document.querySelectorAll('tbody tr:not([hidden])').length < n", arg=10
    )
    assert 0 < rows.count() < 10
    for row in (rows.first, rows.last):
        row.locator("mjx-container").first.wait_for()  # its formulas are set by and by
    assert "λ" in rows.first.inner_text() + rows.last.inner_text()
