"""Changes a partition by hand: the buttons under *Who holds what* of a lab, which write the setting `moves`
(`data/edits.py`), and the samples of the client and class that are looked at. In the playground piles do that.
"""

import base64
import html
import io
import re
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets
import numpy as np
from PIL import Image

from ..data import Federation, PartitionEdit, PartitionEdits
from ..plots.array_types import SampleArray
from ..plots.kit import render_tile_pixels
from ..plots.words import format_client_letters, format_count_and_noun
from .controls import Controls
from .lab_view import PanelState
from .theme import (
    HandlerPause,
    make_paragraph_html,
    make_widget,
    set_menu_options_and_keep_choice,
    show_widgets_if,
)
from .views import NOBODY, TabbedViews

MAX_SAMPLES = 24  # shown of a client and class


class PartitionEditor:
    """The row of buttons: what to do with the selected client, and how to undo it.

    handler_pause: on while the editor itself selects a client
    on_change(): called when the setting `moves` has changed, so that the partition has to be made again
    show_warning(text): shows a person why nothing happens
    """

    def __init__(
        self,
        controls: Controls,
        views: TabbedViews,
        handler_pause: HandlerPause,
        on_change: Callable[[], None],
        show_warning: Callable[[str], None],
    ) -> None:
        self._controls = controls
        self._views = views
        self._handler_pause = handler_pause
        self._on_change = on_change
        self._warn = show_warning
        self._shown_samples: tuple[Any, ...] = (None, None, None)  # client, class and federation
        self._make_buttons()
        self.samples = make_widget(widgets.HTML, "fl-samples")
        view_box = views["partition"].box
        view_box.children = (*view_box.children, self.row, self.samples)
        self.update_buttons_and_samples(PanelState())

    def _make_buttons(self) -> None:
        self.give = make_button(
            "Give", "The samples that are marked go to another client", self._move_selected_samples
        )
        self.to = make_widget(
            widgets.Dropdown, "fl-bare", label="Give to", help="Who gets them", width=90
        )
        self.empty = make_button(
            "Empty", "All but one go to nobody", self._empty_selected_client_but_one_sample
        )
        self.double = make_button(
            "Double", "One more client with the same samples", self._double_selected_client
        )
        self.name = make_widget(
            widgets.Text,
            label="Name",
            help="What this client is called in pictures",
            width=130,
            continuous_update=False,
        )
        self.undo = make_button("Undo", "Undo the last change by hand", self._undo_last_edit)
        self.reset = make_button("Back to α", "Undo all changes by hand", self._remove_all_edits)
        self.name.observe(lambda change: self._rename_selected_client(change["new"]), "value")
        self._client_parts = (self.give, self.to, self.empty, self.double, self.name)
        children = [*self._client_parts, self.undo, self.reset]
        self.row = make_widget(widgets.HBox, "fl-editor", children=children)

    @property
    def edits(self) -> PartitionEdits:
        """The changes by hand."""
        return PartitionEdits.parse(self._controls.hidden_settings.get("moves", ""))

    # ------------------------------------------------------------------------------------------ changes
    def move_samples(
        self,
        client_index: int,
        class_index_or_all: int | None,
        receiver_index_or_nobody: int | None,
    ) -> None:
        """Move a client's samples of a class to another client.

        class_index_or_all: None moves all samples of the client
        receiver_index_or_nobody: None moves them to nobody
        """
        ids = self.state.federation.ids
        if not self._count_movable_samples(client_index, class_index_or_all):
            who = format_client_letters(ids[client_index])
            self._warn(f"Client {who} keeps its last sample: every client of a run needs one.")
            return
        target = None if receiver_index_or_nobody is None else ids[receiver_index_or_nobody]
        is_looked_at = (client_index, class_index_or_all) == (
            self.state.client,
            self.state.class_index,
        )
        if receiver_index_or_nobody is not None and class_index_or_all is not None and is_looked_at:
            with self._handler_pause:  # the same samples stay in sight
                self._views.client.value = receiver_index_or_nobody
        self._add_edit(client_index, label=class_index_or_all, to=target)

    def _move_selected_samples(self) -> None:
        self.move_samples(self.state.client, self.state.class_index, self.to.value)

    def _empty_selected_client_but_one_sample(self) -> None:
        self.move_samples(self.state.client, None, None)

    def _double_selected_client(self) -> None:
        self._add_edit(self.state.client, is_double=True)

    def _rename_selected_client(self, new_name: str) -> None:
        name = " ".join(re.sub("[,:=]", " ", new_name).split())
        client_id = self.state.federation.ids[self.state.client]
        if name and name != self.edits.client_names.get(client_id):
            self._views.dirty.add("partition")
            self._add_edit(self.state.client, name=name)

    def _undo_last_edit(self) -> None:
        self._write_edits(self.edits.changes[:-1])

    def _remove_all_edits(self) -> None:
        self._write_edits(())

    def _count_movable_samples(self, client_index: int, class_index_or_all: int | None) -> int:
        """Count the samples of a class (None: of all classes) that a client can give away; it keeps one sample."""
        row = self.state.federation.label_counts[client_index]
        total = int(row.sum())
        count = total if class_index_or_all is None else int(row[class_index_or_all])
        if count == total:
            return count - 1
        return count

    def _add_edit(self, client_index: int, **edit_fields: Any) -> None:
        """Add a change of a client's samples or name. Edits count clients as if none were absent."""
        edit = PartitionEdit(self.state.federation.ids[client_index], **edit_fields)
        self._write_edits((*self.edits.changes, edit))

    def _write_edits(self, edits: tuple[PartitionEdit, ...]) -> None:
        """Write these edits into the setting; edits of samples hold for the seed of the first of them."""
        seed = (
            self.edits.seed if self.edits.edits_that_move_or_double else self._controls.seed.value
        )
        if edits:
            self._controls.hidden_settings["moves"] = str(
                PartitionEdits(edits).copy_with_seed_if_missing(seed)
            )
        else:
            self._controls.hidden_settings.pop("moves", None)
            self._views.client.focus()  # the button that had it is gone
        self._on_change()

    # ------------------------------------------------------------------------------------ what is shown
    def update_buttons_and_samples(self, state: PanelState) -> None:
        """Fit the buttons and samples to the selected client and class.

        The buttons are hidden until a client is selected or something was changed.
        """
        self.state = state
        federation = state.federation
        client = state.client
        has_client = federation is not None and client is not None and client < federation.clients
        has_edits = bool(self.edits.changes)
        has_samples = False
        if has_client and state.class_index is not None:
            has_samples = bool(federation.label_counts[client, state.class_index])
        show_widgets_if(has_client, *self._client_parts)
        show_widgets_if(has_edits, self.undo, self.reset)
        show_widgets_if(has_client or has_edits, self.row)
        show_widgets_if(has_samples, self.samples)
        if has_client:
            self._update_buttons(state)
        if has_samples:
            self._show_selected_samples(state)

    def _update_buttons(self, state: PanelState) -> None:
        client_id = state.federation.ids[state.client]
        who = format_client_letters(client_id)
        what = (
            "all" if state.class_index is None else f"class {state.class_names[state.class_index]}"
        )
        self.give.description = f"Give {what} to"
        self.give.disabled = not self._count_movable_samples(state.client, state.class_index)
        self.empty.description = f"Empty {who}"
        self.empty.disabled = not self._count_movable_samples(state.client, None)
        self.double.description = f"Double {who}"
        others = []
        for name, value in self._views.client.options:
            if value not in (NOBODY, state.client):
                others.append((name, value))
        set_menu_options_and_keep_choice(self.to, others)
        self.name.value = self.edits.client_names.get(client_id, "")

    def _show_selected_samples(self, state: PanelState) -> None:
        """Show the samples of the selection: at once if it is a new one; while a slider moves, once it rests."""
        place = (state.client, state.class_index)
        shown = (*place, state.federation)
        if self._shown_samples == shown:
            return
        is_same_place = self._shown_samples[:2] == place
        self._shown_samples = shown
        self._controls.debouncer.schedule_update(
            "samples",
            lambda: make_samples_html(state.federation, *place),
            lambda text: setattr(self.samples, "value", text),
            runs_at_once_in_caller=not is_same_place,
        )


def make_button(button_text: str, help: str, on_click: Callable[[], None]) -> widgets.Button:
    button = make_widget(widgets.Button, label=button_text, help=help, width="auto")
    button.on_click(lambda _: on_click())
    return button


def make_samples_html(federation: Federation, client_index: int, class_index: int) -> str:
    """Make HTML with the first MAX_SAMPLES samples of a class that a client holds, as small images in a row.

    Rows of features are only counted.
    """
    dataset = federation.dataset
    rows = federation.shards[client_index]
    rows = rows[dataset.y_train[rows] == class_index]
    who = format_client_letters(federation.ids[client_index])
    class_name = dataset.class_names[class_index]
    about = f"{format_count_and_noun(len(rows), 'sample')} of class {class_name} at client {who}"
    if len(dataset.input_shape) == 1:
        numbers = format_count_and_noun(dataset.input_shape[0], "number")
        return make_paragraph_html(f"{about}. A sample is a row of {numbers}, without a picture.")
    if len(rows) > MAX_SAMPLES:
        about += f", the first {MAX_SAMPLES} of them"
    tiles = "".join(
        make_sample_image_html(image) for image in dataset.x_train[rows[:MAX_SAMPLES]].numpy()
    )
    return f'<div role="img" aria-label="{html.escape(about)}">{tiles}</div>{make_paragraph_html(about)}'


def make_sample_image_html(sample: SampleArray) -> str:
    """Make a sample an HTML image. Without colours its ink is dark on a light page, and light on a dark one."""
    pixels = render_tile_pixels(sample)
    is_grey = pixels.shape[2] == 1
    shades = 1 - pixels if is_grey else pixels
    page = np.rint(255 * shades).astype(np.uint8).squeeze()
    file = io.BytesIO()
    Image.fromarray(page).save(file, "png")
    data = base64.b64encode(file.getvalue()).decode()
    has_ink = is_grey or sample.ndim == 2
    css_class = ' class="fl-ink"' if has_ink else ""
    return f'<img alt=""{css_class} src="data:image/png;base64,{data}">'
