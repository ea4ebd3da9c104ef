"""The course's lessons as tests read them: sources, and the module that a lesson's code calls `lesson`."""

import importlib
import re
from pathlib import Path

from make import source_of

from fedlab_nb.course import COURSE

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
SOURCES = {name: source_of(name).read_text(encoding="utf-8") for name in COURSE}
LESSONS = {name: text for name, text in SOURCES.items() if "01" <= name < "99"}  # with guesses and exercises


def lesson_of(name):
    """What is `lesson` in the notebook `name`."""
    room, of = re.search(r"from (\S+) import (lesson|\w+(?= as lesson))", SOURCES[name]).groups()
    return importlib.import_module(f"{room}.{of}")


def teachers_page(name):
    return (NOTEBOOKS / "instructor" / f"{name}.md").read_text(encoding="utf-8")
