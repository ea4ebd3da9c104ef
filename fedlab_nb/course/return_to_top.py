"""Back to the beginning of a lesson after Run ▸ Run All Cells, which leaves the reader at its end.

Importing this module does it, in a notebook.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
from IPython import get_ipython

LESSON_IMPORT = "from fedlab_nb.course import"  # in the first code cell of each lesson


class ReturnToTop(anywidget.AnyWidget):
    """Scrolls up once, when a browser with the notebook hears of it (`return_to_top.js`). It is not displayed."""

    _esm = (Path(__file__).parent / "return_to_top.js").read_text(encoding="utf-8")


def return_if_first_cell(cell_info: Any) -> None:
    """Scroll up if the cell that begins to run is a lesson's first code cell."""
    if LESSON_IMPORT in cell_info.raw_cell:
        ReturnToTop()


shell = get_ipython()
if shell is not None:
    ReturnToTop()  # this import stands in the first code cell
    shell.events.register("pre_run_cell", return_if_first_cell)  # that cell is run once more
