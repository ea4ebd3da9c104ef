"""The course's lessons as tests read them: sources, and the module that a lesson's code calls `lesson`."""

import importlib
import re
from pathlib import Path

import pytest
from make import page_of, source_of

from fedlab_nb.course import COURSE

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
SOURCES = {name: source_of(name).read_text(encoding="utf-8") for name in COURSE}
# pages without exercises
PAGES = ("1_start_here", "shelf/masks_and_noise", "shelf/paper_tables")
LESSONS = {
    name: text for name, text in SOURCES.items() if name not in PAGES
}  # with guesses and exercises


def lesson_of(name):
    """What is `lesson` in the notebook `name`."""
    room, of = re.search(r"from (\S+) import (lesson|\w+(?= as lesson))", SOURCES[name]).groups()
    return importlib.import_module(f"{room}.{of}")


def problems(kind):
    """(notebook, problem) of each exercise of that kind, in all lessons."""
    views = [
        (name, of, getattr(lesson_of(name), of, None))
        for name in LESSONS
        for of in ("q1", "q2", "q3", "q4")
    ]
    made = [(name, of, view.problem) for name, of, view in views if view is not None]
    return [
        pytest.param(name, each, id=f"{name} {of}")
        for name, of, each in made
        if isinstance(each, kind)
    ]


def teachers_page(name):
    return page_of(name).read_text(encoding="utf-8")
