"""Lessons under their old names, and a reader's copies of lessons from earlier versions.

Until November 2026 the lessons were numbered 00 to 13, in the order in which they were written. Now the six lessons of
the story are 1 to 6, and the others lie in the folder `shelf`. The functions that lessons call were renamed, too.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

from .files import copy_file_if_absent, write_file

# {old name of a notebook: its name today}
RENAMED = {
    "00_start_here": "1_start_here",
    "01_heterogeneity": "2_heterogeneity",
    "02_averaging_ensembling_distilling": "shelf/averaging_ensembling_distilling",
    "03_fens": "3_fens",
    "04_fed_et": "shelf/fed_et",
    "05_co_boosting": "shelf/co_boosting",
    "06_fusefl": "shelf/fusefl",
    "07_fedlpa": "shelf/fedlpa",
    "08_all_together": "shelf/all_together",
    "09_your_own": "shelf/your_own",
    "10_closed_form": "4_closed_form",
    "11_names_of_neurons": "shelf/names_of_neurons",
    "12_send_data": "5_send_data",
    "13_capstone": "6_capstone",
    "paper_tables": "shelf/paper_tables",
}
Cell = dict[str, Any]  # of a notebook
EARLIER = "earlier"  # the folder for a reader's notebooks with old names
FUNCTION = re.compile(r"^def (\w+)\(", re.MULTILINE)
UNWRITTEN = re.compile(r"^ +return \.\.\.$", re.MULTILINE)  # the last line of a stub


def find_current_lesson_name(old_name_or_number: str) -> str | None:
    """Find today's name of a lesson from its old name or its old two-digit number; None if it is neither.

    >>> find_current_lesson_name("03_fens"), find_current_lesson_name("10"), find_current_lesson_name("3")
    ('3_fens', '4_closed_form', None)
    """
    is_old_number = old_name_or_number.isdigit() and len(old_name_or_number) == 2
    for old, new in RENAMED.items():
        if old_name_or_number == old:
            return new
        if is_old_number and old.startswith(f"{old_name_or_number}_"):
            return new
    return None


def move_renamed_notebooks_to_earlier_folder(course_copy: Path) -> list[Path]:
    """Move a reader's notebooks with old names to `earlier/`, and copy the answers in them to the new notebooks.

    course_copy: the reader's own copy of the course, which has the new notebooks already

    An answer is a function that the reader has written, where the new notebook has a stub of the same name. Nothing is
    deleted: the whole old notebook stays in `earlier/`. Returns where the moved notebooks are.
    """
    moved = []
    for old, new in RENAMED.items():
        source = course_copy / f"{old}.ipynb"
        target = course_copy / EARLIER / f"{old}.ipynb"
        if not source.is_file() or target.exists():
            continue
        copy_answers_to_stubs(source, course_copy / f"{new}.ipynb")
        target.parent.mkdir(exist_ok=True)
        source.rename(target)
        moved.append(target)
    return moved


def copy_lessons_beside_outdated_copies(course_copy: Path, course_source: Path) -> list[Path]:
    """Copy today's lesson beside each notebook of a reader that calls functions which do not exist any more.

    course_copy: the reader's own copy of the course
    course_source: today's course, in the package

    The functions that the reader has written are copied to the new notebook (`copy_answers_to_stubs`). The reader's
    notebooks stay as they are, and nothing is overwritten. Returns the new notebooks.
    """
    laid = []
    for lesson in sorted(course_source.rglob("*.ipynb")):
        copy = course_copy / lesson.relative_to(course_source)
        beside = copy.with_name(f"{copy.stem}_today.ipynb")
        if not copy.is_file() or beside.exists() or not find_names_missing_in_course_modules(copy):
            continue
        copy_file_if_absent(lesson, beside)
        copy_answers_to_stubs(copy, beside)
        laid.append(beside)
    return laid


def find_names_missing_in_course_modules(notebook_file: Path) -> list[str]:
    """Find the names that a notebook uses of the course's modules and that these do not have, such as "day.chart".

    Nothing is run or imported, so it takes milliseconds. A cell that is not Python is skipped.
    """
    modules: dict[str, Path] = {}  # {name of a module in the notebook: its file or folder}
    missing = []
    for tree in parse_code_cells(notebook_file):
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                modules.update(find_imported_course_modules(node))
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                module = modules.get(node.value.id)
                name = f"{node.value.id}.{node.attr}"
                is_missing = module is not None and node.attr not in list_names_in_module(module)
                if is_missing and name not in missing:
                    missing.append(name)
    return missing


def parse_code_cells(notebook_file: Path) -> list[ast.Module]:
    """Parse the code cells of a notebook as syntax trees; [] if it cannot be read."""
    try:
        cells = json.loads(notebook_file.read_text(encoding="utf-8")).get("cells", [])
    except (OSError, ValueError, AttributeError):
        return []
    trees = []
    for cell in cells:
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        try:
            trees.append(ast.parse(read_cell_source(cell)))
        except (SyntaxError, ValueError):
            continue
    return trees


def find_imported_course_modules(statement: ast.ImportFrom) -> dict[str, Path]:
    """Find the modules that a statement `from fedlab_nb.course… import …` imports: {name: file or folder}."""
    parts = (statement.module or "").split(".")
    if parts[:2] != ["fedlab_nb", "course"]:
        return {}
    folder = Path(__file__).parent.joinpath(*parts[1:])
    modules = {}
    for imported in statement.names:
        for path in (folder / imported.name, folder / f"{imported.name}.py"):
            if path.exists():
                modules[imported.asname or imported.name] = path
    return modules


def list_names_in_module(module_file_or_folder: Path) -> set[str]:
    """List the names that a module defines or imports; those of a package include its modules."""
    names = set()
    file = module_file_or_folder
    if module_file_or_folder.is_dir():
        file = module_file_or_folder / "__init__.py"
        names.update(part.stem for part in module_file_or_folder.iterdir())
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update(imported.asname or imported.name for imported in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def copy_answers_to_stubs(old_notebook_file: Path, new_notebook_file: Path) -> None:
    """Copy the functions that a reader has written in an old notebook to the stubs of the same names in a new one.

    A stub is a function that returns `...`. The new file is changed, and the old one only read. A file that is not a
    notebook is left alone.
    """
    try:
        answers = map_function_names_to_cells(
            json.loads(old_notebook_file.read_text(encoding="utf-8"))
        )
        notebook = json.loads(new_notebook_file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    has_changed = False
    for name, cell in map_function_names_to_cells(notebook).items():
        answer = answers.get(name)
        if answer is None or is_unanswered_stub(answer) or not is_unanswered_stub(cell):
            continue
        cell["source"] = answer["source"]
        cell["outputs"] = []
        has_changed = True
    if has_changed:
        text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
        write_file(new_notebook_file, text, force=True)


def map_function_names_to_cells(notebook_json: Any) -> dict[str, Cell]:
    """Find {name of a function: the code cell that defines it}; if several cells define it, the last one."""
    cells = notebook_json.get("cells", []) if isinstance(notebook_json, dict) else []
    functions = {}
    for cell in cells:
        if cell.get("cell_type") == "code":
            for name in FUNCTION.findall(read_cell_source(cell)):
                functions[name] = cell
    return functions


def is_unanswered_stub(cell: Cell) -> bool:
    """Whether the function of a cell has not been written yet."""
    return UNWRITTEN.search(read_cell_source(cell)) is not None


def read_cell_source(cell: Cell) -> str:
    """Return a cell's text, which a notebook stores as a string or as a list of lines."""
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)
