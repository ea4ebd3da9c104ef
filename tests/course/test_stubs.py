"""Build exercises on the page: each lesson's stub is untouched, and the function on its teacher's page is right."""

import re
import textwrap

import pytest
from lessons import SOURCES, problems, teachers_page

from fedlab_nb.course.kit.problem import BuildProblem

WITH_CODE = {
    "shelf/fed_et",
    "shelf/co_boosting",
    "shelf/fusefl",
}  # teacher's pages that have the function; the others say it in words
BLOCK = re.compile(r"^ *```python.*?\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def function(page, name):
    """The function of that name in the page's code; None where the page has none."""
    blocks = [textwrap.dedent(block) for block in BLOCK.findall(page)]
    space = {}
    exec("import numpy as np", space)
    for block in blocks:
        if f"def {name}(" in block:
            exec(block, space)
    return space.get(name)


@pytest.mark.parametrize(("lesson", "problem"), problems(BuildProblem))
def test_the_stub_is_untouched_and_the_teachers_answer_is_right(lesson, problem):
    stub = function(SOURCES[lesson], problem.function_name)
    assert stub is not None and problem.check(stub).state == "unattempted"
    answer = function(teachers_page(lesson), problem.function_name)
    assert lesson not in WITH_CODE or answer is not None
    assert answer is None or problem.check(answer).state == "right"
