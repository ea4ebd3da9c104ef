"""The course's lessons as tests read them: sources, and the module that a lesson's code calls `lesson`."""

import html
import importlib
import re
from pathlib import Path

import nbformat
import pytest
from make import find_source, find_teachers_page

from fedlab_nb.course import COURSE

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
SOURCES = {name: find_source(name).read_text(encoding="utf-8") for name in COURSE}
PAGES_WITHOUT_EXERCISES = ("1_start_here", "shelf/masks_and_noise", "shelf/paper_tables")
LESSONS = {name: text for name, text in SOURCES.items() if name not in PAGES_WITHOUT_EXERCISES}


def import_lesson(name):
    """Import the module that is called `lesson` in the notebook `name`."""
    statement = r"from (\S+) import (lesson|\w+(?= as lesson))"
    package, module = re.search(statement, SOURCES[name]).groups()
    return importlib.import_module(f"{package}.{module}")


def list_problems(kind):
    """(notebook, problem) of each exercise of that kind, in all lessons, as parameters of a test."""
    problems = []
    for name in LESSONS:
        lesson = import_lesson(name)
        for exercise in ("q1", "q2", "q3", "q4"):
            view = getattr(lesson, exercise, None)
            if view is not None and isinstance(view.problem, kind):
                problems.append(pytest.param(name, view.problem, id=f"{name} {exercise}"))
    return problems


def read_teachers_page(name):
    return find_teachers_page(name).read_text(encoding="utf-8")


def read_screen(name):
    """All texts that the stored notebook of a lesson shows, alt texts of pictures among them."""
    texts = []
    for cell in nbformat.read(NOTEBOOKS / f"{name}.ipynb", 4).cells:
        texts.append(cell.source)
        for output in cell.get("outputs", []):
            texts.append(output.get("text", ""))
            for kind, content in output.get("data", {}).items():
                if kind.startswith("text/"):
                    texts.append(re.sub(r'src="data:[^"]*"', "", content))
            for metadata in output.get("metadata", {}).values():
                if isinstance(metadata, dict):
                    texts.append(metadata.get("alt", ""))
    return html.unescape("\n".join(texts))
