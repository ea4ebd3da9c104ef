"""The toy in the plane in JupyterLab: borders, sentence and alternative text follow a drag, and nothing jumps.

The same notebook has a symbol's link and the table of symbols.
"""

import nbformat
import pytest
from lab_steps import (
    open_notebook,
    press_mouse_on_handle,
    press_tab_until_focus_is_on,
    run_all_cells,
    wait_for_filled_frames,
    write_notebook,
)
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
# The panel's picture, its sentence and its alternative text.
READ_PANEL = """() => [document.querySelector('.fl-plane .fl-picture').shadowRoot.innerHTML,
               document.querySelector('.fl-plane .fl-sentence').innerText,
               document.querySelector('.fl-plane .fl-picture').ariaLabel]"""
# The same, once all three have changed.
READ_CHANGED_PANEL = f"""old => {{
  const now = ({READ_PANEL})();
  return now.every((part, i) => part && part != old[i]) && now;
}}"""
LINK = (
    '[$\\lambda_{damp}$](notation.md#lambda_damp "damping, added to the diagonals of the factors")'
)


def test_borders_follow_a_drag_and_symbols_say_what_they_mean(page, lab, course):
    code = (
        "from fedlab_nb.course import plane\nplane.show(alpha=0.1)",
        "import fedlab_nb as fl\nfl.notation()",
    )
    content = nbformat.read(course / write_notebook(course, "plane", *code), 4)
    content.cells.append(nbformat.v4.new_markdown_cell(f"The damping {LINK} is a number."))
    nbformat.write(content, course / "plane.ipynb")
    open_notebook(page, lab, "plane.ipynb")
    run_all_cells(page)
    panel = page.locator(".fl-plane")
    panel.locator(".fl-picture svg").wait_for()
    expect(panel.locator(".fl-frame .mark")).to_have_count(5)
    still = page.locator("img.fl-still")
    still.wait_for(state="attached")
    expect(still).to_be_hidden()  # the panel alone, not its saved picture too
    wait_for_filled_frames(page)
    now = page.evaluate(READ_PANEL)
    height = panel.bounding_box()["height"]
    x, y = press_mouse_on_handle(page, panel.locator(".fl-alpha .noUi-handle"))
    for step in (30, 60, 90):
        page.mouse.move(x + step, y)
        now = page.wait_for_function(READ_CHANGED_PANEL, arg=now).json_value()
        assert panel.bounding_box()["height"] == height
    page.mouse.up()
    press_tab_until_focus_is_on(page, ".fl-plane .fl-alpha .noUi-handle")
    page.keyboard.press("Home")
    changed = page.wait_for_function(
        f"() => {{ const now = ({READ_PANEL})(); return now[2].includes('(α = 0.01, seed 0') && now; }}"
    )
    expect(panel.locator(".fl-sentence")).to_contain_text("average of predictions 85 %")
    before = changed.json_value()
    panel.get_by_role("button", name="each its own start").click()
    changed = page.wait_for_function(READ_CHANGED_PANEL, arg=before)
    assert "own starts" in changed.json_value()[2]

    link = page.locator(".jp-MarkdownCell a[title]")
    link.locator("mjx-container").wait_for()
    assert link.get_attribute("title") == "damping, added to the diagonals of the factors"
    search = page.locator(".jp-OutputArea input[type=search]")
    search.wait_for()
    rows = page.locator(".jp-OutputArea tbody tr:not([hidden])")
    expect(rows.nth(50)).to_be_attached()
    search.fill("damping")
    page.wait_for_function(
        "n => document.querySelectorAll('tbody tr:not([hidden])').length < n", arg=10
    )
    assert 0 < rows.count() < 10
    for row in (rows.first, rows.last):
        row.locator("mjx-container").first.wait_for()  # its formulas are typeset one after another
    assert "λ" in rows.first.inner_text() + rows.last.inner_text()
