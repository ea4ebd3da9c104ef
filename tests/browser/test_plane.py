"""The toy in the plane in JupyterLab: borders, sentence and words for the blind follow a drag, and nothing jumps."""

import nbformat
import pytest
from lab_steps import open_notebook, run_all, tab_to

pytestmark = pytest.mark.browser
SEEN = """() => [document.querySelector('.fl-plane .fl-picture').shadowRoot.innerHTML,
               document.querySelector('.fl-plane .fl-sentence').innerText,
               document.querySelector('.fl-plane .fl-picture').ariaLabel]"""
OTHER = f"old => {{ const now = ({SEEN})(); return now.every((part, i) => part && part != old[i]) && now; }}"


def test_borders_follow_a_drag(page, lab, course):
    cell = nbformat.v4.new_code_cell("from fedlab_nb.teach import plane\nplane.show(alpha=0.1)")
    notebook = nbformat.v4.new_notebook(cells=[cell])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, course / "plane.ipynb")
    open_notebook(page, lab, "plane.ipynb")
    run_all(page)
    panel = page.locator(".fl-plane")
    panel.locator(".fl-picture svg").wait_for()
    assert panel.locator(".fl-frame .mark").count() == 5
    assert page.locator(".jp-RenderedImage img:visible").count() == 0  # the panel alone, not its saved picture too
    page.wait_for_function(  # the picture has the size of its frame
        """() => { const frame = document.querySelector('.fl-plane .fl-frame').getBoundingClientRect();
             const picture = document.querySelector('.fl-plane .fl-picture').shadowRoot;
             const box = picture.querySelector('svg').viewBox.baseVal;
             return Math.abs(frame.width / frame.height - box.width / box.height) < 0.05; }"""
    )
    now, height = page.evaluate(SEEN), panel.bounding_box()["height"]
    box = panel.locator(".fl-alpha .noUi-handle").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
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
    assert "average of predictions 85 %" in now.json_value()[1]
    before = now.json_value()
    panel.get_by_role("button", name="each its own start").click()
    assert "own starts" in page.wait_for_function(OTHER, arg=before).json_value()[2]
