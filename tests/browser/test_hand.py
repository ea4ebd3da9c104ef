"""By hand in a lab: samples are given to another client, with the mouse and with keys, and a digit is drawn."""

import pytest
from accessible import find_barriers
from lab_steps import open_notebook, run_all_cells, wait_for_quiet_panel, write_notebook
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
LIVE = ".fl-root.fl-live"


def open_panel(page, lab, course, code):
    """Run a notebook with this code, and return its live panel."""
    open_notebook(page, lab, write_notebook(course, "hand", "import fedlab_nb as fl", code))
    run_all_cells(page)
    page.locator(f"{LIVE} .fl-frame svg").first.wait_for()
    page.wait_for_function(f"document.querySelector('{LIVE}').matches('.fl-status-idle')")
    return page.locator(LIVE)


def test_samples_are_given_to_another_client_by_mouse_and_by_keyboard(page, lab, course):
    panel = open_panel(page, lab, course, "fl.comparison(methods=['fedavg'], seeds=1)")
    view = panel.locator(".fl-view-partition")
    editor = panel.locator(".fl-editor")
    view.locator(".fl-frame").scroll_into_view_if_needed()
    wait_for_quiet_panel(page)
    panel.locator(".fl-drawer button", has_text="Python").click()
    code = panel.locator(".fl-code pre")
    undo = editor.get_by_role("button", name="Undo")
    expect(editor).to_be_hidden()

    dot = view.locator('[data-client="3"][data-class-index="6"]')
    dot.click()
    expect(panel.locator(".fl-samples img")).to_have_count(24)
    editor.get_by_label("Give to").select_option(label="A")
    editor.get_by_role("button", name="Give class 6 to").click()
    expect(code).to_contain_text("moves='0: D6>A'")
    expect(view.locator('[data-client="0"][data-class-index="6"]')).to_have_count(1)
    expect(dot).to_have_count(0)

    view.locator('[data-client="0"][data-class-index="8"]').focus()
    page.keyboard.press("Enter")
    expect(editor.get_by_role("button", name="Give class 8 to")).to_be_visible()
    editor.get_by_label("Give to").select_option(label="B")
    editor.get_by_role("button", name="Give class 8 to").focus()
    page.keyboard.press("Enter")
    expect(code).to_contain_text("moves='0: D6>A, A8>B'")
    expect(editor.get_by_role("button", name="Double B")).to_be_visible()
    assert find_barriers(page, f"{LIVE} .fl-main") == []
    for code_after_undo in ("moves='0: D6>A'", "seeds=1)"):
        undo.focus()
        page.keyboard.press("Enter")
        expect(code).to_contain_text(code_after_undo)
    expect(undo).to_be_hidden()


def test_a_digit_is_drawn_and_everybody_answers(page, lab, course):
    panel = open_panel(page, lab, course, "fl.lab('fens', epochs=5, rounds=20)")
    panel.locator("button.fl-run").click()
    page.locator(f"{LIVE}.fl-status-done").wait_for()
    panel.locator(".fl-main > .fl-tabs button", has_text="One sample").click()
    panel.locator("button.fl-pen").click()
    field = panel.locator("canvas.fl-field")
    answers = panel.locator(".fl-says")
    field.wait_for()
    wait_for_quiet_panel(page)
    field.scroll_into_view_if_needed()
    box = field.bounding_box()
    stroke_of_a_seven = ((0.25, 0.2), (0.75, 0.2), (0.45, 0.85))
    for i, (x, y) in enumerate(stroke_of_a_seven):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=4)
        if i == 0:
            page.mouse.down()
    expect(answers).to_contain_text("FENS")  # while the mouse button is still pressed
    expect(answers).to_contain_text("clients: A")
    page.mouse.up()
    sentence = panel.locator(".fl-view-sample .fl-sentence")
    expect(sentence).to_contain_text("Your drawing:")
    assert find_barriers(page, f"{LIVE} .fl-view-sample") == []
    panel.get_by_role("button", name="Clear", exact=True).click()
    expect(sentence).to_contain_text("Test sample 0")
