"""What every lesson's code is made of: exercises, cards and forms; claims on a record stand in
`claims.py`.
"""

from .exercises import exercises, load_lesson_text
from .problem import Build, Verdict
from .view import Card, Form, GuessOption, make_worked_card
