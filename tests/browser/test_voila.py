"""The playground as a page of its own (`fedlab-nb voila`), in a real browser: it opens, answers, and runs."""

import os
import re
import subprocess
import sys

import pytest
from lab_steps import PATIENCE, panel, running, scratch, settled, show, wait_for_status
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Address, token included, that the command prints, run in a scratch home."""
    pytest.importorskip("voila")
    command = [sys.executable, "-m", "fedlab_nb", "voila", "--no-browser", "--set", "epochs=5"]
    variables = {**os.environ, **scratch(tmp_path_factory.mktemp("home"))}
    with running(command, env=variables, stdout=subprocess.PIPE, text=True) as server:
        yield re.search(r"http://127\.0\.0\.1:\d+/\?token=\w+", server.stdout.readline()).group()


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    context.set_default_timeout(PATIENCE)
    yield context.new_page()
    context.close()


def test_the_page_opens_answers_and_runs(page, address):
    """Hover tells the number, click looks at the client, Escape lets go; the frame is filled; the theme is dark."""
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}&theme=dark")
    wait_for_status(page, "idle")
    assert page.title() == "fedlab_nb"
    settled(page)
    still = page.locator(".jp-RenderedImage img")
    still.wait_for(state="attached")
    expect(still).to_be_hidden()  # the panel alone, not its saved picture too
    assert page.locator(".jp-InputArea:visible").count() == 0

    view = panel(page).locator(".fl-view-partition")
    view.locator("svg .mark").first.wait_for()
    settled(page)
    frame, svg = view.locator(".fl-frame").bounding_box(), view.locator("svg").bounding_box()
    assert abs(frame["width"] - svg["width"]) < 3 and abs(frame["height"] - svg["height"]) < 3
    bar = view.locator("svg .mark[aria-label^='Client D ✦ sixes']").first
    bar.hover()
    tip = view.locator(".fl-tip")
    expect(tip).to_be_visible()
    assert tip.inner_text().startswith("Client D ✦ sixes\n") and "samples of" in tip.inner_text()
    bar.click()
    page.wait_for_function(
        "document.querySelector('.fl-view-partition .fl-sentence').innerText.startsWith('Client D holds')"
    )
    view.locator("svg .mark[tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Escape")
    page.wait_for_function(
        "!document.querySelector('.fl-view-partition .fl-sentence').innerText.startsWith('Client D holds')"
    )
    ink, paper = page.evaluate(
        """() => ['.fl-playground', 'body'].map(css => {
            const style = getComputedStyle(document.querySelector(css));
            const parts = (css == 'body' ? style.backgroundColor : style.color).match(/[\\d.]+/g).map(Number);
            return parts[0] + parts[1] + parts[2];
        })"""
    )
    assert paper < 150 < 500 < ink

    panel(page).locator(".fl-run").click()
    wait_for_status(page, "done")
    show(page, "Accuracy")
    accuracy = panel(page).locator(
        ".fl-view-accuracy .fl-picture"
    )  # its last drawing comes after the status
    for words in ("FENS", "digits, α = "):
        expect(accuracy).to_have_attribute("aria-label", re.compile(words))
    elsewhere = {
        url for url in asked if not re.match(r"(http|ws)://127\.0\.0\.1:|data:|blob:", url)
    }
    assert not elsewhere
