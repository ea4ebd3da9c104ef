"""The views: a row of tabs, and for each view a caption, a sentence, its own controls, a picture of fixed height and
its table.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import ipywidgets as widgets

from ..plots import Picture
from ..plots.moving import motion_of, moved, moves_of
from ..plots.style import SIZE, current_size
from ..plots.vector import Drawn, drawn
from .frame import Frame
from .lab_view import LabView
from .theme import PICTURE_HEIGHT, made, named, offer, paragraph, show_only, table

# Pixels of an inch of a picture: a laptop's frame shows 4.15 inches of height, a projector's the same ones larger. A
# telephone's has fewer pixels, and there pictures put below each other what else stands side by side.
LEAST, MOST = 72, 125
# A picture in words; it scrolls, so a keyboard must reach it.
WORDS = '<div class="fl-table fl-words" tabindex="0" role="region" aria-label="table">{}</div>'
NOBODY = -1
NONE = ("none", NOBODY)


class View:
    """The widgets of one `LabView`. Classes for the browser: fl-view-NAME, and within it fl-caption, fl-sentence,
    fl-tools (controls of its own) and fl-frame (the picture). `button` starts the view's own work, where it has any.
    """

    def __init__(self, kind: LabView) -> None:
        self.kind = kind
        self.caption, self.sentence = made(widgets.HTML, "fl-caption"), made(widgets.HTML, "fl-sentence")
        drivers = {name: f"IPY_MODEL_{widget.model_id}" for name, widget in kind.drivers.items()}
        self.frame = made(Frame, "fl-frame", drivers=drivers, layout={"height": PICTURE_HEIGHT, "width": "auto"})
        tools, self.button = list(kind.controls), None
        if kind.work_label:
            self.button = made(
                widgets.Button, "fl-work", description=kind.work_label, tooltip=kind.work.__doc__ or kind.work_label,
                layout={"width": "auto"},
            )  # fmt: skip
            tools.append(self.button)
        row = [made(widgets.HBox, "fl-tools", children=tools)] if tools else []
        self.box = made(
            widgets.VBox, "fl-view", f"fl-view-{kind.name}", children=[self.caption, self.sentence, *row, self.frame]
        )
        self.picture: Picture | None = None
        self._drawn: Any = None  # figure, size and `Moves.key` of what the frame shows
        self._prints: dict[str, Any] = {}  # what each part shows that moves
        self._moving = self.due = False  # since then something has moved; and it rests

    def show(self, picture: Picture, caption: str, ready: Drawn | None = None) -> None:
        """Show a picture: in a browser only what has moved, if that is all that is new, and the whole when it rests.
        `ready`: its SVG, where that is made already.
        """
        self.picture = picture
        self.describe(caption)
        self.sentence.value = paragraph(picture.sentence, "status")
        of, here = moves_of(picture.figure), (bool(self.frame.size[0]), self.frame.moves_itself)
        key = (picture.figure, current_size(), of.key, here) if of and here[of.pose is not None] else None
        if key is not None and key == self._drawn:
            with self.frame.hold_sync():
                self.frame.alt = picture.alt
                self._move(picture.figure)
            self._moving = of.pose is None
        else:
            self._drawn = key
            try:
                self._whole(ready)
            except Exception:
                self._drawn = None
                raise

    def let_rest(self, call: Callable) -> None:
        """The browser says that nothing moves any more: `call()`, which draws, if the whole is to be drawn."""
        self.due = self._moving
        if self.due:
            call()

    def rest(self) -> None:
        """Draw the whole of what has moved, if that is due."""
        if self.due and self.picture is not None:
            self._whole()

    def _whole(self, ready: Drawn | None = None) -> None:
        picture, self._moving, self.due = self.picture, False, False
        value, marks, motion = WORDS.format(table(picture.table)), {}, {}
        of = moves_of(picture.figure)
        posed = of.pose if of and self._drawn else None
        if picture.figure is not None:
            with posed() if posed else nullcontext():
                drawing = ready or drawn(picture.figure)
                value, marks = drawing.svg, drawing.marks
                if of and self._drawn and self.frame.moves_itself:
                    motion = motion_of(picture.figure)
                self._prints = moves_of(picture.figure).prints if of else {}
        with self.frame.hold_sync():  # last: where the picture is seen, its words are there
            self.frame.alt, self.frame.marks, self.frame.value = picture.alt, marks, value
            self.frame.motion, self.frame.moves = motion, {}
            if posed:
                self._move(picture.figure)

    def _move(self, figure: Any) -> None:
        """Send what of a figure has moved."""
        of = moves_of(figure)
        self.frame.moves = {**moved(figure, self._prints), "rests": of.pose is None}
        self._prints = of.prints

    def say(self, text: str, caption: str = "") -> None:
        """Words in place of a picture: what to do so that there will be one."""
        self.picture = self._drawn = None
        self._moving = self.due = False
        self.frame.value = f'<div class="fl-empty">{paragraph(text)}</div>'
        self.sentence.value = ""
        self.describe(caption)

    def describe(self, caption: str) -> None:
        self.caption.value = paragraph(caption)


class Views:
    """All views under their tabs, in this order; one is visible; `look` is what is looked at."""

    def __init__(self, kinds: Sequence[LabView]) -> None:
        self.views = {kind.name: View(kind) for kind in kinds}
        self.tabs = tabs({kind.title: kind.name for kind in kinds}, "partition")
        self.tables, self.larger = named("tables"), named("larger")
        self.client, self.klass = named("client", options=[NONE]), named("klass", options=[NONE])
        foot = made(widgets.HBox, "fl-foot", children=[self.tables, self.client, self.klass, self.larger])
        self.table = made(widgets.HTML, "fl-table", "fl-numbers")
        boxes = [view.box for view in self.views.values()]
        self.box = made(widgets.VBox, "fl-main", children=[self.tabs, *boxes, foot, self.table])
        self.frame, self.held = (0, 0), ""
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

    def on_choice(self, call: Callable) -> None:
        """`call()` after another view was chosen and before it becomes visible, so that no old picture flashes up."""

        def changed(_: object) -> None:
            call()
            self._hide_others()
            self.show_table()

        self.tabs.observe(changed, "value")

    def offer(self, clients: Sequence[str], class_names: Sequence[str]) -> None:
        """Offer the clients, as they are called, and the classes; each choice stays where it can."""
        for menu, texts in ((self.client, clients), (self.klass, map(str, class_names))):
            offer(menu, (NONE, *((text, k) for k, text in enumerate(texts))))

    @property
    def look(self) -> dict[str, Any]:
        """What is looked at, as parts of the state: the view, the client and the class (None: none of them)."""
        client, klass = (None if menu.value == NOBODY else menu.value for menu in (self.client, self.klass))
        return {"view": self.visible, "client": client, "klass": klass, "frame": self.frame}

    @property
    def inches(self) -> tuple[float, float]:
        """Size of the pictures that fill the frames as they are now."""
        width, height = self.frame
        if not width or not height:
            return SIZE
        inch = min(max(min(height / SIZE[1], width / SIZE[0]), LEAST), MOST)
        return width / inch, height / inch

    def on_frame(self, call: Callable) -> None:
        """`call()` when the frames have another size, and when what moved in one of them has come to rest."""

        def resized(change: Any) -> None:
            if tuple(change["new"]) != self.frame:
                self.frame = tuple(change["new"])
                call()

        for view in self.views.values():
            view.frame.observe(resized, "size")
            view.frame.observe(lambda change: self._picked(change["new"]), "picked")
            view.frame.observe(lambda _, view=view: view.let_rest(call), "rested")

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
        self.table.layout.display = None if self.tables.value else "none"
        if self.tables.value:
            picture = self.views[self.visible].picture
            self.table.value = table(picture.table if picture else [])


def tabs(options: dict[str, str], value: str | None, *classes: str) -> widgets.ToggleButtons:
    """A quiet row of tabs."""
    return made(widgets.ToggleButtons, "fl-tabs", *classes, options=list(options.items()), value=value)
