"""Build exercises on the page: each lesson's stub is untouched, and the function on its teacher's page is right."""

import importlib
import re
import textwrap
from pathlib import Path

import pytest

from fedlab_nb.course.kit.build import BuildProblem

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
WITH_CODE = {"04", "05", "06"}  # teacher's pages that have the function; the others say it in words
BLOCK = re.compile(r"^ *```python.*?\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def built():
    """(lesson, its build problem) of all lessons."""
    for source in sorted((NOTEBOOKS / "source").glob("[0-9]*.md")):
        match = re.search(r"from (\S+) import (lesson|\w+(?= as lesson))", source.read_text("utf-8"))
        lesson = importlib.import_module(".".join(match.groups())) if match else None
        for name in sorted(name for name in dir(lesson) if re.fullmatch(r"q\d", name)):
            if isinstance(getattr(lesson, name).problem, BuildProblem):
                yield pytest.param(source.name, getattr(lesson, name).problem, id=f"{source.stem}-{name}")


def function(page, name):
    """The function of that name in the page's code; None where the page has none."""
    blocks = [textwrap.dedent(block) for block in BLOCK.findall(page.read_text("utf-8"))]
    space = {}
    exec("import numpy as np", space)
    for block in blocks:
        if f"def {name}(" in block:
            exec(block, space)
    return space.get(name)


@pytest.mark.parametrize(("lesson", "problem"), list(built()))
def test_the_stub_is_untouched_and_the_teachers_answer_is_right(lesson, problem):
    stub = function(NOTEBOOKS / "source" / lesson, problem.name)
    assert stub is not None and problem.check(stub).state == "unattempted"
    answer = function(NOTEBOOKS / "instructor" / lesson, problem.name)
    assert lesson[:2] not in WITH_CODE or answer is not None
    assert answer is None or problem.check(answer).state == "right"
