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
    before, said = picture.get_attribute("src"), sentence.inner_text()
    box = panel(page).locator(".fl-alpha .noUi-handle").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y, steps=3)
    page.wait_for_function("([css, old]) => document.querySelector(css).src != old", arg=[PICTURE, before])
    page.mouse.up()
    assert sentence.inner_text() != said

    panel(page).locator(".fl-run").click()
    wait_for_status(page, "done")
    show(page, "Accuracy")
    alt = panel(page).locator(".fl-view-accuracy .fl-picture").get_attribute("alt")
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
