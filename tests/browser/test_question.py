"""Lesson 1 in JupyterLab on a small screen: the reader causes the first result, and sees it where they pressed."""

import pytest
from lab_steps import open_notebook, run_all_cells, save_screenshot

pytestmark = pytest.mark.browser
SMALL = {"width": 1280, "height": 720}
# The share of an element's height that is visible within the notebook's scrolling area.
VISIBLE_SHARE = """(element) => {
  const box = element.getBoundingClientRect();
  const area = element.closest('.jp-WindowedPanel-outer, .jp-Notebook').getBoundingClientRect();
  const top = Math.max(box.top, area.top, 0);
  const bottom = Math.min(box.bottom, area.bottom, innerHeight);
  return Math.max(0, bottom - top) / box.height;
}"""
# Whether the notebook is at its beginning, with its first panel in the page and its last cell the active one.
AT_TOP = """() => {
  const notebook = document.querySelector('.jp-NotebookPanel .jp-WindowedPanel-outer');
  const last = [...notebook.querySelectorAll('.jp-Cell')].at(-1);
  return notebook.scrollTop === 0 && notebook.querySelector('.fl-stage')
    && last.classList.contains('jp-mod-active');
}"""


def test_the_question_is_the_reader_s_and_its_answer_in_sight(page, lab):
    """Run All ends where the lesson begins, and presses neither *Ask all ten* nor the playground's Run.

    The button stands at the lower edge of the screen, which is the worst case, as the answer comes above it.
    """
    page.set_viewport_size(SMALL)
    open_notebook(page, lab, "1_start_here.ipynb")
    run_all_cells(page)
    page.wait_for_function(AT_TOP)
    button = page.get_by_role("button", name="Ask all ten")
    button.wait_for()
    page.get_by_role("button", name="That is my guess").first.click()
    button.evaluate("button => button.scrollIntoView({ block: 'end' })")
    button.click()
    answer = page.locator(".fl-card", has_text="measured 360 envelopes").last
    answer.wait_for()
    save_screenshot(page, "question")
    assert answer.evaluate(VISIBLE_SHARE) > 0.95
    picture = page.locator(".fl-stage canvas.wall").first
    picture.wait_for(state="attached")
    assert page.locator(".fl-root.fl-live").count() == 2
    assert page.locator(".fl-root.fl-live.fl-status-done").count() == 0
