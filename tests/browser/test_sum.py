"""A method's card unfolds the sum behind its answer for the image on the stage."""

import pytest
from accessible import find_barriers
from lab_steps import open_notebook, run_all_cells, save_screenshot, write_notebook
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
PANEL = (
    "import fedlab_nb as fl\n"
    "panel = fl.playground(methods=['local', 'fedavg', 'ensemble', 'fens', 'fedet'], seeds=1, seed=4,"
    " **{'fedet.one_shot_steps': 20})\n"
    "panel"
)


def read_plain_text(locator):
    """Read an element's text with ordinary spaces and minus signs."""
    return locator.inner_text().replace("\xa0", " ").replace("−", "-")


def test_a_card_unfolds_its_sum(page, lab, course):
    page.set_viewport_size({"width": 1280, "height": 720})
    open_notebook(page, lab, write_notebook(course, "sum", PANEL))
    run_all_cells(page)
    stage = page.locator(".fl-stage")
    stage.locator("canvas.wall").wait_for()
    assert stage.locator(".unfold").count() == 0  # no method has answered yet
    stage.locator("button.run", has_text="Run").click()
    page.locator(".fl-playground.fl-status-done").wait_for()
    opener = stage.get_by_role("button", name="FENS: how it comes to this answer")
    opener.click()
    shown_sum = stage.locator(".sum")
    expect(shown_sum.locator("h3")).to_contain_text("FENS on this digit: logits of")
    expect(opener).to_have_attribute("aria-expanded", "true")
    cells = shown_sum.locator(".terms li")
    assert cells.count() == 10
    terms = []
    for k in range(10):
        _, value, _, weight, _, term = read_plain_text(cells.nth(k)).split()[:6]
        assert float(value) * float(weight) == pytest.approx(
            float(term), abs=0.06 + 0.001 * abs(float(value))
        )
        terms.append(float(term))
    total = float(read_plain_text(shown_sum.locator(".result")).split()[1])
    assert sum(terms) == pytest.approx(total, abs=0.6)
    answer = read_plain_text(shown_sum.locator(".totals .most small"))
    card = stage.locator(".cards").first.locator("li", has_text="FENS").locator("b")
    assert read_plain_text(card) == answer
    shown_sum.scroll_into_view_if_needed()
    save_screenshot(page, "sum-1280")
    assert find_barriers(page, ".fl-stage") == []
    shown_sum.locator(".totals button").nth(3).click()
    expect(shown_sum.locator("h3")).to_contain_text("“3”")
    before = read_plain_text(shown_sum.locator(".result"))
    stage.get_by_role("button", name="another").click()  # the sum follows the image
    expect(shown_sum.locator(".result")).not_to_have_text(before)
    cells.nth(2).locator("button").click()
    expect(stage.locator(".owners button").nth(2)).to_have_attribute("aria-expanded", "true")
    stage.get_by_role("button", name="Fed-ET: how it comes to this answer").click()
    expect(shown_sum.locator(".result")).to_contain_text("one network that has learnt")
    page.set_viewport_size({"width": 1920, "height": 1080})
    save_screenshot(page, "sum-1920")
    stage.get_by_role("button", name="Fed-ET: how it comes to this answer").click()
    expect(shown_sum).to_be_hidden()
