"""Old names of lessons, which still lead to the new ones, and the notebooks that a reader saved under them.

Until November 2026 the lessons were numbered 00 to 13, in the order in which they were written. Now the story's six
are 1 to 6, and the others lie in the folder `shelf`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from .files import write_file

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
EARLIER = "earlier"  # the folder of a reader's notebooks with old names
FUNCTION = re.compile(r"^def (\w+)\(", re.MULTILINE)
UNWRITTEN = re.compile(r"^ +return \.\.\.$", re.MULTILINE)


def find_new_name(word: str) -> str | None:
    """Today's name of a lesson for an old name or an old two-digit number; None where it is neither.

    >>> find_new_name("03_fens"), find_new_name("10"), find_new_name("3")
    ('3_fens', '4_closed_form', None)
    """
    for old, new in RENAMED.items():
        if word == old or (word.isdigit() and len(word) == 2 and old.startswith(f"{word}_")):
            return new
    return None


def move_old_notebooks(course: Path) -> list[Path]:
    """Move a reader's notebooks with old names to `earlier/`, and bring their answers into the new ones.

    course: the reader's own copy of the course, in which the new notebooks lie already. An answer is a code cell that
    defines a function of the same name as a cell of the new notebook, but with other code; the new notebook's cell gets
    it. Nothing is deleted or overwritten: the whole old notebook stays in `earlier/`. Returns where they are now.
    """
    moved = []
    for old, new in RENAMED.items():
        source = course / f"{old}.ipynb"
        target = course / EARLIER / f"{old}.ipynb"
        if not source.is_file() or target.exists():
            continue
        copy_answers(source, course / f"{new}.ipynb")
        target.parent.mkdir(exist_ok=True)
        source.rename(target)
        moved.append(target)
    return moved


def copy_answers(old: Path, new: Path) -> int:
    """Put the functions that a reader wrote in the notebook `old` in the place of the stubs in `new`.

    A stub is a function that returns `...`.

    Returns how many cells were changed. A file that is no notebook is left alone.
    """
    try:
        answers = find_functions(json.loads(old.read_text(encoding="utf-8")))
        notebook = json.loads(new.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return 0
    changed = 0
    for name, cell in find_functions(notebook).items():
        answer = answers.get(name)
        if answer is None or is_stub(answer) or not is_stub(cell):
            continue
        cell["source"] = answer["source"]
        cell["outputs"] = []
        changed += 1
    if changed:
        text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
        write_file(new, text, force=True)
    return changed


def find_functions(notebook: Any) -> dict[str, Cell]:
    """{name of a function: the code cell that defines it}; of two cells with one name the last."""
    cells = notebook.get("cells", []) if isinstance(notebook, dict) else []
    functions = {}
    for cell in cells:
        if cell.get("cell_type") == "code":
            for name in FUNCTION.findall(read_source(cell)):
                functions[name] = cell
    return functions


def is_stub(cell: Cell) -> bool:
    """Whether nobody has written the function of a cell yet."""
    return UNWRITTEN.search(read_source(cell)) is not None


def read_source(cell: Cell) -> str:
    """A cell's text, which a notebook stores as a string or as a list of lines."""
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)
