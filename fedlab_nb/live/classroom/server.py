"""What answers on the network, and what does not.

Two small servers share one `Room`. One listens on 127.0.0.1: the teacher's view, behind a token of
its own, and the students' page. The other listens on one address of the local network, only where
the teacher asks for it (`--lan`), and has the students' page alone. Both have tornado's limits for
the size of a request and for waiting, a limit for the connections and the requests of one address,
and refuse other names than their own (`Host`), so that no page from elsewhere can speak through a
browser. What a student says is data: it is shown as text, and never run.

Results are computed in a thread of their own. No request waits for them but those that need them: a
message is acknowledged, and seen on the projector, while the tables are still of the messages
before it.
"""

import asyncio
import hmac
import html
import io
import logging
import re
import secrets
import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import segno
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError, RequestHandler

from ...errors import FedlabError, UsageError
from .conductor import STEPS
from .messages import LIMIT, parse_object
from .page_file import read_page
from .rehearse import make_joker_message
from .results import Results
from .room import Room

T = TypeVar("T")

HERE = Path(__file__).parent
PAGE = HERE.parent / "page"
FRONT = HERE.parents[1] / "front"
MEDIA_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
SHARED_FILES = (
    HERE / "class.css",
    FRONT / "dom.js",
    FRONT / "text.js",
    FRONT / "pen.js",
    HERE / "office.js",
)
STUDENT_FILES = (
    HERE / "student.html",
    HERE / "student.js",
    HERE / "message.js",
    HERE / "recover.js",
    PAGE / "learn.js",
    PAGE / "sums.js",
    *SHARED_FILES,
)
TEACHER_FILES = (
    HERE / "teacher.html",
    HERE / "teacher.js",
    HERE / "wall.js",
    HERE / "side.js",
    HERE / "dialogs.js",
    HERE / "sentences.js",
    FRONT / "bars.js",
    FRONT / "layout.js",
    *SHARED_FILES,
)
SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Server": "fedlab-nb",
}
# Requests of one address: at once, and then in a second. A school may have one address for all
# phones, and a phone asks once in PAUSE seconds and more rarely where many are there.
BURST = 1500
REQUESTS_A_SECOND = 150
MOST_ADDRESSES = 1000  # whose requests are counted
PAUSE = 1.5  # seconds between two looks of a phone
LOOKS_A_SECOND = 40  # of all phones together
MOST_CONNECTIONS = 1200  # at once
MOST_CONNECTIONS_EACH = 400  # from one address
ROUND_WAIT = 2.0  # seconds that a phone in the tiny rounds is kept waiting for the next round
ROUND_LOOK = 0.05  # seconds between two looks for it
MOST_PREPARATIONS = 3  # times that results are computed anew because messages have come meanwhile
# Of a request: bytes of its body and of its first lines, and seconds for it to arrive.
REQUEST_LIMITS = {
    "max_body_size": LIMIT,
    "max_header_size": 8192,
    "body_timeout": 20,
    "idle_connection_timeout": 20,
}
# What a person reads who has come to a wrong address.
LOST_REASONS = {
    "student": "This class has another address. Scan the code on the projector, or type the eight "
    "letters and figures at the end of the address that stands under it.",
    "teacher": "This is the teacher's projector. Open the second address that the terminal shows: "
    "it has a key that no phone has.",
    "name": "The class does not answer to this name. Type the address exactly as the projector "
    "shows it, figures and all.",
}


class LimitedServer(HTTPServer):
    """Closes a connection that is one too many."""

    def handle_stream(self, stream: Any, address: tuple) -> None:
        same = sum(other.context.address[0] == address[0] for other in self._connections)
        if same >= MOST_CONNECTIONS_EACH or len(self._connections) >= MOST_CONNECTIONS:
            stream.close()
            return
        super().handle_stream(stream, address)


# ----------------------------------------------------------------------------------------- requests
class Handler(RequestHandler):
    """What all pages share: their headers, and who is refused. `files`: that it has, the first one
    under no name. `is_limited`: an address may make so many requests and no more."""

    is_limited = True

    def initialize(self, server: "ClassServer", files: Sequence[Path] = ()) -> None:
        self.server = server
        self.room = server.room
        self.files = {path.name: path for path in files}
        if files:
            self.files[""] = files[0]

    def set_default_headers(self) -> None:
        for name, value in SECURITY_HEADERS.items():
            self.set_header(name, value)

    def prepare(self) -> None:
        origins = [f"http://{host}" for host in self.server.hosts]
        if f"http://{self.request.host}" not in origins:
            raise HTTPError(403, reason="Asked by another name")
        if self.request.headers.get("Origin", origins[0]) not in origins:
            raise HTTPError(403, reason="Asked from another page")
        if self.is_limited and not self.server.spend_request(self.request.remote_ip):
            raise HTTPError(429)
        if not self.is_known(*self.path_args):
            raise HTTPError(404, reason="There is nothing here; open the address of the class anew")

    def is_known(self, *parts: str) -> bool:
        """Whether who asks may know that there is something."""
        return False

    def log_exception(self, kind: Any, error: Any, trace: Any) -> None:
        if not isinstance(error, (FedlabError, HTTPError)):
            super().log_exception(kind, error, trace)

    def write_error(self, status_code: int, exc_info: tuple = (None, None), **_: Any) -> None:
        if isinstance(exc_info[1], FedlabError):
            self.set_status(400)
            self.finish({"error": str(exc_info[1])})
            return
        self.set_status(status_code)
        wants_page = "text/html" in self.request.headers.get("Accept", "")
        if self.request.method == "GET" and wants_page and status_code in (403, 404):
            self.set_header("Content-Type", "text/html; charset=utf-8")
            self.finish(make_lost_page(self.find_lost_reason()))
            return
        self.finish({"error": f"{self._reason} ({status_code})."})

    def find_lost_reason(self) -> str:
        """Which sentence of LOST_REASONS helps."""
        if self.request.host not in self.server.hosts:
            return "name"
        if self.request.path.startswith("/teacher"):
            return "teacher"
        return "student"

    def write_page_file(self, name: str) -> None:
        """One of the files, with address and QR code where their names stand between two @."""
        if name not in self.files:
            raise HTTPError(404)
        path = self.files[name]
        address = self.server.address.removeprefix("http://").removesuffix("/")
        text = path.read_text("utf-8")
        text = text.replace("@qr@", self.server.qr_code)
        text = text.replace("@address@", address)
        self.set_header("Content-Type", f"{MEDIA_TYPES[path.suffix]}; charset=utf-8")
        self.write(text)


def make_lost_page(reason: str) -> str:
    """The page for a wrong address: it says where the class is, and takes the letters of its
    address."""
    text = (HERE / "lost.html").read_text("utf-8")
    return text.replace("@reason@", html.escape(LOST_REASONS[reason]))


class LostHandler(Handler):
    """Every other address: the first page, the style of the page for who is lost, and the way from
    letters to the class."""

    def is_known(self, *_: str) -> bool:
        return self.request.path in ("/class.css", "/find")

    def get(self) -> None:
        if self.request.path == "/class.css":
            self.set_header("Content-Type", "text/css; charset=utf-8")
            self.write((HERE / "class.css").read_text("utf-8"))
            return
        typed = self.get_query_argument("code", "").strip().strip("/")
        code = typed.rsplit("/", 1)[-1].lower()
        if hmac.compare_digest(code.encode(), self.room.about["token"].encode()):
            self.redirect(f"/{code}/")
            return
        raise HTTPError(404)


class StudentHandler(Handler):
    """`/TOKEN/…`: the page and its files; joining, sending, looking, staying, and being
    forgotten."""

    def is_known(self, token: str, *_: str) -> bool:
        return hmac.compare_digest(token, self.room.about["token"])

    def get(self, token: str, name: str) -> None:
        if name:
            self.write_page_file(name[1:])
        else:
            self.redirect(f"/{token}/")  # typed by hand

    async def post(self, _: str, name: str) -> None:
        if name == "/join":
            self.write(self.room.assign_seat())
            return
        action, seat = self.read_seat(name)
        actions = {
            "send": self.send,
            "forget": self.forget,
            "stay": self.wait_for_round,
            "look": self.look,
        }
        self.write(await actions[action](seat))

    def read_seat(self, name: str) -> tuple[str, int]:
        """What is asked for, and for which seat; its key must be right."""
        parts = re.fullmatch(r"/(send|forget|stay|look)/([0-9]{1,6})/([0-9a-f]{24})", name)
        if parts is None or not hmac.compare_digest(parts[3], self.room.make_key(int(parts[2]))):
            raise HTTPError(403, reason="This class knows no such seat; open its address anew")
        return parts[1], int(parts[2])

    async def send(self, seat: int) -> dict[str, Any]:
        message = self.room.accept(self.request.body, seat)
        await asyncio.to_thread(self.room.sync)  # what is acknowledged is never lost
        return {"bytes": message.size}

    async def forget(self, seat: int) -> dict[str, Any]:
        effect = await self.server.forget(seat)
        if not self.room.conductor.is_shown("reveal"):
            effect = None
        return {"forgotten": True, "effect": effect}

    async def look(self, seat: int) -> dict[str, Any]:
        """Where the class is; the request says how many digits the phone has drawn, and its
        guess."""
        given = parse_object(self.request.body)
        drawn = given.get("drawn", 0)
        guess = given.get("guess")
        if not isinstance(drawn, int) or isinstance(drawn, bool):
            raise UsageError("“drawn” is a whole number: how many digits the phone has drawn.")
        self.room.note_presence(seat, max(0, min(drawn, self.room.about["drawings"])))
        if isinstance(guess, dict):
            with suppress(UsageError):  # the result has just been shown: the answer says so
                self.room.guess(seat, guess.get("step"), guess.get("choice"))
        results = await self.server.prepare_share(seat)
        description = self.room.describe_for_phone(seat, results)
        description["pause"] = max(PAUSE, len(self.room.present) / LOOKS_A_SECOND)
        return description

    async def wait_for_round(self, seat: int) -> dict[str, Any]:
        """What a phone that stays is told: at once where something is new to it, else when the next
        round begins, or after ROUND_WAIT."""
        body = self.request.body
        begun = time.monotonic()
        answer = self.room.stay(seat, body, begun)
        known = parse_object(body).get("round")
        while not answer or (answer["round"] == known and "networks" not in answer):
            if time.monotonic() - begun > ROUND_WAIT or seat not in self.room.messages:
                break
            await asyncio.sleep(ROUND_LOOK)
            rounds = self.room.rounds
            if rounds is None:
                continue
            if rounds.round != known or not answer:
                answer = self.room.stay(seat, b"{}", time.monotonic())
            else:
                self.room.end_round(time.monotonic())
        return answer


class TeacherHandler(Handler):
    """`/teacher/…`, on this machine alone: the projector's page, and what its buttons do."""

    # Phones may come from this machine's address, too: they must not stop the projector.
    is_limited = False

    def is_known(self, *_: str) -> bool:
        cookie = f"class-{self.server.port}"
        given = self.get_cookie(cookie) or self.get_query_argument("token", "")
        if not hmac.compare_digest(given.encode(), self.server.secret.encode()):
            raise HTTPError(403, reason="Open the address that the terminal shows")
        self.set_cookie(cookie, given, httponly=True, samesite="Lax", path="/teacher/")
        return True

    async def get(self, name: str, _: str | None) -> None:
        if self.get_query_argument("token", None):
            self.redirect("/teacher/")  # a projector shows the address
        elif name == "state":
            self.write(self.server.describe_for_projector(self.get_query_argument("since", "")))
        elif name == "class.npz":
            content = await self.server.compute(pack_class, self.room)
            self.send_file(f"class-{date.today()}.npz", content)
        elif name == "student.html":
            self.send_file("student.html", await self.server.compute(read_page, self.room))
        else:
            self.write_page_file(name)

    def send_file(self, name: str, content: str | bytes) -> None:
        self.set_header("Content-Type", "application/octet-stream")
        self.set_header("Content-Disposition", f'attachment; filename="{name}"')
        self.write(content)

    async def post(self, name: str, argument: str | None) -> None:
        actions = {
            "load": self.load,
            "step": self.begin_step,
            "show": self.show_result,
            "cover": self.cover_result,
            "rounds": self.start_rounds,
            "again": self.clear_rounds,
            "joker": self.set_joker,
            "draw": self.draw_digit,
            "clear": self.clear_digit,
            "forget": self.forget,
        }
        if name not in actions:
            raise HTTPError(404)
        async with self.server.teacher_lock:  # one key after the other
            answer = await actions[name](argument or "")
        known = str(self.server.version)
        self.write(answer or self.server.describe_for_projector(known))

    async def load(self, _: str) -> dict[str, Any]:
        message = self.room.accept(self.request.body)
        await asyncio.to_thread(self.room.sync)
        return {"name": message.name}

    async def begin_step(self, step: str) -> None:
        self.room.conductor.go(step, self.room.clock())
        self.room.note_progress()

    async def show_result(self, _: str) -> None:
        await self.server.wait_for_results()
        self.room.conductor.show()
        self.room.note_progress()

    async def cover_result(self, _: str) -> None:
        self.room.conductor.cover()
        self.room.note_progress()

    async def start_rounds(self, _: str) -> None:
        self.room.start_rounds()

    async def clear_rounds(self, _: str) -> None:
        self.room.clear_rounds()
        self.room.note_progress()

    async def set_joker(self, direction: str) -> None:
        """The joker sends, or what it has sent is taken out again; pressed twice, it is no
        other."""
        room = self.room
        if direction == "out":
            if room.joker is not None:
                await self.server.prepare(lambda results: results.measure_loss(room.joker))
                room.take_joker_out()
        elif room.joker is None:
            await self.server.prepare(Results.read_accuracies)
            seat = room.assign_seat()["seat"]
            text = await self.server.compute(make_joker_message, room.about["seed"], seat)
            room.add_joker(text, seat)
        await self.server.wait_for_results()

    async def draw_digit(self, _: str) -> None:
        """The teacher's digit; it is covered until it is told which one it is."""
        given = parse_object(self.request.body)
        label = given.get("label")
        self.room.draw(given.get("image") or [], label)
        await self.server.wait_for_results()
        if label is None:
            self.room.conductor.cover("digit")
        else:
            self.room.conductor.show("digit")

    async def clear_digit(self, _: str) -> None:
        self.room.clear_drawing()

    async def forget(self, seat: str) -> None:
        if seat.isdecimal():
            await self.server.forget(int(seat))
            await self.server.wait_for_results()


def pack_class(room: Room) -> bytes:
    """The class as the bytes of an `.npz`."""
    file = io.BytesIO()
    np.savez_compressed(file, **room.make_arrays())
    return file.getvalue()


# --------------------------------------------------------------------------------------- the server
class ClassServer:
    """A class that can be reached: `address` for students, `teacher` for the projector.

    lan: an address of this machine, where students can reach it, or None;   port: 0 for any that is
    free. OSError where it cannot listen.
    """

    def __init__(self, room: Room, lan: str | None = None, port: int = 0) -> None:
        self.room = room
        self.secret = secrets.token_urlsafe(24)
        self.port = port
        self.teacher_lock = asyncio.Lock()
        self.allowances: dict[str, tuple[float, float]] = {}  # by address: requests, and when
        # The results that have been computed last; those of the room may be newer.
        self.results = Results(())
        self.version = 0  # of the room, that they are of
        self.tables = compute_tables(self.results, None)
        self.thread = ThreadPoolExecutor(1, "results")
        self.update: asyncio.Task | None = None  # of the results
        self.rest_end = 0.0
        for name in ("tornado.access", "tornado.general"):  # bad requests must not flood the log
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self.servers: list[LimitedServer] = []
        try:
            self.listen("127.0.0.1", is_teacher=True)
            if lan:
                self.listen(lan, is_teacher=False)
        except OSError:
            self.stop()
            raise
        names = ["127.0.0.1", "localhost"]
        if lan:
            names.append(lan)
        self.hosts = [f"{name}:{self.port}" for name in names]
        self.address = f"http://{lan or '127.0.0.1'}:{self.port}/{room.about['token']}/"
        self.teacher = f"http://127.0.0.1:{self.port}/teacher/?token={self.secret}"
        code = segno.make(self.address, micro=False)
        self.qr_code = code.svg_inline(omitsize=True, border=2, light="#fff")

    def listen(self, address: str, is_teacher: bool) -> None:
        """Answer at this address; the teacher's pages are there, too, where `is_teacher`."""
        own = {"server": self}
        routes: list[tuple] = [
            (r"/([0-9a-f]{8})(|/.*)", StudentHandler, own | {"files": STUDENT_FILES}),
            (r"/(?:class\.css|find)?", LostHandler, own),
        ]
        if is_teacher:
            pages = own | {"files": TEACHER_FILES}
            routes.insert(0, (r"/teacher/([\w.]*)(?:/(\w{1,12}))?", TeacherHandler, pages))
        application = Application(routes, default_handler_class=Handler, default_handler_args=own)
        sockets = bind_sockets(self.port, address, family=socket.AF_INET)
        server = LimitedServer(application, **REQUEST_LIMITS)
        server.add_sockets(sockets)
        self.servers.append(server)
        self.port = sockets[0].getsockname()[1]

    def stop(self) -> None:
        """Listen no longer."""
        for server in self.servers:
            server.stop()
        self.thread.shutdown(wait=False, cancel_futures=True)

    def spend_request(self, address: str) -> bool:
        """Whether this address may make another request: its allowance of BURST fills again by
        REQUESTS_A_SECOND."""
        now = time.monotonic()
        left, before = self.allowances.pop(address, (BURST, now))
        left = min(BURST, left + (now - before) * REQUESTS_A_SECOND)
        self.allowances[address] = (max(0, left - 1), now)
        if len(self.allowances) > MOST_ADDRESSES:
            self.allowances.pop(next(iter(self.allowances)))
        return left >= 1

    # -------------------------------------------------------------------------------------- results
    async def compute(self, work: Callable[..., T], *arguments: Any) -> T:
        """`work(*arguments)` in the thread for results; others are answered meanwhile."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.thread, work, *arguments)

    def update_results(self) -> asyncio.Task:
        """Begin to compute the results of the class as it is, unless some are being computed."""
        if self.update is None or self.update.done():
            self.update = asyncio.create_task(self._update_results())
        return self.update

    async def _update_results(self) -> None:
        results = self.room.results
        version = self.room.version
        drawing = self.room.drawing
        image = tuple(drawing["image"]) if drawing else None
        begun = time.monotonic()
        try:
            tables = await self.compute(compute_tables, results, image)
        finally:
            # As long a rest: on a slow computer, too, there is time for phones.
            self.rest_end = 2 * time.monotonic() - begun
        self.results = results
        self.version = version
        self.tables = tables

    async def wait_for_results(self) -> None:
        """Until the results are of the class as it is now, or later."""
        version = self.room.version
        while self.version < version:
            await asyncio.shield(self.update_results())

    async def prepare(self, work: Callable[[Results], Any]) -> None:
        """Let the thread compute `work` of the class's results, so that who asks for it next need
        not wait."""
        for _ in range(MOST_PREPARATIONS):
            results = self.room.results
            await self.compute(work, results)
            if results is self.room.results:
                return

    async def prepare_share(self, seat: int) -> Results:
        """Results in which the share of this seat has been computed, where it has sent and shares
        are shown."""
        results = self.results
        is_shown = self.room.conductor.is_shown("reveal")
        if is_shown and results.find_message(seat) and not results.has_share(seat):
            await self.compute(results.measure_share, seat)
        return results

    async def forget(self, seat: int) -> dict[str, Any] | None:
        """Take the message of a seat out: see `Room.forget`."""

        def measure(results: Results) -> None:
            if results.find_message(seat):
                results.measure_loss(seat)
                results.read_accuracies()

        await self.prepare(measure)
        return self.room.forget(seat)

    def describe_for_projector(self, since: str = "") -> dict[str, Any]:
        """What the projector shows; without tables where these are those of the version `since`.
        They are computed where something is new, and after as long a rest."""
        room = self.room
        if room.version != self.version and time.monotonic() >= self.rest_end:
            self.update_results()
        step = room.conductor.step
        stage = room.conductor.describe(room.clock())
        if "question" in stage and stage["is_shown"]:
            stage["question"]["answer"] = self.results.find_answer(step.name)
        description: dict[str, Any] = {
            "version": str(self.version),
            "joined": room.joined,
            "drawings": room.about["drawings"],
            "kept": room.storage_notice,
            "joker": room.joker,
            "seats": room.describe_seats(),
            "need": room.describe_need(self.results.measure_loudness()),
            "stage": stage,
            "steps": [{"name": s.name, "title": s.title, "minutes": s.minutes} for s in STEPS],
            "votes": room.collect_votes(self.results),
            "rounds": room.rounds.about() if room.rounds else None,
        }
        is_new = since != str(self.version)
        if is_new:
            description |= self.tables
        if is_new or room.version != self.version:  # messages do not wait for tables
            description["sent"] = room.describe_messages()
        return description


def compute_tables(results: Results, image: tuple[float, ...] | None) -> dict[str, Any]:
    """What the projector has of these results. Loudness and the votes on the teacher's digit
    `image` are computed, too, so that they are there when they are asked for."""
    results.measure_loudness()
    if image is not None:
        results.collect_votes(image)
    return {
        "rows": results.measure_ways(),
        "before": results.before,
        "effect": results.effect,
        "explanation": results.explain_rounds(),
        "plane": results.project_means(),
    }


def find_lan_address(given: str = "") -> str:
    """The address of this machine in its local network, or the one that is given; UsageError where
    there is none."""
    if not given:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
            # This sends nothing: it asks which of its addresses this machine would use.
            probe.connect(("192.0.2.1", 9))
            given = probe.getsockname()[0]
    if given in ("", "127.0.0.1"):
        raise UsageError("This machine is in no network; connect it, or leave --lan out.")
    return given
