"""Lesson 6, the capstone: a hidden federation, a byte budget, choices on validation images, one
report.

`desk.py` draws the federation of a code word, and has the calls with which a learner works on it.
`form.py` has the same work with buttons, and the lesson's exercises. `report.py` records what was
done, makes the report that is handed in, and ranks the reports of a class. `closing.py` makes a
page for the learner to keep. `practice.py` plays the practice word of the lesson.
"""

from ..kit.missing_name import make_getattr_for_missing_names
from .closing import Closing
from .desk import Case, behind
from .form import (
    FIRST,
    TITLES,
    WAYS,
    get_best_first_try_title,
    get_most_accurate_hospital_way,
    hospitals,
    q1,
    q2,
    show_selection_luck,
)
from .report import Report, leaderboard

__getattr__ = make_getattr_for_missing_names(__name__)

case = Case
closing = Closing
