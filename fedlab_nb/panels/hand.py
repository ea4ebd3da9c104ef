"""The federation in a person's hand: what is done to it in *Who holds what*, by dragging or with buttons, becomes the
setting `moves` (`data/moves.py`); and the samples that the chosen dot stands for.
"""

import base64
import html
import io
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ipywidgets as widgets
import numpy as np
from PIL import Image

from ..data import Federation, Move, Moves
from ..plots.kit import as_tile
from ..plots.words import letter, plural
from .controls import Controls
from .lab_view import PanelState
from .theme import Fitting, made, offer, paragraph, show_if
from .views import NOBODY, Views

FIRST = 24  # samples that are shown of a dot
LAST = "Client {} keeps its last sample: every client of a run needs one."


class Hand:
    """The row under the picture: what to do with the client that is looked at, and how to take it back.

    fitting: held while the client is chosen who has what is looked at
    changed(): `moves` are others, and the data are to be dealt out anew;   say(text): tell a person why nothing happens
    """

    def __init__(
        self, controls: Controls, views: Views, fitting: Fitting, changed: Callable[[], None],
        say: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._controls, self._views, self._fitting, self._changed, self._say = controls, views, fitting, changed, say
        self.state = PanelState()
        button = widgets.Button
        self.give = made(button, label="Give", width="auto", help="The samples that are marked go to another client")
        self.to = made(widgets.Dropdown, "fl-bare", label="Give to", help="Who gets them", width=90)
        self.empty = made(button, label="Empty", width="auto", help="All its samples but one go to nobody")
        self.double = made(
            button, label="Double", width="auto", help="One more client, which has the same samples: a double"
        )
        self.name = made(
            widgets.Text,
            label="Name",
            help="What this client is called in pictures",
            width=130,
            continuous_update=False,
        )
        self.undo = made(button, label="Undo", width="auto", help="Take the last change by hand back")
        self.back = made(button, label="Back to α", width="auto", help="Take all changes by hand back")
        self._acts = (self.give, self.to, self.empty, self.double, self.name)
        self.row = made(widgets.HBox, "fl-hand", children=[*self._acts, self.undo, self.back])
        self.samples = made(widgets.HTML, "fl-samples")
        view = views["partition"]
        view.box.children = (*view.box.children, self.row, self.samples)
        view.frame.movable = True
        view.frame.observe(lambda change: self._dropped(**change["new"]), "dropped")
        self.give.on_click(lambda _: self.move(self.state.client, self.state.klass, self.to.value))
        self.empty.on_click(lambda _: self.move(self.state.client, None, None))
        self.double.on_click(lambda _: self._add(Move(self._number(self.state.client), double=True)))
        self.name.observe(lambda change: self._rename(change["new"]), "value")
        self.undo.on_click(lambda _: self._put(self.moves.all[:-1]))
        self.back.on_click(lambda _: self._put(()))
        self.show(self.state)

    @property
    def moves(self) -> Moves:
        """What was done by hand."""
        return Moves.read(self._controls.beside.get("moves", ""))

    def move(self, client: int, klass: int | None, to: int | None) -> None:
        """A client's samples of a class (None: all) go to another client (None: to nobody)."""
        if not self._free(client, klass):
            self._say(LAST.format(letter(client)))
            return
        goal, source = None if to is None else self._number(to), self._number(client)
        if to is not None and klass is not None and (client, klass) == (self.state.client, self.state.klass):
            with self._fitting:  # who looks at a dot goes on looking at it
                self._views.client.value = to
        self._add(Move(source, klass, goal))

    def _dropped(self, client: int, klass: int | None, to: int, **_: Any) -> None:
        self.move(client, klass, to)

    def _rename(self, name: str) -> None:
        name, client = " ".join(re.sub("[,:=]", " ", name).split()), self._number(self.state.client)
        if name and name != self.moves.names.get(client):
            self._views.dirty.add("partition")
            self._add(Move(client, name=name))

    def _number(self, client: int) -> int:
        """The number that a column's client has as long as nobody is absent."""
        return self.state.federation.ids[client]

    def _free(self, client: int, klass: int | None) -> int:
        """How many samples of a class (None: of all) a client can give away."""
        row = self.state.federation.label_counts[client]
        count, everything = int(row.sum() if klass is None else row[klass]), int(row.sum())
        return count - (count == everything)

    def _add(self, move: Move) -> None:
        self._put((*self.moves.all, move))

    def _put(self, moves: tuple[Move, ...]) -> None:
        """Go over to these moves, on what the first seed deals out now, or did when the first of them was made."""
        before = self.moves
        seed = before.seed if before.moving else self._controls.seed.value
        self._controls.beside["moves"] = str(replace(before, all=moves, seed=seed))
        if not moves:
            del self._controls.beside["moves"]
            self._views.client.focus()  # the button that had it is gone
        self._changed()

    def show(self, state: PanelState) -> None:
        """Fit everything to what is looked at; nothing is seen as long as that is no client and nothing was moved."""
        self.state = state
        federation, client, klass, moved = state.federation, state.client, state.klass, bool(self.moves.all)
        here = federation is not None and client is not None and client < federation.clients
        show_if(here, *self._acts)
        show_if(moved, self.undo, self.back)
        show_if(here or moved, self.row)
        here_too = here and klass is not None and bool(federation.label_counts[client, klass])
        show_if(here_too, self.samples)
        if here:
            who = letter(client)
            what = "all" if klass is None else f"class {state.class_names[klass]}"
            self.give.description, self.give.disabled = f"Give {what} to", not self._free(client, klass)
            self.empty.description, self.double.description = f"Empty {who}", f"Double {who}"
            self.empty.disabled = not self._free(client, None)
            offer(self.to, [option for option in self._views.client.options if option[1] not in (NOBODY, client)])
            self.name.value = self.moves.names.get(self._number(client), "")
        if here_too:
            self.samples.value = samples(federation, client, klass)


def samples(federation: Federation, client: int, klass: int) -> str:
    """The FIRST samples of a class that a client holds, as small pictures in a row; rows of features are words."""
    rows = federation.shards[client].numpy()
    rows = rows[federation.dataset.y_train.numpy()[rows] == klass]
    about = f"{plural(len(rows), 'sample')} of class {federation.dataset.class_names[klass]} at client {letter(client)}"
    shape = federation.dataset.input_shape
    if len(shape) == 1:
        return paragraph(f"{about}. One of them is a row of {plural(shape[0], 'number')}, which has no picture.")
    about += f", the first {FIRST} of them" * (len(rows) > FIRST)
    tiles = "".join(tile(image) for image in federation.dataset.x_train[rows[:FIRST]].numpy())
    return f'<div role="img" aria-label="{html.escape(about)}">{tiles}</div>{paragraph(about)}'


def tile(sample: np.ndarray) -> str:
    """One sample as an HTML image: ink is dark on a light page, and light on a dark one, where it has no colours."""
    dots = as_tile(sample)
    grey = dots.shape[2] == 1
    page = np.rint(255 * (1 - dots if grey else dots)).astype(np.uint8).squeeze()
    out = io.BytesIO()
    Image.fromarray(page).save(out, "png")
    ink = ' class="fl-ink"' * (grey or sample.ndim == 2)
    return f'<img alt=""{ink} src="data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}">'
