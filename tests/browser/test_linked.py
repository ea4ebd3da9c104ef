"""A strip of the stage over a lab's views: what is chosen above is marked below, and the other way round."""

import json
from pathlib import Path

import numpy as np
import pytest
from accessible import barriers
from lab_steps import PATIENCE, notebook, open_notebook, panel, run_all, show, wait_for_status
from playwright.sync_api import expect
from test_stage import SHELL, make_files, shards, window  # noqa: F401 - fixtures

from fedlab_nb.labs.fens.trust import draw_counts_and_weights
from fedlab_nb.panels.views import Frame
from fedlab_nb.plots.marks import get_marks_by_id
from fedlab_nb.plots.vector import draw_svg

pytestmark = pytest.mark.browser

STRIP = (
    SHELL.replace('<div id="stage"></div>', '<div class="fl-root"><div id="stage"></div><div id="view"></div></div>')
    .replace("window.sent = []", "data.isStrip = true;\nwindow.sent = []")
    .replace(
        "window.isReady = true;",
        """
const { default: frame } = await import("./frame.js");
const values = await (await fetch("./frame.json")).json();
const listeners = {};
window.model = {
  get: (name) => values[name],
  set(name, value) { values[name] = value; listeners[`change:${name}`]?.forEach((one) => one()); },
  save_changes() {},
  on(name, call) { (listeners[name] ??= []).push(call); },
};
const view = document.querySelector("#view");
view.style.height = "360px";
frame.render({ model: window.model, el: view });
window.isReady = true;""",
    )
)  # fmt: skip


@pytest.fixture(scope="module")
def files(shards):  # noqa: F811
    """The text of each file that the window asks for: of a strip, and of a lab's picture under it."""
    counts = np.arange(100).reshape(10, 10)
    picture = draw_counts_and_weights(counts, counts / 50, [str(c) for c in range(10)], "")
    values = {
        "value": draw_svg(picture.figure),
        "alt": picture.alt,
        "marks": get_marks_by_id(picture.figure),
        "thumbnails": {},
        "held": "",
        "size": [0, 0],
        "picked": {},
        "selection": {},
        "drawn": 1,
    }
    entry = {"/frame.js": Frame._esm, "/frame.json": json.dumps(values)}
    return {**make_files(shards), "/": STRIP, **entry}


def chosen(page):
    """What the marks of the picture that are chosen stand for: {(client, class)}."""
    marks = page.locator("#view .mark.chosen")
    pairs = marks.evaluate_all(
        "all => all.map(({ dataset }) => [dataset.client, dataset.classIndex])"
    )
    return {tuple(pair) for pair in pairs}


def test_a_client_and_a_class_that_are_chosen_above_are_marked_below_at_once(window):  # noqa: F811
    owner = window.locator(".owners button").nth(2)
    owner.click()
    cells = {("2", str(c)) for c in range(10)}
    assert chosen(window) == {*cells, ("2", None)}
    window.locator(".legend button").nth(7).click()
    assert chosen(window) == {("2", "7"), ("2", None), (None, "7")}
    expect(window.locator(".legend button").nth(7)).to_have_attribute("aria-pressed", "true")
    owner.click()  # once more lets go
    assert chosen(window) == {*((str(k), "7") for k in range(10)), (None, "7")}
    assert barriers(window, ".fl-root") == []


def test_a_mark_that_is_chosen_below_is_chosen_above(window):  # noqa: F811
    mark = window.locator('#view [data-client="4"][data-class-index="1"]').first
    mark.focus()
    mark.press("Enter")
    expect(window.locator(".owners button").nth(4)).to_have_attribute("aria-expanded", "true")
    expect(window.locator(".legend button").nth(1)).to_have_attribute("aria-pressed", "true")
    assert ("4", "1") in chosen(window) and len(chosen(window)) == 3
    told = window.evaluate(
        "sent.filter(({ kind }) => kind === 'select').map((one) => one.selection)"
    )
    assert told == [{"client": 4, "classIndex": 1}]  # the engine learns of it from the picture
    mark.press("Escape")
    expect(window.locator(".owners button").nth(4)).to_have_attribute("aria-expanded", "false")
    assert chosen(window) == set()


def test_another_panel_of_the_page_is_left_alone(window):  # noqa: F811
    window.evaluate(
        """() => {
            const other = document.body.appendChild(document.createElement("div"));
            other.className = "fl-root";
            const detail = { client: 3, classIndex: null };
            other.dispatchEvent(new CustomEvent("fl-selection", { bubbles: true, composed: true, detail }));
        }"""
    )
    assert chosen(window) == set()
    expect(window.locator(".owners button").nth(3)).to_have_attribute("aria-expanded", "false")


def test_the_strip_is_saved_as_it_stands(window):  # noqa: F811
    window.locator(".owners button").nth(2).click()
    for is_open in (False, True):
        with window.expect_download() as saving:
            window.get_by_role("button", name="Save SVG").click()
        text = Path(saving.value.path()).read_text(encoding="utf-8")
        assert window.locator(".headline").inner_text() in text
        assert "α = 0.1, 10 offices, seed 4" in text and "playground.html#alpha=0.1" in text
        assert text.count("<image ") == (
            2 if is_open else 1
        )  # the piles; the image where it is open
        window.get_by_role("button", name="One digit").click()


LAB = (
    "import fedlab_nb as fl\n"
    "panel = fl.lab('fens', clients=5, alpha=0.3, seeds=1, epochs=4, rounds=5)\n"
    "panel"
)


def test_a_lab_and_its_strip_choose_together(page, lab, course):
    page.set_viewport_size({"width": 1280, "height": 720})
    page.set_default_timeout(PATIENCE)
    open_notebook(page, lab, notebook(course, "linked", LAB))
    run_all(page)
    strip = page.locator(".fl-strip .fl-stage")
    strip.locator("canvas.wall").wait_for()
    expect(strip.locator(".sub")).to_contain_text("Press Run for results.")
    panel(page).locator("button.fl-run").click()
    wait_for_status(page, "done")
    expect(strip.locator(".sub")).to_contain_text("Drag a pile")
    expect(strip.locator(".sub")).not_to_contain_text("Press Run")
    show(page, "Who is trusted")
    view = page.locator(".fl-view-trust")
    view.locator("svg .mark").first.wait_for(state="attached")
    strip.locator(".owners button").nth(2).click()
    expect(view.locator('.mark.chosen[data-client="2"]').first).to_be_attached()
    expect(page.locator(".fl-client select option:checked")).to_have_text("C")
    expect(view.locator(".fl-sentence")).to_contain_text("client C counts most")
    page.locator(".fl-class select").select_option("7")
    expect(strip.locator(".legend button").nth(7)).to_have_attribute("aria-pressed", "true")
    strip.get_by_role("button", name="One digit").click()
    opener = strip.get_by_role("button", name="FENS: how it comes to this answer")
    opener.click()
    expect(strip.locator(".sum h3")).to_contain_text("FENS on this digit")
    opener.click()
    strip.get_by_role("button", name="One digit").click()
    low = strip.locator("canvas.wall").bounding_box()["height"]
    strip.get_by_role("button", name="Watch what was sent").click()
    expect(strip.locator(".flight .caption")).to_contain_text("1 ")
    flying = strip.locator(".flight").evaluate("layer => layer.inspect()")
    assert flying["method"] == "fens"  # the lab's own
    assert strip.locator("canvas.wall").bounding_box()["height"] > 2 * low
    strip.get_by_role("button", name="Close the flight").click()
    assert strip.locator("canvas.wall").bounding_box()["height"] == low
    assert barriers(page, ".fl-live") == []
