"""The class's server: what it lets in, how much of it, and what a killed one has kept."""

import asyncio
import json
import logging
import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from urllib.request import Request, urlopen

import pytest
from class_fixtures import a_message, a_room
from tornado.httpclient import AsyncHTTPClient, HTTPClientError
from tornado.netutil import bind_sockets

from fedlab_nb.cli import main
from fedlab_nb.jupyter import find_free_port
from fedlab_nb.live.classroom import server
from fedlab_nb.live.classroom.messages import build_network
from fedlab_nb.live.classroom.server import ClassServer

OTHER = "127.0.0.2" if sys.platform == "linux" else "127.0.0.1"  # another address of this machine
JSON = {"Content-Type": "application/json"}


async def ask(served, what, body=None, host=None, headers=(), at="127.0.0.1"):
    """Status and body of an answer; `what` begins with /."""
    options = {"headers": {"Host": host or served.hosts[0], **dict(headers)}, "raise_error": False}
    if body is not None:
        options |= {"method": "POST", "body": body, "headers": options["headers"] | JSON}
    try:
        answer = await AsyncHTTPClient(max_clients=80).fetch(
            f"http://{at}:{served.port}{what}", **options
        )
    except (HTTPClientError, OSError) as error:
        return 0, str(error)
    return answer.code, answer.body


def held(work, **options):
    """`work(served)` while a class is held."""

    async def run():
        served = ClassServer(options.pop("room", None) or a_room(), **options)
        try:
            return await work(served)
        finally:
            served.stop()

    return asyncio.run(run())


async def student(served):
    """An honest one: joins, sends, and asks again where the class is too busy."""
    token = f"/{served.room.about['token']}"

    async def patient(what, body):
        for wait in range(1, 40):
            code, said = await ask(served, token + what, body)
            if code not in (0, 429):
                return code, json.loads(said)
            await asyncio.sleep(0.02 * wait)
        return code, said

    code, seat = await patient("/join", "{}")
    assert code == 200
    text = a_message(seat["seat"] % 100)
    text = json.dumps(json.loads(text) | {"seat": seat["seat"], "name": "<script>"})
    code, said = await patient(f"/send/{seat['seat']}/{seat['key']}", text)
    return seat["seat"] if code == 200 and said["bytes"] else (code, said)


async def raw(served, *parts, times=1):
    """Bytes to the server from another address, again and again."""
    for _ in range(times):
        try:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", served.port, local_addr=(OTHER, 0)
            )
            for part in parts:
                writer.write(part)
                await writer.drain()
            await asyncio.wait_for(reader.read(200), 1)
        except (OSError, asyncio.TimeoutError):
            pass
        finally:
            writer.close()


def memory():
    """The most bytes that this process has had so far."""
    resource = pytest.importorskip("resource")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1024 if sys.platform == "linux" else 1
    )


def attacks(served):
    """Ten that mean harm."""
    token, host = served.room.about["token"], served.hosts[0]
    seat = served.room.assign_next_seat()
    where = f"/{token}/send/{seat['seat']}/{seat['key']}"

    def post(what, body, length=None):
        head = f"POST {what} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {length or len(body)}\r\n\r\n".encode() + body

    yield raw(served, post(where, b"[" * 150_000))
    yield raw(served, post(where, json.dumps({"seat": float("nan")}).encode()))
    yield raw(served, post(where, b"x", 50_000_000), *[b"x" * 1_000_000] * 50)
    chunked = (
        f"POST {where} HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    )
    yield raw(served, chunked, *[b"f4240\r\n" + b"x" * 1_000_000 + b"\r\n"] * 50)
    yield raw(served, post(f"/{token}/join", b"{}"), times=300)
    yield raw(
        served, post(f"/{token}/send/1/{seat['key']}", a_message(1).encode()), times=20
    )  # another's seat
    yield raw(
        served, post(where, json.dumps(json.loads(a_message(0)) | {"seat": 10**400}).encode())
    )
    yield raw(served, b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", b"\x00\xff" * 1000)
    yield raw(served, post(f"/{token}/../teacher/forget/0", b"{}"), times=20)
    yield raw(served, post(f"/{token}/forget/0/{'0' * 24}", b"{}"), times=50)


@pytest.mark.slow
def test_sixty_at_once_ten_of_them_mean_harm(caplog):
    caplog.set_level(logging.WARNING)
    before = memory()

    arrived, seen = {}, {}

    async def one(served):
        seat = await student(served)
        arrived[seat] = time.monotonic()
        return seat

    async def projector(served):
        headers, version = {"Cookie": f"class-{served.port}={served.secret}"}, ""
        while len(seen) < 50:
            state = json.loads(
                (await ask(served, f"/teacher/state?since={version}", headers=headers))[1]
            )
            version = state["version"]
            for each in state.get("sent", []):
                seen.setdefault(each["seat"], time.monotonic())
            await asyncio.sleep(0.25)

    async def work(served):
        done = await asyncio.gather(
            *(one(served) for _ in range(50)), *attacks(served), projector(served)
        )
        await served.wait_for_results()
        return done[:50], served.describe_for_projector()

    honest, state = held(work)
    assert max(seen[seat] - then for seat, then in arrived.items()) < 1
    assert sorted(one["seat"] for one in state["sent"]) == sorted(
        honest
    )  # each one is there, and nothing else
    assert state["rows"][0]["of"] == 50 and json.dumps(state)
    assert not [r for r in caplog.records if r.exc_info or r.levelno >= logging.ERROR]
    assert memory() - before < 150_000_000


@pytest.mark.skipif(OTHER == "127.0.0.1", reason="this machine has no second loopback address")
def test_any_port_is_one_that_is_free_at_both_addresses(monkeypatch):
    """A port that is free at the first address, and taken at the second, is given up for another."""
    with socket.create_server((OTHER, 0)) as taken:
        taken_port = taken.getsockname()[1]
        ports = iter([taken_port, 0])

        def bind_first_to_taken_port(port, address, **options):
            if port == 0:
                port = next(ports)
            return bind_sockets(port, address, **options)

        monkeypatch.setattr(server, "bind_sockets", bind_first_to_taken_port)
        bound = server.bind_to_one_port(["127.0.0.1", OTHER])
        addresses = [each.getsockname() for each in bound]
        for each in bound:
            each.close()
        assert [address for address, _ in addresses] == ["127.0.0.1", OTHER]
        assert addresses[0][1] == addresses[1][1] != taken_port

        ports = iter([])
        with pytest.raises(OSError, match="in use"):
            server.bind_to_one_port(["127.0.0.1", OTHER], taken_port)


def test_only_the_class_is_reachable():
    async def work(served):
        token = f"/{served.room.about['token']}"
        codes = {}
        for name, asked in {
            "page": (f"{token}/",), "script": (f"{token}/student.js",), "shared": (f"{token}/learn.js",),
            "root": ("/",), "wrong token": ("/00000000/",), "file": (f"{token}/../room.py",),
            "own": (f"{token}/room.py",),
            "teacher": ("/teacher/",), "projector": (f"/teacher/?token={served.secret}",), "kernel": ("/api/kernels",),
            "state": (f"/teacher/state?token={served.secret}",),
        }.items():  # fmt: skip
            codes[name] = (await ask(served, *asked, at=OTHER, host=f"{OTHER}:{served.port}"))[0]
        codes["other name"] = (await ask(served, f"{token}/", host="evil.example"))[0]
        codes["other page"] = (
            await ask(served, f"{token}/join", "{}", headers={"Origin": "http://evil.example"})
        )[0]
        codes["no token"] = (await ask(served, "/teacher/state"))[0]
        return codes

    if OTHER == "127.0.0.1":
        pytest.skip("this machine has no second loopback address")
    codes = held(work, lan=OTHER)
    assert {name for name, code in codes.items() if code == 200} == {"page", "script", "shared"}
    assert {
        codes[name]
        for name in ("root", "wrong token", "file", "own", "teacher", "projector", "kernel")
    } == {404}
    assert codes["other name"] == codes["other page"] == codes["no token"] == 403


def test_without_lan_nothing_listens_beyond_this_machine():
    async def work(served):
        own = {
            info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
        }
        for address in {*own, OTHER} - {"127.0.0.1"}:
            with (
                pytest.raises(OSError),
                socket.create_connection((address, served.port), timeout=1),
            ):
                pass

    held(work)


@pytest.mark.slow
def test_what_the_teacher_s_page_does():
    async def work(served):
        cookie = {"Cookie": f"class-{served.port}={served.secret}"}
        loaded = await ask(served, "/teacher/load", a_message(7), headers=cookie)
        shown = await ask(served, "/teacher/state", headers=cookie)
        page = await ask(served, "/teacher/", headers=cookie)
        saved = await ask(served, "/teacher/class.npz", headers=cookie)
        where = f"/{served.room.about['token']}/stay/7/{served.room.compute_seat_key(7)}"
        assert await ask(served, where, "{}") == (200, b"{}")  # no round has begun
        code, said = await ask(served, "/teacher/rounds", "{}", headers=cookie)
        assert code == 400 and b"No network" in said
        await ask(served, "/teacher/forget/7", "{}", headers=cookie)
        return [loaded, shown, page, saved], len(served.room.messages)

    answered, left = held(work)
    assert [code for code, _ in answered] == [200] * 4 and left == 0
    assert (
        json.loads(answered[0][1]) == {"name": "H Ada"}
        and len(json.loads(answered[1][1])["sent"][0]["means"]) > 1
    )
    assert b"<svg" in answered[2][1] and b"@" not in answered[2][1] and answered[3][1][:2] == b"PK"


# ---------------------------------------------------------------------------------------------------------- the command
@contextmanager
def command(folder, *options):
    """The command's first four lines, while it runs; it is killed, not ended."""
    arguments = [sys.executable, "-m", "fedlab_nb", "class", "--no-browser", *options]
    with subprocess.Popen(arguments, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield [process.stdout.readline() for _ in range(4)]
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("keep", [True, False])
def test_killed_and_started_again(tmp_path, keep):
    options = ["--port", str(find_free_port(18200)), *(["--keep"] if keep else [])]
    with command(tmp_path, *options) as lines:
        first = lines[0].split()[-1]  # the address
        seat = json.loads(urlopen(Request(first + "join", b"{}", JSON)).read())
        text = json.dumps(
            json.loads(a_message(1)) | {"seat": seat["seat"]}, separators=(",", ":")
        ).encode()
        where = f"send/{seat['seat']}/{seat['key']}"
        assert json.loads(urlopen(Request(first + where, text, JSON)).read())["bytes"] == len(text)
        assert ("gone" in lines[2]) is not keep
        assert ("written to class-DATE.npz" in lines[3]) is not keep
    with command(tmp_path, *options) as lines:
        assert (" 1 message is here" if keep else " 0 messages are here") in lines[2]
        assert (lines[0].split()[-1] == first) is keep
        if keep:  # the phone that sent is still known, and its message is there once
            assert json.loads(urlopen(Request(first + where, text, JSON)).read())["bytes"] == len(
                text
            )
    assert bool(list(tmp_path.iterdir())) is keep


def test_wrong_options_are_one_sentence(tmp_path, capsys):
    for options in (["--alpha", "0"], ["--drawings", "3"], ["--port", "x"], ["--lan", "127.0.0.1"]):
        assert main(["class", "--no-browser", *options]) == 2
    nowhere = ["--page", str(tmp_path / "no" / "page.html")]
    for options in (["--lan", "198.51.100.7"], nowhere, ["--keep", str(tmp_path)]):
        assert main(["class", "--no-browser", "--port", "0", *options]) == 1
    assert capsys.readouterr().err.count("\n") == 7


def test_the_teacher_s_keys_pressed_twice_do_no_harm():
    async def work(served):
        cookie = {"Cookie": f"class-{served.port}={served.secret}"}
        room = served.room
        for seat in range(3):
            room.accept_message(a_message(seat, model=build_network(seat)))

        async def press(what, body="{}"):
            code, said = await ask(served, f"/teacher/{what}", body, headers=cookie)
            return code, json.loads(said)

        for _ in range(2):
            assert (await press("joker/in"))[0] == 200
        assert len(room.messages) == 4 and room.joker is not None
        for _ in range(2):
            assert (await press("joker/out"))[0] == 200
        assert len(room.messages) == 3 and room.joker is None and room.effect is None
        assert (await press("step/digit"))[1]["stage"]["step"] == "digit"
        image = [0.5] * 64
        for label, is_shown in ((7, True), (None, False)):
            body = json.dumps({"image": image, "label": label})
            code, said = await press("draw", body)
            assert code == 200 and said["stage"]["is_shown"] is is_shown
        for wrong in ("step/dance", "draw", "load"):
            code, said = await press(wrong)
            assert code == 400 and said["error"].endswith(".")
        assert (await press("nothing"))[0] == 404
        assert (await press("forget/abc"))[0] == (await press("forget"))[0] == 200  # nobody
        assert len(room.messages) == 3

    held(work)


def test_a_flood_from_one_address_stops_phones_there_and_not_the_projector(monkeypatch):
    monkeypatch.setattr(server, "BURST", 20)
    monkeypatch.setattr(server, "REQUESTS_A_SECOND", 0.1)

    async def work(served):
        token = f"/{served.room.about['token']}"
        codes = [(await ask(served, f"{token}/join", "{}"))[0] for _ in range(25)]
        cookie = {"Cookie": f"class-{served.port}={served.secret}"}
        return codes, (await ask(served, "/teacher/state", headers=cookie))[0]

    codes, projector = held(work)
    assert codes[:20] == [200] * 20 and codes[21:] == [429] * 4 and projector == 200


def test_a_person_at_a_wrong_address_gets_a_page_and_a_program_a_sentence():
    async def work(served):
        token = served.room.about["token"]
        person = {"Accept": "text/html,application/xhtml+xml"}
        pages = {}
        for what in ("/", "/00000000/", "/teacher/", "/find?code=abc"):
            pages[what] = await ask(served, what, headers=person)
        other = await ask(served, "/", host="other.example:1", headers=person)
        program = await ask(served, "/00000000/join", "{}")
        found = await ask(served, f"/find?code={served.address}", headers=person)
        return token, pages, other, program, found

    token, pages, other, program, found = held(work)
    assert {code for code, _ in pages.values()} == {403, 404}
    assert all(b"Almost there" in text for _, text in pages.values())
    assert not any(token.encode() in text for _, text in pages.values())
    assert other[0] == 403 and b"exactly as the projector shows it" in other[1]
    assert program[0] == 404 and "error" in json.loads(program[1])
    assert found[0] == 200 and b"student.js" in found[1]


def test_a_phone_s_look_is_bounded_and_knows_its_seat():
    async def work(served):
        token = f"/{served.room.about['token']}"
        seat = json.loads((await ask(served, f"{token}/join", "{}"))[1])
        where = f"{token}/look/{seat['seat']}/{seat['key']}"
        told = json.loads((await ask(served, where, '{"drawn": 3000}'))[1])
        assert told["step"] == "draw" and not told["sent"] and told["pause"] >= 1
        assert served.room.present[0].drawn == served.room.about["drawings"]
        for wrong in ('{"drawn": "x"}', '{"drawn": true}', "[]", "{"):
            assert (await ask(served, where, wrong))[0] == 400
        late = json.dumps({"drawn": 1, "guess": {"step": "joker", "choice": 99}})
        assert (await ask(served, where, late))[0] == 200  # too late, and no harm
        assert (await ask(served, f"{token}/look/1/{seat['key']}", "{}"))[0] == 403

    held(work)


def test_the_projector_sees_the_rounds_though_its_tables_rest():
    """The tables take a while for a large class, and then rest as long: the rounds do not wait for them."""
    room = a_room()
    for seat in range(3):
        room.accept_message(a_message(seat, model=build_network(seat)))

    async def work(served):
        room.start_fens_rounds()
        await served.wait_for_results()
        served.rest_end = time.monotonic() + 60
        room.rounds.round = 7
        state = served.describe_for_projector(str(served.version))
        assert state["rounds"]["round"] == 7 and "rows" not in state and "sent" not in state
        room.accept_message(a_message(3))
        state = served.describe_for_projector(str(served.version))
        assert [one["seat"] for one in state["sent"]] == [0, 1, 2, 3]  # nor does a message
        assert "rows" not in state and served.update is not None and served.update.done()

    held(work, room=room)


class Brake:
    """In place of `compute_projector_tables`: it computes when it is let, and notes of how many messages."""

    def __init__(self, monkeypatch):
        self.compute_projector_tables = server.compute_projector_tables
        self.counts = []
        self.begun = threading.Event()
        self.may_end = threading.Event()
        monkeypatch.setattr(server, "compute_projector_tables", self)

    def __call__(self, results, image):
        self.counts.append(len(results.messages))
        if threading.current_thread() is threading.main_thread():
            raise AssertionError("computed in the event loop")
        self.begun.set()
        assert self.may_end.wait(60)
        return self.compute_projector_tables(results, image)


def test_nobody_waits_for_a_computation(monkeypatch):
    """While results are computed, a message is taken, kept and seen, and a phone is told where the class is."""
    room = a_room()
    room.accept_message(a_message(0, model=build_network(0)))

    async def work(served):
        brake = Brake(monkeypatch)
        cookie = {"Cookie": f"class-{served.port}={served.secret}"}
        try:
            await ask(served, "/teacher/state", headers=cookie)
            assert await asyncio.to_thread(brake.begun.wait, 30)
            seat = await asyncio.wait_for(student(served), 30)
            state = json.loads((await ask(served, "/teacher/state", headers=cookie))[1])
            assert [one["seat"] for one in state["sent"]] == [0, seat] and state["rows"] == []
            where = f"/{room.about['token']}/look/{seat}/{room.compute_seat_key(seat)}"
            assert (await ask(served, where, "{}"))[0] == 200
        finally:
            brake.may_end.set()
        await served.wait_for_results()
        state = json.loads((await ask(served, "/teacher/state", headers=cookie))[1])
        assert {row["title"]: row["of"] for row in state["rows"]}["AFL"] == 2

    held(work, room=room)


def test_messages_that_come_during_a_computation_are_in_the_next_one_all_together(monkeypatch):
    room = a_room()
    room.accept_message(a_message(0))

    async def work(served):
        brake = Brake(monkeypatch)
        try:
            served.describe_for_projector()
            assert await asyncio.to_thread(brake.begun.wait, 30)
            for seat in range(1, 20):
                room.accept_message(a_message(seat))
                served.describe_for_projector()
                await asyncio.sleep(0.001)
        finally:
            brake.may_end.set()
        await served.wait_for_results()
        assert brake.counts == [1, 20]

    held(work, room=room)


def test_a_phone_is_told_its_share_and_its_vote():
    room = a_room()
    for seat in range(3):
        room.accept_message(a_message(seat, model=build_network(seat)))

    async def work(served):
        cookie = {"Cookie": f"class-{served.port}={served.secret}"}
        where = f"/{room.about['token']}/look/1/{room.compute_seat_key(1)}"

        async def look():
            return json.loads((await ask(served, where, "{}"))[1])

        for key in ("step/reveal", "show"):
            assert (await ask(served, f"/teacher/{key}", "{}", headers=cookie))[0] == 200
        told = await look()
        digits = room.results.measure_loss_without_message(1)
        assert told["share"]["with_it"] == digits["with_it"] and told["question"]["answer"] == 3
        await ask(served, "/teacher/step/digit", "{}", headers=cookie)
        drawing = json.dumps({"image": [0.5] * 64})
        assert (await ask(served, "/teacher/draw", drawing, headers=cookie))[0] == 200
        assert (await look())["digit"]["own"] in range(10)

    held(work, room=room)


@pytest.mark.parametrize("files", [server.STUDENT_FILES, server.TEACHER_FILES])
def test_what_a_served_module_imports_is_served_too(files):
    names = {path.name for path in files}
    imported = set()
    for path in files:
        if path.suffix == ".js":
            imported.update(re.findall(r'from "\./([\w.]+)"', path.read_text(encoding="utf-8")))
    assert len(imported) > 3
    assert imported <= names
