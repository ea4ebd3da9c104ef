"""The committed notebooks: in step with their sources, run from top to bottom, readable without a kernel.

That a new run gives the same outputs is nbval's part (`pytest --nbval`, see tests/everything.txt).
"""

import importlib.util
import re
from pathlib import Path

import nbformat
import pytest

FOLDER = Path(__file__).parents[1] / "notebooks"
SOURCES = sorted((FOLDER / "source").glob("*.md"))
LESSONS = [source for source in SOURCES if source.name[:2].isdigit()]  # the others are pages without exercises
LESSON = (
    "After",
    "Minutes",
    "You need",
    "predict(",
    ".form(",  # an exercise
    "Reality check",
    "What you have learned",
    "References",
)


def make():
    spec = importlib.util.spec_from_file_location("make", FOLDER / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(source: Path) -> nbformat.NotebookNode:
    return nbformat.read(FOLDER / f"{source.stem}.ipynb", 4)


def outputs(source: Path):
    return [output for cell in read(source).cells if cell.cell_type == "code" for output in cell.outputs]


def test_cells_of_a_source():
    source = '# A\n\ntext\n\n\nmore\n\n```python tags=["raises-exception"]\nx = 1\n```\n'
    cells = make().cells(source)
    assert [(c.cell_type, c.source) for c in cells] == [
        ("markdown", "# A\n\ntext"),
        ("markdown", "more"),
        ("code", "x = 1"),
    ]
    assert cells[2].metadata["tags"] == ["raises-exception"]
    assert [c.id for c in cells] == ["cell-00", "cell-01", "cell-02"]


def test_the_course_is_whole():
    """Each notebook of the README's table has a source, a notebook and a teacher's page, and there is no other."""
    readme = (FOLDER.parent / "README.md").read_text()
    lessons = re.findall(r"^\| \[(\w+)\]\([^)]+\) \| \d+ \|", readme, re.MULTILINE)
    assert len(lessons) >= 10
    assert [source.stem for source in SOURCES] == lessons
    assert [path.stem for path in sorted(FOLDER.glob("*.ipynb"))] == lessons
    assert [path.stem for path in sorted((FOLDER / "instructor").glob("*.md"))] == lessons


@pytest.mark.parametrize("source", SOURCES, ids=lambda s: s.stem)
def test_in_step_with_the_source(source):
    assert make().in_step(source), f"run: python notebooks/make.py {source.stem}"


@pytest.mark.parametrize("source", SOURCES, ids=lambda s: s.stem)
def test_was_run_from_top_to_bottom_without_errors(source):
    code = [cell for cell in read(source).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [output for output in outputs(source) if output.output_type in ("error", "stream")]


@pytest.mark.parametrize("source", SOURCES, ids=lambda s: s.stem)
def test_every_output_can_be_read_without_a_kernel(source):
    for output in outputs(source):
        assert output.data.get("text/plain", "").strip(), output
    assert any("image/png" in output.data for output in outputs(source))


@pytest.mark.parametrize("source", SOURCES, ids=lambda s: s.stem)
def test_no_machine_and_no_widget_state_is_saved(source):
    notebook = read(source)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    text = "\n".join(data for output in outputs(source) for mime, data in output.data.items() if mime == "text/plain")
    assert not re.search(r"/home/|/root/|/tmp/|/Users/|0x[0-9a-f]{6}", text)


def test_a_lesson_has_every_part():
    assert len(LESSONS) >= 10
    for source in LESSONS:
        if not source.name.startswith("00"):
            text = source.read_text()
            assert [part for part in LESSON if part not in text] == []
            goals = re.findall(r"^\d\. ", text.split("**Minutes:**")[0], re.MULTILINE)
            recap = re.findall(r"^\d\. ", text.split("What you have learned")[1], re.MULTILINE)
            assert goals == recap  # the recap mirrors the goals


@pytest.mark.parametrize("source", LESSONS[1:], ids=lambda source: source.stem)
def test_a_lesson_has_every_name_that_its_pages_use(source):
    text = source.read_text() + (FOLDER / "instructor" / source.name).read_text()
    room, name = re.search(r"from (\S+) import (lesson|\w+(?= as lesson))", text).groups()
    lesson = importlib.import_module(f"{room}.{name}")
    used = set(re.findall(r"\blesson\.(\w+)", text))
    assert len(used) >= 5 and [name for name in used if not hasattr(lesson, name)] == []
