"""Old names of lessons lead to the new ones, and what a reader saved under them is kept."""

import ast
import importlib
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
    (moved_notebook,) = renamed.move_renamed_notebooks_to_earlier_folder(course)
    assert moved_notebook == course / "earlier" / "03_fens.ipynb"
    assert read_sources(moved_notebook) == [NOTE, ANSWER]
    assert read_sources(course / "3_fens.ipynb") == ["panel", ANSWER]
    assert not (course / "03_fens.ipynb").exists()


def test_an_unwritten_answer_replaces_nothing(course):
    write_notebook(course / "03_fens.ipynb", STUB.replace("The answers", "Older words"))
    renamed.move_renamed_notebooks_to_earlier_folder(course)
    assert read_sources(course / "3_fens.ipynb") == ["panel", STUB]


def test_an_answer_that_is_in_the_new_notebook_already_is_not_replaced(course):
    newer = ANSWER.replace(".sum(0)", ".sum(axis=0)")
    write_notebook(course / "3_fens.ipynb", newer)
    write_notebook(course / "03_fens.ipynb", ANSWER)
    renamed.move_renamed_notebooks_to_earlier_folder(course)
    assert read_sources(course / "3_fens.ipynb") == [newer]


def test_nothing_is_overwritten_and_a_second_call_does_nothing(course):
    write_notebook(course / "03_fens.ipynb", ANSWER)
    assert len(renamed.move_renamed_notebooks_to_earlier_folder(course)) == 1
    assert renamed.move_renamed_notebooks_to_earlier_folder(course) == []
    write_notebook(course / "03_fens.ipynb", NOTE)  # a reader puts it back: both stay
    assert renamed.move_renamed_notebooks_to_earlier_folder(course) == []
    assert read_sources(course / "earlier" / "03_fens.ipynb") == [ANSWER]
    assert read_sources(course / "03_fens.ipynb") == [NOTE]


def test_a_file_that_is_no_notebook_is_moved_as_it_is(course):
    (course / "03_fens.ipynb").write_text("not JSON")
    (moved_notebook,) = renamed.move_renamed_notebooks_to_earlier_folder(course)
    assert moved_notebook.read_text() == "not JSON"
    assert read_sources(course / "3_fens.ipynb") == ["panel", STUB]


@pytest.mark.slow
def test_opening_an_old_copy_of_the_course_brings_it_up_to_date(tmp_path, capsys):
    """As an installed package does: the folder has an old notebook with an answer, the package has today's course."""
    write_notebook(tmp_path / "03_fens.ipynb", ANSWER)
    folder = jupyter.prepare_course_folder(tmp_path)
    assert (folder / jupyter.FIRST).is_file()
    assert (folder / "shelf" / "fed_et.ipynb").is_file()
    assert ANSWER in read_sources(folder / "3_fens.ipynb")
    assert read_sources(folder / "earlier" / "03_fens.ipynb") == [ANSWER]
    printed = capsys.readouterr().out
    assert "new names" in printed and "earlier" in printed
    shipped = json.loads((NOTEBOOKS / "3_fens.ipynb").read_text(encoding="utf-8"))
    assert len(read_sources(folder / "3_fens.ipynb")) == len(shipped["cells"])


# ---------------------------------------------------------------- copies of lessons from an earlier version
OLD_CALL = "from fedlab_nb.course import Snapshot, day\n\nSnapshot(day.chart('fens'))"
NEW_CALL = "from fedlab_nb.course import Snapshot, day\n\nSnapshot(day.draw_accuracy_chart('fens'))"


@pytest.mark.parametrize("name", COURSE)
def test_a_lesson_of_today_calls_nothing_that_is_gone(name):
    assert renamed.find_names_missing_in_course_modules(NOTEBOOKS / f"{name}.ipynb") == []


def test_each_way_to_import_a_course_module_is_followed(tmp_path):
    notebook = tmp_path / "3_fens.ipynb"
    write_notebook(
        notebook,
        "from fedlab_nb.course import capstone as lesson, day\nday.draw_offices, day.pictures",
        "%matplotlib inline\nday.lost_in_a_cell_that_is_no_python",
        "from fedlab_nb.course.heterogeneity import story\nstory.draw_patients_by_hospital()",
        "lesson.case('A'), lesson.luck(), day.chart('fens'), day.chart('afl'), other.chart",
    )
    assert renamed.find_names_missing_in_course_modules(notebook) == ["lesson.luck", "day.chart"]


def test_an_outdated_copy_gets_today_s_lesson_beside_it(tmp_path):
    source, course = tmp_path / "package", tmp_path / "mine"
    write_notebook(source / "3_fens.ipynb", NEW_CALL, STUB)
    write_notebook(source / "shelf" / "fed_et.ipynb", NEW_CALL)
    write_notebook(course / "3_fens.ipynb", OLD_CALL, NOTE, ANSWER)
    write_notebook(course / "shelf" / "fed_et.ipynb", NEW_CALL, NOTE)
    new_lessons = renamed.copy_lessons_beside_outdated_copies(course, source)
    assert new_lessons == [course / "3_fens_today.ipynb"]
    assert read_sources(new_lessons[0]) == [NEW_CALL, ANSWER]
    assert read_sources(course / "3_fens.ipynb") == [OLD_CALL, NOTE, ANSWER]
    assert read_sources(course / "shelf" / "fed_et.ipynb") == [NEW_CALL, NOTE]
    assert not (course / "shelf" / "fed_et_today.ipynb").exists()
    assert renamed.copy_lessons_beside_outdated_copies(course, source) == []


def test_a_file_that_lies_beside_already_stays(tmp_path):
    source, course = tmp_path / "package", tmp_path / "mine"
    write_notebook(source / "3_fens.ipynb", NEW_CALL)
    write_notebook(course / "3_fens_today.ipynb", NOTE)
    write_notebook(course / "3_fens.ipynb", OLD_CALL)
    assert renamed.copy_lessons_beside_outdated_copies(course, source) == []
    assert read_sources(course / "3_fens_today.ipynb") == [NOTE]


@pytest.mark.parametrize("content", ["not JSON", "[]", '{"cells": [1, {"cell_type": "code"}]}'])
def test_a_damaged_copy_is_passed_over_in_silence(tmp_path, content):
    (tmp_path / "3_fens.ipynb").write_text(content)
    assert renamed.find_names_missing_in_course_modules(tmp_path / "3_fens.ipynb") == []


@pytest.mark.slow
def test_opening_a_course_with_an_outdated_lesson_says_so(tmp_path, capsys):
    write_notebook(tmp_path / "3_fens.ipynb", OLD_CALL, ANSWER)
    folder = jupyter.prepare_course_folder(tmp_path)
    assert read_sources(folder / "3_fens.ipynb") == [OLD_CALL, ANSWER]
    assert ANSWER in read_sources(folder / "3_fens_today.ipynb")
    printed = capsys.readouterr().out
    assert "from an earlier version" in printed and ": 3_fens_today." in printed


@pytest.mark.parametrize("name", COURSE)
def test_an_old_name_in_a_running_lesson_says_what_to_do(name):
    """Each course module that a lesson uses answers in one sentence; `hasattr` still works."""
    for code in parse_lesson(name):
        for module in find_course_modules(code):
            assert not hasattr(module, "chart_of_old")
            with pytest.raises(
                AttributeError, match="copy from an earlier version.*start it again"
            ):
                module.chart_of_old  # noqa: B018


def parse_lesson(name):
    return renamed.parse_code_cells(NOTEBOOKS / f"{name}.ipynb")


def find_course_modules(code):
    for statement in ast.walk(code):
        if isinstance(statement, ast.ImportFrom):
            for path in renamed.find_imported_course_modules(statement).values():
                parts = path.relative_to(NOTEBOOKS.parent).with_suffix("").parts
                yield importlib.import_module(".".join(parts))
