"""Old names of lessons lead to the new ones, and what a reader saved under them is kept."""

import json

import nbformat
import pytest
from lessons import NOTEBOOKS

from fedlab_nb import jupyter, renamed
from fedlab_nb.course import COURSE

ANSWER = "import numpy as np\n\n\ndef weighted_sum(logits, weights):\n    return (logits * weights[:, None]).sum(0)"
STUB = 'import numpy as np\n\n\ndef weighted_sum(logits, weights):\n    """The answers."""\n    return ...'
NOTE = "# my own note\n1 + 1"


def write_notebook(path, *sources):
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)


def read_sources(path):
    return [cell.source for cell in nbformat.read(path, 4).cells]


@pytest.fixture
def course(tmp_path):
    """A reader's copy of the course with today's third lesson."""
    write_notebook(tmp_path / "3_fens.ipynb", "panel", STUB)
    return tmp_path


def test_each_old_name_has_a_lesson_of_today():
    assert set(COURSE) - set(renamed.RENAMED.values()) == {"shelf/masks_and_noise"}  # a new page
    assert set(renamed.RENAMED.values()) <= set(COURSE)
    assert all((NOTEBOOKS / f"{new}.ipynb").is_file() for new in renamed.RENAMED.values())
    assert not [old for old in renamed.RENAMED if (NOTEBOOKS / f"{old}.ipynb").exists()]


def test_an_answer_saved_under_the_old_name_stands_in_the_new_notebook(course):
    write_notebook(course / "03_fens.ipynb", NOTE, ANSWER)
    (moved,) = renamed.move_old_notebooks(course)
    assert moved == course / "earlier" / "03_fens.ipynb"
    assert read_sources(moved) == [NOTE, ANSWER]
    assert read_sources(course / "3_fens.ipynb") == ["panel", ANSWER]
    assert not (course / "03_fens.ipynb").exists()


def test_an_unwritten_answer_replaces_nothing(course):
    write_notebook(course / "03_fens.ipynb", STUB.replace("The answers", "Older words"))
    renamed.move_old_notebooks(course)
    assert read_sources(course / "3_fens.ipynb") == ["panel", STUB]


def test_an_answer_that_is_in_the_new_notebook_already_is_not_replaced(course):
    newer = ANSWER.replace(".sum(0)", ".sum(axis=0)")
    write_notebook(course / "3_fens.ipynb", newer)
    write_notebook(course / "03_fens.ipynb", ANSWER)
    renamed.move_old_notebooks(course)
    assert read_sources(course / "3_fens.ipynb") == [newer]


def test_nothing_is_overwritten_and_a_second_call_does_nothing(course):
    write_notebook(course / "03_fens.ipynb", ANSWER)
    assert len(renamed.move_old_notebooks(course)) == 1
    assert renamed.move_old_notebooks(course) == []
    write_notebook(course / "03_fens.ipynb", NOTE)  # put back by hand: both stay
    assert renamed.move_old_notebooks(course) == []
    assert read_sources(course / "earlier" / "03_fens.ipynb") == [ANSWER]
    assert read_sources(course / "03_fens.ipynb") == [NOTE]


def test_a_file_that_is_no_notebook_is_moved_as_it_is(course):
    (course / "03_fens.ipynb").write_text("not JSON")
    (moved,) = renamed.move_old_notebooks(course)
    assert moved.read_text() == "not JSON"
    assert read_sources(course / "3_fens.ipynb") == ["panel", STUB]


def test_opening_an_old_copy_of_the_course_brings_it_up_to_date(tmp_path, capsys):
    """As an installed package does it: the folder has an old notebook with an answer, the package today's course."""
    write_notebook(tmp_path / "03_fens.ipynb", ANSWER)
    folder = jupyter.prepare_course_folder(tmp_path)
    assert (folder / jupyter.FIRST).is_file()
    assert (folder / "shelf" / "fed_et.ipynb").is_file()
    assert ANSWER in read_sources(folder / "3_fens.ipynb")
    assert read_sources(folder / "earlier" / "03_fens.ipynb") == [ANSWER]
    said = capsys.readouterr().out
    assert "new names" in said and "earlier" in said
    shipped = json.loads((NOTEBOOKS / "3_fens.ipynb").read_text(encoding="utf-8"))
    assert len(read_sources(folder / "3_fens.ipynb")) == len(shipped["cells"])
