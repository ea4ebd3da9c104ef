"""A whole class at once: clients that speak the protocol, two phones in Chromium, and a projector.

Some clients attack, some sleep, some reload, some leave during the rounds, and the teacher's computer is
killed and started again. A small class runs with the browser's tests, a whole one with `-m "browser and slow"`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import random
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from class_fixtures import make_room
from playwright.async_api import async_playwright
from test_class import PHONE, SHAPES
from tornado.httpclient import AsyncHTTPClient, HTTPClientError

from fedlab_nb.data import load
from fedlab_nb.jupyter import find_free_port
from fedlab_nb.live.classroom.messages import (
    CLASSES,
    build_untrained_class_network,
    convert_class_sums_to_ridge_sums,
    encode_message,
    encode_tensor_in_base64,
)
from fedlab_nb.live.classroom.rehearse import (
    compute_weights_after_gradient_step_of_size_1,
    unpack_network,
)
from fedlab_nb.live.classroom.worth import AFL
from fedlab_nb.methods import afl
from fedlab_nb.training import ClientModels

pytestmark = pytest.mark.browser
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-sync"]
ONE_MINUTE = {"timeout": 60_000}  # of Playwright, in milliseconds


@dataclass(frozen=True)
class Crowd:
    """How many clients there are, and how many of these attack, sleep, reload, stay for the rounds, or leave them."""

    clients: int
    malicious: int
    malformed: int  # messages in all
    sleeping: int
    reloading: int
    staying: int
    leaving: int
    sleep_seconds: float = 1.0


SMALL = Crowd(14, 3, 60, 2, 2, 8, 1)
WHOLE = Crowd(58, 10, 2000, 5, 5, 30, 3, sleep_seconds=17.0)


class Server:
    """`fedlab-nb class` as a process, which keeps its messages in a file, and can be killed and started again."""

    def __init__(self, folder):
        self.folder = folder
        self.port = find_free_port(18400)
        self.start()

    def start(self):
        command = [sys.executable, "-m", "fedlab_nb", "class", "--no-browser", "--keep"]
        command += ["class.jsonl", "--port", str(self.port)]
        self.process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, text=True)
        lines = [self.process.stdout.readline() for _ in range(4)]
        self.students, self.teacher = (re.search(r"http://\S+", line).group() for line in lines[:2])
        self.origin = f"http://127.0.0.1:{self.port}"

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def read_peak_memory(self):
        """Read the most bytes that the process has used so far; None where the system does not tell."""
        try:
            text = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return None
        return 1024 * int(re.search(r"VmHWM:\s+(\d+)", text).group(1))


HTTP = {"max_clients": 200}
# Seconds. All clients share one event loop: on a busy machine the loop itself may notice a connection
# late, and that is no fault of the class.
LONG_TIMEOUTS = {"connect_timeout": 60, "request_timeout": 60}


async def post(address, body="{}", **options):
    """Send a request; returns the status and the answer, with status 0 where nobody answers."""
    client = AsyncHTTPClient(**HTTP)
    headers = {"Content-Type": "application/json", **options.pop("headers", {})}
    try:
        answer = await client.fetch(
            address,
            method="POST",
            body=body,
            headers=headers,
            raise_error=False,
            **LONG_TIMEOUTS,
        )
    except (OSError, HTTPClientError) as error:  # nobody answers, or not in time
        return 0, {"error": str(error)}
    try:
        return answer.code, json.loads(answer.body or b"{}")
    except ValueError:
        return answer.code, {}


async def post_until_answered(address, body="{}"):
    """The same, again and again while the class is too busy."""
    for attempt in range(1, 60):
        code, answer = await post(address, body)
        if code not in (0, 429, 599) and code < 500:
            return code, answer
        await asyncio.sleep(0.02 * attempt)
    raise AssertionError(f"{address}: {code} {answer}")


@dataclass
class Client:
    """A student who speaks the protocol; x `[n, 64]` and y are the drawings that its message sums up."""

    server: Server
    number: int
    seat: dict = field(default_factory=dict)
    x: torch.Tensor | None = None
    y: torch.Tensor | None = None
    sent_at: float = 0.0  # by time.monotonic()

    def make_address(self, action):
        return f"{self.server.students}{action}/{self.seat['seat']}/{self.seat['key']}"

    async def join(self):
        _, self.seat = await post_until_answered(f"{self.server.students}join")

    async def report_progress(self, drawing_count=8):
        code, _ = await post_until_answered(
            self.make_address("look"), json.dumps({"drawn": drawing_count})
        )
        assert code == 200

    async def send(self, twice=False):
        digits = load("digits")
        rng = np.random.default_rng(self.number)
        labels = self.seat["labels"]
        train_labels = digits.y_train.numpy()
        rows = [int(rng.choice(np.flatnonzero(train_labels == label))) for label in labels]
        x = digits.x_train[rows].flatten(1)
        y = digits.y_train[rows]
        training = [i for i in range(len(rows)) if i % 4 != 3]  # each fourth is kept for testing
        self.x = x[training]
        self.y = y[training]
        text = encode_message(
            self.seat["seat"],
            f"S{self.number}",
            x,
            y,
            range(3, len(y), 4),
            build_untrained_class_network(self.number),
        )
        for _ in range(1 + twice):
            code, answer = await post_until_answered(self.make_address("send"), text)
            assert code == 200 and answer["bytes"] == len(text), answer
            self.sent_at = self.sent_at or time.monotonic()

    def compute_network_logits(self, networks):
        """Compute the logits of all networks on this client's drawings."""
        models = [unpack_network(parts) for parts in networks]
        return ClientModels(models).logits(self.x.view(-1, 1, 8, 8))

    async def stay(self, rounds):
        """Take part in the tiny rounds, or in the first `rounds` of them; returns the last round."""
        request = {}
        serial = None  # of the networks whose logits are known
        logits = None
        while True:
            code, now = await post_until_answered(self.make_address("stay"), json.dumps(request))
            assert code == 200, now
            request = {}
            if not now.get("of"):
                continue
            if now["round"] >= min(rounds, now["of"]):
                return now["round"]
            if now["serial"] != serial and "networks" not in now:
                request = {"networks": True}
                continue
            if "networks" in now:
                # In a thread: otherwise each client would wait while the others compute, as no phone does.
                logits = await asyncio.to_thread(self.compute_network_logits, now["networks"])
                serial = now["serial"]
            values = np.frombuffer(base64.b64decode(now["weights"]), "<f4")
            table = values.reshape(-1, CLASSES).copy()
            step = compute_weights_after_gradient_step_of_size_1(
                torch.from_numpy(table), logits, self.y
            )
            request = {"round": now["round"], "weights": encode_tensor_in_base64(step)}


async def attack(client, messages):
    """Send malformed messages, use other people's seats, ask for many seats, and ask for pages without permission."""
    rng = random.Random(client.number)
    await client.join()
    students = client.server.students
    for i in range(messages):
        no_seat = json.dumps({"seat": [1], "name": "<script>"})
        body = rng.choice(["[" * 50_000, "{", "x" * 150_000, no_seat, rng.randbytes(300)])
        await post(client.make_address("send"), body)
        if i % 20 == 0:
            await post(f"{students}join")
            await post(f"{students}send/0/{'0' * 24}", "{}")
            await post(f"{client.server.origin}/teacher/forget/0")
            await post(client.make_address("look"), '{"drawn": "x"}')
            await post(client.make_address("stay"), '{"networks": 1}')
        await asyncio.sleep(0.01)


class Projector:
    """The projector's page: it asks for the state four times a second, and notes when it sees each message."""

    def __init__(self, server):
        self.seen_at = {}  # {seat: the time of its message}, by time.monotonic()
        self.server = server
        self.state = {}
        self.slowest = 0.0  # seconds of the slowest answer

    async def open(self):
        answer = await AsyncHTTPClient(**HTTP).fetch(
            self.server.teacher, follow_redirects=False, raise_error=False
        )
        self.cookie = answer.headers["Set-Cookie"].split(";")[0]

    async def fetch_state(self):
        start = time.monotonic()
        answer = await AsyncHTTPClient(**HTTP).fetch(
            f"{self.server.origin}/teacher/state?since={self.state.get('version', '')}",
            headers={"Cookie": self.cookie}, **LONG_TIMEOUTS,
        )  # fmt: skip
        self.state |= json.loads(answer.body)
        self.slowest = max(self.slowest, time.monotonic() - start)
        for message in self.state["sent"]:
            self.seen_at.setdefault(message["seat"], time.monotonic())

    async def watch(self):
        while True:
            await self.fetch_state()
            await asyncio.sleep(0.25)

    async def wait_for(self, condition):
        """Fetch the state until the condition holds for it, for a minute at most."""
        end = time.monotonic() + 60
        while not condition(self.state):
            assert time.monotonic() < end, self.state["need"]
            await asyncio.sleep(0.2)
            await self.fetch_state()

    async def press(self, action):
        address = f"{self.server.origin}/teacher/{action}"
        code, answer = await post(address, headers={"Cookie": self.cookie})
        assert code == 200, answer


async def draw(page, number):
    """Draw the eight digits that the page asks for; each number is another handwriting."""
    rng = random.Random(number)
    for _ in range(8):
        points = SHAPES[int(await page.locator("#wanted").inner_text())]
        box = await page.locator("#pad").bounding_box()
        for i, (x, y) in enumerate(points):
            across = (x + rng.uniform(-6, 6)) / 100
            down = (y + rng.uniform(-6, 6)) / 100
            await page.mouse.move(box["x"] + box["width"] * across, box["y"] + box["height"] * down)
            if i == 0:
                await page.mouse.down()
        await page.mouse.up()
        await page.locator("#next").click()


async def hold_class(crowd, folder, chromium):
    """A lesson with this crowd: {"delay", "rounds", "slowest": seconds, "memory": bytes}."""
    server = Server(folder)
    projector = Projector(server)
    await projector.open()
    await projector.fetch_state()
    memory_before = server.read_peak_memory()
    honest = [Client(server, i) for i in range(crowd.clients - crowd.malicious)]
    malicious = [Client(server, 1000 + i) for i in range(crowd.malicious)]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        phones = []
        for _ in range(2):
            width, height = PHONE
            context = await browser.new_context(viewport={"width": width, "height": height})
            phone = await context.new_page()
            await phone.goto(server.students)
            await phone.locator("#wanted:not(:empty)").wait_for()
            phones.append(phone)
        watching = asyncio.create_task(projector.watch())

        async def study(client):
            await client.join()
            await client.report_progress(drawing_count=3)
            if client.number < crowd.sleeping:
                await asyncio.sleep(crowd.sleep_seconds)
                if crowd.sleep_seconds > 15:  # long enough for the class to notice
                    seats = {one["seat"]: one for one in projector.state["seats"]}
                    assert seats[client.seat["seat"]]["sleeps"]
            await client.report_progress()
            reloads = crowd.sleeping <= client.number < crowd.sleeping + crowd.reloading
            await client.send(twice=reloads)
            await client.report_progress()

        async def use(phone, number):
            await draw(phone, number)
            await phone.reload()  # in the middle of everything
            await phone.locator("#give").check(**ONE_MINUTE)
            await phone.locator("#keep").check()
            await phone.locator("#send").click()
            await phone.locator("#what", has_text="in one message").wait_for(**ONE_MINUTE)

        await asyncio.gather(
            *(study(client) for client in honest),
            *(attack(client, crowd.malformed // crowd.malicious) for client in malicious),
            *(use(phone, i) for i, phone in enumerate(phones)),
        )
        await asyncio.sleep(1)
        desks = []
        for phone in phones:
            (desk,) = await phone.evaluate("Object.values(localStorage).map(JSON.parse)")
            desks.append(desk["seats"][0])
        seats = {client.seat["seat"] for client in honest} | {desk["seat"] for desk in desks}
        assert set(projector.seen_at) == seats  # no honest message is lost, and no other is there
        delays = [projector.seen_at[client.seat["seat"]] - client.sent_at for client in honest]
        watching.cancel()
        memory_growth = (server.read_peak_memory() or 0) - (memory_before or 0)

        # The computer is killed, and the class goes on from its file at the same address.
        server.kill()
        server.start()
        second_projector = Projector(server)
        await second_projector.open()
        await second_projector.fetch_state()
        assert set(second_projector.seen_at) == seats
        assert_sums_are_those_of_all_drawings(folder, honest, desks)

        # The tiny rounds, with those that stay, some of whom leave.
        await second_projector.press("step/rounds")
        stayers = honest[: crowd.staying - 2]
        rounds = [10 if i < crowd.leaving else 50 for i in range(len(stayers))]
        for phone in phones:
            await phone.locator("#stay").click()
        await phones[0].reload()  # and it still takes part
        tasks = []
        for client, count in zip(stayers, rounds, strict=True):
            tasks.append(asyncio.create_task(client.stay(count)))
        await second_projector.wait_for(lambda state: state["need"]["phones"] >= crowd.staying)
        start = time.monotonic()
        await second_projector.press("rounds")
        assert await asyncio.gather(*tasks) == rounds
        round_seconds = time.monotonic() - start
        for phone in phones:
            end = phone.locator("#staying", has_text="All 50 tiny rounds are done")
            await end.wait_for(**ONE_MINUTE)
        await second_projector.fetch_state()
        assert second_projector.state["rounds"]["round"] == 50
        assert second_projector.state["rounds"]["phones"] >= crowd.staying - crowd.leaving - 2
        # The tables of results appear after the last round.
        await second_projector.wait_for(lambda state: state["explanation"])
        assert any(row["title"] == "FENS" for row in second_projector.state["rows"])
        await browser.close()
    server.kill()
    return {
        "delay": max(delays),
        "rounds": round_seconds,
        "memory": memory_growth,
        "slowest": projector.slowest,
    }


def assert_sums_are_those_of_all_drawings(folder, honest, desks):
    """Assert that AFL's weights from the messages in the file equal those from all drawings in one place, to 1e-6."""
    room = make_room(folder / "class.jsonl")
    first_sums, *other_sums = [message.sums for message in room.messages.values()]
    total = convert_class_sums_to_ridge_sums(sum(other_sums, first_sums))
    weights = afl.solve_classifier_weights(total, 1 + len(other_sums), 0.0, AFL.rho)
    x = [client.x for client in honest]
    y = [client.y for client in honest]
    for desk in desks:
        training = [i for i in range(8) if i % 4 != 3]
        x.append(torch.tensor(desk["drawings"])[training])
        y.append(torch.tensor(desk["labels"])[training])
    rows = torch.cat(x).double().numpy()
    rows = np.column_stack([rows, np.ones(len(rows))])
    targets = np.eye(CLASSES)[torch.cat(y).numpy()]
    expected = np.linalg.solve(rows.T @ rows + AFL.rho * np.eye(65), rows.T @ targets)
    np.testing.assert_allclose(weights.numpy(), expected, atol=1e-6)


@pytest.mark.parametrize(
    "crowd",
    [pytest.param(SMALL, id="small"), pytest.param(WHOLE, id="whole", marks=pytest.mark.slow)],
)
def test_a_class_with_attackers_sleepers_and_a_killed_server(crowd, tmp_path, chromium, capsys):
    with ThreadPoolExecutor(
        1
    ) as thread:  # Playwright's loop of the other browser tests runs in this one
        measured = thread.submit(asyncio.run, hold_class(crowd, tmp_path, chromium)).result()
    with capsys.disabled():
        print(f"\n{crowd.clients} clients and 2 phones: {measured}")
    assert measured["delay"] <= 1.0
    assert measured["rounds"] < 60
    assert measured["memory"] < 200_000_000
