"""The toy in the plane in JupyterLab: borders, sentence and words for the blind follow a drag, and nothing jumps."""

import pytest
from lab_steps import grab, notebook, open_notebook, run_all, tab_to
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
SEEN = """() => [document.querySelector('.fl-plane .fl-picture').shadowRoot.innerHTML,
               document.querySelector('.fl-plane .fl-sentence').innerText,
               document.querySelector('.fl-plane .fl-picture').ariaLabel]"""
OTHER = f"old => {{ const now = ({SEEN})(); return now.every((part, i) => part && part != old[i]) && now; }}"


def test_borders_follow_a_drag(page, lab, course):
    code = "from fedlab_nb.course import plane\nplane.show(alpha=0.1)"
    open_notebook(page, lab, notebook(course, "plane", code))
    run_all(page)
    panel = page.locator(".fl-plane")
    panel.locator(".fl-picture svg").wait_for()
    expect(panel.locator(".fl-frame .mark")).to_have_count(5)
    still = page.locator(".jp-RenderedImage img")
    still.wait_for(state="attached")
    expect(still).to_be_hidden()  # the panel alone, not its saved picture too
    page.wait_for_function(  # the picture has the size of its frame
        """() => { const frame = document.querySelector('.fl-plane .fl-frame').getBoundingClientRect();
             const picture = document.querySelector('.fl-plane .fl-picture').shadowRoot;
             const box = picture.querySelector('svg').viewBox.baseVal;
             return Math.abs(frame.width / frame.height - box.width / box.height) < 0.05; }"""
    )
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
