"""Lesson 1: what the playground's first run gives, from declared runs, so that the reader's own run need not wait.

lesson.first_run()    bars of ten seeds at α = 0.5
"""

from ..kit.claims import make_mean_and_bars_functions
from ..kit.missing_name import make_getattr_for_missing_names

__getattr__ = make_getattr_for_missing_names(__name__)

_, first_run = make_mean_and_bars_functions(__name__, "first_run")
