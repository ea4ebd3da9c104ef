"""The students' page as one file, for phones that cannot reach the teacher's computer.

Their messages are carried to it by hand.
"""

import json
from pathlib import Path
from typing import TypedDict

from ..page import join_files_without_imports_and_exports
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


class SeatOfPageFile(TypedDict):
    """What the page has of a seat.

    seed:   of the class
    kept:   a notice on how messages are kept
    labels: the digits to draw, in order
    """

    seed: int
    kept: str
    labels: list[int]


def build_student_page(room: Room) -> str:
    """Build the students' page as one file that contains style, modules and all seats of the class.

    The page asks the student for a number instead of getting a seat from the server.
    """
    seats = json.dumps([describe_seat_for_page_file(room, seat) for seat in range(MOST)])
    style = f"<style>\n{(HERE / 'class.css').read_text('utf-8')}</style>"
    code = (
        f'<script id="seats" type="application/json">{seats}</script>\n'
        f'<script type="module">\n{join_files_without_imports_and_exports(*MODULES)}</script>'
    )
    page = (HERE / "student.html").read_text("utf-8")
    page = page.replace('<link rel="stylesheet" href="class.css">', style)
    return page.replace('<script type="module" src="student.js"></script>', code)


def describe_seat_for_page_file(room: Room, seat: int) -> SeatOfPageFile:
    """Describe a seat for the page; the page derives the seat from the number that is typed in."""
    return {
        "seed": room.about["seed"],
        "kept": room.storage_notice,
        "labels": room.choose_labels_to_draw(seat),
    }
