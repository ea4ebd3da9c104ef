"""All panels in a real browser: every tab shows its picture, is accessible, and causes no script error."""

from __future__ import annotations

import re

import pytest
from accessible import find_barriers
from collisions import find_collisions
from lab_steps import open_notebook, run_all_cells, write_notebook
from playwright.sync_api import expect

from fedlab_nb.labs import find_lab_spec
from fedlab_nb.panels.figures import COMMON, COMPARE
from fedlab_nb.panels.race import RACE

pytestmark = pytest.mark.browser

SMALL = "clients=4, alpha=0.3, seeds=1, epochs=4"
QUICK = {"coboosting": ", **{'coboosting.epochs': 2}"}
SYSTEMS = ("fens", "fedet", "coboosting", "fusefl", "fedlpa")
CALLS = {
    **{name: f"fl.lab('{name}', {SMALL}{QUICK.get(name, '')})" for name in SYSTEMS},
    "compare": f"fl.comparison({SMALL}, methods=['fedavg', 'fens', 'fedlpa'])",
    "race": f"fl.race({SMALL}, methods=['fens', 'fedavg_multi'], **{{'fedavg_multi.rounds': 3}})",
}
COMMON_NAMES = [view.name for view in COMMON]
# Labels that are wider than their box.
CUT_OFF = """panel => [...panel.querySelectorAll('.widget-label')]
  .filter(e => e.offsetParent && e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)"""
# By how many pixels a panel is higher than the output of its cell.
OVERFLOW = """panel => {
  const output = panel.closest('.jp-OutputArea-output');
  return output.scrollHeight - output.clientHeight;
}"""


def find_view_titles(name: str) -> dict[str, str]:
    """Find {name: title} of the views of a panel."""
    spec = {"compare": COMPARE, "race": RACE}.get(name) or find_lab_spec(name)
    return {view.name: view.title for view in (*spec.views, *COMMON)}


def test_every_tab_of_every_panel_shows_its_picture(page, lab, course):
    """Seven panels in one kernel, which must not disturb each other either."""
    code = ("import fedlab_nb as fl", *CALLS.values())
    open_notebook(page, lab, write_notebook(course, "panels", *code))
    run_all_cells(page)
    page.locator(".fl-root.fl-live").nth(len(CALLS) - 1).wait_for()
    for index, name in enumerate(CALLS):
        panel = page.locator(".fl-root.fl-live").nth(index)
        panel.scroll_into_view_if_needed()
        panel.locator(".fl-frame svg:visible, .fl-frame table:visible").first.wait_for()
        # The long table of methods scrolls in its own box.
        assert panel.evaluate(OVERFLOW) <= 1, name
        panel.locator("button.fl-run").click()
        page.locator(".fl-root.fl-live").nth(index).and_(page.locator(".fl-status-done")).wait_for()
        for view, title in find_view_titles(name).items():
            if name != "compare" and view in COMMON_NAMES:  # these are the same in every panel
                continue
            panel.locator(".fl-main > .fl-tabs button").get_by_text(title, exact=True).click()
            visible_view = panel.locator(f".fl-view-{view}:visible")
            visible_view.locator(
                ".fl-frame svg, .fl-frame table, .fl-scene :is(canvas.plane, .hand), .fl-todo"
            ).first.wait_for()
            # While a view prepares its picture, its text can change from what to do to its sentence.
            texts = visible_view.locator(".fl-todo, .fl-sentence")
            with_words = texts.filter(has_text=re.compile(r"\S"))
            expect(with_words.first, f"{name}, {view}").to_be_visible()
            assert panel.evaluate(CUT_OFF) == [], (name, view)
            overflows = texts.evaluate_all("all => all.map((e) => e.scrollHeight - e.clientHeight)")
            assert max(overflows) <= 1, (name, view)
            assert find_collisions(visible_view) == [], (name, view)
        assert find_barriers(page, f".fl-live.fl-{name}") == [], name
        assert panel.locator(".fl-error").inner_text().strip() == "", name
    assert page.get_by_text("javascript error").count() == 0
    error_outputs = ".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.error']"
    assert page.locator(error_outputs).count() == 0
