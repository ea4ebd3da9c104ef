"""What a panel shows at a glance: a projector, whose result is covered; no large empty frame; nothing cut."""

import re

import pytest
from lab_steps import QUIET, notebook, open_notebook, panel, run_all, wait_for_status
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
SHORT = "clients=3, seeds=1, epochs=2, hide=['stored']"
BEYOND = """root => [...root.querySelectorAll(':scope *')]
  .filter((one) => one.offsetParent && !one.closest('.fl-frame, .fl-drawer')
    && one.getBoundingClientRect().right > root.getBoundingClientRect().right + 2).map((one) => one.className)"""


def test_a_projector_shows_the_result_once_it_is_guessed(page, lab, course):
    code = f"import fedlab_nb as fl\npanel = fl.comparison(methods=['local', 'fedavg'], {SHORT})\npanel"
    open_notebook(page, lab, notebook(course, "projector", code))
    run_all(page)
    wait_for_status(page, "idle")
    root, run = panel(page), panel(page).locator(".fl-run")
    run.focus()
    page.keyboard.press("p")
    for hidden in (".fl-facts", ".fl-chips", ".fl-drawer", ".fl-client"):
        expect(root.locator(hidden)).to_be_hidden()
    for seen in (".fl-alpha", ".fl-clients", ".fl-run", ".fl-view-partition svg"):
        expect(root.locator(seen).first).to_be_visible()
    run.click()
    wait_for_status(page, "done")
    sentence = root.locator(".fl-view-accuracy .fl-sentence p")
    expect(sentence).to_have_css("visibility", "hidden")
    covered = root.locator(".fl-view-accuracy .fl-frame")
    button = root.locator(".fl-reveal")
    assert button.bounding_box()["y"] < covered.bounding_box()["y"], "the way back is in sight"
    run.focus()
    page.keyboard.press("g")
    expect(sentence).to_have_css("visibility", "visible")
    page.keyboard.press("g")
    expect(sentence).to_have_css("visibility", "hidden")
    covered.click()
    expect(sentence).to_have_css("visibility", "visible")
    run.focus()
    page.keyboard.press("p")
    expect(root.locator(".fl-facts")).to_be_visible()
    # Enlarging is another thing: nothing is covered, and the letters stay as large as they are.
    width = covered.bounding_box()["width"]
    root.locator(".fl-enlarge").click()
    expect(root.locator(".fl-controls")).to_be_hidden()
    expect(sentence).to_have_css("visibility", "visible")
    assert covered.bounding_box()["width"] > 1.3 * width
    root.locator(".fl-enlarge").click()
    expect(root.locator(".fl-controls")).to_be_visible()


def test_a_point_of_a_map_shows_its_image(page, lab, course):
    code = f"import fedlab_nb as fl\npanel = fl.comparison(methods=['fedavg'], {SHORT})\npanel"
    open_notebook(page, lab, notebook(course, "points", code))
    run_all(page)
    wait_for_status(page, "idle")
    root = panel(page)
    root.locator(".fl-run").click()
    wait_for_status(page, "done")
    root.locator(".fl-tabs button", has_text="Features").first.click()
    view = root.locator(".fl-view-features")
    view.locator(".mark").first.wait_for()
    view.locator(".mark").nth(40).hover()
    expect(view.locator(".fl-tip")).to_contain_text("class ")
    image = view.locator(".fl-thumbnail")
    expect(image).to_be_visible()
    expect(image).to_have_css("width", "64px")
    expect(image).to_have_css("background-image", re.compile(r"^url\(.data:image/png;base64,"))


def test_a_view_without_a_result_is_small_with_its_button_below_the_words(page, lab, course):
    asked = SHORT.replace("seeds=1", "seeds=10")  # else a fast machine does the view's work at once
    code = f"import fedlab_nb as fl\npanel = fl.lab('fedet', methods=[], {asked})\npanel"
    open_notebook(page, lab, notebook(course, "empty", code))
    run_all(page)
    root = page.locator(".fl-fedet.fl-status-idle")
    root.locator(".fl-tabs button", has_text="Public data").first.click()
    view = root.locator(".fl-view-public")
    view.locator(".fl-empty").wait_for()
    expect(root.locator(".fl-cost p")).to_contain_text("both ways")
    for width in (1280, 820):
        page.set_viewport_size({"width": width, "height": 844})
        page.wait_for_function(QUIET)
        words, button = (
            view.locator(".fl-empty").bounding_box(),
            view.locator(".fl-work").bounding_box(),
        )
        assert words["height"] < 200 and button["y"] >= words["y"] + words["height"] - 1, width
        assert root.evaluate(BEYOND) == [], width
        menus = root.locator(".fl-controls select").filter(
            visible=True
        )  # the list of files stands beside the panel
        assert min(menu.bounding_box()["width"] for menu in menus.all()) > 60, width
