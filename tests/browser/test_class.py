"""A class in a real browser, with a phone and a projector: from the address to "sent", what arrives, every
step of the teacher, and how somebody who is lost comes back."""

import json
import random
import re
import subprocess
import sys
import time
from urllib.request import HTTPCookieProcessor, Request, build_opener

import numpy as np
import pytest
import torch
from accessible import find_barriers
from class_fixtures import make_names
from lab_steps import (
    PATIENCE,
    find_panel,
    open_notebook,
    run_all_cells,
    run_server,
    save_screenshot,
    write_notebook,
)
from playwright.sync_api import expect

from fedlab_nb.live.classroom.messages import (
    build_untrained_class_network,
    encode_message,
    parse_message,
)
from fedlab_nb.live.classroom.rounds import Rounds
from fedlab_nb.training import Recipe, train_clients_in_place

pytestmark = pytest.mark.browser
PHONE = (390, 844)
# The corners of each digit's strokes, in per cent of the field.
SHAPES = {
    0: [(50, 15), (30, 30), (25, 50), (30, 70), (50, 85), (70, 70), (75, 50), (70, 30), (50, 15)],
    1: [(40, 30), (55, 15), (55, 85)],
    2: [(30, 30), (40, 17), (60, 17), (70, 30), (65, 45), (30, 85), (72, 85)],
    3: [(30, 20), (60, 15), (68, 30), (50, 47), (70, 65), (60, 83), (30, 82)],
    4: [(60, 88), (60, 15), (25, 60), (75, 60)],
    5: [(70, 15), (35, 15), (32, 45), (60, 42), (70, 60), (60, 82), (30, 82)],
    6: [(62, 15), (38, 40), (32, 65), (45, 85), (66, 75), (62, 55), (36, 58)],
    7: [(28, 17), (72, 17), (45, 87)],
    8: [(50, 48), (33, 33), (50, 15), (67, 33), (50, 48), (30, 68), (50, 86), (70, 68), (50, 48)],
    9: [(67, 35), (50, 47), (34, 33), (50, 15), (67, 30), (60, 87)],
}


class Teacher:
    """The teacher's page without a browser: its buttons, and the state that the server sends it."""

    def __init__(self, address):
        self.origin = address.partition("?")[0]
        self.opener = build_opener(HTTPCookieProcessor())
        self.opener.open(address).close()

    def press_key_and_wait_for_step(self, key):
        headers = {"Content-Type": "application/json"}
        request = Request(self.origin + key, b"{}", headers)
        return json.load(self.opener.open(request))

    def read_state(self):
        return json.load(self.opener.open(f"{self.origin}state"))

    def gather(self, count):
        """Let simulated students send until `count` messages are here, then go back to the first step."""
        self.press_key_and_wait_for_step("step/send")
        end = time.monotonic() + PATIENCE / 1000
        while len(self.read_state()["sent"]) < count:
            assert time.monotonic() < end, "the simulated students have not sent"
            time.sleep(0.2)
        self.press_key_and_wait_for_step("step/draw")


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    """The students' address and the teacher's, as the command prints them, of a class in which six
    simulated students have sent; its step is the first one."""
    command = [sys.executable, "-m", "fedlab_nb", "class", "--no-browser", "--port", "0"]
    command += ["--rehearse", "6"]
    folder = tmp_path_factory.mktemp("class")
    with run_server(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        lines = [server.stdout.readline() for _ in range(2)]
        addresses = [re.search(r"http://\S+", line).group() for line in lines]
        Teacher(addresses[1]).gather(6)
        yield addresses


@pytest.fixture
def open_page(browser):
    """A function that opens an address in a window of a size; the console must stay empty.

    The exceptions are the refusals that some tests provoke.
    """
    contexts = []
    console = []

    def open_page(address, size, scheme="light"):
        width, height = size
        viewport = {"width": width, "height": height}
        context = browser.new_context(viewport=viewport, color_scheme=scheme)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: console.append(message.text))
        page.on("pageerror", lambda error: console.append(str(error)))
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    expected = re.compile(r"400 \(Bad|404 \(Not|403 \(Forbidden\)|ERR_INTERNET_DISCONNECTED")
    unexpected = [text for text in console if not expected.search(text)]
    assert unexpected == []


def draw_digit_in_field(page, digit, seed):
    """Draw a digit in the page's field; each seed makes another handwriting."""
    rng = random.Random(seed)
    box = page.locator("#pad").bounding_box()
    for i, (x, y) in enumerate(SHAPES[digit]):  # in per cent of the field
        across = (x + rng.uniform(-6, 6)) / 100
        down = (y + rng.uniform(-6, 6)) / 100
        page.mouse.move(box["x"] + box["width"] * across, box["y"] + box["height"] * down, steps=2)
        if i == 0:
            page.mouse.down()
    page.mouse.up()


def draw_and_hand_in_all_digits(page, count=8):
    """Draw the digits that the page asks for, and hand in each."""
    for i in range(count):
        draw_digit_in_field(page, int(page.locator("#wanted").inner_text()), seed=i)
        page.locator("#next").click()


def read_present_seat(page):
    """Read what the phone has stored about the seat that it uses now."""
    (desk,) = page.evaluate("Object.values(localStorage).map(JSON.parse)")
    return desk["seats"][desk["current"]]


def press_key_and_wait_for_step(wall, key, step):
    """Press a step's key, and wait until the projector shows this step."""
    wall.keyboard.press(key)
    expect(wall.locator("#steps [aria-current=step]")).to_contain_text(step)


def test_a_phone_s_way_from_the_address_to_forget_me(open_page, addresses):
    """It draws, sends, guesses and is forgotten.

    The message is what Python writes for the same drawings; the projector shows it within seconds, and
    runs no script that is hidden in a name.
    """
    wall = open_page(addresses[1], (1280, 720), "dark")
    expect(wall.locator(".desk.sent")).to_have_count(6)
    phone = open_page(addresses[0], PHONE)
    expect(phone.locator("#story")).to_contain_text("You are post office G. Your envelopes carry")
    assert find_barriers(phone, "body") == []
    draw_and_hand_in_all_digits(phone, 7)
    draw_digit_in_field(phone, int(phone.locator("#wanted").inner_text()), seed=7)
    waiting = phone.evaluate(
        """() => {
          document.querySelector("#next").click();
          const send = document.querySelector("#send");
          const colour = (one) => getComputedStyle(one).backgroundColor;
          const isBlue = colour(send) === colour(document.querySelector("#stay"));
          return [send.disabled, isBlue, document.querySelector("#reason").textContent];
        }"""
    )
    assert waiting == [
        True,
        False,
        "Your network is still learning. When it is done, you can send.",
    ]
    expect(phone.locator("#lap")).to_contain_text("Lap 40 of 40")
    expect(phone.locator("#send")).to_be_enabled()
    expect(phone.locator("#reason")).to_be_empty()
    expect(wall.locator(".desk").nth(6)).to_contain_text("8 of 8")
    expect(phone.locator("#give")).to_be_checked()  # as with simulated students
    phone.locator("summary", has_text="A name").click()
    phone.locator("#name").fill("<img src=x>")
    expect(phone.locator("#promise")).to_contain_text("“Forget me”")
    assert find_barriers(phone, "body") == []
    assert phone.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    press_key_and_wait_for_step(wall, "s", "Send")
    expect(wall.locator("#bars")).to_be_hidden()
    wall.keyboard.press("c")
    bar = wall.locator(".bar", has_text="Gaussian").locator(".value")
    expect(bar).to_be_visible()
    before = bar.get_attribute("style")
    phone.locator("#send").click()
    expect(bar).not_to_have_attribute("style", before)  # it moves as the message arrives
    expect(phone.locator("#what")).to_contain_text("kB, in one message")
    expect(wall.locator(".desk.sent", has_text="<img src=x>")).to_be_visible(timeout=1500)
    assert wall.locator("img").count() == 0 and find_barriers(phone, "body") == []
    press_key_and_wait_for_step(wall, "n", "Send")
    expect(wall.locator(".desk", has_text="<img src=x>")).to_have_count(0)
    wall.locator(".desk").nth(6).click()
    wall.locator("#means canvas").first.wait_for()
    assert find_barriers(wall, "dialog[open]") == []
    wall.keyboard.press("Escape")

    sent = parse_message(phone.locator("#text").input_value())
    seat = read_present_seat(phone)
    x = torch.tensor(seat["drawings"])
    y = torch.tensor(seat["labels"])
    expected = parse_message(encode_message(sent.seat, "", x, y, range(3, 8, 4)))
    assert sent.counts == expected.counts
    assert torch.equal(sent.x, expected.x)
    assert torch.equal(sent.y, expected.y)
    assert torch.equal(sent.sums.second, expected.sums.second)
    assert torch.equal(sent.sums.sums, expected.sums.sums)
    training = [i for i in range(8) if i % 4 != 3]  # each fourth drawing is kept for testing
    shard = (x[training].view(-1, 1, 8, 8), y[training])
    start = build_untrained_class_network(seat["seed"])
    (model,) = train_clients_in_place(
        [start], [shard], Recipe(), seed=seat["seed"], ids=[sent.seat]
    )
    for part, expected_part in zip(sent.network.parameters(), model.parameters(), strict=True):
        np.testing.assert_allclose(part.detach(), expected_part.detach(), atol=1e-4)

    phone.locator("#recover").click()
    expect(phone.locator("#leak-text")).to_contain_text("6 of your 6 drawings, to the pixel")
    expect(phone.locator("#recovered canvas")).to_have_count(6)

    press_key_and_wait_for_step(wall, "r", "Reveal")
    expect(wall.locator("#bars")).to_be_hidden()
    expect(phone.locator("#share-text")).to_contain_text("Covered")
    phone.locator("#options button", has_text="AFL").click()
    expect(phone.locator("#options button[aria-pressed=true]")).to_contain_text("AFL: all sums")
    wall.keyboard.press(" ")
    expect(wall.locator("#bars .bar")).to_have_count(8)
    expect(phone.locator("#share-text")).to_contain_text("with you")
    assert find_barriers(wall, "body") == [] and find_barriers(phone, "body") == []

    press_key_and_wait_for_step(wall, "f", "Forget")
    phone.locator("#forget").click()
    expect(phone.locator("#told")).to_contain_text("out of every result")
    expect(wall.locator("#headline")).to_contain_text("Office G is forgotten")
    wall.keyboard.press(" ")
    expect(wall.locator("#headline")).to_contain_text("Without G, AFL reads")
    expect(wall.locator(".desk.sent")).to_have_count(6)
    phone.reload()
    expect(phone.locator("#send")).to_be_visible()  # the drawings are still there

    phone.locator("#send").click()
    expect(wall.locator(".desk.sent")).to_have_count(7)
    questions = []

    def agree(dialog):
        questions.append(dialog.message)
        dialog.accept()

    phone.on("dialog", agree)
    phone.locator("summary", has_text="share this phone").click()
    phone.locator("#erase").click()
    expect(phone.locator("#progress")).to_contain_text("Drawing 1 of 8")
    # No phone could take the message back later.
    expect(wall.locator(".desk.sent")).to_have_count(6)
    assert len(questions) == 1 and "take the message out of every result" in questions[0]


def test_a_tap_right_after_a_quick_stroke_of_a_finger_counts(browser, addresses):
    """Browsers that take a stroke for a fling of the page ignore all taps of the next second."""
    width, height = PHONE
    context = browser.new_context(
        viewport={"width": width, "height": height}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    page.goto(addresses[0])
    expect(page.locator("#progress")).to_have_text("Drawing 1 of 8.")
    finger = context.new_cdp_session(page)

    def touch(kind, *points):
        touch_points = [{"x": x, "y": y} for x, y in points]
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touch_points})

    paper = page.locator("#pad").bounding_box()
    touch("touchStart", (paper["x"] + 60, paper["y"] + 40))
    for step in range(1, 10):
        touch("touchMove", (paper["x"] + 60 + 12 * step, paper["y"] + 40 + 20 * step))
    touch("touchEnd")
    button = page.locator("#next").bounding_box()
    touch("touchStart", (button["x"] + 20, button["y"] + 20))
    touch("touchEnd")
    expect(page.locator("#progress")).to_contain_text("Drawing 2 of 8.")
    has_ink = """() => {
      const pad = document.querySelector("#pad");
      return pad.getContext("2d").getImageData(0, 0, pad.width, pad.height).data.some(Boolean);
    }"""
    assert not page.evaluate(has_ink)
    touch("touchStart", (paper["x"] + 60, paper["y"] + 40))
    touch("touchMove", (paper["x"] + 90, paper["y"] + 140))
    # A finger on the paper draws.
    assert page.evaluate(has_ink) and page.evaluate("scrollY") == 0
    touch("touchEnd")
    page.locator("#about summary").click()  # the page is longer than the screen now
    page.evaluate("scrollTo(0, 0)")
    touch("touchStart", (200, height - 60))
    for step in range(1, 10):
        touch("touchMove", (200, height - 60 - 20 * step))
    touch("touchEnd")
    page.wait_for_function("() => scrollY > 0")  # a finger beside the paper scrolls
    context.close()


def test_joker_rounds_and_the_teacher_s_digit(open_page, addresses):
    """Each step is reached by its key. Though Space is pressed twice, there is one joker; then it is taken out."""
    wall = open_page(addresses[1], (1920, 1080))
    expect(wall.locator(".desk.sent")).to_have_count(6)
    press_key_and_wait_for_step(wall, "j", "Joker")
    wall.keyboard.press(" ")
    wall.keyboard.press(" ")
    expect(wall.locator(".desk.joker")).to_have_count(1)
    expect(wall.locator(".bar.trembles").first).to_be_visible()
    expect(wall.locator("#main")).to_have_text("Take the joker out")
    expect(wall.locator("#bars .ghost:not([hidden])")).to_have_count(8)
    # The text says what the joker did to it.
    expect(wall.locator("#need-text")).to_contain_text("FedAvg")
    assert wall.evaluate(SMALL_TEXTS, compute_min_text_size(1080)) == []
    assert find_barriers(wall, "body") == []
    press_key_and_wait_for_step(wall, "t", "Rounds")
    expect(wall.locator("#need-text")).to_contain_text("take it out first")
    press_key_and_wait_for_step(wall, "j", "Joker")
    wall.keyboard.press(" ")
    expect(wall.locator(".desk.joker")).to_have_count(0)
    press_key_and_wait_for_step(wall, "t", "Rounds")
    expect(wall.locator("#need-text")).to_contain_text("6 phones stay")
    wall.keyboard.press(" ")
    expect(wall.locator("#main")).to_have_text("Show the result")
    expect(wall.locator("#bars")).to_be_hidden()
    wall.keyboard.press(" ")
    expect(wall.locator("#headline")).to_contain_text("FENS reads")
    expect(wall.locator(".bar", has_text="FENS")).to_be_visible()
    expect(wall.locator("#need-text")).not_to_be_empty()

    wall.keyboard.press("t")  # pressed again, so that new rounds can begin
    expect(wall.locator("#main")).to_have_text("Start the rounds")
    expect(wall.locator("#bars")).to_be_hidden()

    press_key_and_wait_for_step(wall, "m", "Mine")
    draw_digit_in_field(wall, 3, seed=0)
    expect(wall.locator("#headline")).to_contain_text("6 networks have voted")
    expect(wall.locator(".desk.right, .desk.wrong")).to_have_count(0)
    wall.keyboard.press("3")
    expect(wall.locator("#headline")).to_contain_text("of 6 networks read the 3 right")
    expect(wall.locator(".desk.right, .desk.wrong")).to_have_count(6)
    assert find_barriers(wall, "body") == []
    assert wall.evaluate(SMALL_TEXTS, compute_min_text_size(1080)) == []


STEPS = {
    "d": "Draw",
    "s": "Send",
    "r": "Reveal",
    "j": "Joker",
    "f": "Forget",
    "t": "Rounds",
    "m": "Mine",
}
# Every visible text that is smaller than so many pixels, or that is cut off.
SMALL_TEXTS = """(pixels) => {
  const size = (one) => parseFloat(getComputedStyle(one).fontSize);
  const hasText = (one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  return [...document.querySelectorAll("main *")]
    .filter((one) => hasText(one) && one.checkVisibility())
    .filter((one) => size(one) < pixels || (one.scrollWidth > one.clientWidth + 1 && one.clientWidth))
    .map((one) => `${one.tagName} ${one.id || one.className} ${one.textContent}: ${size(one)}`);
}"""
# Whether the column at the side, the steps, the page's width, and each desk fit.
IS_WHOLE = """() => {
  const side = document.querySelector("#side");
  const seen = [...side.children].filter((one) => one.checkVisibility());
  const lowest = Math.max(...seen.map((one) => one.getBoundingClientRect().bottom));
  const steps = document.querySelector("footer").getBoundingClientRect();
  return [
    lowest <= steps.top + 1,
    side.scrollHeight <= side.clientHeight + 1,
    document.documentElement.scrollWidth <= innerWidth,
    steps.bottom <= innerHeight,
    [...document.querySelectorAll("#options li, .desk")].every((one) => one.scrollHeight <= one.clientHeight + 1),
  ];
}"""


def compute_min_text_size(height):
    """Compute the pixels of a text on a projector of this height: a fifth of it, 5.4 at 720, is still read."""
    return 27 * height / 720


def load_messages(wall, count):
    """Load messages of more offices, with seats from 3000 on, into the class of this projector."""
    x = torch.ones(4, 64)
    for i in range(count):
        body = encode_message(3000 + i, "", x, torch.arange(4))
        wall.evaluate("(body) => fetch('load', { method: 'POST', body }).then(() => null)", body)


def unload_messages(wall, count):
    """Take these offices out of the class again."""
    for i in range(count):
        wall.evaluate(
            f"fetch('forget/{3000 + i}', {{ method: 'POST', body: '{{}}' }}).then(() => null)"
        )


@pytest.mark.parametrize("extra_offices", [0, 24, 54])
@pytest.mark.parametrize("size", [(1280, 720), (1920, 1080)])
def test_every_step_fits_and_can_be_read_from_ten_metres(size, extra_offices, open_page, addresses):
    """Texts are large enough, nothing is cut off, and nothing overlaps the steps."""
    wall = open_page(addresses[1], size)
    expect(wall.locator(".desk.sent")).to_have_count(6)
    load_messages(wall, extra_offices)
    expect(wall.locator(".desk.sent")).to_have_count(6 + extra_offices)
    faults = []
    for key, step in STEPS.items():
        press_key_and_wait_for_step(wall, key, step)
        small_texts = wall.evaluate(SMALL_TEXTS, compute_min_text_size(size[1]))
        faults += [(step, text) for text in small_texts]
        is_whole = wall.evaluate(IS_WHOLE)
        if is_whole != [True] * 5:
            faults.append((step, is_whole))
    unload_messages(wall, extra_offices)
    expect(wall.locator(".desk.sent")).to_have_count(6)
    assert faults == []


LONGEST_ADDRESS = "255.255.255.255:65535/0a1b2c3d"


@pytest.mark.parametrize("size", [(1280, 720), (1920, 1080), (1024, 768)])
def test_the_longest_address_is_one_line(size, open_page, addresses):
    wall = open_page(addresses[1], size)
    expect(wall.locator(".desk.sent")).to_have_count(6)
    for key, step in {"d": "Draw", "s": "Send"}.items():
        press_key_and_wait_for_step(wall, key, step)
        lines, overflow = wall.evaluate(
            """(text) => {
              const address = document.querySelector("#address");
              address.textContent = text;
              const range = document.createRange();
              range.selectNodeContents(address);
              const box = range.getBoundingClientRect();
              const side = document.querySelector("#side").getBoundingClientRect();
              return [range.getClientRects().length, Math.max(box.right - side.right, side.left - box.left)];
            }""",
            LONGEST_ADDRESS,
        )
        assert lines == 1 and overflow <= 0, step


def test_a_message_flies_in_its_colour_from_its_desk(open_page, addresses):
    wall = open_page(addresses[1], (1280, 720))
    press_key_and_wait_for_step(wall, "s", "Send")
    expect(wall.locator(".desk.sent")).to_have_count(6)
    wall.evaluate(
        """() => {
          window.flown = [];
          new MutationObserver((changes) => {
            for (const { addedNodes } of changes) for (const one of addedNodes) {
              if (one.className !== "envelope") continue;
              window.flown.push([one.style.getPropertyValue("--hue"), one.textContent]);
            }
          }).observe(document.body, { childList: true });
        }"""
    )
    load_messages(wall, 2)
    wall.wait_for_function("() => window.flown.length === 2")
    hues = wall.locator(".desk").evaluate_all(
        "(desks) => desks.slice(-2).map((desk) => desk.style.getPropertyValue('--hue'))"
    )
    assert [hue for hue, _ in wall.evaluate("window.flown")] == hues
    assert all("kB" in text for _, text in wall.evaluate("window.flown"))
    expect(wall.locator(".envelope")).to_have_count(0)
    unload_messages(wall, 2)
    expect(wall.locator(".desk.sent")).to_have_count(6)


def test_a_phone_comes_back_to_its_seat_and_two_may_share_it(open_page, addresses):
    phone = open_page(addresses[0], PHONE)
    expect(phone.locator("#wanted")).to_have_text(re.compile("[0-9]"))
    draw_digit_in_field(phone, 4, seed=1)
    phone.locator("#next").click()
    seat = read_present_seat(phone)["seat"]
    phone.reload()
    expect(phone.locator("#progress")).to_contain_text("Drawing 2 of 8")
    other_tab = phone.context.new_page()
    other_tab.goto(addresses[0])  # the code is scanned once more
    expect(other_tab.locator("#progress")).to_contain_text("Drawing 2 of 8")
    assert read_present_seat(other_tab)["seat"] == seat
    other_tab.close()
    phone.locator("summary", has_text="share this phone").click()
    phone.locator("#another").click()
    expect(phone.locator("#progress")).to_contain_text("Drawing 1 of 8")
    assert read_present_seat(phone)["seat"] != seat
    phone.locator("summary", has_text="share this phone").click()
    phone.locator("#others button").click()
    expect(phone.locator("#progress")).to_contain_text("Drawing 2 of 8")
    phone.context.set_offline(True)
    expect(phone.locator("#told")).to_contain_text("Nothing is lost")
    phone.context.set_offline(False)
    expect(phone.locator("#told")).to_be_empty()


def test_a_wrong_address_shows_the_way(open_page, addresses):
    origin, token = re.fullmatch(r"(http://[^/]+)/(\w+)/", addresses[0]).groups()
    for path in ("/", "/00000000/", "/index.html"):
        page = open_page(origin + path, PHONE)
        expect(page.locator("h1")).to_have_text("Almost there")
        assert find_barriers(page, "body") == []
        assert token not in page.content()
    page.locator("input").fill("zzz")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Almost there")
    page.locator("input").fill(addresses[0])  # the whole address is accepted, too
    page.keyboard.press("Enter")
    expect(page.locator("#story")).to_contain_text("You are post office")
    page = open_page(f"{origin}/teacher/", PHONE)
    expect(page.locator("p").first).to_contain_text("terminal")


@pytest.mark.parametrize("count", [25, pytest.param(200, marks=pytest.mark.slow)])
def test_names_of_any_kind_leave_the_wall_as_it_is(count, open_page, addresses):
    """All desks have the same size, whatever names are written on them, and no name runs as a script."""
    wall = open_page(addresses[1], (1280, 720))
    expect(wall.locator(".desk.sent")).to_have_count(6)
    press_key_and_wait_for_step(wall, "s", "Send")  # the steps that show votes show no names
    questions = []

    def dismiss(dialog):
        questions.append(dialog.message)
        dialog.dismiss()

    wall.on("dialog", dismiss)
    names = make_names(count)
    for start in range(0, count, 8):  # eight more desks still have room for names
        look_at_names_everywhere(wall, names[start : start + 8])
    assert questions == []


def look_at_names_everywhere(wall, names):
    """Load offices with these names, look at the wall and at each office's window, and take them out again."""
    for i, name in enumerate(names):
        x = torch.rand(4, 64, generator=torch.Generator().manual_seed(i))
        message = json.loads(encode_message(2000 + i, "", (16 * x).round() / 16, torch.arange(4)))
        status = wall.evaluate(
            "async (body) => (await fetch('load', { method: 'POST', body })).status",
            json.dumps(message | {"name": name}),
        )
        assert status == 200
    desks = wall.locator(".desk.sent")
    expect(desks).to_have_count(6 + len(names))
    boxes = wall.locator(".desk").evaluate_all(
        "(desks) => desks.map((desk) => [desk.offsetWidth, desk.offsetHeight, desk.scrollWidth > desk.clientWidth + 1])"
    )
    widths, heights, _ = zip(*boxes, strict=True)
    assert max(widths) - min(widths) <= 1 and max(heights) - min(heights) <= 1
    visible_count, outside = wall.locator(".desk .name").evaluate_all(
        """(names) => {
          const seen = names.filter((name) => name.checkVisibility());
          const outside = seen.filter((name) => {
            const box = name.getBoundingClientRect();
            const desk = name.closest(".desk").getBoundingClientRect();
            const isBeside = box.left < desk.left - 1 || box.right > desk.right + 1;
            return isBeside || box.top < desk.top - 1 || box.bottom > desk.bottom + 1;
          });
          return [seen.length, outside.map((name) => name.textContent)];
        }"""
    )
    assert visible_count >= len(names) - 2  # up to two names have no visible character
    assert outside == []
    for i in range(len(names)):
        desks.nth(6 + i).click()
        fits = "(one) => one.scrollWidth <= one.clientWidth + 1"
        assert wall.locator("#one").evaluate(fits), names[i]
        wall.keyboard.press("Escape")
    assert wall.locator("#wall script, #wall svg, #wall img, #one script, #one img").count() == 0
    assert wall.evaluate("document.documentElement.scrollWidth") <= 1280
    for i in range(len(names)):
        wall.evaluate(f"fetch('forget/{2000 + i}', {{ method: 'POST', body: '{{}}' }})")
    expect(desks).to_have_count(6)


def test_a_phone_computes_the_same_step_of_the_rounds_as_python(open_page, addresses):
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(7, 64, generator=generator)
    y = torch.randint(0, 10, (7,), generator=generator)
    texts = [
        encode_message(k, "", x, y, network=build_untrained_class_network(k)) for k in range(3)
    ]
    rounds = Rounds([parse_message(text) for text in texts])
    table = torch.rand(3, 10, generator=generator, requires_grad=True)
    z = rounds.clients.logits(x.view(-1, 1, 8, 8))
    torch.nn.functional.cross_entropy((z * table[:, None]).sum(0), y).backward()
    script = """async ([networks, table, x, y]) => {
        const [{ stepped, unpacked }, { logits }] = [await import("./student.js"), await import("./learn.js")];
        const z = networks.map((network) => logits(unpacked(network), Float32Array.from(x)));
        return [...stepped(Float32Array.from(table), z, y)];
    }"""
    arguments = [rounds.networks, table.flatten().tolist(), x.flatten().tolist(), y.tolist()]
    stepped = open_page(addresses[0], PHONE).evaluate(script, arguments)
    expected = (table - table.grad).detach().flatten()
    np.testing.assert_allclose(stepped, expected, atol=1e-5)


def test_the_saved_class_opens_in_the_playground(page, lab, course, addresses):
    """The file that the teacher saves is a data set whose clients are the offices."""
    teacher = Teacher(addresses[1])
    with teacher.opener.open(f"{teacher.origin}class.npz") as answer:
        course.joinpath("class-today.npz").write_bytes(answer.read())
    code = "import fedlab_nb as fl\nfl.playground(dataset='class-today.npz', methods=['afl'])"
    page.set_viewport_size({"width": 1280, "height": 900})
    open_notebook(page, lab, write_notebook(course, "class-afterwards", code))
    run_all_cells(page)
    root = find_panel(page)
    expect(root.locator(".fl-stage")).to_contain_text("These are you: 6 offices of a class.")
    expect(root.locator(".fl-code pre")).to_contain_text("class-today.npz")
    save_screenshot(page, "class-playground")


def test_a_message_is_carried_by_hand_without_any_network(open_page, addresses, tmp_path):
    """The page as a file makes a message, and the teacher's page loads it."""
    command = [sys.executable, "-m", "fedlab_nb", "class"]
    command += ["--page", str(tmp_path / "student.html"), "--drawings", "5"]
    subprocess.run(command, check=True, capture_output=True)
    phone = open_page("about:blank", PHONE)
    phone.on("dialog", lambda dialog: dialog.accept("25"))
    phone.context.set_offline(True)
    phone.goto((tmp_path / "student.html").as_uri())
    draw_and_hand_in_all_digits(phone, 5)
    phone.locator("#send").click()
    text = phone.locator("#text").input_value()
    wall = open_page(addresses[1], (1920, 1080))
    expect(wall.locator(".desk.sent")).to_have_count(6)
    wall.keyboard.press("h")
    wall.locator("textarea").fill(text)
    wall.locator("#load").click()
    expect(wall.locator("#told")).to_have_text("Loaded: AML.")
    wall.locator("textarea").fill("{}")
    wall.locator("#load").click()
    expect(wall.locator("#told")).to_contain_text("Message rejected")
    assert find_barriers(wall, "dialog[open]") == []


def test_space_leads_through_the_run_sheet(open_page, addresses):
    """No step is a dead end: the blue button names the next step, and what it waits for can be done."""
    wall = open_page(addresses[1], (1280, 720))
    expect(wall.locator(".desk.sent").nth(5)).to_be_visible()
    for action in ("again", "clear"):
        wall.evaluate(f"fetch('{action}', {{ method: 'POST', body: '{{}}' }})")
    for step in ("reveal", "joker", "forget", "digit", "draw"):  # as before the lesson
        wall.evaluate(f"fetch('step/{step}', {{ method: 'POST', body: '{{}}' }})")
        wall.evaluate("fetch('cover', { method: 'POST', body: '{}' })")
    button = wall.locator("#main")

    def press_space_at(*names):
        for name in names:
            expect(button).to_have_text(name)
            expect(button).to_be_enabled()
            wall.keyboard.press(" ")

    press_space_at(
        "Next: send", "Next: guess", "Show the result", "Next: the joker", "The joker sends"
    )
    press_space_at("Take the joker out", "Next: forget")
    if button.inner_text() != "Show what it cost":
        expect(button).to_be_disabled()
        wall.locator(".desk.sent").first.click()
        wall.locator("#out").click()
    press_space_at("Show what it cost", "Next: tiny rounds", re.compile("Start"), "Show the result")
    press_space_at("Next: my digit")
    expect(button).to_have_text("Draw a digit")
    draw_digit_in_field(wall, 7, seed=0)
    wall.keyboard.press("7")
    expect(wall.locator("#headline")).to_contain_text("read the 7 right")
    press_space_at("Another digit")
    expect(button).to_have_text("Draw a digit")
