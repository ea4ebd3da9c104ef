"""What answers on the network, and what does not.

Two small servers share one `Room`. One listens on 127.0.0.1: the teacher's view, behind a token of its own, and the
students' page. The other listens on one address of the local network, only where the teacher asks for it (`--lan`), and
has the students' page alone. Both have tornado's limits for the size of a request and for waiting, a limit for the
connections and the requests of one address, and refuse other names than their own (`Host`), so that no page from
elsewhere can speak through a browser. What a student says is data: it is shown as text, and never run.
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
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import segno
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError, RequestHandler

from ...errors import FedlabError, UsageError
from .conductor import STEPS
from .messages import LIMIT, parse_object
from .page_file import read_page
from .rehearse import make_joker
from .room import Room
from .worth import project_means

HERE = Path(__file__).parent
PAGE = HERE.parent / "page"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
FRONT = HERE.parents[1] / "front"
SHARED = (
    HERE / "class.css",
    FRONT / "dom.js",
    FRONT / "text.js",
    FRONT / "pen.js",
    HERE / "office.js",
)
STUDENT = (
    HERE / "student.html",
    HERE / "student.js",
    HERE / "recover.js",
    PAGE / "learn.js",
    PAGE / "sums.js",
    *SHARED,
)
TEACHER = (
    HERE / "teacher.html",
    HERE / "teacher.js",
    HERE / "wall.js",
    HERE / "sentences.js",
    FRONT / "bars.js",
    FRONT / "layout.js",
    *SHARED,
)
SAFE = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Server": "fedlab-nb",
}
# Requests of one address: at once, and then in a second. A school may have one address for all phones, and a phone asks
# once in PAUSE seconds and more rarely where many are there.
BURST, PER_SECOND = 1500, 150
PAUSE = 1.5  # seconds between two looks of a phone
PHONES_A_SECOND = 40  # looks of all phones together
CONNECTIONS, OF_ONE = 1200, 400  # at once: in all, and from one address
REMEMBERED = 1000  # addresses whose requests are counted
WAIT = 2.0  # seconds that a phone in the tiny rounds is kept waiting for the next round
LOOK = 0.05  # seconds between two looks for it
# Of a request: bytes of its body and of its first lines, and seconds for it to arrive.
SIZES = {
    "max_body_size": LIMIT,
    "max_header_size": 8192,
    "body_timeout": 20,
    "idle_connection_timeout": 20,
}
# What a person reads who has come to a wrong address.
LOST = {
    "student": "This class has another address. Scan the code on the projector, or type the eight letters and figures "
    "at the end of the address that stands under it.",
    "teacher": "This is the teacher's projector. Open the second address that the terminal shows: it has a key that no "
    "phone has.",
    "name": "The class does not answer to this name. Type the address exactly as the projector shows it, figures and "
    "all.",
}


class Bounded(HTTPServer):
    """Closes a connection that is one too many."""

    def handle_stream(self, stream: Any, address: tuple) -> None:
        same = sum(other.context.address[0] == address[0] for other in self._connections)
        few = same < OF_ONE and len(self._connections) < CONNECTIONS
        return super().handle_stream(stream, address) if few else stream.close()


class Handler(RequestHandler):
    """What all pages share: their headers, and who is refused. `files`: that it has, the first one under no name.
    `is_limited`: an address may make so many requests and no more."""

    is_limited = True

    def initialize(self, served: "Served", files: Sequence[Path] = ()) -> None:
        self.served = served
        self.room = served.room
        self.files = {path.name: path for path in files}
        if files:
            self.files[""] = files[0]

    def set_default_headers(self) -> None:
        for name, value in SAFE.items():
            self.set_header(name, value)

    def prepare(self) -> None:
        names = [f"http://{host}" for host in self.served.hosts]
        if f"http://{self.request.host}" not in names:
            raise HTTPError(403, reason="Asked by another name")
        if self.request.headers.get("Origin", names[0]) not in names:
            raise HTTPError(403, reason="Asked from another page")
        if self.is_limited and not self.served.allows(self.request.remote_ip):
            raise HTTPError(429)
        if not self.knows(*self.path_args):
            raise HTTPError(404, reason="There is nothing here; open the address of the class anew")

    def knows(self, *parts: str) -> bool:
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
            self.finish(self.served.lost_page(self.lost_reason()))
            return
        self.finish({"error": f"{self._reason} ({status_code})."})

    def lost_reason(self) -> str:
        """Which sentence of LOST helps."""
        if self.request.host not in self.served.hosts:
            return "name"
        return "teacher" if self.request.path.startswith("/teacher") else "student"

    def file(self, name: str) -> None:
        """One of the files, with address and QR code where their names stand between two @."""
        if name not in self.files:
            raise HTTPError(404)
        text = self.files[name].read_text("utf-8").replace("@qr@", self.served.picture)
        self.set_header("Content-Type", f"{TYPES[self.files[name].suffix]}; charset=utf-8")
        address = self.served.address[len("http://") : -1]
        self.write(text.replace("@address@", address))


class Lost(Handler):
    """Every other address: the first page, the style of the page for who is lost, and the way from
    letters to the class."""

    def knows(self, *_: str) -> bool:
        return self.request.path in ("/class.css", "/find")

    def get(self) -> None:
        if self.request.path == "/class.css":
            self.set_header("Content-Type", "text/css; charset=utf-8")
            self.write((HERE / "class.css").read_text("utf-8"))
            return
        typed = self.get_query_argument("code", "").strip().strip("/").rsplit("/", 1)[-1].lower()
        if hmac.compare_digest(typed.encode(), self.room.about["token"].encode()):
            self.redirect(f"/{typed}/")
            return
        raise HTTPError(404)


class Student(Handler):
    """`/TOKEN/…`: the page and its files; joining, sending, looking, staying, and being forgotten."""

    def knows(self, token: str, *_: str) -> bool:
        return hmac.compare_digest(token, self.room.about["token"])

    def get(self, token: str, name: str) -> None:
        if name:
            self.file(name[1:])
        else:
            self.redirect(f"/{token}/")  # typed by hand

    async def post(self, _: str, name: str) -> None:
        if name == "/join":
            self.write(self.room.assign_seat())
            return
        asked = re.fullmatch(r"/(send|forget|stay|look)/([0-9]{1,6})/([0-9a-f]{24})", name)
        if not asked or not hmac.compare_digest(asked[3], self.room.make_key(int(asked[2]))):
            raise HTTPError(403, reason="This class knows no such seat; open its address anew")
        what, seat, body = asked[1], int(asked[2]), self.request.body
        if what == "send":
            self.write({"bytes": self.room.accept(body, seat).size})
        elif what == "forget":
            effect = self.room.forget(seat)
            is_shown = self.room.conductor.is_shown("reveal")
            self.write({"forgotten": True, "effect": effect if is_shown else None})
        elif what == "stay":
            self.write(await self.wait_for_round(seat, body))
        else:
            self.write(self.look(seat, body))

    def look(self, seat: int, body: bytes) -> dict[str, Any]:
        """Where the class is; `body` says how many digits the phone has drawn, and its guess."""
        given = parse_object(body)
        drawn, guess = given.get("drawn", 0), given.get("guess")
        if not isinstance(drawn, int) or isinstance(drawn, bool):
            raise UsageError("“drawn” is a whole number: how many digits the phone has drawn.")
        self.room.note_presence(seat, max(0, min(drawn, self.room.about["drawings"])))
        if isinstance(guess, dict):
            with suppress(UsageError):  # the result has just been shown: what comes back says so
                self.room.conductor.guess(seat, guess.get("step"), guess.get("choice"))
        told = self.room.describe_for_phone(seat)
        told["pause"] = max(PAUSE, len(self.room.present) / PHONES_A_SECOND)
        return told

    async def wait_for_round(self, seat: int, body: bytes) -> dict[str, Any]:
        """What a phone that stays is told: at once where something is new to it, else when the next
        round begins, or after WAIT."""
        begun = time.monotonic()
        told = self.room.stay(seat, body, begun)
        known = parse_object(body).get("round")
        while not told or (told["round"] == known and "networks" not in told):
            if time.monotonic() - begun > WAIT or seat not in self.room.messages:
                break
            await asyncio.sleep(LOOK)
            rounds = self.room.rounds
            if rounds and (rounds.round != known or not told):
                told = self.room.stay(seat, b"{}", time.monotonic())
            elif rounds:
                self.room.end_round(time.monotonic())
        return told


class Teacher(Handler):
    """`/teacher/…`, on this machine alone: the projector's page, and what its buttons do."""

    is_limited = (
        False  # phones may come from this machine's address, too: they must not stop the projector
    )

    def knows(self, *_: str) -> bool:
        cookie = f"class-{self.served.port}"
        given = self.get_cookie(cookie) or self.get_query_argument("token", "")
        if not hmac.compare_digest(given.encode(), self.served.secret.encode()):
            raise HTTPError(403, reason="Open the address that the terminal shows")
        self.set_cookie(cookie, given, httponly=True, samesite="Lax", path="/teacher/")
        return True

    def get(self, name: str, _: str | None) -> None:
        if self.get_query_argument("token", None):
            self.redirect("/teacher/")  # a projector shows the address
        elif name == "state":
            self.write(self.served.state(self.get_query_argument("since", "")))
        elif name == "class.npz":
            np.savez_compressed(saved := io.BytesIO(), **self.room.make_arrays())
            self.send_file(f"class-{date.today()}.npz", saved.getvalue())
        elif name == "student.html":
            self.send_file("student.html", read_page(self.room))
        else:
            self.file(name)

    def send_file(self, name: str, content: str | bytes) -> None:
        self.set_header("Content-Type", "application/octet-stream")
        self.set_header("Content-Disposition", f'attachment; filename="{name}"')
        self.write(content)

    def post(self, name: str, what: str | None) -> None:
        room, conductor = self.room, self.room.conductor
        if name == "load":
            self.write({"name": room.accept(self.request.body).name})
            return
        actions: dict[str, Callable[[], Any]] = {
            "step": lambda: conductor.go(what or "", room.clock()),
            "show": conductor.show,
            "cover": conductor.cover,
            "rounds": room.start_rounds,
            "again": room.clear_rounds,
            "joker": lambda: self.set_joker(what != "out"),
            "draw": self.draw,
            "clear": room.clear_drawing,
            "forget": lambda: room.forget(int(what) if what and what.isdecimal() else -1),
        }
        if name not in actions:
            raise HTTPError(404)
        actions[name]()
        if name in ("step", "show", "cover", "again", "joker"):
            room.write_file()
        self.write(self.served.state("now"))

    def draw(self) -> None:
        """The teacher's digit; it is covered until it is told which one it is."""
        given = parse_object(self.request.body)
        label = given.get("label")
        self.room.draw(given.get("image") or [], label)
        if label is None:
            self.room.conductor.cover("digit")
        else:
            self.room.conductor.show("digit")

    def set_joker(self, is_in: bool) -> None:
        """The joker sends, or what it has sent is taken out again; pressed twice, it is no other."""
        room = self.room
        if is_in and room.joker is None:
            seat, text = make_joker(room)
            room.add_joker(text, seat)
        elif not is_in and room.joker is not None:
            room.forget(room.joker)
            room.effect = None  # nobody has been forgotten


class Served:
    """A class that can be reached: `address` for students, `teacher` for the projector.

    lan: an address of this machine, where students can reach it, or None;   port: 0 for any that is free. OSError where
    it cannot listen.
    """

    def __init__(self, room: Room, lan: str | None = None, port: int = 0) -> None:
        self.room = room
        self.secret = secrets.token_urlsafe(24)
        self.port = port
        self.left: dict[str, tuple[float, float]] = {}
        self.known: dict[str, Any] = {}
        self.rested = 0.0
        for name in ("tornado.access", "tornado.general"):  # bad requests must not flood the log
            logging.getLogger(name).setLevel(logging.CRITICAL)
        lost = [(r"/(?:class\.css|find)?", Lost, {"served": self})]
        students = [(r"/([0-9a-f]{8})(|/.*)", Student, {"served": self, "files": STUDENT})]
        own = [(r"/teacher/([\w.]*)(?:/(\w{1,12}))?", Teacher, {"served": self, "files": TEACHER})]
        self.servers: list[Bounded] = []
        places = {"127.0.0.1": [*own, *students, *lost]}
        if lan:
            places[lan] = [*students, *lost]
        try:
            for address, routes in places.items():
                pages = Application(
                    routes, default_handler_class=Handler, default_handler_args={"served": self}
                )
                sockets = bind_sockets(self.port, address, family=socket.AF_INET)
                self.servers.append(Bounded(pages, **SIZES))
                self.servers[-1].add_sockets(sockets)
                self.port = sockets[0].getsockname()[1]
        except OSError:
            self.stop()
            raise
        hosts = ["127.0.0.1", "localhost", *([lan] if lan else [])]
        self.hosts = [f"{host}:{self.port}" for host in hosts]
        self.address = f"http://{lan or '127.0.0.1'}:{self.port}/{room.about['token']}/"
        self.teacher = f"http://127.0.0.1:{self.port}/teacher/?token={self.secret}"
        self.picture = segno.make(self.address, micro=False).svg_inline(
            omitsize=True, border=2, light="#fff"
        )

    def stop(self) -> None:
        """Listen no longer."""
        for server in self.servers:
            server.stop()

    def allows(self, address: str) -> bool:
        """Whether this address may make another request: its bucket of BURST fills again by PER_SECOND."""
        now = time.monotonic()
        left, then = self.left.pop(address, (BURST, now))
        left = min(BURST, left + (now - then) * PER_SECOND)
        self.left[address] = max(0, left - 1), now
        if len(self.left) > REMEMBERED:
            self.left.pop(next(iter(self.left)))
        return left >= 1

    def lost_page(self, reason: str) -> str:
        """The page for a wrong address: it says where the class is, and takes the letters of its address."""
        text = (HERE / "lost.html").read_text("utf-8")
        return text.replace("@reason@", html.escape(LOST[reason]))

    def state(self, since: str = "") -> dict[str, Any]:
        """What the projector shows; without tables where these are those of the version `since`. They are made where
        something is new, and after as long a rest, so that phones have an answer meanwhile."""
        room = self.room
        begun = time.monotonic()
        if str(room.version) != self.known.get("version") and begun >= self.rested:
            self.known = {
                "version": str(room.version),
                "rows": room.measure_ways(),
                "before": room.before,
                "effect": room.effect,
                "sent": room.describe_messages(),
                "explanation": room.explain_rounds(),
                "plane": project_means(room.messages.values()),
            }
            self.rested = 2 * time.monotonic() - begun
        stage = room.conductor.describe(room.clock())
        if "question" in stage and stage["is_shown"]:
            stage["question"]["answer"] = room.answer(room.conductor.step.name)
        now = {
            "joined": room.joined,
            "drawings": room.about["drawings"],
            "kept": room.storage_notice,
            "joker": room.joker,
            "seats": room.describe_seats(),
            "need": room.describe_need(),
            "stage": stage,
            "steps": [{"name": s.name, "title": s.title, "minutes": s.minutes} for s in STEPS],
            "votes": room.collect_votes(),
            "rounds": room.rounds.about() if room.rounds else None,
        }
        if str(room.version) != self.known["version"]:  # messages do not wait for the tables' rest
            now["sent"] = room.describe_messages()
        if since == self.known["version"]:
            return {"version": since} | now
        return self.known | now


def own_address(given: str = "") -> str:
    """The address of this machine in its local network, or the one that is given; UsageError where there is none."""
    if not given:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
            # This sends nothing: it asks which of its addresses this machine would use.
            probe.connect(("192.0.2.1", 9))
            given = probe.getsockname()[0]
    if given in ("", "127.0.0.1"):
        raise UsageError("This machine is in no network; connect it, or leave --lan out.")
    return given
