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
from class_fixtures import make_message, make_room
from tornado.httpclient import AsyncHTTPClient, HTTPClientError
from tornado.netutil import bind_sockets

from fedlab_nb.cli import main
from fedlab_nb.jupyter import find_free_port
from fedlab_nb.live.classroom import server
from fedlab_nb.live.classroom.messages import build_untrained_class_network
from fedlab_nb.live.classroom.server import ClassServer

OTHER = "127.0.0.2" if sys.platform == "linux" else "127.0.0.1"  # another address of this machine
JSON = {"Content-Type": "application/json"}


async def request(served, path, body=None, host=None, headers=(), address="127.0.0.1"):
    """Status and body of an answer; `path` begins with /. With a body it is a POST."""
    options = {"headers": {"Host": host or served.hosts[0], **dict(headers)}, "raise_error": False}
    if body is not None:
        options |= {"method": "POST", "body": body, "headers": options["headers"] | JSON}
    url = f"http://{address}:{served.port}{path}"
    try:
        answer = await AsyncHTTPClient(max_clients=80).fetch(url, **options)
    except (HTTPClientError, OSError) as error:
        return 0, str(error)
    return answer.code, answer.body


def make_teacher_cookie(served):
    return {"Cookie": f"class-{served.port}={served.secret}"}


def run_with_class(work, *, room=None, **options):
    """What `work(served)` returns, done while a class is served."""

    async def run():
        served = ClassServer(room or make_room(), **options)
        try:
            return await work(served)
        finally:
            served.stop()

    return asyncio.run(run())


async def act_as_student(served):
    """Join, send, and ask again where the class is too busy; returns the seat."""
    token = f"/{served.room.about['token']}"

    async def request_patiently(path, body):
        for attempt in range(1, 40):
            code, answer = await request(served, token + path, body)
            if code not in (0, 429):
                return code, json.loads(answer)
            await asyncio.sleep(0.02 * attempt)
        return code, answer

    code, joined = await request_patiently("/join", "{}")
    assert code == 200
    seat = joined["seat"]
    message = json.loads(make_message(seat % 100)) | {"seat": seat, "name": "<script>"}
    code, answer = await request_patiently(f"/send/{seat}/{joined['key']}", json.dumps(message))
    assert code == 200, answer
    assert answer["bytes"]
    return seat


async def send_raw_bytes(served, *parts, times=1):
    """Send bytes to the server from another address, again and again."""
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


def measure_peak_memory():
    """The most bytes that this process has had so far."""
    resource = pytest.importorskip("resource")
    unit = 1024 if sys.platform == "linux" else 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def attacks(served):
    """Ten attackers, each a coroutine."""
    token = served.room.about["token"]
    host = served.hosts[0]
    joined = served.room.assign_next_seat()
    key = joined["key"]
    send = f"/{token}/send/{joined['seat']}/{key}"

    def post(path, body, length=None):
        head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {length or len(body)}\r\n\r\n".encode() + body

    megabyte = b"x" * 1_000_000
    # JSON that is nested deeply, with NaN as a seat, and with a seat of 400 digits
    yield send_raw_bytes(served, post(send, b"[" * 150_000))
    yield send_raw_bytes(served, post(send, json.dumps({"seat": float("nan")}).encode()))
    huge_seat = json.loads(make_message(0)) | {"seat": 10**400}
    yield send_raw_bytes(served, post(send, json.dumps(huge_seat).encode()))
    # 50 MB, in one body and in chunks
    yield send_raw_bytes(served, post(send, b"x", 50_000_000), *[megabyte] * 50)
    chunked = f"POST {send} HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    yield send_raw_bytes(served, chunked, *[b"f4240\r\n" + megabyte + b"\r\n"] * 50)
    # very many seats
    yield send_raw_bytes(served, post(f"/{token}/join", b"{}"), times=300)
    # a message for another's seat
    another_seat = post(f"/{token}/send/1/{key}", make_message(1).encode())
    yield send_raw_bytes(served, another_seat, times=20)
    # an address that is too long, and bytes that are no HTTP
    long_address = b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n"
    yield send_raw_bytes(served, long_address, b"\x00\xff" * 1000)
    # forget another's message: by the teacher's address, and with a guessed key
    yield send_raw_bytes(served, post(f"/{token}/../teacher/forget/0", b"{}"), times=20)
    yield send_raw_bytes(served, post(f"/{token}/forget/0/{'0' * 24}", b"{}"), times=50)


@pytest.mark.slow
def test_fifty_students_are_seen_at_once_while_ten_others_attack(caplog):
    caplog.set_level(logging.WARNING)
    before = measure_peak_memory()
    arrived = {}  # {seat: when the student had an answer}
    seen = {}  # {seat: when the projector showed it}

    async def send_and_note(served):
        seat = await act_as_student(served)
        arrived[seat] = time.monotonic()
        return seat

    async def watch_projector(served):
        headers = make_teacher_cookie(served)
        version = ""
        while len(seen) < 50:
            path = f"/teacher/state?since={version}"
            _, body = await request(served, path, headers=headers)
            state = json.loads(body)
            version = state["version"]
            for message in state.get("sent", []):
                seen.setdefault(message["seat"], time.monotonic())
            await asyncio.sleep(0.25)

    async def work(served):
        students = [send_and_note(served) for _ in range(50)]
        results = await asyncio.gather(*students, *attacks(served), watch_projector(served))
        await served.wait_until_results_are_current()
        return results[:50], served.describe_for_projector()

    seats, state = run_with_class(work)
    assert max(seen[seat] - moment for seat, moment in arrived.items()) < 1
    # each message is there, and nothing else
    assert sorted(message["seat"] for message in state["sent"]) == sorted(seats)
    assert state["rows"][0]["of"] == 50
    assert json.dumps(state)
    assert not [r for r in caplog.records if r.exc_info or r.levelno >= logging.ERROR]
    assert measure_peak_memory() - before < 150_000_000


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
        paths = {
            "page": f"{token}/",
            "script": f"{token}/student.js",
            "shared": f"{token}/learn.js",
            "root": "/",
            "wrong token": "/00000000/",
            "file above": f"{token}/../room.py",
            "file": f"{token}/room.py",
            "teacher": "/teacher/",
            "projector": f"/teacher/?token={served.secret}",
            "kernel": "/api/kernels",
            "state": f"/teacher/state?token={served.secret}",
        }
        host = f"{OTHER}:{served.port}"
        codes = {}
        for name, path in paths.items():
            codes[name], _ = await request(served, path, address=OTHER, host=host)
        codes["other name"], _ = await request(served, f"{token}/", host="evil.example")
        other_page = {"Origin": "http://evil.example"}
        codes["other page"], _ = await request(served, f"{token}/join", "{}", headers=other_page)
        codes["no token"], _ = await request(served, "/teacher/state")
        return codes

    if OTHER == "127.0.0.1":
        pytest.skip("this machine has no second loopback address")
    codes = run_with_class(work, lan=OTHER)
    assert {name for name, code in codes.items() if code == 200} == {"page", "script", "shared"}
    not_found = ("root", "wrong token", "file above", "file", "teacher", "projector", "kernel")
    assert {codes[name] for name in not_found} == {404}
    assert codes["other name"] == codes["other page"] == codes["no token"] == 403


def test_without_lan_nothing_listens_beyond_this_machine():
    async def work(served):
        infos = socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
        addresses = {address for *_, (address, _) in infos}
        for address in {*addresses, OTHER} - {"127.0.0.1"}:
            with (
                pytest.raises(OSError),
                socket.create_connection((address, served.port), timeout=1),
            ):
                pass

    run_with_class(work)


@pytest.mark.slow
def test_the_teacher_s_page_loads_shows_saves_and_forgets_a_message():
    async def work(served):
        room = served.room
        cookie = make_teacher_cookie(served)
        code, body = await request(served, "/teacher/load", make_message(7), headers=cookie)
        assert code == 200
        assert json.loads(body) == {"name": "H Ada"}
        code, body = await request(served, "/teacher/state", headers=cookie)
        assert code == 200
        assert len(json.loads(body)["sent"][0]["means"]) > 1
        code, body = await request(served, "/teacher/", headers=cookie)
        assert code == 200
        assert b"<svg" in body
        assert b"@" not in body  # every placeholder of the page is filled in
        code, body = await request(served, "/teacher/class.npz", headers=cookie)
        assert code == 200
        assert body[:2] == b"PK"
        stay = f"/{room.about['token']}/stay/7/{room.compute_secret_key_of_seat(7)}"
        assert await request(served, stay, "{}") == (200, b"{}")  # no round has begun
        code, body = await request(served, "/teacher/rounds", "{}", headers=cookie)
        assert code == 400
        assert b"No network" in body
        await request(served, "/teacher/forget/7", "{}", headers=cookie)
        assert not room.messages

    run_with_class(work)


# ---------------------------------------------------------------------------------------------------------- the command
@contextmanager
def run_command(folder, *options):
    """The command's first four lines, while it runs; it is killed, not ended."""
    arguments = [sys.executable, "-m", "fedlab_nb", "class", "--no-browser", *options]
    with subprocess.Popen(arguments, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield [process.stdout.readline() for _ in range(4)]
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("keeps", [True, False])
def test_a_killed_class_that_is_started_again_has_its_messages_only_with_keep(tmp_path, keeps):
    options = ["--port", str(find_free_port(18200))]
    if keeps:
        options.append("--keep")

    def post(url, body):
        return json.loads(urlopen(Request(url, body, JSON)).read())

    with run_command(tmp_path, *options) as lines:
        address = lines[0].split()[-1]
        joined = post(address + "join", b"{}")
        message = json.loads(make_message(1)) | {"seat": joined["seat"]}
        text = json.dumps(message, separators=(",", ":")).encode()
        send = f"send/{joined['seat']}/{joined['key']}"
        assert post(address + send, text)["bytes"] == len(text)
        assert ("gone" in lines[2]) is not keeps
        assert ("written to class-DATE.npz" in lines[3]) is not keeps
    with run_command(tmp_path, *options) as lines:
        assert (" 1 message is here" if keeps else " 0 messages are here") in lines[2]
        assert (lines[0].split()[-1] == address) is keeps
        if keeps:  # the phone that sent is still known, and its message is there once
            assert post(address + send, text)["bytes"] == len(text)
    assert bool(list(tmp_path.iterdir())) is keeps


def test_wrong_options_are_one_sentence_each(tmp_path, capsys):
    for options in (["--alpha", "0"], ["--drawings", "3"], ["--port", "x"], ["--lan", "127.0.0.1"]):
        assert main(["class", "--no-browser", *options]) == 2
    nowhere = ["--page", str(tmp_path / "no" / "page.html")]
    for options in (["--lan", "198.51.100.7"], nowhere, ["--keep", str(tmp_path)]):
        assert main(["class", "--no-browser", "--port", "0", *options]) == 1
    assert capsys.readouterr().err.count("\n") == 7


def test_the_teacher_s_keys_pressed_twice_do_no_harm():
    async def work(served):
        room = served.room
        for seat in range(3):
            room.accept_message(make_message(seat, model=build_untrained_class_network(seat)))

        async def press(key, body="{}"):
            headers = make_teacher_cookie(served)
            code, answer = await request(served, f"/teacher/{key}", body, headers=headers)
            return code, json.loads(answer)

        for _ in range(2):
            code, _ = await press("joker/in")
            assert code == 200
        assert len(room.messages) == 4
        assert room.joker is not None
        for _ in range(2):
            code, _ = await press("joker/out")
            assert code == 200
        assert len(room.messages) == 3
        assert room.joker is None
        assert room.effect is None
        _, answer = await press("step/digit")
        assert answer["stage"]["step"] == "digit"
        for label, is_shown in ((7, True), (None, False)):
            code, answer = await press("draw", json.dumps({"image": [0.5] * 64, "label": label}))
            assert code == 200
            assert answer["stage"]["is_shown"] is is_shown
        for wrong in ("step/dance", "draw", "load"):
            code, answer = await press(wrong)
            assert code == 400
            assert answer["error"].endswith(".")
        code, _ = await press("nothing")
        assert code == 404
        for nobody in ("forget/abc", "forget"):
            code, _ = await press(nobody)
            assert code == 200
        assert len(room.messages) == 3

    run_with_class(work)


def test_a_flood_from_one_address_stops_phones_there_and_not_the_projector(monkeypatch):
    monkeypatch.setattr(server, "BURST", 20)
    monkeypatch.setattr(server, "REQUESTS_A_SECOND", 0.1)

    async def work(served):
        codes = []
        for _ in range(25):
            code, _ = await request(served, f"/{served.room.about['token']}/join", "{}")
            codes.append(code)
        headers = make_teacher_cookie(served)
        projector_code, _ = await request(served, "/teacher/state", headers=headers)
        return codes, projector_code

    codes, projector_code = run_with_class(work)
    assert codes[:20] == [200] * 20
    assert codes[21:] == [429] * 4
    assert projector_code == 200


def test_a_person_at_a_wrong_address_gets_a_page_and_a_program_a_sentence():
    async def work(served):
        person = {"Accept": "text/html,application/xhtml+xml"}
        codes = set()
        for path in ("/", "/00000000/", "/teacher/", "/find?code=abc"):
            code, body = await request(served, path, headers=person)
            codes.add(code)
            assert b"Almost there" in body
            assert served.room.about["token"].encode() not in body
        assert codes == {403, 404}
        code, body = await request(served, "/", host="other.example:1", headers=person)
        assert code == 403
        assert b"exactly as the projector shows it" in body
        code, body = await request(served, "/00000000/join", "{}")
        assert code == 404
        assert "error" in json.loads(body)
        code, body = await request(served, f"/find?code={served.address}", headers=person)
        assert code == 200
        assert b"student.js" in body

    run_with_class(work)


def test_a_phone_s_look_is_bounded_and_knows_its_seat():
    async def work(served):
        token = f"/{served.room.about['token']}"
        _, body = await request(served, f"{token}/join", "{}")
        joined = json.loads(body)
        look = f"{token}/look/{joined['seat']}/{joined['key']}"
        _, body = await request(served, look, '{"drawn": 3000}')
        answer = json.loads(body)
        assert answer["step"] == "draw"
        assert not answer["sent"]
        assert answer["pause"] >= 1
        assert served.room.present[0].drawn == served.room.about["drawings"]
        for wrong in ('{"drawn": "x"}', '{"drawn": true}', "[]", "{"):
            code, _ = await request(served, look, wrong)
            assert code == 400
        late_guess = {"drawn": 1, "guess": {"step": "joker", "choice": 99}}
        code, _ = await request(served, look, json.dumps(late_guess))
        assert code == 200  # it does no harm
        code, _ = await request(served, f"{token}/look/1/{joined['key']}", "{}")
        assert code == 403

    run_with_class(work)


def test_the_projector_sees_the_rounds_though_its_tables_rest():
    """The tables take a while for a large class, and then rest as long: the rounds do not wait for them."""
    room = make_room()
    for seat in range(3):
        room.accept_message(make_message(seat, model=build_untrained_class_network(seat)))

    async def work(served):
        room.start_fens_rounds()
        await served.wait_until_results_are_current()
        served.rest_end = time.monotonic() + 60
        room.rounds.round = 7
        state = served.describe_for_projector(str(served.version))
        assert state["rounds"]["round"] == 7
        assert "rows" not in state
        assert "sent" not in state
        room.accept_message(make_message(3))
        state = served.describe_for_projector(str(served.version))
        # nor does a message wait
        assert [message["seat"] for message in state["sent"]] == [0, 1, 2, 3]
        assert "rows" not in state
        assert served.update is not None
        assert served.update.done()

    run_with_class(work, room=room)


class Brake:
    """Stands in for `compute_projector_tables`, and ends only when `may_end` is set.

    counts: the number of messages at each call
    """

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
    room = make_room()
    room.accept_message(make_message(0, model=build_untrained_class_network(0)))

    async def work(served):
        async def read_state():
            headers = make_teacher_cookie(served)
            _, body = await request(served, "/teacher/state", headers=headers)
            return json.loads(body)

        brake = Brake(monkeypatch)
        try:
            await read_state()
            assert await asyncio.to_thread(brake.begun.wait, 30)
            seat = await asyncio.wait_for(act_as_student(served), 30)
            state = await read_state()
            assert [message["seat"] for message in state["sent"]] == [0, seat]
            assert state["rows"] == []
            look = f"/{room.about['token']}/look/{seat}/{room.compute_secret_key_of_seat(seat)}"
            code, _ = await request(served, look, "{}")
            assert code == 200
        finally:
            brake.may_end.set()
        await served.wait_until_results_are_current()
        rows = (await read_state())["rows"]
        assert {row["title"]: row["of"] for row in rows}["AFL"] == 2

    run_with_class(work, room=room)


def test_messages_that_come_during_a_computation_are_in_the_next_one_all_together(monkeypatch):
    room = make_room()
    room.accept_message(make_message(0))

    async def work(served):
        brake = Brake(monkeypatch)
        try:
            served.describe_for_projector()
            assert await asyncio.to_thread(brake.begun.wait, 30)
            for seat in range(1, 20):
                room.accept_message(make_message(seat))
                served.describe_for_projector()
                await asyncio.sleep(0.001)
        finally:
            brake.may_end.set()
        await served.wait_until_results_are_current()
        assert brake.counts == [1, 20]

    run_with_class(work, room=room)


def test_a_phone_is_told_its_share_and_its_vote():
    room = make_room()
    for seat in range(3):
        room.accept_message(make_message(seat, model=build_untrained_class_network(seat)))

    async def work(served):
        async def look():
            path = f"/{room.about['token']}/look/1/{room.compute_secret_key_of_seat(1)}"
            _, body = await request(served, path, "{}")
            return json.loads(body)

        async def press(key, body="{}"):
            headers = make_teacher_cookie(served)
            code, _ = await request(served, f"/teacher/{key}", body, headers=headers)
            assert code == 200

        await press("step/reveal")
        await press("show")
        answer = await look()
        loss = room.results.measure_loss_without_message(1)
        assert answer["share"]["with_it"] == loss["with_it"]
        assert answer["question"]["answer"] == 3
        await press("step/digit")
        await press("draw", json.dumps({"image": [0.5] * 64}))
        answer = await look()
        assert answer["digit"]["own"] in range(10)

    run_with_class(work, room=room)


@pytest.mark.parametrize("files", [server.STUDENT_FILES, server.TEACHER_FILES])
def test_what_a_served_module_imports_is_served_too(files):
    names = {path.name for path in files}
    imported = set()
    for path in files:
        if path.suffix == ".js":
            imported.update(re.findall(r'from "\./([\w.]+)"', path.read_text(encoding="utf-8")))
    assert len(imported) > 3
    assert imported <= names
