"""The federation in a person's hand: what is done to it in *Who holds what*, by dragging or with buttons, becomes the
setting `moves` (`data/edits.py`); and the samples that the chosen dot stands for.
"""

import base64
import html
import io
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import ipywidgets as widgets
import numpy as np
from PIL import Image

from ..data import Edit, Edits, Federation
from ..plots.kit import as_tile
from ..plots.words import letter, own_name, plural, setting_of
from .controls import Controls
from .lab_view import PanelState
from .theme import Fitting, made, offer, paragraph, show_if
from .views import NOBODY, Views

FIRST = 24  # samples that are shown of a dot


class Hand:
    """The row under the picture: what to do with the client that is looked at, and how to take it back.

    fitting: held while the client is chosen who has what is looked at
    changed(): `moves` are others, and the data are to be dealt out anew;   say(text): tell a person why nothing happens
    """

    def __init__(
        self, controls: Controls, views: Views, fitting: Fitting, changed: Callable, say: Callable
    ) -> None:
        self._controls, self._views, self._fitting, self._changed, self._say = (
            controls,
            views,
            fitting,
            changed,
            say,
        )
        self._shown: tuple[Any, ...] = (
            None,
            None,
        )  # the client and the class whose samples are seen, and the data

        def button(label: str, help: str, does: Callable[[], None]) -> widgets.Button:
            one = made(widgets.Button, label=label, help=help, width="auto")
            one.on_click(lambda _: does())
            return one

        who, which = (
            "What this client is called in pictures",
            "The samples that are marked go to another client",
        )
        self.give = button("Give", which, lambda: self.move(*self._here, self.to.value))
        self.to = made(widgets.Dropdown, "fl-bare", label="Give to", help="Who gets them", width=90)
        self.empty = button(
            "Empty", "All but one go to nobody", lambda: self.move(self._here[0], None, None)
        )
        self.double = button(
            "Double", "One more client with the same samples", lambda: self._add(is_double=True)
        )
        self.name = made(widgets.Text, label="Name", help=who, width=130, continuous_update=False)
        self.undo = button(
            "Undo", "Take the last change by hand back", lambda: self._put(self.edits.changes[:-1])
        )
        self.back = button("Back to α", "Take all changes by hand back", lambda: self._put(()))
        self._acts = (self.give, self.to, self.empty, self.double, self.name)
        self.row = made(widgets.HBox, "fl-hand", children=[*self._acts, self.undo, self.back])
        self.samples = made(widgets.HTML, "fl-samples")
        view = views["partition"]
        view.box.children = (*view.box.children, self.row, self.samples)
        view.frame.movable = True
        view.frame.observe(
            lambda change: self.move(*(change["new"][n] for n in ("client", "klass", "to"))),
            "dropped",
        )
        self.name.observe(lambda change: self._rename(change["new"]), "value")
        self.show(PanelState())

    @property
    def edits(self) -> Edits:
        """What was done by hand."""
        return Edits.parse(self._controls.beside.get("moves", ""))

    @property
    def _here(self) -> Any:
        """The client and the class that are looked at."""
        return self.state.client, self.state.klass

    def move(self, client: int, klass: int | None, to: int | None) -> None:
        """A client's samples of a class (None: all) go to another client (None: to nobody)."""
        if not self._free(client, klass):
            who = letter(self.state.federation.ids[client])
            return self._say(
                f"Client {who} keeps its last sample: every client of a run needs one."
            )
        goal = None if to is None else self.state.federation.ids[to]
        if goal is not None and klass is not None and (client, klass) == self._here:
            with self._fitting:  # who looks at a dot goes on looking at it
                self._views.client.value = to
        self._add(client, label=klass, to=goal)

    def _rename(self, name: str) -> None:
        name = " ".join(re.sub("[,:=]", " ", name).split())
        if name and name != self.edits.names.get(self.state.federation.ids[self._here[0]]):
            self._views.dirty.add("partition")
            self._add(name=name)

    def _free(self, client: int, klass: int | None) -> int:
        """How many samples of a class (None: of all) a client can give away."""
        row = self.state.federation.label_counts[client]
        count = int(row.sum() if klass is None else row[klass])
        return count - (count == int(row.sum()))

    def _add(self, client: int | None = None, **change: Any) -> None:
        """One more change of a client's, by default of the one that is looked at."""
        number = self.state.federation.ids[
            self._here[0] if client is None else client
        ]  # as if nobody were absent
        self._put((*self.edits.changes, Edit(number, **change)))

    def _put(self, changes: tuple[Edit, ...]) -> None:
        """Go over to these edits, of what the first seed deals out now, or did when the first of them was made."""
        seed = self.edits.seed if self.edits.sample_edits else self._controls.seed.value
        self._controls.beside["moves"] = str(Edits(changes).fix_seed(seed))
        if not changes:
            del self._controls.beside["moves"]
            self._views.client.focus()  # the button that had it is gone
        self._changed()

    def show(self, state: PanelState) -> None:
        """Fit everything to what is looked at; nothing is seen as long as that is no client and nothing was moved."""
        self.state = state
        (client, klass), federation, moved = self._here, state.federation, bool(self.edits.changes)
        here = federation is not None and client is not None and client < federation.clients
        dot = here and klass is not None and bool(federation.label_counts[client, klass])
        show_if(here, *self._acts)
        show_if(moved, self.undo, self.back)
        show_if(here or moved, self.row)
        show_if(dot, self.samples)
        if here:
            what = "all" if klass is None else f"class {state.class_names[klass]}"
            self.give.description, self.give.disabled = (
                f"Give {what} to",
                not self._free(client, klass),
            )
            who = letter(federation.ids[client])
            self.empty.description, self.double.description = f"Empty {who}", f"Double {who}"
            self.empty.disabled = not self._free(client, None)
            offer(
                self.to,
                [
                    option
                    for option in self._views.client.options
                    if option[1] not in (NOBODY, client)
                ],
            )
            self.name.value = self.edits.names.get(federation.ids[client], "")
        if dot and self._shown != (*self._here, federation):
            same, self._shown = self._shown[:2] == self._here, (*self._here, federation)
            say = partial(setattr, self.samples, "value")  # while α moves, once it rests
            self._controls.later.ask(
                "samples", lambda: samples(federation, client, klass), say, now=not same
            )


def samples(federation: Federation, client: int, klass: int) -> str:
    """The FIRST samples of a class that a client holds, as small pictures in a row; rows of features are words."""
    data, rows = federation.dataset, federation.shards[client]
    rows = rows[data.y_train[rows] == klass]
    who = letter(federation.ids[client])
    about = f"{plural(len(rows), 'sample')} of class {data.class_names[klass]} at client {who}"
    if len(data.input_shape) == 1:
        return paragraph(
            f"{about}. A sample is a row of {plural(data.input_shape[0], 'number')}, without a picture."
        )
    about += f", the first {FIRST} of them" * (len(rows) > FIRST)
    tiles = "".join(tile(image) for image in data.x_train[rows[:FIRST]].numpy())
    return f'<div role="img" aria-label="{html.escape(about)}">{tiles}</div>{paragraph(about)}'


def tile(sample: np.ndarray) -> str:
    """One sample as an HTML image: ink is dark on a light page, and light on a dark one, where it has no colours."""
    dots, out = as_tile(sample), io.BytesIO()
    grey = dots.shape[2] == 1
    page = np.rint(255 * (1 - dots if grey else dots)).astype(np.uint8).squeeze()
    Image.fromarray(page).save(out, "png")
    ink = ' class="fl-ink"' * (grey or sample.ndim == 2)
    return (
        f'<img alt=""{ink} src="data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}">'
    )


def called(federation: Federation, partition: Mapping[str, Any], moves: str) -> list[str]:
    """What the clients are called, by their file, by hand, or by the course."""
    dealt = (federation.whole or federation).clients - len(Edits.parse(moves).doubles)
    setting = setting_of({**partition, "clients": dealt, "moves": moves})
    return [own_name(k, setting) for k in range(federation.clients)]
