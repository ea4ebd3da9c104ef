"""What answers on the network, and what does not.

Two small servers share one `Room`. One listens on 127.0.0.1: the teacher's view, behind a token of its own, and the
students' page. The other listens on one address of the local network, only where the teacher asks for it (`--lan`), and
has the students' page alone. Both have tornado's limits for the size of a request and for waiting, a limit for the
connections and the requests of one address, and refuse other names than their own (`Host`), so that no page from
elsewhere can speak through a browser. What a student says is data: it is shown as text, and never run.
"""

import hmac
import ipaddress
import logging
import secrets
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import segno
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError, RequestHandler

from ..errors import RunError, UsageError, demand
from .messages import LIMIT
from .room import Room

HERE = Path(__file__).parent
PAGE = HERE.parent / "page"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
STUDENT = {path.name: path for path in (HERE / "student.html", HERE / "student.js", HERE / "class.css")}
STUDENT |= {name: PAGE / name for name in ("ink.js", "learn.js", "sums.js")}
TEACHER = {path.name: path for path in (HERE / "teacher.html", HERE / "teacher.js", HERE / "class.css", PAGE / "ink.js")}
SAFE = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Server": "fedlab-nb",
}
BURST, PER_SECOND = 900, 90  # requests of one address: at once, and then in a second; a phone needs about eight in all
CONNECTIONS, OF_ONE = 1200, 400  # at once: in all, and from one address (a school may have one address for all phones)
WAIT = 20  # seconds for a request to arrive


class Limits:
    """How many requests each address may still make: a bucket that fills again. The latest 1,000 are remembered."""

    def __init__(self) -> None:
        self.left: dict[str, tuple[float, float]] = {}

    def allow(self, address: str) -> bool:
        now = time.monotonic()
        left, then = self.left.pop(address, (BURST, now))
        left = min(BURST, left + (now - then) * PER_SECOND)
        self.left[address] = max(0, left - 1), now
        if len(self.left) > 1000:
            self.left.pop(next(iter(self.left)))
        return left >= 1


class Bounded(HTTPServer):
    """Closes a connection that is one too many."""

    def handle_stream(self, stream: Any, address: tuple) -> None:
        same = sum(other.context.address[0] == address[0] for other in self._connections)
        if same >= OF_ONE or len(self._connections) >= CONNECTIONS:
            return stream.close()
        return super().handle_stream(stream, address)


class Handler(RequestHandler):
    """What all pages share: their headers, and who is refused."""

    def initialize(self, served: "Served") -> None:
        self.served, self.room = served, served.room

    def set_default_headers(self) -> None:
        for name, value in SAFE.items():
            self.set_header(name, value)

    def prepare(self) -> None:
        if self.request.host not in self.served.hosts:
            raise HTTPError(403, reason="Another name than this server's")
        if not self.served.limits.allow(self.request.remote_ip):
            self.set_header("Retry-After", "1")
            raise HTTPError(429)
        origin = self.request.headers.get("Origin")
        if origin not in (None, *(f"http://{host}" for host in self.served.hosts)):
            raise HTTPError(403, reason="Asked by another page")
        if self.request.method == "POST" and self.request.headers.get("Content-Type") != "application/json":
            raise HTTPError(415)

    def write_error(self, status_code: int, **_: Any) -> None:
        self.finish({"error": f"{self._reason} ({status_code})."})

    def answer(self, work: Any) -> None:
        """What `work()` returns, or the sentence of a UsageError."""
        try:
            self.write(work() or {})
        except UsageError as error:
            self.set_status(400)
            self.write({"error": str(error)})

    def file(self, path: Path | None, **parts: str) -> None:
        """A page's file, with `parts` where their names stand between two @."""
        if path is None or not path.is_file():
            raise HTTPError(404)
        text = path.read_text(encoding="utf-8")
        for name, part in parts.items():
            text = text.replace(f"@{name}@", part)
        self.set_header("Content-Type", f"{TYPES[path.suffix]}; charset=utf-8")
        self.write(text)


class Nowhere(Handler):
    def prepare(self) -> None:
        super().prepare()
        raise HTTPError(404)


class Student(Handler):
    """`/TOKEN/…`: the page and its files; joining, sending, and being forgotten."""

    def prepare(self) -> None:
        super().prepare()
        if not hmac.compare_digest(self.path_args[0].encode(), self.room.token.encode()):
            raise HTTPError(404)

    def get(self, _: str, name: str) -> None:
        if not name:  # typed by hand
            return self.redirect(f"/{self.room.token}/")
        return self.file(STUDENT.get(name[1:] or "student.html"))

    def post(self, _: str, name: str) -> None:
        what, *who = name[1:].split("/")
        if what == "join" and not who:
            return self.answer(self.room.seat)
        seat = int(who[0]) if len(who) == 2 and who[0].isascii() and who[0].isdecimal() and len(who[0]) < 7 else -1
        if what not in ("send", "forget") or not hmac.compare_digest(who[-1].encode(), self.room.key(seat).encode()):
            raise HTTPError(403, reason="This class knows no such seat")
        if what == "send":
            return self.answer(lambda: {"bytes": len(self.room.accept(self.request.body, seat).text)})
        return self.answer(lambda: self.room.forget(seat))


class Teacher(Handler):
    """`/teacher/…`, on this machine alone: the projector's page, and what its buttons do."""

    def prepare(self) -> None:
        super().prepare()
        cookie = f"class-{self.served.port}"
        given = self.get_cookie(cookie, "") or self.get_query_argument("token", "")
        if not hmac.compare_digest(given.encode(), self.served.secret.encode()):
            raise HTTPError(403, reason="Open the address that the terminal shows")
        if not self.get_cookie(cookie):
            self.set_cookie(cookie, given, httponly=True, samesite="Lax", path="/teacher/")

    def get(self, name: str) -> None:
        if self.get_query_argument("token", None):
            return self.redirect("/teacher/")  # a projector shows the address
        if name == "state":
            return self.answer(lambda: self.served.state(self.get_query_argument("since", "")))
        if name == "class.npz":
            return self.answer(self.saved)
        if name.startswith("means/") and name[6:].isdecimal():
            return self.answer(lambda: {"means": self.room.means(int(name[6:]))})
        return self.file(TEACHER.get(name or "teacher.html"), qr=self.served.picture, address=self.served.address[7:-1])

    def post(self, name: str) -> None:
        if name == "load":
            return self.answer(lambda: {"name": self.room.accept(self.request.body).called})
        if name.startswith("forget/") and name[7:].isdecimal():
            return self.answer(lambda: self.room.forget(int(name[7:])))
        raise HTTPError(404)

    def saved(self) -> bytes:
        data = self.room.npz()
        self.set_header("Content-Type", "application/octet-stream")
        self.set_header("Content-Disposition", f'attachment; filename="class-{time.strftime("%Y-%m-%d")}.npz"')
        return data


@dataclass(eq=False)
class Served:
    """A class that can be reached: the students' `address`, the teacher's, and `stop`."""

    room: Room
    lan: str | None = None
    port: int = 0

    def __post_init__(self) -> None:
        self.secret, self.limits, self.known = secrets.token_urlsafe(24), Limits(), None
        for name in ("tornado.access", "tornado.general"):  # a flood of bad requests is no flood of lines
            logging.getLogger(name).setLevel(logging.CRITICAL)
        students = [(r"/([0-9a-f]+)(|/.*)", Student, {"served": self})]
        options = {"default_handler_class": Nowhere, "default_handler_args": {"served": self}}
        limits = {
            "max_body_size": LIMIT,
            "max_header_size": 8192,
            "body_timeout": WAIT,
            "idle_connection_timeout": WAIT,
        }
        own = [(r"/teacher/(.*)", Teacher, {"served": self}), *students]
        self.servers = [Bounded(Application(own, **options), **limits)]
        sockets = bound("127.0.0.1", self.port)
        self.servers[0].add_sockets(sockets)
        self.port = sockets[0].getsockname()[1]
        if self.lan:
            self.servers.append(Bounded(Application(students, **options), **limits))
            self.servers[1].add_sockets(bound(self.lan, self.port))
        self.hosts = {f"{host}:{self.port}" for host in ("127.0.0.1", "localhost", self.lan) if host}
        self.address = f"http://{self.lan or '127.0.0.1'}:{self.port}/{self.room.token}/"
        self.teacher = f"http://127.0.0.1:{self.port}/teacher/?token={self.secret}"
        self.picture = segno.make(self.address, micro=False).svg_inline(omitsize=True, border=2, light="#fff")

    def state(self, since: str = "") -> dict[str, Any]:
        """What the projector shows; without tables where these are those of the version `since`."""
        now = {"version": str(self.room.version), "joined": self.room.joined, "kept": self.room.kept}
        if now["version"] == since:
            return now
        if self.known is None or self.known["version"] != now["version"]:
            self.known = {
                "version": now["version"], "alpha": self.room.alpha, "tests": len(self.room.test[1]),
                "rows": self.room.rows(), "sent": self.room.arrived(),
            }  # fmt: skip
        return self.known | now

    def stop(self) -> None:
        for server in self.servers:
            server.stop()


def bound(address: str, port: int) -> list[socket.socket]:
    """Sockets that listen there; RunError where something else does."""
    try:
        return bind_sockets(port, address, family=socket.AF_INET)
    except OSError as error:
        raise RunError(
            f"The class cannot listen at {address}:{port} ({error.strerror}); choose another --port."
        ) from None


def own_address(given: str = "") -> str:
    """The address of this machine in its local network, or the one that is given; UsageError where there is none."""
    if given:
        try:
            return str(ipaddress.IPv4Address(given))
        except ValueError:
            raise UsageError(
                f"--lan is {given!r}, but must be an address of this machine, such as 192.168.1.5."
            ) from None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: it asks which of its addresses this machine would use
            found = probe.getsockname()[0]
        except OSError:
            found = "127.0.0.1"
    demand(found != "127.0.0.1", "This machine is in no network; connect it, or leave --lan out.")
    return found
