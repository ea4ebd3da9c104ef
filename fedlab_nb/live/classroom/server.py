"""The class's web servers: which requests they answer, and which they refuse.

Two small servers share one `Room`. The first listens on 127.0.0.1. It has the students' page and the
teacher's view, which is protected by a token of its own. The second has only the students' page. It
listens on one address of the local network, and runs only if the teacher asks for it (`--lan`).

Both servers limit the size and the duration of a request, and the connections and requests of one
address. They refuse requests under another host name than their own (`Host`), so that a page from
elsewhere cannot reach them through a browser. What a student sends is data: it is shown as text and
never run.

Results are computed in a separate thread, and only requests that need them wait. So a message may be
acknowledged and shown on the projector before the tables include it.
"""

import asyncio
import errno
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
from typing import Any, Literal, TypedDict, TypeVar, cast

import numpy as np
import segno
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError, RequestHandler

from ...errors import FedlabError, UsageError
from .conductor import STEPS, AccuracyByTitle, CountsWithAndWithoutMessage, StepDescription
from .messages import LIMIT, DigitPixels0To1, MessageDescription, parse_json_object
from .page_file import build_student_page
from .rehearse import make_malicious_message
from .results import ClassResults, CombinationAccuracy
from .room import PhoneDescription, RemovalEffect, Room, SeatDescription, TeacherDigitVotes
from .rounds import PhonesNeededForRounds, RoundReply, RoundsProgress
from .worth import ClassMeanMap

T = TypeVar("T")
SeatAction = Literal["send", "forget", "stay", "look"]

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
    FRONT / "flight_plan.js",
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
# The requests of one address: BURST at once, and then so many a second. The limits are high, since all phones of a
# school may share one address. A phone asks every PAUSE seconds, or less often if there are many phones.
BURST = 1500
REQUESTS_A_SECOND = 150
MAX_ADDRESSES = 1000  # the number of addresses whose requests are counted
PAUSE = 1.5  # seconds between two requests of a phone that asks where the class is
LOOKS_A_SECOND = 40  # the number of such requests of all phones together
MAX_CONNECTIONS = 1200  # open at the same time
MAX_CONNECTIONS_EACH = 400  # of these, from one address
ROUND_WAIT = 2.0  # seconds after which a phone is answered even if no new round has begun
ROUND_LOOK = 0.05  # seconds between two checks whether one has
MAX_PREPARATIONS = 3  # how often results are computed because messages have come meanwhile
# Limits of a request, in bytes and seconds.
REQUEST_LIMITS = {
    "max_body_size": LIMIT,
    "max_header_size": 8192,
    "body_timeout": 20,
    "idle_connection_timeout": 20,
}
# What a person reads who opens a wrong address.
WrongAddressReason = Literal["student", "teacher", "name"]
WRONG_ADDRESS_REASONS: dict[WrongAddressReason, str] = {
    "student": "This class has another address. Scan the code on the projector, or type the eight "
    "letters and figures at the end of the address that stands under it.",
    "teacher": "This is the teacher's projector. Open the second address that the terminal shows: "
    "it has a key that no phone has.",
    "name": "The class does not answer to this name. Type the address exactly as the projector "
    "shows it, figures and all.",
}


class LimitedServer(HTTPServer):
    """Closes connections beyond the limits, in all and from one address."""

    def handle_stream(self, stream: Any, address: tuple) -> None:
        from_same_address = 0
        for connection in self._connections:
            if connection.context.address[0] == address[0]:
                from_same_address += 1
        if from_same_address >= MAX_CONNECTIONS_EACH or len(self._connections) >= MAX_CONNECTIONS:
            stream.close()
            return
        super().handle_stream(stream, address)


class ProjectorTables(TypedDict):
    """The tables that the projector shows.

    rows:        the accuracy of every way of combining the messages
    before:      accuracies before the joker came or somebody was forgotten, by title
    effect:      of the message that was removed last, or None
    explanation: why the tiny rounds came out as they did, "" before their end
    plane:       the means of all students' digits
    """

    rows: list[CombinationAccuracy]
    before: AccuracyByTitle
    effect: CountsWithAndWithoutMessage | None
    explanation: str
    plane: ClassMeanMap


class ProjectorDescription(ProjectorTables, total=False):
    """What the projector shows; the tables only if they are new to it.

    version:  of the tables
    joined:   number of seats that have been assigned
    drawings: number of digits that each phone draws
    kept:     a notice on how messages are kept
    joker:    seat of the joker, or None
    seats:    what is shown of each seat
    need:     who has to stay for the tiny rounds
    stage:    the present step
    steps:    name, title and minutes of all steps
    votes:    on the teacher's digit, or None
    rounds:   where the tiny rounds are, or None
    sent:     all messages, only if some are new to the projector
    """

    version: str
    joined: int
    drawings: int
    kept: str
    joker: int | None
    seats: list[SeatDescription]
    need: PhonesNeededForRounds
    stage: StepDescription
    steps: list[dict[str, Any]]
    votes: TeacherDigitVotes | None
    rounds: RoundsProgress | None
    sent: list[MessageDescription]


class SentMessageReceipt(TypedDict):
    """The answer to a phone whose message was accepted."""

    bytes: int


class CarriedMessageReceipt(TypedDict):
    """The answer to the teacher who has loaded a message from a file."""

    name: str


class ForgottenMessage(TypedDict):
    """The answer to a phone whose message was removed, and what that changed, if it is shown."""

    forgotten: bool
    effect: RemovalEffect | None


# ----------------------------------------------------------------------------------------- requests
class ClassRequestHandler(RequestHandler):
    """What all pages share: their headers, and which requests are refused.

    server:     the class's servers
    files:      the files that it serves; the first one also under an empty name
    is_limited: whether the number of requests of one address is limited
    open_paths: the paths that are answered to everybody
    """

    is_limited = True
    open_paths: tuple[str, ...] = ()

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
        self._refuse_foreign_or_too_frequent_request()

    def _refuse_foreign_or_too_frequent_request(self) -> None:
        """Raise HTTPError 403 for another host or page, 429 for too many requests, 404 if not allowed."""
        origins = [f"http://{host}" for host in self.server.hosts]
        if f"http://{self.request.host}" not in origins:
            raise HTTPError(403, reason="Asked by another name")
        if self.request.headers.get("Origin", origins[0]) not in origins:
            raise HTTPError(403, reason="Asked from another page")
        if self.is_limited and not self.server.spend_one_request_if_allowed(self.request.remote_ip):
            raise HTTPError(429)
        if not self.is_request_allowed(*self.path_args):
            raise HTTPError(404, reason="There is nothing here; open the address of the class anew")

    def is_request_allowed(self, *path_parts: str) -> bool:
        """Whether this request is answered: its path is open to everybody, or its sender has shown that
        they belong to the class."""
        return self.request.path in self.open_paths

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
            self.finish(make_wrong_address_page(self.choose_wrong_address_reason()))
            return
        self.finish({"error": f"{self._reason} ({status_code})."})

    def choose_wrong_address_reason(self) -> WrongAddressReason:
        """Choose the key of the sentence in WRONG_ADDRESS_REASONS that helps."""
        if self.request.host not in self.server.hosts:
            return "name"
        if self.request.path.startswith("/teacher"):
            return "teacher"
        return "student"

    def send_page_file(self, file_name: str) -> None:
        """Send one of the files; @address@ and @qr@ in it are replaced by address and QR code."""
        if file_name not in self.files:
            raise HTTPError(404)
        path = self.files[file_name]
        address = self.server.address.removeprefix("http://").removesuffix("/")
        text = path.read_text("utf-8")
        text = text.replace("@qr@", self.server.qr_code)
        text = text.replace("@address@", address)
        self.set_header("Content-Type", f"{MEDIA_TYPES[path.suffix]}; charset=utf-8")
        self.write(text)


def make_wrong_address_page(reason: WrongAddressReason) -> str:
    """Make the page for a wrong address. It says where the class is, and has a field for the letters at
    the end of the class's address."""
    text = (HERE / "lost.html").read_text("utf-8")
    return text.replace("@reason@", html.escape(WRONG_ADDRESS_REASONS[reason]))


class WrongAddressHandler(ClassRequestHandler):
    """All other addresses, which have the page for a wrong address.

    `/class.css` is the style of that page. `/find?code=…` leads from the letters of the class's
    address to the class.
    """

    open_paths = ("/class.css", "/find")

    def get(self) -> None:
        if self.request.path == "/class.css":
            self.set_header("Content-Type", "text/css; charset=utf-8")
            self.write((HERE / "class.css").read_text("utf-8"))
            return
        typed = self.get_query_argument("code", "").strip().strip("/")
        code = typed.rsplit("/", 1)[-1].lower()  # somebody may have typed the whole address
        if hmac.compare_digest(code.encode(), self.room.about["token"].encode()):
            self.redirect(f"/{code}/")
            return
        raise HTTPError(404)


class StudentHandler(ClassRequestHandler):
    """`/TOKEN/…`: the students' page, its files, and its actions."""

    def is_request_allowed(self, token: str, *_: str) -> bool:
        return hmac.compare_digest(token, self.room.about["token"])

    def get(self, token: str, slash_and_file_name: str) -> None:
        if slash_and_file_name:
            self.send_page_file(slash_and_file_name[1:])
        else:
            self.redirect(f"/{token}/")  # an address that was typed without the last slash

    async def post(self, _unused_token: str, action_path: str) -> None:
        if action_path == "/join":
            self.write(self.room.assign_next_seat())
            return
        action, seat = self.read_action_and_seat(action_path)
        actions = {
            "send": self.accept_sent_message,
            "forget": self.forget_message,
            "stay": self.take_round_answer_and_wait_for_next,
            "look": self.store_phone_report_and_describe_class,
        }
        self.write(await actions[action](seat))

    def read_action_and_seat(self, action_path: str) -> tuple[SeatAction, int]:
        """Read the action and the seat of a request, and check the seat's key."""
        refusal = HTTPError(403, reason="This class knows no such seat; open its address anew")
        parts = re.fullmatch(r"/(send|forget|stay|look)/([0-9]{1,6})/([0-9a-f]{24})", action_path)
        if parts is None:
            raise refusal
        action = cast(SeatAction, parts[1])
        seat = int(parts[2])
        key = parts[3]
        if not hmac.compare_digest(key, self.room.compute_secret_key_of_seat(seat)):
            raise refusal
        return action, seat

    async def accept_sent_message(self, seat: int) -> SentMessageReceipt:
        """Accept a phone's message, and say how many bytes it has; UsageError if it is invalid."""
        message = self.room.accept_message(self.request.body, seat)
        await asyncio.to_thread(self.room.sync_file_to_disk)  # what is acknowledged is never lost
        return {"bytes": message.size}

    async def forget_message(self, seat: int) -> ForgottenMessage:
        effect = await self.server.forget_message(seat)
        if not self.room.conductor.is_result_shown("reveal"):
            effect = None
        return {"forgotten": True, "effect": effect}

    async def store_phone_report_and_describe_class(self, seat: int) -> PhoneDescription:
        """Store what a phone reports, and describe the class for it.

        The phone reports how many digits it has drawn, and its guess. UsageError if the number is invalid.
        """
        given = parse_json_object(self.request.body)
        drawn = given.get("drawn", 0)
        guess = given.get("guess")
        if not isinstance(drawn, int) or isinstance(drawn, bool):
            raise UsageError("“drawn” is a whole number: how many digits the phone has drawn.")
        self.room.note_phone_presence(seat, max(0, min(drawn, self.room.about["drawings"])))
        if isinstance(guess, dict):
            with suppress(UsageError):  # the result has just been shown, as the description says
                self.room.store_guess(seat, guess.get("step"), guess.get("choice"))
        results = await self.server.get_results_with_contribution_if_shown(seat)
        description = self.room.describe_for_phone(seat, results)
        description["pause"] = max(PAUSE, len(self.room.present) / LOOKS_A_SECOND)
        return description

    async def take_round_answer_and_wait_for_next(self, seat: int) -> RoundReply:
        """Take the answer of a phone that stays, and tell it what it needs for the next round.

        The reply is sent at once if something in it is new to the phone, else when the next round
        begins, or after ROUND_WAIT seconds.
        """
        body = self.request.body
        begun = time.monotonic()
        reply = self.room.handle_round_request(seat, body, begun)
        known_round = parse_json_object(body).get("round")
        while not reply or (reply["round"] == known_round and "networks" not in reply):
            if time.monotonic() - begun > ROUND_WAIT or seat not in self.room.messages:
                break
            await asyncio.sleep(ROUND_LOOK)
            rounds = self.room.rounds
            if rounds is None:
                continue
            if rounds.round != known_round or not reply:
                reply = self.room.handle_round_request(seat, b"{}", time.monotonic())
            else:
                self.room.end_round_if_due(time.monotonic())
        return reply


class TeacherHandler(ClassRequestHandler):
    """`/teacher/…`, on this machine alone: the projector's page, and what its buttons do."""

    # Phones may come from this machine's address, too: they must not stop the projector.
    is_limited = False

    def is_request_allowed(self, *_: str) -> bool:
        cookie = f"class-{self.server.port}"
        given = self.get_cookie(cookie) or self.get_query_argument("token", "")
        if not hmac.compare_digest(given.encode(), self.server.secret.encode()):
            raise HTTPError(403, reason="Open the address that the terminal shows")
        self.set_cookie(cookie, given, httponly=True, samesite="Lax", path="/teacher/")
        return True

    async def get(self, page_or_file_name: str, _unused: str | None) -> None:
        if self.get_query_argument("token", None):
            self.redirect("/teacher/")  # everybody can read the address on a projector
        elif page_or_file_name == "state":
            self.write(self.server.describe_for_projector(self.get_query_argument("since", "")))
        elif page_or_file_name == "class.npz":
            content = await self.server.run_in_results_thread(pack_class_as_npz, self.room)
            self.send_as_download(f"class-{date.today()}.npz", content)
        elif page_or_file_name == "student.html":
            page = await self.server.run_in_results_thread(build_student_page, self.room)
            self.send_as_download("student.html", page)
        else:
            self.send_page_file(page_or_file_name)

    def send_as_download(self, file_name: str, file_content: str | bytes) -> None:
        self.set_header("Content-Type", "application/octet-stream")
        self.set_header("Content-Disposition", f'attachment; filename="{file_name}"')
        self.write(file_content)

    async def post(self, action_name: str, action_argument: str | None) -> None:
        actions = {
            "load": self.accept_carried_message,
            "step": self.begin_step,
            "show": self.show_result,
            "cover": self.hide_result_and_discard_guesses,
            "rounds": self.start_fens_rounds,
            "again": self.discard_fens_rounds,
            "joker": self.add_or_remove_malicious_message,
            "draw": self.set_teacher_digit,
            "clear": self.clear_teacher_digit,
            "forget": self.forget_message,
        }
        if action_name not in actions:
            raise HTTPError(404)
        async with self.server.teacher_lock:  # one action after the other
            answer = await actions[action_name](action_argument or "")
        if not answer:
            answer = self.server.describe_for_projector(str(self.server.version))
        self.write(answer)

    async def accept_carried_message(self, _unused: str) -> CarriedMessageReceipt:
        """Accept a message that came as a file, and say whose it is; UsageError if it is invalid."""
        message = self.room.accept_message(self.request.body)
        await asyncio.to_thread(self.room.sync_file_to_disk)
        return {"name": message.office_and_nickname}

    async def begin_step(self, step_name: str) -> None:
        self.room.conductor.begin_step(step_name, self.room.clock())
        self.room.append_progress_to_file()

    async def show_result(self, _unused: str) -> None:
        await self.server.wait_until_results_are_current()
        self.room.conductor.show_result()
        self.room.append_progress_to_file()

    async def hide_result_and_discard_guesses(self, _unused: str) -> None:
        self.room.conductor.hide_result_and_discard_guesses()
        self.room.append_progress_to_file()

    async def start_fens_rounds(self, _unused: str) -> None:
        self.room.start_fens_rounds()

    async def discard_fens_rounds(self, _unused: str) -> None:
        self.room.discard_fens_rounds()
        self.room.append_progress_to_file()

    async def add_or_remove_malicious_message(self, direction: str) -> None:
        """Let the joker send its message, or remove it with "out"; doing either twice changes nothing."""
        room = self.room
        if direction == "out":
            if room.joker is not None:
                await self.server.compute_results_ahead_in_thread(
                    lambda results: results.measure_loss_without_message(room.joker)
                )
                room.remove_malicious_message()
        elif room.joker is None:
            await self.server.compute_results_ahead_in_thread(ClassResults.get_test_accuracies)
            seat = room.assign_next_seat()["seat"]
            text = await self.server.run_in_results_thread(
                make_malicious_message, room.about["seed"], seat
            )
            room.add_malicious_message(text, seat)
        await self.server.wait_until_results_are_current()

    async def set_teacher_digit(self, _unused: str) -> None:
        """Set the teacher's digit; the result is covered until the teacher tells which digit it is."""
        given = parse_json_object(self.request.body)
        label = given.get("label")
        self.room.set_teacher_digit(given.get("image") or [], label)
        await self.server.wait_until_results_are_current()
        if label is None:
            self.room.conductor.hide_result_and_discard_guesses("digit")
        else:
            self.room.conductor.show_result("digit")

    async def clear_teacher_digit(self, _unused: str) -> None:
        self.room.clear_teacher_digit()

    async def forget_message(self, seat_number_text: str) -> None:
        if seat_number_text.isdecimal():
            await self.server.forget_message(int(seat_number_text))
            await self.server.wait_until_results_are_current()


def pack_class_as_npz(room: Room) -> bytes:
    """Pack the class as a data set, as the bytes of an `.npz` file."""
    file = io.BytesIO()
    np.savez_compressed(file, **room.make_arrays_of_class_dataset())
    return file.getvalue()


# --------------------------------------------------------------------------------------- the server
def bind_to_one_port(addresses: list[str], port_or_0_for_any: int = 0) -> list[socket.socket]:
    """Open a listening socket at each of these addresses of this machine, all at the same port.

    port_or_0_for_any: a port that is free at the first address may be taken at another one, so
        up to 20 ports are tried.
    Raises OSError if the given port, or each that was tried, is taken at one of the addresses.
    """
    attempts = 20 if port_or_0_for_any == 0 else 1
    while True:
        sockets: list[socket.socket] = []
        attempts -= 1
        try:
            for address in addresses:
                same_port = sockets[0].getsockname()[1] if sockets else port_or_0_for_any
                sockets += bind_sockets(same_port, address, family=socket.AF_INET)
            return sockets
        except OSError as error:
            for bound in sockets:
                bound.close()
            if error.errno != errno.EADDRINUSE or attempts == 0:
                raise


class ClassServer:
    """The servers of a class.

    lan:  an address of this machine at which students can reach it, or None
    port: 0 for any free port

    Its `address` is the URL for students, `teacher` the URL for the projector. Raises OSError if it
    cannot listen.
    """

    def __init__(self, room: Room, lan: str | None = None, port: int = 0) -> None:
        sockets = bind_to_one_port(["127.0.0.1", lan] if lan else ["127.0.0.1"], port)
        self.port = sockets[0].getsockname()[1]
        self.room = room
        self.secret = secrets.token_urlsafe(24)
        self.teacher_lock = asyncio.Lock()
        # By address: the number of requests that are left, and when this was computed (seconds).
        self.allowances: dict[str, tuple[float, float]] = {}
        # The results that were computed last, and the version of the room then. The room's own results may be newer.
        self.results = ClassResults(())
        self.version = 0
        self.tables = compute_projector_tables(self.results, None)
        self.thread = ThreadPoolExecutor(1, "results")
        self.update: asyncio.Task | None = None  # the task that computes newer results
        self.rest_end = 0.0  # when the next such task may begin (seconds)
        for name in ("tornado.access", "tornado.general"):  # bad requests must not flood the log
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self.servers: list[LimitedServer] = []
        self.serve_pages_at_socket(sockets[0], includes_teacher_pages=True)
        if lan:
            self.serve_pages_at_socket(sockets[1], includes_teacher_pages=False)
        names = ["127.0.0.1", "localhost"]
        if lan:
            names.append(lan)
        self.hosts = [f"{name}:{self.port}" for name in names]
        self.address = f"http://{lan or '127.0.0.1'}:{self.port}/{room.about['token']}/"
        self.teacher = f"http://127.0.0.1:{self.port}/teacher/?token={self.secret}"
        code = segno.make(self.address, micro=False)
        self.qr_code = code.svg_inline(omitsize=True, border=2, light="#fff")

    def serve_pages_at_socket(
        self, listening_socket: socket.socket, includes_teacher_pages: bool
    ) -> None:
        """Answer requests at this socket.

        includes_teacher_pages: whether the teacher's pages are served, too
        """
        arguments = {"server": self}
        student_arguments = {"server": self, "files": STUDENT_FILES}
        teacher_arguments = {"server": self, "files": TEACHER_FILES}
        routes: list[tuple] = []
        if includes_teacher_pages:
            teacher_path = r"/teacher/([\w.]*)(?:/(\w{1,12}))?"
            routes.append((teacher_path, TeacherHandler, teacher_arguments))
        routes.append((r"/([0-9a-f]{8})(|/.*)", StudentHandler, student_arguments))
        routes.append((r"/(?:class\.css|find)?", WrongAddressHandler, arguments))
        application = Application(
            routes, default_handler_class=ClassRequestHandler, default_handler_args=arguments
        )
        server = LimitedServer(application, **REQUEST_LIMITS)
        server.add_socket(listening_socket)
        self.servers.append(server)

    def stop(self) -> None:
        """Stop listening, and cancel what has not been computed yet."""
        for server in self.servers:
            server.stop()
        self.thread.shutdown(wait=False, cancel_futures=True)

    def spend_one_request_if_allowed(self, client_address: str) -> bool:
        """Spend one request of an address's allowance; returns whether there was one left.

        The allowance is BURST requests, and refills by REQUESTS_A_SECOND.
        """
        now = time.monotonic()
        allowance, last_time = self.allowances.pop(client_address, (BURST, now))
        allowance = min(BURST, allowance + (now - last_time) * REQUESTS_A_SECOND)
        self.allowances[client_address] = (max(0, allowance - 1), now)
        if len(self.allowances) > MAX_ADDRESSES:
            self.allowances.pop(next(iter(self.allowances)))
        return allowance >= 1

    # -------------------------------------------------------------------------------------- results
    async def run_in_results_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run `function(*arguments)` in the thread for results; other requests are answered meanwhile."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.thread, function, *arguments)

    def start_updating_results_unless_running(self) -> asyncio.Task:
        """Start to compute the results of the present class, unless results are being computed."""
        if self.update is None or self.update.done():
            self.update = asyncio.create_task(self._update_results())
        return self.update

    async def _update_results(self) -> None:
        # The room may change while the tables are computed, so this takes what it has now.
        results = self.room.results
        version = self.room.version
        drawing = self.room.drawing
        image = tuple(drawing["image"]) if drawing else None
        begun = time.monotonic()
        try:
            tables = await self.run_in_results_thread(compute_projector_tables, results, image)
        finally:
            # The rest is as long as the computation, so that a slow computer has time for phones, too.
            ended = time.monotonic()
            self.rest_end = ended + (ended - begun)
        self.results = results
        self.version = version
        self.tables = tables

    async def wait_until_results_are_current(self) -> None:
        """Wait until the results include everything that the class has now."""
        version = self.room.version
        while self.version < version:
            await asyncio.shield(self.start_updating_results_unless_running())

    async def compute_results_ahead_in_thread(
        self, compute_from_results: Callable[[ClassResults], Any]
    ) -> None:
        """Compute something of the class's results in the thread, which caches it: the next request for it
        need not wait."""
        for _ in range(MAX_PREPARATIONS):
            results = self.room.results
            await self.run_in_results_thread(compute_from_results, results)
            if results is self.room.results:
                return

    async def get_results_with_contribution_if_shown(self, seat: int) -> ClassResults:
        """Compute what this seat's message adds, if it has sent one and this is shown; returns the
        results."""
        results = self.results
        is_shown = self.room.conductor.is_result_shown("reveal")
        if (
            is_shown
            and results.find_message_of_seat(seat)
            and not results.has_measured_contribution(seat)
        ):
            await self.run_in_results_thread(results.measure_contribution, seat)
        return results

    async def forget_message(self, seat: int) -> RemovalEffect | None:
        """Remove the message of a seat, see `Room.forget_message`."""

        def measure(results: ClassResults) -> None:
            if results.find_message_of_seat(seat):
                results.measure_loss_without_message(seat)
                results.get_test_accuracies()

        await self.compute_results_ahead_in_thread(measure)
        return self.room.forget_message(seat)

    def describe_for_projector(self, known_tables_version: str = "") -> ProjectorDescription:
        """Describe what the projector shows.

        known_tables_version: the version of the tables that the projector has; these are left out

        If something has changed, new tables are computed, after a rest as long as the last computation.
        """
        room = self.room
        if room.version != self.version and time.monotonic() >= self.rest_end:
            self.start_updating_results_unless_running()
        stage = room.conductor.describe_present_step(room.clock())
        if "question" in stage and stage["is_shown"]:
            stage["question"]["answer"] = room.find_right_option_index_of_present_step(self.results)
        description: ProjectorDescription = {
            "version": str(self.version),
            "joined": room.joined,
            "drawings": room.about["drawings"],
            "kept": room.storage_notice,
            "joker": room.joker,
            "seats": room.describe_seats_for_projector(),
            "need": room.describe_phones_needed_for_rounds(
                self.results.measure_relative_logit_sizes()
            ),
            "stage": stage,
            "steps": [{"name": s.name, "title": s.title, "minutes": s.minutes} for s in STEPS],
            "votes": room.collect_votes_on_teacher_digit(self.results),
            "rounds": room.rounds.describe_progress() if room.rounds else None,
        }
        has_new_tables = known_tables_version != str(self.version)
        if has_new_tables:
            description |= self.tables
        if has_new_tables or room.version != self.version:  # messages do not wait for tables
            description["sent"] = room.describe_messages_for_projector()
        return description


def compute_projector_tables(
    results: ClassResults, teacher_digit_or_none: DigitPixels0To1 | None
) -> ProjectorTables:
    """Compute the tables that the projector shows of these results.

    The sizes of logits and the votes on the teacher's digit `teacher_digit_or_none` are computed and cached as well.
    """
    results.measure_relative_logit_sizes()
    if teacher_digit_or_none is not None:
        results.collect_votes_on_image(teacher_digit_or_none)
    return {
        "rows": results.measure_combination_accuracies(),
        "before": results.before,
        "effect": results.effect,
        "explanation": results.explain_result_of_fens_rounds(),
        "plane": results.project_class_means_into_plane(),
    }


def find_lan_address(given_address_or_empty: str = "") -> str:
    """Return the given address, or if it is "" find the address of this machine in its local network.

    UsageError if the machine is in no network.
    """
    if not given_address_or_empty:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
            # This sends nothing: it asks which of its addresses this machine would use.
            probe.connect(("192.0.2.1", 9))
            given_address_or_empty = probe.getsockname()[0]
    if given_address_or_empty in ("", "127.0.0.1"):
        raise UsageError("This machine is in no network; connect it, or leave --lan out.")
    return given_address_or_empty
