"""A phone and a projector in a real browser: from the address to "sent", what arrives, and to be forgotten."""

import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from accessible import barriers
from lab_steps import PATIENCE, running
from playwright.sync_api import expect

from fedlab_nb.live.classroom.messages import network, read, write
from fedlab_nb.live.classroom.room import Rounds
from fedlab_nb.training import Recipe, trained

pytestmark = pytest.mark.browser
PHONE = (390, 844)
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


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    """The students' address and the teacher's, as the command prints them."""
    command = [
        sys.executable,
        "-m",
        "fedlab_nb",
        "class",
        "--no-browser",
        "--port",
        "0",
        "--rehearse",
        "2",
    ]
    with running(
        command, cwd=tmp_path_factory.mktemp("class"), stdout=subprocess.PIPE, text=True
    ) as server:
        yield [re.search(r"http://\S+", server.stdout.readline()).group() for _ in range(2)]


@pytest.fixture
def opened(browser):
    """A function that opens an address in a window of a size; what the console said must be nothing."""
    contexts, troubles = [], []

    def open_page(address, size, scheme="light"):
        context = browser.new_context(
            viewport=dict(zip(("width", "height"), size, strict=True)), color_scheme=scheme
        )
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [text for text in troubles if "400 (Bad Request)" not in text] == []


def draw(page):
    """The digit that the page asks for, and Next."""
    box, points = (
        page.locator("#pad").bounding_box(),
        SHAPES[int(page.locator("#wanted").inner_text())],
    )
    for i, (x, y) in enumerate(points):
        page.mouse.move(
            box["x"] + box["width"] * x / 100, box["y"] + box["height"] * y / 100, steps=2
        )
        if i == 0:
            page.mouse.down()
    page.mouse.up()
    page.locator("#next").click()


def test_from_the_address_to_sent_and_forgotten(opened, addresses):
    """The message is what Python writes for the same drawings; the projector has it in a second, and no script runs."""
    wall = opened(addresses[1], (1280, 720), "dark")
    expect(wall.locator(".chip")).to_have_count(2)
    phone = opened(addresses[0], PHONE)
    expect(phone.locator("#wanted")).to_have_text(re.compile("[0-9]"))
    assert barriers(phone, "body") == []
    for _ in range(20):
        draw(phone)
    phone.locator("#give").check()
    phone.locator("#name").fill("<img src=x>")
    assert (
        barriers(phone, "body") == []
        and phone.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    )
    phone.locator("#send").click()
    expect(phone.locator("#what")).to_contain_text("kB in one message")
    expect(wall.locator(".chip", has_text="<img src=x>")).to_be_visible(timeout=1500)
    assert wall.locator("img").count() == 0 and barriers(phone, "body") == []
    wall.locator(".chip", has_text="<img src=x>").click()
    wall.locator("#means canvas").first.wait_for()
    assert barriers(wall, "body") == []

    sent = read(phone.locator("#text").input_value())
    (own,) = phone.evaluate("Object.values(sessionStorage).map(JSON.parse)")
    x, y = torch.tensor(own["drawings"]), torch.tensor(own["labels"])
    rows = [i for i in range(20) if i % 4 != 3]
    there = read(write(sent.seat, "", x, y, range(3, 20, 4)))
    assert (
        sent.counts == there.counts
        and torch.equal(sent.x, there.x)
        and torch.equal(sent.y, there.y)
    )
    assert torch.equal(sent.sums.second, there.sums.second) and torch.equal(
        sent.sums.sums, there.sums.sums
    )
    shards = [(x[rows].view(-1, 1, 8, 8), y[rows])]
    model = trained([network(own["seed"])], shards, Recipe(), seed=own["seed"], ids=[sent.seat])[0]
    for ours, theirs in zip(sent.network.parameters(), model.parameters(), strict=True):
        np.testing.assert_allclose(ours.detach(), theirs.detach(), atol=1e-4)

    phone.locator("#stay").click()
    wall.locator("#rounds").click()
    expect(wall.locator("#round")).to_contain_text("50 of 50 are done, with 1 phone")
    expect(wall.locator(".row", has_text="FENS")).to_be_visible()
    expect(phone.locator("#what")).to_contain_text("50 of 50")
    assert barriers(wall, "body") == [] and barriers(phone, "body") == []

    phone.locator("#forget").click()
    expect(wall.locator(".chip", has_text="<img src=x>")).to_have_count(0)
    phone.reload()
    expect(phone.locator("#send")).to_be_visible()  # the drawings are still there


def test_a_phone_that_stays_makes_pythons_step(opened, addresses):
    generator = torch.Generator().manual_seed(0)
    x, y = torch.rand(7, 64, generator=generator), torch.randint(0, 10, (7,), generator=generator)
    rounds = Rounds([read(write(k, "", x, y, model=network(k))) for k in range(3)])
    table = torch.rand(3, 10, generator=generator, requires_grad=True)
    z = rounds.clients.logits(x.view(-1, 1, 8, 8))
    torch.nn.functional.cross_entropy((z * table[:, None]).sum(0), y).backward()
    script = """async ([networks, table, x, y]) => {
        const [{ stepped, unpacked }, { logits }] = [await import("./student.js"), await import("./learn.js")];
        const z = networks.map((own) => logits(unpacked(own), Float32Array.from(x)));
        return [...stepped(Float32Array.from(table), z, y)];
    }"""
    given = [rounds.networks, table.flatten().tolist(), x.flatten().tolist(), y.tolist()]
    own = opened(addresses[0], PHONE).evaluate(script, given)
    np.testing.assert_allclose(own, (table - table.grad).detach().flatten(), atol=1e-5)


def test_by_hand_without_any_network(opened, addresses, tmp_path):
    """The page as a file makes a message, and the teacher's page takes it."""
    command = [
        sys.executable,
        "-m",
        "fedlab_nb",
        "class",
        "--page",
        str(tmp_path / "student.html"),
        "--drawings",
        "5",
    ]
    subprocess.run(command, check=True, capture_output=True)
    phone = opened("about:blank", PHONE)
    phone.on("dialog", lambda dialog: dialog.accept("25"))
    phone.context.set_offline(True)
    phone.goto((tmp_path / "student.html").as_uri())
    for _ in range(5):
        draw(phone)
    phone.locator("#send").click()
    text = phone.locator("#text").input_value()
    wall = opened(addresses[1], (1920, 1080))
    wall.locator("summary").click()
    wall.locator("textarea").fill(text)
    wall.locator("#load").click()
    expect(wall.locator("#told")).to_have_text("Loaded: Student 1025.")
    wall.locator("textarea").fill("{}")
    wall.locator("#load").click()
    expect(wall.locator("#told")).to_contain_text("This is no message of this class")
    assert barriers(wall, "body") == []
