"""What a lesson asks of the page that shows it: quiet folded cells, and a reader who is taken back to the beginning
after Run ▸ Run All Cells, which leaves them at the end.

Importing this module does it, in a notebook.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
from IPython import get_ipython

LESSON_IMPORT = "from fedlab_nb.course import"  # in the first code cell of each lesson
HERE = Path(__file__).parent


class LessonPage(anywidget.AnyWidget):
    """Acts once, when a browser with the notebook hears of it (`lesson_page.js`). It is not displayed."""

    _esm = (HERE / "lesson_page.js").read_text(encoding="utf-8")
    _css = (HERE / "lesson_page.css").read_text(encoding="utf-8")


def open_page_if_first_cell_of_lesson(ipython_cell_info: Any) -> None:
    """Act if the cell that begins to run is a lesson's first code cell."""
    if LESSON_IMPORT in ipython_cell_info.raw_cell:
        LessonPage()


shell = get_ipython()
if shell is not None:
    LessonPage()  # this import stands in the first code cell
    shell.events.register(
        "pre_run_cell", open_page_if_first_cell_of_lesson
    )  # that cell is run once more
