"""Lesson 6, the capstone: a hidden federation, a byte budget, choices on validation images, one
report.

`desk.py` draws the federation of a code word and is where the learner works, `form.py` is the same
with buttons, and has the lesson's exercises; `report.py` keeps what was done, makes the page that
is handed in, and reads those of a class; `closing.py` makes the page that is worth keeping.
"""

from .closing import Closing
from .desk import Case, behind
from .form import FIRST, TITLES, WAYS, best, best_way, hospitals, luck, q1, q2
from .report import Report, leaderboard

case = Case
closing = Closing
