"""The class is the federation: `fedlab-nb class`. Students draw digits on their phones, each sends one message, and the
projector shows what becomes of them.

    messages.py   the one message: its form and its checks
    room.py       seats, messages, results, what is kept
    server.py     what answers on the network
    rehearse.py   simulated students

The pages lie beside them: student.html and student.js (with dom.js, text.js and pen.js of `front/`,
learn.js and sums.js of `live/page/`), teacher.html and teacher.js.
Nothing listens beyond 127.0.0.1 unless the teacher asks, and nothing is written unless the teacher asks.
"""

import asyncio
import json
import tempfile
from datetime import date
from pathlib import Path
from typing import Any

from ...errors import parsed, whole
from ...files import check_replaceable, expand_path, write_file
from ...jupyter import has_browser
from ...voila import show
from ..page import joined
from .messages import Message, read
from .rehearse import messages
from .room import MOST, Room
from .server import FRONT, HERE, PAGE, Served, own_address


def open_class(
    lan: str | None, port: Any, keep: str | None, rehearse: Any, browser: bool, **partition: Any
) -> int:
    """Hold the class until Ctrl-C; returns the exit code. OSError where it cannot listen, or keep.

    lan:       the address of this machine where phones reach it, "" to find it, or None: nobody but this machine
    keep:      the file that messages are kept in, "" for class-DATE.jsonl, or None: none
    rehearse:  how many simulated students come, two in a second
    partition: alpha, drawings and seed of the `Room`
    """
    file = None if keep is None else expand_path(keep or f"class-{date.today()}.jsonl")
    port, count = whole("port", parsed(port), 0, 65535), whole("rehearse", parsed(rehearse), 0, 300)
    room, lan = Room(**partition, file=file), None if lan is None else own_address(lan)
    try:
        asyncio.run(held(room, lan, port, count, browser and has_browser()))
    except KeyboardInterrupt:
        print(f"The class has ended. {room.kept}", flush=True)
    return 0


async def held(room: Room, lan: str | None, port: int, count: int, browser: bool) -> None:
    """The class itself: it ends with the program."""
    served = Served(room, lan, port)
    print(f"Students: {served.address}\nYour projector, on this machine alone: {served.teacher}")
    print(f"{room.kept} {len(room.messages)} messages are here. Ctrl-C ends the class.", flush=True)
    with tempfile.TemporaryDirectory(prefix="fedlab_nb-class-") as folder:
        if browser:
            show(served.teacher, Path(folder))
        for seat, text in messages(room, count):
            room.accept(text, seat)
            await asyncio.sleep(0.5)
        await asyncio.Event().wait()


def write_page(path: str, *, force: bool = False, **partition: Any) -> Path:
    """The students' page as one file, for phones that cannot reach the teacher's computer: it asks for a number in
    place of a seat, and the message is carried by hand. OSError where that is no place to write,
    UsageError where a file of somebody else's is there already, unless `force`."""
    check_replaceable([path], force=force)
    room = Room(**partition)
    seats = json.dumps([room.seat() for _ in range(MOST)])
    front = [FRONT / "dom.js", FRONT / "pen.js"]
    code = joined(*front, PAGE / "learn.js", PAGE / "sums.js", HERE / "student.js")
    code = f'<script id="seats" type="application/json">{seats}</script>\n<script type="module">\n{code}</script>'
    style = f"<style>\n{(HERE / 'class.css').read_text('utf-8')}</style>"
    page = (
        (HERE / "student.html")
        .read_text("utf-8")
        .replace('<link rel="stylesheet" href="class.css">', style)
    )
    page = page.replace('<script type="module" src="student.js"></script>', code)
    return write_file(path, page, force=force)
