"""The playground as a page of its own (`fedlab-nb voila`), in a real browser: it opens, answers, and runs."""

import os
import re
import subprocess
import sys

import pytest
from lab_steps import (
    PATIENCE,
    find_panel,
    make_scratch_environment,
    open_view_tab,
    run_server,
    wait_for_status,
)
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The address with its token, as the command prints it; the command runs in a scratch home."""
    pytest.importorskip("voila")
    command = [sys.executable, "-m", "fedlab_nb", "voila", "--no-browser", "--set", "epochs=5"]
    variables = {**os.environ, **make_scratch_environment(tmp_path_factory.mktemp("home"))}
    with run_server(command, env=variables, stdout=subprocess.PIPE, text=True) as server:
        yield re.search(r"http://127\.0\.0\.1:\d+/\?token=\w+", server.stdout.readline()).group()


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    context.set_default_timeout(PATIENCE)
    yield context.new_page()
    context.close()


def test_the_page_opens_answers_and_runs(page, address):
    """A click opens a client's card and Escape closes it; a run fills the bars and the tab; the theme is dark."""
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(f"{address}&theme=dark")
    wait_for_status(page, "idle")
    assert page.title() == "fedlab_nb"
    stage = page.locator(".fl-stage")
    stage.locator("canvas.wall").wait_for()
    still = page.locator("img.fl-still")
    still.wait_for(state="attached")
    expect(still).to_be_hidden()  # the panel alone, not its saved picture too
    assert page.locator(".jp-InputArea:visible").count() == 0

    stage.locator(".owners button").nth(3).click()
    card = stage.locator(".hand")
    expect(card).to_contain_text("D")
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    ink, paper = page.evaluate(
        """() => ['.fl-playground', 'body'].map(css => {
            const style = getComputedStyle(document.querySelector(css));
            const parts = (css == 'body' ? style.backgroundColor : style.color).match(/[\\d.]+/g).map(Number);
            return parts[0] + parts[1] + parts[2];
        })"""
    )
    assert paper < 150 < 500 < ink
    ground, stage_ground = page.evaluate(
        """() => {
            const colour = one => getComputedStyle(one).backgroundColor;
            const place = document.querySelector('.fl-stage');
            let around = place;
            while (colour(around) === 'rgba(0, 0, 0, 0)') around = around.parentElement;
            return [colour(around), colour(place.shadowRoot.querySelector('.stage'))];
        }"""
    )
    assert ground == stage_ground  # the stage is no box in another grey

    stage.locator("button.run").click()
    wait_for_status(page, "done")
    expect(stage.locator(".bar b").first).to_contain_text("%")
    open_view_tab(page, "Accuracy")
    # Its last drawing comes after the status.
    accuracy = find_panel(page).locator(".fl-view-accuracy .fl-picture")
    for words in ("FENS", "digits, α = "):
        expect(accuracy).to_have_attribute("aria-label", re.compile(words))
    is_local = re.compile(r"(http|ws)://127\.0\.0\.1:|data:|blob:").match
    assert [url for url in requests if not is_local(url)] == []
