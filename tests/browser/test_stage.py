"""The stage's modules in Chromium, without kernel or server: recorded states, throws, undo, older results."""

import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from accessible import find_barriers
from lab_steps import PATIENCE
from playwright.sync_api import expect

from fedlab_nb.data import PartitionEdits, federate
from fedlab_nb.front import HERE as FRONT
from fedlab_nb.live import page as static

pytestmark = pytest.mark.browser
# The results of a run, and everybody's answers for one test image.
RECORDED = json.loads(Path(__file__).with_name("stage_recorded.json").read_text(encoding="utf-8"))
# A page with the stage, whose engine is played by the test: it records what is sent, and deals the data out.
SHELL = """<!doctype html><html lang="en"><title>The stage</title><body style="margin:0">
<main><h1>The stage</h1><div id="stage"></div></main>
<script type="module">
import { createStage } from "./stage.js";
import { applyMoves } from "./federation.js";
const { data, shards } = await (await fetch("./data.json")).json();
const unpackPixels = (text) => Float32Array.from(atob(text), (one) => one.charCodeAt(0) / 16);
data.train.images = unpackPixels(data.train.images);
data.test.images = unpackPixels(data.test.images);
window.band = { mean: 0.5, half: 0.1 };
Object.assign(data, {
  storedSetting: ({ alpha, clients }) => (clients === 10 && alpha === 0.1 ? { alpha } : null),
  stored: (name) => (name === "logits" ? null : window.band),
});
window.data = data;
window.sent = [];
window.shards = null;
let listener;
window.receive = (message) => listener(message);
const transport = window.transport = {
  data,
  connect(receive) { listener = receive; },
  send(message) {
    window.sent.push(message);
    if (message.kind !== "deal") return;
    window.shards = applyMoves(shards, data.train.labels, message.setting.moves);
    listener({ kind: "federation", revision: message.revision, shards: window.shards });
  },
  preview: () => [[1, 1], [2, 0]],
  destroy() {},
};
const stylesheet = await (await fetch("./stage.css")).text();
window.stage = createStage(document.querySelector("#stage"), transport, { stylesheet });
window.isReady = true;
</script></body></html>"""


@pytest.fixture(scope="module")
def shards():
    return federate("digits", alpha=0.1, clients=10, seed=4).shards


def make_files(shards):
    """Make the text of each file that the window loads, except the modules themselves."""
    content = static.collect_page_data()["digits"]
    live = content["live"]
    data = {
        "train": {"labels": [*map(int, content["labels"])], "images": live["train"], "side": 8},
        "test": {"labels": [*map(int, live["answers"])], "images": live["test"], "side": 8},
        "classes": content["classes"],
        "methods": live["rows"],
        "people": content["people"],
        "alphas": [0.05, 0.1, 1],
        "clientCounts": [5, 10],
        "sets": [{"name": "digits", "title": "Digits"}],
        "set": "digits",
        "trainsNetworks": True,
        "storedSeeds": 10,
        "hidden": [],
    }
    content = {"data": data, "shards": [shard.tolist() for shard in shards]}
    return {"/": SHELL, "/data.json": json.dumps(content)}


@pytest.fixture(scope="module")
def files(shards):
    return make_files(shards)


@pytest.fixture(params=[((1280, 720), "light"), ((390, 844), "dark")], ids=["wide", "phone"])
def window(browser, files, request):
    (width, height), scheme = request.param
    options = {"reduced_motion": "reduce", "color_scheme": scheme}
    context = browser.new_context(viewport={"width": width, "height": height}, **options)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    troubles = []
    page.on("pageerror", lambda error: troubles.append(str(error)))

    def answer(route):
        path = route.request.url.removeprefix("http://stage.test")
        kind = {".js": "text/javascript", ".css": "text/css", ".json": "application/json"}
        text = files.get(path) or (FRONT / path[1:]).read_text(encoding="utf-8")
        route.fulfill(body=text, content_type=kind.get(Path(path).suffix, "text/html"))

    page.route("http://stage.test/**", answer)
    page.goto("http://stage.test/")
    page.wait_for_function("window.isReady")
    yield page
    context.close()
    assert troubles == []


def show_recorded_results_and_answers(page):
    """Look at the recorded image, press Run, and answer with the recorded results and answers."""
    page.evaluate("(image) => stage.update({ image })", str(RECORDED["image"]))
    page.locator("button.run").click()
    revision = page.evaluate("sent.find(({ kind }) => kind === 'train').revision")
    page.evaluate(
        "([results, revision]) => receive({ ...results, kind: 'results', revision, isFinal: true,"
        " done: 40, total: 40, seconds: 1.5 })",
        [RECORDED["results"], revision],
    )
    image = page.evaluate("sent.findLast(({ kind }) => kind === 'ask').image")
    page.evaluate(
        "([rows, revision, image]) => receive({ kind: 'answers', revision, image, rows: new Map(rows) })",
        [RECORDED["rows"], revision, image],
    )
    return revision, image


def read_texts(page, css):
    """Read the texts of all elements that match, with ordinary spaces."""
    return [text.replace("\xa0", " ") for text in page.locator(css).all_inner_texts()]


def test_a_recorded_state_is_drawn(window, shards):
    assert read_texts(window, "h2.headline") == ["Two of 10 offices know only eights: E and F."]
    assert read_texts(window, ".bar b") == ["–"] * 7
    _, image = show_recorded_results_and_answers(window)
    assert image == str(RECORDED["image"])
    (headline,) = read_texts(window, "h2.headline")
    assert headline.startswith("Two offices know only eights, and shout. The mean of logits calls ")
    accuracies = RECORDED["results"]["accuracies"]
    names = [row["name"] for row in static.collect_page_data()["digits"]["live"]["rows"]]
    assert read_texts(window, ".bar b") == [f"{100 * accuracies[name]:.0f} %" for name in names]
    own_scores = [f"{100 * share:.0f} %" for share in RECORDED["results"]["each"]]
    assert read_texts(window, ".owners span") == own_scores
    assert window.locator(".ghost:visible").count() == 6  # no band of the mean of logits is stored
    client_rows = [row for name, row in RECORDED["rows"] if name in range(10)]
    answers = [max(range(10), key=row.__getitem__) for row in client_rows]
    assert read_texts(window, ".cards.clients b") == [*map(str, answers)]
    right_answers = answers.count(RECORDED["truth"])
    assert window.locator(".cards.clients .right").count() == right_answers
    sizes = [len(shard) for shard in shards]
    labels = window.locator(".owners button").evaluate_all("all => all.map(b => b.ariaLabel)")
    assert [int(label.split(": ")[1].split(" sample")[0]) for label in labels] == sizes
    assert find_barriers(window, "body") == []
    assert window.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_piles_have_as_much_ink_as_samples(window, shards):
    """Coloured pixels of each column of the canvas grow with what the client holds."""
    ink = window.evaluate(
        """() => {
            const canvas = document.querySelector('#stage').shadowRoot.querySelector('canvas.wall');
            const { width, height } = canvas;
            const pixels = canvas.getContext('2d').getImageData(0, 0, width, height).data;
            const counts = new Array(10).fill(0);
            for (let p = 0; p < width * height; p++) {
                const column = Math.floor(((p % width) * 10) / width);
                if (pixels[4 * p + 3] > 20) counts[column] += 1;
            }
            return counts;
        }"""
    )
    sizes = [len(shard) for shard in shards]
    assert sorted(range(10), key=ink.__getitem__) == sorted(range(10), key=sizes.__getitem__)


def test_results_of_an_older_setting_are_dimmed_at_once_and_late_ones_dropped(window):
    revision, _ = show_recorded_results_and_answers(window)
    assert window.locator(".stale").count() == 0
    window.locator("input.alpha").press("ArrowRight")
    assert window.locator(".bars.stale, .owners.stale, .one.stale").count() == 3
    assert "shout" not in read_texts(window, "h2.headline")[0]
    before = read_texts(window, ".bar b")
    window.evaluate(
        "(revision) => receive({ kind: 'results', revision, accuracies: { fedavg: 0.01 }, each: [],"
        " isFinal: false, done: 1, total: 40 })",
        revision,
    )
    assert read_texts(window, ".bar b") == before
    window.locator("input.alpha").press("ArrowLeft")  # back: the results are of this setting again
    assert window.locator(".stale").count() == 0


# For each pile whether a box is visible under it, and the score in that box.
SCORE_BOXES = """() => [...document.querySelector("#stage").shadowRoot.querySelectorAll(".owners button")]
  .map((button) => {
    const { borderTopColor, borderTopWidth } = getComputedStyle(button);
    const isClear = /transparent|[,/] *0\\)$/.test(borderTopColor) || parseFloat(borderTopWidth) === 0;
    return [!isClear, button.lastChild.textContent];
  })"""


def test_no_box_stands_empty_under_a_pile(window):
    """A method without each client's own score, such as AFL's sums, leaves the names of the clients alone."""
    revision, _ = show_recorded_results_and_answers(window)
    window.mouse.move(0, 0)
    scored = window.evaluate(SCORE_BOXES)
    assert len(scored) == 10 and all(score.endswith("%") for _, score in scored)
    if window.viewport_size["width"] > 1000:
        assert all(is_box for is_box, _ in scored)  # proves that SCORE_BOXES sees a box
    window.evaluate(
        "(revision) => receive({ kind: 'results', revision, accuracies: { afl: 0.9 }, calls: {}, each: [],"
        " isFinal: true, done: 1, total: 1, seconds: 0.1 })",
        revision,
    )
    assert window.evaluate(SCORE_BOXES) == [[False, ""]] * 10


def throw_random_pile(page, rng):
    """Throw a random pile, or one class of it, to a neighbour, by keyboard or by a button."""
    k = rng.randrange(10)
    button = page.locator(".owners button").nth(k)
    if rng.random() < 0.5:
        button.press(rng.choice(["Shift+ArrowLeft", "Shift+ArrowRight"]))
        return
    button.press("Enter")
    gives = page.locator(".give button:enabled")
    gives.nth(rng.randrange(gives.count())).dispatch_event("click")
    if page.locator(".hand").is_visible():
        page.keyboard.press("Escape")


def format_move(move):
    """Format a move of the stage in the short text of `moves=`, such as "A3>B"."""
    names = "ABCDEFGHIJ"
    label = "" if move["label"] is None else move["label"]
    return f"{names[move['from']]}{label}>{names[move['to']]}"


def test_fifty_throws_keep_every_sample_once_and_undo_restores(window, shards):
    rng = random.Random(0)
    before = window.evaluate("window.shards")
    labels = [*map(int, static.collect_page_data()["digits"]["labels"])]
    while window.evaluate("stage.getState().moves.length") < 50:
        throw_random_pile(window, rng)
    moves = window.evaluate("stage.getState().moves")
    after = window.evaluate("window.shards")
    assert sorted(sum(after, [])) == [*range(len(labels))]
    text = ", ".join(map(format_move, moves))
    expected = PartitionEdits.parse(text).apply_to_shards(shards, np.array(labels))
    assert after == [shard.tolist() for shard in expected]
    assert after != before
    for _ in range(50):
        window.locator(".undo").click()
    assert window.evaluate("window.shards") == before
    assert not window.locator(".undo").is_visible()


def test_a_class_is_dragged_to_another_pile(window):
    box = window.locator("canvas.wall").bounding_box()
    column = box["width"] / 10
    y = box["y"] + box["height"] - 4
    window.mouse.move(box["x"] + 4.5 * column, y)
    window.mouse.down()
    window.mouse.move(box["x"] + 2.5 * column, y, steps=5)
    window.mouse.up()
    assert window.evaluate("stage.getState().moves") == [{"from": 4, "label": 8, "to": 2}]
    assert read_texts(window, ".sub > span:first-child") == [
        "You moved E’s eights to C. One sample stays: every office needs one."
    ]


def test_a_hundred_narrow_piles_are_squares_and_a_legend_says_what_their_colours_mean(window):
    legend = window.locator(".legend")
    assert not legend.is_visible()  # ten piles are wide enough for the images themselves
    count = window.evaluate("data.train.labels.length")
    hundred_shards = [[*range(k, count, 100)] for k in range(100)]
    window.evaluate(
        """(shards) => {
          data.clientCounts.push(100);
          stage.update({ clients: 100, moves: [] });
          const { revision } = sent.filter(({ kind }) => kind === "deal").at(-1);
          receive({ kind: "federation", revision, shards });
        }""",
        hundred_shards,
    )
    expect(legend).to_be_visible()
    assert read_texts(window, ".legend button") == [*"0123456789"]


def test_hidden_stored_results_are_not_called_missing(window):
    about = window.locator("h2 + .about")
    assert "grey: mean of 10 stored runs" in about.inner_text()
    window.evaluate("data.hidden.push('stored'); stage.update({ seed: 5 })")
    expect(about).to_have_text("one seed")


def test_a_nudge_says_what_to_throw_and_goes_after_a_throw(window):
    """It proposes a pile of one class or, where there is none, the largest class of a pile."""
    nudge = window.locator(".nudge")
    assert nudge.inner_text() == "drag this pile\n← to D"
    labels = [*map(int, static.collect_page_data()["digits"]["labels"])]
    mixed = [[*range(k, len(labels), 10)] for k in range(10)]
    window.evaluate("shards => receive({ kind: 'federation', revision: 1, shards })", mixed)
    counts = [Counter(labels[i] for i in shard) for shard in mixed]
    largest = max(max(count.values()) for count in counts)
    expect(nudge).to_contain_text("drag the ")
    nudge.click()
    (move,) = window.evaluate("stage.getState().moves")
    assert counts[move["from"]][move["label"]] == largest
    assert not nudge.is_visible()


def test_the_nudge_stands_on_its_pile_and_drags_it(window):
    nudge = window.locator(".nudge")
    box = nudge.bounding_box()
    wall = window.locator("canvas.wall").bounding_box()
    column = wall["width"] / 10
    assert box["x"] < wall["x"] + 4.5 * column < box["x"] + box["width"]  # over E
    x = box["x"] + box["width"] / 2
    y = box["y"] + box["height"] / 2
    window.mouse.move(x, y)
    window.mouse.down()
    window.mouse.move(x - 30, y, steps=5)
    assert not nudge.is_visible()
    window.mouse.move(x, y)
    window.mouse.up()
    assert nudge.is_visible() and window.evaluate("stage.getState().moves") == []
    window.mouse.down()
    window.mouse.move(wall["x"] + 1.5 * column, y, steps=5)
    window.mouse.up()
    assert window.evaluate("stage.getState().moves") == [{"from": 4, "label": None, "to": 1}]
    assert not nudge.is_visible()


def test_nothing_is_trained_before_a_gesture_and_one_seed_follows_it(window):
    count = "sent.filter(({ kind }) => kind === 'train').length"
    assert window.evaluate(count) == 0
    window.locator(".owners button").nth(4).press("Shift+ArrowLeft")
    assert window.evaluate(count) == 1
    assert window.locator("button.run").inner_text() == "Stop"
    window.locator("button.run").click()
    assert window.evaluate("sent.at(-1).kind") == "stop"
    assert window.locator("button.run").inner_text() == "Run"
    slider = "document.querySelector('#stage').shadowRoot.querySelector('input.alpha')"
    window.evaluate(f"{{ {slider}.value = 2; {slider}.dispatchEvent(new Event('input')); }}")
    assert window.evaluate(count) == 1  # a hand still holds the slider
    window.evaluate(f"{slider}.dispatchEvent(new Event('change'))")
    assert window.evaluate(count) == 2


def test_a_gesture_during_a_run_is_trained_after_it(window):
    """In a panel a run is not stopped when the setting changes: one seed of the new setting follows it."""
    window.evaluate("transport.keepsRuns = true")
    window.locator("button.run").click()
    request = window.evaluate("sent.findLast(({ kind }) => kind === 'train')")
    assert request["isRun"] and "isAfterRun" not in request
    job = {"kind": "job", "isRunning": True, "isRun": True, "share": 0.2, "text": "Seed 1 of 5"}
    window.evaluate("(job) => receive(job)", job)
    window.locator(".owners button").nth(4).press("Shift+ArrowLeft")
    later_request = window.evaluate("sent.findLast(({ kind }) => kind === 'train')")
    assert (later_request["isRun"], later_request["isAfterRun"]) == (False, True)
    deal = window.evaluate("sent.findLast(({ kind }) => kind === 'deal')")
    assert later_request["revision"] == deal["revision"]
    assert len(later_request["setting"]["moves"]) == 1
    assert window.evaluate("sent.some(({ kind }) => kind === 'stop')") is False
    # The run is still the job that is shown.
    assert window.locator("button.run").inner_text() == "Stop"
    assert read_texts(window, ".progress") == ["Seed 1 of 5"]


def send_result_with_named_classes(page, classes):
    """Answer as an engine does: a result of the setting on the screen, with the classes that everybody names."""
    page.evaluate(
        """(classes) => {
          const { revision } = sent.findLast(({ kind }) => kind === "deal");
          receive({ kind: "results", revision, accuracies: { fens: 0.9 }, each: [], calls: null, said: classes,
            isFinal: true, done: 1, total: 1, seconds: 0.1 });
          const { image } = sent.findLast(({ kind }) => kind === "ask");
          receive({ kind: "answers", revision, image, rows: new Map([[0, new Array(10).fill(0.1)]]) });
        }""",
        classes,
    )


def make_telling_classes(page, image):
    """Make the classes that all predict: on this image alone offices A and B and FENS are right, and no mean is."""
    truth = page.evaluate("data.test.labels")
    wrong = [(label + 1) % 10 for label in truth]
    right_once = [*wrong[:image], truth[image], *wrong[image + 1 :]]
    methods = {"fedavg": wrong, "logits": wrong, "ensemble": wrong, "fens": right_once}
    return {"methods": methods, "clients": [right_once, right_once, *[wrong] * 8]}


ABOUT_IMAGE = ".votes > .about"


def test_a_telling_image_is_chosen_once_and_then_stays(window):
    window.locator("button.run").click()
    send_result_with_named_classes(window, make_telling_classes(window, 7))
    assert window.evaluate("stage.getState().image") == "7"
    reason = "Chosen for you: only offices A and B get it right, and no mean does."
    assert read_texts(window, ABOUT_IMAGE)[0].endswith(f"that nobody has trained on. {reason}")
    window.locator(".owners button").nth(4).press("Shift+ArrowLeft")
    # It held for the piles before the throw.
    assert reason not in read_texts(window, ABOUT_IMAGE)[0]
    send_result_with_named_classes(window, make_telling_classes(window, 20))
    assert window.evaluate("stage.getState().image") == "7"


def test_a_throw_does_not_change_the_image(window):
    before = read_texts(window, ABOUT_IMAGE)[0].split(".")[0]
    window.locator(".owners button").nth(4).press("Shift+ArrowLeft")
    send_result_with_named_classes(window, make_telling_classes(window, 7))
    assert window.evaluate("stage.getState().image") == "1"
    assert read_texts(window, ABOUT_IMAGE) == [f"{before}."]


def test_destroy_leaves_nothing(window):
    """The fixture fails if the changes at the end cause an error on the page."""
    window.evaluate("stage.destroy()")
    assert window.evaluate("document.querySelector('#stage').shadowRoot.childElementCount") == 0
    window.set_viewport_size({"width": 700, "height": 700})
    window.emulate_media(color_scheme="dark")


# JupyterLab hides its window while it changes its theme, and calls observers meanwhile.
CHANGE_THEME_HIDDEN = """async (theme) => {
  document.body.style.display = "none";
  document.documentElement.dataset.theme = theme;
  await null;
  document.body.style.display = "";
}"""
# The canvas is drawn in the ink of the present theme.
HAS_THEME_INK = """() => {
  const piles = document.querySelector("#stage").shadowRoot.querySelector("canvas.wall");
  return piles.getContext("2d").fillStyle === getComputedStyle(piles).getPropertyValue("--ink");
}"""


def test_numbers_over_the_piles_follow_a_theme_that_changes_while_the_window_is_hidden(window):
    for theme in ("dark", "light"):
        window.evaluate(CHANGE_THEME_HIDDEN, theme)
        expect(window.locator(f".stage[data-theme='{theme}']")).to_be_visible()
        window.wait_for_function(HAS_THEME_INK, timeout=5000)
