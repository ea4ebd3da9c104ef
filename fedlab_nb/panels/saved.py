"""How a panel is saved in a notebook: with a kernel it is live, without one it is a picture and a sentence.

JupyterLab shows a saved widget as "Error displaying widget" once a notebook is trusted, even if its output also holds
a picture. So a panel displays itself as three outputs: the widget with its sentence, its picture, and a style that
shows one of the two. After each run that a person starts the picture is that run's.
"""

import base64
import sys
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import ipywidgets as widgets
from IPython import get_ipython
from IPython.display import display

from ..plots import Picture
from ..plots.style import make_image_html, render_png_for_notebook
from .theme import SAVED_STYLE

WIDGET = "application/vnd.jupyter.widget-view+json"


class PictureOutput(NamedTuple):
    """The data of an output by MIME type, and its metadata."""

    data: dict[str, str]
    metadata: dict[str, Any]


class SavedPanel(widgets.VBox):
    """A widget that is readable in a notebook without a kernel. A subclass draws its picture, `still()`."""

    _stills: Sequence[Any] = ()  # handles of the pictures that were displayed beside the widget

    def still(self) -> Picture:
        """Draw the picture that is shown without a kernel, in snapshots of lessons and on slides."""
        raise NotImplementedError

    def _update_displayed_stills(self) -> None:
        """Replace the displayed picture by the present one, so that a notebook that is saved now has this one."""
        if any(self._stills):
            self._show_in_displayed_stills(self.draw_still_output())

    def draw_still_output(self) -> PictureOutput:
        """Draw `still()` as the data and metadata of an output."""
        picture = self.still()
        return PictureOutput(make_mime_bundle_of_picture(picture), picture.image_metadata)

    def _show_in_displayed_stills(self, output: PictureOutput) -> None:
        for still in self._stills:
            if still is not None:  # it could be displayed
                still.update(output.data, metadata=output.metadata, raw=True)

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the data and metadata of one output with everything: widget, picture, sentence."""
        data, metadata = self.draw_still_output()
        widget = super()._repr_mimebundle_(**kwargs) or {}
        if WIDGET in widget:
            data = {WIDGET: widget[WIDGET], **data}
        return data, metadata

    def _ipython_display_(self) -> None:
        """Show a panel as its three outputs; in Colab, whose pages the style does not fit, as the widget alone."""
        picture = self.still()
        widget = super()._repr_mimebundle_() or {}
        has_widget = WIDGET in widget
        if has_widget:  # first, so that a browser draws it while the picture is made
            display({WIDGET: widget[WIDGET], "text/plain": picture.sentence}, raw=True)
            if "google.colab" in sys.modules:
                return
        still = make_mime_bundle_of_picture(picture)
        shown = display(still, metadata=picture.image_metadata, raw=True, display_id=True)
        self._stills = [*self._stills, shown]
        if has_widget:
            display(
                {"text/html": SAVED_STYLE, "text/plain": "(style of the saved panel)"}, raw=True
            )


def make_mime_bundle_of_picture(picture: Picture) -> dict[str, str]:
    """Make the data of an output from a picture and its sentence.

    The PNG is for slides, and for programs without HTML.
    """
    return {
        "text/html": make_image_html(picture),
        "image/png": base64.b64encode(render_png_for_notebook(picture)).decode(),
        "text/plain": picture.sentence,
    }


_panels: weakref.WeakSet[Any] = weakref.WeakSet()


class CellExecution(NamedTuple):
    """A notebook's cell by its id, and the number of its execution."""

    cell: str
    number: int


def register_panel_and_stop_earlier_ones_of_cell(panel: SavedPanel) -> None:
    """Remember a panel, and stop the work of those that an earlier execution of the same cell has made."""
    panel.made_in = find_running_cell()
    if panel.made_in is not None:
        cell, number = panel.made_in
        for old in list(_panels):
            if old.made_in is None:
                continue
            old_cell, old_number = old.made_in
            if old_cell == cell and old_number != number:
                old.stop()
    _panels.add(panel)


def find_running_cell() -> CellExecution | None:
    """Find the cell that is being executed; None outside a notebook, or if the notebook does not tell it."""
    try:
        shell = get_ipython()
        cell = str(shell.parent_header["metadata"]["cellId"])
        return CellExecution(cell, int(shell.execution_count))
    except Exception:
        return None
