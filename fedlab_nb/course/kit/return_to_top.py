"""Scroll back to the beginning of a lesson after Run ▸ Run All Cells, which leaves the reader at its end."""

from __future__ import annotations

from pathlib import Path

import anywidget


class ReturnToTop(anywidget.AnyWidget):
    """Scrolls up once, when its model reaches a browser with the notebook (`return_to_top.js`). It is not displayed."""

    _esm = (Path(__file__).parent / "return_to_top.js").read_text(encoding="utf-8")
