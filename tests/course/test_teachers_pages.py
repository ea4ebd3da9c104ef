"""Teachers' pages say what is on the screen: a number under "What they should see" that no declared study keeps true
has to stand in the lesson's stored notebook.
"""

import html
import re

import nbformat
import pytest
from lessons import LESSONS, NOTEBOOKS, teachers_page

DECLARED = re.compile(r"<!--n .*?-->.*?<!--/n-->", re.DOTALL)
PICTURES = re.compile(r"^!\[.*$", re.MULTILINE)
NUMBER = re.compile(r"(?<![\d.,])\d+(?:[.,]\d+)?(?= (?:%|points|kB|MB))")


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


def find_undeclared(page):
    """Numbers with a unit of the section "What they should see" that no study keeps true."""
    (section,) = re.findall(r"## What they should see(.*?)\n## ", page, re.DOTALL)
    section = PICTURES.sub("", DECLARED.sub("", section))
    section = section.partition("\nExercise")[0]
    return [match[0] for match in NUMBER.finditer(section)]


@pytest.mark.parametrize("name", LESSONS)
def test_what_they_should_see_is_on_the_screen(name):
    screen = read_screen(name)
    page = teachers_page(name.removeprefix("shelf/"))
    for number in find_undeclared(page):
        assert re.search(rf"(?<![\d.,]){re.escape(number)}(?!\d|[.,]\d)", screen), (name, number)


def test_a_number_that_is_nowhere_on_the_screen_is_found():
    page = "## What they should see\n\n- 12 % and <!--n x.y-->34<!--/n--> %.\n\nExercises: 56 %\n\n## Next"
    assert find_undeclared(page) == ["12"]
