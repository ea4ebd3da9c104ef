"""The playground as a page of its own (`fedlab-nb voila`), in a real browser: it opens, follows a drag, and runs."""

import os
import re
import signal
import subprocess
import sys

import pytest
from lab_steps import panel, show, wait_for_status

pytestmark = pytest.mark.browser
PICTURE = ".fl-view-partition .fl-picture"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Address, token included, that the command prints, run in a scratch home."""
    pytest.importorskip("voila")
    home = tmp_path_factory.mktemp("home")
    places = ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "FEDLAB_NB_STORE")
    scratch = {name: str(home / name.lower()) for name in places}
    command = [sys.executable, "-m", "fedlab_nb", "voila", "--no-browser", "--set", "epochs=5"]
    server = subprocess.Popen(
        command, env={**os.environ, **scratch, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, text=True
    )
    line = server.stdout.readline()
    yield re.search(r"http://127\.0\.0\.1:\d+/\?token=\w+", line).group()
    server.send_signal(signal.SIGTERM)
    server.communicate(timeout=30)


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    context.set_default_timeout(60_000)
    yield context.new_page()
    context.close()


def test_the_page_opens_follows_a_drag_and_runs(page, address):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    wait_for_status(page, "idle")
    assert page.title() == "fedlab_nb"
    assert page.locator(".jp-RenderedImage img:visible").count() == 0  # the panel alone, not its saved picture too
    assert page.locator(".jp-InputArea:visible").count() == 0

    show(page, "Who holds what")
    picture, sentence = panel(page).locator(PICTURE), panel(page).locator(".fl-view-partition .fl-sentence")
    before, sentence_before = picture.evaluate("one => one.shadowRoot.innerHTML"), sentence.inner_text()
    box = panel(page).locator(".fl-alpha .noUi-handle").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y, steps=3)
    words = ".fl-view-partition .fl-sentence"
    page.wait_for_function("([css, old]) => document.querySelector(css).innerText != old", arg=[words, sentence_before])
    page.mouse.up()
    page.wait_for_function(
        "([css, old]) => document.querySelector(css).shadowRoot.innerHTML != old", arg=[PICTURE, before]
    )

    panel(page).locator(".fl-run").click()
    wait_for_status(page, "done")
    show(page, "Accuracy")
    alt = panel(page).locator(".fl-view-accuracy .fl-picture").get_attribute("aria-label")
    assert "FENS" in alt and "digits, α = " in alt
    elsewhere = {url for url in asked if not re.match(r"(http|ws)://127\.0\.0\.1:|data:|blob:", url)}
    assert not elsewhere


def test_the_dark_theme_reaches_the_panel(page, address):
    page.goto(f"{address}&theme=dark")
    wait_for_status(page, "idle")
    ink, paper = page.evaluate(
        """() => ['.fl-playground', 'body'].map(css => {
            const style = getComputedStyle(document.querySelector(css));
            const parts = (css == 'body' ? style.backgroundColor : style.color).match(/[\\d.]+/g).map(Number);
            return parts[0] + parts[1] + parts[2];
        })"""
    )
    assert paper < 150 < 500 < ink


def test_marks_answer_to_pointer_and_keyboard(page, address):
    """Hover tells the number, click looks at the client, Escape lets go; the frame is filled."""
    page.goto(address)
    wait_for_status(page, "idle")
    view = panel(page).locator(".fl-view-partition")
    view.locator("svg .mark").first.wait_for()
    frame, svg = view.locator(".fl-frame").bounding_box(), view.locator("svg").bounding_box()
    assert abs(frame["width"] - svg["width"]) < 3 and abs(frame["height"] - svg["height"]) < 3
    bar = view.locator("svg .mark[aria-label^='Client 3 ✦ sixes']").first
    bar.hover()
    tip = view.locator(".fl-tip")
    assert tip.inner_text().startswith("Client 3 ✦ sixes\n") and "samples of" in tip.inner_text()
    bar.click()
    page.wait_for_function(
        "document.querySelector('.fl-view-partition .fl-sentence').innerText.startsWith('Client 3 holds')"
    )
    view.locator("svg .mark[tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Escape")
    page.wait_for_function(
        "!document.querySelector('.fl-view-partition .fl-sentence').innerText.startsWith('Client 3 holds')"
    )
