"""A method's card unfolds the sum behind its answer to the image that is looked at."""

import os

import pytest
from accessible import barriers
from lab_steps import notebook, open_notebook, run_all
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
PANEL = (
    "import fedlab_nb as fl\n"
    "panel = fl.playground(methods=['local', 'fedavg', 'ensemble', 'fens', 'fedet'], seeds=1, seed=4,"
    " **{'fedet.one_shot_steps': 20})\n"
    "panel"
)


def take_picture(page, name):
    """Keep a screenshot where FEDLAB_NB_SCREENSHOTS names a folder, for somebody to look at."""
    folder = os.environ.get("FEDLAB_NB_SCREENSHOTS")
    if folder:
        page.screenshot(path=f"{folder}/{name}.png")


def read(locator):
    return locator.inner_text().replace("\xa0", " ").replace("−", "-")


def test_a_card_unfolds_its_sum(page, lab, course):
    page.set_viewport_size({"width": 1280, "height": 720})
    open_notebook(page, lab, notebook(course, "sum", PANEL))
    run_all(page)
    stage = page.locator(".fl-stage")
    stage.locator("canvas.wall").wait_for()
    assert stage.locator(".unfold").count() == 0  # nobody has said anything yet
    stage.locator("button.run", has_text="Run").click()
    page.locator(".fl-playground.fl-status-done").wait_for()
    opener = stage.get_by_role("button", name="FENS: how it comes to this answer")
    opener.click()
    one = stage.locator(".sum")
    expect(one.locator("h3")).to_contain_text("FENS on this digit: logits of")
    expect(opener).to_have_attribute("aria-expanded", "true")
    cells = one.locator(".terms li")
    assert cells.count() == 10
    rows = [read(cells.nth(k)).split() for k in range(10)]
    numbers = [[float(row[i]) for i in (1, 3, 5)] for row in rows]
    for value, weight, part in numbers:
        assert value * weight == pytest.approx(part, abs=0.06 + 0.001 * abs(value))
    total = float(read(one.locator(".result")).split()[1])
    assert sum(part for _, _, part in numbers) == pytest.approx(total, abs=0.6)
    said = read(one.locator(".totals .most small"))
    card = stage.locator(".cards").first.locator("li", has_text="FENS").locator("b")
    assert read(card) == said
    one.scroll_into_view_if_needed()
    take_picture(page, "sum-1280")
    assert barriers(page, ".fl-stage") == []
    one.locator(".totals button").nth(3).click()
    expect(one.locator("h3")).to_contain_text("“3”")
    before = read(one.locator(".result"))
    stage.get_by_role("button", name="another").click()  # the sum follows the image
    expect(one.locator(".result")).not_to_have_text(before)
    cells.nth(2).locator("button").click()
    expect(stage.locator(".owners button").nth(2)).to_have_attribute("aria-expanded", "true")
    stage.get_by_role("button", name="Fed-ET: how it comes to this answer").click()
    expect(one.locator(".result")).to_contain_text("one network that has learnt")
    page.set_viewport_size({"width": 1920, "height": 1080})
    take_picture(page, "sum-1920")
    stage.get_by_role("button", name="Fed-ET: how it comes to this answer").click()
    expect(one).to_be_hidden()
