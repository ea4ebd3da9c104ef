"""The course's lessons as tests read them: sources, and the module that a lesson's code calls `lesson`."""

import html
import importlib
import re
from pathlib import Path

import nbformat
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
            for about in output.get("metadata", {}).values():
                if isinstance(about, dict):
                    texts.append(about.get("alt", ""))
    return html.unescape("\n".join(texts))
