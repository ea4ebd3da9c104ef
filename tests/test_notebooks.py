"""The committed notebooks: in step with their sources, run from top to bottom, readable without a kernel.

nbval tests that a new run gives the same outputs (`pytest --nbval`, see tests/everything.txt).
"""

import re

import make
import nbformat
import pytest
from lessons import LESSONS, NOTEBOOKS, SOURCES, import_lesson, read_teachers_page


def test_cells_of_a_source():
    source = '# A\n\ntext\n\n\nmore\n\n```python tags=["raises-exception"]\nx = 1\n```\n'
    cells = make.make_cells(source)
    shown = [("markdown", "# A\n\ntext"), ("markdown", "more"), ("code", "x = 1")]
    assert [(c.cell_type, c.source) for c in cells] == shown
    assert cells[2].metadata["tags"] == ["raises-exception"]
    assert [c.id for c in cells] == ["cell-00", "cell-01", "cell-02"]


def test_the_course_is_whole():
    """Each notebook of the README's table has a source, a notebook and a teacher's page, and there is no other."""
    readme = (NOTEBOOKS.parent / "README.md").read_text()
    row = r"^\| \[\w+\]\(notebooks/([^)]+)\.ipynb\) \| \d+ \|"
    lessons = re.findall(row, readme, re.MULTILINE)
    assert len(lessons) >= 10
    lessons = sorted(lessons)  # the story first, then the shelf
    assert sorted(SOURCES) == lessons
    files = [path.relative_to(NOTEBOOKS) for path in NOTEBOOKS.rglob("*.ipynb")]
    assert sorted(file.with_suffix("").as_posix() for file in files) == lessons
    pages = {path.stem for path in (NOTEBOOKS / "instructor").glob("*.md")}
    # 6_reports has two marked reports.
    assert pages == {
        *(name.split("/")[-1] for name in lessons),
        "6_reports",
    }


@pytest.mark.parametrize("name", SOURCES)
def test_in_step_with_the_source(name):
    assert make.is_in_step(name), f"run: python notebooks/make.py {name}"


@pytest.mark.parametrize("name", SOURCES)
def test_it_was_run_from_top_to_bottom_and_can_be_read_without_a_kernel(name):
    """It has no errors, a text for each output, at least one picture, and no trace of a machine or a widget's state."""
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", 4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output for cell in code for output in cell.outputs]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [output for output in outputs if output.output_type in ("error", "stream")]
    texts = [output.data.get("text/plain", "").strip() for output in outputs]
    assert all(texts)
    assert [text for text in texts if text.startswith("[")] == []  # a list as Python writes it
    assert not re.search(r"/home/|/root/|/tmp/|/Users/|0x[0-9a-f]{6}", "\n".join(texts))
    pictures = [output.data for output in outputs if "image/png" in output.data]
    assert pictures
    assert all("data:image/svg+xml" in picture["text/html"] for picture in pictures)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}


def test_the_pages_for_teachers_show_the_tagged_pictures():
    expected = {name: list(make.find_teacher_pictures(name)) for name in SOURCES}
    shown = {
        name: re.findall(r"\]\(\.\./images/teacher/([^)]*)\)", read_teachers_page(name))
        for name in SOURCES
    }
    files = {
        path.name: path.stat().st_size for path in (NOTEBOOKS / "images" / "teacher").iterdir()
    }
    assert shown == expected and all(expected.values()), "run: python notebooks/make.py --pictures"
    # Large enough for piles of images.
    assert sorted(files) == sorted(sum(expected.values(), [])) and max(files.values()) <= 120_000


def test_outputs_are_kept_where_the_code_is_the_same():
    source = "# A\n\n```python\nx\n```\n\nTEXT\n\n```python\nCODE\n```\n"
    old = make.make_notebook(source.replace("TEXT", "one").replace("CODE", "y"))
    new = make.make_notebook(source.replace("TEXT", "two").replace("CODE", "z"))
    shown = nbformat.v4.new_output("execute_result", {"text/plain": "3"}, execution_count=1)
    old.cells[1].outputs = [shown]
    old.cells[3].outputs = [shown]
    make.keep_outputs(new, old)
    assert new.cells[1].outputs == [shown]
    assert new.cells[3].outputs == []
    assert new.cells[2].source == "two"
    assert [new.cells[i].execution_count for i in (1, 3)] == [1, 2]


def test_a_lesson_has_guesses_exercises_and_a_recap_of_its_goals():
    assert len(LESSONS) >= 10
    for text in LESSONS.values():
        assert "predict(" in text and ".form(" in text
        goals = re.findall(r"^\d\. ", text.split("**Minutes:**")[0], re.MULTILINE)
        start, *recap = re.split(
            r"^\d\. ", text.split("What you have learned")[1], flags=re.MULTILINE
        )
        assert len(goals) == len(recap) and "<details>" in start  # as many as the goals, and folded


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_module_has_every_name_that_its_pages_use(name):
    used = set(re.findall(r"\blesson\.(\w+)", SOURCES[name] + read_teachers_page(name))) - {"md"}
    assert len(used) >= 5
    assert [used_name for used_name in used if not hasattr(import_lesson(name), used_name)] == []
