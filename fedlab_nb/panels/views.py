"""The views: a row of tabs, and for each view a caption, a sentence, its own controls, a picture of fixed height and
its table. A view whose part of the state has changed is out of date, and is drawn when it is looked at.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets as widgets
import traitlets

from ..front import HERE as FRONT
from ..front import join_modules
from ..plots import Picture
from ..plots.style import SIZE, sized
from ..plots.vector import drawn, marks_of
from .figures import COMMON
from .lab_view import LabView, PanelState, cost_of_work, in_words
from .theme import (
    PICTURE_HEIGHT,
    Fitting,
    made,
    offer,
    paragraph,
    show_if,
    show_only,
    table,
    tabs,
    wears,
)
from .worker import Worker, on_thread

HERE = Path(__file__).parent
REDRAW = 0.15  # seconds between two drawings while a job runs, at least; and drawing takes at most a third of the time
# Pixels of an inch of a picture: a laptop's frame shows 4.15 inches of height, a projector's the same ones larger. A
# telephone's has fewer pixels, and there pictures put below each other what else stands side by side.
LEAST, MOST = 72, 125
# A picture in words; it scrolls, so a keyboard must reach it.
WORDS = '<div class="fl-table fl-words" tabindex="0" role="region" aria-label="table">{}</div>'
SOON = 2.0  # seconds of work that begins by itself, at most
PROJECTOR = (
    "For a projector, key P: larger letters, few controls, and no result before it is guessed"
)
NOBODY = -1
NONE = ("none", NOBODY)
EARLIER = "Run {run} has no result yet. This is the picture from before it."


class Chores(anywidget.AnyWidget):
    """What the page of a panel needs beside its widgets (`chores.js`): names and values of sliders and tabs for
    assistive technology, a word when the kernel is gone. It is not seen.
    """

    _esm = (HERE / "chores.js").read_text(encoding="utf-8")


class Frame(anywidget.AnyWidget):
    """The frame of a picture: an SVG that fills it, or words. What is in it answers to pointer and keyboard.

    value: an SVG element, or HTML;   alt: what the SVG shows, in words;   marks: {id: what it says and stands for}
    size:  width and height of the visible frame in pixels, [0, 0] before it was seen
    held:  the method that is held in all pictures, or "";   picked: the last choice, with a number that counts them

    Python sends the first ones and `held`; the browser (`frame.js`) sends `size` and `picked`.
    """

    _esm = (HERE / "frame.js").read_text(encoding="utf-8")
    value = traitlets.Unicode().tag(sync=True)
    alt = traitlets.Unicode().tag(sync=True)
    marks: Any = traitlets.Dict().tag(sync=True)
    held = traitlets.Unicode().tag(sync=True)
    size = traitlets.List([0, 0]).tag(sync=True)
    picked: Any = traitlets.Dict().tag(sync=True)


class Ink(anywidget.AnyWidget):
    """A field in which a person draws a digit with mouse, pen or finger; `front/pen.js` makes of it what the package's
    digits are made of.

    seen: what the drawing is by now, 64 numbers 0-1, row by row; [] as long as there is no ink
    value: the same when the pen was last lifted
    """

    _esm = join_modules([FRONT / "dom.js", FRONT / "pen.js"]) + (HERE / "ink.js").read_text(
        encoding="utf-8"
    )
    seen: Any = traitlets.List().tag(sync=True)
    value: Any = traitlets.List().tag(sync=True)


class View:
    """The widgets of one `LabView`. Classes for the browser: fl-view-NAME (fl-old: out of date while nobody looks;
    fl-older: of another setting than the controls say), and within it fl-caption, fl-sentence, fl-tools (controls of
    its own) and fl-frame (the picture). `button` starts the view's own work, where it has any.
    """

    def __init__(self, kind: LabView) -> None:
        self.kind = kind
        self.caption, self.sentence = (
            made(widgets.HTML, "fl-caption"),
            made(widgets.HTML, "fl-sentence"),
        )
        self.frame = made(Frame, "fl-frame", width="auto", layout={"height": PICTURE_HEIGHT})
        tools, self.button = list(kind.controls), None
        if kind.work_label:
            label, help = kind.work_label, kind.work_help or kind.work_label
            self.button = made(widgets.Button, "fl-work", label=label, help=help, width="auto")
            tools.append(self.button)
        row = [made(widgets.HBox, "fl-tools", children=tools)] if tools else []
        parts = [self.caption, self.sentence, *row, self.frame]
        self.box = made(widgets.VBox, "fl-view", f"fl-view-{kind.name}", "fl-old", children=parts)
        self.picture: Picture | None = None

    def show(self, picture: Picture, caption: str, svg: str = "") -> None:
        """Show a picture. svg: its figure, where that was drawn before."""
        self.box.remove_class("fl-old")
        if picture.waits:
            self.say(picture.sentence, caption, "fl-todo")
            self.picture = picture
            return
        self.picture = picture
        figure = picture.figure
        marks = {}
        if figure is not None:
            svg = svg or drawn(figure)
            marks = marks_of(figure)
        value = svg
        if figure is None or picture.tabled:
            image = f'<div role="img" aria-label="{escape(picture.alt)}">{svg}</div>' if svg else ""
            value = WORDS.format(image + table(picture.table))
        self.box.remove_class("fl-waits")
        self.tell(caption)
        with self.frame.hold_sync():  # last: where the picture is seen, its words are there
            self.frame.alt = picture.alt
            self.frame.marks = marks
            self.frame.value = value

    def say(self, text: str, caption: str = "", style: str = "") -> None:
        """Words in place of a picture. style "fl-todo": they say what to do so that there will be one, in less room."""
        self.picture = None
        wears(self.box, "fl-waits", bool(style))
        self.frame.value = f'<div class="fl-empty {style}">{paragraph(text)}</div>'
        self.sentence.value = ""
        self.describe(caption)

    def tell(self, caption: str) -> None:
        self.describe(caption)
        self.sentence.value = paragraph(self.picture.sentence, "status")

    def dim(self, is_older: bool) -> None:
        """Dim what is older than the setting that the controls say."""
        wears(self.box, "fl-older", is_older)

    def describe(self, caption: str) -> None:
        self.caption.value = paragraph(caption)


class Views:
    """All views under their tabs, in this order; one is visible; `look` is what is looked at.

    `update(state)`: views that depend on what changed are out of date, their names in `dirty`; `draw()`: draw the
    visible one if it is.

    lock:  held while something is shown;   fitting: held while a view fits its own controls
    prepare(kind, state): begins a view's slow work
    without_tab: names of views that are drawn only when they are asked for;   titles: of tabs, in place of the views'
    """

    def __init__(
        self,
        kinds: Sequence[LabView],
        lock: threading.RLock,
        fitting: Fitting,
        prepare: Callable,
        without_tab: Sequence[str] = (),
        titles: Mapping[str, str] | None = None,
    ) -> None:
        self._lock, self._fitting, self._prepare = lock, fitting, prepare
        self.views = {kind.name: View(kind) for kind in kinds}
        self.without_tab = set(without_tab)
        seen = [kind for kind in kinds if kind.name not in self.without_tab]
        titles = titles or {}
        first = seen[0].name if "partition" in self.without_tab else "partition"
        self.tabs = tabs({titles.get(kind.name, kind.title): kind.name for kind in seen}, first)
        about = {"label": "Numbers as a table", "help": "The numbers of this picture"}
        self.tables = made(widgets.ToggleButton, "fl-tables", **about)
        self.larger = made(widgets.ToggleButton, "fl-larger", label="Larger", help=PROJECTOR)
        self.reveal = made(
            widgets.ToggleButton,
            "fl-reveal",
            label="Show the result",
            help="Once it is guessed: key G",
        )
        self.stored = True  # whether stored results are to be seen
        mark = {"help": "It is marked in every view", "options": [NONE]}
        self.client = made(
            widgets.Dropdown, "fl-client", label="Look at client", width=180, label_width=92, **mark
        )
        self.klass = made(
            widgets.Dropdown, "fl-class", label="class", width=170, label_width=36, **mark
        )
        foot = made(
            widgets.HBox,
            "fl-foot",
            children=[self.tables, self.client, self.klass, self.reveal, self.larger],
        )
        self.table = made(widgets.HTML, "fl-table", "fl-numbers")
        boxes = [view.box for view in self.views.values()]
        self.box = made(widgets.VBox, "fl-main", children=[self.tabs, *boxes, foot, self.table])
        self.frame, self.held, self.state = (0, 0), "", PanelState()
        self.dirty, self._failed = set(self.views), set()  # _failed: that could not be drawn ahead
        self.due, self._rests = (
            False,
            0.0,
        )  # whether a run has more to show in the visible view, and when it may
        self._hide_others()
        self.tables.observe(lambda _: self.show_table(), "value")
        self.show_table()

    @property
    def visible(self) -> str:
        return self.tabs.value

    def __getitem__(self, name: str) -> View:
        return self.views[name]

    def choose(self, name: str) -> None:
        self.tabs.value = name

    # ------------------------------------------------------------------------------------------ what is looked at
    def on_look(self, call: Callable) -> None:
        """`call()` when a person looks at something else: another client or class, frames of another size, another
        view. Of a view it is called before that becomes visible, so that no old picture flashes up.
        """

        def turned(_: object) -> None:
            call()
            self._hide_others()
            self.show_table()

        def resized(change: Any) -> None:
            if tuple(change["new"]) != self.frame:
                self.frame = tuple(change["new"])
                call()

        self.tabs.observe(turned, "value")
        for choice in (self.client, self.klass, self.larger, self.reveal):
            choice.observe(lambda _: call(), "value")
        for view in self.views.values():
            view.frame.observe(resized, "size")
            view.frame.observe(lambda change: self._picked(change["new"]), "picked")

    def offer(self, clients: Sequence[str], class_names: Sequence[str]) -> None:
        """Offer the clients, as they are called, and the classes; each choice stays where it can."""
        for menu, texts in ((self.client, clients), (self.klass, map(str, class_names))):
            offer(menu, (NONE, *((text, k) for k, text in enumerate(texts))))

    @property
    def look(self) -> dict[str, Any]:
        """What is looked at, as parts of the state: the view, the client and the class (None: none of them); stored
        results are not where a class still guesses."""
        client, klass = (
            None if menu.value == NOBODY else menu.value for menu in (self.client, self.klass)
        )
        stored = self.stored and (self.reveal.value or not self.larger.value)
        seen = {"view": self.visible, "frame": self.frame, "shows_stored": stored}
        return {**seen, "client": client, "klass": klass}

    @property
    def inches(self) -> tuple[float, float]:
        """Size of the pictures that fill the frames as they are now."""
        width, height = self.frame
        if not width or not height:
            return SIZE
        inch = min(max(min(height / SIZE[1], width / SIZE[0]), LEAST), MOST)
        return width / inch, height / inch

    def _picked(self, mark: dict[str, Any]) -> None:
        """A mark was chosen: its client and class are those that are looked at, its method is held in all pictures.
        Chosen once more it is let go of; Escape lets go of everything.
        """
        if mark.get("none"):
            self.hold("")
            self.client.value = self.klass.value = NOBODY
            return
        if mark.get("method"):
            self.hold("" if mark["method"] == self.held else mark["method"])
        for menu, at in ((self.client, mark.get("client")), (self.klass, mark.get("klass"))):
            if at is not None and any(value == at for _, value in menu.options[1:]):
                menu.value = NOBODY if menu.value == at and mark.get("method") is None else at

    def hold(self, method: str) -> None:
        """Let one method stand out in every picture; "" for none."""
        self.held = method
        for view in self.views.values():
            view.frame.held = method

    def _hide_others(self) -> None:
        show_only(self.visible, {name: view.box for name, view in self.views.items()})

    def show_table(self) -> None:
        """The visible picture's numbers, where they are wanted."""
        show_if(self.tables.value, self.table)
        if self.tables.value:
            picture = self.views[self.visible].picture
            self.table.value = table(picture.table if picture else [])

    def soon(self) -> bool:
        """Whether the button of the visible view was not pressed yet, and takes no time worth a question."""
        state = self.state.of(self.visible)
        cost = cost_of_work(self[self.visible].kind, state) if state.worked is None else None
        return cost is not None and cost.seconds is not None and cost.seconds < SOON

    # ------------------------------------------------------------------------------------------------- what is drawn
    def update(self, state: PanelState) -> None:
        """Go over to a state; nothing is drawn yet."""
        old, self.state = self.state, state
        changes = state.changes(old)
        for name, view in self.views.items():
            waits = {"running"} if view.picture is not None and view.picture.waits else set()
            if changes & {*view.kind.needs, *waits} or state.own.get(name) is not old.own.get(name):
                self.dirty.add(name)
                self._failed.discard(name)
                wears(view.box, "fl-old", name != self.visible)

    def _rest(self, start: float) -> None:
        """After a drawing that began at `start`: no other one for a while, as long as a job runs."""
        now = time.monotonic()
        self._rests = now + max(REDRAW, 2 * (now - start))

    def draw(self) -> None:
        """Draw the visible view if it is out of date; the others wait until they are looked at."""
        for name in self.views.keys() - self.dirty:
            view = self[name]
            view.describe(view.kind.caption(self.state))
            view.dim(view.kind.is_older(self.state))
        name = self.state.view
        if name not in self.dirty:
            return
        start = time.monotonic()
        self.dirty.discard(name)
        self._paint(self[name])
        self.show_table()
        self._rest(start)

    def paint(self, name: str) -> None:
        """Draw a view whether it is looked at or not."""
        self.dirty.discard(name)
        self._paint(self[name])

    def _paint(self, view: View) -> None:
        """Draw one view, or say what to do so that there will be a picture."""
        kind, state = view.kind, self.state.of(view.kind.name)
        view.dim(True)  # seen where the drawing takes long (theme.css)
        if not kind.is_ready(state):
            self.dirty.add(kind.name)
            if state.running and view.picture is not None and state.federation is not None:
                view.describe(EARLIER.format(run=state.number))
            elif words := kind.waiting if state.running else kind.empty:
                view.say(words, kind.caption(state), "" if state.running else "fl-todo")
                view.dim(False)
            return
        lacks = kind.lacks(state)
        if lacks and not kind.preview:
            view.say("Computing …", kind.caption(state))
        else:
            with self._fitting:
                kind.adapt(state)
            with sized(self.inches):
                view.show(in_words(kind, state), kind.caption(state))
        view.dim(kind.is_older(state))
        if lacks:
            self.dirty.add(kind.name)
            self._prepare(kind, state)

    def follow(self) -> None:
        """Draw the visible view while a run goes on, if it has more to show and the last drawing is a while ago."""
        if self.due and (start := time.monotonic()) > self._rests:
            self.due = False
            self.ahead(seen=True)
            self._rest(start)

    def ahead(self, seen: bool = False) -> bool:
        """Draw one view that nobody looks at yet, so that it is there when it is chosen, or the one that is `seen`;
        False if there is none. The lock is free meanwhile: a hand does not wait, and what it changes is drawn anew.
        """
        with self._lock:
            unseen = (
                self.dirty - self._failed - {self.visible} - self.without_tab
                if self.frame[0]
                else set()
            )  # if somebody looks on
            asked = [self[name].kind for name in (self.dirty & {self.visible} if seen else unseen)]
            there = [
                kind.name for kind in asked if seen and kind.preview or not kind.lacks(self.state)
            ]
            if not (
                due := [name for name in there if self[name].kind.is_ready(self.state.of(name))]
            ):
                return False
            view, state, inches, before = (
                self[due[0]],
                self.state.of(due[0]),
                self.inches,
                self[due[0]].picture,
            )
            self.dirty.discard(due[0])
            with self._fitting:
                view.kind.adapt(state)
        with suppress(Exception), sized(inches):  # who looks at it will read why
            picture = in_words(view.kind, state)
            value = drawn(picture.figure) if picture.figure is not None else ""
            with self._lock:
                if due[0] not in self.dirty and view.picture is before:
                    view.show(picture, view.kind.caption(state), value)
                    view.dim(view.kind.is_older(state))
                    self.show_table()
                return True
        self.dirty.add(due[0])
        self._failed.add(due[0])
        return True

    def draw_ahead(self, worker: Worker) -> None:
        """Draw what nobody looks at yet, until there is something better to do: a job, or a hand on α. Not where all
        work is done in the calling thread.
        """
        federation = self.state.federation

        def draw() -> None:
            while self.state.federation is federation and not worker.busy and self.ahead():
                pass

        if not worker.inline:
            on_thread(draw)

    def pictures(self) -> dict[str, Picture]:
        """Every picture that there is, drawn anew but for a lab's own; the t-SNE maps that are missing are made."""
        pictures = {}
        for name, view in self.views.items():
            state = replace(self.state.of(name), stored=None)
            if type(view.kind) not in COMMON:
                pictures[name] = view.picture
            elif name == "partition" or state.runs.has_results:
                if view.kind.lacks(state):
                    list(view.kind.prepare(state))
                pictures[name] = in_words(view.kind, state)
        return {name: picture for name, picture in pictures.items() if picture is not None}
