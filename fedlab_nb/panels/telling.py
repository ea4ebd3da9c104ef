"""What a panel tells beside its pictures: status, phase, errors. Only traits are set here; nothing is printed."""

from __future__ import annotations

import traceback

import ipywidgets as widgets

from ..errors import FedlabError
from .controls import Controls
from .look import paragraph


class Telling:
    """`status` is also a CSS class of the panel (`fl-status-…`), so that a browser can wait for it; `traceback` of the
    last error.
    """

    def __init__(self, root: widgets.DOMWidget, controls: Controls) -> None:
        self._root, self._controls = root, controls
        self.status, self.traceback = "", ""
        self.set("idle")

    def set(self, status: str) -> None:
        """ "idle", "running", "done", "stopped" or "error"."""
        self._root.remove_class(f"fl-status-{self.status}")
        self._root.add_class(f"fl-status-{status}")
        self.status = status
        self._controls.busy(status == "running")

    def phase(self, text: str) -> None:
        self._controls.phase.value = paragraph(text, "status")

    def fail(self, error: Exception, start: str = "", also: bool = False) -> None:
        """One readable line in the panel, the traceback kept; with `also`, below the lines that are there already."""
        self.traceback = "".join(traceback.format_exception(error))
        self._say(paragraph(start + message(error), "alert"), also)

    def warn(self, text: str) -> None:
        self._say(paragraph(f"Note: {text}", "status"), also=True)

    def clear(self) -> None:
        self._controls.error.value = ""

    def _say(self, line: str, also: bool) -> None:
        before = self._controls.error.value if also else ""
        self._controls.error.value = before if line in before else before + line


def message(error: Exception) -> str:
    """One line: the package's own errors speak for themselves, any other is named with the way to its traceback."""
    if isinstance(error, FedlabError):
        return str(error)
    first = (str(error).strip().splitlines() or [""])[0]
    return f"Unexpected {type(error).__name__}: {first} (the traceback is in panel.error)"
