"""The stage in JupyterLab with a kernel: one screen, results that follow the hand, throws; and without a kernel."""

import subprocess
import sys

import pytest
from accessible import find_barriers
from lab_steps import (
    open_notebook,
    run_all_cells,
    save_notebook,
    shut_down_all_kernels,
    write_notebook,
)
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
PANEL = (
    "import fedlab_nb as fl\n"
    "panel = fl.playground(methods=['local', 'fedavg', 'ensemble'], epochs=5, seeds=2, seed=4)\n"
    "panel"
)


@pytest.fixture
def stage(page, lab, course):
    """A fresh notebook on a small screen, with the list of files open, whose panel has drawn its piles."""
    page.set_viewport_size({"width": 1280, "height": 720})
    open_notebook(page, lab, write_notebook(course, "stage", PANEL))
    run_all_cells(page)
    stage = page.locator(".fl-stage")
    stage.locator("canvas.wall").wait_for()
    stage.locator("button.run", has_text="Run 2 seeds").wait_for()
    return stage


def read_accuracies(stage):
    return stage.locator(".bar b").all_inner_texts()


def test_everything_that_matters_is_seen_without_scrolling(page, stage):
    cell = page.locator(".jp-OutputArea").first
    cell.evaluate("one => one.scrollIntoView()")
    for css in ("input.alpha", "input.clients", "button.run", "canvas.wall", ".bars", ".owners"):
        box = stage.locator(css).bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= 700, css
    assert page.locator(".jp-FileBrowser").is_visible()


def test_one_seed_follows_the_hand_and_run_gives_all(page, stage):
    assert read_accuracies(stage) == ["–"] * 4
    expect(stage.locator(".cards.clients b").first).to_have_text("–")
    stage.locator("input.alpha").press("ArrowRight")
    expect(stage.locator(".bar b").first).not_to_have_text("–")
    expect(stage.locator("section .about").first).to_contain_text("one seed")
    expect(stage.locator(".cards.clients b").first).not_to_have_text("–")
    expect(stage.locator(".owners span").first).to_contain_text("%")
    assert stage.locator("button.run").inner_text() == "Run 2 seeds"
    stage.locator("button.run").click()
    expect(stage.locator("section .about").first).to_contain_text("2 seeds")
    page.locator(".fl-playground.fl-status-done").wait_for()
    tabs = page.locator(".fl-main > .fl-tabs button")
    names = ["Bytes", "Features (t-SNE)", "Classes", "Calibration", "In the plane", "Accuracy"]
    assert tabs.all_inner_texts() == names
    tabs.nth(2).click()
    page.locator(".fl-view-classes .fl-picture").wait_for()
    assert find_barriers(page, ".fl-stage") == []


def test_the_stage_opens_and_moves_while_the_kernel_is_busy(page, lab, course):
    """After Run All the cells below still run, and the reader need not wait for them."""
    wait = (
        "from pathlib import Path\nimport time\nwhile not Path('go').exists():\n    time.sleep(0.1)"
    )
    open_notebook(page, lab, write_notebook(course, "busy", PANEL, wait))
    run_all_cells(page)
    stage = page.locator(".fl-stage")
    read_labels = "all => all.map((one) => one.ariaLabel)"
    owners = stage.locator(".owners button")
    expect(owners).to_have_count(10)
    before = owners.evaluate_all(read_labels)
    expect(stage.locator(".cards.clients li")).to_have_count(10)
    stage.locator("input.alpha").press("ArrowRight")
    page.wait_for_function(
        """(before) => {
            const { shadowRoot } = document.querySelector('.fl-stage');
            const now = [...shadowRoot.querySelectorAll('.owners button')].map((one) => one.ariaLabel);
            return now.some((label, k) => label !== before[k]);
        }""",
        arg=before,
    )
    expect(stage.locator(".progress")).to_contain_text("busy with other cells")
    assert read_accuracies(stage) == ["–"] * 4
    (course / "go").touch()
    expect(stage.locator(".bar b").first).not_to_have_text("–")


def test_a_number_out_of_range_gets_a_message_and_changes_nothing(page, stage):
    """On the stage and in the fields under "More": ipywidgets alone would set it to the limit without a word."""
    stage.locator("input.alpha").press("ArrowRight")
    expect(stage.locator(".bar b").first).not_to_have_text("–")
    page.locator(".fl-playground.fl-status-done").wait_for()
    seed = stage.locator("input.seed")
    seed.fill("999999999999")
    seed.press("Enter")
    expect(stage.locator(".limit")).to_have_text("at most 1,000,000")
    expect(seed).to_have_value("4")
    expect(stage.locator(".stage.waiting")).to_have_count(0)
    seed.fill("7")
    seed.press("Enter")
    expect(stage.locator(".limit")).to_have_text("")
    expect(stage.locator(".stage.waiting")).to_have_count(0)
    stage.get_by_role("button", name="More ▾").click()
    epochs = page.locator(".fl-epochs input")
    epochs.fill("9999")
    epochs.press("Enter")
    expect(page.locator(".fl-epochs .fl-limit")).to_have_text("at most 500")
    epochs.fill("5")
    expect(page.locator(".fl-limit")).to_have_count(0)


def test_what_a_button_of_the_stage_opens_below_it_is_scrolled_into_sight(page, stage):
    page.set_viewport_size({"width": 1280, "height": 640})
    button = stage.get_by_role("button", name="+ method")
    button.scroll_into_view_if_needed()
    room = "innerHeight - document.querySelector('.fl-stage').getBoundingClientRect().bottom"
    assert page.evaluate(room) < 60  # the stage alone fills the window
    button.click()
    page.wait_for_function(
        """() => {
            const box = document.querySelector('.fl-below-stage').getBoundingClientRect();
            return box.height > 100 && box.top + 100 < innerHeight;
        }"""
    )


def test_a_pile_is_thrown_by_keyboard_and_undone(page, stage):
    owners = stage.locator(".owners button")
    before = owners.evaluate_all("all => all.map((one) => one.ariaLabel.split(';')[0])")
    owners.nth(4).press("Shift+ArrowLeft")
    stage.locator(".undo").wait_for()
    page.wait_for_function(
        """() => {
            const owners = document.querySelector('.fl-stage').shadowRoot.querySelectorAll('.owners button');
            return owners[4].ariaLabel.startsWith('client E: 1 sample');
        }"""
    )
    stage.locator(".undo").click()
    page.wait_for_function(
        """(before) => {
            const owners = document.querySelector('.fl-stage').shadowRoot.querySelectorAll('.owners button');
            return [...owners].every((one, k) => one.ariaLabel.split(';')[0] === before[k]);
        }""",
        arg=before,
    )


def test_a_saved_notebook_without_a_kernel_is_a_picture_without_samples(page, lab, course, stage):
    stage.locator("input.alpha").press("ArrowRight")
    expect(stage.locator(".bar b").first).not_to_have_text("–")
    save_notebook(page)
    text = (course / "stage.ipynb").read_text(encoding="utf-8")
    assert "image/png" in text
    assert len(text) < 400_000  # a picture as SVG, and as PNG for slides
    shut_down_all_kernels(page, lab)
    page.locator(".fl-playground.fl-asleep, .fl-playground.jupyter-widgets-disconnected").wait_for()


def test_a_notebook_s_html_shows_the_picture_without_a_network(page, lab, course, stage, browser):
    """What `jupyter nbconvert --to html` makes of a saved notebook, opened where nothing can be loaded."""
    stage.locator("input.alpha").press("ArrowRight")
    expect(stage.locator(".bar b").first).not_to_have_text("–")
    save_notebook(page)
    shut_down_all_kernels(page, lab)
    convert = [sys.executable, "-m", "nbconvert", "--to", "html", "stage.ipynb"]
    subprocess.run(convert, cwd=course, check=True, capture_output=True)
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 720})
    html_page = context.new_page()
    html_page.goto((course / "stage.html").as_uri())
    picture = html_page.locator(".jp-OutputArea-output img")
    expect(picture).to_be_visible()
    assert picture.evaluate("one => one.naturalWidth") > 600
    context.close()
