"""The stage in JupyterLab, with a kernel behind it: one screen, results that follow the hand, throws, no kernel."""

import subprocess
import sys

import pytest
from accessible import barriers
from lab_steps import end_kernels, notebook, open_notebook, run_all, save
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
    open_notebook(page, lab, notebook(course, "stage", PANEL))
    run_all(page)
    stage = page.locator(".fl-stage")
    stage.locator("canvas.wall").wait_for()
    stage.locator("button.run", has_text="Run 2 seeds").wait_for()
    return stage


def accuracies(stage):
    return stage.locator(".bar b").all_inner_texts()


def test_everything_that_matters_is_seen_without_scrolling(page, stage):
    cell = page.locator(".jp-OutputArea").first
    cell.evaluate("one => one.scrollIntoView()")
    for css in ("input.alpha", "input.clients", "button.run", "canvas.wall", ".bars", ".owners"):
        box = stage.locator(css).bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= 700, css
    assert page.locator(".jp-FileBrowser").is_visible()


def test_one_seed_follows_the_hand_and_run_gives_all(page, stage):
    assert accuracies(stage) == ["–"] * 4
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
    names = ["Bytes", "Features (t-SNE)", "Classes", "Calibration", "Accuracy"]
    assert tabs.all_inner_texts() == names
    tabs.nth(2).click()
    page.locator(".fl-view-classes .fl-picture").wait_for()
    assert barriers(page, ".fl-stage") == []


def test_a_pile_is_thrown_by_keyboard_and_undone(page, stage):
    owners = stage.locator(".owners button")
    before = owners.evaluate_all("all => all.map((one) => one.ariaLabel.split(';')[0])")
    owners.nth(4).press("Shift+ArrowLeft")
    stage.locator(".undo").wait_for()
    page.wait_for_function(
        """() => {
            const owners = document.querySelector('.fl-stage').shadowRoot.querySelectorAll('.owners button');
            return owners[4].ariaLabel.startsWith('office E: 1 sample');
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
    save(page)
    text = (course / "stage.ipynb").read_text(encoding="utf-8")
    assert "image/png" in text and len(text) < 400_000
    end_kernels(page, lab)
    page.locator(".fl-playground.fl-asleep, .fl-playground.jupyter-widgets-disconnected").wait_for()


def test_its_html_shows_the_picture_without_a_network(page, lab, course, stage, browser):
    """What `jupyter nbconvert --to html` makes of a saved notebook, opened where nothing can be loaded."""
    stage.locator("input.alpha").press("ArrowRight")
    expect(stage.locator(".bar b").first).not_to_have_text("–")
    save(page)
    end_kernels(page, lab)
    convert = [sys.executable, "-m", "nbconvert", "--to", "html", "stage.ipynb"]
    subprocess.run(convert, cwd=course, check=True, capture_output=True)
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 720})
    alone = context.new_page()
    alone.goto((course / "stage.html").as_uri())
    picture = alone.locator(".jp-OutputArea-output img")
    expect(picture).to_be_visible()
    assert picture.evaluate("one => one.naturalWidth") > 600
    context.close()
