"""A strip of the stage above a lab's views: what is selected in one of them is marked in the other."""

import json
from pathlib import Path

import numpy as np
import pytest
from accessible import find_barriers
from lab_steps import (
    PATIENCE,
    find_panel,
    open_notebook,
    open_view_tab,
    run_all_cells,
    wait_for_status,
    write_notebook,
)
from playwright.sync_api import expect
from test_stage import SHELL, make_files, shards, window  # noqa: F401 - fixtures

from fedlab_nb.labs.fens.trust import draw_counts_and_weights
from fedlab_nb.panels.views import Frame
from fedlab_nb.plots.marks import get_hover_texts_and_keys_by_mark_id
from fedlab_nb.plots.style import draw_light_dark_svg_element

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
    """The text of each file that the window loads: a strip, and a lab's picture under it."""
    counts = np.arange(100).reshape(10, 10)
    picture = draw_counts_and_weights(counts, counts / 50, [str(c) for c in range(10)], "")
    values = {
        "value": draw_light_dark_svg_element(picture.figure),
        "alt": picture.alt,
        "marks": get_hover_texts_and_keys_by_mark_id(picture.figure),
        "thumbnails": {},
        "held": "",
        "size": [0, 0],
        "picked": {},
        "selection": {},
        "drawn": 1,
    }
    entry = {"/frame.js": Frame._esm, "/frame.json": json.dumps(values)}
    return {**make_files(shards), "/": STRIP, **entry}


def read_chosen_marks(page):
    """Read {(client, class)} of the picture's marks that are shown as chosen."""
    marks = page.locator("#view .mark.chosen")
    pairs = marks.evaluate_all(
        "all => all.map(({ dataset }) => [dataset.client, dataset.classIndex])"
    )
    return {tuple(pair) for pair in pairs}


def test_a_client_and_a_class_that_are_chosen_above_are_marked_below_at_once(window):  # noqa: F811
    owner = window.locator(".owners button").nth(2)
    owner.click()
    cells = {("2", str(c)) for c in range(10)}
    assert read_chosen_marks(window) == {*cells, ("2", None)}
    window.locator(".legend button").nth(7).click()
    assert read_chosen_marks(window) == {("2", "7"), ("2", None), (None, "7")}
    expect(window.locator(".legend button").nth(7)).to_have_attribute("aria-pressed", "true")
    owner.click()  # a second click deselects
    assert read_chosen_marks(window) == {*((str(k), "7") for k in range(10)), (None, "7")}
    assert find_barriers(window, ".fl-root") == []


def test_a_mark_that_is_chosen_below_is_chosen_above(window):  # noqa: F811
    mark = window.locator('#view [data-client="4"][data-class-index="1"]').first
    mark.focus()
    mark.press("Enter")
    expect(window.locator(".owners button").nth(4)).to_have_attribute("aria-expanded", "true")
    expect(window.locator(".legend button").nth(1)).to_have_attribute("aria-pressed", "true")
    assert ("4", "1") in read_chosen_marks(window) and len(read_chosen_marks(window)) == 3
    selections = window.evaluate(
        "sent.filter(({ kind }) => kind === 'select').map(({ selection }) => selection)"
    )
    # The engine learns of it from the picture.
    assert selections == [{"client": 4, "classIndex": 1}]
    mark.press("Escape")
    expect(window.locator(".owners button").nth(4)).to_have_attribute("aria-expanded", "false")
    assert read_chosen_marks(window) == set()


def test_another_panel_of_the_page_is_left_alone(window):  # noqa: F811
    window.evaluate(
        """() => {
            const other = document.body.appendChild(document.createElement("div"));
            other.className = "fl-root";
            const detail = { client: 3, classIndex: null };
            other.dispatchEvent(new CustomEvent("fl-selection", { bubbles: true, composed: true, detail }));
        }"""
    )
    assert read_chosen_marks(window) == set()
    expect(window.locator(".owners button").nth(3)).to_have_attribute("aria-expanded", "false")


def test_the_saved_strip_is_the_one_on_the_screen(window):  # noqa: F811
    window.locator(".owners button").nth(2).click()
    for is_open in (False, True):
        with window.expect_download() as saving:
            window.get_by_role("button", name="Save SVG").click()
        text = Path(saving.value.path()).read_text(encoding="utf-8")
        assert window.locator(".headline").inner_text() in text
        assert "α = 0.1, 10 offices, seed 4" in text and "playground.html#alpha=0.1" in text
        # The piles are one image, and the sample that is open is another.
        assert text.count("<image ") == 1 + is_open
        window.get_by_role("button", name="One digit").click()


LAB = (
    "import fedlab_nb as fl\n"
    "panel = fl.lab('fens', clients=5, alpha=0.3, seeds=1, epochs=4, rounds=5)\n"
    "panel"
)


def test_a_lab_and_its_strip_share_their_selection(page, lab, course):
    page.set_viewport_size({"width": 1280, "height": 720})
    page.set_default_timeout(PATIENCE)
    open_notebook(page, lab, write_notebook(course, "linked", LAB))
    run_all_cells(page)
    strip = page.locator(".fl-strip .fl-stage")
    strip.locator("canvas.wall").wait_for()
    expect(strip.locator(".sub")).to_contain_text("Press Run for results.")
    find_panel(page).locator("button.fl-run").click()
    wait_for_status(page, "done")
    expect(strip.locator(".sub")).to_contain_text("Drag a pile")
    expect(strip.locator(".sub")).not_to_contain_text("Press Run")
    open_view_tab(page, "Who is trusted")
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
    wall = strip.locator("canvas.wall")
    height = wall.bounding_box()["height"]
    strip.get_by_role("button", name="Watch what was sent").click()
    expect(strip.locator(".flight .caption")).to_contain_text("1 ")
    flight = strip.locator(".flight").evaluate("layer => layer.inspect()")
    assert flight["method"] == "fens"  # the lab's own
    assert wall.bounding_box()["height"] > 2 * height
    strip.get_by_role("button", name="Close the flight").click()
    assert wall.bounding_box()["height"] == height
    assert find_barriers(page, ".fl-live") == []
