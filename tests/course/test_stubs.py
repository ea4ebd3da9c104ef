"""Build exercises on the page: each lesson's stub is untouched, and the function on its teacher's page is right."""

import re
import textwrap

import numpy as np
import pytest
from lessons import SOURCES, list_problems, read_teachers_page

from fedlab_nb.course.kit.problem import BuildProblem

# The lessons whose teacher's page has the function; the others say it in words.
LESSONS_WITH_CODE = {"shelf/fed_et", "shelf/co_boosting", "shelf/fusefl"}
CODE_BLOCK = re.compile(r"^ *```python.*?\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def define_function_of_page(page, name):
    """The function of that name in the page's code; None where the page has none."""
    namespace = {"np": np}
    for block in CODE_BLOCK.findall(page):
        if f"def {name}(" in block:
            exec(textwrap.dedent(block), namespace)
    return namespace.get(name)


@pytest.mark.parametrize(("lesson", "problem"), list_problems(BuildProblem))
def test_the_stub_is_untouched_and_the_teachers_answer_is_right(lesson, problem):
    stub = define_function_of_page(SOURCES[lesson], problem.function_name)
    assert stub is not None
    assert problem.check(stub).state == "unattempted"
    answer = define_function_of_page(read_teachers_page(lesson), problem.function_name)
    if answer is None:
        assert lesson not in LESSONS_WITH_CODE
    else:
        assert problem.check(answer).state == "right"
