"""What every lesson uses: exercises, cards and forms. Claims on a learner's record are in `claims.py`."""

from .exercises import exercises, load_lesson_text_or_list
from .problem import Build, Verdict
from .view import Card, FormWidget, GuessOption, make_worked_card
