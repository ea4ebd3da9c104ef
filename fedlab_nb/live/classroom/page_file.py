"""The students' page as one file, for phones that cannot reach the teacher's computer: messages are
carried by hand."""

import json
from pathlib import Path
from typing import Any

from ..page import joined
from .room import MOST, Room

HERE = Path(__file__).parent
PAGE = HERE.parent / "page"
FRONT = HERE.parents[1] / "front"
MODULES = (
    FRONT / "dom.js",
    FRONT / "text.js",
    FRONT / "pen.js",
    PAGE / "learn.js",
    PAGE / "sums.js",
    HERE / "message.js",
    HERE / "office.js",
    HERE / "recover.js",
    HERE / "student.js",
)


def read_page(room: Room) -> str:
    """The page with style, modules and the seats of a class `room` in it. It asks for a number in
    place of a seat."""
    seats = json.dumps([describe_seat(room, seat) for seat in range(MOST)])
    style = f"<style>\n{(HERE / 'class.css').read_text('utf-8')}</style>"
    code = (
        f'<script id="seats" type="application/json">{seats}</script>\n'
        f'<script type="module">\n{joined(*MODULES)}</script>'
    )
    page = (HERE / "student.html").read_text("utf-8")
    page = page.replace('<link rel="stylesheet" href="class.css">', style)
    return page.replace('<script type="module" src="student.js"></script>', code)


def describe_seat(room: Room, seat: int) -> dict[str, Any]:
    """What a seat of the file is told; its number is made of the one that the student types."""
    return {
        "seed": room.about["seed"],
        "kept": room.storage_notice,
        "labels": room.choose_labels(seat),
    }
