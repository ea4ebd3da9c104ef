"""Lesson 13, the capstone: a hidden federation, a byte budget, choices on validation images, one report.

`hidden.py` draws the federation of a code word, `desk.py` is where the learner works, `form.py` the same with buttons,
`knobs.py` says what can be set, `record.py` keeps what was done, `report.py` is the page that is handed in, `board.py`
reads those of a class.
"""

from .board import leaderboard
from .desk import Case, behind
from .exercises import FIRST, TITLES, best, luck, q1, q2
from .report import Report

case = Case
