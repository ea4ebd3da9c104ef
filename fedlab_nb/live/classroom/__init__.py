"""The class is the federation: `fedlab-nb class`.

Students draw digits on their phones, each phone sends one message, and the projector shows the results.

    messages.py    the one message: its form and its checks
    room.py        seats, messages, what is kept, what each screen is told
    conductor.py   the steps of the lesson, the question before each result, the guesses
    journal.py     the file of `--keep`
    worth.py       every way to combine messages, and what one message adds
    results.py     the results of the present messages, each computed once, in a thread
    rounds.py      the tiny rounds with the phones that stay
    rehearse.py    simulated students, and the teacher's joker
    server.py      the web servers
    page_file.py   the students' page as one file
    expected.py    the results of ten rehearsals of the lesson, for the guide

The web pages lie beside them:

    student.html   with student.js, message.js, recover.js and office.js; and with dom.js, text.js and
                   pen.js of `front/`, learn.js and sums.js of `live/page/`
    teacher.html   with teacher.js, wall.js, side.js, dialogs.js and sentences.js; and with bars.js,
                   flight_plan.js and layout.js of `front/`
    lost.html      for a wrong address

The server listens on 127.0.0.1 alone, unless the teacher asks for more. No file is written unless
the teacher asks, or the class is ended where nobody can be asked.
"""

import asyncio
import errno
import json
import signal
import socket
import sys
import tempfile
import threading
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import torch

from ...errors import UsageError, check_whole_number, parse_if_number
from ...files import check_replaceable, expand_path, write_file
from ...jupyter import can_open_graphical_browser
from ...value_types import ExitCode
from ...voila import open_address_through_private_file
from .messages import Message, parse_message
from .page_file import build_student_page
from .rehearse import simulate_students_until_cancelled
from .room import Room
from .server import ClassServer, find_lan_address, pack_class_as_npz

FIRST_PORT = 8123
PORTS = 50  # number of ports that are tried, one after the other
REMINDERS = {
    "phones": (
        "A phone that cannot reach it needs a Wi-Fi that lets devices talk: the hotspot "
        "of this computer or of a phone; or carry its message by hand (H on the "
        "projector says how)."
    ),
    "alone": "Only this computer can reach it. For phones, end this and start it with --lan.",
}
ENDINGS = {
    "memory": (
        "Ctrl-C ends the class, and asks what is to become of the messages. Where nobody "
        "can be asked, those that may be saved are written to class-DATE.npz in this "
        "folder."
    ),
    "file": "Ctrl-C ends the class.",
}
ONLY_REHEARSED = "Nobody but simulated students has sent: nothing is asked, and nothing is saved."
QUESTION = (
    "Only in this computer's memory: {count}, of which {allowed} may be saved.\ns = save "
    "these and end   f = forget all and end   Enter = go on with the class: "
)


def run_class_until_interrupted(
    lan_address_or_empty_to_find: str | None,
    port: int | str | None,
    messages_file_or_empty_for_dated: str | None,
    simulated_student_count: int | str,
    opens_browser: bool,
    **room_options: float | str,
) -> ExitCode:
    """Run the class until Ctrl-C, and return the exit code.

    lan_address_or_empty_to_find: the address of this machine at which phones reach it; "": find it;
        None: only this machine can reach the class
    port: where the server listens; None: the port in the messages file, if the class continues from
        one, else the first free port
    messages_file_or_empty_for_dated: the file that messages are kept in; "": class-DATE.jsonl; None:
        no file
    simulated_student_count: how many simulated students come
    room_options: alpha, drawings and seed of the `Room`

    Raises OSError if the server cannot listen, or if the messages file cannot be written.
    """
    if port is not None:
        port = check_whole_number("port", parse_if_number(port), 0, 65535)
    count = check_whole_number("rehearse", parse_if_number(simulated_student_count), 0, 300)
    file = (
        None
        if messages_file_or_empty_for_dated is None
        else choose_file_to_keep_messages(messages_file_or_empty_for_dated)
    )
    room = Room(**room_options, file=file)
    address = (
        None
        if lan_address_or_empty_to_find is None
        else find_lan_address(lan_address_or_empty_to_find)
    )
    # The networks are tiny: threads that wait for each other take ten times as long.
    torch.set_num_threads(1)
    try:
        asyncio.run(
            run_class_until_ended(
                room, address, port, count, opens_browser and can_open_graphical_browser()
            )
        )
    except KeyboardInterrupt:  # on Windows, where an event loop handles no signals
        if room.has_real_messages and not room.journal:
            print(save_class_and_describe_success_or_failure(room))
    print("The class has ended.")
    if room.journal:
        print(room.storage_notice, flush=True)
    return 0


def choose_file_to_keep_messages(requested_path_or_empty: str) -> Path:
    """Choose the file to keep messages in: the requested one, or if it is "" the first free name of today.

    A file is free unless a running class keeps its messages there. Raises UsageError if the requested
    one is not free.
    """
    if requested_path_or_empty:
        file = expand_path(requested_path_or_empty)
        port = read_port_from_class_file(file)
        if port is not None and is_local_server_listening(port):
            raise UsageError(
                f"{file} belongs to a class that is running at port {port}; name another "
                "one with --keep FILE."
            )
        return file
    number = 1
    while True:
        suffix = "" if number == 1 else f"-{number}"
        file = expand_path(f"class-{date.today()}{suffix}.jsonl")
        port = read_port_from_class_file(file)
        if port is None or not is_local_server_listening(port):
            return file
        number += 1


def read_port_from_class_file(class_file: Path) -> int | None:
    """Read the port of the class that keeps its messages in this file; None if there is none."""
    try:
        with class_file.open(encoding="utf-8") as lines:
            port = json.loads(lines.readline()).get("port")
    except (OSError, ValueError, AttributeError):
        return None
    return port if isinstance(port, int) else None


def is_local_server_listening(port: int) -> bool:
    """Whether a server answers at this port of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=0.5).close()
    except OSError:
        return False
    return True


def start_server(
    room: Room, lan_address: str | None, port_or_none_to_choose: int | None
) -> ClassServer:
    """Start the class's servers.

    port_or_none_to_choose: None: the port that the class had before, else the first free port from
        FIRST_PORT on

    Raises OSError if they cannot listen.
    """
    if port_or_none_to_choose is None:
        port_or_none_to_choose = room.about.get("port")
    if port_or_none_to_choose is not None:
        return ClassServer(room, lan_address, port_or_none_to_choose)
    for tried_port in range(FIRST_PORT, FIRST_PORT + PORTS):
        try:
            return ClassServer(room, lan_address, tried_port)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
    raise OSError(f"ports {FIRST_PORT} to {FIRST_PORT + PORTS - 1} are all in use")


async def run_class_until_ended(
    room: Room,
    lan_address: str | None,
    port_or_none_to_choose: int | None,
    simulated_student_count: int,
    opens_browser: bool,
) -> None:
    """Run server, projector and simulated students until somebody ends the class."""
    server = start_server(room, lan_address, port_or_none_to_choose)
    room.store_port_in_file(server.port)
    print(f"Students: {server.address}\nYour projector, on this machine alone: {server.teacher}")
    print(f"{room.storage_notice} {format_message_count_with_verb(room)} here.")
    print(ENDINGS["file" if room.journal else "memory"])
    print(REMINDERS["phones" if lan_address else "alone"], flush=True)
    with tempfile.TemporaryDirectory(prefix="fedlab_nb-class-") as folder:
        if opens_browser:
            open_address_through_private_file(server.teacher, Path(folder))
        students = asyncio.create_task(
            simulate_students_until_cancelled(room, simulated_student_count)
        )
        try:
            await wait_for_end_of_class(room)
        finally:
            students.cancel()
            server.stop()


def format_message_count_with_verb(room: Room) -> str:
    """Format the number of messages with its verb: "1 message is", "12 messages are"."""
    count = len(room.messages)
    return "1 message is" if count == 1 else f"{count} messages are"


async def wait_for_end_of_class(room: Room) -> None:
    """Wait for Ctrl-C, and then for the answer to what shall become of the messages.

    The class goes on while the question is open. SIGTERM ends the class without a question; what may
    be saved is saved.
    """
    interrupted = asyncio.Event()
    terminated = asyncio.Event()
    loop = asyncio.get_running_loop()

    def terminate() -> None:
        terminated.set()
        interrupted.set()

    with suppress(NotImplementedError):
        loop.add_signal_handler(signal.SIGINT, interrupted.set)
        loop.add_signal_handler(signal.SIGTERM, terminate)
    while True:
        await interrupted.wait()
        interrupted.clear()
        if room.journal:
            return
        if not room.has_real_messages:
            if room.messages:
                print(ONLY_REHEARSED)
            return
        if terminated.is_set() or not sys.stdin.isatty():
            print(save_class_and_describe_success_or_failure(room))
            return
        answer = ask_to_save_and_return_whether_to_end_in_thread(room)
        termination = asyncio.create_task(terminated.wait())
        await asyncio.wait({answer, termination}, return_when=asyncio.FIRST_COMPLETED)
        termination.cancel()
        if not answer.done():
            print(save_class_and_describe_success_or_failure(room))
            return
        if answer.result():
            return


def ask_to_save_and_return_whether_to_end_in_thread(room: Room) -> asyncio.Future[bool]:
    """Run `ask_to_save_and_return_whether_to_end` in a thread that cannot keep the program from ending."""
    loop = asyncio.get_running_loop()
    answer = loop.create_future()

    def work() -> None:
        is_over = ask_to_save_and_return_whether_to_end(room)
        with suppress(RuntimeError):  # the class has been ended meanwhile
            loop.call_soon_threadsafe(answer.set_result, is_over)

    threading.Thread(target=work, daemon=True).start()
    return answer


def ask_to_save_and_return_whether_to_end(room: Room) -> bool:
    """Ask at the terminal what shall become of the messages, and save them if the answer is s.

    Returns whether the class shall end.
    """
    allowed = sum(m.keep and m.sums is not None for m in room.messages.values())
    messages = "1 message" if len(room.messages) == 1 else f"{len(room.messages)} messages"
    while True:
        try:
            print()
            answer = input(QUESTION.format(count=messages, allowed=allowed)).strip().lower()
        except EOFError:
            answer = "s"
        if answer == "s":
            print(save_class_and_describe_success_or_failure(room))
            return True
        if answer == "f":
            return True
        if answer == "":
            print("The class goes on.", flush=True)
            return False


def save_class_and_describe_success_or_failure(room: Room) -> str:
    """Save the messages that may be saved; returns a sentence that says where, or why not."""
    try:
        return f"Saved: {save_class_as_new_npz_file(room)}."
    except (UsageError, OSError) as error:
        return f"Nothing is saved: {error}"


def save_class_as_new_npz_file(room: Room) -> Path:
    """Write the class to class-DATE.npz, or if that exists to class-DATE-2.npz, and so on.

    UsageError if there is too little to save.
    """
    content = pack_class_as_npz(room)
    number = 1
    while True:
        suffix = "" if number == 1 else f"-{number}"
        path = expand_path(f"class-{date.today()}{suffix}.npz")
        if not path.exists():
            return write_file(path, content)
        number += 1


def write_student_page_file(path: str, *, force: bool = False, **room_options: float | str) -> Path:
    """Write the students' page as one file, for phones that cannot reach the teacher's computer.

    The page asks the student for a number instead of getting a seat, and its message is carried by
    hand.

    force:        whether a file is overwritten that `fedlab_nb` did not write
    room_options: alpha, drawings and seed of the `Room`

    Raises OSError if `path` cannot be written, UsageError for such a file without `force`.
    """
    check_replaceable([path], force=force)
    return write_file(path, build_student_page(Room(**room_options)), force=force)
