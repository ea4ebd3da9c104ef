"""What answers on the network, and what does not.

Two small servers share one `Room`. One listens on 127.0.0.1: the teacher's view, behind a token of its own, and the
students' page. The other listens on one address of the local network, only where the teacher asks for it (`--lan`), and
has the students' page alone. Both have tornado's limits for the size of a request and for waiting, a limit for the
connections and the requests of one address, and refuse other names than their own (`Host`), so that no page from
elsewhere can speak through a browser. What a student says is data: it is shown as text, and never run.
"""

import hmac
import io
import logging
import re
import secrets
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import segno
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError, RequestHandler

from ...errors import FedlabError, demand
from ...front import HERE as FRONT
from .messages import LIMIT
from .room import Room, plane

HERE = Path(__file__).parent
PAGE = HERE.parent / "page"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
SHARED = (HERE / "class.css", FRONT / "dom.js", FRONT / "text.js", FRONT / "pen.js")
STUDENT = (HERE / "student.html", HERE / "student.js", PAGE / "learn.js", PAGE / "sums.js", *SHARED)
TEACHER = (HERE / "teacher.html", HERE / "teacher.js", *SHARED)
SAFE = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Server": "fedlab-nb",
}
BURST, PER_SECOND = (
    900,
    90,
)  # requests of one address: at once, and then in a second; a phone needs about eight in all
CONNECTIONS, OF_ONE = (
    1200,
    400,
)  # at once: in all, and from one address (a school may have one address for all phones)
REMEMBERED = 1000  # addresses whose requests are counted
# Of a request: bytes of its body and of its first lines, and seconds for it to arrive.
SIZES = {
    "max_body_size": LIMIT,
    "max_header_size": 8192,
    "body_timeout": 20,
    "idle_connection_timeout": 20,
}


class Bounded(HTTPServer):
    """Closes a connection that is one too many."""

    def handle_stream(self, stream: Any, address: tuple) -> None:
        same = sum(other.context.address[0] == address[0] for other in self._connections)
        few = same < OF_ONE and len(self._connections) < CONNECTIONS
        return super().handle_stream(stream, address) if few else stream.close()


class Handler(RequestHandler):
    """What all pages share: their headers, and who is refused. `files`: that it has, the first one under no name."""

    def initialize(self, served: "Served", files: Sequence[Path] = ()) -> None:
        self.served, self.room = served, served.room
        self.files = {path.name: path for path in files} | dict(zip([""], files, strict=False))

    def set_default_headers(self) -> None:
        for name, value in SAFE.items():
            self.set_header(name, value)

    def prepare(self) -> None:
        ours = [f"http://{host}" for host in self.served.hosts]
        if not {f"http://{self.request.host}", self.request.headers.get("Origin", ours[0])} <= {
            *ours
        }:
            raise HTTPError(403, reason="Asked by another name, or from another page")
        if not self.served.allows(self.request.remote_ip):
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
        known = isinstance(exc_info[1], FedlabError)
        self.set_status(400 if known else status_code)
        self.finish({"error": str(exc_info[1]) if known else f"{self._reason} ({status_code})."})

    def file(self, name: str) -> None:
        """One of the files, with address and QR code where their names stand between two @."""
        if name not in self.files:
            raise HTTPError(404)
        text = self.files[name].read_text("utf-8").replace("@qr@", self.served.picture)
        self.set_header("Content-Type", f"{TYPES[self.files[name].suffix]}; charset=utf-8")
        self.write(text.replace("@address@", self.served.address[len("http://") : -1]))


class Student(Handler):
    """`/TOKEN/…`: the page and its files; joining, sending, and being forgotten."""

    def knows(self, token: str, *_: str) -> bool:
        return hmac.compare_digest(token, self.room.about["token"])

    def get(self, token: str, name: str) -> None:
        return self.file(name[1:]) if name else self.redirect(f"/{token}/")  # typed by hand

    def post(self, _: str, name: str) -> None:
        if name == "/join":
            return self.write(self.room.seat())
        asked = re.fullmatch(r"/(send|forget|stay)/([0-9]{1,6})/([0-9a-f]{24})", name)
        if not asked or not hmac.compare_digest(asked[3], self.room.key(int(asked[2]))):
            raise HTTPError(403, reason="This class knows no such seat; open its address anew")
        if asked[1] == "forget":
            return self.write({"forgotten": self.room.forget(int(asked[2]))})
        if asked[1] == "stay":
            return self.write(self.room.stay(int(asked[2]), self.request.body, time.monotonic()))
        return self.write({"bytes": len(self.room.accept(self.request.body, int(asked[2])).text)})


class Teacher(Handler):
    """`/teacher/…`, on this machine alone: the projector's page, and what its buttons do."""

    def knows(self, *_: str) -> bool:
        cookie = f"class-{self.served.port}"
        given = self.get_cookie(cookie) or self.get_query_argument("token", "")
        if not hmac.compare_digest(given.encode(), self.served.secret.encode()):
            raise HTTPError(403, reason="Open the address that the terminal shows")
        self.set_cookie(cookie, given, httponly=True, samesite="Lax", path="/teacher/")
        return True

    def get(self, name: str, _: str | None) -> None:
        if self.get_query_argument("token", None):
            return self.redirect("/teacher/")  # a projector shows the address
        if name == "state":
            return self.write(self.served.state(self.get_query_argument("since", "")))
        if name == "class.npz":
            np.savez_compressed(saved := io.BytesIO(), **self.room.arrays())
            self.set_header("Content-Type", "application/octet-stream")
            self.set_header(
                "Content-Disposition", f'attachment; filename="class-{date.today()}.npz"'
            )
            return self.write(saved.getvalue())
        return self.file(name)

    def post(self, name: str, seat: str | None) -> None:
        if name == "load":
            return self.write({"name": self.room.accept(self.request.body).name})
        if name == "rounds":
            return self.write({"started": self.room.start()})
        return self.write({"forgotten": self.room.forget(int(seat or -1))})


class Served:
    """A class that can be reached: `address` for students, `teacher` for the projector.

    lan: an address of this machine, where students can reach it, or None;   port: 0 for any that is free. OSError where
    it cannot listen.
    """

    def __init__(self, room: Room, lan: str | None = None, port: int = 0) -> None:
        self.room, self.secret, self.port = room, secrets.token_urlsafe(24), port
        self.left: dict[str, tuple[float, float]] = {}
        self.known: dict[str, Any] = {}
        self.rested = 0.0
        for name in (
            "tornado.access",
            "tornado.general",
        ):  # a flood of bad requests is no flood of lines
            logging.getLogger(name).setLevel(logging.CRITICAL)
        students = [(r"/([0-9a-f]+)(|/.*)", Student, {"served": self, "files": STUDENT})]
        own = [
            (r"/teacher/([\w.]*)(?:/([0-9]{1,6}))?", Teacher, {"served": self, "files": TEACHER})
        ]
        self.servers = []
        for address, routes in {
            "127.0.0.1": own + students,
            **({lan: students} if lan else {}),
        }.items():
            pages = Application(
                routes, default_handler_class=Handler, default_handler_args={"served": self}
            )
            sockets = bind_sockets(self.port, address, family=socket.AF_INET)
            self.servers.append(Bounded(pages, **SIZES))
            self.servers[-1].add_sockets(sockets)
            self.port = sockets[0].getsockname()[1]
        self.hosts = [f"{host}:{self.port}" for host in ("127.0.0.1", "localhost", lan) if host]
        self.address = f"http://{lan or '127.0.0.1'}:{self.port}/{room.about['token']}/"
        self.teacher = f"http://127.0.0.1:{self.port}/teacher/?token={self.secret}"
        self.picture = segno.make(self.address, micro=False).svg_inline(
            omitsize=True, border=2, light="#fff"
        )

    def allows(self, address: str) -> bool:
        """Whether this address may make another request: its bucket of BURST fills again by PER_SECOND."""
        now = time.monotonic()
        left, then = self.left.pop(address, (BURST, now))
        left = min(BURST, left + (now - then) * PER_SECOND)
        self.left[address] = max(0, left - 1), now
        if len(self.left) > REMEMBERED:
            self.left.pop(next(iter(self.left)))
        return left >= 1

    def state(self, since: str = "") -> dict[str, Any]:
        """What the projector shows; without tables where these are those of the version `since`. They are made where
        something is new, and after as long a rest, so that phones have an answer meanwhile."""
        room, begun = self.room, time.monotonic()
        if str(room.version) != self.known.get("version") and begun >= self.rested:
            rounds = room.rounds.about() if room.rounds else None
            self.known = {
                "version": str(room.version),
                "rows": room.rows(),
                "sent": room.sent(),
                "rounds": rounds,
            }
            self.known["plane"] = plane(room.messages.values())
            self.rested = 2 * time.monotonic() - begun
        now = {"joined": room.joined, "kept": room.kept}
        return now | ({"version": since} if since == self.known["version"] else self.known)


def own_address(given: str = "") -> str:
    """The address of this machine in its local network, or the one that is given; UsageError where there is none."""
    if not given:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
            probe.connect(
                ("192.0.2.1", 9)
            )  # sends nothing: it asks which of its addresses this machine would use
            given = probe.getsockname()[0]
    demand(
        given not in ("", "127.0.0.1"),
        "This machine is in no network; connect it, or leave --lan out.",
    )
    return given
