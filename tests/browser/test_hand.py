"""What a hand does in a lab: samples are given to another client, by mouse and by keys; and a digit is drawn."""

import pytest
from accessible import barriers
from lab_steps import notebook, open_notebook, rest, run_all
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
LIVE = ".fl-root.fl-live"


def opened(page, lab, course, code):
    """The live panel of a notebook with this code."""
    open_notebook(page, lab, notebook(course, "hand", "import fedlab_nb as fl", code))
    run_all(page)
    page.locator(f"{LIVE} .fl-frame svg").first.wait_for()
    page.wait_for_function(f"document.querySelector('{LIVE}').matches('.fl-status-idle')")
    return page.locator(LIVE)


def test_samples_are_given_to_another_client_by_mouse_and_by_keyboard(page, lab, course):
    panel = opened(page, lab, course, "fl.comparison(methods=['fedavg'], seeds=1)")
    view, row = panel.locator(".fl-view-partition"), panel.locator(".fl-editor")
    view.locator(".fl-frame").scroll_into_view_if_needed()
    rest(page)
    panel.locator(".fl-drawer button", has_text="Python").click()
    code, undo = panel.locator(".fl-code pre"), row.get_by_role("button", name="Undo")
    expect(row).to_be_hidden()

    dot = view.locator('[data-client="3"][data-class-index="6"]')
    dot.click()
    expect(panel.locator(".fl-samples img")).to_have_count(24)
    row.get_by_label("Give to").select_option(label="A")
    row.get_by_role("button", name="Give class 6 to").click()
    expect(code).to_contain_text("moves='0: D6>A'")
    expect(view.locator('[data-client="0"][data-class-index="6"]')).to_have_count(1)
    expect(dot).to_have_count(0)

    view.locator('[data-client="0"][data-class-index="8"]').focus()
    page.keyboard.press("Enter")
    expect(row.get_by_role("button", name="Give class 8 to")).to_be_visible()
    row.get_by_label("Give to").select_option(label="B")
    row.get_by_role("button", name="Give class 8 to").focus()
    page.keyboard.press("Enter")
    expect(code).to_contain_text("moves='0: D6>A, A8>B'")
    expect(row.get_by_role("button", name="Double B")).to_be_visible()
    assert barriers(page, f"{LIVE} .fl-main") == []
    for left in ("moves='0: D6>A'", "seeds=1)"):
        undo.focus()
        page.keyboard.press("Enter")
        expect(code).to_contain_text(left)
    expect(undo).to_be_hidden()


def test_a_digit_is_drawn_and_everybody_answers(page, lab, course):
    panel = opened(page, lab, course, "fl.lab('fens', epochs=5, rounds=20)")
    panel.locator("button.fl-run").click()
    page.locator(f"{LIVE}.fl-status-done").wait_for()
    panel.locator(".fl-main > .fl-tabs button", has_text="One sample").click()
    panel.locator("button.fl-pen").click()
    field, says = panel.locator("canvas.fl-field"), panel.locator(".fl-says")
    field.wait_for()
    rest(page)
    field.scroll_into_view_if_needed()
    box = field.bounding_box()
    for press, (x, y) in zip(
        (True, False, False), ((0.25, 0.2), (0.75, 0.2), (0.45, 0.85)), strict=True
    ):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=4)
        if press:
            page.mouse.down()
    expect(says).to_contain_text("FENS")  # while the pen still lies on the paper
    expect(says).to_contain_text("clients: A")
    page.mouse.up()
    sentence = panel.locator(".fl-view-sample .fl-sentence")
    expect(sentence).to_contain_text("Your drawing:")
    assert barriers(page, f"{LIVE} .fl-view-sample") == []
    panel.get_by_role("button", name="Clear", exact=True).click()
    expect(sentence).to_contain_text("Test sample 0")
