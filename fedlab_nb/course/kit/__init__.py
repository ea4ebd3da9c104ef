"""What every lesson's code is made of: claims on a record, exercises, cards and sheets."""

from .claims import (
    BELOW,
    CLEAR,
    ENOUGH,
    NOISE,
    SHORT,
    Gap,
    chosen_gaps,
    quoted,
    still,
    stored_bars,
    stored_mean,
    two_kinds,
    versus,
)
from .exercises import exercises, lesson_words
from .problem import Build, Verdict, numbers
from .view import Card, Form, Sheet, worked
